"""Betweenness centrality."""

from __future__ import annotations

import numpy as np

from ..checks import square
from ..containers import Matrix, MatrixLike, Vector
from ..containers.annotations import Vertices
from ..containers.storage.numbers import flags, is_integer
from ..errors import DomainMismatch, NegativeWeight
from ..iterations import closure, dag_edges, dependencies, dependencies_along, search
from ..iterations.fixed_point import least_fixed_point
from ..operations import apply, assign, ewise_add, reduce, reduce_columnwise
from ..semirings import any_pair, binary, max_plus, min_plus, monoid
from .lengths import check_reached, in_int64
from .random_words import checked_seed
from .vertices import vertices


def betweenness_centrality(
    A: MatrixLike,
    *,
    sources: Vertices | None = None,
    k: int | None = None,
    seed: int | None = None,
    normalized: bool = False,
    weighted: bool = False,
) -> Vector:
    """How much every vertex lies on shortest paths: a full Vector of float64 on A's device.

    score[v] is the sum over the sources s and all vertices t of the share of the shortest paths
    from s to t that go through v, where v is neither s nor t. Nothing is halved: in an undirected
    graph, with all vertices as sources, every pair counts from both ends, so that scores are twice
    those of NetworkX. `normalized` divides by (n - 1) (n - 2), the most that is possible.

    Parameters:
        sources: the vertices whose shortest paths count, from 0; None: all.
        k: so many sources are drawn at random.
        seed: fixes which k sources are drawn; None: others at every call.
        normalized: divide by (n - 1) (n - 2).
        weighted: take the edges' values; else each is 1.

    `A` is a square Matrix or what `Matrix` can be made from; A[i, j] is the edge i -> j. Paths are
    shortest by number of edges or, `weighted`, by the sum of A's values, which are numbers > 0.
    `sources` is a vertex or a sequence of vertices, which count once each; or `k` of all vertices
    are drawn, the same for the same `seed`; by default all are sources.

    Relative errors are below 1e-10, however many paths there are. Weighted paths of floats count as
    equally long if their sums in that type are equal. Where rounding absorbs a weight, so that an
    edge leads to a vertex of the same distance, a path with fewer such edges in a row is the
    shorter one. On a GPU the last bits may differ from run to run.

    Raises DimensionMismatch for an A that is not square, IndexOutOfBound and DomainMismatch for
    sources that are no vertices of it, ValueError for `sources` and `k` together, a k that is not
    in 1..n, a seed without k, and, `weighted`, for values that are zero or NaN, NegativeWeight for
    negative ones, OverflowError where a distance of integers exceeds int64.

    Source: Brandes, "A faster algorithm for betweenness centrality" (2001); drawn sources: Bader,
    Kintali, Madduri, Mihail, "Approximating betweenness centrality" (2007).

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 1, 1, 2, 1, 3], [1, 0, 2, 1, 3, 1], nrows=4, ncols=4)
    >>> sg.betweenness_centrality(A).to_numpy().tolist()
    [0.0, 6.0, 0.0, 0.0]
    >>> sg.betweenness_centrality(A, sources=[0], normalized=True).to_numpy().round(3).tolist()
    [0.0, 0.333, 0.0, 0.0]
    """
    flags("betweenness_centrality", normalized=normalized, weighted=weighted)
    A = square("betweenness_centrality", A)
    first = _sources(A, sources, k, seed)
    # p<!level> = p plus.first A, and back: d<level> = p * (A plus.second ((1 + d) / p))
    score = _weighted(A, first) if weighted else dependencies(A, first)
    if normalized and A.nrows > 2:
        score = apply(score, binary.times, right=1 / ((A.nrows - 1) * (A.nrows - 2)))
    return score


def _weighted(A: Matrix, sources: np.ndarray) -> Vector:
    least = _positive(A)
    A, whole = in_int64(A)
    kind = A.dtype if A.dtype.kind == "f" else np.int64
    score = Vector.filled(0.0, size=A.nrows, device=A.device)
    for source in sources.tolist():
        # d = start min d min.plus A
        start = Vector.unit(source, 0, size=A.nrows, dtype=kind, device=A.device)
        distance = least_fixed_point("betweenness_centrality", A, start, min_plus, None)
        check_reached("betweenness_centrality", whole, start, distance)
        # the edges T(i, j) = (d(i) + A(i, j) == d(j)), but for what would make a cycle
        T = dag_edges(A, distance, min_plus)
        if kind != np.int64 and _may_absorb(least, distance):
            T = _acyclic(T, distance, source)
        # the most of them that lead to a vertex: h = start max h max.plus T
        start = Vector.unit(source, 0, size=A.nrows, dtype=np.int64, device=A.device)
        score = ewise_add(score, dependencies_along(T, closure(T, start, max_plus)))
    return score


def _may_absorb(least: float, distance: Vector) -> bool:
    """Whether adding the least weight may leave some distance as it is. A half of it that changes
    the greatest is at least what two floats there are apart, and no less than that anywhere else.
    """
    kind = distance.dtype.type
    least, most = kind(least), reduce(distance, monoid.max)
    if least < 2 * np.finfo(kind).tiny:  # GPUs may take what is less for zero
        return True
    with np.errstate(over="ignore"):
        return not most + least / 2 > most


def _acyclic(T: Matrix, distance: Vector, source: int) -> Matrix:
    """The edges of T, of those between equal distances only the ones that lead on from where T
    comes from a lesser distance, in the fewest steps.
    """
    n, device = T.nrows, T.device
    d = assign(Vector.filled(0, size=n, dtype=distance.dtype, device=device), distance,
               mask=distance.S)  # fmt: skip
    level = T._where(lambda a, x, y: x == y, d)
    if level.nvals == 0:
        return T
    rising = T._where(lambda a, x, y: x < y, d)
    first = assign(reduce_columnwise(rising, monoid.lor), True, [source])
    # e<!visited> = e any.pair level: the steps along edges between equal distances
    steps = search(level, first, any_pair).level
    e = assign(Vector.filled(0, size=n, dtype=steps.dtype, device=device), steps, mask=steps.S)
    return ewise_add(rising, level._where(lambda a, x, y: x + 1 == y, e), binary.lor)


def _positive(A: Matrix) -> float:
    """The least weight, which is positive."""
    least = A._value_range()[0]
    if A.nvals == 0 or least > 0:
        return least
    i, j, value = next(iter(A._where(lambda a: ~(a > 0))))
    kind = NegativeWeight if least < 0 else ValueError
    raise kind(
        "betweenness_centrality: A: expected weights > 0 (with those of 0 shortest paths go in "
        f"circles), got A[{i}, {j}] = {value}"
    )


def _sources(A: Matrix, sources: Vertices | None, k: int | None, seed: int | None) -> np.ndarray:
    n = A.nrows
    if k is None:
        if seed is not None:
            raise ValueError("betweenness_centrality: seed: expected k, too: all sources are given")
        if sources is None:
            return np.arange(n, dtype=np.int64)
        return vertices("betweenness_centrality", A, sources).astype(np.int64)
    if sources is not None:
        raise ValueError("betweenness_centrality: k: expected sources or k, got both")
    if not is_integer(k):
        raise DomainMismatch(f"betweenness_centrality: k: expected an integer, got {k!r}")
    if not 1 <= k <= n:
        raise ValueError(f"betweenness_centrality: k: expected 1 <= k <= {n}, got {k}")
    seed = checked_seed("betweenness_centrality", seed, A.device)
    drawn = np.random.default_rng(seed).choice(n, int(k), replace=False)
    return np.sort(drawn).astype(np.int64)
