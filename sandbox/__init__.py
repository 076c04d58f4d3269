"""Compiles, runs, checks and measures kernels. Knows nothing of skills, models or jobs."""
