"""The algorithms beside breadth-first search on the CPU, and their peers in the same process.

usage: python -m benchmarks.cpu.algorithms [--graphs kron18,road_NY,road_BAY] [--data DIR] [-o FILE]

Peers: SciPy's csgraph, NetworKit, igraph and, for PageRank, python-graphblas. Each has its own copy
of the same graph, made beforehand; the systems take turns, round by round, and a figure is the
median of the rounds. Weights are integers from 1 to 64, one for each undirected edge. PageRank runs
20 iterations everywhere; betweenness sums over 4 sources. Answers are compared before anything is
timed, and a wrong one is not timed. A library that is not installed is reported as missing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse import csgraph

import spgraph as sg
from benchmarks.measuring import arguments, each_graph, graphs, machine, turns

SOURCES = 4

# a system: the call that is timed, and its answer as an array that can be compared
System = tuple[Callable[[], Any], Callable[[Any], np.ndarray]]


def main() -> None:
    """Measure, print the table, write the file."""
    each_graph.write("algorithms_cpu", _options(), measure, table)


def _options() -> argparse.Namespace:
    parser = arguments.parser(__doc__, "algorithms_cpu", "kron18,road_NY,road_BAY")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """All tasks on one graph."""
    A = graphs.load(name, options.data, "cpu")
    W = graphs.weighted(A)
    sources = graphs.draw_sources(np.flatnonzero(np.diff(A.indptr)), SOURCES)
    entry: dict[str, Any] = {**graphs.describe(name, A), "sources": sources, "tasks": {}}
    tasks: dict[str, dict[str, System]] = {
        "sssp": {},
        "components": {},
        "pagerank": {},
        "betweenness": {},
    }
    for peer, add in PEERS.items():
        try:
            add(tasks, A, W, sources)
        except ImportError as error:
            entry.setdefault("missing_peers", {})[peer] = str(error)
    for task, systems in tasks.items():
        entry["tasks"][task] = measured(systems, options.rounds)
    return entry


def own(
    tasks: dict[str, dict[str, System]], A: sg.Matrix, W: sg.Matrix, sources: list[int]
) -> None:
    """spgraph; parents of the shortest paths included."""
    tasks["sssp"]["spgraph"] = (
        lambda: sg.sssp(W, sources[0]),
        lambda found: found.distance.to_numpy(fill=-1).astype(np.float64),
    )
    tasks["components"]["spgraph"] = (lambda: sg.connected_components(A), lambda v: v.to_numpy())
    tasks["pagerank"]["spgraph"] = (
        lambda: sg.pagerank(A, tol=None, max_iter=20),
        lambda v: v.to_numpy(),
    )
    tasks["betweenness"]["spgraph"] = (
        lambda: sg.betweenness_centrality(A, sources=sources),
        lambda v: v.to_numpy(),
    )


def scipys(
    tasks: dict[str, dict[str, System]], A: sg.Matrix, W: sg.Matrix, sources: list[int]
) -> None:
    """SciPy: Dijkstra with predecessors, connected components; one thread."""
    S = scipy.sparse.csr_array(
        (W.values.astype(np.float64), W.indices.astype(np.int32), W.indptr.astype(np.int32)),
        shape=W.shape,
    )
    tasks["sssp"]["scipy"] = (
        lambda: csgraph.dijkstra(S, indices=sources[0], return_predecessors=True),
        lambda found: np.where(np.isinf(found[0]), -1, found[0]),
    )
    tasks["components"]["scipy"] = (
        lambda: csgraph.connected_components(S, directed=False),
        lambda found: least_members(found[1]),
    )


def networkits(
    tasks: dict[str, dict[str, System]], A: sg.Matrix, W: sg.Matrix, sources: list[int]
) -> None:
    """NetworKit: Dijkstra, ConnectedComponents, PageRank of 20 iterations."""
    import networkit

    networkit.setNumberOfThreads(machine.threads())
    upper = scipy.sparse.triu(W.to_scipy(), format="coo")
    ends = (upper.row.astype(np.uint64), upper.col.astype(np.uint64))
    plain = networkit.GraphFromCoo(ends, n=A.nrows)
    triple = (upper.data.astype(np.float64), ends)
    weighted = networkit.GraphFromCoo(triple, n=A.nrows, weighted=True)

    def sssp() -> Any:
        return networkit.distance.Dijkstra(weighted, sources[0], storePaths=True).run()

    def distances(found: Any) -> np.ndarray:
        d = np.asarray(found.getDistances())
        return np.where(d > 1e300, -1, d)

    def components() -> Any:
        return networkit.components.ConnectedComponents(plain).run()

    def labels(found: Any) -> np.ndarray:
        return least_members(np.asarray(found.getPartition().getVector()))

    def pagerank() -> Any:
        ranker = networkit.centrality.PageRank(plain, 0.85, 1e-300)
        ranker.maxIterations = 20
        return ranker.run()

    def ranks(found: Any) -> np.ndarray:
        scores = np.asarray(found.scores())  # what dangling vertices hold is lost: no sum of 1
        return scores / scores.sum()

    tasks["sssp"]["networkit"] = (sssp, distances)
    tasks["components"]["networkit"] = (components, labels)
    tasks["pagerank"]["networkit"] = (pagerank, ranks)


def igraphs(
    tasks: dict[str, dict[str, System]], A: sg.Matrix, W: sg.Matrix, sources: list[int]
) -> None:
    """igraph: distances, components, betweenness from given sources."""
    import igraph

    upper = scipy.sparse.triu(W.to_scipy(), format="coo")
    edges = np.column_stack([upper.row, upper.col])
    G = igraph.Graph(n=A.nrows, edges=edges, directed=False)
    weights = upper.data.astype(np.float64).tolist()

    def distances(found: Any) -> np.ndarray:
        d = np.asarray(found[0], np.float64)
        return np.where(np.isinf(d), -1, d)

    tasks["sssp"]["igraph"] = (lambda: G.distances(sources[0], weights=weights), distances)
    tasks["components"]["igraph"] = (
        lambda: G.connected_components(),
        lambda found: least_members(np.asarray(found.membership)),
    )
    # igraph counts each pair of an undirected graph once
    tasks["betweenness"]["igraph"] = (
        lambda: G.betweenness(sources=sources, directed=False),
        lambda found: 2 * np.asarray(found),
    )


def graphblas_systems(
    tasks: dict[str, dict[str, System]], A: sg.Matrix, W: sg.Matrix, sources: list[int]
) -> None:
    """PageRank through python-graphblas, written as LAGraph does it."""
    import graphblas as gb

    gb.ss.config["nthreads"] = machine.threads()
    n = A.nrows
    G = gb.Matrix.from_csr(A.indptr, A.indices, np.ones(A.nvals), ncols=n)
    degrees = np.diff(A.indptr).astype(np.float64)
    at = np.flatnonzero(degrees)
    scale = gb.Vector.from_coo(at, 0.85 / degrees[at], size=n)
    without = np.flatnonzero(degrees == 0)

    def pagerank() -> Any:
        r = gb.Vector.from_scalar(1 / n, n)
        for _ in range(20):
            lost = (
                float(r[without].new().reduce(gb.monoid.plus).new() or 0) if without.size else 0.0
            )
            w = r.ewise_mult(scale, gb.binary.times).new()
            r = gb.Vector.from_scalar((0.15 + 0.85 * lost) / n, n)
            r(accum=gb.binary.plus) << gb.semiring.plus_second(G @ w)
        return r

    tasks["pagerank"]["graphblas"] = (pagerank, lambda v: v.to_dense())


PEERS = {
    "spgraph": own,
    "scipy": scipys,
    "networkit": networkits,
    "igraph": igraphs,
    "graphblas": graphblas_systems,
}


def least_members(label: np.ndarray) -> np.ndarray:
    """Each vertex's component by its least vertex."""
    least = np.full(int(label.max()) + 1, label.size)
    np.minimum.at(least, label, np.arange(label.size))
    return least[label]


def measured(systems: dict[str, System], rounds: int) -> dict[str, Any]:
    """The rows of the systems, of which each `System` knows the answer as an array."""

    def differs(got: np.ndarray, expected: np.ndarray) -> str:
        # NetworKit stops where its own norm rests, igraph sums in another order
        if np.allclose(got, expected, rtol=1e-6, atol=1e-7):
            return ""
        return f"the answer differs from spgraph's by {np.abs(got - expected).max():g}"

    calls = {name: call for name, (call, _) in systems.items()}
    found = turns.timed(calls, lambda name, result: systems[name][1](result), differs, rounds, 1)
    return found | turns.ratio_to_best_peer(found)


def table(name: str, entry: dict[str, Any]) -> str:
    """One graph's figures for a person."""
    if "missing" in entry:
        return f"{name}: skipped, {entry['missing']}\n"
    lines = [f"{name}: {entry['vertices']:,} vertices, {entry['directed_edges']:,} edges; ms"]
    for task, found in entry["tasks"].items():
        cells = [
            f"{system} {values.get('median', values.get('error'))}"
            for system, values in found.items()
            if isinstance(values, dict)
        ]
        ratio = found.get("ratio_to_best_peer", "-")
        lines.append(f"  {task:12} {'  '.join(cells)}   x {ratio}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
