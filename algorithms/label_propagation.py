"""Communities by label propagation."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..containers import Matrix, Vector
from ..containers.arrays import Array, array_module, index_dtype
from ..errors import ConvergenceError
from ..iterations.power import limits
from ..operations import apply, assign, extract, mxm, reduce_rowwise
from ..semirings import binary, monoid, plus_pair
from .greedy_color import greedy_color
from .triangle_count import undirected


def label_propagation(A: Any, *, max_iter: int = 100, seed: int | None = None) -> Vector:
    """The community of every vertex: a full Vector of A.nrows labels, each the number of a vertex.
    No other label is more frequent among a vertex's neighbours than its own.

    `A` is a square Matrix or what `Matrix` can be made from. Edges count whichever way they point,
    once, and their values are not looked at; loops are no edges. `seed`, an integer >= 0, gives the
    same labels on every device; None draws other ones at every call.

    At first every vertex is its own label. A sweep goes through the colours of `greedy_color`, one
    after the other; all vertices of a colour take the label most frequent among their neighbours:
    their own if it is one of these, else the least. All vertices at once would exchange their
    labels for ever, in a star for one; neighbours are never at it together here, so that each
    change makes more neighbours equal, and the sweeps end. `max_iter` bounds them.

    Raises DimensionMismatch for an A that is not square, ValueError for a max_iter that is no
    integer >= 0, ConvergenceError, with the labels reached, if the last sweep still changes some.

    Source: Raghavan, Albert, Kumara, "Near linear time algorithm to detect community structures in
    large-scale networks" (2007); by colours: Cordasco and Gargano, "Community detection via
    semi-synchronous label propagation algorithms" (2010).

    Two triangles and a bridge:

    >>> import spgraph as sg
    >>> from spgraph.algorithms.label_propagation import label_propagation
    >>> A = sg.Matrix.from_coo([0, 1, 2, 2, 3, 4, 5], [1, 2, 0, 3, 4, 5, 3])
    >>> label = label_propagation(A, seed=1).to_numpy()
    >>> len(set(label[:3])), len(set(label[3:])), len(set(label))
    (1, 1, 2)
    """
    A = undirected("label_propagation", A)
    limits("label_propagation", None, max_iter)
    xp, n = array_module(A.indptr), A.nrows
    classes = [(ids, extract(A, ids)) for ids in _classes(greedy_color(A, seed=seed))]
    label = Vector(n, xp.arange(n, dtype=index_dtype(n)))
    rows, one = xp.arange(n + 1, dtype=index_dtype(n)), xp.ones(1, np.int64)
    for _ in range(max_iter):
        last = label.dup()
        for ids, neighbours in classes:
            # C = N plus.pair L: C(i, l) neighbours of i have the label l, where L(v, label(v)) = 1
            L = Matrix(n, n, rows, label.values, one, iso=True)
            assign(
                label, _most(mxm(neighbours, L, plus_pair), label, ids), ids, accum=binary.second
            )
        if label.isequal(last):
            return label
    raise ConvergenceError(
        f"label_propagation: labels still change after {max_iter} sweeps; raise max_iter", label
    )


def _classes(color: Vector) -> list[Array]:
    """The vertices of each colour."""
    xp = array_module(color.values)
    order = xp.argsort(color.values, kind="stable")
    colors = color.values[order]
    return xp.split(order, (xp.flatnonzero(colors[1:] != colors[:-1]) + 1).tolist())


def _most(count: Matrix, label: Vector, ids: Array) -> Vector:
    """The label with the greatest count in each row: its own if it can, else the least of them."""
    n = count.ncols
    own = count.indices == label.values[ids][count.row_indices()]
    # (count, own, -label) as one number, below 2 n^2
    score = (2 * count.values + own) * n + (n - 1 - count.indices)
    best = reduce_rowwise(Matrix(count.nrows, n, count.indptr, count.indices, score), monoid.max)
    return apply(apply(best, binary.mod, right=n), binary.minus, left=n - 1)
