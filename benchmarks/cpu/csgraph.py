"""spgraph.csgraph beside scipy.sparse.csgraph on the CPU: every function that spgraph serves.

usage: python -m benchmarks.cpu.csgraph [--graphs kron18,road_NY,road_BAY,grid1000,grid160,kron13,
                                        dense400] [--only WORD] [--data DIR] [-o FILE]

Both take the same arguments: a csr_array of float64 with lengths drawn from 0.01 to 1, one for each
stored entry; dense400 is also given as a dense and as a masked array. grid160, kron13 and dense400
have just over 1e5 edges. SciPy's bellman_ford and johnson look at all edges as often as there are
vertices, so that they are measured on the smallest graph alone. Answers are compared before
anything is timed, and a wrong one is not timed; the two take turns, round by round, and a figure is
the median of the rounds.
"""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse import csgraph as scipys

import spgraph as sg
import spgraph.csgraph as ours
from benchmarks.cpu.algorithms import least_members, measured, table
from benchmarks.measuring import arguments, each_graph, graphs

GRIDS = {"grid1000": 1000, "grid160": 160, "grid8": 8}
KRONECKER = {"kron13": (13, 8)}
DENSE = {"dense400": 400, "dense20": 20}
DEFAULT = "kron18,road_NY,road_BAY,grid1000,grid160,kron13,dense400"
SOURCES = 4
# vertices up to which SciPy's rounds over all edges are waited for
FEW = 10_000

# a call of either library, and its answer as an array that can be compared
Task = tuple[str, Callable[[Any], Any], Callable[[Any], np.ndarray]]


def main() -> None:
    """Measure, print the table, write the file."""
    each_graph.write("csgraph_cpu", _options(), measure, table)


def _options() -> argparse.Namespace:
    parser = arguments.parser(__doc__, "csgraph_cpu", DEFAULT)
    parser.add_argument("--only", default="", help="the tasks whose name holds this")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def load(name: str, data: pathlib.Path) -> Any:
    """A graph by name, as a csr_array of float64."""
    chance = np.random.default_rng(7)
    if name in DENSE:
        n = DENSE[name]
        return scipy.sparse.random_array((n, n), density=0.7, rng=chance, format="csr")
    if name in GRIDS:
        A = sg.generators.grid(GRIDS[name], GRIDS[name])
    elif name in KRONECKER:
        A = sg.generators.kronecker(*KRONECKER[name])
    else:
        A = graphs.load(name, data, "cpu")
    values = chance.uniform(0.01, 1, A.nvals)
    arrays = (values, A.indices.astype(np.int32), A.indptr.astype(np.int32))
    return scipy.sparse.csr_array(arrays, shape=A.shape)


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """All tasks on one graph."""
    S = load(name, options.data)
    sources = graphs.draw_sources(np.flatnonzero(np.diff(S.indptr)), SOURCES)
    entry: dict[str, Any] = {"vertices": S.shape[0], "directed_edges": S.nnz}
    entry |= {"sources": sources, "tasks": {}}
    tasks = dense(S) if name in DENSE else sparse(S, sources)
    for task, call, answer in tasks:
        if options.only in task:
            systems = {
                "spgraph": (lambda call=call: call(ours), answer),
                "scipy": (lambda call=call: call(scipys), answer),
            }
            entry["tasks"][task] = measured(systems, options.rounds)
    return entry


def sparse(S: Any, sources: list[int]) -> Iterator[Task]:
    """What walks along edges."""
    s, n = sources[0], S.shape[0]
    expected = scipys.dijkstra(S, indices=s)
    near = float(np.sort(expected)[min(100, n - 1)])
    parents = scipys.breadth_first_order(S, s)[1]
    row = np.asarray

    yield "connected_components", lambda m: m.connected_components(S), lambda a: a[1]
    yield (
        "strong components",
        lambda m: m.connected_components(S, connection="strong"),
        lambda a: least_members(a[1]),
    )
    for kind, directed in (("", True), (" undirected", False)):
        yield (
            f"breadth_first_order{kind}",
            lambda m, d=directed: m.breadth_first_order(S, s, d),
            lambda a: np.append(*a),
        )
    yield "breadth_first_tree", lambda m: m.breadth_first_tree(S, s), entries
    yield "reconstruct_path", lambda m: m.reconstruct_path(S, parents), entries
    yield "dijkstra", lambda m: m.dijkstra(S, indices=s), row
    yield "dijkstra undirected", lambda m: m.dijkstra(S, False, indices=s), row
    yield "dijkstra unweighted", lambda m: m.dijkstra(S, indices=s, unweighted=True), row
    yield "dijkstra near", lambda m: m.dijkstra(S, indices=s, limit=near), row
    yield (
        "dijkstra predecessors",
        lambda m: m.dijkstra(S, indices=s, return_predecessors=True),
        lambda a: a[0],
    )
    yield (
        "dijkstra several",
        lambda m: m.dijkstra(S, indices=sources, return_predecessors=True),
        lambda a: a[0],
    )
    yield (
        "dijkstra min_only",
        lambda m: m.dijkstra(S, indices=sources, min_only=True, return_predecessors=True),
        lambda a: a[0],
    )
    yield "shortest_path", lambda m: m.shortest_path(S, indices=s), row
    if n <= FEW:
        yield "bellman_ford", lambda m: m.bellman_ford(S, indices=s), row
        yield "johnson", lambda m: m.johnson(S, indices=s), row
    yield "minimum_spanning_tree", lambda m: m.minimum_spanning_tree(S), entries
    yield "laplacian", lambda m: m.laplacian(S), entries
    yield "laplacian normed", lambda m: m.laplacian(S, normed=True), entries


def dense(S: Any) -> Iterator[Task]:
    """What is about all pairs."""
    graph = scipys.csgraph_to_dense(S)
    masked = scipys.csgraph_to_masked(S)
    parents = scipys.floyd_warshall(S, return_predecessors=True)[1]
    row = np.asarray
    for kind, given in (("", S), (" dense", graph)):
        yield f"floyd_warshall{kind}", lambda m, g=given: m.floyd_warshall(g), row
    yield (
        "floyd_warshall predecessors",
        lambda m: m.floyd_warshall(S, return_predecessors=True),
        lambda a: a[0],
    )
    yield "shortest_path all", lambda m: m.shortest_path(S), row
    yield "construct_dist_matrix", lambda m: m.construct_dist_matrix(S, parents), row
    yield "csgraph_from_dense", lambda m: m.csgraph_from_dense(graph), entries
    yield "csgraph_from_masked", lambda m: m.csgraph_from_masked(masked), entries
    yield (
        "csgraph_masked_from_dense",
        lambda m: m.csgraph_masked_from_dense(graph),
        lambda a: a.filled(-1),
    )
    yield "csgraph_to_dense", lambda m: m.csgraph_to_dense(S), row
    yield "csgraph_to_dense inf", lambda m: m.csgraph_to_dense(S, np.inf), row
    yield "csgraph_to_masked", lambda m: m.csgraph_to_masked(S), lambda a: a.filled(-1)
    yield "laplacian dense", lambda m: m.laplacian(graph), row


def entries(made: Any) -> np.ndarray:
    """Rows, columns and values of a sparse answer, in order."""
    csr = made.tocsr()
    csr.sort_indices()
    return np.concatenate([csr.indptr, csr.indices, csr.data])


if __name__ == "__main__":
    main()
