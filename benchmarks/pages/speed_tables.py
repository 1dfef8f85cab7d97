"""Write the tables of docs/speed.md and docs/speed/ out of the newest files of benchmarks/results/.

They stand between a page's comments `<!-- NAME -->` and `<!-- end -->`; tests/docs/test_pages.py
fails where the pages and the files differ.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from benchmarks.measuring.arguments import ROOT
from benchmarks.pages import seeds_tables
from benchmarks.pages.tables import (
    described,
    graph,
    milliseconds,
    newest,
    of_one_commit,
    quiet,
    same,
    size,
    table,
)

PAGES = (ROOT / "docs" / "speed.md", *sorted((ROOT / "docs" / "speed").glob("*.md")))
PLACE = re.compile(r"(?<=<!-- )(?!end )(\w+) -->\n.*?(?=\n<!-- end -->)", re.DOTALL)


def bfs_cpu() -> str:
    name, result = newest("bfs_cpu")
    systems = ["spgraph", "spgraph parents", "spgraph composed"]
    systems += ["graphblas", "graphblas parents", "scipy", "networkit"]
    head = ["graph", "entries", "levels", "with parents", "own loop"]
    head += ["GraphBLAS, levels", "GraphBLAS, parents", "SciPy", "NetworKit"]
    rows = [
        [graph(key, entry), size(entry)]
        + [milliseconds(entry["systems"].get(system, {}).get("median")) for system in systems]
        for key, entry in result["graphs"].items()
    ]
    libraries = ("numba", "scipy", "networkit", "python-graphblas")
    return f"{described(name, result, *libraries)}\n\n{table(head, rows)}"


def bfs_gpu() -> str:
    name, result = newest("bfs_gpu")
    head = ["graph", "entries", "levels: device", "wall", "with parents: device", "wall"]
    head += ["cuGraph, levels: wall", "with parents: wall"]
    rows = []
    for key, entry in result["graphs"].items():
        ours = [entry["bfs"][kind][time] for kind in KINDS for time in ("device_ms", "wall_ms")]
        theirs = [entry.get("cugraph", {}).get(kind, {}).get("wall_ms") for kind in KINDS]
        rows.append([graph(key, entry), size(entry), *map(milliseconds, ours + theirs)])
    return f"{described(name, result, 'cupy-cuda13x')}\n\n{table(head, rows)}"


KINDS = ("levels", "parents")


def algorithms_cpu() -> str:
    name, result = newest("algorithms_cpu")
    rows = []
    for key, entry in result["graphs"].items():
        for task, systems in entry["tasks"].items():
            times = {k: v["median"] for k, v in systems.items() if isinstance(v, dict)}
            peers = sorted((t, peer) for peer, t in times.items() if peer != "spgraph")
            others = ", ".join(f"{peer} {milliseconds(t)}" for t, peer in peers)
            rows.append([graph(key, entry), task, milliseconds(times["spgraph"]), others])
    libraries = ("numba", "scipy", "networkit", "python-graphblas")
    head = ["graph", "task", "spgraph", "others"]
    return f"{described(name, result, *libraries)}\n\n{table(head, rows)}"


def building_cpu() -> str:
    """A line a task: spgraph beside the other libraries."""
    if not of_one_commit("building_cpu"):
        return "No run is recorded: `python -m benchmarks renew --only building_cpu` writes one."
    name, result = newest("building_cpu")
    rows = []
    for task, found in result["tasks"].items():
        times = {k: v["median"] for k, v in found["systems"].items() if "median" in v}
        own = milliseconds(times.pop("spgraph"))
        rows.append([task, own, ", ".join(f"{k} {milliseconds(t)}" for k, t in times.items())])
    where = described(name, result, "numba", "scipy", "pandas", "python-graphblas")
    return f"{where}\n\n{table(['task', 'spgraph', 'others'], rows)}"


def gapbs(benchmark: str) -> str:
    """A line a graph and task, for each condition spgraph's median, the best peer's and theirs."""
    name, result = newest(benchmark)
    conditions: list[tuple[int, bool]] = []
    lines: dict[tuple[str, str], dict[tuple[int, bool], str]] = {}
    for key, entry in result["graphs"].items():
        for row in entry.get("rows", []):
            at = (row["threads"], row["loaded"])
            conditions += [at] if at not in conditions else []
            for system, ratio in row.get("ratios", {}).items():
                ours, best = (row["systems"][each]["median"] for each in (system, row["best"]))
                cell = f"{milliseconds(ours)} / {milliseconds(best)} {row['best']} = {ratio:.2f}"
                lines.setdefault((key, row["task"] + system[len("spgraph") :]), {})[at] = cell
    head = ["graph", "task"]
    for n, loaded in conditions:
        head += [f"{n} thread{'s' * (n > 1)}{', beside other work' * loaded}"]
    rows = [[*line, *(cells.get(at, "-") for at in conditions)] for line, cells in lines.items()]
    where = described(name, result, "numba", "scipy")
    return f"{where}\n\n{table(head, rows)}"


def algorithms_gpu() -> str:
    name, result = newest("algorithms_gpu")
    rows = []
    for key, entry in result["graphs"].items():
        for task in ("sssp", "components", "betweenness", "pagerank", "triangles"):
            if task in entry and isinstance(entry[task], dict):
                peer = entry.get("cugraph", {}).get(task, {}).get("wall_ms")
                ours = [entry[task]["device_ms"], entry[task]["wall_ms"], peer]
                rows.append([graph(key, entry), task, *map(milliseconds, ours)])
    head = ["graph", "task", "device", "wall", "cuGraph: wall"]
    return f"{described(name, result, 'cupy-cuda13x')}\n\n{table(head, rows)}"


def operations_cpu() -> str:
    name, result = newest("operations_cpu")
    systems = ("spgraph", "graphblas", "scipy")
    rows = []
    for key, entry in result["matrices"].items():
        for task, found in entry["tasks"].items():
            times = [found.get(system, {}).get("median") for system in systems]
            rows.append([key, task, *map(milliseconds, times)])
    head = ["matrix", "operation", "spgraph", "GraphBLAS", "SciPy"]
    return f"{described(name, result, 'numba', 'scipy', 'python-graphblas')}\n\n{table(head, rows)}"


def operations_gpu() -> str:
    name, result = newest("operations_gpu")
    rows = [
        [graph(key, entry), task, milliseconds(found["device_ms"]), milliseconds(found["wall_ms"])]
        for key, entry in result["graphs"].items()
        for task, found in entry["tasks"].items()
    ]
    head = ["matrix", "operation", "device", "wall"]
    return f"{described(name, result, 'cupy-cuda13x')}\n\n{table(head, rows)}"


def csgraph_cpu() -> str:
    name, result = newest("csgraph_cpu")
    rows = []
    for key, entry in result["graphs"].items():
        for task, systems in entry["tasks"].items():
            times = [systems.get(system, {}).get("median") for system in ("spgraph", "scipy")]
            rows.append([key, task, *map(milliseconds, times)])
    head = ["graph", "function", "spgraph", "SciPy"]
    return f"{described(name, result, 'numba', 'scipy')}\n\n{table(head, rows)}"


def distributed_gpu() -> str:
    """A line a graph and algorithm, a column for each number of GPUs and way of exchange."""
    name, result = newest("distributed_gpu")
    ways = sorted({(row["devices"], row.get("exchange", "")) for row in result["results"]})
    times = {
        (row["graph"], row["algorithm"], row["devices"], row.get("exchange", "")): row
        for row in result["results"]
    }
    rows = []
    for key in dict.fromkeys((row["graph"], row["algorithm"]) for row in result["results"]):
        found = [times.get((*key, *way), {}) for way in ways]
        if key[1] == "pagerank 10":
            continue
        if key[1] == "pagerank 30":  # an iteration, from the difference of two runs
            less = [times.get((key[0], "pagerank 10", *way), {}) for way in ways]
            pairs = zip(found, less, strict=True)
            cells = [(a["ms"] - b["ms"]) / 20 if a and b else None for a, b in pairs]
            rows.append([key[0], "pagerank, an iteration", *map(milliseconds, cells)])
            continue
        unit = ", us" if key[1] == "round" else ""
        cells = [row.get("us" if unit else "ms") for row in found]
        rows.append([key[0], key[1] + unit, *map(milliseconds, cells)])
    head = ["graph", "task"]
    head += [f"{n} GPU" if n == 1 else f"{n} GPUs, {way}" for n, way in ways]
    most = max(n for n, _ in ways)
    return f"{described(name, result, 'cupy-cuda13x', gpus=most)}\n\n{table(head, rows)}"


def dense_products() -> str:
    """A line a graph and type: 64 columns, spgraph beside cuSPARSE's faster order and PyTorch."""
    name, result = newest("dense_products_gpu")
    rows = []
    for key, entry in result["graphs"].items():
        for kind, systems in entry["products"].items():
            times = {k: v["median"] for k, v in systems.items() if isinstance(v, dict)}
            cusparse = min(t for system, t in times.items() if system.startswith("cupyx"))
            cells = (times["spgraph"], cusparse, times["torch"])
            rows.append([key, size(entry), kind.replace(" ", ", "), *map(milliseconds, cells)])
    head = ["graph", "entries", "type, columns", "spgraph", "cuSPARSE through CuPy", "PyTorch"]
    return f"{described(name, result, 'cupy-cuda13x')}\n\n{table(head, rows)}"


def dense_products_cpu() -> str:
    """A line a graph and type: 64 columns, spgraph beside SciPy."""
    name, result = newest("dense_products_cpu")
    rows = []
    for key, entry in result["graphs"].items():
        for kind, systems in entry["products"].items():
            times = [systems[system]["median"] for system in ("spgraph", "scipy")]
            rows.append([key, size(entry), kind.replace(" ", ", "), *map(milliseconds, times)])
    head = ["graph", "entries", "type, columns", "spgraph", "SciPy"]
    return f"{described(name, result, 'numba', 'scipy')}\n\n{table(head, rows)}"


def host_storage() -> str:
    """A line a task: its time beside that of the bytes that it read over the bus, where they are
    counted, and of all bytes of the matrix.
    """
    name, result = newest("host_storage_gpu")
    rows = []
    for key, entry in result["graphs"].items():
        for task, found in entry["tasks"].items():
            cells, moved = [milliseconds(found["median"]), "-", "-"], "-"
            if "bytes" in found:
                cells[1:] = [milliseconds(found["bus_ms"]), f"{found['ratio']:.2f}"]
                moved = f"{found['bytes'] / 1e9:.2f} of {entry['bytes'] / 1e9:.2f}"
            rows.append([key, task, moved, *cells, f"{found['of_all']:.2f}"])
    head = ["graph", "task", "GB read, of the matrix", "ms", "ms of copying as much", "ratio"]
    head.append("ratio to copying all")
    return f"{described(name, result, 'cupy-cuda13x')}\n\n{table(head, rows)}"


def distributed_costs() -> str:
    """A line a graph, task and number of GPUs: W, H, C, S, exchange and compute in rounds."""
    name, result = newest("distributed_gpu")
    counted = [row for row in result["results"] if "cost" in row and row["devices"] > 1]
    if not counted:
        return f"`{name}` was measured before they were counted."
    rows = []
    for row in counted:
        cost = row["cost"]
        counts = ["-" if cost[key] is None else f"{cost[key]:,}" for key in "WHCS"]
        seconds = [1e3 * cost[f"{part}_seconds"] for part in ("exchange", "compute")]
        place = [row["graph"], row["algorithm"], str(row["devices"])]
        rows.append([*place, *counts, *map(milliseconds, seconds)])
    head = ["graph", "task", "GPUs", "W", "H", "C", "S", "exchange", "compute"]
    return f"{same(name)}\n\n{table(head, rows)}"


def graph500() -> str:
    """A line a run, the newest on each kind and number of devices: both kernels' harmonic means,
    the construction, the checks.
    """
    rows, said, shown = [], [], set()
    for name, result in quiet("graph500_gpu", "graph500_cpu"):
        runs = [run for run in result["runs"].values() if devices_of(run) not in shown]
        shown |= set(map(devices_of, runs))
        if runs:
            said.append(described(name, result, "numba", gpus=0))
        for run in runs:
            rates = [run[f"{kernel}_harmonic_mean_TEPS"] / 1e9 for kernel in ("bfs", "sssp")]
            checks = [1e3 * run[f"{kernel}_median_validate"] for kernel in ("bfs", "sssp")]
            unit = "GPU" if run["device"] == "cuda" else "CPU shard"
            where = f"{run['shards']} {unit}{'s' * (run['shards'] > 1)}"
            sizes = [str(run["SCALE"]), str(run["edgefactor"]), where, str(run["NBFS"])]
            times = [run["construction_time"] * 1e3, *checks]
            rows.append([*sizes, *map(milliseconds, rates), *map(milliseconds, times)])
    if not rows:
        return "No run is recorded: `python -m benchmarks record graph500 --scale 20` writes one."
    head = ["scale", "edge factor", "on", "valid roots", "GTEPS, search", "GTEPS, paths"]
    head += ["construction, ms", "check of a tree", "of paths"]
    return "\n\n".join([*said, table(head, rows)])


def devices_of(run: dict[str, Any]) -> tuple[str, int]:
    return run["device"], run["shards"]


def gap() -> str:
    """A line a graph and kernel: the suite's average, beside the median and the least trial."""
    rows, said = [], []
    for name, result in of_one_commit("gap_gpu", "gap_cpu"):
        said.append(described(name, result, "numba", gpus=0))
        for key, run in result["runs"].items():
            for kernel, found in run["kernels"].items():
                times = [1e3 * found[field] for field in ("average", "median", "least")]
                verified = "yes" if found["verified"] else "no"
                rows.append(
                    [key, kernel, str(found["trials"]), verified, *map(milliseconds, times)]
                )
    if not rows:
        return "No run is recorded: `python -m benchmarks record gap kron --scale 20` writes one."
    head = ["graph", "kernel", "trials", "verified", "average", "median", "least"]
    return "\n\n".join([*said, table(head, rows)])


def first_call() -> str:
    rows = []
    for benchmark in ("bfs_cpu", "bfs_gpu"):
        name, result = newest(benchmark)
        for kind, found in result["first_call"].items():
            for caches, words in (("cold", "over empty caches"), ("disk", "compiled before")):
                times = [found[caches][field] for field in ("import_s", "first_call_s")]
                rows.append([f"`{name}`", kind, words, *(f"{t:.2f}" for t in times)])
    return table(["file", "search", "kernels", "import, s", "first call, s"], rows)


TABLES: dict[str, Callable[[], str]] = {
    "bfs_cpu": bfs_cpu,
    "bfs_gpu": bfs_gpu,
    "algorithms_cpu": algorithms_cpu,
    "gapbs_cpu": functools.partial(gapbs, "gapbs_cpu"),
    "gapbs_threads_cpu": functools.partial(gapbs, "gapbs_threads_cpu"),
    "algorithms_gpu": algorithms_gpu,
    "operations_cpu": operations_cpu,
    "building_cpu": building_cpu,
    "operations_gpu": operations_gpu,
    "dense_products_cpu": dense_products_cpu,
    "dense_products_gpu": dense_products,
    "host_storage_gpu": host_storage,
    "seeds_gpu": seeds_tables.beside,
    "seeds_ablation": seeds_tables.ablation,
    "seeds_memory": seeds_tables.memory,
    "seeds_scaling": seeds_tables.scaling,
    "seeds_partitions": seeds_tables.partitions,
    "graph500": graph500,
    "gap": gap,
    "csgraph_cpu": csgraph_cpu,
    "distributed_gpu": distributed_gpu,
    "distributed_costs": distributed_costs,
    "first_call": first_call,
}


def filled(page: str) -> str:
    """The page with every table that it has a place for as the result files have it."""
    return PLACE.sub(lambda place: f"{place[1]} -->\n{TABLES[place[1]]()}", page)


def places(page: str) -> list[str]:
    """The names of the tables that the page has a place for."""
    return PLACE.findall(page)
