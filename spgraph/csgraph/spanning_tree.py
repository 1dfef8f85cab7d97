"""Minimum spanning trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from spgraph.algorithms import minimum_spanning_tree as least_tree
from spgraph.containers.annotations import SparseArray
from spgraph.containers.storage.arrays import array_module
from spgraph.csgraph.graphs import Rows, like, rows_of, traversals
from spgraph.csgraph.kinds import GraphLike, flags


def minimum_spanning_tree(csgraph: GraphLike, overwrite: bool = False) -> SparseArray:
    """The minimum spanning tree of each component: compressed rows of float64 with the chosen
    entries of `csgraph`, on its device.

    `csgraph` is a graph in any form that SciPy accepts, or CuPy's on a GPU. The direction of edges
    is ignored, and of parallel edges the least counts. An entry of value zero may be chosen, but is
    not stored in the result, as in SciPy. NaN is greater than all numbers.

    Of entries of equal weight the first in the rows of `csgraph` is preferred. This makes the tree
    unique, and equal to SciPy's, whose documentation leaves it open. `overwrite` is accepted, but
    `csgraph` is never changed.

    Raises ValueError for a graph that is not square.

    Source: Boruvka, "O jistem problemu minimalnim" (1926).

    >>> from spgraph.csgraph import minimum_spanning_tree
    >>> minimum_spanning_tree([[0, 1, 5], [0, 0, 2], [0, 0, 0]]).toarray()
    array([[0., 1., 0.],
           [0., 0., 2.],
           [0., 0., 0.]])
    """
    flags("minimum_spanning_tree", overwrite=overwrite)
    rows = rows_of(csgraph)
    return like(csgraph, ranked(rows) if rows.on_gpu else _on_the_cpu(rows))


def _on_the_cpu(rows: Rows) -> Any:
    values = rows.lengths()
    kept = traversals(values).spanning_forest((rows.indptr, rows.indices, values))
    chosen = np.flatnonzero(kept)
    chosen = chosen[values[chosen] != 0]
    indptr = np.searchsorted(chosen, rows.indptr).astype(np.int32)
    indices = rows.indices[chosen].astype(np.int32, copy=False)
    return rows.build(indptr, indices, values[chosen].astype(np.float64, copy=False))


def ranked(rows: Rows) -> Any:
    """The tree by spgraph's algorithm over the ranks of the weights, because it refuses NaN."""
    xp = array_module(rows.indices)
    values = rows.lengths()
    order = xp.argsort(values, kind="stable")
    rank = xp.empty(values.size, np.int64)
    rank[order] = xp.arange(values.size)
    found = least_tree(rows.canonical(rank))
    weights = values[order[found._values]].astype(np.float64)
    made = rows.build(found._indptr.astype(np.int32), found._indices.astype(np.int32), weights)
    made.eliminate_zeros()
    return made
