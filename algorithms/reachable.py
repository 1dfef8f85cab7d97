"""What can be reached."""

from __future__ import annotations

from ..checks import square
from ..containers import MatrixLike, Vector
from ..containers.annotations import Vertices
from ..iterations import search
from ..operations import assign
from ..semirings import any_pair
from .vertices import vertices


def reachable(A: MatrixLike, sources: Vertices) -> Vector:
    """The vertices that can be reached from any of `sources`: True at each, no entry elsewhere.

    A Vector of A.nrows truth values on A's device; a source is reached from itself. `A` is a square
    Matrix or what `Matrix` can be made from, whose values are not looked at; `sources` is a vertex
    or a sequence of vertices, which may be empty.

    Parameters:
        sources: the vertices to start from, from 0.

    Raises DimensionMismatch for an A that is not square, IndexOutOfBound for a source outside of
    it, DomainMismatch for one that is no integer.

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 1, 3], [1, 2, 2], nrows=4, ncols=4)
    >>> sg.reachable(A, [0]).to_coo()[0].tolist()
    [0, 1, 2]
    """
    A = square("reachable", A)
    first = vertices("reachable", A, sources)
    visited = Vector.empty(A.nrows, bool, device=A.device)
    start = Vector.from_coo(first, True, size=A.nrows, device=A.device)
    # q<!level> = q any.pair A; visited<level> = true
    level = search(A, start, any_pair).level
    return assign(visited, True, mask=level.S)
