"""Plot the trace of a search, level by level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from spgraph.errors import DomainMismatch
from spgraph.plot.style import (
    BLUE,
    GREY,
    INK,
    VERMILION,
    counted,
    headline,
    legend_above,
    new_figure,
    quiet,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from spgraph.iterations import Level

# hatched, to be distinguishable without colours
COLOR = {"push": BLUE, "pull": VERMILION}
HATCH = {"push": "", "pull": "////"}
# with more levels than this, bars would be thinner than their outline, and areas are drawn instead
BARS = 60
# up to so many bars are labelled with their values
LABELS = 16


def frontier_profile(trace: Sequence[Level], *, title: str | None = None) -> Figure:
    """A matplotlib Figure of each level of a search: its frontier, examined edges, direction, time.

    `trace` is the `.trace` of a search that recorded one, or any sequence of rows with the
    attributes depth, direction ("push" or "pull"), frontier, edges and seconds. Save the figure
    with `.savefig("profile.png")`; a notebook displays it. No window is opened.
    `title` replaces the one that sums the levels up.

    Raises ValueError for an empty trace, DomainMismatch for what is none, and BackendUnavailable if
    matplotlib is missing.

    >>> from types import SimpleNamespace as Row
    >>> import spgraph as sg
    >>> trace = [Row(depth=0, direction="push", frontier=1, edges=3, seconds=1e-5),
    ...          Row(depth=1, direction="pull", frontier=3, edges=7, seconds=2e-5)]
    >>> len(sg.plot.frontier_profile(trace).axes)
    2
    """
    _check(trace)
    figure = new_figure(5.0)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2.2, 1))
    depth = np.array([row.depth for row in trace])
    pull = np.array([row.direction == "pull" for row in trace])
    frontier = np.array([row.frontier for row in trace])
    edges = np.array([row.edges for row in trace])
    seconds = np.array([row.seconds for row in trace])
    unit, scale = next(
        ((u, s) for u, s in (("s", 1.0), ("ms", 1e3)) if seconds.max() * s >= 1), ("µs", 1e6)
    )

    if len(trace) <= BARS:
        _bars(above, depth - 0.2, frontier, pull, width=0.38, solid=True)
        _bars(above, depth + 0.2, edges, pull, width=0.38, solid=False)
        _bars(below, depth, seconds * scale, pull, width=0.78, solid=True)
        if len(trace) <= LABELS:
            _numbers(below, depth, seconds * scale)
    else:
        _areas(above, depth, frontier, pull)
        _areas(below, depth, seconds * scale, pull)
        ends = np.append(depth - 0.5, depth[-1] + 0.5)
        above.stairs(edges, ends, baseline=None, color=INK, linewidth=0.8)
    above.set_yscale("log")
    above.set_ylim(bottom=0.7)
    above.set_ylabel("count")
    below.set_ylabel(f"time [{unit}]")
    below.set_xlabel("level")
    below.set_ylim(0, seconds.max() * scale * 1.2 or 1)
    if len(trace) <= LABELS:
        below.set_xticks(depth)
    else:
        below.xaxis.get_major_locator().set_params(integer=True)
    below.set_xlim(depth[0] - 0.7, depth[-1] + 0.7)
    for axes in (above, below):
        quiet(axes)
    figure.align_ylabels()
    _legend(above, pull, areas=len(trace) > BARS)
    headline(above, title or _summary(edges, seconds), pad=26)
    return figure


def _check(trace: Sequence[Level]) -> None:
    if not trace:
        raise ValueError("trace: expected at least one level; run the search with trace=True")
    if not all(hasattr(row, "frontier") for row in trace):
        raise DomainMismatch(
            "frontier_profile: trace: expected the levels of a search, got "
            f"{type(trace).__name__}; sg.bfs(A, source, trace=True).trace has them"
        )


def _summary(edges: np.ndarray, seconds: np.ndarray) -> str:
    """The title: how many levels and examined edges, and the time of all levels."""
    total = seconds.sum()
    amount = f"{total:.3g} s" if total >= 1 else f"{total * 1e3:.3g} ms"
    amount = amount if total >= 1e-4 else f"{total * 1e6:.3g} µs"
    looked = counted(int(edges.sum()), "edge")
    return f"{counted(len(edges), 'level')}, {looked} looked at, {amount}"


def _bars(
    axes: Axes, x: np.ndarray, height: np.ndarray, pull: np.ndarray, *, width: float, solid: bool
) -> None:
    for direction, rows in (("push", ~pull), ("pull", pull)):
        color = COLOR[direction]
        axes.bar(
            x[rows],
            height[rows],
            width,
            color=color if solid else "white",
            edgecolor="white" if solid and HATCH[direction] else color,
            hatch=HATCH[direction],
            linewidth=0.0 if solid else 0.9,
            zorder=2,
        )


def _numbers(axes: Axes, x: np.ndarray, height: np.ndarray) -> None:
    """Label each bar with its height: most levels take little time, and their bars are tiny."""
    for position, value in zip(x, height, strict=True):
        text = f"{value:.1g}" if value < 0.1 else f"{value:.2f}" if value < 10 else f"{value:.0f}"
        axes.annotate(
            text,
            (position, value),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            fontsize=8,
            color=INK,
        )


def _areas(axes: Axes, depth: np.ndarray, height: np.ndarray, pull: np.ndarray) -> None:
    edges = np.append(depth - 0.5, depth[-1] + 0.5)
    for direction, rows in (("push", ~pull), ("pull", pull)):
        if rows.any():
            axes.stairs(
                np.where(rows, height, np.nan),
                edges,
                fill=True,
                facecolor=COLOR[direction],
                edgecolor="white",
                hatch=HATCH[direction],
                linewidth=0,
            )


def _legend(axes: Axes, pull: np.ndarray, *, areas: bool) -> None:
    """The legend of colours and bars, in one row above the data."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Artist] = [
        Patch(facecolor=COLOR[d], edgecolor="white", linewidth=0, hatch=HATCH[d], label=d)
        for d, present in (("push", not pull.all()), ("pull", pull.any()))
        if present
    ]
    handles += [
        Patch(facecolor=GREY, edgecolor="none", label="frontier (vertices)"),
        Line2D([], [], color=INK, linewidth=1.2, label="edges looked at")
        if areas
        else Patch(facecolor="white", edgecolor=GREY, label="edges looked at"),
    ]
    legend_above(axes, handles=handles)
