"""spgraph beside the published times of the systems that it grew out of, on the graphs of their
papers that can be generated: Gunrock on one GPU and on several, Groute, Merrill's BFS, and others.

Whole calls, warm, wall time with all GPUs synchronised, the median of the calls; searches start
from the vertex of the largest degree. `bfs` and `bfs push` give levels (`bfs push` never looks for
neighbours of unvisited vertices: the papers' "forward"), `sssp` distances over weights from 1 to
64, `pagerank` is an iteration: (the time of 30 - the time of 10) / 20. Trees are validated by
Graph500's checks, what several GPUs find is compared with what one finds, before they are timed.
Graphs have the parameters of the papers' and another seed.

published.json holds the published times and where they stand, and the cards' bandwidths. A row says
how many times faster spgraph is than the fastest published time of its kind, how many times more
bandwidth its card has, and the one divided by the other: below 1 spgraph is behind.
"""

from __future__ import annotations

import argparse
import datetime
import json
import pathlib
import re
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import spgraph as sg
from benchmarks import graphs, machine

HERE = pathlib.Path(__file__).parent
PUBLISHED = HERE / "published.json"
GRAPHS = (
    "rmat_n20_512,rmat_n21_256,rmat_n22_128,rmat_n23_64,rmat_n24_32,rmat_n25_16,"
    "kron_g500-logn21,rmat_n22_64,rmat_n23_32,rmat_n24_16"
)
GEOMETRIC = re.compile(r"rgg_n(\d+)_([\d.]+)")  # scale, radius; made on the CPU, in minutes
RMAT = re.compile(r"rmat_n(\d+)_(\d+)")  # scale, edge factor
SCALES = {"kron_g500-logn21": (21, 48)}
Timed = Callable[[], Any]


class Graph(NamedTuple):
    """A graph on some devices: the pattern, with weights, and where searches start."""

    pattern: Any
    weighted: Any
    source: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    today = datetime.datetime.now(datetime.UTC).date()
    parser.add_argument("--graphs", default=GRAPHS)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--devices", default="1", help="numbers of GPUs: 1,2,4")
    parser.add_argument("--calls", type=int, default=5)
    parser.add_argument("--commit", help="where the tree has no git history: which commit it is")
    results = HERE / "results" / f"seeds_gpu_{today}.json"
    parser.add_argument("-o", "--output", type=pathlib.Path, default=results)


def run(given: argparse.Namespace) -> int:
    """Measure, write the file after each graph, print the table; 1 where an answer is wrong."""
    result: dict[str, Any] = {
        "benchmark": "seeds_gpu",
        **machine.facts(given.commit),
        "unit": "ms",
        "graphs": {},
        "results": [],
        "faults": [],
    }
    published = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    for name in given.graphs.split(","):
        measure(name, given, result)
        machine.write(given.output, result)
    gpu = (result["machine"]["gpu"] or {}).get("name")
    print(table(beside(result["results"], published, gpu)))
    print(*result["faults"], sep="\n")
    return 1 if result["faults"] else 0


def measure(name: str, given: argparse.Namespace, result: dict[str, Any]) -> None:
    """All tasks on one graph, by each number of devices."""
    answers: dict[str, list[Any]] = {}
    A = generate(name, given.device)
    result["graphs"][name] = {"vertices": A.nrows, "directed_edges": A.nvals}
    source = int(np.asarray(A.row_degrees().to("cpu").values).argmax())
    one = Graph(A, graphs.weighted(A), source)
    wrong = [f"{name}: {fault}" for fault in faults(one)]
    result["faults"] += wrong
    for devices in () if wrong else map(int, given.devices.split(",")):
        graph = one if devices == 1 else distributed(one, devices)
        for task, calls in tasks(graph).items():
            fault = differs(calls[-1](), answers.setdefault(task, []))
            if fault:
                result["faults"].append(f"{name}, {task} on {devices}: {fault}")
                continue
            row = {"graph": name, "task": task, "devices": devices}
            row["ms"] = milliseconds(task, calls, given.calls, given.device)
            result["results"].append(row)
            print(f"{name:18} {task:12} {devices} {row['ms']:10.4f} ms", flush=True)


def generate(name: str, device: str) -> sg.Matrix:
    """The graph `name` as a pattern."""
    if geometric := GEOMETRIC.fullmatch(name):
        made = sg.generators.random_geometric(1 << int(geometric[1]), float(geometric[2]))
        return made.to(device)
    rmat = RMAT.fullmatch(name)
    scale, factor = SCALES[name] if rmat is None else (int(rmat[1]), int(rmat[2]))
    return sg.generators.kronecker(scale, factor, device=device)


def distributed(graph: Graph, devices: int) -> Graph:
    """The graph in shards, one a device."""
    names = [f"cuda:{d}" for d in range(devices)]
    A, W = (M.distribute(devices, devices=names) for M in graph[:2])
    return Graph(A, W, graph.source)


def faults(graph: Graph) -> list[str]:
    """What Graph500's checks find in the trees of one search and of the shortest paths."""
    found = sg.bfs(graph.pattern, graph.source)
    paths = sg.sssp(graph.weighted, graph.source)
    bad = sg.validation.validate_bfs(graph.pattern, graph.source, found.level, found.parent)
    bad += sg.validation.validate_sssp(graph.weighted, graph.source, *paths)
    return [str(failure) for failure in bad]


def tasks(graph: Graph) -> dict[str, list[Timed]]:
    """The calls of each task; of two the difference is timed, of both the last is compared."""
    A, W, source = graph
    return {
        "bfs": [lambda: sg.bfs(A, source, parents=False).level],
        "bfs push": [lambda: sg.bfs(A, source, parents=False, direction="push").level],
        "sssp": [lambda: sg.sssp(W, source, parents=False).distance],
        "betweenness": [lambda: sg.betweenness_centrality(A, sources=[source])],
        "components": [lambda: sg.connected_components(A)],
        "pagerank": [
            lambda: sg.pagerank(A, tol=None, max_iter=10),
            lambda: sg.pagerank(A, tol=None, max_iter=30),
        ],
    }


def differs(found: Any, first: list[Any]) -> str:
    """What is wrong with an answer, beside that of the first number of devices; "" for nothing."""
    home = found.gather() if hasattr(found, "gather") else found.to("cpu")
    if not first:
        first.append(home)
        return ""
    same = home.isequal(first[0]) if home.dtype.kind != "f" else home.isclose(first[0], rtol=1e-6)
    return "" if same else "another answer than that of one device"


def milliseconds(task: str, calls: list[Timed], count: int, device: str) -> float:
    """The time of the task: of its call, or of one of the 20 iterations between two calls."""
    times = [timed(call, count, device) for call in calls]
    ms = (times[1] - times[0]) / 20 if task == "pagerank" else times[0]
    return round(max(ms, 1e-4), 4)


def timed(call: Timed, count: int, device: str) -> float:
    """The median wall time, in milliseconds, of a warm call."""
    times = []
    for _ in range(count + 1):
        settle(device)
        start = time.perf_counter()
        last = call()
        settle(device)
        times.append(1e3 * (time.perf_counter() - start))
        del last
    return float(np.median(times[1:]))


def settle(device: str) -> None:
    """Wait for all GPUs."""
    if device == "cuda":
        import cupy

        for k in range(cupy.cuda.runtime.getDeviceCount()):
            cupy.cuda.Device(k).synchronize()


def beside(
    results: list[dict[str, Any]], published: dict[str, Any], gpu: str | None
) -> list[dict[str, Any]]:
    """Each result beside the fastest published time on as many GPUs, per system and card."""
    rows = []
    bandwidth = published["cards"]
    for mine in results:
        of = {"graph": mine["graph"], "task": mine["task"], "gpus": mine["devices"]}
        for theirs in published["rows"]:
            if any(theirs[key] != value for key, value in of.items()):
                continue
            row = {**theirs, "spgraph_ms": mine["ms"], "faster": theirs["ms"] / mine["ms"]}
            if gpu in bandwidth:
                row["bandwidth"] = bandwidth[gpu] / bandwidth[theirs["card"]]
            rows.append(row)
    return rows


def fastest(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each graph, task and number of GPUs the fastest published time of each system."""
    best: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        key = row["graph"], row["task"], row["gpus"], row["system"]
        if key not in best or row["ms"] < best[key]["ms"]:
            best[key] = row
    return [best[key] for key in sorted(best)]


def table(rows: list[dict[str, Any]]) -> str:
    """`fastest` for a person."""
    best = fastest(rows)
    if not best:
        return "nothing is published of these graphs and numbers of GPUs"
    lines = ["graph task GPUs: spgraph ms; system on its card ms; faster, bandwidth, faster / it"]
    for row in best:
        line = f"{row['graph']:18} {row['task']:12} {row['gpus']}: {row['spgraph_ms']:9.4f}; "
        line += f"{row['system']} on {row['card']} {row['ms']:10.3f}; {row['faster']:7.1f}"
        if "bandwidth" in row:
            line += f" {row['bandwidth']:5.1f} {row['faster'] / row['bandwidth']:6.2f}"
            line += "  BEHIND" * (row["faster"] < row["bandwidth"])
        lines.append(line)
    return "\n".join(lines)
