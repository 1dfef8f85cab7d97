"""The tables of docs/speed/published.md, about the graphs of the papers: from the newest file of
seeds_gpu and its others of the same commit.
"""

from __future__ import annotations

import json
from typing import Any

from benchmarks import seeds
from benchmarks.pages.tables import described, milliseconds, of_one_commit, same, table

PLACE = ("graph", "task", "devices", "switch", "value")
# what figure 5 of multi-GPU Gunrock has on 1, 2, 4 and 8 GPUs; of spgraph what was measured
COUNTS = (1, 2, 4, 8)
SCALING = {
    "strong": ("rmat_n24_32",) * 4,
    "weak, edges": ("rmat_n19_256", "rmat_n19_512", "rmat_n19_1024", "rmat_n19_2047"),
    "weak, vertices": ("rmat_n19_256", "rmat_n20_256", "rmat_n21_256", "rmat_n22_255"),
}
TRAVERSALS = ("bfs", "bfs push", "sssp")  # look at every edge of the component, or need not
PARTITIONS = ("edges", "random", "biased", "METIS")


def published() -> dict[str, Any]:
    """The times of others."""
    return json.loads(seeds.PUBLISHED.read_text(encoding="utf-8"))


def names() -> list[str]:
    """The files that the tables are of."""
    return [name for name, _ in of_one_commit("seeds_gpu")]


def measured(kind: str) -> list[dict[str, Any]]:
    """The rows of all files, "results" or "ablation", the newest at each place."""
    found = {}
    for _, result in of_one_commit("seeds_gpu"):
        for row in result.get(kind, []):
            found[tuple(row.get(name) for name in PLACE)] = row
    return list(found.values())


def beside() -> str:
    """A line a graph and task: spgraph beside the fastest published time of each system."""
    files = of_one_commit("seeds_gpu")
    gpu = files[-1][1]["machine"]["gpu"]["name"]
    sizes: dict[str, Any] = {}
    for _, result in files:
        sizes |= result["graphs"]
    rows = []
    for row in seeds.fastest(seeds.beside(measured("results"), published(), gpu)):
        ratios = (row["faster"], row["bandwidth"], row["faster"] / row["bandwidth"])
        place = [row["graph"], row["task"], str(row["gpus"]), milliseconds(row["spgraph_ms"])]
        rate = sizes[row["graph"]]["directed_edges"] / row["spgraph_ms"] / 1e3
        place.append(milliseconds(rate) if row["task"] in TRAVERSALS else "-")
        theirs = [f"{row['system']}, {row['card']}", milliseconds(row["ms"])]
        rows.append([*place, *theirs, *map(milliseconds, ratios)])
    head = ["graph", "task", "GPUs", "spgraph", "MTEPS", "published: system, card", "ms", "faster"]
    said = [described(name, result, "cupy-cuda13x") for name, result in files]
    return "\n\n".join([*said, table([*head, "bandwidth", "faster / bandwidth"], rows)])


def ablation() -> str:
    """A line a graph and switch: the time with each of its values, and switches that are absent."""
    cells: dict[tuple[str, ...], list[str]] = {}
    for row in measured("ablation"):
        key = (row["graph"], row["task"], str(row["devices"]), row["switch"])
        cells.setdefault(key, []).append(f"{row['value']} {milliseconds(row['ms'])}")
    if not cells:
        return "Nothing is measured: `python -m benchmarks seeds --ablate` does."
    rows = [[*key, ", ".join(found)] for key, found in cells.items()]
    absent = "; ".join(f"{switch}: {why}" for switch, why in seeds.ABSENT.items())
    cells_of = table(["graph", "task", "GPUs", "switch", "ms"], rows)
    return f"{same(*names())}\n\n{cells_of}\n\nWithout a switch: {absent}."


def memory() -> str:
    """A line a graph, task and number of GPUs: what is held before a call, what it takes more, of
    the GPU on which that is most, and how many allocations it makes.
    """
    rows = []
    for row in measured("results"):
        if row.get("allocations") is None:  # of files that say what the pool held
            continue
        taken = row["peak_bytes"] - row["held_bytes"]
        place = [row["graph"], row["task"], str(row["devices"])]
        sizes = (row["held_bytes"] / 1e6, taken / 1e6)
        rows.append([*place, *map(milliseconds, sizes), str(row["allocations"])])
    if not rows:
        return f"{same(*names())} They were measured before it was counted."
    head = ["graph", "task", "GPUs", "held, MB", "taken by a call, MB", "allocations"]
    return f"{same(*names())}\n\n{table(head, rows)}"


def scaling() -> str:
    """A line a kind of scaling, task and system: how many times as fast as one GPU several are, or
    the rate of each of them in parts of that of one alone.
    """
    times: dict[tuple[str, str, str, int], float] = {}
    for row in measured("results"):
        times["spgraph", row["graph"], row["task"], row["devices"]] = row["ms"]
    for row in published()["rows"]:
        if row["system"] == "Gunrock, several GPUs" and "partition" not in row:
            name = f"Gunrock, {row['card']}"
            times[name, row["graph"], row["task"], row["gpus"]] = row["ms"]
    systems = sorted({system for system, *_ in times}, key=lambda name: (name != "spgraph", name))
    rows = []
    for kind, graphs in SCALING.items():
        for task in ("bfs", "bfs push", "pagerank"):
            for system in systems:
                places = [(system, name, task, n) for name, n in zip(graphs, COUNTS, strict=True)]
                found = [times.get(place) for place in places]
                if found[0] is None or not any(found[1:]):
                    continue
                ratios = [f"{found[0] / ms:.2f}" if ms else "-" for ms in found[1:]]
                rows.append([kind, task, system, milliseconds(found[0]), *ratios])
    head = ["scaling", "task", "system", "1 GPU, ms", *(f"{n} GPUs" for n in COUNTS[1:])]
    return f"{same(*names())}\n\n{table(head, rows)}"


def partitions() -> str:
    """A line a task and system: its time on several GPUs with each partition of the graph."""
    cells: dict[tuple[str, ...], dict[str, str]] = {}
    for row in measured("ablation"):
        if row["switch"] == "partition":
            key = (row["graph"], row["task"], "spgraph", str(row["devices"]))
            cells.setdefault(key, {})[row["value"]] = milliseconds(row["ms"])
    for row in published()["rows"]:
        if "partition" in row:
            key = (row["graph"], row["task"], f"Gunrock, {row['card']}", str(row["gpus"]))
            cells.setdefault(key, {})[row["partition"]] = milliseconds(row["ms"])
    rows = [[*key, *(found.get(name, "-") for name in PARTITIONS)] for key, found in cells.items()]
    head = ["graph", "task", "system", "GPUs", *PARTITIONS]
    return f"{same(*names())}\n\n{table(head, sorted(rows))}"
