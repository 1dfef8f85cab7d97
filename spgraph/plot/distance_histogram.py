"""Plot the number of vertices at each distance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spgraph.containers import Vector
from spgraph.plot.style import BLUE, INK, blank, counted, headline, new_figure, quiet, vector

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# with more distances than this, or with fractions, a bar is an interval
BARS = 60
# if the highest bar is this many times the lowest, the axis of counts is logarithmic
STEEP = 100
# up to so many bars are labelled with their counts
LABELS = 10


def distance_histogram(v: Vector, *, title: str | None = None) -> Figure:
    """A matplotlib Figure of the number of vertices at each distance.

    `v` is a Vector of numbers on any device, such as the level of `bfs` or the distance of `sssp`.
    A vertex without an entry, or with an infinite one or NaN, is unreached; the title gives their
    number. Integers in a range of up to 61 have a bar each; otherwise a bar is an interval. The
    axis of counts is logarithmic if the highest bar is a hundred times the lowest.
    `title` replaces that title.

    Raises DomainMismatch for anything but a Vector, BackendUnavailable if matplotlib is missing.

    >>> import spgraph as sg
    >>> level = sg.Vector.from_coo([0, 1, 2], [0, 1, 1], size=5)
    >>> sg.plot.distance_histogram(level).axes[0].get_title(loc="left")
    '3 of 5 vertices reached, 2 unreached; the farthest at 1'
    """
    v = vector("distance_histogram", "v", v)
    values = v.to_coo()[1]
    values = values[np.isfinite(values)]
    figure = new_figure(3.6)
    from matplotlib.ticker import MaxNLocator

    axes = figure.subplots()
    if values.size:
        counts, edges = intervals(values)
        widths = np.diff(edges)
        bars = axes.bar(
            edges[:-1], counts, widths, align="edge", color=BLUE, edgecolor="white", zorder=2
        )
        if counts.size <= LABELS:
            labels = [f"{count:,}" if count else "" for count in counts]
            axes.bar_label(bars, labels, padding=2, fontsize=8, color=INK)
            if (widths == 1).all():
                axes.set_xticks(edges[:-1] + 0.5)
        low = counts[counts > 0].min()
        if counts.max() >= STEEP * low:
            axes.set_yscale("log")
            axes.set_ylim(0.7, counts.max() * 2)
        else:
            axes.set_ylim(0, counts.max() * 1.1)
            axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_formatter("{x:,.0f}")
        if widths[0] > 1 and whole(values):
            axes.set_xlabel(f"distance, in intervals of {widths[0]:,.0f}")
    else:
        blank(axes)
    axes.set_xlabel(axes.get_xlabel() or "distance")
    axes.set_ylabel("vertices")
    quiet(axes)
    missing = v.size - values.size
    text = f"{values.size:,} of {counted(v.size, 'vertex', 'vertices')} reached"
    text += f", {missing:,} unreached" if missing else ""
    text += f"; the farthest at {values.max():,.6g}" if values.size else ""
    headline(axes, title or text)
    return figure


def intervals(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(counts, edges) of at most 61 intervals of equal width, an integer width for integers."""
    if not whole(values):
        found = values.astype(np.float64)
        ends = found.min(), found.max()
        if ends[1] - ends[0] > 4 * BARS * np.spacing(np.abs(ends).max()):
            return np.histogram(found, BARS)
        # they differ by rounding, which leaves no room for so many
        return np.histogram(found, 1, (ends[0] - 0.5, ends[1] + 0.5))
    low, high = int(values.min()), int(values.max())
    width = max(-(-(high - low) // BARS), 1)
    # integers are subtracted as uint64, where the difference of any two values of int64 is exact
    kind = values.dtype if values.dtype.kind == "f" else np.dtype(np.uint64)
    steps = (values.astype(kind) - values.min().astype(kind)) // kind.type(width)
    counts = np.bincount(steps.astype(np.int64))
    return counts, low - 0.5 + width * np.arange(counts.size + 1.0)


def whole(values: np.ndarray) -> bool:
    """Whether all values are integers, of whatever type."""
    return values.dtype.kind != "f" or bool((values == np.floor(values)).all())
