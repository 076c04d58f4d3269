"""CUDA in, HIP out: rewritten, repaired, compiled for every target and, where possible, executed against the original."""
