"""Eigenvector centrality."""

from __future__ import annotations

from ..containers import MatrixLike, Vector
from ..containers.storage.numbers import flags
from ..iterations.power_iteration import Hop, Step, check_limits, power
from ..iterations.ranks import checked_graph, converged


def eigenvector_centrality(
    A: MatrixLike, *, tol: float | None = 1e-6, max_iter: int = 100, weighted: bool = False
) -> Vector:
    """The eigenvector centrality of every vertex: a full Vector of float64 on A's device, of 2-norm
    1.

    x = x A / (the largest eigenvalue of A): the centrality of a vertex is proportional to the sum
    of those of its in-neighbours. `weighted` multiplies by A's values. A[i, j] is the edge i -> j.
    Where several eigenvectors share the eigenvalue (the graph has parts that are alike), the one is
    found that equal values lead to.

    Parameters:
        tol: end when the change is at most this; None: after max_iter iterations.
        max_iter: the most iterations.
        weighted: take the edges' values; else each is 1.

    The iteration x <- x A + c x, of 2-norm 1, has the same eigenvectors and converges on bipartite
    graphs, too; c is 1, or the greatest weight where that is below 1. It starts with equal values
    and ends when the 1-norm of the change is at most tol * A.nrows (None: after `max_iter`
    iterations). Meaning, normalization and the rule to end are NetworkX's, whose c is always 1.

    Raises DimensionMismatch for an A that is not square, NegativeWeight for a negative value
    (`weighted`), ValueError for values that are not finite, or whose squares float64 does not hold,
    and for a tol or max_iter that makes no sense, ConvergenceError, whose `result` is the last
    iterate, where max_iter iterations do not reach `tol`.

    Source: Bonacich, "Power and centrality: a family of measures" (1987).

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 1, 1, 2], [1, 0, 2, 1])
    >>> sg.eigenvector_centrality(A).to_numpy().round(3).tolist()
    [0.5, 0.707, 0.5]
    """
    flags("eigenvector_centrality", weighted=weighted)
    A = checked_graph("eigenvector_centrality", A, weighted)
    check_limits("eigenvector_centrality", tol, max_iter)
    n = A.nrows
    start = Vector.filled(1 / max(n, 1), size=n, device=A.device)
    # x <- (x A + c x) / its 2-norm: beside 1 weights far below would change x by less than tol
    keep = (min(1.0, A._value_range()[1]) if weighted else 0.0) or 1.0
    step = Step((Hop(A),), keep=keep, weighted=weighted)
    each = None if tol is None else tol * max(n, 1)
    found = power(start, step, norm=2, tol=each, max_iter=max_iter)
    return converged("eigenvector_centrality", found, each, found.value)
