"""Plot the number of vertices of each degree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spgraph.containers import MatrixLike
from spgraph.plot.style import (
    MARKERS,
    SERIES,
    blank,
    counted,
    headline,
    legend_above,
    log_ticks,
    matrix,
    new_figure,
    quiet,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def degree_distribution(A: MatrixLike, *, title: str | None = None) -> Figure:
    """A matplotlib Figure of the number of vertices of each degree, both axes logarithmic.

    Out-degrees (entries per row) and in-degrees (entries per column) are two series if their
    distributions differ. Vertices of degree 0 have no place on a logarithmic axis: the legend
    gives their number. `A` is a Matrix on any device, or anything that converts to one;
    `title` replaces the one that says its size.

    Raises DomainMismatch for anything else, BackendUnavailable if matplotlib is missing.

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 0], [1, 2], nrows=3, ncols=3)
    >>> axes = sg.plot.degree_distribution(A).axes[0]
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['out-degree (2 vertices have 0)', 'in-degree (1 vertex has 0)']
    """
    A = matrix("degree_distribution", A)
    figure = new_figure(4.4)
    axes = figure.subplots()
    leaving = np.bincount(np.diff(A._indptr))
    entering = leaving if A.symmetric else np.bincount(np.bincount(A._indices, minlength=A.ncols))
    series = {"out-degree": leaving, "in-degree": entering}
    if np.array_equal(leaving, entering):
        series = {"degree": leaving}
    for (name, vertices), color, marker in zip(series.items(), SERIES, MARKERS, strict=False):
        degrees = np.flatnonzero(vertices[1:]) + 1
        alone = int(vertices[0]) if vertices.size else 0
        none = f" ({counted(alone, 'vertex has', 'vertices have')} 0)" if alone else ""
        axes.plot(
            degrees,
            vertices[degrees],
            marker,
            markersize=4 if degrees.size > 30 else 7,
            color=color,
            markeredgewidth=0,
            alpha=0.7,
            label=name + none,
            zorder=2,
        )
    if A.nvals:
        axes.set_xscale("log")
        axes.set_yscale("log")
        points = [line.get_data() for line in axes.lines]
        for axis, data in zip((axes.xaxis, axes.yaxis), zip(*points, strict=True), strict=True):
            drawn = np.concatenate(data)
            log_ticks(axis, float(drawn.min()), float(drawn.max()))
    else:
        blank(axes)
    axes.set_xlabel("degree")
    axes.set_ylabel("vertices")
    quiet(axes, grid="both")
    legend_above(axes)
    text = f"{counted(A.nrows, 'vertex', 'vertices')}, {counted(A.nvals, 'edge')}"
    text += f": {A.nvals / A.nrows:.3g} a vertex" if A.nrows else ""
    headline(axes, title or text, pad=26)
    return figure
