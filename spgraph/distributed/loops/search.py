"""Searches over shards: on one GPU, on several, or level by level made of operations."""

from __future__ import annotations

from typing import cast

import numpy as np

from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.distributed.exchange.collectives import tag_graph
from spgraph.distributed.loops import peers, search_rounds
from spgraph.distributed.loops.single_device import single_device_of
from spgraph.iterations.level_search import composed_search
from spgraph.semirings import TypedSemiring


def search(
    A: DistributedMatrix,
    T: DistributedMatrix | None,
    start: DistributedVector,
    semiring: TypedSemiring | None,
    first: bool,
    direction: str,
    max_depth: int,
    trace: bool,
) -> tuple[DistributedVector, DistributedVector | None, np.ndarray | None]:
    """As `search` of a backend: q<not visited> = q (add.multiply) A, level by level.

    It runs on one GPU alone where that is faster; else on several, in one launch where they write
    into each other's memory, or in rounds with an exchange after each level. Where the backend has
    no kernels for that, a level is a product under the mask of the unvisited.
    """
    tag_graph(A)
    if one := single_device_of(A):
        whole = one.whole
        transposed = None if T is None else whole.T
        rest_of_one = (semiring, first, direction, max_depth, trace)
        found = A.device.backend(0).search(whole, transposed, one.gather(start), *rest_of_one)
        scatter = one.scatter
        return scatter(found[0]), None if found[1] is None else scatter(found[1]), found[2]
    rest = (semiring, direction, max_depth, trace)
    if A.device.peers is not None and A.device.has("search_peers"):
        return peers.search(A, T, start, *rest)
    if A.device.peers is None and A.device.has("SearchShard"):
        return search_rounds.search(A, T, start, *rest)
    found = composed_search(A, T, start, semiring, first, direction, max_depth, trace)
    return cast(tuple[DistributedVector, DistributedVector | None, np.ndarray | None], found)
