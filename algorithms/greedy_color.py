"""Colourings."""

from __future__ import annotations

from ..containers import MatrixLike, Vector
from ..iterations.coloring import color_greedily
from .random_words import random_words
from .triangle_count import undirected


def greedy_color(A: MatrixLike, *, seed: int | None = None) -> Vector:
    """A colour for every vertex, another one than its neighbours have: a full Vector of A.nrows
    signed integers from 0, at most the largest degree.

    `A` is as in `triangle_count`, an undirected graph: of a directed matrix both ends of an edge
    are neighbours, whichever way it points; values are not looked at, loops are no edges. `seed`,
    an integer >= 0, gives the same colours on every device; None draws others at every call.

    Parameters:
        seed: an integer >= 0 that fixes all random choices; None: others at every call.

    The colours are those of a greedy colouring in the order of falling degree (of its logarithm,
    rounded down; at random among equals): each vertex takes the least colour that no neighbour
    before it has. On a CPU each thread takes the next vertex, and waits for those of its neighbours
    that other threads have taken before it. Elsewhere a round colours all vertices whose neighbours
    before them are coloured. There are as many rounds as the longest chain of such neighbours has
    vertices: a few dozen where degrees are small, some hundred on dense power-law graphs, n in a
    complete graph.

    Raises DimensionMismatch for an A that is not square.

    Source: Jones and Plassmann, "A parallel graph coloring heuristic" (1993); the order:
    Hasenplaugh, Kaler, Schardl, Leiserson, "Ordering heuristics for parallel graph coloring"
    (2014).

    >>> import spgraph as sg
    >>> sg.greedy_color(sg.generators.grid(1, 5), seed=1).to_numpy().tolist()
    [1, 0, 1, 0, 1]
    """
    A = undirected("greedy_color", A)
    word = random_words("greedy_color", seed, A.nrows, A.device)
    return color_greedily(A, A.row_degrees(), word)
