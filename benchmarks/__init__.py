"""Timed runs: `python -m benchmarks.bfs_cpu` and the like, from the top of the checkout."""
