"""Algorithms as semiring iterations: one file each, mathematics only."""

from .betweenness_centrality import betweenness_centrality
from .bfs import BFS, TracedBFS, bfs
from .closeness_centrality import closeness_centrality
from .clustering import clustering
from .connected_components import connected_components
from .core_number import core_number
from .eigenvector_centrality import eigenvector_centrality
from .greedy_color import greedy_color
from .hits import HITS, hits
from .k_truss import k_truss
from .katz_centrality import katz_centrality
from .label_propagation import label_propagation
from .maximal_independent_set import maximal_independent_set
from .minimum_spanning_tree import minimum_spanning_tree
from .most_reliable_path import MostReliablePath, most_reliable_path
from .multi_source_bfs import multi_source_bfs
from .pagerank import pagerank
from .reachable import reachable
from .salsa import SALSA, salsa
from .sssp import SSSP, sssp
from .triangle_count import triangle_count
from .widest_path import WidestPath, widest_path

__all__ = [
    "BFS",
    "HITS",
    "SALSA",
    "SSSP",
    "MostReliablePath",
    "TracedBFS",
    "WidestPath",
    "betweenness_centrality",
    "bfs",
    "closeness_centrality",
    "clustering",
    "connected_components",
    "core_number",
    "eigenvector_centrality",
    "greedy_color",
    "hits",
    "k_truss",
    "katz_centrality",
    "label_propagation",
    "maximal_independent_set",
    "minimum_spanning_tree",
    "most_reliable_path",
    "multi_source_bfs",
    "pagerank",
    "reachable",
    "salsa",
    "sssp",
    "triangle_count",
    "widest_path",
]


def __dir__() -> list[str]:
    return sorted(__all__)
