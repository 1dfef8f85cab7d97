"""Triangles."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..containers import Matrix
from ..containers.arrays import array_module
from ..operations import ewise_add, extract, mxm, reduce
from ..operations import select as select_entries
from ..semirings import binary, plus_pair, select
from .vertices import square


def triangle_count(A: Any) -> int:
    """How many triangles the graph has: sets of three vertices with an edge between each two.

    `A` is a square Matrix or what `Matrix` can be made from. Edges count whichever way they point,
    once, and their values are not looked at; loops are no edges. DimensionMismatch for an A that is
    not square.

    Source: Azad, Buluc, Gilbert, "Parallel triangle counting and enumeration using matrix algebra"
    (2015); the order by degree: Chiba and Nishizeki, "Arboricity and subgraph listing algorithms"
    (1985).

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_dense([[0, 1, 1, 0], [1, 0, 1, 1], [1, 1, 0, 1], [0, 1, 1, 0]])
    >>> sg.triangle_count(A)
    2
    """
    L = _lower_by_degree(undirected("triangle_count", A))
    # C<L> = L plus.pair L': at each edge the third vertices that both its ends are joined to
    return int(reduce(mxm(L, L.T, plus_pair, mask=L.S)))


def undirected(name: str, A: Any) -> Matrix:
    """The pattern of A's edges both ways, without loops."""
    A = square(name, A)
    pattern = A.pattern()
    if not A.symmetric:
        pattern = ewise_add(pattern, A.T.pattern(), binary.lor)
        pattern.symmetric = True
    simple = select_entries(pattern, select.offdiag)
    simple.symmetric = True
    return simple


def _lower_by_degree(A: Matrix) -> Matrix:
    """The lower triangle of A with the vertices in the order of falling degrees.

    There the row of a vertex holds its neighbours of higher degree, and these are few: at most
    sqrt(2 m) among m entries.
    """
    xp = array_module(A.indptr)
    order = xp.argsort(A.indptr[:-1] - A.indptr[1:], kind="stable")
    L = select_entries(extract(A, order, order), select.tril, -1)
    ones = xp.ones(1, np.int64)
    return Matrix(A.nrows, A.ncols, L.indptr, L.indices, ones, iso=True)
