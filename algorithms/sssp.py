"""Shortest paths from one vertex."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..checks import square
from ..containers import MatrixLike, Vector
from ..containers.annotations import Position
from ..containers.storage.numbers import flags
from ..iterations import parents as carriers
from ..iterations.fixed_point import counted, least_fixed_point
from ..iterations.path_parents import path_parents, shortest_paths, with_paths
from ..operations import assign
from ..semirings import min_plus
from .lengths import check_reached, in_int64
from .vertices import tree_path, vertex


class SSSP(NamedTuple):
    """The result of `sssp`; vertices that are not reached have no entry in either.

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 1], [1, 2], [4, 3], nrows=3, ncols=3)
    >>> sg.sssp(A, 0).distance.to_numpy().tolist()
    [0, 4, 7]
    """

    distance: Vector
    parent: Vector | None

    def path_to(self, v: Position) -> list[int]:
        """The vertices on a shortest path from the source to `v`, both included,
        in order; an empty list where `v` is not reached. ValueError for a result without parents.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0, 1, 0], [1, 2, 2], [4, 3, 9], nrows=4, ncols=4)
        >>> found = sg.sssp(A, 0)
        >>> found.path_to(2), found.path_to(3)
        ([0, 1, 2], [])
        """
        return tree_path("SSSP", self.parent, v)


def sssp(
    A: MatrixLike, source: Position, *, parents: bool = True, delta: float | None = None
) -> SSSP:
    """Shortest paths from one vertex: `SSSP(distance, parent)`.

    `distance[v]` is the least sum of weights along a path from `source` to v; `parent[v]` precedes
    v on such a path: of all shortest ones on one of the fewest edges, and there the vertex of least
    id; parent[source] == source. So the parents form a tree, also where weights are zero, and are
    the same on every device. Both are Vectors of A.nrows on A's device. Distances are int64 for
    weights of integers or truth values, else of the weights' own type, float32 or float64; parents
    are signed integers, and None with `parents=False`, which is faster.

    Parameters:
        source: the vertex to start from, from 0.
        parents: find the parents, too.
        delta: how far distances may lie apart to be worked on together; None: from the weights.

    `A` is a square Matrix or what `Matrix` can be made from; A[i, j] >= 0 is the length of the edge
    i -> j. The result does not depend on `delta`.

    Raises NegativeWeight for a weight below zero, ValueError for NaN, OverflowError where a
    distance exceeds int64, DimensionMismatch for an A that is not square, IndexOutOfBound for a
    `source` outside of it, DomainMismatch for one that is no integer.

    Source: Davidson, Baxter, Garland, Owens, "Work-efficient parallel GPU methods for single-source
    shortest paths" (2014); Meyer, Sanders, "Delta-stepping: a parallelizable shortest path
    algorithm" (2003).

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 0, 1, 2], [1, 2, 2, 3], [4, 9, 3, 1], nrows=5, ncols=5)
    >>> distance, parent = sg.sssp(A, 0)
    >>> distance.to_numpy(fill=-1).tolist(), parent.to_numpy(fill=-1).tolist()
    ([0, 4, 7, 8, -1], [0, 0, 1, 2, -1])
    """
    flags("sssp", parents=parents)
    A = square("sssp", A)
    source = vertex("sssp", A, source)
    A, whole = in_int64(A)
    kind = A.dtype if A.dtype.kind == "f" else np.int64
    if parents and kind != np.int64:
        return SSSP(*shortest_paths("sssp", A, source, delta))
    both = with_paths("sssp", A, source, delta) if parents and whole is None else None
    if both is not None:
        return SSSP(*both)
    start = Vector.unit(source, 0, size=A.nrows, dtype=kind, device=A.device)
    found = counted("sssp", A, start, delta) if parents else None
    # d = start min d min.plus A: the least fixed point
    if found is None:
        distance = least_fixed_point("sssp", A, start, min_plus, delta)
    else:
        distance = found.into_distance()
    check_reached("sssp", whole, start, distance)
    if found is not None:
        if found.parent is not None:
            return SSSP(distance, found.parent)
        # (d, h) = start min (d, h) min.plus (A, 1), in one integer: worse along every edge, so the
        # least of the vertices that carry it, min u: (d, h)(u) + (A(u, v), 1) == (d, h)(v), will do
        parent = carriers(A, found.value, found.semiring)
        return SSSP(distance, assign(parent, source, source))
    return SSSP(distance, path_parents(A, distance, source) if parents else None)
