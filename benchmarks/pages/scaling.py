"""Strong and weak scaling over the GPUs of a node, out of the newest file of distributed_gpu, drawn
as docs/scaling.svg. Several GPUs write into each other's memory, one works alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from benchmarks.pages import tables
from benchmarks.pages.svg import svg, text
from spgraph.plot.style import FAINT, GREY, SERIES

TASKS = ("bfs", "bfs levels", "bfs push", "sssp", "components", "betweenness", "pagerank")
FAMILY = re.compile(r"kron(\d+)_(\d+)")  # scale, edge factor
Points = list[tuple[int, float]]  # number of GPUs, and what is drawn


def milliseconds(result: dict[str, Any], graph: str, devices: int) -> dict[str, float]:
    """The time of each task on a graph, PageRank's an iteration."""
    found = {
        row["algorithm"]: row["ms"]
        for row in result["results"]
        if (row["graph"], row["devices"], row.get("exchange", "peer")) == (graph, devices, "peer")
        and "ms" in row
    }
    few, many = found.pop("pagerank 10", None), found.pop("pagerank 30", None)
    if few is not None and many is not None and many > few:
        found["pagerank"] = (many - few) / 20
    return found


def strong(result: dict[str, Any]) -> tuple[str, dict[str, Points]]:
    """(the largest graph that the most GPUs have, how many times as fast as one GPU each task is on
    it).
    """
    counts = sorted({row["devices"] for row in result["results"]})
    times = {
        name: {count: milliseconds(result, name, count) for count in counts}
        for name in result["graphs"]
    }
    whole = [name for name in times if FAMILY.fullmatch(name) and times[name][counts[-1]]]
    largest = max(whole, key=lambda name: result["graphs"][name]["directed_edges"])
    alone = times[largest][1]
    return largest, {
        task: [(n, alone[task] / found[task]) for n, found in times[largest].items()]
        for task in TASKS
        if all(task in found for found in times[largest].values())
    }


def weak(result: dict[str, Any]) -> tuple[list[str], dict[str, Points]]:
    """(graphs, each twice as large as the one before, on 1, 2, 4, ... GPUs; the rate of a GPU at
    each task in parts of the rate of one alone).
    """
    counts = {row["devices"] for row in result["results"]}
    rows: list[list[str]] = []
    for name in sorted(filter(FAMILY.fullmatch, result["graphs"])):
        scale, factor = map(int, FAMILY.fullmatch(name).groups())  # type: ignore[union-attr]
        chain = [name]
        while 2 ** len(chain) in counts:
            following = f"kron{scale + len(chain)}_{factor}"
            if following not in result["graphs"] or not milliseconds(
                result, following, 2 ** len(chain)
            ):
                break
            chain.append(following)
        rows.append(chain)
    chain = max(rows, key=lambda names: (len(names), names))
    found: dict[str, Points] = {}
    for k, name in enumerate(chain):
        for task, ms in milliseconds(result, name, 2**k).items():
            rate = result["graphs"][name]["directed_edges"] / ms / 2**k
            found.setdefault(task, []).append((2**k, rate))
    return chain, {
        task: [(n, rate / found[task][0][1]) for n, rate in found[task]]
        for task in TASKS
        if len(found.get(task, ())) == len(chain)
    }


def picture() -> str:
    """The SVG: two panels side by side, a line a task, the ideal dashed."""
    _, result = tables.newest("distributed_gpu")
    (graph, faster), (chain, rates) = strong(result), weak(result)
    parts = [text(20, 26, f"Scaling over GPUs: {result['machine']['gpu']['name']}", size=15)]
    panels = (
        (20, "strong", f"{graph}: times as fast as one GPU", faster, float),
        (400, "weak", f"{', '.join(chain)}: rate of a GPU", rates, lambda n: 1.0),
    )
    for left, name, title, lines, ideal in panels:
        parts.append(text(left, 56, f"{name}: {title}", weight="bold"))
        parts += panel(left, lines, ideal)
    return svg(370, parts, "Strong and weak scaling over GPUs")


def panel(left: int, lines: dict[str, Points], ideal: Any) -> list[str]:
    """Axes, the dashed ideal, a line a task with its name at the end."""
    counts = sorted({n for points in lines.values() for n, _ in points})
    top = 1.1 * max(ideal(counts[-1]), *(y for points in lines.values() for _, y in points))
    step = 0.5 if top > 1.5 else 0.25
    doublings = max(math.log2(counts[-1]), 1.0)

    def x(n: int) -> float:
        return round(left + 30 + 180 * math.log2(n) / doublings, 1)

    def y(value: float) -> float:
        return round(330 - 250 * value / top, 1)

    parts = []
    for k in range(int(top / step) + 1):
        at = y(k * step)
        parts.append(line([(x(1), at), (x(counts[-1]), at)], FAINT))
        parts.append(text(left + 24, at + 4, f"{k * step:g}", anchor="end", fill=GREY))
    parts += [text(x(n), 350, str(n), anchor="middle", fill=GREY) for n in counts]
    parts.append(line([(x(n), y(ideal(n))) for n in counts], GREY, ' stroke-dasharray="4 4"'))
    ends = {task: y(points[-1][1]) for task, points in lines.items()}
    names = spread(ends, 15)
    for (task, points), color in zip(lines.items(), SERIES, strict=False):
        parts.append(line([(x(n), y(value)) for n, value in points], color))
        parts += [f'<circle cx="{x(n)}" cy="{y(v)}" r="4" fill="{color}"/>' for n, v in points]
        words = f"{task} {points[-1][1]:.2f}"
        parts.append(text(x(counts[-1]) + 12, names[task] + 4, words, fill=color))
    return parts


def line(points: Sequence[tuple[float, float]], color: str, more: str = "") -> str:
    """A line through points."""
    path = " ".join(f"{x},{y}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"{more}/>'


def spread(places: dict[str, float], apart: float) -> dict[str, float]:
    """The places of words at the ends of lines, moved until they do not overlap."""
    found: dict[str, float] = {}
    lowest = -math.inf
    for name in sorted(places, key=lambda name: places[name]):
        found[name] = lowest = max(places[name], lowest + apart)
    beyond = max(0.0, lowest - 330)
    return {name: round(at - beyond, 1) for name, at in found.items()}
