"""Backends: the same functions on the same containers, on the CPU (Numba) and on CUDA (CuPy)."""
