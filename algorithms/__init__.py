"""Algorithms as semiring iterations: one file each, mathematics only."""

from .betweenness_centrality import betweenness_centrality
from .bfs import BFS, bfs
from .closeness_centrality import closeness_centrality
from .connected_components import connected_components
from .eigenvector_centrality import eigenvector_centrality
from .hits import HITS, hits
from .katz_centrality import katz_centrality
from .most_reliable_path import MostReliablePath, most_reliable_path
from .multi_source_bfs import multi_source_bfs
from .pagerank import pagerank
from .reachable import reachable
from .salsa import SALSA, salsa
from .sssp import SSSP, sssp
from .widest_path import WidestPath, widest_path

__all__ = [
    "BFS",
    "HITS",
    "SALSA",
    "SSSP",
    "MostReliablePath",
    "WidestPath",
    "betweenness_centrality",
    "bfs",
    "closeness_centrality",
    "connected_components",
    "eigenvector_centrality",
    "hits",
    "katz_centrality",
    "most_reliable_path",
    "multi_source_bfs",
    "pagerank",
    "reachable",
    "salsa",
    "sssp",
    "widest_path",
]
