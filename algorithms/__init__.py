"""Algorithms as semiring iterations: one file each, mathematics only."""

from .bfs import BFS, bfs
from .connected_components import connected_components

__all__ = [
    "BFS",
    "bfs",
    "connected_components",
]
