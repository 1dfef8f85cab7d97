"""cuGraph's breadth-first search on the graphs and sources of a file that bfs.py wrote.

usage: python -m benchmarks.gpu.bfs_cugraph FILE.json --data DIR

The times go into FILE. Each search is timed with and without direction switching, and the faster of
the two stands for cuGraph. Its answers are compared with spgraph's by the number of vertices
reached and the sum of their levels.
"""

from __future__ import annotations

import argparse
import functools
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
    graph = graph_of(A, pylibcugraph, handle)
    del A
    cupy.get_default_memory_pool().free_all_blocks()

    def search(source: int, switching: bool, parents: bool) -> Any:
        start = cupy.array([source], np.int32)
        return pylibcugraph.bfs(handle, graph, start, switching, -1, parents, False)

    found: dict[str, Any] = {}
    _, first_ms = rows.first(functools.partial(search, entry["sources"][0], False, False), "cuda")
    for source, answer in zip(entry["sources"], entry["answers"], strict=True):
        distances = search(source, False, False)[0]
        reached = distances[distances < np.iinfo(np.int32).max]
        ours = (answer["reached"], answer["sum"])
        if (int(reached.size), int(reached.sum(dtype=np.int64))) != ours:
            return {"error": f"levels from source {source} differ from spgraph's"}
    for what, parents in (("levels", False), ("parents", True)):
        ways = {}
        for way, switching in (("push", False), ("switching", True)):
            calls = [functools.partial(search, s, switching, parents) for s in entry["sources"]]
            ms = first_ms if (way, what) == ("push", "levels") else rows.first(calls[0], "cuda")[1]
            times = [wall_ms(call, options.calls, cupy) for call in calls]
            ways[way] = rows.row_of_kinds({"wall": times}, rows.Untimed(ms))
        best = min(ways, key=lambda way: ways[way]["wall_ms"])
        found[what] = {"wall_ms": ways[best]["wall_ms"], "fastest": best, **ways}
    return found


if __name__ == "__main__":
    main(measure)
