"""Local clustering coefficients."""

from __future__ import annotations

import functools

from ..containers import MatrixLike, Vector
from ..operations import ewise_union, reduce_rowwise
from ..operations.triangles import support
from ..semirings import BinaryOp
from .triangle_count import undirected


def clustering(A: MatrixLike) -> Vector:
    """The clustering coefficient of every vertex: the share of the pairs of its neighbours that
    have an edge between them. A full Vector of float64, 0 where there are fewer than two
    neighbours.

    `A` is as in `triangle_count`, an undirected graph: of a directed matrix edges count whichever
    way they point, once (NetworkX has a coefficient of its own for directed graphs); loops do not.

    Raises DimensionMismatch for an A that is not square.

    Source: Watts and Strogatz, "Collective dynamics of small-world networks" (1998).

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_dense([[0, 1, 1, 0], [1, 0, 1, 1], [1, 1, 0, 1], [0, 1, 1, 0]])
    >>> sg.clustering(A).to_numpy().round(3).tolist()
    [1.0, 0.667, 0.667, 1.0]
    """
    A = undirected("clustering", A)
    # a triangle counts at both of its edges in a row; vertices without neighbours have no entry
    return ewise_union(
        reduce_rowwise(support(A)), A.row_degrees(), share_of_pairs(), left=0, right=0
    )


@functools.cache
def share_of_pairs() -> BinaryOp:
    """t / (d (d - 1)), and 0 of a vertex with d < 2 neighbours, which is in no triangle."""
    return BinaryOp.define(lambda t, d: t / (d * (d - 1) + (d < 2)), "share_of_pairs")
