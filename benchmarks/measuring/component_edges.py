"""How many edges connected components look at, by the rule of the loop, which does not count them.

Two edges of each vertex are followed, or one, on a GPU, where its least neighbour is above it. Most
vertices are then in one tree, the giant, and of the others all further edges are followed. Here the
tree with the most edges is the giant; the loop finds it by a vote over a sample of them, and while
it follows edges, vertices join the giant, whose edges it then leaves out: it looks at no more than
is counted here, and on graphs with a giant component at hardly less.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import spgraph as sg
from spgraph import direction
from spgraph.containers.storage.arrays import index_dtype, move, on_device
from spgraph.distributed import DistributedMatrix


def component_edges(A: Any) -> int | None:
    """The edges that `sg.connected_components(A)` looks at, A symmetric, on one device or in
    shards, of these in rounds; None for a matrix that is not known to be symmetric.
    """
    if not A.symmetric:
        return None
    if not isinstance(A, DistributedMatrix):
        return _by_the_giant(A.nrows, [A], [None])
    n, placement = A.nrows, A.device
    if placement.has("ComponentsShard") and direction.a_sample_pays(n, A.nvals):
        ids = [placement.shard_ids(k, n) for k in range(len(A.shards))]
        return _by_the_giant(n, A.shards, ids)
    return int(A.nvals)  # each shard follows all edges of its rows


def _by_the_giant(n: int, shards: list[sg.Matrix], ids: list[Any]) -> int:
    """The count for rows in shards, which have these vertices; None stands for all."""
    place = shards[0].device
    with on_device(place) as xp:
        degree, near = xp.zeros(n, np.int64), xp.full((n, 2), -1, index_dtype(n))
        for shard, own in zip(shards, ids, strict=True):
            at: Any = slice(None) if own is None else move(own, place)
            degrees, ends = _first_two(shard)
            degree[at], near[at] = move(degrees, place), move(ends, place)
        followed = (near >= 0).sum(axis=1)
        if place != "cpu":  # as `followed` of contract.cu
            followed = xp.where(near[:, 0] > xp.arange(n), xp.minimum(followed, 1), followed)
        taken = xp.arange(2) < followed[:, None]
        indptr = xp.concatenate([xp.zeros(1, np.int64), xp.cumsum(followed)])
        tree = sg.Matrix._of(n, n, indptr, near[taken], xp.ones(1, bool), iso=True)
        label = sg.connected_components(tree)._values
        sizes = xp.bincount(label, weights=degree)  # in edges, each of which has two ends
        giant = int(sizes.argmax())
        if place == "cpu" and 2 * sizes[giant] <= degree.sum():
            giant = -1  # the vote asks for more than half
        return int(followed.sum() + (degree - followed)[label != giant].sum())


def _first_two(A: sg.Matrix) -> tuple[Any, Any]:
    """(the degrees, the least two neighbours of each row, -1 where there are fewer)."""
    with on_device(A.device) as xp:
        degrees = (A.indptr[1:] - A.indptr[:-1]).astype(np.int64)
        ends = xp.full((A.nrows, 2), -1, A.indices.dtype)
        for k in (0, 1):
            rows = xp.flatnonzero(degrees > k)
            ends[rows, k] = A.indices[A.indptr[rows] + k]
        return degrees, ends
