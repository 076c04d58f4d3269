"""Shims: CUDA names that HIP lacks or means differently, generated for a port from what its compiler has."""
