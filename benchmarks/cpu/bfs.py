"""Breadth-first search on the CPU, beside SciPy, NetworKit and python-graphblas, in one process.

usage: python -m benchmarks.cpu.bfs [--graphs kron18,kron20,road_NY,road_BAY] [--data DIR] [-o FILE]

Every system searches its own copy of the same graph, made beforehand, from the same sources, which
are drawn from the vertices with an edge. For each source the systems take turns, in an order that
moves on from source to source: one call to warm up, then the timed ones. A time is wall time of
the whole call; the figure of a system is the median over the sources of the median of its calls.
Each system's answer is compared with SciPy's before anything is timed: a wrong one is not timed.
A library that is not installed is reported as missing.
"""

from __future__ import annotations

import argparse
import functools
import gc
import time
from typing import Any

import numpy as np
import scipy.sparse

import spgraph as sg
from benchmarks.cpu.bfs_peers import PEERS, System
from benchmarks.measuring import arguments, each_graph, first_call, graphs, machine, rows
from spgraph.backends.loops import LevelSearch
from spgraph.containers import Vector
from spgraph.iterations.level_search import Search, composed_search
from spgraph.semirings import any_pair

# between the systems: OpenMP's threads spin on for some milliseconds after their last work
PAUSE = 0.02


def main() -> None:
    """Measure, print the table, write the file."""
    options = _options()
    first = {} if options.no_first_call else {"first_call": first_call.measure("cpu")}
    each_graph.write("bfs_cpu", options, measure, table, **first)
    if first:
        print(first_call.table(first["first_call"]))


def _options() -> argparse.Namespace:
    parser = arguments.parser(__doc__, "bfs_cpu", "kron18,kron20,road_NY,road_BAY")
    parser.add_argument("--sources", type=int, default=8)
    parser.add_argument("--calls", type=int, default=5, help="timed calls of a system a source")
    parser.add_argument("--no-first-call", action="store_true")
    options = parser.parse_args()
    for name in options.graphs.split(","):
        if name not in graphs.NAMES:
            parser.error(f"--graphs: expected names among {', '.join(graphs.NAMES)}, got {name!r}")
    return options


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """All systems on one graph."""
    A = graphs.load(name, options.data, "cpu")
    S = A.to_scipy()
    sources = graphs.draw_sources(np.flatnonzero(np.diff(A.indptr)), options.sources)
    entry: dict[str, Any] = {**graphs.describe(name, A), "sources": sources, "systems": {}}
    systems = own_systems(A)
    for peer, make in PEERS.items():
        try:
            systems += make(S, machine.threads())
        except ImportError as error:
            entry["systems"][peer] = {"missing": str(error)}
    reference = _reference(S, sources[0])
    entry["reached"] = int((reference >= 0).sum())
    entry["levels"] = int(reference.max()) + 1
    right, seen = [], {}
    for system in systems:
        search = functools.partial(system.search, sources[0])
        if system.prepare:
            system.prepare()
        result, first_ms = rows.first(search)
        fault = _fault(system, result, S, sources[0], reference)
        del result
        if fault:
            entry["systems"][system.name] = {"error": fault}
        else:
            right.append(system)
            seen[system.name] = rows.untimed(search, first_ms)
    times: dict[str, list[list[float]]] = {system.name: [] for system in right}
    for turn, source in enumerate(sources):
        for system in right[turn % len(right) :] + right[: turn % len(right)]:
            times[system.name].append(_times(system, source, options.calls))
    for system in right:
        found = times[system.name], seen[system.name]
        entry["systems"][system.name] = rows.row(*found, threads=system.threads)
    return entry


def own_systems(A: sg.Matrix) -> list[System]:
    """spgraph: levels, levels and parents, and levels by the loop out of plain operations."""

    def by_operations(source: int) -> Any:
        start = Vector.from_coo([source], [True], size=A.nrows)
        # the values of any_pair, too, as a loop that knows nothing of them
        typed = any_pair.resolve(start.dtype, A.dtype)
        return Search(*composed_search(A, A.T, start, LevelSearch(A.nrows, typed)))

    def levels(result: Any, source: int) -> np.ndarray:
        return result.level.to_numpy(fill=-1).astype(np.int64)

    return [
        System("spgraph", lambda source: sg.bfs(A, source, parents=False), levels),
        System(
            "spgraph parents",
            lambda source: sg.bfs(A, source),
            levels,
            lambda result: result.parent.to_numpy(fill=-1).astype(np.int64),
        ),
        System("spgraph composed", by_operations, levels),
    ]


def _reference(S: scipy.sparse.csr_array, source: int) -> np.ndarray:
    scipy_system = PEERS["scipy"](S, 1)[0]
    return scipy_system.levels(scipy_system.search(source), source)


def _fault(
    system: System, result: Any, S: scipy.sparse.csr_array, source: int, levels: np.ndarray
) -> str | None:
    """What is wrong with a system's answer; None if it is right."""
    if system.parents is None:
        same = np.array_equal(system.levels(result, source), levels)
        return None if same else "levels differ from SciPy's"
    parents = system.parents(result)
    child = np.flatnonzero(levels >= 0)
    child = child[child != source]
    above = parents[child]
    if parents[source] != source or not np.array_equal(parents >= 0, levels >= 0):
        return "the parents do not span what SciPy reaches"
    if (levels[above] != levels[child] - 1).any() or not S[above, child].all():
        return "a parent is no neighbour one level up"
    if system.name.startswith("spgraph"):
        least = np.full(S.shape[0], S.shape[0])
        tail, head = S.tocoo().coords
        leads = (levels[tail] >= 0) & (levels[tail] + 1 == levels[head])
        np.minimum.at(least, head[leads], tail[leads])
        if (least[child] != above).any():
            return "a parent is not the least of those possible"
    return None


def _times(system: System, source: int, calls: int) -> list[float]:
    """Milliseconds of each call."""
    if system.prepare:
        system.prepare()
    time.sleep(PAUSE)
    gc.collect()
    gc.disable()
    try:
        last = [system.search(source)]
        times = []
        for _ in range(calls):
            last.clear()  # here, so that freeing a result is not timed
            start = time.perf_counter()
            last.append(system.search(source))
            times.append(round((time.perf_counter() - start) * 1e3, 4))
    finally:
        gc.enable()
    return times


def table(name: str, entry: dict[str, Any]) -> str:
    """One graph's figures for a person."""
    if "missing" in entry:
        return f"{name}: skipped, {entry['missing']}\n"
    lines = [
        f"{name}: {entry['vertices']:,} vertices, {entry['directed_edges']:,} directed edges, "
        f"{entry['levels']} levels from the first of {len(entry['sources'])} sources"
    ]
    ordered = sorted(entry["systems"].items(), key=lambda item: item[1].get("median", np.inf))
    for system, found in ordered:
        if "median" in found:
            fastest = np.min(found["times"])
            lines.append(f"  {system:27} {found['median']:10.3f} ms   (fastest call {fastest:.3f})")
        else:
            lines.append(f"  {system:27} {found.get('missing') or found.get('error')}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
