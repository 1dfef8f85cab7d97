"""What there is to say of a result, by its kind: a summary, the --top rows, a picture."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from spgraph.cli.options import MATRICES, VERTICES
from spgraph.containers import Matrix, Vector

Figure = Any  # of matplotlib, which is there with the extra `plot` only
Parts = dict[str, Any]  # the Vectors, the Matrix or the number of a result, by name, on the CPU
Record = dict[str, Any]  # what JSON holds of a result or a part of it
Columns = dict[str, np.ndarray]  # rows to print or to write


ENDS = ("source", "target")  # the rows and columns of a graph, as `Ids.label` calls them


class Kind(NamedTuple):
    """What the command line makes of a result. None: the kind has no such option."""

    summary: Callable[[Parts], Record]
    # the rows of --top by the name of what they are ordered by; `best` says in words which they are
    top: Callable[[Parts, int], dict[str, Columns]] | None = None
    best: str = ""
    picture: Callable[[Parts], Figure] | None = None
    drawn: str = "a histogram of {name}"
    suffixes: tuple[str, ...] = VERTICES
    ends: tuple[str, str] = ENDS  # what the rows and columns of a Matrix are


def first(parts: Parts) -> tuple[str, Any]:
    """Name and value of the part that a result is about; the others, like parents, go with it."""
    return next(iter(parts.items()))


def columns(parts: Parts, ends: tuple[str, str] = ENDS) -> Columns:
    """A row for each vertex with an entry: its number and what each part says of it. Of a Matrix a
    row for each entry, between `ends`; of a pattern, whose values are all True, without its value.
    """
    name, value = first(parts)
    if isinstance(value, Matrix):
        titles = ends if value.iso and value.dtype == bool else (*ends, name)
        return dict(zip(titles, value.to_coo(), strict=False))
    return {"vertex": value.to_coo()[0]} | {name: part.to_coo()[1] for name, part in parts.items()}


def extremes(rows: Columns, key: str, count: int, *, largest: bool) -> Columns:
    """The rows of the largest or least `key`, best first, equal ones in their own order."""
    value = rows[key]
    if largest:  # reversed twice, for a negative would overflow and truth values have none
        order = value.size - 1 - np.argsort(value[::-1], kind="stable")[::-1]
    else:
        order = np.argsort(value, kind="stable")
    return {name: column[order[:count]] for name, column in rows.items()}


def spread(values: np.ndarray) -> Record:
    """Least, mean and largest."""
    if not values.size:
        return {"least": None, "mean": None, "largest": None}
    mean = values.mean(dtype=np.float64).item()
    return {"least": values.min().item(), "mean": mean, "largest": values.max().item()}


def histogram(v: Vector, what: str, title: str | None = None) -> Figure:
    from spgraph import plot

    figure = plot.distance_histogram(v, title=title)
    figure.axes[0].set_xlabel(what)
    return figure


# --- distances, widths: vertices that are not reached have no entry -------------------------------


def _reached(parts: Parts) -> Record:
    name, value = first(parts)
    return {"reached": value.nvals, name: spread(value.to_coo()[1])}


def _best(parts: Parts, count: int, *, largest: bool) -> dict[str, Columns]:
    name = first(parts)[0]
    return {name: extremes(columns(parts), name, count, largest=largest)}


def _distances(parts: Parts) -> Figure:
    name, value = first(parts)
    return histogram(value, name)


def _widths(parts: Parts) -> Figure:
    name, value = first(parts)
    title = f"{name} of {value.nvals:,} vertices reached, {value.size - value.nvals:,} unreached"
    return histogram(value, name, title)


nearest = Kind(_reached, partial(_best, largest=False), "vertices of least {name}", _distances)
widest = Kind(_reached, partial(_best, largest=True), "vertices of largest {name}", _widths)


# --- scores: a number for each vertex -------------------------------------------------------------


def _spreads(parts: Parts) -> Record:
    return {name: spread(part.to_coo()[1]) for name, part in parts.items()}


def _winners(parts: Parts, count: int) -> dict[str, Columns]:
    rows = columns(parts)
    return {name: extremes(rows, name, count, largest=True) for name in parts}


def _scores(parts: Parts) -> Figure:
    name, value = first(parts)
    return histogram(value, name, f"{name} of {value.nvals:,} vertices")


scores = Kind(_spreads, _winners, "vertices of largest {name}", _scores)


# --- groups: vertices with the same label belong together -----------------------------------------


def _groups(parts: Parts) -> tuple[str, np.ndarray, np.ndarray]:
    name, label = first(parts)
    return name, *np.unique(label.to_coo()[1], return_counts=True)


def _sizes(parts: Parts) -> Record:
    name, _, sizes = _groups(parts)
    return {f"{name}s": sizes.size, "vertices_of_each": spread(sizes)}


def _largest_groups(parts: Parts, count: int) -> dict[str, Columns]:
    name, labels, sizes = _groups(parts)
    rows = {name: labels, "vertices": sizes}
    return {name: extremes(rows, "vertices", count, largest=True)}


def _group_sizes(parts: Parts) -> Figure:
    name, _, sizes = _groups(parts)
    title = f"{sizes.size:,} {name}s, the largest of {sizes.max(initial=0):,} vertices"
    figure = histogram(Vector.from_dense(sizes), f"vertices of a {name}", title)
    figure.axes[0].set_ylabel(f"{name}s")
    return figure


groups = Kind(
    _sizes, _largest_groups, "largest {name}s", _group_sizes, "a histogram of the sizes of {name}s"
)


# --- sets, matrices, numbers ----------------------------------------------------------------------


def _members(parts: Parts) -> np.ndarray:
    vertex, chosen = first(parts)[1].to_coo()
    return vertex[chosen]


def _size_of_set(parts: Parts) -> Record:
    return {"vertices": _members(parts).size}


def _first_members(parts: Parts, count: int) -> dict[str, Columns]:
    return {first(parts)[0]: {"vertex": _members(parts)[:count]}}


members = Kind(_size_of_set, _first_members, "vertices of least number where {name} is true")


def _entries(parts: Parts) -> Record:
    name, A = first(parts)
    values = A.expanded_values()
    return {"edges": A.nvals, "total": values.sum().item(), name: spread(values)}


def _pairs(parts: Parts) -> Record:
    name, A = first(parts)
    return {"pairs": A.nvals, name: spread(A.expanded_values())}


def _best_entries(
    parts: Parts, count: int, *, ends: tuple[str, str] = ENDS, largest: bool
) -> dict[str, Columns]:
    name, A = first(parts)
    rows = dict(zip((*ends, name), A.to_coo(), strict=True))
    return {name: extremes(rows, name, count, largest=largest)}


def _pattern(parts: Parts) -> Figure:
    from spgraph import plot

    return plot.spy(first(parts)[1])


def _levels(parts: Parts) -> Figure:
    name, A = first(parts)
    values = Vector.from_dense(A.expanded_values())
    searches, vertices = A.shape
    title = f"{A.nvals:,} of {searches:,} x {vertices:,} pairs of source and vertex have a path"
    figure = histogram(values, name, title)
    figure.axes[0].set_ylabel("pairs of source and vertex")
    return figure


edges = Kind(
    _entries,
    partial(_best_entries, largest=True),
    "edges of largest {name}",
    _pattern,
    "the pattern of the matrix",
    MATRICES,
)
SEARCHES = ("search", "vertex")
levels = Kind(
    _pairs,
    partial(_best_entries, ends=SEARCHES, largest=False),
    "pairs of search (from 0, as in --sources) and vertex of least {name}",
    _levels,
    suffixes=MATRICES,
    ends=SEARCHES,
)

number = Kind(dict, suffixes=())

__all__ = ["Kind", "columns", "edges", "groups", "levels", "members", "nearest", "number", "scores"]
__all__ += ["widest"]
