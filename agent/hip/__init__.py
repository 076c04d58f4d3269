"""HIP and CUDA files through the same search: compiled for the target, run in the emulator with generated drivers."""
