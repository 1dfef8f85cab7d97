"""Timed runs: `python -m benchmarks.cpu.bfs` and the like, from the top of the checkout."""
