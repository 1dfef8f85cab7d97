"""HITS: hubs and authorities."""

from __future__ import annotations

from typing import NamedTuple

from ..containers import MatrixLike, Vector
from ..containers.storage.numbers import flags
from ..iterations.power_iteration import Hop, Step, check_limits, power
from ..iterations.ranks import checked_graph, converged, full_vector, scaled
from ..operations import vxm
from ..semirings import plus_first, plus_times


class HITS(NamedTuple):
    """The result of `hits`: two full Vectors of float64, each of sum 1 (0 without edges).

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 0, 1], [2, 3, 3], nrows=4, ncols=4)
    >>> sg.hits(A).hub.to_numpy().round(3).tolist()
    [0.618, 0.382, 0.0, 0.0]
    """

    hub: Vector
    authority: Vector


def hits(
    A: MatrixLike, *, tol: float | None = 1e-8, max_iter: int = 100, weighted: bool = False
) -> HITS:
    """How good every vertex is as a hub and as an authority: `HITS(hub, authority)`, full Vectors
    of float64 on A's device, of sum 1 each.

    A good hub has edges to good authorities, a good authority edges from good hubs: `authority` is
    proportional to hub A, `hub` to authority A', the leading singular vectors of A. A[i, j] is the
    edge i -> j; `weighted` takes A's values, else every edge counts 1.

    Parameters:
        tol: end when the change is at most this; None: after max_iter iterations.
        max_iter: the most iterations.
        weighted: take the edges' values; else each is 1.

    The iteration starts with equal hubs and ends when the 1-norm of their change is at most `tol`
    (None: after `max_iter` iterations). These are NetworkX's hits with its normalization, whose
    values are weights where edges have one.

    Raises DimensionMismatch for an A that is not square, NegativeWeight for a negative value
    (`weighted`), ValueError for values that are not finite, or whose squares float64 does not hold,
    and for a tol or max_iter that makes no sense, ConvergenceError, whose `result` is the last
    HITS, where max_iter iterations do not reach `tol`.

    Source: Kleinberg, "Authoritative sources in a hyperlinked environment" (1999).

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 0, 1], [2, 3, 3], nrows=4, ncols=4)
    >>> hub, authority = sg.hits(A)
    >>> hub.to_numpy().round(3).tolist(), authority.to_numpy().round(3).tolist()
    ([0.618, 0.382, 0.0, 0.0], [0.0, 0.0, 0.382, 0.618])
    """
    flags("hits", weighted=weighted)
    A = checked_graph("hits", A, weighted)
    check_limits("hits", tol, max_iter)
    n = A.nrows
    # h <- (h A) A', of sum 1
    step = Step((Hop(A), Hop(A._T)), weighted=weighted)
    start = Vector.filled(1 / max(n, 1), size=n, device=A.device)
    found = power(start, step, norm=1, tol=tol, max_iter=max_iter)
    authority = vxm(found.value, A, plus_times if weighted else plus_first)
    authority = scaled(full_vector("hits", "authority", authority, A), 1)
    return converged("hits", found, tol, HITS(found.value, authority))
