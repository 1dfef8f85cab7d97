"""The algorithms beside breadth-first search on one GPU, and cuGraph in the same run.

usage: python -m benchmarks.gpu.algorithms [--data DIR] [--cugraph BUNDLE] [-o FILE]

Whole calls, warm: device and wall time as gpu_clock.py takes them. Weights are integers from 1 to
64, one for each undirected edge. SSSP and betweenness start from vertices drawn from the largest
component; a figure is the median over them of the medians of the calls. PageRank's time of an
iteration is (the time of 40 - the time of 20) / 20, of calls in pairs, with tol=None. Every answer
is checked by its properties, and cuGraph's (algorithms_cugraph.py) against spgraph's.
"""

from __future__ import annotations

import argparse
import functools
import json
import pathlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import spgraph as sg
from benchmarks.gpu import cugraph_process
from benchmarks.measuring import arguments, gpu_clock, graphs, machine, rows
from spgraph.containers.storage.arrays import import_cupy

GRAPHS = "road_NY,road_BAY,kron21,rmat_n20_512,rmat_n24_32"
TRIANGLES_UP_TO = 1 << 28  # entries: beyond, a count takes seconds
Row = dict[str, Any]
Part = tuple[dict[str, Row], Any, list[str]]
TASKS = ("sssp", "sssp distances", "components", "betweenness", "pagerank", "triangles")


def main() -> None:
    """Measure, run the peer, print the table; the file is written anew after each graph."""
    options = _options()
    found: dict[str, Any] = {
        "benchmark": "algorithms_gpu",
        **machine.facts(options.commit),
        "unit": "ms",
        "graphs": {},
    }
    result = machine.begun(options.output, found)
    for name in options.graphs.split(","):
        print(f"{name} ...", flush=True)
        reason = graphs.missing(name, options.data)
        result["graphs"][name] = {"missing": reason} if reason else measure(name, options)
        import_cupy().get_default_memory_pool().free_all_blocks()
        machine.write(options.output, result)
    arguments = (options.output, options.data, options.cugraph)
    cugraph_process.run("benchmarks.gpu.algorithms_cugraph", *arguments)
    print(table(json.loads(options.output.read_text(encoding="utf-8"))))


def _options() -> argparse.Namespace:
    parser = arguments.parser(__doc__, "algorithms_gpu", GRAPHS)
    parser.add_argument("--sources", type=int, default=4)
    parser.add_argument("--calls", type=int, default=7, help="timed calls a source, of each kind")
    parser.add_argument("--cugraph", type=pathlib.Path, metavar="BUNDLE")
    return parser.parse_args()


class Graph(NamedTuple):
    """A graph, symmetric, and how it is measured."""

    pattern: sg.Matrix
    weighted: sg.Matrix
    sources: list[int]
    calls: int

    def timed(self, calls: Sequence[Callable[[], Any]], first_ms: float | None = None) -> Row:
        """The row of these calls; without `first_ms` nobody has made the first of them before."""
        if first_ms is None:
            first_ms = rows.first(calls[0], "cuda")[1]
        seen = rows.untimed(calls[0], first_ms, "cuda")
        found = [gpu_clock.measure(call, self.calls) for call in calls]
        kinds = {"device": [t.device_ms for t in found], "wall": [t.wall_ms for t in found]}
        return rows.row_of_kinds(kinds, seen)


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """spgraph on one graph."""
    cupy = import_cupy()
    A = graphs.load(name, options.data, "cuda")
    W = graphs.weighted(A)
    degree = cupy.diff(A.indptr)
    component = sg.bfs(A, int(degree.argmax()), parents=False).level.to_coo()[0]
    sources = graphs.draw_sources(cupy.asnumpy(component), options.sources)
    del degree, component
    graph = Graph(A, W, sources, options.calls)
    entry: dict[str, Any] = {**graphs.describe(name, A), "sources": sources, "answers": {}}
    entry["faults"] = []
    parts = [sssp, components, betweenness, pagerank]
    if A.nvals <= TRIANGLES_UP_TO:
        parts.append(triangles)
    for part in parts:
        measured, answer, faults = part(graph)
        entry |= measured
        entry["answers"][part.__name__] = answer
        entry["faults"] += faults
    return entry


# --- one algorithm: (its rows, what cuGraph's answer is compared with, what is wrong) -------------


def sssp(graph: Graph) -> Part:
    """Shortest paths from every source, with parents and without."""
    sums, firsts, faults = [], [], []
    whole = [functools.partial(sg.sssp, graph.weighted, s) for s in graph.sources]
    for source, call in zip(graph.sources, whole, strict=True):
        (distance, parent), ms = rows.first(call, "cuda")
        firsts.append(ms)
        faults += _sssp_faults(graph.weighted, source, distance, parent, import_cupy())
        sums.append([distance.nvals, int(distance.to_coo()[1].sum(dtype=np.int64))])
        del distance, parent
    alone = [functools.partial(call, parents=False) for call in whole]
    found = {"sssp": graph.timed(whole, firsts[0]), "sssp distances": graph.timed(alone)}
    return found, sums, faults


def components(graph: Graph) -> Part:
    """Connected components, and how many there are."""
    cupy, A, faults = import_cupy(), graph.pattern, []
    found, first_ms = rows.first(lambda: sg.connected_components(A), "cuda")
    label, tails = found.to_cupy(), A.row_indices()
    if bool((label[tails] != label[A.indices]).any()) or bool((label[label] != label).any()):
        faults.append("components: an edge joins two of them, or a label is no root")
    number = int((label == cupy.arange(A.nrows)).sum())
    del tails, label, found
    measured = graph.timed([lambda: sg.connected_components(A)], first_ms)
    return {"components": measured}, number, faults


def betweenness(graph: Graph) -> Part:
    """Betweenness of one source, and the sum and the greatest of the scores."""
    cupy, A, faults = import_cupy(), graph.pattern, []
    centrality = functools.partial(sg.betweenness_centrality, A, sources=graph.sources[:1])
    found, first_ms = rows.first(centrality, "cuda")
    score = found.to_cupy()
    level = sg.bfs(A, graph.sources[0], parents=False).level.to_coo()[1]
    # the dependencies of one source sum up to (level - 1) over what it reaches
    expected = float(cupy.maximum(level - 1, 0).sum(dtype=np.float64))
    total, most = float(score.sum()), float(score.max())
    if abs(total / max(expected, 1.0) - 1) > 1e-5:
        faults.append(f"betweenness: the sum is {total}, not {expected}")
    del score, level, found
    return {"betweenness": graph.timed([centrality], first_ms)}, [total, most], faults


def pagerank(graph: Graph) -> Part:
    """An iteration of PageRank, and the greatest rank and the sum of squares."""
    A = graph.pattern
    ranks = {k: functools.partial(sg.pagerank, A, tol=None, max_iter=k) for k in (20, 40)}
    twenty, forty = graph.timed([ranks[20]]), graph.timed([ranks[40]])
    rank = sg.pagerank(A, tol=1e-8, max_iter=500).to_cupy()
    faults = _pagerank_faults(A, rank, import_cupy())
    measured = rows.between(twenty, forty, 20) | {"twenty": twenty, "forty": forty}
    return {"pagerank": measured}, [float(rank.max()), float((rank * rank).sum())], faults


def triangles(graph: Graph) -> Part:
    """The triangles of the graph."""
    A = graph.pattern
    found, first_ms = rows.first(lambda: sg.triangle_count(A), "cuda")
    return {"triangles": graph.timed([lambda: sg.triangle_count(A)], first_ms)}, int(found), []


def _sssp_faults(W: sg.Matrix, source: int, distance: Any, parent: Any, cupy: Any) -> list[str]:
    """No edge is shorter than the distances say, and every parent's is exactly as long."""
    infinite = np.int64(2**62)
    d = distance.to_cupy(fill=infinite)
    p = parent.to_cupy(fill=-1)
    faults = []
    step = 1 << 27
    tails, best = W.row_indices(), cupy.full(W.nrows, infinite)
    for start in range(0, W.nvals, step):
        part = slice(start, start + step)
        ends = d[tails[part]] + W.values[part], W.indices[part]
        if bool((ends[0] < d[ends[1]]).any()):
            faults.append(f"sssp from {source}: an edge makes a distance shorter")
        mine = tails[part] == p[ends[1]]
        best[ends[1][mine]] = ends[0][mine]
    reached = d < infinite
    best[source] = 0
    if bool((best[reached] != d[reached]).any()) or bool((p[reached] < 0).any()):
        faults.append(f"sssp from {source}: a parent's edge is not on a shortest path")
    if int(d[source]) != 0 or int(p[source]) != source:
        faults.append(f"sssp from {source}: the source is not its own root")
    return faults


def _pagerank_faults(A: sg.Matrix, rank: Any, cupy: Any) -> list[str]:
    """The residual of one iteration in float64."""
    degree = cupy.diff(A.indptr).astype(np.float64)
    share = cupy.where(degree > 0, rank / cupy.maximum(degree, 1), 0)
    lost = float(rank[degree == 0].sum())
    ones = sg.Matrix._of(
        A.nrows, A.ncols, A.indptr, A.indices, cupy.ones(1), iso=True, symmetric=True
    )
    gathered = sg.mxv(ones, sg.Vector._of(A.nrows, share)).to_cupy(fill=0)
    again = 0.85 * gathered + (0.15 + 0.85 * lost) / A.nrows
    change = float(cupy.abs(again - rank).sum())
    return [] if change < 1e-6 else [f"pagerank: the 1-norm of the residual is {change}"]


def table(result: dict[str, Any]) -> str:
    """The figures for a person."""
    lines = ["wall ms of whole calls (device ms), and cugraph's wall ms"]
    for name, entry in result["graphs"].items():
        if "missing" in entry:
            lines.append(f"{name}: skipped, {entry['missing']}")
            continue
        lines.append(f"{name}: {entry['vertices']:,} vertices, {entry['directed_edges']:,} edges")
        for task in TASKS:
            if task in entry:
                own, peer = entry[task], entry.get("cugraph", {}).get(task, {})
                times = f"{own['wall_ms']:10.4f} ({own['device_ms']:9.4f})"
                lines.append(f"  {task:16}{times}   {peer.get('wall_ms', peer or '-')}")
        lines += [f"  WRONG: {fault}" for fault in entry["faults"]]
    lines += [f"cugraph {what}: {text}" for what, text in result.get("cugraph", {}).items()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
