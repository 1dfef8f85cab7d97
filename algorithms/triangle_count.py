"""Triangles."""

from __future__ import annotations

from ..checks import square
from ..containers import Matrix, MatrixLike
from ..operations import ewise_add, select
from ..operations.triangles import triangles
from ..semirings import binary, indexunary


def triangle_count(A: MatrixLike) -> int:
    """How many triangles the graph has: sets of three vertices with an edge between each two.

    `A` is a square Matrix or what `Matrix` can be made from, and means an undirected graph: i and j
    have an edge where A[i, j] or A[j, i] is there, one edge where both are. Of a directed matrix
    that is the graph without the directions, so that a directed cycle of three vertices is a
    triangle. Values are not looked at; loops are no edges.

    Raises DimensionMismatch for an A that is not square.

    Source: Azad, Buluc, Gilbert, "Parallel triangle counting and enumeration using matrix algebra"
    (2015); the order by degree: Chiba and Nishizeki, "Arboricity and subgraph listing algorithms"
    (1985).

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_dense([[0, 1, 1, 0], [1, 0, 1, 1], [1, 1, 0, 1], [0, 1, 1, 0]])
    >>> sg.triangle_count(A)
    2
    """
    return triangles(pattern_both_ways("triangle_count", A))


def undirected(name: str, A: MatrixLike) -> Matrix:
    """A's edges both ways, without loops; their values mean nothing."""
    simple = select(pattern_both_ways(name, A), indexunary.offdiag)
    simple.symmetric = True
    return simple


def pattern_both_ways(name: str, A: MatrixLike) -> Matrix:
    """A's edges both ways; their values mean nothing."""
    A = square(name, A)
    if A.symmetric and A.iso and A.dtype == bool:
        return A  # what is found out about a graph is kept with its Matrix
    pattern = A.pattern()
    if not A.symmetric:
        back = A._T.pattern()
        if not pattern.isequal(back):  # most graphs have each edge both ways
            pattern = ewise_add(pattern, back, binary.lor)
        pattern.symmetric = True
    return pattern
