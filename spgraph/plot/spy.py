"""Plot the positions of the entries of a matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spgraph.containers import Matrix, MatrixLike
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
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# squares along the longer side, of about two pixels each
CELLS = 400
# up to so many rows and columns white lines separate the squares
SEPARATE = 50
# the largest ratio of the sides of the picture, whatever that of the matrix
LONGEST = 3


def spy(A: MatrixLike, *, title: str | None = None) -> Figure:
    """A matplotlib Figure of the positions at which A has entries, row 0 at the top.

    Up to 400 rows or columns each entry is a square. In a larger matrix a square covers several
    rows and columns, and its colour is their density, the ratio of entries to positions, on a
    logarithmic scale. `A` is a Matrix of any shape and size on any device, or anything that
    converts to one; the memory needed depends on the number of squares only. Explicit zeros are
    entries. `title` replaces the one that says the shape.

    Raises DomainMismatch for anything else, BackendUnavailable if matplotlib is missing.

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
    side = WIDTH - 2.0  # less labels and colour bar
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
    """(entries, positions) of each square; the squares divide rows and columns evenly."""
    rows, columns = (np.arange(min(n, CELLS) + 1) for n in A.shape)
    # square k begins at the least i whose i * squares // n is k
    tops, lefts = (
        -(-cuts * n // max(cuts.size - 1, 1))
        for cuts, n in zip((rows, columns), A.shape, strict=True)
    )
    counts = np.zeros((rows.size - 1, columns.size - 1), np.int64)
    # one row of squares at a time, to bound the memory: there may be billions of entries
    for k in range(counts.shape[0]):
        slab = A._indices[A._indptr[tops[k]] : A._indptr[tops[k + 1]]].astype(np.int64)
        cell = slab * counts.shape[1] // max(A.ncols, 1)
        counts[k] = np.bincount(cell, minlength=counts.shape[1])
    return counts, np.diff(tops)[:, None] * np.diff(lefts)


def _image(figure: Figure, axes: Axes, A: Matrix, counts: np.ndarray, cells: np.ndarray) -> None:
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
    # at least a factor of ten, or a band matrix, of equal densities, would be drawn pale
    least = min(share.min() or 1, most / 10)
    blues = LinearSegmentedColormap.from_list("blues", ["#BBD9EC", BLUE, "#00243A"])
    image = axes.imshow(share, cmap=blues, norm=LogNorm(least, most), **options)
    bar = figure.colorbar(image, ax=axes, shrink=0.8, pad=0.02, aspect=25)
    log_ticks(bar.ax.yaxis, least, most)
    bar.set_label("density", color=INK, fontsize=9)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=9, labelcolor=INK)
