"""Trusses."""

from __future__ import annotations

from ..containers import Matrix, MatrixLike
from ..containers.storage.arrays import check_extent
from ..containers.storage.numbers import is_integer
from ..errors import DomainMismatch
from ..operations import select
from ..operations.triangles import support
from ..semirings import indexunary
from .triangle_count import undirected


def k_truss(A: MatrixLike, k: int) -> Matrix:
    """The k-truss, the largest subgraph whose edges are each in k - 2 or more of its triangles: a
    symmetric Matrix of A's shape and device.

    Each edge stands both ways, with the number of its triangles in the subgraph as an int64.

    Parameters:
        k: an integer of at least 2; all edges are in the 2-truss.

    `A` is as in `triangle_count`, an undirected graph: of a directed matrix edges count whichever
    way they point, once; values are not looked at, loops are no edges. Each round removes all edges
    that are in too few triangles, and counts those of the others anew.

    Raises ValueError for a smaller k, DomainMismatch for one that is no integer, DimensionMismatch
    for an A that is not square.

    Source: Cohen, "Trusses: cohesive subgraphs for social network analysis" (2008); as a masked
    product: Davis, "Graph algorithms via SuiteSparse:GraphBLAS: triangle counting and K-truss"
    (2018).

    Four vertices with all edges, and a triangle beside them:

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 0, 0, 1, 1, 2, 3, 3, 4], [1, 2, 3, 2, 3, 3, 4, 5, 5],
    ...                        nrows=6, ncols=6)
    >>> truss = sg.k_truss(A, 4)
    >>> truss.nvals, int(truss[0, 1]), truss[3, 4]
    (12, 2, None)
    """
    if not is_integer(k):
        raise DomainMismatch(f"k_truss: k: expected an integer, got {k!r}")
    k = check_extent("k_truss: k", k, 2)
    truss = undirected("k_truss", A)
    while True:
        left = select(support(truss), indexunary.valuege, k - 2)
        left.symmetric = True
        if left.nvals == truss.nvals:
            return left
        truss = left.pattern()
        truss.symmetric = True
