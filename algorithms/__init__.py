"""Algorithms as semiring iterations: one file each, mathematics only."""

from .bfs import BFS, bfs

__all__ = [
    "BFS",
    "bfs",
]
