"""Benchmarks on a processor, beside other libraries: `python -m benchmarks.cpu.bfs` and others."""
