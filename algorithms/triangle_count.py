"""Triangles."""

from __future__ import annotations

import functools

import numpy as np

from ..containers import Matrix, MatrixLike
from ..operations import apply, ewise_add, mxm, reduce, select
from ..semirings import IndexUnaryOp, binary, indexunary, plus_pair
from .vertices import square


def triangle_count(A: MatrixLike) -> int:
    """How many triangles the graph has: sets of three vertices with an edge between each two.

    `A` is a square Matrix or what `Matrix` can be made from, and means an undirected graph: i and j
    have an edge where A[i, j] or A[j, i] is there, one edge where both are. Of a directed matrix
    that is the graph without the directions, so that a directed cycle of three vertices is a
    triangle. Values are not looked at; loops are no edges. DimensionMismatch for an A that is not
    square.

    Source: Azad, Buluc, Gilbert, "Parallel triangle counting and enumeration using matrix algebra"
    (2015); the order by degree: Chiba and Nishizeki, "Arboricity and subgraph listing algorithms"
    (1985).

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_dense([[0, 1, 1, 0], [1, 0, 1, 1], [1, 1, 0, 1], [0, 1, 1, 0]])
    >>> sg.triangle_count(A)
    2
    """
    L = _upward(undirected("triangle_count", A))
    # C<L> = L plus.pair L': at each edge the third vertices that both its ends are joined to
    return int(reduce(mxm(L, L.T, plus_pair, mask=L.S)))


def undirected(name: str, A: MatrixLike) -> Matrix:
    """The pattern of A's edges both ways, without loops."""
    A = square(name, A)
    pattern = A.pattern()
    if not A.symmetric:
        pattern = ewise_add(pattern, A.T.pattern(), binary.lor)
        pattern.symmetric = True
    simple = select(pattern, indexunary.offdiag)
    simple.symmetric = True
    return simple


def _upward(A: Matrix) -> Matrix:
    """The edges that lead to a vertex of higher degree, or of the same and a lesser number.

    There the row of a vertex holds its neighbours of higher degree, and these are few: at most
    sqrt(2 m) among m entries.
    """
    height = apply(A.row_degrees().astype(np.int64), degree_and_vertex(), right=A.nrows)
    return A._where(lambda a, x, y: x < y, height)


@functools.cache
def degree_and_vertex() -> IndexUnaryOp:
    """(degree, -vertex) as one number, below n^2."""
    return IndexUnaryOp.define(lambda d, i, j, n: d * n + (n - 1 - i), "degree_and_vertex")
