"""color_greedily, choose_greedily: vertex by vertex in an order, the least colour that no neighbour
before has, and those of which no neighbour before is chosen.
"""

from __future__ import annotations

import numpy as np

from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import Array
from spgraph.operations import apply, assign, ewise_add, ewise_mult, ewise_union, mxv, select
from spgraph.semirings import (
    any_pair,
    binary,
    bor_second,
    indexunary,
    max_second,
    plus_first,
    unary,
)
from spgraph.steps import backend

# colours that one word of flags tells apart
COLORS = 64


def color_greedily(A: Matrix, weight: Vector, word: Vector) -> Vector:
    """For each vertex the least number from 0 that no neighbour before it has: a full Vector of
    A.nrows signed integers.

    `A` is a symmetric pattern without loops. The vertices come by falling logarithm of `weight`,
    rounded down, those of an equal one by rising `word`: full Vectors of integers >= 0 on A's
    device, no two words being equal.

    >>> import spgraph as sg
    >>> from spgraph.iterations.coloring import color_greedily
    >>> A = sg.generators.grid(1, 3)
    >>> color_greedily(A, A.row_degrees(), sg.Vector.from_dense([5, 6, 7])).to_numpy().tolist()
    [1, 0, 1]
    """
    fused = getattr(backend(A.device), "color_greedily", composed_coloring)
    return fused(A, weight._with_values(_exponents), word)


def composed_coloring(A: Matrix, power: Vector, word: Vector) -> Vector:
    """`color_greedily` made of operations, by falling `power`. A round colours all vertices whose
    neighbours before them are coloured.

    Source: Jones and Plassmann, "A parallel graph coloring heuristic" (1993).
    """
    # row i of D: the neighbours of i before it
    D = A._where(lambda a, e, w, f, x: (f > e) | ((f == e) & (x < w)), power, word)
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


def _exponents(degrees: Array) -> Array:
    """The logarithms, rounded down, -1 of 0. They may be rounded themselves: the half keeps them
    from the next integer.
    """
    return np.floor(np.log2(degrees + 0.5)).astype(np.int8)


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


def choose_greedily(A: Matrix, word: Vector) -> Vector:
    """For each vertex whether it is chosen, as one is if no neighbour before it is: a full Vector
    of A.nrows truth values.

    `A` is a symmetric pattern without loops. The vertices come by falling `word`, a full Vector of
    unsigned integers on A's device, no two of which are equal.

    >>> import spgraph as sg
    >>> from spgraph.iterations.coloring import choose_greedily
    >>> word = sg.Vector.from_dense([7, 6, 5]).astype("uint64")
    >>> choose_greedily(sg.generators.grid(1, 3), word).to_numpy().tolist()
    [True, False, True]
    """
    return getattr(backend(A.device), "choose_greedily", composed_choice)(A, word)


def composed_choice(A: Matrix, word: Vector) -> Vector:
    """`choose_greedily` made of operations. A round chooses all vertices that come before all of
    their neighbours that are left.

    Source: Blelloch, Fineman, Shun, "Greedy sequential maximal independent set and matching are
    parallel on average" (2012).
    """
    left = word  # its entries are the vertices that are left
    member = Vector.filled(False, size=A.nrows, device=A.device)
    while left.nvals:
        # b<l> = A max.second l: the greatest among the neighbours
        best = mxv(A, left, max_second, mask=left.S)
        greater = ewise_union(left, best, binary.ge, left=0, right=0)
        chosen = select(greater, indexunary.valuene, False)
        assign(member, True, mask=chosen.S)
        # c<l> or= A any.pair c: they and their neighbours are decided
        mxv(A, chosen, any_pair, mask=left.S, accum=binary.lor, out=chosen)
        left = apply(left, unary.identity, mask=~chosen.S)
    return member
