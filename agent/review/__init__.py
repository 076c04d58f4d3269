"""Review of a change: what a pull request does to kernels on AMD, compared between its base and its head."""
