"""sweep_labels: vertices that take the label of most of their neighbours, colour by colour."""

from __future__ import annotations

import functools

import numpy as np

from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import Array
from spgraph.operations import (
    apply,
    assign,
    diag,
    ewise_union,
    extract,
    mxm,
    reduce_rowwise,
    select,
)
from spgraph.semirings import BinaryOp, IndexUnaryOp, binary, indexunary, monoid, plus_first
from spgraph.steps import backend


def sweep_labels(A: Matrix, color: Vector, sweeps: int) -> tuple[Vector, bool]:
    """(the label of every vertex, a full Vector of integers; whether the last sweep left all as
    they were), after at most `sweeps` of them.

    `A` is a symmetric pattern without loops, `color` a full Vector of integers from 0, which differ
    between neighbours. At first every vertex is its own label. A sweep goes through the colours:
    all vertices of one take the label that is most frequent among their neighbours; of several such
    labels they keep their own, or else take the least.

    >>> import spgraph as sg
    >>> from spgraph.iterations.labels import sweep_labels
    >>> color = sg.Vector.from_dense([0, 1, 0, 1])
    >>> label, settled = sweep_labels(sg.generators.grid(1, 4), color, 9)
    >>> label.to_numpy().tolist(), settled
    ([1, 1, 1, 1], True)
    """
    return getattr(backend(A.device), "sweep_labels", composed)(A, color, sweeps)


def composed(A: Matrix, color: Vector, sweeps: int) -> tuple[Vector, bool]:
    """`sweep_labels` made of operations."""
    own = diag(Vector.filled(1, size=A.nrows, dtype=np.int64, device=A.device))
    # an edge counts 1 + 1 and a vertex's own label 0 + 1, so that it decides among equals
    votes = ewise_union(A.pattern(np.int64), own, binary.plus, left=0, right=1)
    classes = [(ids, extract(votes, ids)) for ids in _classes(color)]
    label = Vector.arange(A.nrows, device=A.device)
    for _ in range(sweeps):
        last = label.dup()
        for ids, neighbours in classes:
            # C = N plus.first L: the votes of the neighbours of i for l, where L(v, label(v)) = 1
            C = mxm(neighbours, Matrix._from_columns(label, ncols=A.nrows), plus_first)
            assign(label, _most(C).astype(label.dtype), ids)
        if label.isequal(last):
            return label, True
    return label, False


def _classes(color: Vector) -> list[Array]:
    """The vertices of each colour."""
    colors = range(int(color._value_range()[1]) + 1) if color.size else ()
    return [select(color, indexunary.valueeq, c).to_coo()[0] for c in colors]


def _most(votes: Matrix) -> Vector:
    """The label with the most votes in each row, the least of them."""
    n = votes.ncols
    best = reduce_rowwise(apply(votes, votes_and_label(), right=n), monoid.max)
    return apply(best, label_of(), right=n)


@functools.cache
def votes_and_label() -> IndexUnaryOp:
    """(votes, -label) as one number, below 2 n^2."""
    return IndexUnaryOp.define(lambda x, i, j, n: x * n + (n - 1 - j), "votes_and_label")


@functools.cache
def label_of() -> BinaryOp:
    """The label in such a number."""
    return BinaryOp.define(lambda x, n: n - 1 - x % n, "label_of")
