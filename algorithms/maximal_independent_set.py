"""Maximal independent sets."""

from __future__ import annotations

from ..containers import MatrixLike, Vector
from ..iterations.coloring import choose_greedily
from .random_words import random_words
from .triangle_count import undirected


def maximal_independent_set(A: MatrixLike, *, seed: int | None = None) -> Vector:
    """A set of vertices, no two of them neighbours, to which none can be added: a full Vector of
    A.nrows truth values. `numpy.flatnonzero(s.to_numpy())` are the members, and `s.V` is a mask.

    `A` is as in `triangle_count`, an undirected graph: of a directed matrix both ends of an edge
    are neighbours, whichever way it points; values are not looked at, loops are no edges. `seed`,
    an integer >= 0, gives the same set on every device; None draws another one at every
    call.

    Parameters:
        seed: an integer >= 0 that fixes all random choices; None: others at every call.

    The vertices are in a random order, the same one in all rounds: the set is the one that taking
    each vertex in turn would give, which is what one thread does on a CPU. Elsewhere the expected
    number of rounds grows with the logarithm of n.

    Raises DimensionMismatch for an A that is not square.

    Source: Luby, "A simple parallel algorithm for the maximal independent set problem" (1986); the
    order drawn only once: Blelloch, Fineman, Shun, "Greedy sequential maximal independent set and
    matching are parallel on average" (2012).

    >>> import spgraph as sg
    >>> star = sg.Matrix.from_coo([0, 0, 0], [1, 2, 3], nrows=4, ncols=4)
    >>> sg.maximal_independent_set(star, seed=1).to_numpy().tolist()
    [False, True, True, True]
    """
    A = undirected("maximal_independent_set", A)
    return choose_greedily(A, random_words("maximal_independent_set", seed, A.nrows, A.device))
