"""Searches from each of many sources: their levels, and Brandes' dependencies of the sources on
every vertex, which a search forward and one backward find.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from spgraph import checks
from spgraph.containers import Matrix, MatrixLike, Vector
from spgraph.containers.storage.arrays import Array, as_array, index_dtype, move, on_device
from spgraph.errors import DomainMismatch, IndexOutOfBound
from spgraph.iterations.level_search import constant, operands, search
from spgraph.operations import assign, ewise_add, ewise_mult, mxv, reduce, select, vxm
from spgraph.process.activity import step
from spgraph.semirings import (
    BinaryOp,
    Monoid,
    Semiring,
    any_pair,
    binary,
    indexunary,
    plus_first,
    plus_second,
)
from spgraph.steps import backend

# levels that are looked at together
BATCH = 1 << 26
# numbers of paths up to this one have inverses in float64
MOST = 1e290
FLOAT64 = np.dtype(np.float64)


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
    return getattr(backend(A.device), "dependencies", composed_dependencies)(A, A._T, first, None)


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
    A, level = operands("dependencies_along", A, "level", level)
    fused = getattr(backend(A.device), "dependencies", composed_dependencies)
    # which vertex it is, the levels say
    return fused(A, A._T, np.zeros(1, np.int64), level)


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
    with on_device(A.device):  # CuPy computes on the current device, wherever arrays lie
        return Matrix.from_dense(fused(A, A._T, first), missing=-1)


def level_sums(A: MatrixLike, sources: Sequence[int] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(how many vertices a search in `A` from each of the `sources` reaches, itself among them; the
    sum of their levels): two NumPy arrays of int64, an element for each source.

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
            step(k + 1, first.size)
        return visited, total
    batch = max(1, BATCH // max(A.nrows, 1))
    for begin in range(0, first.size, batch):
        part = slice(begin, begin + batch)
        with on_device(A.device):
            found = fused(A, A._T, first[part])
            visited[part] = move((found >= 0).sum(axis=1, dtype=np.int64), "cpu")
            total[part] = move(np.maximum(found, 0).sum(axis=1, dtype=np.int64), "cpu")
        step(min(begin + batch, first.size), first.size)
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
        yield _level_from(A, source)


def _level_from(A: Matrix, source: int) -> Vector:
    """The level of each vertex in a search from `source`."""
    start = Vector.unit(source, True, size=A.nrows, dtype=bool, device=A.device)
    return search(A, start, any_pair).level


def composed_dependencies(
    A: Matrix, T: Matrix | None, sources: np.ndarray, level: Vector | None
) -> Vector:
    """`dependencies` made of operations, with the arguments of a backend's: the reference for
    tests, and what runs where a backend has no fused form. T is not used.
    """
    score = Vector.filled(0.0, size=A.nrows, device=A.device)
    for k, source in enumerate(sources.tolist()):
        step(k, sources.size)
        adjacent = level is None
        levels = _level_from(A, source) if level is None else level
        if levels.nvals == 0:
            continue
        found = _of_source(A, levels, adjacent, plain_numbers())
        if found is None:
            found = _of_source(A, levels, adjacent, logarithms())
        assert found is not None  # logarithms do not overflow
        assign(score, found, accum=binary.plus)
    return score


# --- numbers of paths -----------------------------------------------------------------------------


class Numbers(NamedTuple):
    """How numbers of paths are stored: as they are, or as logarithms where they overflow float64.
    The semirings and operators compute with what is stored.
    """

    forward: Semiring
    backward: Semiring
    zero: float
    one: float
    times: BinaryOp
    over: BinaryOp
    one_more: Callable[[Array], Array]  # 1 + d, for an array d, in stored form
    plain: Callable[[Array], Array]  # the numbers themselves


@functools.cache
def plain_numbers() -> Numbers:
    """Numbers as they are."""
    return Numbers(
        forward=plus_first,
        backward=plus_second,
        zero=0.0,
        one=1.0,
        times=binary.times,
        over=binary.truediv,
        one_more=lambda d: d + 1.0,
        plain=np.positive,  # a copy
    )


@functools.cache
def logarithms() -> Numbers:
    """Logarithms: a sum of numbers is log(exp(x) + exp(y))."""
    add = BinaryOp.from_expressions(
        "log_plus",
        python="x if y == -math.inf else max(x, y) + math.log1p(math.exp(-abs(x - y)))",
        cuda="y == -INFINITY ? x : fmax(x, y) + log1p(exp(-fabs(x - y)))",
    )
    plus = Monoid(add, -np.inf, None)
    return Numbers(
        forward=Semiring(plus, binary.first),
        backward=Semiring(plus, binary.second),
        zero=-np.inf,
        one=0.0,
        times=binary.plus,
        over=binary.minus,
        one_more=lambda d: np.logaddexp(0.0, d),
        plain=np.exp,
    )


def _of_source(A: Matrix, level: Vector, adjacent: bool, numbers: Numbers) -> Vector | None:
    """The dependencies of one source; None if its numbers of paths overflow `numbers`. `adjacent`
    says that only A's edges to the next level are on shortest paths; else all edges of A are.
    """
    n, device = A.nrows, A.device
    deepest = int(level._value_range()[1])
    levels = [select(level, indexunary.valueeq, depth) for depth in range(deepest + 1)]
    paths = [constant(levels[0], numbers.one, FLOAT64)]
    total = paths[0]
    for at in levels[1:]:
        # p<level> = p plus.first A
        came = vxm(paths[-1], A, numbers.forward, mask=at.S if adjacent else None)
        if not adjacent:
            total = ewise_add(total, came, numbers.forward.monoid)
            came = ewise_mult(total, at, binary.first)
        paths.append(came)
    if numbers.zero == 0.0 and not max(p._value_range()[1] for p in paths) < MOST:
        return None
    score = Vector.empty(n, np.float64, device=device)
    share = Vector.empty(n, np.float64, device=device)
    for p in paths[:0:-1]:
        # d<level> = p * (A plus.second share); share = (1 + d) / p
        carried = ewise_mult(mxv(A, share, numbers.backward, mask=p.S), p, numbers.times)
        d = ewise_add(constant(p, numbers.zero, FLOAT64), carried, binary.second)
        assign(score, d._with_values(numbers.plain), mask=d.S)
        near = ewise_mult(d._with_values(numbers.one_more), p, numbers.over)
        share = near if adjacent else ewise_add(share, near, binary.second)
    return score


# --- what is asked of the arguments ---------------------------------------------------------------


def _checked(
    name: str, A: MatrixLike, sources: Sequence[int] | np.ndarray
) -> tuple[Matrix, np.ndarray]:
    A = checks.square(name, A)
    first = np.asarray(as_array(f"{name}: sources", sources))
    if first.ndim != 1 or (first.size and first.dtype.kind not in "iu"):
        raise DomainMismatch(f"{name}: sources: expected a sequence of vertices, got {sources!r}")
    first = first.astype(np.int64)
    if first.size and not 0 <= first.min() <= first.max() < A.nrows:
        wrong = first[(first < 0) | (first >= A.nrows)][0]
        raise IndexOutOfBound(f"{name}: sources: expected 0 <= source < {A.nrows}, got {wrong}")
    return A, first
