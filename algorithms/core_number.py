"""Cores."""

from __future__ import annotations

from ..containers import MatrixLike, Vector
from ..iterations.peeling import peel
from .triangle_count import undirected


def core_number(A: MatrixLike) -> Vector:
    """The core number of every vertex: the largest k such that the vertex belongs to a subgraph in
    which every vertex has at least k neighbours. A full Vector of A.nrows signed integers.

    `A` is as in `triangle_count`, an undirected graph: of a directed matrix edges count whichever
    way they point, once (NetworkX counts those of both directions twice); values are not looked at,
    loops are no edges.

    For one k after the other the vertices of degree at most k are removed, until none is left: on
    a CPU by all threads, in any order, elsewhere in rounds. The work is that of all edges once, and
    of the remaining vertices for every k or in every round. A removal lowers other degrees, so that
    one k may take several rounds: a few in social networks, n / 2 in a path of n vertices.

    Raises DimensionMismatch for an A that is not square.

    Source: Seidman, "Network structure and minimum degree" (1983); Batagelj and Zaversnik, "An O(m)
    algorithm for cores decomposition of networks" (2003); Dhulipala, Blelloch, Shun, "Julienne: a
    framework for parallel graph algorithms using work-efficient bucketing" (2017); Kabir, Madduri,
    "Parallel k-core decomposition on multicore platforms" (2017).

    A triangle, and a vertex beside it:

    >>> import spgraph as sg
    >>> sg.core_number(sg.Matrix.from_coo([0, 1, 2, 2], [1, 2, 0, 3], nrows=5, ncols=5)).to_numpy()
    array([2, 2, 2, 1, 0], dtype=int32)
    """
    return peel(undirected("core_number", A))
