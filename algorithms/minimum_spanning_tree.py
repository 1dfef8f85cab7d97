"""Minimum spanning trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..containers import Matrix, Vector
from ..containers.arrays import Array, array_module, index_dtype
from ..operations import assign, extract
from ..operations import select as select_entries
from ..semirings import binary, select
from .vertices import square


def minimum_spanning_tree(A: Any) -> Matrix:
    """The edges of least total weight that connect what A connects: a Matrix of A's shape and type
    that holds the chosen entries of A, one fewer than a component has vertices.

    `A` is a square Matrix or what `Matrix` can be made from; edges connect whichever way they
    point. Where A[i, j] and A[j, i] are both there, the lesser counts. Of entries of equal weight
    the first by (i, j) is preferred, so that the tree is the same on every device. An entry of
    value 0 is an edge of weight 0 (scipy.sparse.csgraph.minimum_spanning_tree leaves it out); loops
    are no edges. DimensionMismatch for an A that is not square, ValueError for NaN.

    Every round at least halves the number of vertices: each component joins its nearest one.

    Source: Boruvka, "O jistem problemu minimalnim" (1926); labels: Shiloach and Vishkin, "An
    O(log n) parallel connectivity algorithm" (1982).

    >>> import spgraph as sg
    >>> from spgraph.algorithms.minimum_spanning_tree import minimum_spanning_tree
    >>> A = sg.Matrix.from_coo([0, 0, 1, 2], [1, 2, 2, 3], [4, 9, 3, 1], nrows=5, ncols=5)
    >>> list(minimum_spanning_tree(A))
    [(0, 1, 4), (1, 2, 3), (2, 3, 1)]
    """
    A = square("minimum_spanning_tree", A)
    xp, n = array_module(A.indices), A.nrows
    if A.dtype.kind == "f" and bool(xp.isnan(A.values).any()):
        raise ValueError("minimum_spanning_tree: A: expected weights that can be compared, got NaN")
    # of the two equal entries of a symmetric matrix only the first can be chosen
    A = select_entries(A, *((select.triu, 1) if A.symmetric else (select.offdiag,)))
    kept = xp.zeros(A.nvals, bool)
    # edges by rising weight; from here on its place in this order is the weight of an edge
    edge = xp.arange(A.nvals) if A.iso else xp.argsort(A.values, kind="stable")
    head, tail = A.row_indices()[edge], A.indices[edge]
    while edge.size:
        place = Vector(edge.size, xp.arange(edge.size))
        least = Vector.empty(n, np.int64, device=A.device)
        # l(c) = the least over all edges from c, and then to c
        assign(least, place, head, accum=binary.min)
        assign(least, place, tail, accum=binary.min)
        component, first = least.to_coo()
        kept[edge[first]] = True
        other = xp.where(head[first] == component, tail[first], head[first])
        root = _roots(n, component, other)
        head, tail = extract(root, head).values, extract(root, tail).values
        between = head != tail
        head, tail, edge = head[between], tail[between], edge[between]
    return _part(A, kept)


def _roots(n: int, component: Array, other: Array) -> Vector:
    """What each component becomes part of when it joins its nearest, the `other`."""
    xp = array_module(component)
    ids = xp.arange(n, dtype=index_dtype(n))
    parent = ids.copy()
    parent[component] = other
    # two that are nearest to each other are the only cycles: the lesser is the root
    pair = (parent[parent] == ids) & (ids < parent)
    root = Vector(n, xp.where(pair, ids, parent))
    while True:
        # r = r[r]
        last, root = root, extract(root, root.values)
        if root.isequal(last):
            return root


def _part(A: Matrix, kept: Array) -> Matrix:
    """The entries of A that are kept."""
    xp = array_module(A.indices)
    places = xp.zeros(A.nvals + 1, A.indptr.dtype)
    xp.cumsum(kept, dtype=places.dtype, out=places[1:])
    values = A.values if A.iso else A.values[kept]
    return Matrix(A.nrows, A.ncols, places[A.indptr], A.indices[kept], values, iso=A.iso)
