"""The algorithms on the CPU beside GAPBS, on one thread, on several, and beside other work.

usage: python -m benchmarks.cpu.gapbs BUILDS [--graphs kron18,...] [--processors 0,1] [-o FILE]

BUILDS is a folder of builds of GAPBS (`gapbs_programs.py` beside this file says which and how they
are made); of its builds, variants and deltas the fastest in a first try on all threads counts.
SciPy takes part in searches and components. The process and all that it starts are pinned to the
processors. Conditions: each number of threads of --threads alone, and the largest beside as many
endless loops as there are processors, on the graphs of --loaded. In every cell, which is a task on
a graph under a condition, each system's answer is compared before it is timed, then the systems
take turns; figures are over all calls from all sources. GAPBS's parents are any parents, and all it
computes of ranks has single precision; spgraph's parents are the least ones, its ranks have double
precision and gather single.
"""

from __future__ import annotations

import argparse
import functools
import gc
import math
import os
import pathlib
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse import csgraph

import spgraph as sg
from benchmarks.cpu import gapbs_programs
from benchmarks.cpu.algorithms import least_members
from benchmarks.measuring import arguments, graphs, machine, rows
from spgraph.backends.cpu.runtime import pool

GRAPHS = (
    "kron18,kron20,uniform18,road_NY,road_BAY,grid1000,web18,web18_symmetric,epinions,"
    "epinions_symmetric"
)
PAUSE = 0.02  # OpenMP's threads spin on for some milliseconds after their last work
TURNS, MOST_CALLS = 2, 10
SLOW = 300.0  # where a call takes so many milliseconds there is one turn, and no call to warm up
# a cell of at least this many milliseconds counts in the geometric mean
COUNTS = 1.0
# |x - y| <= 2 * 0.85**20 for ranks of 20 steps from the same start, which go to the same limit
RANKS_MAY_DIFFER = 2 * 2 * 0.85**gapbs_programs.ITERATIONS


class Cell(NamedTuple):
    """What is timed on a graph: the systems' calls by name, each from one source of `sources`
    (None: the call has no source), GAPBS's kernel, and the answers that are compared.
    """

    kernel: str
    sources: list[int] | None
    calls: dict[str, Callable[[int], Any]]
    answers: dict[str, Callable[[Any], Any]]


def main() -> None:
    """Measure, print the table, write the file."""
    options = _options()
    os.sched_setaffinity(0, options.processors)
    found: dict[str, Any] = {
        "benchmark": "gapbs_cpu",
        **machine.facts(options.commit),
        "processors": sorted(options.processors),
        "unit": "ms",
        "graphs": {},
    }
    result = machine.begun(options.output, found)
    for name in options.graphs.split(","):
        reason = graphs.missing(name, options.data)
        entry = {"missing": reason} if reason else measure(name, options)
        result["graphs"][name] = entry
        print(table(name, entry), flush=True)
        result["summary"] = summary(result["graphs"])
        machine.write(options.output, result)
    print(summary_lines(result["summary"]))
    print(f"written: {options.output.name}")


def _options() -> argparse.Namespace:
    parser = arguments.parser(__doc__, "gapbs_cpu", GRAPHS)
    parser.add_argument("builds", type=pathlib.Path, help="a folder of builds of GAPBS")
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--threads", default="1,2", help="numbers of threads")
    parser.add_argument(
        "--loaded", default="", help="the graphs measured beside endless loops, too"
    )
    parser.add_argument("--processors", help="by their numbers; default: the first few allowed")
    parser.add_argument("--seconds", type=float, default=0.25, help="aimed at, a system and turn")
    options = parser.parse_args()
    options.builds = options.builds.resolve()
    reason = gapbs_programs.missing(options.builds)
    if reason:
        parser.error(f"BUILDS: {reason}")
    options.threads = sorted(int(number) for number in options.threads.split(","))
    allowed = sorted(os.sched_getaffinity(0))
    asked = options.processors and [int(number) for number in options.processors.split(",")]
    options.processors = asked or allowed[: max(options.threads)]
    return options


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """All tasks on one graph under all conditions, as rows."""
    A = graphs.load(name, options.data, "cpu")
    W = graphs.weighted(A)
    sources = graphs.draw_sources(np.flatnonzero(np.diff(A.indptr)), 4)
    entry: dict[str, Any] = {**graphs.describe(name, A), "sources": sources, "rows": []}
    conditions = [(threads, False) for threads in options.threads]
    if name in options.loaded.split(","):
        conditions.append((options.threads[-1], True))
    with tempfile.TemporaryDirectory() as folder:
        suite = gapbs_programs.Suite(options.builds, pathlib.Path(folder), A, W)
        for task in options.tasks.split(","):
            cell = TASKS[task](A, W, sources)
            if cell.kernel == "tc" and suite.directed:
                continue
            program = suite.fastest(cell.kernel, sources, options.threads[-1])
            for threads, loaded in conditions:
                use_threads(threads)
                number = len(options.processors) if loaded else 0
                with gapbs_programs.endless_loops(number):
                    found = timed(cell, suite, program, sources, threads, options.seconds)
                row = {"task": task, "threads": threads, "loaded": loaded, **found}
                entry["rows"].append(row)
    return entry


def use_threads(threads: int) -> None:
    """Let spgraph run on so many threads from now on."""
    os.environ["SPGRAPH_NUM_THREADS"] = str(threads)
    pool.close()
    pool.processors.cache_clear()


def timed(
    cell: Cell,
    suite: gapbs_programs.Suite,
    program: gapbs_programs.Program,
    sources: list[int],
    threads: int,
    seconds: float,
) -> dict[str, Any]:
    """The row of every system that answers right."""
    each = [0] if cell.sources is None else cell.sources
    last = each[-1]
    run = functools.partial(suite.run, program, cell.kernel, sources, threads=threads)
    # the first call compiles, the second is the measure of how many there is time for
    found = {name: _call(call, last) for name, call in cell.calls.items()}
    expected = cell.answers["spgraph"](found["spgraph"][1])
    pilot = _call(cell.calls["spgraph"], last)[0]
    calls = max(1, min(MOST_CALLS, int(seconds * 1e3 / pilot / len(each))))
    first = run(len(each))
    slow = max(pilot, *first.times) > SLOW
    answers = {name: cell.answers[name](found[name][1]) for name in cell.calls}
    answers["gapbs"] = cell.answers["gapbs"](first.result)
    fault = {name: _differs(cell.kernel, answer, expected) for name, answer in answers.items()}
    first_ms = {name: ms for name, (ms, _) in found.items()}
    del found, answers
    seen = {
        name: rows.untimed(functools.partial(call, last), first_ms[name])
        for name, call in cell.calls.items()
        if not fault[name]
    }
    # of GAPBS, a process of its own, that with its graph
    seen["gapbs"] = rows.Untimed(first.times[0], 0, first.peak_bytes)
    del first
    names = [name for name in fault if not fault[name]]
    times = _in_turns(cell.calls, names, each, run, calls, slow)
    systems: dict[str, Any] = {name: {"error": fault[name]} for name in fault if fault[name]}
    systems |= {name: rows.row(times[name], seen[name]) for name in names}
    if "gapbs" in times:
        systems["gapbs"]["program"] = "/".join((program.build, program.name, *program.options))
    return {"systems": systems, **rows.ratios(systems)}


def _in_turns(
    own: dict[str, Callable[[int], Any]],
    names: list[str],
    sources: list[int],
    run: Callable[[int], gapbs_programs.Run],
    calls: int,
    slow: bool,
) -> dict[str, list[float]]:
    """The times of so many calls from each source by the systems of these names, which take turns:
    `own` in this process, after a call that warms up unless they are slow; GAPBS by `run`, a
    process for as many calls as it is told.
    """
    times: dict[str, list[float]] = {name: [] for name in names}
    warm = 0 if slow else len(sources)
    for turn in range(1 if slow else TURNS):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            if name == "gapbs":
                times[name] += run(warm + calls * len(sources)).times[warm:]
                continue
            time.sleep(PAUSE)
            for source in sources:
                if not slow:
                    _call(own[name], source)
                times[name] += [_call(own[name], source)[0] for _ in range(calls)]
    return times


def _call(call: Callable[[int], Any], source: int) -> tuple[float, Any]:
    """(milliseconds, the result) of one call."""
    gc.collect(0)
    start = time.perf_counter()
    result = call(source)
    return (time.perf_counter() - start) * 1e3, result


def _differs(kernel: str, answer: Any, expected: Any) -> str | None:
    """What is wrong with an answer; None if it is right."""
    if kernel == "pr":
        off = float(np.abs(answer - expected).sum())
        return None if off <= RANKS_MAY_DIFFER else f"ranks differ by {off:g} in all"
    if kernel == "bc":
        off = float(np.abs(answer - expected).max())
        return None if off <= 1e-3 else f"centralities differ by {off:g} of the largest"
    return None if np.array_equal(answer, expected) else "the answer differs from spgraph's"


# --- the tasks ------------------------------------------------------------------------------------


def bfs(A: sg.Matrix, W: sg.Matrix, sources: list[int]) -> Cell:
    """Levels, and least parents; compared are the levels, or those that the parents mean."""
    S = scipy.sparse.csr_array((np.ones(A.nvals), A.indices, A.indptr), shape=A.shape)

    def scipys(found: Any) -> np.ndarray:
        parents = np.full(A.nrows, -1)
        parents[found[0]] = found[1][found[0]]
        parents[found[0][0]] = found[0][0]
        return gapbs_programs.levels(parents)

    return Cell(
        "bfs",
        sources,
        {
            "spgraph": lambda source: sg.bfs(A, source, parents=False),
            "spgraph parents": lambda source: sg.bfs(A, source),
            "scipy": lambda source: csgraph.breadth_first_order(S, source),
        },
        {
            "spgraph": lambda found: found.level.to_numpy(fill=-1),
            "spgraph parents": lambda found: gapbs_programs.levels(found.parent.to_numpy(fill=-1)),
            "scipy": scipys,
            "gapbs": gapbs_programs.levels,
        },
    )


def sssp(A: sg.Matrix, W: sg.Matrix, sources: list[int]) -> Cell:
    """Distances, and distances with parents."""

    def distances(found: Any) -> np.ndarray:
        return found.distance.to_numpy(fill=-1)

    return Cell(
        "sssp",
        sources,
        {
            "spgraph": lambda source: sg.sssp(W, source, parents=False),
            "spgraph parents": lambda source: sg.sssp(W, source),
        },
        {
            "spgraph": distances,
            "spgraph parents": distances,
            "gapbs": lambda found: np.where(found >= 10**9, -1, found),
        },
    )


def pagerank(A: sg.Matrix, W: sg.Matrix, sources: list[int]) -> Cell:
    """20 iterations. GAPBS drops what vertices without edges have; normalised it is the same."""
    return Cell(
        "pr",
        None,
        {"spgraph": lambda _: sg.pagerank(A, tol=None, max_iter=gapbs_programs.ITERATIONS)},
        {
            "spgraph": lambda found: found.to_numpy(),
            "gapbs": lambda found: found / found.sum(dtype=np.float64),
        },
    )


def components(A: sg.Matrix, W: sg.Matrix, sources: list[int]) -> Cell:
    """Weak components, named by their least vertices to be compared."""
    S = scipy.sparse.csr_array((np.ones(A.nvals), A.indices, A.indptr), shape=A.shape)
    return Cell(
        "cc",
        None,
        {
            "spgraph": lambda _: sg.connected_components(A),
            "scipy": lambda _: csgraph.connected_components(S),
        },
        {
            "spgraph": lambda found: found.to_numpy(),
            "scipy": lambda found: least_members(found[1]),
            "gapbs": least_members,
        },
    )


def betweenness(A: sg.Matrix, W: sg.Matrix, sources: list[int]) -> Cell:
    """Dependencies from all the sources, as shares of the largest of the other vertices: GAPBS
    counts those of a source on itself.
    """

    def shares(found: np.ndarray) -> np.ndarray:
        others = np.delete(found, sources)
        return others / max(float(others.max(initial=0)), 1e-30)

    return Cell(
        "bc",
        None,
        {"spgraph": lambda _: sg.betweenness_centrality(A, sources=sources)},
        {"spgraph": lambda found: shares(found.to_numpy()), "gapbs": shares},
    )


def triangles(A: sg.Matrix, W: sg.Matrix, sources: list[int]) -> Cell:
    """The number of triangles of an undirected graph."""
    return Cell(
        "tc", None, {"spgraph": lambda _: sg.triangle_count(A)}, {"spgraph": int, "gapbs": int}
    )


TASKS = {
    "bfs": bfs,
    "sssp": sssp,
    "pagerank": pagerank,
    "components": components,
    "betweenness": betweenness,
    "triangles": triangles,
}


def table(name: str, entry: dict[str, Any]) -> str:
    """One graph's figures for a person."""
    if "missing" in entry:
        return f"{name}: skipped, {entry['missing']}\n"
    lines = [f"{name}: {entry['vertices']:,} vertices, {entry['directed_edges']:,} entries; ms"]
    for row in entry["rows"]:
        condition = f"{row['threads']} thr{' loaded' if row['loaded'] else ''}"
        for system, ratio in row.get("ratios", {}).items():
            own, best = row["systems"][system], row["systems"][row["best"]]
            lines.append(
                f"  {row['task'] + system[7:]:19} {condition:12} {own['median']:9.3f} "
                f"(min {own['min']:.3f})  {row['best']} {best['median']:9.3f} "
                f"(min {best['min']:.3f})  x {ratio:.2f}"
            )
        lines += [
            f"  {row['task']:19} {condition:12} {system}: {found['error']}"
            for system, found in row["systems"].items()
            if "error" in found
        ]
    return "\n".join(lines) + "\n"


def summary(entries: dict[str, Any]) -> dict[str, Any]:
    """For each condition the geometric mean of the ratios of cells of COUNTS ms or more, and the
    cells above 1.
    """
    found: dict[str, Any] = {}
    for name, entry in entries.items():
        for row in entry.get("rows", []):
            condition = f"{row['threads']} threads{', loaded' if row['loaded'] else ''}"
            at = found.setdefault(condition, {"cells": 0, "log": 0.0, "above": {}})
            for system, ratio in row.get("ratios", {}).items():
                if row["systems"][system]["median"] >= COUNTS:
                    at["cells"] += 1
                    at["log"] += math.log(ratio)
                    if ratio > 1:
                        at["above"][f"{name} {row['task']}{system[7:]}"] = ratio
    for at in found.values():
        at["geometric_mean"] = round(math.exp(at.pop("log") / max(at["cells"], 1)), 3)
        at["above"] = dict(sorted(at["above"].items(), key=lambda item: -item[1]))
    return found


def summary_lines(found: dict[str, Any]) -> str:
    """The summary for a person."""
    lines = []
    for condition, at in found.items():
        lines.append(f"{condition}: {at['cells']} cells, geometric mean {at['geometric_mean']}")
        lines += [f"  {ratio:5.2f}  {cell}" for cell, ratio in at["above"].items()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
