"""What to change in a kernel, and when: the skill library and the code that reads it."""
