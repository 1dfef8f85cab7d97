"""Searches over shards: on one GPU, on several, or level by level made of operations."""

from __future__ import annotations

import time

import numpy as np

from spgraph import direction as directions
from spgraph.containers import Vector
from spgraph.containers.storage.arrays import array_module, index_dtype
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.distributed.exchange.collectives import tag_graph
from spgraph.distributed.loops import peers, search_rounds
from spgraph.distributed.loops.single_device import single_device_of
from spgraph.distributed.operations.elements import write
from spgraph.distributed.operations.products import pull, push
from spgraph.semirings import TypedSemiring, any_pair


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
    typed = any_pair.resolve(start.dtype, A.dtype) if semiring is None else semiring
    placement, n = A.device, A.nrows
    level = placement.empty(n, index_dtype(n))
    value = None if semiring is None else placement.empty(n, typed.dtype)
    degrees = A.row_degrees() if trace else None
    q, depth, rows = start, 0, []
    while q.nvals:
        began = time.perf_counter()
        write(level, _constant(q, depth, level.dtype), q.S, None, False)
        if value is not None:
            write(value, q, q.S, None, False)
        if depth == max_depth:
            break
        chosen = direction
        if chosen == "auto":
            open_edges = n - level.nvals
            chosen = directions.choose(q.nvals, n, A.nvals, n, open_edges, first)
        frontier, edges = q.nvals, 0 if degrees is None else _edges(q, degrees)
        not_visited = ~level.S
        q = (
            push(A, q, typed, not_visited, False)
            if T is None or chosen == "push"
            else pull(T, q, typed, not_visited, True)
        )
        if q.nvals:
            spent = int(1e9 * (time.perf_counter() - began))
            rows.append((1 if T is None or chosen == "push" else 2, frontier, edges, spent))
        depth += 1
    return level, value, np.array(rows, np.int64).reshape(-1, 4) if trace else None


def _constant(q: DistributedVector, value: int, dtype: np.dtype) -> DistributedVector:
    """`value` at the entries of q."""
    return q._with_values(lambda x: array_module(x).full(x.size, value, dtype))


def _edges(q: DistributedVector, degrees: DistributedVector) -> int:
    """The number of out-edges of the entries of q; `degrees` are those of all vertices."""

    def own(k: int, shard: Vector, counts: Vector) -> int:
        return int(counts._values[shard.to_sparse()._indices].sum(dtype=np.int64))

    return q.device.total(q.device.map(own, q.shards, degrees.shards))
