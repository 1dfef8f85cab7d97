"""Algorithms on 1, 2 and 4 GPUs of one node, in one run.

usage: python -m benchmarks.gpu.distributed [--graphs NAMES] [--devices 1,2,4] [-o FILE]

Whole calls, warm, wall time with all devices synchronised: the median over the sources of the
median of the calls. One GPU is a plain Matrix on it, several are `distribute`d shards, once with
exchange="nccl" and once with "peer"; on the grid also as "auto" chooses. PageRank's time of an
iteration is (the time of 30 - the time of 10) / 20, with tol=None. "bfs counts" finds the numbers
of shortest paths in float64, and levels. Weights are integers from 1 to 64, one for each undirected
edge. Every answer is compared with that of one GPU before it is timed. `cost` is W, H, C and S as
costs.py has them, of the loops in rounds: of one GPU and of exchange="nccl". On the grid, whose
frontiers are small, "round" is the median time of a level in microseconds.
"""

from __future__ import annotations

import argparse
import functools
import pathlib
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import spgraph as sg
from benchmarks.measuring import arguments, costs, graphs, machine, rows
from spgraph.containers.storage.arrays import import_cupy
from spgraph.distributed import DistributedMatrix, from_model
from spgraph.iterations import search
from spgraph.semirings import any_pair, plus_first

# scale, edge factor
GRAPHS = {
    "rmat_n24_32": (24, 32),
    "kron24_16": (24, 16),
    "kron25_16": (25, 16),
    "kron25_32": (25, 32),
    "kron26_16": (26, 16),
    "kron26_32": (26, 32),
}
GRID = "grid1000"  # 1000 x 1000, like a road network
CHUNK = 1 << 26  # entries that weights are made for at a time
Calls = dict[str, Callable[[Any, Any, int], Any]]

# of the pattern, the weighted graph and a source
TASKS: Calls = {
    "bfs": lambda A, W, source: sg.bfs(A, source),
    "bfs levels": lambda A, W, source: sg.bfs(A, source, parents=False),
    "bfs push": lambda A, W, source: sg.bfs(A, source, parents=False, direction="push"),
    "bfs counts": lambda A, W, source: path_counts(A, source, "auto"),
    "bfs counts push": lambda A, W, source: path_counts(A, source, "push"),
    "sssp": lambda A, W, source: sg.sssp(W, source, parents=False),
    "sssp parents": lambda A, W, source: sg.sssp(W, source),
    "components": lambda A, W, source: sg.connected_components(A),
    "betweenness": lambda A, W, source: sg.betweenness_centrality(A, sources=[source]),
    "pagerank 10": lambda A, W, source: sg.pagerank(A, tol=None, max_iter=10),
    "pagerank 30": lambda A, W, source: sg.pagerank(A, tol=None, max_iter=30),
}
ONE_SOURCE = ("components", "pagerank 10", "pagerank 30")
ON_THE_GRID = ("bfs", "bfs levels", "bfs push", "sssp", "sssp parents", "components")


def main() -> None:
    options = _options()
    found: dict[str, Any] = {
        "benchmark": "distributed_gpu",
        **machine.facts(options.commit),
        "unit": "ms",
        "graphs": {},
        "results": [],
        "faults": [],
    }
    result = machine.begun(options.output, found)
    for name in options.graphs.split(","):
        measure(name, options, result)
        machine.write(options.output, result)
        free_memory()
    print(*result["faults"], sep="\n")


def free_memory() -> None:
    """Give back what the memory pool of each GPU keeps."""
    cupy = import_cupy()
    for device in range(cupy.cuda.runtime.getDeviceCount()):
        with cupy.cuda.Device(device):
            cupy.get_default_memory_pool().free_all_blocks()


def measure(name: str, options: argparse.Namespace, result: dict[str, Any]) -> None:
    """All tasks on one graph, by one GPU and by several."""
    tasks = options.tasks.split(",") if options.tasks else list(TASKS)
    tasks = [task for task in tasks if name != GRID or task in ON_THE_GRID]
    sources: list[int] = []
    answers: dict[tuple[str, int], Any] = {}
    for devices in map(int, options.devices.split(",")):
        ways = [*options.exchange.split(","), *(["auto"] if name == GRID else [])]
        for exchange in ways if devices > 1 else [""]:
            began = time.perf_counter()
            given = {"exchange": exchange} if exchange else {}
            place = {"graph": name, "devices": devices} | given
            A = graph(name, [f"cuda:{d}" for d in range(devices)], given)
            W = weighted(A) if {"sssp", "sssp parents"} & set(tasks) else None
            if devices == 1:
                A, W = (None if G is None else one_device(G) for G in (A, W))
                sources = sources_of(A, options.sources)
                result["graphs"][name] = {
                    "vertices": A.nrows,
                    "directed_edges": A.nvals,
                    "origin": name if name == GRID else f"kronecker{GRAPHS[name]}, seed 1",
                    "sources": sources,
                }
            print(f"{name}, {devices} {exchange}: {time.perf_counter() - began:.1f} s", flush=True)
            for task in tasks:
                row = {"algorithm": task} | place
                try:
                    row |= timed(task, A, W, sources, answers, options.calls)
                    if exchange in ("", "nccl"):
                        row["cost"] = cost(task, A, W, sources[0])
                except Exception as error:  # the next task may still be measured
                    result["faults"].append(fault_of(row, error))
                    print("  ", result["faults"][-1], flush=True)
                if "ms" in row:
                    result["results"].append(row)
                    print(f"   {task:15s} {row['ms']:9.3f} ms", flush=True)
            if name == GRID and exchange != "auto":
                row = {"algorithm": "round"} | place | round_us(A, sources[0])
                result["results"].append(row)
                print(f"   a round      {row['us']:9.3f} us", flush=True)
            if devices > 1:
                A.device.communicator.close()
            del A, W


def sources_of(A: Any, count: int) -> list[int]:
    """So many vertices that a search from the one of largest degree reaches."""
    found = sg.bfs(A, int(A.row_degrees().values.argmax()), parents=False)
    return graphs.draw_sources(import_cupy().asnumpy(found.level.to_coo()[0]), count)


def fault_of(row: dict[str, Any], error: Exception) -> str:
    """What was not measured, why, and where it failed, in a line."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{pathlib.Path(place.filename).name}:{place.lineno}"
    what = f"{row['graph']} {row['devices']} {row.get('exchange', '')} {row['algorithm']}"
    return f"{what}: {error!r} at {where}"[:400]


def graph(name: str, devices: list[str], given: dict[str, Any]) -> Any:
    """The graph in a shard on each of the devices."""
    if name == GRID:
        A = sg.generators.grid(1000, 1000, device="cuda:0")
        return A.distribute(len(devices), devices=devices, **given)
    model = sg.generators.kronecker_model(*GRAPHS[name], seed=1)
    return from_model(model, len(devices), devices=devices, **given)


def path_counts(A: Any, source: int, direction: Any) -> tuple[Any, Any]:
    """(levels, numbers of shortest paths) from a source, as bfs sees the graph."""
    start = sg.Vector.unit(source, 1.0, size=A.nrows, dtype=np.float64, device=A.device)
    found = search(A, start, plus_first, direction=direction)
    return found.level, found.value


def round_us(A: Any, source: int) -> dict[str, Any]:
    """The row of the times of a level, in microseconds, of a search whose frontiers are small."""
    start = sg.Vector.unit(source, True, size=A.nrows, dtype=bool, device=A.device)
    _, first_ms = rows.first(lambda: search(A, start, any_pair), "cuda")
    seen = rows.untimed(lambda: search(A, start, any_pair), first_ms, "cuda")
    levels = search(A, start, any_pair, trace=True).trace
    assert levels is not None
    return rows.row([1e6 * level.seconds for level in levels[:-1]], seen, median="us")


def cost(task: str, A: Any, W: Any, source: int) -> dict[str, Any]:
    """W, H, C and S of a task."""
    name, _, iterations = task.partition("pagerank ")
    run = functools.partial(TASKS[task], source=source)
    return costs.cost(name, A, W, source, run, int(iterations or 0))


def timed(
    task: str, A: Any, W: Any, sources: list[int], answers: dict[Any, Any], calls: int
) -> dict[str, Any]:
    """The row of a task, whose answers were compared with those of one GPU."""
    times: list[list[float]] = []
    for source in sources[:1] if task in ONE_SOURCE else sources:
        call = functools.partial(TASKS[task], A, W, source)
        found, ms = rows.first(call, "cuda")
        compare(found, answers, (task, source))
        del found
        if not times:
            seen = rows.untimed(call, ms, "cuda")
        times.append(rows.timed(call, calls, "cuda"))
    return rows.row(times, seen, median="ms")


def compare(found: Any, answers: dict[Any, Any], key: tuple[str, int]) -> None:
    """ValueError unless the answer is that of one GPU, which comes first."""
    vectors = found if isinstance(found, tuple) else (found,)
    home = [v.gather() if hasattr(v, "gather") else v.to("cpu") for v in vectors if v is not None]
    if key not in answers:
        answers[key] = home
        return
    for mine, expected in zip(home, answers[key], strict=True):
        exact = mine.dtype.kind != "f"
        if not (mine.isequal(expected) if exact else mine.isclose(expected, rtol=1e-6)):
            raise ValueError(f"{key}: another answer than that of one GPU")


def one_device(G: DistributedMatrix) -> sg.Matrix:
    """The only shard, as a plain Matrix."""
    A = G.shards[0]
    A.symmetric = True
    return A


def weighted(G: DistributedMatrix) -> DistributedMatrix:
    """The graph with the weights of `graphs.weighted`, made a part at a time."""

    def own(k: int, shard: sg.Matrix) -> sg.Matrix:
        xp = import_cupy()
        users = G.device.shard_ids(k, G.nrows)
        values = xp.empty(shard.nvals, np.int32)
        row = 0
        while row < shard.nrows:
            first = int(shard.indptr[row])
            last = int(xp.searchsorted(shard.indptr, first + CHUNK, side="right")) - 1
            last = min(max(last, row + 1), shard.nrows)
            offsets = shard.indptr[row : last + 1] - first
            end = first + int(offsets[-1])
            part = sg.Matrix._of(last - row, G.ncols, offsets, shard.indices[first:end], values[:1])
            ids = users[part.row_indices() + row]
            values[first:end] = graphs.weights(ids, part.indices)
            row = last
        return sg.Matrix._of(shard.nrows, shard.ncols, shard.indptr, shard.indices, values)

    shards = G.device.map(own, G.shards)
    return DistributedMatrix(G.nrows, G.ncols, shards, G.device, symmetric=True)


def _options() -> argparse.Namespace:
    parser = arguments.parser(__doc__, "distributed_gpu")
    parser.add_argument("--graphs", default=",".join([*GRAPHS, GRID]))
    parser.add_argument("--devices", default="1,2,4")
    parser.add_argument("--tasks", default="", help="all of them by default")
    parser.add_argument("--exchange", default="nccl,peer")
    parser.add_argument("--sources", type=int, default=4)
    parser.add_argument("--calls", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
