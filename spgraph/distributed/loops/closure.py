"""Closures over shards: on one GPU; on several, in one launch or in rounds; or by operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from spgraph.backends.shards import Steps
from spgraph.backends.shards.closure import COUNTS, Part
from spgraph.containers import Vector
from spgraph.containers.storage.arrays import Array
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.distributed.exchange.collectives import tag_graph
from spgraph.distributed.exchange.lockstep import rounds_of
from spgraph.distributed.loops.sharded_graph import closure_graph, sparse_entries
from spgraph.distributed.loops.single_device import single_device_of
from spgraph.errors import unsettled
from spgraph.iterations.closure_buckets import composed_closure
from spgraph.semirings import TypedSemiring


def closure(
    A: DistributedMatrix,
    start: DistributedVector,
    semiring: TypedSemiring,
    delta: float | int | None,
    reach: float | int | None = None,
) -> DistributedVector:
    """As `closure` of a backend: the least fixed point of x = start + x A over the semiring.

    It runs on one GPU alone where that is faster, else on several: in one launch where they write
    into each other's memory, or in rounds with an exchange after each. Where the backend
    has no kernels for that (on CPUs) it is made of operations.
    """
    tag_graph(A, start, semiring)
    placement = A.device
    if one := single_device_of(A):
        return one.run("closure", start, semiring, delta, reach)
    able = placement.has("ClosureShard" if placement.peers is None else "closure_peers")
    if not able or semiring.multiply.positional:
        return cast(DistributedVector, composed_closure(A, start, semiring, reach or delta))
    ids, values = sparse_entries(start)
    if placement.peers is None:
        found = in_rounds(A, ids, values, semiring, delta, reach)
    else:
        given = (closure_graph(A), placement.peers, ids, values)
        found = placement.kernels.closure_peers(*given, semiring, delta, reach)
    shards = [
        Vector._of(part.values.size, part.values, bits=part.bits, nvals=part.reached)
        for part in found
    ]
    x = DistributedVector(A.nrows, shards, placement)
    if not found[0].settled:
        raise unsettled(semiring.name, A.nrows, x)
    return x


def in_rounds(
    A: DistributedMatrix,
    ids: Sequence[Array],
    values: Sequence[Array],
    semiring: TypedSemiring,
    delta: float | int | None,
    reach: float | int | None = None,
) -> list[Part]:
    """What each local shard finds in rounds that the host drives. The first closure of a graph over
    a semiring prepares it.
    """
    placement, asked = A.device, (semiring, delta is not None and semiring.dtype != np.bool_)
    graph, edges = closure_graph(A), A.nvals

    def make(k: int, p: int, words: np.ndarray) -> Any:
        return placement.kernels.ClosureShard(graph, k, p, edges, *asked, words)

    def begin(k: int, shard: Any) -> Steps[Part]:
        return shard.closure(ids[k], values[k], delta, reach)

    return rounds_of("closure", asked, placement, graph, COUNTS, make).run(begin)
