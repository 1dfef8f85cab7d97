"""What all pictures share: how arguments become data, colours, figures, axes, numbers as text."""

from __future__ import annotations

import io
import textwrap
from functools import partial
from typing import TYPE_CHECKING, Any

from spgraph.containers import Matrix, Vector, as_matrix
from spgraph.errors import BackendUnavailable, DomainMismatch

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette, told apart by every kind of colour vision.
BLUE, VERMILION = "#0072B2", "#D55E00"
SERIES = (BLUE, VERMILION, "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
# as many shapes, so that a line or a point is told by more than its colour
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
INK, GREY, FAINT = "#222222", "#777777", "#D9D9D9"
WIDTH = 7.2  # inches; a notebook and a page show it without shrinking
DPI = 150


def matrix(name: str, A: Any) -> Matrix:
    """A as a Matrix of the CPU, brought home if it is elsewhere or in shards."""
    try:
        return as_matrix(A).to("cpu")
    except DomainMismatch as error:
        raise DomainMismatch(f"{name}: {error}") from None


def vector(name: str, argument: str, v: Any) -> Vector:
    """v as a Vector of the CPU, brought home if it is elsewhere or in shards."""
    if not isinstance(v, Vector):
        raise DomainMismatch(
            f"{name}: {argument}: expected a Vector, got {type(v).__name__}; "
            "Vector.from_dense and Vector.from_coo make one"
        )
    return v.to("cpu")


def require_matplotlib() -> tuple[Any, Any]:
    """matplotlib's Figure and Agg canvas, or BackendUnavailable with what to install."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise BackendUnavailable(
            "plot: pictures need matplotlib, which is not installed: pip install 'spgraph[plot]'"
        ) from error
    return Figure, FigureCanvasAgg


def new_figure(height: float, *, width: float = WIDTH) -> Figure:
    """An empty figure that belongs to no window: pyplot and its global state stay out of it."""
    figure_class, canvas_class = require_matplotlib()
    figure = figure_class(figsize=(width, height), dpi=DPI, layout="constrained")
    canvas_class(figure)
    # pyplot would have told notebooks how to show a figure
    figure._repr_png_ = partial(_png, figure)
    return figure


def _png(figure: Figure) -> tuple[bytes, dict[str, int]]:
    """The image and the size at which a notebook shows it, sharp on a dense screen too."""
    file = io.BytesIO()
    figure.savefig(file, format="png")
    width, height = (round(100 * inches) for inches in figure.get_size_inches())
    return file.getvalue(), {"width": width, "height": height}


def headline(axes: Any, text: str, *, pad: float = 8) -> None:
    """The title, at the left above the data, in as many lines as it takes."""
    # about twelve characters to an inch, of which the labels at the left take some
    width = int(11.5 * (axes.figure.get_size_inches()[0] - 0.8))
    axes.set_title(textwrap.fill(text, width), loc="left", fontsize=11, color=INK, pad=pad)


def quiet(axes: Any, *, grid: str = "y") -> None:
    """Light lines under the data, no box around it."""
    axes.grid(axis=grid, color=FAINT, linewidth=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color("#888888")
    inked(axes)


def inked(axes: Any) -> None:
    """Numbers beside the axes, no ticks."""
    axes.tick_params(axis="both", which="both", length=0, labelsize=9, labelcolor=INK)
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)


def log_ticks(axis: Any, low: float, high: float) -> None:
    """Ticks of a logarithmic axis for data from `low` to `high`: powers of ten, and numbers between
    them where those are few.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    if high < 9 * low:  # room for a number on each side
        axis.set_view_interval(low / 1.6, high * 1.6, ignore=True)
    if high < 100 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(FuncFormatter(plain))
    axis.set_minor_locator(NullLocator())


def plain(x: float, place: int | None = None) -> str:
    """A tick's text: '5,000', '0.02'; a power of ten where there would be many zeros."""
    if x >= 1e-3:
        return f"{x:,.6g}"
    digits, _, power = f"{x:.0e}".partition("e")
    return rf"${digits}\times10^{{{int(power)}}}$"


def blank(axes: Any) -> None:
    """Axes without data have no numbers beside them."""
    axes.set_xticks([])
    axes.set_yticks([])


def legend_above(axes: Any, **options: Any) -> None:
    """One row between the title and the data; `headline` needs pad=26 for it."""
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
