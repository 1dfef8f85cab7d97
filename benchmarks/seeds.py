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
bandwidth its card has, and the one divided by the other: below 1 spgraph is behind. `cost` of a row
is W, H, C and S (costs.py), its memory and allocations are as rows.py has them. With --ablate the
switches that spgraph has are timed as well; those of the papers that it does not have are named in
the file.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import json
import pathlib
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import spgraph as sg
from benchmarks.measuring import arguments, costs, graphs, machine, rows
from spgraph.backends.cuda.runtime import jit

PUBLISHED = pathlib.Path(__file__).with_name("published.json")
GRAPHS = (
    "rmat_n20_512,rmat_n21_256,rmat_n22_128,rmat_n23_64,rmat_n24_32,rmat_n25_16,"
    "kron_g500-logn21,rmat_n22_64,rmat_n23_32,rmat_n24_16"
)
GEOMETRIC = re.compile(r"rgg_n(\d+)_([\d.]+)")  # scale, radius; made on the CPU, in minutes
RMAT = re.compile(r"rmat_n(\d+)_(\d+)")  # scale, edge factor
SCALES = {"kron_g500-logn21": (21, 48), "rmat_2Mv_128Me": (21, 64)}
GRID = re.compile(r"grid(\d+)")  # like a road network: so many rows, a tenth of the edges omitted
# switches of the papers that no argument of spgraph's turns
ABSENT = {
    "local-first": "loops over shards have no such order",
    "idempotent visits": "a vertex is always visited once",
    "METIS": "rows are divided as `partition` says, and it may say what METIS does",
    "memory schemes": "there is one, what a loop needs is allocated in each call, as large as it "
    "can get for the graph; the rows say how much that is",
}
NO_BUCKETS = 1e300  # a width that all distances fit
TWO = ("bfs", "sssp")  # tasks whose loops are compared
Timed = Callable[[], Any]


class Graph(NamedTuple):
    """A graph on some devices: the pattern, with weights, and where searches start."""

    pattern: Any
    weighted: Any
    source: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--graphs", default=GRAPHS)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--devices", default="1", help="numbers of GPUs: 1,2,4")
    parser.add_argument("--calls", type=int, default=5)
    parser.add_argument("--ablate", action="store_true", help="time the switches, too")
    arguments.add_output(parser, "seeds_gpu")


def run(given: argparse.Namespace) -> int:
    """Measure, write the file after each graph, print the table; 1 where an answer is wrong."""
    if reason := unknown(given.graphs):
        raise SystemExit(f"seeds: {reason}")
    found: dict[str, Any] = {
        "benchmark": "seeds_gpu",
        **machine.facts(given.commit),
        "unit": "ms",
        "graphs": {},
        "results": [],
        "faults": [],
    }
    result = machine.begun(given.output, found)
    if given.ablate:
        result.setdefault("ablation", [])
        result["absent"] = ABSENT
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
    firsts = {task: rows.first(calls[-1], given.device)[1] for task, calls in tasks(one).items()}
    wrong = [f"{name}: {fault}" for fault in faults(one)]
    result["faults"] += wrong
    for devices in () if wrong else map(int, given.devices.split(",")):
        with contextlib.ExitStack() as stack:
            graph = one
            if devices > 1:
                graph = stack.enter_context(distributed(one, devices, given.device))
            for task, calls in tasks(graph).items():
                place = {"graph": name, "task": task, "devices": devices}
                row = measured(place, calls, answers.setdefault(task, []), given, result)
                if row is None:
                    continue
                if devices == 1:  # what came before the checks was the first call
                    row["first_ms"] = firsts[task]
                result["results"].append(row | {"cost": cost(task, graph)})
            if given.ablate:
                others = other_shards(one, devices, given.device)
                for (task, switch, value), calls in itertools.chain(ablations(graph), others):
                    place = {"graph": name, "task": task, "devices": devices}
                    place |= {"switch": switch, "value": value}
                    row = measured(place, calls, answers.setdefault(task, []), given, result)
                    result["ablation"] += [] if row is None else [row]


def measured(
    place: dict[str, Any],
    calls: list[Timed],
    first: list[Any],
    given: argparse.Namespace,
    result: dict[str, Any],
) -> dict[str, Any] | None:
    """The row of a task; None where its answer is not that of the `first` number of devices."""
    said = " ".join(map(str, place.values()))
    answer, first_ms = rows.first(calls[-1], given.device)
    if fault := differs(answer, first):
        result["faults"].append(f"{said}: {fault}")
        return None
    del answer
    seen = rows.untimed(calls[-1], first_ms, given.device)
    times = [rows.timed(call, given.calls, given.device) for call in calls]
    if len(calls) == 2:  # the time of one of the 20 iterations between both
        times.append([max((b - a) / 20, 1e-4) for a, b in zip(*times, strict=True)])
    row = rows.row(times[-1], seen, median="ms")
    print(f"{said:50} {row['ms']:10.4f} ms", flush=True)
    return place | row


def generate(name: str, device: str) -> sg.Matrix:
    """The graph `name` as a pattern."""
    if geometric := GEOMETRIC.fullmatch(name):
        made = sg.generators.random_geometric(1 << int(geometric[1]), float(geometric[2]))
        return made.to(device)
    if grid := GRID.fullmatch(name):
        rows = int(grid[1])
        return sg.generators.grid(rows, rows, remove=0.1, device=device)
    rmat = RMAT.fullmatch(name)
    scale, factor = SCALES[name] if rmat is None else (int(rmat[1]), int(rmat[2]))
    return sg.generators.kronecker(scale, factor, device=device)


def unknown(names: str) -> str | None:
    """What is wrong with the names of graphs; None if each can be generated."""
    for name in names.split(","):
        if name not in SCALES and not any(k.fullmatch(name) for k in (RMAT, GEOMETRIC, GRID)):
            return (
                f"--graphs: expected rmat_nSCALE_EDGEFACTOR, rgg_nSCALE_RADIUS, gridROWS or "
                f"{' or '.join(SCALES)}, got {name!r}"
            )
    return None


@contextlib.contextmanager
def distributed(graph: Graph, devices: int, device: str, **given: Any) -> Iterator[Graph]:
    """The graph in shards, one a GPU; or so many on the CPU, for trying out."""
    names = [f"cuda:{d}" for d in range(devices)] if device == "cuda" else None
    A, W = (M.distribute(devices, devices=names, **given) for M in graph[:2])
    try:
        yield Graph(A, W, graph.source)
    finally:
        for matrix in (A, W):
            matrix.device.communicator.close()


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


def cost(task: str, graph: Graph) -> dict[str, Any]:
    """W, H, C and S of a task."""

    def run(A: Any, W: Any) -> Any:
        return tasks(Graph(A, W, graph.source))[task][-1]()

    iterations = 30 if task == "pagerank" else 0
    levels = "bfs levels" if task == "bfs" else task  # of which the task is
    return costs.cost(levels, *graph, run, iterations)


def ablations(graph: Graph) -> Iterator[tuple[tuple[str, str, str], list[Timed]]]:
    """(task, switch, value) of the switches that are arguments, each with its calls."""
    A, W, source = graph
    for way in ("auto", "push", "pull"):
        search = functools.partial(sg.bfs, A, source, parents=False, direction=way)
        yield ("bfs", "direction", way), [lambda search=search: search().level]
    for value, delta in (("on", None), ("off", NO_BUCKETS)):
        paths = functools.partial(sg.sssp, W, source, parents=False, delta=delta)
        yield ("sssp", "priority buckets", value), [lambda paths=paths: paths().distance]
    if str(A.device).startswith("cuda"):  # in shards it is no switch, and the CPU has none
        for value in ("on", "off"):
            with leading_neighbours(A, value == "on"):
                yield (
                    ("bfs", "leading neighbours", value),
                    [lambda: sg.bfs(A, source, parents=False).level],
                )


@contextlib.contextmanager
def leading_neighbours(A: sg.Matrix, on: bool) -> Iterator[None]:
    """Whether searches for levels look at four chosen neighbours of a vertex first, which are kept
    with the transpose; no argument says so.
    """
    kept = A._T._derived
    if on:
        yield
        return
    before = kept.pop("hubs", None)
    kept["hubs"] = jit.NULL
    try:
        yield
    finally:
        del kept["hubs"]
        if before is not None:
            kept["hubs"] = before


def other_shards(
    one: Graph, devices: int, device: str
) -> Iterator[tuple[tuple[str, str, str], list[Timed]]]:
    """The same on several devices: of graphs that another partition divides, and on GPUs of loops
    with all rounds in one launch, or with a launch for each.
    """
    ways = [("partition", by, {"partition": by}) for by in ("edges", "random", "biased")]
    if device == "cuda":
        ways += [("loop", "one launch", {"exchange": "peer"})]
        ways += [("loop", "rounds", {"exchange": "nccl"})]
    for switch, value, given in ways if devices > 1 else ():
        with distributed(one, devices, device, **given) as graph:
            for task in ("bfs", "bfs push", "pagerank") if switch == "partition" else TWO:
                yield (task, switch, value), tasks(graph)[task]


def differs(found: Any, first: list[Any]) -> str:
    """What is wrong with an answer, beside that of the first number of devices; "" for nothing."""
    home = found.gather() if hasattr(found, "gather") else found.to("cpu")
    if not first:
        first.append(home)
        return ""
    same = home.isequal(first[0]) if home.dtype.kind != "f" else home.isclose(first[0], rtol=1e-6)
    return "" if same else "another answer than that of one device"


def beside(
    results: list[dict[str, Any]], published: dict[str, Any], gpu: str | None
) -> list[dict[str, Any]]:
    """Each result beside the fastest published time on as many GPUs, per system and card."""
    found = []
    bandwidth = published["cards"]
    for mine in results:
        of = {"graph": mine["graph"], "task": mine["task"], "gpus": mine["devices"]}
        for theirs in published["rows"]:
            if any(theirs[key] != value for key, value in of.items()):
                continue
            row = {**theirs, "spgraph_ms": mine["ms"], "faster": theirs["ms"] / mine["ms"]}
            if gpu in bandwidth:
                row["bandwidth"] = bandwidth[gpu] / bandwidth[theirs["card"]]
            found.append(row)
    return found


def fastest(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each graph, task and number of GPUs the fastest published time of each system."""
    best: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in found:
        key = row["graph"], row["task"], row["gpus"], row["system"]
        if key not in best or row["ms"] < best[key]["ms"]:
            best[key] = row
    return [best[key] for key in sorted(best)]


def table(found: list[dict[str, Any]]) -> str:
    """`fastest` for a person."""
    best = fastest(found)
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
