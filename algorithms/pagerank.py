"""PageRank."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..containers import Matrix, MatrixLike, Vector
from ..containers.storage.numbers import flags, is_real
from ..iterations.power_iteration import Hop, Step, check_limits, started
from ..iterations.ranks import (
    check_inverse,
    checked_graph,
    converged,
    fits_single,
    full_vector,
    inverse_out_strength,
    scaled,
)
from ..operations import apply
from ..semirings import binary

# what a tolerance has to exceed for contributions in single precision to be exact enough
SINGLE = 1e-6


def pagerank(
    A: MatrixLike,
    *,
    damping: float = 0.85,
    tol: float | None = 1e-6,
    max_iter: int = 100,
    personalization: Vector | Sequence[float] | np.ndarray | None = None,
    weighted: bool = False,
) -> Vector:
    """The PageRank of every vertex: a full Vector of float64 on A's device, of sum 1.

    A random walk follows an out-edge of its vertex with probability `damping`; else, and always
    where there is no out-edge, it teleports to a vertex drawn by `personalization`. The rank of a
    vertex is the share of time that the walk spends there. A[i, j] is the edge i -> j.

    Parameters:
        damping: the probability to follow an edge rather than to teleport.
        tol: end when the change is at most this; None: after max_iter iterations.
        max_iter: the most iterations.
        personalization: a Vector or 1-D array of numbers >= 0, in proportion to which vertices are
          teleported to; None: all alike.
        weighted: follow edges in proportion to A's values; else all alike.

    The iteration starts with equal ranks and ends when the 1-norm of the change is at most `tol`:
    the 1-norm of the error is then at most tol * damping / (1 - damping), under 6 tol for 0.85.
    `tol=None` runs `max_iter` iterations, and on a GPU nothing is read back. With tol=None or tol
    >= 1e-6 what flows along an edge is rounded to single precision (but for weights beyond 1e30 or
    so), which moves the ranks by at most 4e-7 in the 1-norm; sums and ranks are double.

    Raises DimensionMismatch for an A that is not square or a `personalization` of another size,
    NegativeWeight and ValueError for values (`weighted`) or arguments outside of these ranges,
    ConvergenceError, whose `result` is the last iterate, where `tol` is not reached.

    Source: Page, Brin, Motwani, Winograd, "The PageRank citation ranking" (1999).

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 1, 2, 3], [1, 2, 1, 1], nrows=4, ncols=4)
    >>> sg.pagerank(A).to_numpy().round(3).tolist()
    [0.037, 0.48, 0.445, 0.037]
    """
    flags("pagerank", weighted=weighted)
    A = checked_graph("pagerank", A, weighted)
    check_limits("pagerank", tol, max_iter)
    if not is_real(damping) or not 0 < damping < 1:
        raise ValueError(f"pagerank: damping: expected a number in (0, 1), got {damping!r}")
    n, scale = A.nrows, inverse_out_strength(A, weighted)
    check_inverse("pagerank", A, scale, weighted)
    restart = 1 / max(n, 1) if personalization is None else _distribution(personalization, A)
    # r <- d (r / out-degree) A + (1 - d + d * the sum of r where there is no out-edge) restart
    step = Step(
        (Hop(A, scale),),
        factor=damping,
        teleport=1 - damping,
        dangling=damping,
        restart=restart,
        weighted=weighted,
    )
    single = (tol is None or tol >= SINGLE) and fits_single(A, scale, weighted)
    value, found = started(1 / max(n, 1), step, tol=tol, max_iter=max_iter, single=single)
    return converged("pagerank", found, tol, scaled(value, 1))


def _distribution(personalization: Vector | Sequence[float] | np.ndarray, A: Matrix) -> Vector:
    v = full_vector("pagerank", "personalization", personalization, A)
    low, high = v._value_range() if v.size else (0.0, 1.0)
    if not (low >= 0 and 0 < high < float("inf")):
        raise ValueError(
            "pagerank: personalization: expected finite numbers >= 0, one of them above 0, "
            f"got numbers from {low:g} to {high:g}"
        )
    if float(high) * v.size == float("inf"):  # their sum might be
        v = apply(v, binary.truediv, right=high)
    return scaled(v, 1)
