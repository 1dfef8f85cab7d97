"""Searches from many sources, each for itself: their levels; and, forward and back again, how much
every vertex carries of the shortest paths.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from spgraph import checks
from spgraph.containers import Matrix, MatrixLike, Vector
from spgraph.containers.storage.arrays import as_array, index_dtype, move
from spgraph.errors import DimensionMismatch, DomainMismatch, IndexOutOfBound
from spgraph.iterations.level_search import search
from spgraph.operations import apply, assign, ewise_add, ewise_mult, mxv, reduce, select, vxm
from spgraph.semirings import any_pair, binary, indexunary, monoid, plus_first, plus_second
from spgraph.steps import backend

# levels that are looked at together
BATCH = 1 << 26
# numbers of paths beyond which float64 loses digits of their reciprocals
MOST_PATHS = 1e300


def dependencies(A: MatrixLike, sources: Sequence[int] | np.ndarray) -> Vector:
    """The sum over the sources of their dependency on every vertex: a full Vector of float64.

    The dependency of s on v is the sum, over all vertices t, of the share of the shortest paths
    from s to t, by number of edges, that go through v; v is neither s nor t. With p(v) paths from s
    to v, found level by level by a search over plus_first, it is
    d(v) = p(v) * the sum of (1 + d(w)) / p(w) over the edges v -> w to the level behind, which is
    that search run backward over plus_second.

    `A` is a square Matrix or what `Matrix` can be made from; its values are not looked at.
    `sources` is a sequence of vertices; those that stand in it twice count twice. Directed graphs
    need the transpose, which a Matrix keeps. Relative errors are below 1e-10, whatever the number
    of paths: where float64 does not hold it, it has an exponent of its own. On the CPU the sums are
    the same from run to run; on a GPU their last bits may differ.

    Raises DimensionMismatch for an A that is not square, IndexOutOfBound for a source outside of
    it, DomainMismatch for one that is no integer.

    Source: Brandes, "A faster algorithm for betweenness centrality" (2001); several sources side by
    side as in Buluc, Gilbert, "The Combinatorial BLAS" (2011).

    >>> import spgraph as sg
    >>> from spgraph.iterations import dependencies
    >>> A = sg.Matrix.from_coo([0, 0, 1, 2, 3], [1, 2, 3, 3, 4], nrows=5, ncols=5)
    >>> dependencies(A, [0]).to_numpy().tolist()
    [0.0, 1.0, 1.0, 1.0, 0.0]
    """
    A, first = _checked("dependencies", A, sources)
    fused = getattr(backend(A.device), "dependencies", None)
    return composed(A, first) if fused is None else fused(A, A.T, first, None)


def dependencies_along(A: MatrixLike, level: Vector) -> Vector:
    """The same of one source where every path of A is a shortest one: a full Vector of float64.

    The vertex of level 0 is the source; every edge of A leads from a vertex to one of a higher
    `level`, and there are no levels in between without a vertex. So `A` may be the edges that carry
    the distances of a closure (`iterations.dag_edges`), and `level` the most edges that any
    path to a vertex has. That this is so is not tested.

    Raises DimensionMismatch for an A that is not square or a `level` of another size,
    BackendMismatch for containers on different devices.

    >>> import spgraph as sg
    >>> from spgraph.iterations import dependencies_along
    >>> A = sg.Matrix.from_coo([0, 0, 1, 2], [1, 2, 2, 3], nrows=4, ncols=4)
    >>> dependencies_along(A, sg.Vector.from_dense([0, 1, 2, 3])).to_numpy().tolist()
    [0.0, 1.0, 1.0, 0.0]
    """
    A, _ = _checked("dependencies_along", A, [])
    level = checks.vector("dependencies_along", "level", level)
    checks.same_size("dependencies_along", "level.size", level.size, "A.nrows", A.nrows)
    checks.same_device("dependencies_along", A=A, level=level)
    fused = getattr(backend(A.device), "dependencies", None)
    if fused is None:
        return composed_along(A, level)
    # which vertex it is, the levels say
    return fused(A, A.T, np.zeros(1, np.int64), level)


def levels(A: MatrixLike, sources: Sequence[int] | np.ndarray) -> Matrix:
    """The levels of a search from each of the sources: a Matrix on A's device, a row of A.nrows
    signed integers for each source, without an entry where there is no path.

    `A` is a square Matrix or what `Matrix` can be made from, `sources` a sequence of vertices.
    Raises as `dependencies` does.

    >>> import spgraph as sg
    >>> from spgraph.iterations import levels
    >>> A = sg.Matrix.from_coo([0, 1], [1, 2], nrows=3, ncols=3)
    >>> list(levels(A, [0, 1]))
    [(0, 0, 0), (0, 1, 1), (0, 2, 2), (1, 1, 0), (1, 2, 1)]
    """
    A, first = _checked("levels", A, sources)
    fused = getattr(backend(A.device), "levels", None)
    if fused is None:
        return composed_levels(A, first)
    return Matrix.from_dense(fused(A, A.T, first), missing=-1)


def level_sums(A: MatrixLike, sources: Sequence[int] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(how many vertices a search from each of the sources reaches, itself among them; the sum of
    their levels): two NumPy arrays of int64, an element for each source.

    Arguments and errors are those of `levels`, whose rows it sums without keeping them all.

    >>> import spgraph as sg
    >>> from spgraph.iterations import level_sums
    >>> A = sg.Matrix.from_coo([0, 1], [1, 2], nrows=3, ncols=3)
    >>> level_sums(A, [0, 1])
    (array([3, 2]), array([3, 1]))
    """
    A, first = _checked("level_sums", A, sources)
    visited, total = np.zeros(first.size, np.int64), np.zeros(first.size, np.int64)
    fused = getattr(backend(A.device), "levels", None)
    if fused is None:
        for k, level in enumerate(_level_of_each(A, first)):
            visited[k], total[k] = level.nvals, int(reduce(level.astype(np.int64)))
        return visited, total
    batch = max(1, BATCH // max(A.nrows, 1))
    for begin in range(0, first.size, batch):
        part = slice(begin, begin + batch)
        found = fused(A, A.T, first[part])
        visited[part] = move((found >= 0).sum(axis=1, dtype=np.int64), "cpu")
        total[part] = move(np.maximum(found, 0).sum(axis=1, dtype=np.int64), "cpu")
    return visited, total


def composed_levels(A: MatrixLike, sources: Sequence[int] | np.ndarray) -> Matrix:
    """`levels` out of a search from each source."""
    A, first = _checked("levels", A, sources)
    return _stacked(_level_of_each(A, first), first.size, A)


def _stacked(rows: Iterator[Vector], count: int, A: Matrix) -> Matrix:
    """The Matrix of the next `count` rows, by halves: to write one row alone copies all others."""
    found = Matrix.empty(count, A.nrows, index_dtype(A.nrows), device=A.device)
    half = count // 2
    if half:
        assign(found, _stacked(rows, half, A), slice(0, half))
        assign(found, _stacked(rows, count - half, A), slice(half, count))
    elif count:
        assign(found, next(rows), 0)
    return found


def _level_of_each(A: Matrix, sources: np.ndarray) -> Iterator[Vector]:
    for source in sources.tolist():
        start = Vector.unit(source, True, size=A.nrows, dtype=bool, device=A.device)
        yield search(A, start, any_pair).level


def composed(A: MatrixLike, sources: Sequence[int] | np.ndarray) -> Vector:
    """`dependencies` out of operations: what it means, what a loop of one's own costs, and what
    runs where a backend has no fused form. OverflowError where there are more than 1e300 paths.
    """
    A, first = _checked("dependencies", A, sources)
    n, device = A.nrows, A.device
    score = Vector.filled(0.0, size=n, device=device)
    for source in first.tolist():
        paths = Vector.unit(source, 1.0, size=n, dtype=np.float64, device=device)
        visited, by_level = Vector.empty(n, bool, device=device), []
        while paths.nvals:
            by_level.append(_countable(paths))
            assign(visited, True, mask=paths.S)
            # q<!visited> = q plus.first A
            paths = vxm(paths, A, plus_first, mask=~visited.S)
        share = Vector.empty(n, np.float64, device=device)
        for paths in by_level[:0:-1]:
            # of this level alone: an edge within a level, or back, is on no shortest path
            share = _shares(A, paths, share, score)
    return score


def composed_along(A: MatrixLike, level: Vector) -> Vector:
    """`dependencies_along` out of operations, as `composed`."""
    A, _ = _checked("dependencies_along", A, [])
    n, device = A.nrows, A.device
    score = Vector.filled(0.0, size=n, device=device)
    every, by_level = Vector.empty(n, np.float64, device=device), []
    for depth in range(int(reduce(level, monoid.max)) + 1 if level.nvals else 0):
        here = select(level, indexunary.valueeq, depth)
        if depth:
            paths = _countable(vxm(every, A, plus_first, mask=here.S))
        else:
            paths = apply(here.astype(np.float64), binary.second, right=1.0)
        by_level.append(paths)
        assign(every, paths, mask=paths.S)
    share = Vector.empty(n, np.float64, device=device)
    for paths in by_level[:0:-1]:
        assign(share, _shares(A, paths, share, score), mask=paths.S)
    return score


def _countable(paths: Vector) -> Vector:
    """Numbers of paths that float64 holds, and their reciprocals with all their digits."""
    if paths.nvals and not float(reduce(paths, monoid.max)) <= MOST_PATHS:
        raise OverflowError(
            f"dependencies: A: expected at most {MOST_PATHS:g} shortest paths between two vertices "
            "on a device whose backend has no fused form of its own; move A to the CPU"
        )
    return paths


def _shares(A: Matrix, paths: Vector, share: Vector, score: Vector) -> Vector:
    """Add the dependencies on the vertices of one level to `score`; the share that each of its
    paths passes on to the level before.
    """
    # d<level> = p * (A plus.second share); share = (1 + d) / p
    carried = ewise_mult(mxv(A, share, plus_second, mask=paths.S), paths, binary.times)
    assign(score, carried, accum=binary.plus)
    ones = assign(paths.dup(), 1.0, mask=paths.S)
    return ewise_mult(ewise_add(carried, ones, binary.plus), paths, binary.truediv)


def _checked(
    name: str, A: MatrixLike, sources: Sequence[int] | np.ndarray
) -> tuple[Matrix, np.ndarray]:
    A = checks.matrix(name, A)
    if A.nrows != A.ncols:
        raise DimensionMismatch(f"{name}: A: expected a square matrix, got {A.nrows} x {A.ncols}")
    first = np.asarray(as_array(f"{name}: sources", sources))
    if first.ndim != 1 or (first.size and first.dtype.kind not in "iu"):
        raise DomainMismatch(f"{name}: sources: expected a sequence of vertices, got {sources!r}")
    first = first.astype(np.int64)
    if first.size and not 0 <= first.min() <= first.max() < A.nrows:
        wrong = first[(first < 0) | (first >= A.nrows)][0]
        raise IndexOutOfBound(f"{name}: sources: expected 0 <= source < {A.nrows}, got {wrong}")
    return A, first
