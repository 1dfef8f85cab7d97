"""Benchmarks on GPUs, beside cuGraph and cuSPARSE: `python -m benchmarks.gpu.bfs` and others."""
