"""Minimum spanning trees."""

from __future__ import annotations

from ..checks import square
from ..containers import Matrix, MatrixLike
from ..iterations.spanning import spanning_forest


def minimum_spanning_tree(A: MatrixLike) -> Matrix:
    """The edges of least total weight that connect what A connects: a Matrix of A's shape and type
    that holds the chosen entries of A, one fewer than a component has vertices.

    `A` is a square Matrix or what `Matrix` can be made from, and means an undirected graph: of a
    directed matrix edges connect whichever way they point, so that what is found need not lead from
    any one vertex to all others. Where A[i, j] and A[j, i] are both there, the lesser counts. Of
    entries of equal weight the first by (i, j) is preferred, so that the tree is the same on every
    device. An entry of value 0 is an edge of weight 0 (scipy.sparse.csgraph.minimum_spanning_tree
    leaves it out); loops are no edges.

    Every round at least halves the number of components: each joins its nearest one.

    Raises DimensionMismatch for an A that is not square, ValueError for NaN.

    Source: Boruvka, "O jistem problemu minimalnim" (1926).

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 0, 1, 2], [1, 2, 2, 3], [4, 9, 3, 1], nrows=5, ncols=5)
    >>> list(sg.minimum_spanning_tree(A))
    [(0, 1, 4), (1, 2, 3), (2, 3, 1)]
    """
    A = square("minimum_spanning_tree", A)
    if A.dtype.kind == "f" and A._value_range()[0] != A._value_range()[0]:
        raise ValueError("minimum_spanning_tree: A: expected weights that can be compared, got NaN")
    return spanning_forest(A)
