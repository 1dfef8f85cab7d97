"""Most reliable paths from one vertex."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..checks import square
from ..containers import MatrixLike, Vector
from ..containers.annotations import Position
from ..containers.storage.numbers import flags
from ..iterations.fixed_point import least_fixed_point
from ..iterations.path_parents import path_tree
from ..semirings import max_times
from .vertices import tree_path, vertex


class MostReliablePath(NamedTuple):
    """The result of `most_reliable_path`; vertices that are not reached have no entry in either.

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 1], [1, 2], [0.5, 0.5], nrows=3, ncols=3)
    >>> sg.most_reliable_path(A, 0).reliability.to_numpy().tolist()
    [1.0, 0.5, 0.25]
    """

    reliability: Vector
    parent: Vector | None

    def path_to(self, v: Position) -> list[int]:
        """The vertices on a most reliable path from the source to `v`, both included,
        in order; an empty list where `v` is not reached. ValueError for a result without parents.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0, 1, 0], [1, 2, 2], [0.5, 0.5, 0.1], nrows=4, ncols=4)
        >>> found = sg.most_reliable_path(A, 0)
        >>> found.path_to(2), found.path_to(3)
        ([0, 1, 2], [])
        """
        return tree_path("MostReliablePath", self.parent, v)


def most_reliable_path(
    A: MatrixLike, source: Position, *, parents: bool = True, delta: float | None = None
) -> MostReliablePath:
    """Most reliable paths from one vertex: `MostReliablePath(reliability, parent)`.

    A[i, j], from 0 to 1, is the probability that the edge i -> j works, independently of the
    others. `reliability[v]` is the greatest product of them along a path from `source` to v: of
    A's type if that is float32, else float64; that of `source` itself is 1. `parent` and the other
    arguments are those of `sssp`.

    Parameters:
        source: the vertex to start from, from 0.
        parents: find the parents, too.
        delta: how far reliabilities, as sums of logarithms, may lie apart to be worked on together;
          None: from the weights.

    Raises ValueError for values that are NaN or not from 0 to 1; DimensionMismatch, IndexOutOfBound
    and DomainMismatch as `sssp` does.

    Source: the closed semiring ([0, 1], max, times) of Aho, Hopcroft, Ullman, "The Design and
    Analysis of Computer Algorithms" (1974).

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 0, 1], [1, 2, 2], [0.5, 0.1, 0.5], nrows=3, ncols=3)
    >>> reliability, parent = sg.most_reliable_path(A, 0)
    >>> reliability.to_numpy().tolist(), parent.to_numpy().tolist()
    ([1.0, 0.5, 0.25], [0, 0, 1])
    """
    flags("most_reliable_path", parents=parents)
    A = square("most_reliable_path", A)
    source = vertex("most_reliable_path", A, source)
    kind = A.dtype if A.dtype.kind == "f" else np.float64
    start = Vector.unit(source, 1, size=A.nrows, dtype=kind, device=A.device)
    # r = start max r max.times A: the least fixed point
    reliability = least_fixed_point("most_reliable_path", A, start, max_times, delta)
    if not parents:
        return MostReliablePath(reliability, None)
    # along the edges with r(i) * A(i, j) == r(j)
    return MostReliablePath(reliability, path_tree(A, reliability, max_times, source))
