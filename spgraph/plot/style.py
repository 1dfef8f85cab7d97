"""What all plots share: conversion of arguments, colours, figures, axes, numbers as text."""

from __future__ import annotations

import io
import textwrap
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from spgraph.checks import vectors_in
from spgraph.containers import Matrix, MatrixLike, Vector, as_matrix
from spgraph.errors import BackendUnavailable, DomainMismatch
from spgraph.process import lazy_imports

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

# Okabe and Ito's palette: distinguishable with every kind of colour vision
BLUE, VERMILION = "#0072B2", "#D55E00"
SERIES = (BLUE, VERMILION, "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
# as many shapes, so that series differ in more than colour
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
INK, GREY, FAINT = "#222222", "#777777", "#D9D9D9"
WIDTH = 7.2  # inches; fits a notebook and a page
DPI = 150


def matrix(name: str, A: MatrixLike) -> Matrix:
    """A as a Matrix on the CPU, copied from a GPU or gathered from shards if necessary."""
    try:
        return as_matrix(A).to("cpu")
    except DomainMismatch as error:
        raise DomainMismatch(f"{name}: {error}") from None


def vector(name: str, argument: str, v: object) -> Vector:
    """v as a Vector on the CPU, copied from a GPU or gathered from shards if necessary."""
    if not isinstance(v, Vector):
        remedy = vectors_in(v) or "; sg.Vector(x) makes one of a list or an array"
        raise DomainMismatch(
            f"{name}: {argument}: expected a Vector, got {type(v).__name__}{remedy}"
        )
    return v.to("cpu")


def require_matplotlib() -> tuple[type[Figure], type[FigureCanvasAgg]]:
    """matplotlib's classes (Figure, FigureCanvasAgg); BackendUnavailable if it is not installed."""
    try:
        with lazy_imports.whole():
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure
    except ImportError as error:
        raise BackendUnavailable(
            "plot: pictures need matplotlib, which is not installed: pip install 'spgraph[plot]'"
        ) from error
    return Figure, FigureCanvasAgg


def new_figure(height: float, *, width: float = WIDTH) -> Figure:
    """An empty figure without a window, made without pyplot and its global state; inches."""
    figure_class, canvas_class = require_matplotlib()
    figure = figure_class(figsize=(width, height), dpi=DPI, layout="constrained")
    canvas_class(figure)
    # notebooks display figures that pyplot did not make only if they have this method
    figure._repr_png_ = partial(_png, figure)  # type: ignore[attr-defined]
    return figure


def _png(figure: Figure) -> tuple[bytes, dict[str, int]]:
    """(PNG image, the size in pixels at which a notebook displays it): smaller than the image, to
    be sharp on screens of high resolution.
    """
    file = io.BytesIO()
    figure.savefig(file, format="png")
    width, height = (round(100 * inches) for inches in figure.get_size_inches())
    return file.getvalue(), {"width": width, "height": height}


def headline(axes: Axes, text: str, *, pad: float = 8) -> None:
    """Set the title, left-aligned above the data, wrapped to the width of the figure."""
    # about twelve characters to an inch, of which the labels at the left take some
    figure: Any = axes.figure
    width = int(11.5 * (figure.get_size_inches()[0] - 0.8))
    axes.set_title(textwrap.fill(text, width), loc="left", fontsize=11, color=INK, pad=pad)


def quiet(axes: Axes, *, grid: Literal["both", "x", "y"] = "y") -> None:
    """Style axes: a light grid under the data, no frame."""
    axes.grid(axis=grid, color=FAINT, linewidth=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color("#888888")
    inked(axes)


def inked(axes: Axes) -> None:
    """Style axes: dark labels, no tick marks."""
    axes.tick_params(axis="both", which="both", length=0, labelsize=9, labelcolor=INK)
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)


def log_ticks(axis: Axis, low: float, high: float) -> None:
    """Set the ticks of a logarithmic axis for data from `low` to `high`: powers of ten, and 2 and 5
    times them where there are few powers.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    if high < 9 * low:  # room for a number on each side
        axis.set_view_interval(low / 1.6, high * 1.6, ignore=True)
    if high < 100 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(FuncFormatter(plain))
    axis.set_minor_locator(NullLocator())


def plain(x: float, place: float | None = None) -> str:
    """The label of a tick: '5,000', '0.02'; below 0.001 with a power of ten."""
    if x >= 1e-3:
        return f"{x:,.6g}"
    digits, _, power = f"{x:.0e}".partition("e")
    return rf"${digits}\times10^{{{int(power)}}}$"


def blank(axes: Axes) -> None:
    """Remove the ticks of axes without data."""
    axes.set_xticks([])
    axes.set_yticks([])


def legend_above(axes: Axes, **options: object) -> None:
    """Place the legend in one row between title and data; `headline` needs pad=26 for it."""
    legend = axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1.0),
        ncols=20,
        frameon=False,
        fontsize=9,
        handlelength=1.4,
        borderaxespad=0.2,
        columnspacing=1.4,
        **options,
    )
    for text in legend.get_texts():
        text.set_color(INK)


def counted(number: int, one: str, several: str = "") -> str:
    """'1 vertex', '1,024 vertices'."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"
