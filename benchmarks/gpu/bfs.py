"""Breadth-first search on one GPU, beside cuGraph in the same run.

usage: python -m benchmarks.gpu.bfs [--data DIR] [--cugraph BUNDLE] [-o FILE]

The sources are drawn from the largest component, found by a search from the vertex of largest
degree. Device time is that between two CUDA events around all work of a call, fills and result
included. So that the host's launches are not part of it, a kernel that only spins goes before the
first event, and the host queues the whole call behind it. Wall time is that of a call and a
synchronisation, without the spinning. Figures are medians over the sources of the medians of the
calls, after one call to warm up. One tree of each graph is checked.

cuGraph runs after spgraph in a process of its own (bfs_cugraph.py), on the same graphs and sources.
BUNDLE is a folder with pylibcugraph and its libraries, or a .tar archive of one; without it
pylibcugraph has to be installed, and is reported as missing if it is not.
"""

from __future__ import annotations

import argparse
import functools
import json
import pathlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import spgraph as sg
from benchmarks.gpu import cugraph_process
from benchmarks.measuring import (
    arguments,
    first_call,
    gpu_clock,
    graphs,
    machine,
    rows,
    tree_checks,
)
from spgraph.containers.storage.arrays import import_cupy

GRAPHS = "road_NY,road_BAY,kron21,rmat_n20_512,rmat_n24_32"


def main() -> None:
    """Measure, run the peer, print the table; the file is written anew after each graph."""
    options = _options()
    found: dict[str, Any] = {
        "benchmark": "bfs_gpu",
        **machine.facts(options.commit),
        "unit": "ms",
        "how": {
            "device_ms": "between CUDA events around all work of a call; a kernel spins before the "
            "first event while the host queues the call",
            "wall_ms": "the call and the synchronisation after it, on the host",
            "gteps": "directed edges of the component / device time (Gunrock's count)",
            "gteps_graph500": "input_edges / device time: edges as drawn, each once, loops, "
            "repetitions and those of other components included",
        },
        "graphs": {},
    }
    result = machine.begun(options.output, found)
    if not options.no_first_call:  # before this process takes the device
        result["first_call"] = first_call.measure("cuda")
    cupy = import_cupy()
    for name in options.graphs.split(","):
        print(f"{name} ...", flush=True)
        reason = graphs.missing(name, options.data)
        result["graphs"][name] = {"missing": reason} if reason else measure(name, options, cupy)
        cupy.get_default_memory_pool().free_all_blocks()
        machine.write(options.output, result)
    cugraph_process.run("benchmarks.gpu.bfs_cugraph", options.output, options.data, options.cugraph)
    print(table(json.loads(options.output.read_text(encoding="utf-8"))))


def _options() -> argparse.Namespace:
    parser = arguments.parser(__doc__, "bfs_gpu", GRAPHS)
    parser.add_argument("--sources", type=int, default=8)
    parser.add_argument("--calls", type=int, default=9, help="timed calls a source, of each kind")
    parser.add_argument("--no-first-call", action="store_true")
    parser.add_argument("--cugraph", type=pathlib.Path, metavar="BUNDLE")
    options = parser.parse_args()
    for name in options.graphs.split(","):
        if name not in graphs.NAMES:
            parser.error(f"--graphs: expected names among {', '.join(graphs.NAMES)}, got {name!r}")
    return options


def measure(name: str, options: argparse.Namespace, cupy: Any) -> dict[str, Any]:
    """spgraph on one graph."""
    start = time.perf_counter()
    A = graphs.load(name, options.data, "cuda")
    cupy.cuda.Device().synchronize()
    entry = {**graphs.describe(name, A), "load_s": round(time.perf_counter() - start, 3)}
    pool = cupy.get_default_memory_pool()
    before = pool.used_bytes()

    degree = cupy.diff(A.indptr)
    hub = int(degree.argmax())
    found, first_ms = rows.first(lambda: sg.bfs(A, hub, parents=False), "cuda")
    component = found.level.to_coo()[0]
    entry["component"] = {
        "vertices": int(component.size),
        "directed_edges": int(degree[component].sum(dtype=np.int64)),
    }
    sources = graphs.draw_sources(cupy.asnumpy(component), options.sources)
    del degree, component, found
    entry["sources"] = sources
    entry["answers"] = [_answer(A, source) for source in sources]
    parents_ms = rows.first(lambda: sg.bfs(A, sources[0]), "cuda")[1]
    entry["faults"] = _faults(A, sources[0])

    entry["bytes"] = {"graph": A.nbytes, "kept_with_graph": pool.used_bytes() - before}
    entry["bfs"] = {
        "levels": _timed(lambda s: sg.bfs(A, s, parents=False), entry, options.calls, first_ms),
        "parents": _timed(lambda s: sg.bfs(A, s), entry, options.calls, parents_ms),
    }
    return entry


def _answer(A: sg.Matrix, source: int) -> dict[str, int]:
    """What other systems' answers are compared with."""
    values = sg.bfs(A, source, parents=False).level.to_coo()[1]
    return {
        "reached": int(values.size),
        "levels": int(values.max()) + 1,
        "sum": int(values.sum(dtype=np.int64)),
    }


def _faults(A: sg.Matrix, source: int) -> list[str]:
    level, parent = sg.bfs(A, source)
    assert parent is not None
    found = tree_checks.faults(A, source, level, parent)
    alone = sg.bfs(A, source, parents=False).level
    if (tree_checks.dense(alone) != tree_checks.dense(level)).any():
        found.append("levels differ with and without parents")
    return found


def _timed(
    search: Callable[[int], Any], entry: dict[str, Any], calls: int, first_ms: float
) -> dict[str, Any]:
    """Device and wall times of `search`, and what follows from them."""
    seen = rows.untimed(functools.partial(search, entry["sources"][0]), first_ms, "cuda")
    device, wall, issue = [], [], []
    for source in entry["sources"]:
        times = gpu_clock.measure(functools.partial(search, source), calls)
        issue.append(times.issue_us)
        device.append(times.device_ms)
        wall.append(times.wall_ms)
    each = np.median(device, axis=1)
    median = float(np.median(each))
    levels = [answer["levels"] for answer in entry["answers"]]
    return rows.row_of_kinds(
        {"device": device, "wall": wall},
        seen,
        issue_us=round(float(np.median(issue)), 2),
        us_per_level=round(float(np.median(each / levels)) * 1e3, 4),
        gteps=round(entry["component"]["directed_edges"] / median / 1e6, 3),
        gteps_graph500=round(entry["input_edges"] / median / 1e6, 3),
    )


def table(result: dict[str, Any]) -> str:
    """The figures for a person."""
    head = ("graph", "levels", "device", "wall", "us/level", "GTEPS", "parents", "wall", "cugraph")
    lines: list[tuple[str, ...]] = [head]
    for name, entry in result["graphs"].items():
        if "missing" in entry:
            lines.append((name, f"skipped: {entry['missing']}"))
            continue
        levels, parents = entry["bfs"]["levels"], entry["bfs"]["parents"]
        depth = int(np.median([answer["levels"] for answer in entry["answers"]]))
        peer = entry.get("cugraph", {}).get("levels", {}).get("wall_ms")
        lines.append((
            name, str(depth), f"{levels['device_ms']:.4f}", f"{levels['wall_ms']:.4f}",
            f"{levels['us_per_level']:.2f}", f"{levels['gteps']:.0f}",
            f"{parents['device_ms']:.4f}", f"{parents['wall_ms']:.4f}",
            "-" if peer is None else f"{peer:.3f}",
        ))  # fmt: skip
        if entry["faults"]:
            lines.append((name, "WRONG: " + "; ".join(entry["faults"])))
    said = ["times in ms: levels only (device, wall), with parents (device, wall), cugraph (wall)"]
    said += ["  ".join([row[0].ljust(13), *(x.rjust(8) for x in row[1:])]) for row in lines]
    if "first_call" in result:
        said.append(first_call.table(result["first_call"]))
    said += [f"cugraph {what}: {text}" for what, text in result.get("cugraph", {}).items()]
    return "\n".join(said)


if __name__ == "__main__":
    main()
