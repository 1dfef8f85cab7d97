"""cuGraph's algorithms on the graphs and sources of a file that algorithms_gpu.py wrote.

usage: python -m benchmarks.gpu.algorithms_cugraph FILE.json --data DIR

The times go into FILE; an answer that differs from spgraph's is reported in their place. cuGraph
takes weights as float32. Its PageRank runs exactly 20 and 40 iterations with a tolerance of 0.
"""

from __future__ import annotations

import argparse
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.gpu.cugraph_process import graph_of, main, wall_ms
from benchmarks.measuring import graphs, rows


def measure(
    name: str, entry: dict[str, Any], options: argparse.Namespace, pylibcugraph: Any, handle: Any
) -> dict[str, Any]:
    """cuGraph on one graph."""
    import cupy

    A = graphs.load(name, options.data, "cuda")
    weights = graphs.weighted(A).values.astype(np.float32)
    graph = graph_of(A, pylibcugraph, handle, weights=weights)
    cupy.get_default_memory_pool().free_all_blocks()
    sources, answers = entry["sources"], entry["answers"]
    found: dict[str, Any] = {}

    def timed(task: str, calls: list[Callable[[], Any]], right: bool, first_ms: float) -> None:
        if not right:
            found[task] = {"error": "the answer differs from spgraph's"}
            return
        times = [wall_ms(call, options.calls, cupy) for call in calls]
        found[task] = rows.row_of_kinds({"wall": times}, rows.Untimed(first_ms))

    def sssp(source: int) -> Any:
        return pylibcugraph.sssp(handle, graph, source, math.inf, True, False)

    result, first_ms = rows.first(functools.partial(sssp, sources[0]), "cuda")
    distance = result[1]
    distance = distance[distance < 1e30]
    mine = [int(distance.size), int(distance.sum(dtype=np.float64))]
    right = mine == answers["sssp"][0]
    timed("sssp", [functools.partial(sssp, s) for s in sources], right, first_ms)

    # a graph without weights: with them cuGraph's betweenness is of weighted paths
    del graph, weights
    graph = graph_of(A, pylibcugraph, handle)

    def components() -> Any:
        return pylibcugraph.weakly_connected_components(
            handle, graph, None, None, None, None, False
        )

    result, first_ms = rows.first(components, "cuda")
    right = int(cupy.unique(result[1]).size) == answers["components"]
    timed("components", [components], right, first_ms)

    def betweenness() -> Any:
        start = cupy.array(sources[:1], np.int32)
        return pylibcugraph.betweenness_centrality(handle, graph, start, None, False, False, False)

    result, first_ms = rows.first(betweenness, "cuda")
    score = result[1]
    # cuGraph scales the sums by the share of sources taken, to NaN at a single one: what is
    # compared is how they are spread
    total, most = answers["betweenness"]
    spread = float(cupy.nanmax(score)) / float(cupy.nansum(score.astype(np.float64)))
    timed("betweenness", [betweenness], abs(spread * total / most - 1) < 1e-3, first_ms)
    if "triangles" in answers:

        def triangles() -> Any:
            return pylibcugraph.triangle_count(handle, graph, None, False)

        result, first_ms = rows.first(triangles, "cuda")
        right = int(result[1].sum(dtype=np.int64)) == 3 * answers["triangles"]
        timed("triangles", [triangles], right, first_ms)
    del graph, result, score
    graph = graph_of(A, pylibcugraph, handle, transposed=True)

    def pagerank(iterations: int) -> Any:
        return pylibcugraph.pagerank(
            handle, graph, None, None, None, None, 0.85, 0.0, iterations, False,
            fail_on_nonconvergence=False,
        )  # fmt: skip

    rank, first_ms = rows.first(functools.partial(pagerank, 100), "cuda")
    right = abs(float(rank[1].max()) / answers["pagerank"][0] - 1) < 1e-3
    timed("pagerank", [functools.partial(pagerank, 20)], right, first_ms)
    if right:
        twenty = found["pagerank"]
        timed("pagerank", [functools.partial(pagerank, 40)], right, first_ms)
        forty = found["pagerank"]
        found["pagerank"] = rows.between(twenty, forty, 20) | {"twenty": twenty, "forty": forty}
    return found


if __name__ == "__main__":
    main(measure)
