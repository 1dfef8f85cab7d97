"""Where the entries of a matrix are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spgraph.containers import Matrix
from spgraph.plot.style import (
    BLUE,
    INK,
    WIDTH,
    blank,
    counted,
    headline,
    inked,
    log_ticks,
    matrix,
    new_figure,
    require_matplotlib,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# cells along the longer side: about two dots of the image each
CELLS = 400
# up to here white lines tell neighbouring squares apart
SEPARATE = 50
# a matrix longer than this many times its other side is drawn as if it were not
LONGEST = 3


def spy(A: Any, *, title: str | None = None) -> Figure:
    """A matplotlib Figure of the places where A has entries, row 0 at the top.

    Up to 400 rows or columns each entry is a square of its own. Beyond, a square stands for several
    rows and columns, and its colour gives the density, entries by positions, on a logarithmic
    scale. `A` is a Matrix of any shape and size on any device, or what one can be made
    from; the picture takes memory for the squares only. Explicit zeros count as entries.

    Raises DomainMismatch for what is no matrix, BackendUnavailable where matplotlib is missing.

    >>> import spgraph as sg
    >>> figure = sg.plot.spy(sg.generators.kronecker(10))
    >>> figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()
    ('column', 'row')
    """
    A = matrix("spy", A)
    require_matplotlib()
    from matplotlib.ticker import MaxNLocator

    counts, cells = counts_by_cell(A)
    dense = counts.size > 0 and cells.max() > 1
    across = min(max(A.ncols, 1) / max(A.nrows, 1), LONGEST)
    across = max(across, 1 / LONGEST)
    side = WIDTH - 2.0  # what the labels and the colour bar leave
    width, height = side * min(across, 1), side * min(1 / across, 1)
    figure = new_figure(height + 0.9, width=max(width, 1.6) + (2.0 if dense else 1.0))
    axes = figure.subplots()
    axes.set_xlim(-0.5, max(A.ncols, 1) - 0.5)
    axes.set_ylim(max(A.nrows, 1) - 0.5, -0.5)
    if counts.size:
        _image(figure, axes, A, counts, cells)
        for axis, inches in ((axes.xaxis, width), (axes.yaxis, height)):
            axis.set_major_locator(MaxNLocator(nbins=max(int(inches), 2), integer=True))
            axis.set_major_formatter("{x:,.0f}")
    else:
        blank(axes)
    axes.set_box_aspect(height / width)
    axes.set_xlabel("column")
    axes.set_ylabel("row")
    inked(axes)
    axes.spines[:].set_color("#AAAAAA")
    entries = counted(A.nvals, "entry", "entries")
    headline(axes, title or f"{A.nrows:,} x {A.ncols:,}, {entries}")
    return figure


def counts_by_cell(A: Matrix) -> tuple[np.ndarray, np.ndarray]:
    """(entries, positions) of each square of the picture: rows and columns shared out evenly."""
    rows, columns = (np.arange(min(n, CELLS) + 1) for n in A.shape)
    # square k begins at the least i whose i * squares // n is k
    tops, lefts = (
        -(-cuts * n // max(cuts.size - 1, 1))
        for cuts, n in zip((rows, columns), A.shape, strict=True)
    )
    counts = np.zeros((rows.size - 1, columns.size - 1), np.int64)
    # a slab of rows at a time: there may be thousands of millions of entries
    for k in range(counts.shape[0]):
        slab = A._indices[A._indptr[tops[k]] : A._indptr[tops[k + 1]]].astype(np.int64)
        cell = slab * counts.shape[1] // max(A.ncols, 1)
        counts[k] = np.bincount(cell, minlength=counts.shape[1])
    return counts, np.diff(tops)[:, None] * np.diff(lefts)


def _image(figure: Any, axes: Any, A: Matrix, counts: np.ndarray, cells: np.ndarray) -> None:
    from matplotlib.colors import LinearSegmentedColormap, ListedColormap, LogNorm

    options: dict[str, Any] = {"aspect": "auto", "interpolation": "nearest"}
    options["extent"] = (-0.5, A.ncols - 0.5, A.nrows - 0.5, -0.5)
    share = np.ma.masked_equal(counts / cells, 0)
    if cells.max() == 1:
        axes.imshow(share, cmap=ListedColormap([BLUE]), **options)
        if max(A.shape) <= SEPARATE:
            axes.set_xticks(np.arange(A.ncols - 1) + 0.5, minor=True)
            axes.set_yticks(np.arange(A.nrows - 1) + 0.5, minor=True)
            axes.grid(which="minor", color="white", linewidth=1.2)
        return
    most = share.max() or 1
    # at least a factor of ten, or a band, whose squares are all alike, would be pale
    least = min(share.min() or 1, most / 10)
    blues = LinearSegmentedColormap.from_list("blues", ["#BBD9EC", BLUE, "#00243A"])
    image = axes.imshow(share, cmap=blues, norm=LogNorm(least, most), **options)
    bar = figure.colorbar(image, ax=axes, shrink=0.8, pad=0.02, aspect=25)
    log_ticks(bar.ax.yaxis, least, most)
    bar.set_label("density", color=INK, fontsize=9)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=9, labelcolor=INK)
