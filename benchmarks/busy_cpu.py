"""Breadth-first search on processors that others use, too, beside SciPy's.

usage: python -m benchmarks.busy_cpu [--graph kron18] [--processors 0,1] [-o FILE]

The process is pinned to the processors. In every round both systems search from the same sources,
first alone, then beside as many endless loops of Python as there are processors, pinned to the same
ones. The slow-down of a system is the median of its times beside them, divided by that alone; the
figure is that of spgraph divided by that of SciPy, the median over the rounds.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import functools
import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse.csgraph

import spgraph as sg
from benchmarks import graphs, machine, rows

HERE = pathlib.Path(__file__).parent


def main() -> None:
    """Measure, print the figures, write the file."""
    today = datetime.datetime.now(datetime.UTC).date()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", default="kron18", choices=list(graphs.KRONECKER))
    parser.add_argument("--processors", help="by their numbers; default: the first two allowed")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sources", type=int, default=8)
    parser.add_argument("--calls", type=int, default=5, help="timed calls of a system a source")
    parser.add_argument("--commit", help="where the tree has no git history: which commit it is")
    parser.add_argument(
        "-o", "--output", type=pathlib.Path, default=HERE / "results" / f"busy_cpu_{today}.json"
    )
    options = parser.parse_args()
    allowed = sorted(os.sched_getaffinity(0))[:2]
    if options.processors:
        allowed = [int(number) for number in options.processors.split(",")]
    os.sched_setaffinity(0, allowed)
    A = graphs.load(options.graph, HERE, "cpu")
    S = scipy.sparse.csr_array((np.ones(A.nvals), A.indices, A.indptr), shape=A.shape)
    chance = np.random.default_rng(1)
    sources = chance.choice(np.flatnonzero(np.diff(A.indptr)), options.sources, replace=False)
    systems: dict[str, Callable[[int], Any]] = {
        "spgraph": lambda source: sg.bfs(A, source),
        "scipy": lambda source: scipy.sparse.csgraph.breadth_first_order(S, source),
    }
    seen = {}
    for name, search in systems.items():
        call = functools.partial(search, int(sources[0]))
        seen[name] = rows.untimed(call, rows.first(call)[1])
    rounds = []
    for _ in range(options.rounds):
        alone = measure(systems, seen, sources.tolist(), options.calls)
        with loops(len(allowed)):
            beside = measure(systems, seen, sources.tolist(), options.calls)
        rounds.append({"alone": alone, "beside": beside, **ratio(alone, beside)})
        print(line(rounds[-1]), flush=True)
    result = {
        "benchmark": "busy_cpu",
        **machine.facts(options.commit),
        "processors": len(allowed),
        "unit": "ms",
        "graph": {**graphs.describe(options.graph, A), "sources": sources.tolist()},
        "rounds": rounds,
        "slowdown_over_scipy": statistics.median(each["slowdown_over_scipy"] for each in rounds),
    }
    print(f"slow-down over SciPy's, median: {result['slowdown_over_scipy']:.2f}")
    machine.write(options.output, result)
    print(f"written: {options.output.name}")


@contextlib.contextmanager
def loops(count: int) -> Iterator[None]:
    """So many processes that never rest, on the processors of this one."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        time.sleep(0.5)
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def measure(
    systems: dict[str, Callable[[int], Any]],
    seen: dict[str, rows.Untimed],
    sources: list[int],
    calls: int,
) -> dict[str, dict[str, Any]]:
    """The row of each system, a list of times a source; they take turns source by source."""
    times: dict[str, list[list[float]]] = {name: [] for name in systems}
    for source in sources:
        for name, search in systems.items():
            search(source)
            found = []
            for _ in range(calls):
                begin = time.perf_counter()
                search(source)
                found.append((time.perf_counter() - begin) * 1e3)
            times[name].append(found)
    return {name: rows.row(each, seen[name]) for name, each in times.items()}


def ratio(alone: dict[str, Any], beside: dict[str, Any]) -> dict[str, Any]:
    """How many times slower each system is beside the loops, and spgraph's as SciPy's."""
    slower = {
        name: float(np.median(beside[name]["times"]) / np.median(alone[name]["times"]))
        for name in ("spgraph", "scipy")
    }
    return {"slowdown": slower, "slowdown_over_scipy": slower["spgraph"] / slower["scipy"]}


def line(found: dict[str, Any]) -> str:
    """A round on one line."""
    parts = [
        f"{name} {found['alone'][name]['median']:.1f} -> {found['beside'][name]['median']:.1f} ms"
        f" (x {found['slowdown'][name]:.2f})"
        for name in ("spgraph", "scipy")
    ]
    return ", ".join(parts) + f": {found['slowdown_over_scipy']:.2f}"


if __name__ == "__main__":
    main()
