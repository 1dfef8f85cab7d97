"""Colourings."""

from __future__ import annotations

import functools
import math

import numpy as np

from ..containers import Matrix, MatrixLike, Vector
from ..operations import apply, assign, ewise_add, ewise_mult, mxv, select
from ..semirings import UnaryOp, binary, bor_second, indexunary, plus_first, unary
from .random_words import random_words
from .triangle_count import undirected

# colours that one word of flags tells apart
COLORS = 64


def greedy_color(A: MatrixLike, *, seed: int | None = None) -> Vector:
    """A colour for every vertex, another one than its neighbours have: a full Vector of A.nrows
    signed integers from 0, at most the largest degree.

    `A` is as in `triangle_count`, an undirected graph: of a directed matrix both ends of an edge
    are neighbours, whichever way it points; values are not looked at, loops are no edges. `seed`,
    an integer >= 0, gives the same colours on every device; None draws others at every call.
    DimensionMismatch for an A that is not square.

    Parameters:
        seed: an integer >= 0 that fixes all random choices; None: others at every call.

    The colours are those of a greedy colouring in the order of falling degree (of its logarithm,
    rounded down; at random among equals): each vertex takes the least colour that no neighbour
    before it has. A round colours all vertices whose neighbours before them are coloured. There are
    as many rounds as the longest chain of such neighbours has vertices: a few dozen where degrees
    are small, some hundred on dense power-law graphs, n in a complete graph.

    Source: Jones and Plassmann, "A parallel graph coloring heuristic" (1993); the order:
    Hasenplaugh, Kaler, Schardl, Leiserson, "Ordering heuristics for parallel graph coloring"
    (2014).

    >>> import spgraph as sg
    >>> sg.greedy_color(sg.generators.grid(1, 5), seed=1).to_numpy().tolist()
    [1, 0, 1, 0, 1]
    """
    A = undirected("greedy_color", A)
    # row i of D: the neighbours of i before it
    D = _before(A, seed)
    # how many of them have no colour yet; entries are the vertices without one
    wait = D.row_degrees()
    # ones of the type of their numbers: they are counted in it, which plus.pair does in int64
    D = D.pattern(wait.dtype)
    color = Vector.filled(0, size=A.nrows, dtype=wait.dtype, device=A.device)
    used: list[Vector] = []
    while wait.nvals:
        ready = select(wait, indexunary.valuele, 0)
        _first_free(D, ready, used, color)
        wait = select(wait, indexunary.valuegt, 0)
        # w<w> -= D plus.first r
        mxv(D, ready, plus_first, mask=wait.S, accum=binary.minus, out=wait)
    return color


def _before(A: Matrix, seed: int | None) -> Matrix:
    """The edges from each vertex to those before it: by falling logarithm of the degree, at random
    among equals.
    """
    word = random_words("greedy_color", seed, A.nrows, A.device)
    power = apply(A.row_degrees(), exponent())
    return A._where(lambda a, e, w, f, x: (f > e) | ((f == e) & (x < w)), power, word)


@functools.cache
def exponent() -> UnaryOp:
    """The logarithm, rounded down, -1 of 0. It may be rounded itself: the half keeps it from the
    next integer.
    """
    return UnaryOp.define(lambda d: math.floor(math.log2(d + 0.5)), "exponent")


def _first_free(D: Matrix, ready: Vector, used: list[Vector], color: Vector) -> None:
    """Colours `ready`, whose values are 0. Bit b of used[p] stands for the colour 64 p + b."""
    left, p = ready.astype(np.uint64), 0
    while left.nvals:
        if p == len(used):
            used.append(Vector.empty(D.nrows, np.uint64, device=D.device))
        # t<l> = D bor.second s: the colours before
        taken = ewise_add(left, mxv(D, used[p], bor_second, mask=left.S), binary.bor)
        # ~t & (t + 1): the lowest bit that is clear, 0 if none is
        above = apply(taken, binary.plus, right=1)
        lowest = ewise_mult(apply(taken, unary.bnot), above, binary.band)
        free = select(lowest, indexunary.valuene, 0)
        assign(used[p], free, mask=free.S)
        # the half: the logarithm may be rounded, and the integer is what is below
        number = apply(apply(free, unary.log2), binary.plus, right=COLORS * p + 0.5)
        assign(color, number.astype(color.dtype), mask=free.S)
        left, p = select(lowest, indexunary.valueeq, 0), p + 1
