"""What one thread chooses vertex by vertex: greedy colourings and sets, cores."""

from __future__ import annotations

import numpy as np

from spgraph.backends.cpu.runtime import jit, pool
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import index_dtype
from spgraph.containers.storage.sorting import order_of


def color_greedily(A: Matrix, power: Vector, word: Vector) -> Vector:
    """For each vertex the least number from 0 that no neighbour before it has, by falling `power`,
    then rising `word`; A is a symmetric pattern without loops.
    """
    n = A.nrows
    order = word._values.argsort()
    powers = power._values.take(order)
    order = order.take(order_of(powers.max(initial=0) - powers))
    color = np.full(n, -1, index_dtype(n))
    # for each colour the last vertex that has a neighbour of it; no vertex needs more colours
    most = int(np.diff(A._indptr).max(initial=0)) + 1
    taken = np.full(most, -1, np.int64)
    kernel = jit.module("color_greedily", "").color_greedily
    pool.launch(kernel, 1, A._indptr, A._indices, order, taken, color)
    return Vector._of(n, color)


def choose_greedily(A: Matrix, word: Vector) -> Vector:
    """For each vertex whether it is chosen, as one is if no neighbour before it is, by falling
    `word`; A is a symmetric pattern without loops.
    """
    order = word._values.argsort()
    near, chosen = np.zeros((2, A.nrows), bool)
    kernel = jit.module("color_greedily", "").choose_greedily
    pool.launch(kernel, 1, A._indptr, A._indices, order, near, chosen)
    return Vector._of(A.nrows, chosen)


def peel(A: Matrix) -> Vector:
    """For each vertex of a symmetric pattern without loops its degree when it is taken away, or
    that of one taken before it if that is greater, where always one of the least degree is.
    """
    degree = np.diff(A._indptr).astype(index_dtype(A.ncols), copy=False)
    order, place = order_of(degree), np.empty(A.nrows, np.int64)
    place[order] = np.arange(A.nrows)
    # where those of each degree begin in the order
    first = np.append(0, np.bincount(degree).cumsum())
    kernel = jit.module("peel", "").peel
    pool.launch(kernel, 1, A._indptr, A._indices, order, place, first, degree)
    return Vector._of(A.nrows, degree)
