"""Breadth-first search."""

from __future__ import annotations

from typing import Literal, NamedTuple, overload

from ..checks import square
from ..containers import MatrixLike, Vector
from ..containers.annotations import Direction, Position
from ..containers.storage.numbers import flags
from ..iterations import Level
from ..iterations.level_search import search_checked
from ..semirings import any_pair, min_secondi
from .vertices import tree_path, vertex


class BFS(NamedTuple):
    """The result of `bfs`; vertices that are not reached have no entry in either.

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 1], [1, 2], nrows=3, ncols=3)
    >>> sg.bfs(A, 0).level.to_numpy().tolist()
    [0, 1, 2]
    """

    level: Vector
    parent: Vector | None

    def path_to(self, v: Position) -> list[int]:
        """The vertices on a path of the fewest edges from the source to `v`, both included,
        in order; an empty list where `v` is not reached. ValueError for a result without parents.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0, 1, 0], [1, 2, 2], nrows=4, ncols=4)
        >>> found = sg.bfs(A, 0)
        >>> found.path_to(2), found.path_to(3)
        ([0, 2], [])
        """
        return tree_path("BFS", self.parent, v)


class TracedBFS(NamedTuple):
    """The result of `bfs` with a trace, which has a `Level` for each level.

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 1], [1, 2], nrows=3, ncols=3)
    >>> [row.frontier for row in sg.bfs(A, 0, trace=True, direction="push").trace]
    [1, 1, 1]
    """

    level: Vector
    parent: Vector | None
    trace: list[Level]

    def path_to(self, v: Position) -> list[int]:
        """The vertices on a path of the fewest edges from the source to `v`, both included,
        in order; an empty list where `v` is not reached. ValueError for a result without parents.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0, 1, 0], [1, 2, 2], nrows=4, ncols=4)
        >>> found = sg.bfs(A, 0, trace=True)
        >>> found.path_to(2), found.path_to(3)
        ([0, 2], [])
        """
        return tree_path("TracedBFS", self.parent, v)


@overload
def bfs(
    A: MatrixLike,
    source: Position,
    *,
    parents: bool = True,
    direction: Direction = "auto",
    max_depth: int | None = None,
    trace: Literal[False] = False,
) -> BFS: ...


@overload
def bfs(
    A: MatrixLike,
    source: Position,
    *,
    parents: bool = True,
    direction: Direction = "auto",
    max_depth: int | None = None,
    trace: Literal[True],
) -> TracedBFS: ...


def bfs(
    A: MatrixLike,
    source: Position,
    *,
    parents: bool = True,
    direction: Direction = "auto",
    max_depth: int | None = None,
    trace: bool = False,
) -> BFS | TracedBFS:
    """Breadth-first search from one vertex: `BFS(level, parent)`.

    `level[v]` is the number of edges on a shortest path from `source` to v, `parent[v]` the vertex
    of least id that precedes v on one, and parent[source] == source: the same on every device and
    in every direction. Both are Vectors of A.nrows on A's device, of signed integers; `parent` is
    None with `parents=False`, which is faster.

    Parameters:
        source: the vertex to start from, from 0.
        parents: find the parents, too.
        direction: "push" goes from the frontier, "pull" from the unvisited; "auto" takes the
          cheaper, level by level.
        max_depth: the last level; None: no bound.
        trace: give a row for each level, too.

    `A` is a square Matrix or what `Matrix` can be made from; A[i, j] is the edge i -> j, its value
    is not looked at. "pull" looks along the transpose, which a Matrix keeps. With `trace` the
    result is `TracedBFS(level, parent, trace)`: for each level its direction, how many vertices its
    frontier has, how many edges were looked at, and the time, as `iterations.Level`. It costs a
    second run of the search.

    Raises DimensionMismatch for an A that is not square, IndexOutOfBound for a `source` outside of
    it, DomainMismatch for one that is no integer.

    Source: Beamer, Asanovic, Patterson, "Direction-optimizing breadth-first search" (2012); as
    linear algebra: Kepner and Gilbert (eds.), "Graph Algorithms in the Language of Linear Algebra"
    (2011).

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 0, 1, 2], [1, 2, 3, 3], nrows=5, ncols=5)
    >>> level, parent = sg.bfs(A, 0)
    >>> level.to_numpy(fill=-1).tolist(), parent.to_numpy(fill=-1).tolist()
    ([0, 1, 1, 2, -1], [0, 0, 0, 1, -1])
    >>> rows = sg.bfs(A, 0, direction="push", trace=True).trace
    >>> [(row.depth, row.direction, row.frontier) for row in rows]
    [(0, 'push', 1), (1, 'push', 2), (2, 'push', 1)]
    """
    flags("bfs", parents=parents, trace=trace)
    A = square("bfs", A)
    source = vertex("bfs", A, source)
    start = Vector.unit(source, source, size=A.nrows, dtype=A.index_dtype, device=A.device)
    # q<!level> = q min.secondi A: the least vertex of the frontier that has an edge to it
    semiring = min_secondi if parents else any_pair
    level, parent, rows = search_checked("bfs", A, start, semiring, direction, max_depth, trace)
    return BFS(level, parent) if rows is None else TracedBFS(level, parent, rows)
