"""Graphs that NetworkX has, too, and its results as arrays."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import spgraph as sg

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")


def directed_of(A: sg.Matrix, weights: np.ndarray | None = None) -> nx.DiGraph:
    """The entries of A as edges, with `weights`, or 1 each."""
    G = nx.DiGraph()
    G.add_nodes_from(range(A.nrows))
    i, j, _ = A.to_coo()
    w = np.ones(A.nvals, int) if weights is None else weights
    G.add_weighted_edges_from(zip(i.tolist(), j.tolist(), w.tolist(), strict=True))
    return G


def with_isolated() -> nx.Graph:
    G = nx.gnp_random_graph(30, 0.2, seed=2)
    G.add_nodes_from(range(30, 70))
    return G


def with_loops() -> nx.Graph:
    G = nx.gnp_random_graph(40, 0.15, seed=5)
    G.add_edges_from((v, v) for v in range(0, 40, 3))
    return G


def parallel() -> nx.MultiGraph:
    rng = np.random.default_rng(6)
    G = nx.MultiGraph()
    G.add_nodes_from(range(20))
    G.add_edges_from(rng.integers(0, 20, (120, 2)).tolist())
    return G


GRAPHS: dict[str, Any] = {
    "one": lambda: nx.empty_graph(1),
    "no edges": lambda: nx.empty_graph(40),
    "path": lambda: nx.path_graph(33),
    "star": lambda: nx.star_graph(100),
    "cycle": lambda: nx.cycle_graph(31),
    "complete": lambda: nx.complete_graph(80),  # more colours than a word of flags has bits
    "two components": lambda: nx.disjoint_union(nx.complete_graph(6), nx.cycle_graph(9)),
    "loops": with_loops,
    "parallel": parallel,
    "isolated": with_isolated,
    "directed": lambda: nx.gnp_random_graph(70, 0.06, seed=7, directed=True),
    "acyclic": lambda: nx.DiGraph([(i, j) for i in range(30) for j in range(i, 30, 4)]),
    "bipartite": lambda: nx.complete_bipartite_graph(9, 14),
    "tree": lambda: nx.balanced_tree(3, 4),
    "grid": lambda: sg.generators.grid(17, 23, remove=0.1).to_scipy(),
    "rmat": lambda: sg.generators.kronecker(10, 8).to_scipy(),
}


@functools.cache
def case(name: str) -> tuple[Any, nx.Graph]:
    """(weights 1..9 at the edges of a graph, what it looks like undirected and without loops)."""
    G = GRAPHS[name]()
    S = nx.to_scipy_sparse_array(G, format="csr") if isinstance(G, nx.Graph) else G
    S = scipy.sparse.csr_array(S, dtype=np.int64)
    S.sum_duplicates()
    S.data[:] = np.random.default_rng(1).integers(1, 10, S.nnz)
    both = nx.from_scipy_sparse_array(S + S.T)
    both.remove_edges_from(list(nx.selfloop_edges(both)))
    return S, both


nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")


def networkx_of(A: sg.Matrix, weighted: bool = True) -> nx.DiGraph:
    S = A.to_scipy()
    S.data = S.data if weighted else np.ones_like(S.data)
    return nx.from_scipy_sparse_array(S, create_using=nx.DiGraph)


def listed(values: dict[int, float]) -> np.ndarray:
    return np.array([values[v] for v in range(len(values))])


TRIANGLES: dict[str, Any] = {
    "one": lambda: nx.empty_graph(1),
    "no edges": lambda: nx.empty_graph(5),
    "path": lambda: nx.path_graph(9),
    "star": lambda: nx.star_graph(40),
    "cycle of three": lambda: nx.cycle_graph(3),
    "complete": lambda: nx.complete_graph(20),
    "two components": lambda: nx.disjoint_union(nx.complete_graph(5), nx.cycle_graph(4)),
    "grid": lambda: nx.triangular_lattice_graph(6, 6),
    "random": lambda: nx.gnp_random_graph(120, 0.1, seed=3),
    "power law": lambda: nx.barabasi_albert_graph(400, 6, seed=4),
}


def triangular(name: str, loops: bool) -> tuple[nx.Graph, sg.Matrix]:
    """A graph of TRIANGLES; the Matrix has a loop at every vertex besides, if asked."""
    G = nx.convert_node_labels_to_integers(TRIANGLES[name]())
    A = sg.Matrix.from_networkx(G, weight=None)
    if loops:
        S = A.to_scipy().astype(np.int64) + scipy.sparse.eye_array(A.nrows, dtype=np.int64)
        A = sg.Matrix.from_scipy(S.tocsr(), symmetric=True)
    return G, A
