"""Breadth-first searches from several vertices."""

from __future__ import annotations

import numpy as np

from ..checks import square
from ..containers import Matrix, MatrixLike
from ..containers.annotations import Vertices
from ..iterations import levels
from .vertices import vertices


def multi_source_bfs(A: MatrixLike, sources: Vertices) -> Matrix:
    """The levels of breadth-first searches from several vertices: a k x n Matrix on A's device.

    L[i, v] is the number of edges on a shortest path from sources[i] to v; there is no entry where
    there is no path, and L[i, sources[i]] == 0 is one. The values are signed integers.

    Parameters:
        sources: the vertices to start from, from 0.

    `A` is a square Matrix or what `Matrix` can be made from, whose values are not looked at;
    `sources` is a vertex or a sequence of k vertices in any order, which may be empty.

    Raises DimensionMismatch for an A that is not square, IndexOutOfBound for a source outside of
    it, DomainMismatch for one that is no integer.

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 1, 3], [1, 2, 2], nrows=4, ncols=4)
    >>> sorted(sg.multi_source_bfs(A, [3, 0]))
    [(0, 2, 1), (0, 3, 0), (1, 0, 0), (1, 1, 1), (1, 2, 2)]
    """
    A = square("multi_source_bfs", A)
    vertices("multi_source_bfs", A, sources)  # refuses what is wrong
    return levels(A, np.atleast_1d(np.asarray(sources)).astype(np.int64))
