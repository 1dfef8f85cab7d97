"""cuGraph's algorithms on the graphs and sources of a file that algorithms.py wrote.

usage: python -m benchmarks.gpu.algorithms_cugraph FILE.json --data DIR

The times go into FILE; an answer that differs from spgraph's is reported in their place. cuGraph
takes weights as float32. Its PageRank runs exactly 20 and 40 iterations with a tolerance of 0.
"""

from __future__ import annotations

import argparse
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.gpu.cugraph_process import graph_of, main, wall_ms
from benchmarks.measuring import graphs, rows
from spgraph.containers.storage.arrays import import_cupy


class Peer(NamedTuple):
    """cuGraph, and what spgraph answered on the graph at hand."""

    library: Any
    handle: Any
    answers: dict[str, Any]
    sources: list[int]
    calls: int

    def timed(
        self, calls: Sequence[Callable[[], Any]], right: bool, first_ms: float
    ) -> dict[str, Any]:
        """The row of these calls, where the answer is `right`."""
        if not right:
            return {"error": "the answer differs from spgraph's"}
        cupy = import_cupy()
        times = [wall_ms(call, self.calls, cupy) for call in calls]
        return rows.row_of_kinds({"wall": times}, rows.Untimed(first_ms))


def measure(
    name: str, entry: dict[str, Any], options: argparse.Namespace, pylibcugraph: Any, handle: Any
) -> dict[str, Any]:
    """cuGraph on one graph."""
    A = graphs.load(name, options.data, "cuda")
    peer = Peer(pylibcugraph, handle, entry["answers"], entry["sources"], options.calls)
    weights = graphs.weighted(A).values.astype(np.float32)
    graph = graph_of(A, pylibcugraph, handle, weights=weights)
    import_cupy().get_default_memory_pool().free_all_blocks()
    found = {"sssp": sssp(peer, graph)}
    # a graph without weights: with them cuGraph's betweenness is of weighted paths
    del graph, weights
    graph = graph_of(A, pylibcugraph, handle)
    found["components"] = components(peer, graph)
    found["betweenness"] = betweenness(peer, graph)
    if "triangles" in entry["answers"]:
        found["triangles"] = triangles(peer, graph)
    del graph
    found["pagerank"] = pagerank(peer, graph_of(A, pylibcugraph, handle, transposed=True))
    return found


# --- the row of one algorithm ---------------------------------------------------------------------


def sssp(peer: Peer, graph: Any) -> dict[str, Any]:
    """Shortest paths with parents, from every source."""

    def paths(source: int) -> Any:
        return peer.library.sssp(peer.handle, graph, source, math.inf, True, False)

    calls = [functools.partial(paths, source) for source in peer.sources]
    result, first_ms = rows.first(calls[0], "cuda")
    distance = result[1]
    distance = distance[distance < 1e30]
    mine = [int(distance.size), int(distance.sum(dtype=np.float64))]
    del result, distance
    return peer.timed(calls, mine == peer.answers["sssp"][0], first_ms)


def components(peer: Peer, graph: Any) -> dict[str, Any]:
    """Weakly connected components."""
    given = peer.handle, graph, None, None, None, None, False
    call = functools.partial(peer.library.weakly_connected_components, *given)
    result, first_ms = rows.first(call, "cuda")
    number = int(import_cupy().unique(result[1]).size)
    del result
    return peer.timed([call], number == peer.answers["components"], first_ms)


def betweenness(peer: Peer, graph: Any) -> dict[str, Any]:
    """Betweenness of the first source."""
    cupy = import_cupy()

    def centrality() -> Any:
        start = cupy.array(peer.sources[:1], np.int32)
        given = peer.handle, graph, start, None, False, False, False
        return peer.library.betweenness_centrality(*given)

    result, first_ms = rows.first(centrality, "cuda")
    score = result[1]
    # cuGraph scales the sums by the share of sources taken, to NaN at a single one: what is
    # compared is how they are spread
    total, most = peer.answers["betweenness"]
    spread = float(cupy.nanmax(score)) / float(cupy.nansum(score.astype(np.float64)))
    del result, score
    return peer.timed([centrality], abs(spread * total / most - 1) < 1e-3, first_ms)


def triangles(peer: Peer, graph: Any) -> dict[str, Any]:
    """The triangles at every vertex, whose sum is three times their number."""
    call = functools.partial(peer.library.triangle_count, peer.handle, graph, None, False)
    result, first_ms = rows.first(call, "cuda")
    number = int(result[1].sum(dtype=np.int64))
    del result
    return peer.timed([call], number == 3 * peer.answers["triangles"], first_ms)


def pagerank(peer: Peer, graph: Any) -> dict[str, Any]:
    """An iteration of PageRank; `graph` is stored transposed."""

    def ranks(iterations: int) -> Any:
        given = peer.handle, graph, None, None, None, None, 0.85, 0.0, iterations, False
        return peer.library.pagerank(*given, fail_on_nonconvergence=False)

    result, first_ms = rows.first(functools.partial(ranks, 100), "cuda")
    right = abs(float(result[1].max()) / peer.answers["pagerank"][0] - 1) < 1e-3
    del result
    few, many = (
        peer.timed([functools.partial(ranks, count)], right, first_ms) for count in (20, 40)
    )
    return rows.between(few, many, 20) | {"twenty": few, "forty": many} if right else few


if __name__ == "__main__":
    main(measure)
