"""Algorithms as semiring iterations: one file each, mathematics only."""

from .bfs import BFS, bfs
from .connected_components import connected_components
from .most_reliable_path import MostReliablePath, most_reliable_path
from .reachable import reachable
from .sssp import SSSP, sssp
from .widest_path import WidestPath, widest_path

__all__ = [
    "BFS",
    "SSSP",
    "MostReliablePath",
    "WidestPath",
    "bfs",
    "connected_components",
    "most_reliable_path",
    "reachable",
    "sssp",
    "widest_path",
]
