"""SALSA: hubs and authorities as a random walk."""

from __future__ import annotations

from typing import NamedTuple

from ..containers import MatrixLike, Vector
from ..containers.storage.numbers import flags
from ..iterations.power_iteration import Hop, Step, check_limits, power
from ..iterations.ranks import (
    check_inverse,
    checked_graph,
    converged,
    full_vector,
    inverse,
    inverse_out_strength,
    out_strength,
    positive,
    scaled,
)
from ..operations import ewise_mult, vxm
from ..semirings import plus_first, plus_times


class SALSA(NamedTuple):
    """The result of `salsa`: two full Vectors of float64, each of sum 1 (0 without edges).

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 0, 1], [2, 3, 3], nrows=4, ncols=4)
    >>> sg.salsa(A).hub.to_numpy().round(3).tolist()
    [0.667, 0.333, 0.0, 0.0]
    """

    hub: Vector
    authority: Vector


def salsa(
    A: MatrixLike, *, tol: float | None = 1e-8, max_iter: int = 100, weighted: bool = False
) -> SALSA:
    """How good every vertex is as a hub and as an authority of a random walk: `SALSA(hub,
    authority)`, full Vectors of float64 on A's device, of sum 1 each.

    The walk goes from a hub along one of its out-edges to an authority, from there back along one
    of its in-edges to a hub, and so on. Each edge of a vertex is as likely as the others or,
    `weighted`, in proportion to A's values. It starts at a vertex with out-edges, all alike; `hub`
    is the distribution of its vertex after many steps, an even number of them, `authority` after an
    odd number. A[i, j] is the edge i -> j.

    Parameters:
        tol: end when the change is at most this; None: after max_iter iterations.
        max_iter: the most iterations.
        weighted: take the edges' values; else each is 1.

    The iteration ends when the 1-norm of the change of `hub` is at most `tol` (None: after
    `max_iter` iterations).

    Raises DimensionMismatch for an A that is not square, NegativeWeight for a negative value
    (`weighted`), ValueError for values that are not finite, or whose squares float64 does not hold,
    and for a tol or max_iter that makes no sense, ConvergenceError, whose `result` is the last
    SALSA, where max_iter iterations do not reach `tol`.

    Source: Lempel, Moran, "The stochastic approach for link-structure analysis (SALSA) and the TKC
    effect" (2000).

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 0, 1], [2, 3, 3], nrows=4, ncols=4)
    >>> hub, authority = sg.salsa(A)
    >>> hub.to_numpy().round(3).tolist(), authority.to_numpy().round(3).tolist()
    ([0.667, 0.333, 0.0, 0.0], [0.0, 0.0, 0.333, 0.667])
    """
    flags("salsa", weighted=weighted)
    A = checked_graph("salsa", A, weighted)
    check_limits("salsa", tol, max_iter)
    out = out_strength(A, weighted)
    forth, back = inverse(out), inverse_out_strength(A._T, weighted)
    for scale in (forth, back):
        check_inverse("salsa", A, scale, weighted)
    # h <- (((h / out-degree) A) / in-degree) A'
    step = Step((Hop(A, forth), Hop(A._T, back)), weighted=weighted)
    start = scaled(positive(out), 1)
    found = power(start, step, tol=tol, max_iter=max_iter)
    authority = vxm(ewise_mult(found.value, forth), A, plus_times if weighted else plus_first)
    authority = scaled(full_vector("salsa", "authority", authority, A), 1)
    return converged("salsa", found, tol, SALSA(scaled(found.value, 1), authority))
