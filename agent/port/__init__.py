"""CUDA in, HIP out: rewritten, repaired, compiled for every target, and executed against the original."""
