"""Draw the two figures of README.md: docs/speed.svg from the newest files of benchmarks/results/,
docs/frontier.svg from the search of `make demo`; and docs/scaling.svg (scaling.py).
tests/docs/test_pages.py fails where a figure and what it is drawn from differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import spgraph as sg
from benchmarks.measuring.arguments import ROOT
from benchmarks.pages import scaling
from benchmarks.pages.svg import legend, svg, text
from benchmarks.pages.tables import milliseconds, newest
from spgraph.iterations import Level
from spgraph.plot.style import BLUE, FAINT, GREY, VERMILION

DOCS = ROOT / "docs"
NAMES = {
    "scipy": "SciPy",
    "networkit": "NetworKit",
    "igraph": "igraph",
    "graphblas": "SuiteSparse:GraphBLAS",
    "cugraph": "cuGraph",
}
TASKS = {
    "bfs": "breadth-first search",
    "sssp": "shortest paths",
    "components": "components",
    "pagerank": "PageRank, {} iterations",
    "betweenness": "betweenness, {} sources",
}
# what benchmarks/cpu/algorithms.py and benchmarks/gpu/algorithms.py measure
CPU = {"pagerank": 20, "betweenness": 4}
GPU = {"pagerank": 1, "betweenness": 1}


class Row(NamedTuple):
    """Times of one task on one graph, in milliseconds."""

    task: str
    ours: float
    theirs: float
    peer: str


# --- what is drawn --------------------------------------------------------------------------------


def rows_cpu(graph: str) -> list[Row]:
    """A row for each task, beside the fastest of the other libraries."""
    _, search = newest("bfs_cpu")
    _, others = newest("algorithms_cpu")
    tasks = {"bfs": search["graphs"][graph]["systems"], **others["graphs"][graph]["tasks"]}
    rows = []
    for task, systems in tasks.items():
        times = {
            name: systems[name]["median"] for name in NAMES if "median" in systems.get(name, {})
        }
        peer = min(times, key=lambda name: times[name])
        rows.append(Row(named(task, CPU), systems["spgraph"]["median"], times[peer], NAMES[peer]))
    return rows


def rows_gpu(graph: str) -> list[Row]:
    """A row for each task that cuGraph was timed at: wall times of whole calls."""
    _, search = newest("bfs_gpu")
    _, others = newest("algorithms_gpu")
    levels, rest = search["graphs"][graph], others["graphs"][graph]
    times = {"bfs": (levels["bfs"]["levels"], levels["cugraph"]["levels"])}
    times |= {task: (rest[task], rest["cugraph"].get(task, {})) for task in TASKS if task in rest}
    return [
        Row(named(task, GPU), ours["wall_ms"], theirs["wall_ms"], NAMES["cugraph"])
        for task, (ours, theirs) in times.items()
        if theirs.get("wall_ms") is not None
    ]


def named(task: str, counts: dict[str, int]) -> str:
    """A task in words, with its number of iterations or sources."""
    words = TASKS[task].format(counts.get(task))
    return words.removesuffix("s") if counts.get(task) == 1 else words


def searched() -> tuple[int, Sequence[Level]]:
    """(edges, trace) of the graph and the search of `make demo`."""
    A = sg.generators.kronecker(18)
    source = int(sg.reduce_rowwise(A.pattern()).to_numpy(fill=0).argmax())
    trace = sg.bfs(A, source, trace=True).trace
    assert trace is not None
    return A.nvals, trace


# --- SVG ------------------------------------------------------------------------------------------


def speed() -> str:
    """docs/speed.svg: a line a task, from spgraph's time to the fastest other library's."""
    panels = []
    _, cpu = newest("bfs_cpu")
    _, gpu = newest("bfs_gpu")
    for where, rows, result, key in (
        (f"{cpu['machine']['cores']} CPU cores", rows_cpu, cpu, "kron18"),
        (f"{cpu['machine']['cores']} CPU cores", rows_cpu, cpu, "road_NY"),
        (f"one {gpu['machine']['gpu']['name']}", rows_gpu, gpu, "rmat_n24_32"),
        (f"one {gpu['machine']['gpu']['name']}", rows_gpu, gpu, "road_NY"),
    ):
        entry = result["graphs"][key]
        kind = "road network of New York" if key == "road_NY" else "Kronecker graph"
        edges = f"{milliseconds(entry['directed_edges'] / 1e6)} million edges"
        panels.append((f"{where}: {kind}, {edges}", rows(key)))
    parts = [
        text(
            20,
            26,
            "Milliseconds: further left is faster, on a logarithmic scale",
            size=15,
        ),
        *legend(20, 48, ((BLUE, "spgraph"), (VERMILION, "the fastest other library measured"))),
    ]
    y = 82
    for title, found in panels:
        parts.append(text(20, y, title, weight="bold"))
        y += 20
        for row in found:
            parts += dumbbell(row, y)
            y += 20
        y += 14
    return svg(y - 8, parts, "Times of spgraph and of the fastest other library")


def dumbbell(row: Row, y: int) -> list[str]:
    """A task's name, two dots on the scale joined by a line, and the numbers beside them."""
    ours, theirs = place(row.ours), place(row.theirs)
    left, right = min(ours, theirs), max(ours, theirs)
    names = {ours: milliseconds(row.ours), theirs: f"{milliseconds(row.theirs)} {row.peer}"}
    return [
        text(20, y + 4, row.task),
        f'<line x1="{left}" y1="{y}" x2="{right}" y2="{y}" stroke="{FAINT}" stroke-width="4"/>',
        f'<circle cx="{ours}" cy="{y}" r="5" fill="{BLUE}"/>',
        f'<circle cx="{theirs}" cy="{y}" r="5" fill="{VERMILION}"/>',
        text(left - 10, y + 4, names[left], anchor="end"),
        text(right + 10, y + 4, names[right]),
    ]


def place(ms: float) -> float:
    """Where a time is on the scale, from 0.01 to 1000 ms."""
    return round(225 + 70 * (math.log10(ms) + 2), 1)


def frontier() -> str:
    """docs/frontier.svg: a level's frontier and the edges that were looked at, as bars."""
    edges, trace = searched()
    looked = sum(level.edges for level in trace)
    head = f"A search over {edges:,} edges looked at {looked:,} of them"
    parts = [
        text(20, 26, head, size=15),
        *legend(20, 48, ((BLUE, "push: from the frontier"), (VERMILION, "pull: into the rest"))),
        text(20, 78, "level", fill=GREY),
        text(
            80,
            78,
            "vertices of the frontier (full bar) and edges looked at (outline), logarithmic",
            fill=GREY,
        ),
    ]
    y = 98
    for level in trace:
        color = VERMILION if level.direction == "pull" else BLUE
        parts.append(text(20, y + 12, f"{level.depth} {level.direction}"))
        for k, (count, fill) in enumerate(((level.frontier, color), (level.edges, "white"))):
            width = round(4 + 100 * math.log10(count), 1) if count else 0
            shape = f'<rect x="80" y="{y - 6 + 13 * k}" width="{width}" height="10"'
            parts.append(f'{shape} fill="{fill}" stroke="{color}"/>')
            parts.append(text(88 + width, y + 3 + 13 * k, f"{count:,}", size=11))
        y += 36
    return svg(y - 8, parts, head)


FIGURES: dict[str, Any] = {
    "speed.svg": speed,
    "frontier.svg": frontier,
    "scaling.svg": scaling.picture,
}
