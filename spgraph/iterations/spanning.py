"""spanning_forest: the least entries that connect what a Matrix connects."""

from __future__ import annotations

import functools

import numpy as np

from spgraph.containers import Matrix, Vector
from spgraph.iterations.contraction import contract
from spgraph.operations import apply, assign, ewise_add, extract, reduce_rowwise, select
from spgraph.semirings import IndexUnaryOp, binary, indexunary, monoid
from spgraph.steps import backend


def spanning_forest(A: Matrix) -> Matrix:
    """The entries of A of least total value that connect what A connects, whichever way edges
    point: a Matrix of A's shape and type. Of entries of equal value the first by (i, j) is
    preferred; loops are left out. `A` is square and has no NaN.

    >>> import spgraph as sg
    >>> from spgraph.iterations.spanning import spanning_forest
    >>> A = sg.Matrix.from_coo([0, 0, 1], [1, 2, 2], [4, 9, 3], nrows=3, ncols=3)
    >>> list(spanning_forest(A))
    [(0, 1, 4), (1, 2, 3)]
    """
    fused = getattr(backend(A.device), "spanning_forest", None)
    found = fused(A) if fused else None
    return composed(A) if found is None else found


def composed(A: Matrix) -> Matrix:
    """`spanning_forest` made of operations. In each round every component joins its nearest one.

    Source: Boruvka, "O jistem problemu minimalnim" (1926).
    """
    # of the two equal entries of a symmetric matrix only the first can be chosen
    A = select(A, *((indexunary.triu, 1) if A.symmetric else (indexunary.offdiag,)))
    is_pattern = A.iso and A._value_range() == (1, 1)
    tree = Matrix.empty(A.nrows, A.ncols, A.dtype, device=A.device)
    component = Vector.arange(A.nrows, device=A.device)
    while A.nvals:
        tree = ewise_add(tree, _nearest(A, component), binary.first)
        component = contract(tree)
        A = A._where(lambda a, x, y: x != y, component)
    return tree.pattern(A.dtype) if is_pattern else tree


def _nearest(A: Matrix, component: Vector) -> Matrix:
    """The entries of A that join each component to another: the first by (value, row, column)."""
    from_row, from_column = _lightest(A, component)
    first = _least(_places(from_row), _places(from_column), component)
    n, vertex = A.nrows, Vector.arange(A.nrows, dtype=np.int64, device=A.device)
    return ewise_add(
        from_row._where(lambda a, x, i, y, j: i * n + j == x, first, vertex),
        from_column._where(lambda a, x, i, y, j: i * n + j == y, first, vertex),
        binary.first,
    )


def _lightest(A: Matrix, component: Vector) -> tuple[Matrix, Matrix]:
    """The entries of least value of their row's component, and of their column's."""
    if A.iso:
        return A, A
    least = _least(A, A, component)
    A = A._where(lambda a, x, y: (a == x) | (a == y), least)
    return A._where(lambda a, x, y: a == x, least), A._where(lambda a, x, y: a == y, least)


def _least(R: Matrix, C: Matrix, component: Vector) -> Vector:
    """For every vertex the least value in its component's rows of R and columns of C."""
    most = monoid.min.resolve(R.dtype).identity
    least = Vector.filled(most, size=R.nrows, dtype=R.dtype, device=R.device)
    for M in (R, C.T):
        # l(c) = the least over all entries of c
        assign(least, reduce_rowwise(M, monoid.min), component, accum=binary.min)
    return extract(least, component)


def _places(A: Matrix) -> Matrix:
    """The entries of A, of values that rise row by row."""
    return apply(A.pattern(np.int64), place(), right=A.nrows)


@functools.cache
def place() -> IndexUnaryOp:
    return IndexUnaryOp.define(lambda x, i, j, n: i * n + j, "place")
