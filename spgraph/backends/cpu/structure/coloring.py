"""Greedy colourings."""

from __future__ import annotations

import numpy as np

from spgraph.backends.cpu.runtime import jit, pool
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import index_dtype


def color_greedily(A: Matrix, power: Vector, word: Vector) -> Vector:
    """For each vertex the least number from 0 that no neighbour before it has, by falling `power`,
    then rising `word`; A is a symmetric pattern without loops.
    """
    n = A.nrows
    order = word._values.argsort()
    order = order.take((-power._values).take(order).argsort(kind="stable"))
    color = np.full(n, -1, index_dtype(n))
    # for each colour the last vertex that has a neighbour of it; no vertex needs more colours
    most = int(np.diff(A._indptr).max(initial=0)) + 1
    taken = np.full(most, -1, np.int64)
    kernel = jit.module("color_greedily", "").color_greedily
    pool.launch(kernel, 1, A._indptr, A._indices, order, taken, color)
    return Vector._of(n, color)
