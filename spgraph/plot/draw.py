"""Draw a small graph as points and lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from spgraph.containers import Matrix, MatrixLike, Vector
from spgraph.errors import BackendUnavailable, DimensionMismatch, not_square
from spgraph.plot.style import (
    GREY,
    INK,
    counted,
    headline,
    matrix,
    new_figure,
    require_matplotlib,
    vector,
)
from spgraph.process import lazy_imports

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# vertices beyond which a drawing is illegible
LARGEST = 500
# components of up to so many vertices are laid out by Kamada and Kawai's method, of cost n**3
EXACT = 100
# up to so many vertices are labelled with their ids
NAMED = 40
# up to so many distinct integers have a colour and a label each in the colour bar
TONES = 12
PLAIN = "#56B4E9"
SIDE = 5.6  # inches: the longer side


def draw(
    A: MatrixLike,
    values: Vector | None = None,
    *,
    positions: npt.ArrayLike | None = None,
    names: Sequence[Any] | None = None,
    title: str | None = None,
) -> Figure:
    """A matplotlib Figure of a graph of at most 500 vertices, coloured by the entries of a Vector.

    `A` is a square Matrix or anything that converts to one, `values` a Vector of size n; both on
    any device. A vertex without a finite entry in `values` is hollow; without `values` all vertices
    have one colour. Up to 40 vertices are labelled with their ids, or with `names`: a list, an
    array, or the `Ids` of `from_edges`. An edge without its opposite is an arrow, a self-loop a
    ring.

    `positions` is an n x 2 array of x and y. Without it NetworkX (extra `networkx`) lays out each
    component, of up to 100 vertices by graph distances (Kamada and Kawai), larger ones by springs
    (Fruchterman and Reingold). `title` replaces the one that says the graph's size.

    Raises DimensionMismatch for sizes that differ, ValueError for a graph of more than 500
    vertices, BackendUnavailable if matplotlib is missing, or NetworkX without `positions`.

    >>> import spgraph as sg
    >>> A = sg.generators.grid(3, 3)
    >>> figure = sg.plot.draw(A, sg.bfs(A, 0).level)
    >>> figure.axes[0].get_title(loc="left")
    '9 vertices, 12 edges'
    """
    A = matrix("draw", A)
    n = A.nrows
    if n != A.ncols:
        raise not_square("draw", n, A.ncols)
    if n > LARGEST:
        raise ValueError(
            f"draw: A: expected at most {LARGEST} vertices, got {n}; draw a part, A[ids, ids] for "
            "an array ids of vertices, or the whole by spgraph.plot.spy"
        )
    if values is not None:
        values = vector("draw", "values", values)
        if values.size != n:
            raise DimensionMismatch(f"draw: values.size {values.size} != A.nrows {n}")
    labels = None if names is None else _labels(names, n)
    require_matplotlib()  # before the layout, which may take seconds
    points = _placed(A) if positions is None else _given(positions, n)
    # in the units of the drawing, whose longer side spans -1 to 1
    radius = 0.055 if n <= NAMED else 0.32 / np.sqrt(n)
    figure, axes = _blank(points, radius, bar=0.0 if values is None else 0.8)
    rows, columns, _ = A.to_coo()
    lines = _edges(axes, points, rows, columns, radius)
    colors = _vertices(figure, axes, points, values, radius)
    if labels is not None and n <= NAMED:
        _names_above(axes, points, labels, radius)
    elif n <= NAMED:
        _ids_within(axes, points, colors)
    hollow = 0 if values is None else n - colored(values)[0].size
    text = f"{counted(n, 'vertex', 'vertices')}, {counted(lines, 'edge')}"
    headline(axes, title or text + (f"; {hollow} without a value" if hollow else ""))
    return figure


def _blank(points: np.ndarray, radius: float, bar: float) -> tuple[Figure, Axes]:
    """A Figure for the points, with `bar` inches for a colour bar."""
    across, down = np.maximum(np.abs(points).max(axis=0, initial=0), 0.3)
    figure = new_figure(SIDE * down + 0.4, width=max(SIDE * across, 3.0) + 0.2 + bar)
    axes = figure.subplots()
    axes.set_aspect("equal", anchor="W")
    axes.set_axis_off()
    axes.set_xlim(-across - 1.5 * radius, across + 1.5 * radius)
    axes.set_ylim(-down - 1.5 * radius, down + 2.2 * radius)
    return figure, axes


def _placed(A: Matrix) -> np.ndarray:
    """Positions by NetworkX, for each weak component alone; the components are put side by side."""
    try:
        with lazy_imports.whole():
            import networkx
            import scipy.optimize  # noqa: F401 (NetworkX's first layout imports it)
    except ImportError as error:
        raise BackendUnavailable(
            "draw: laying out the vertices needs NetworkX, which is not installed: "
            "pip install 'spgraph[networkx]', or give positions="
        ) from error
    G = networkx.from_scipy_sparse_array(A.pattern().to_scipy(copy=False).astype(np.int8))
    parts = [sorted(part) for part in networkx.connected_components(G)]
    parts.sort(key=lambda part: (-len(part), part[0]))
    places = []
    for part in parts:
        H = G.subgraph(part).copy()
        if len(part) <= EXACT:
            found = networkx.kamada_kawai_layout(H)
        else:
            # springs start from a spectral layout, perturbed: vertices of equal neighbours coincide
            laplacian = networkx.laplacian_matrix(H, nodelist=part).toarray()
            start = _fitted(np.linalg.eigh(laplacian)[1][:, 1:3])
            start += np.random.default_rng(1).normal(0, 0.01, start.shape)
            found = networkx.spring_layout(H, pos=dict(zip(part, start, strict=True)), seed=1)
        places.append(_fitted(np.array([found[v] for v in part])) * np.sqrt(len(part)) / 2)
    points = np.empty((A.nrows, 2))
    points[[v for part in parts for v in part]] = _packed(places)
    return _fitted(points)


def _packed(parts: list[np.ndarray]) -> np.ndarray:
    """The points of all parts in one array; parts are placed in rows without overlap."""
    gap = 0.6
    spans = [np.ptp(part, axis=0) + gap for part in parts]
    wide = max([1.1 * np.sqrt(sum(w * h for w, h in spans)), *(w for w, _ in spans)], default=0)
    x = y = tall = 0.0
    placed = [np.empty((0, 2))]
    for part, (w, h) in zip(parts, spans, strict=True):
        if x and (x + w > wide or 3 * h < tall):
            x, y, tall = 0.0, y - tall, 0.0
        placed.append(part - (part.min(axis=0)[0], part.max(axis=0)[1]) + (x, y))
        x, tall = x + w, max(tall, h)
    return np.concatenate(placed)


def _given(positions: npt.ArrayLike, n: int) -> np.ndarray:
    try:
        points = np.asarray(positions, np.float64)
    except (TypeError, ValueError):
        points = np.empty(0)
    if points.shape != (n, 2) or not np.isfinite(points).all():
        got = f"shape {points.shape}" if points.size else repr(type(positions).__name__)
        raise DimensionMismatch(
            f"draw: positions: expected {n} rows of a finite x and y, got {got}"
        )
    return _fitted(points)


def _fitted(points: np.ndarray) -> np.ndarray:
    """The points moved and scaled into the square from -1 to 1, keeping the aspect ratio."""
    if not points.size:
        return points
    low, high = points.min(axis=0), points.max(axis=0)
    half = (high - low).max() / 2
    return (points - (low + high) / 2) / (half or 1)


def _edges(
    axes: Axes, points: np.ndarray, rows: np.ndarray, columns: np.ndarray, radius: float
) -> int:
    """Draw lines, arrows and rings; returns how many."""
    from matplotlib.collections import EllipseCollection, LineCollection

    n = len(points)
    keys = rows.astype(np.int64) * n + columns
    both = np.isin(columns.astype(np.int64) * n + rows, keys)
    line = both & (rows < columns)
    arrow = ~both
    loop = rows == columns
    color, width = (GREY, 1.0) if len(keys) < 3000 else ("#AAAAAA", 0.5)
    ends = np.stack([points[rows], points[columns]], axis=1)
    axes.add_collection(LineCollection(list(ends[line]), colors=color, linewidths=width, zorder=1))
    if arrow.any():
        tail, head = ends[arrow, 0], ends[arrow, 1]
        length = np.linalg.norm(head - tail, axis=1, keepdims=True)
        # from rim to rim
        along = (head - tail) / np.where(length > 0, length, 1)
        reach = np.maximum(length - 2 * radius, 0.2 * radius)
        axes.quiver(
            *(tail + along * radius).T,
            *(along * reach).T,
            angles="xy",
            units="xy",
            scale_units="xy",
            scale=1,
            width=0.005,
            headwidth=7,
            headlength=8,
            headaxislength=7,
            color=color,
            zorder=1,
        )
    if loop.any():
        at = points[rows[loop]] + (0, 1.3 * radius)
        size = np.full(len(at), 1.6 * radius)
        axes.add_collection(
            EllipseCollection(
                size,
                size,
                np.zeros(len(at)),
                units="xy",
                offsets=at,
                offset_transform=axes.transData,
                facecolors="none",
                edgecolors=color,
                linewidths=width,
                zorder=1,
            )
        )
    return int(line.sum() + arrow.sum() + loop.sum())


def _vertices(
    figure: Figure, axes: Axes, points: np.ndarray, values: Vector | None, radius: float
) -> np.ndarray:
    """The colours of the vertices that were drawn."""
    from matplotlib.collections import EllipseCollection
    from matplotlib.colors import to_rgba

    n = len(points)
    colors = np.array([to_rgba(PLAIN if values is None else "white")] * n).reshape(n, 4)
    if values is not None:
        held, entries = colored(values)
        if held.size:
            colors[held] = _tones(figure, axes, entries)
    axes.add_collection(
        EllipseCollection(
            np.full(n, 2 * radius),
            np.full(n, 2 * radius),
            np.zeros(n),
            units="xy",
            offsets=points,
            offset_transform=axes.transData,
            facecolors=colors,
            edgecolors=INK,
            linewidths=0.8 if n <= 100 else 0.5,
            zorder=2,
        )
    )
    return colors


def _labels(names: Any, n: int) -> list[str]:
    """A text for each vertex."""
    labels = list(map(str, names))
    if len(labels) != n:
        raise DimensionMismatch(
            f"draw: names: expected one for each of {n} vertices, got {len(labels)}"
        )
    return labels


def _names_above(axes: Axes, points: np.ndarray, labels: list[str], radius: float) -> None:
    """Names do not fit into the circles; edges behind them are pale."""
    from matplotlib.patheffects import withStroke

    for (x, y), label in zip(points, labels, strict=True):
        axes.text(
            x,
            y + 1.1 * radius,
            label,
            ha="center",
            va="bottom",
            fontsize=9,
            color=INK,
            parse_math=False,  # a $ in a name is no mathematics
            path_effects=[withStroke(linewidth=3, foreground="white")],
            zorder=3,
        )


def _ids_within(axes: Axes, points: np.ndarray, colors: np.ndarray) -> None:
    for vertex, (x, y) in enumerate(points):
        dark = colors[vertex, :3] @ (0.299, 0.587, 0.114) < 0.5
        axes.text(
            x,
            y,
            str(vertex),
            ha="center",
            va="center_baseline",
            fontsize=9,
            color="white" if dark else INK,
            zorder=3,
        )


def colored(values: Vector) -> tuple[np.ndarray, np.ndarray]:
    """(vertices, entries) of the finite entries."""
    held, entries = values.to_coo()
    finite = np.isfinite(entries)
    return held[finite], entries[finite]


def _tones(figure: Figure, axes: Axes, entries: np.ndarray) -> np.ndarray:
    """The colour of each entry; draws the colour bar."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, Colormap, ListedColormap, Normalize

    viridis = colormaps["viridis"]
    distinct, rank = np.unique(entries, return_inverse=True)
    options: dict[str, Any] = {}
    shades: Colormap
    scale: Normalize
    if distinct.size <= TONES and (distinct == np.floor(distinct)).all():
        shades = ListedColormap(viridis(np.linspace(0, 1, distinct.size)))
        scale = BoundaryNorm(np.arange(distinct.size + 1) - 0.5, distinct.size)
        tones, options = shades(rank), {"ticks": np.arange(distinct.size)}
    else:
        shades, scale = viridis, Normalize(float(distinct[0]), float(distinct[-1]))
        tones = shades(scale(entries.astype(np.float64)))
    bar = figure.colorbar(ScalarMappable(scale, shades), ax=axes, shrink=0.7, pad=0.01, **options)
    if options:
        bar.ax.set_yticklabels([f"{value:.6g}" for value in distinct.astype(np.float64)])
        bar.ax.minorticks_off()
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=9, labelcolor=INK)
    return tones
