"""Widest paths from one vertex."""

from __future__ import annotations

from typing import NamedTuple

from ..checks import square
from ..containers import MatrixLike, Vector
from ..containers.annotations import Position
from ..containers.storage.numbers import flags
from ..iterations.fixed_point import least_fixed_point
from ..iterations.path_parents import path_tree
from ..semirings import max_min, monoid
from .vertices import tree_path, vertex


class WidestPath(NamedTuple):
    """The result of `widest_path`; vertices that are not reached have no entry in either.

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 1], [1, 2], [4, 3], nrows=3, ncols=3)
    >>> sg.widest_path(A, 0).width.to_numpy().tolist()[1:]
    [4, 3]
    """

    width: Vector
    parent: Vector | None

    def path_to(self, v: Position) -> list[int]:
        """The vertices on a widest path from the source to `v`, both included,
        in order; an empty list where `v` is not reached. ValueError for a result without parents.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0, 1, 0], [1, 2, 2], [4, 3, 2], nrows=4, ncols=4)
        >>> found = sg.widest_path(A, 0)
        >>> found.path_to(2), found.path_to(3)
        ([0, 1, 2], [])
        """
        return tree_path("WidestPath", self.parent, v)


def widest_path(
    A: MatrixLike, source: Position, *, parents: bool = True, delta: float | None = None
) -> WidestPath:
    """Widest (bottleneck) paths from one vertex: `WidestPath(width, parent)`.

    The width of a path is the least weight on it; `width[v]` is the greatest width of a path from
    `source` to v, of the type of `A`; that of `source` itself is the greatest value of the type
    (inf, True). `parent` and the other arguments are those of `sssp`; weights may have any sign.

    Parameters:
        source: the vertex to start from, from 0.
        parents: find the parents, too.
        delta: how far widths may lie apart to be worked on together; None: from the weights.

    Raises ValueError for NaN, DimensionMismatch, IndexOutOfBound and DomainMismatch as `sssp` does.

    Source: Pollack, "The maximum capacity through a network" (1960); as a closed semiring: Aho,
    Hopcroft, Ullman, "The Design and Analysis of Computer Algorithms" (1974).

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 0, 1], [1, 2, 2], [7.0, 2.0, 5.0], nrows=3, ncols=3)
    >>> width, parent = sg.widest_path(A, 0)
    >>> width.to_numpy().tolist(), parent.to_numpy().tolist()
    ([inf, 7.0, 5.0], [0, 0, 1])
    """
    flags("widest_path", parents=parents)
    A = square("widest_path", A)
    source = vertex("widest_path", A, source)
    # the identity of min: no edge narrows it yet
    unbounded = monoid.min.resolve(A.dtype).identity
    start = Vector.unit(source, unbounded, size=A.nrows, dtype=A.dtype, device=A.device)
    # w = start max w max.min A: the least fixed point
    width = least_fixed_point("widest_path", A, start, max_min, delta)
    if not parents:
        return WidestPath(width, None)
    # along the edges with min(w(i), A(i, j)) == w(j)
    return WidestPath(width, path_tree(A, width, max_min, source))
