"""Local clustering coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..containers import Vector
from ..operations import assign, ewise_mult, mxm, reduce_rowwise
from ..semirings import binary, plus_pair
from .triangle_count import undirected


def clustering(A: Any) -> Vector:
    """The clustering coefficient of every vertex: the share of the pairs of its neighbours that
    have an edge between them. A full Vector of float64, 0 where there are fewer than two
    neighbours.

    `A` is as in `triangle_count`, an undirected graph: of a directed matrix edges count whichever
    way they point, once (NetworkX has a coefficient of its own for directed graphs); loops do not.
    DimensionMismatch for an A that is not square.

    Source: Watts and Strogatz, "Collective dynamics of small-world networks" (1998).

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_dense([[0, 1, 1, 0], [1, 0, 1, 1], [1, 1, 0, 1], [0, 1, 1, 0]])
    >>> sg.clustering(A).to_numpy().round(3).tolist()
    [1.0, 0.667, 0.667, 1.0]
    """
    A = undirected("clustering", A)
    # C<A> = A plus.pair A: at each edge the third vertices, so that a row counts a triangle twice
    triangles = reduce_rowwise(mxm(A, A, plus_pair, mask=A.S))
    pairs = A.row_degrees()._with_values(lambda d: np.maximum(d * (d - 1.0), 1.0))
    coefficient = Vector.filled(0.0, size=A.nrows, device=A.device)
    assign(coefficient, ewise_mult(triangles, pairs, binary.truediv), mask=triangles.S)
    return coefficient
