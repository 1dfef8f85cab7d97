"""Katz centrality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..containers import Matrix, MatrixLike, Vector
from ..containers.storage.casting import held_number
from ..containers.storage.numbers import flags, is_real
from ..errors import DomainMismatch
from ..iterations.power_iteration import Hop, Step, check_limits, started
from ..iterations.ranks import SMALL, checked_graph, converged, full_vector, scaled


def katz_centrality(
    A: MatrixLike,
    *,
    alpha: float = 0.1,
    beta: float | Vector | Sequence[float] | np.ndarray = 1.0,
    tol: float | None = 1e-6,
    max_iter: int = 1000,
    weighted: bool = False,
) -> Vector:
    """The Katz centrality of every vertex: a full Vector of float64 on A's device, of 2-norm 1.

    x[j] = alpha * (the sum of x over the in-neighbours of j) + beta, divided by its 2-norm: the
    number of walks that end at j, one of k edges counting alpha**k. `beta` is a number, or a Vector
    or 1-D array with one for each vertex; `weighted` multiplies by A's values. A[i, j] is the edge
    i -> j; alpha has to be below 1 / (the largest eigenvalue of A), else nothing converges.

    Parameters:
        alpha: what a longer walk counts, for each edge; below 1 / (the largest eigenvalue).
        beta: what every vertex starts with: a number, or a Vector of them.
        tol: end when the change is at most this; None: after max_iter iterations.
        max_iter: the most iterations.
        weighted: take the edges' values; else each is 1.

    The iteration starts with zeros and ends when the 1-norm of the change is at most tol * A.nrows
    (None: after `max_iter` iterations). Meaning, normalization and the rule to end are NetworkX's.

    Raises DimensionMismatch for an A that is not square or a `beta` of another size, NegativeWeight
    for a negative value (`weighted`), ValueError for values and a `beta` that are not finite, or
    whose squares float64 does not hold, and for an alpha, tol or max_iter that makes no sense,
    ConvergenceError, whose `result` is the last iterate of 2-norm 1, where max_iter iterations do
    not reach `tol`.

    Source: Katz, "A new status index derived from sociometric analysis" (1953).

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 1, 1, 2], [1, 0, 2, 1])
    >>> sg.katz_centrality(A).to_numpy().round(3).tolist()
    [0.56, 0.611, 0.56]
    """
    flags("katz_centrality", weighted=weighted)
    A = checked_graph("katz_centrality", A, weighted)
    check_limits("katz_centrality", tol, max_iter)
    if not is_real(alpha) or not 0 <= alpha < float("inf"):
        raise ValueError(f"katz_centrality: alpha: expected a finite number >= 0, got {alpha!r}")
    # x <- alpha x A + beta
    restart = _restart(beta, A)
    step = Step((Hop(A),), factor=alpha, teleport=1.0, restart=restart, weighted=weighted)
    start = Vector.filled(0.0, size=A.nrows, device=A.device)
    each = None if tol is None else tol * max(A.nrows, 1)
    value, found = started(start, step, tol=each, max_iter=max_iter)
    return converged("katz_centrality", found, each, scaled(value, 2))


def _restart(beta: float | Vector | Sequence[float] | np.ndarray, A: Matrix) -> float | Vector:
    """`beta` as a number or a full Vector; ValueError unless the 2-norm of it is a number."""
    restart: float | Vector
    given: Any = beta
    if isinstance(given, Vector | Mapping) or np.ndim(given):
        restart = full_vector("katz_centrality", "beta", given, A)
        ends = restart._value_range() if A.nrows else (0.0,)
    else:
        try:
            restart = float(held_number("katz_centrality: beta", beta, np.dtype(np.float64)))
        except DomainMismatch:
            raise DomainMismatch(
                "katz_centrality: beta: expected a number, or a Vector or an array with one for "
                f"each vertex, got {beta!r}"
            ) from None
        ends = (restart,)
    most = max(map(abs, ends))
    if most and not SMALL <= most <= 1 / SMALL / max(A.nrows, 1):  # of NaN, too
        raise ValueError(
            "katz_centrality: beta: expected finite numbers with a sum of squares that float64 "
            f"holds, the greatest in size from {SMALL:g} to {1 / SMALL:g} / A.nrows, got {most:g}; "
            "all by one factor give the same ranks"
        )
    return restart
