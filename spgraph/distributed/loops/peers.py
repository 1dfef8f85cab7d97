"""The peer form of the loops: GPUs of one process that write into each other's memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from spgraph.backends.cuda.closure.closure_peers import (
    Closed,
    ClosureGraph,
    ClosureShard,
    closure_peers,
)
from spgraph.backends.cuda.exchange.peer_graph import PeerGraph, PeerShard
from spgraph.backends.cuda.search.search_peers import search_peers
from spgraph.containers import Matrix, Vector
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.errors import ConvergenceError
from spgraph.semirings import TypedSemiring


def finds(semiring: TypedSemiring | None) -> bool:
    """Whether the peer form of search is of that semiring: levels alone, or the least parents."""
    if semiring is None:
        return True
    least = semiring.add.any or semiring.add.name == "min"
    return least and semiring.multiply.name in ("secondi", "firstj")


def search(
    A: Any,
    T: Any,
    start: Any,
    semiring: TypedSemiring | None,
    direction: str,
    max_depth: int,
    trace: bool,
) -> tuple[Vector, Vector | None, Any]:
    """As `search` of a backend, in one launch a GPU for all levels. Nothing waits for a device,
    unless `start` has to be made sparse.
    """
    placement = A.device
    parents = semiring is not None
    transposed = A.T if T is None and parents else T
    sources, values = starts(start)
    found, rows = search_peers(
        graph(A, transposed),
        placement.peers,
        sources,
        values if parents else None,
        direction=direction,
        max_depth=max_depth,
        trace=trace,
    )

    def whole(values: Sequence[Any], bits: Sequence[Any]) -> DistributedVector:
        shards = [
            Vector(own.size, own, bits=visited, nvals=part.num_visited)
            for part, own, visited in zip(found, values, bits, strict=True)
        ]
        return DistributedVector.in_flight(A.nrows, shards, placement)

    level = whole([part.level for part in found], [part.visited for part in found])
    if semiring is None:
        return level, None, rows
    values, dtype = [part.parent for part in found], semiring.dtype
    if values[0].dtype != dtype:
        values = placement.map(lambda k, own: own.astype(dtype), values)
    return level, whole(values, [part.visited_copy for part in found]), rows


def starts(start: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    """(positions, values) of the entries of each shard: arrays; or two numbers in one of them."""
    placement, entry = start.device, start.entry
    if entry is not None:
        one = entry.dtype.type(entry.value)
        pairs = [
            (entry.place, int(one)) if p == entry.owner else (None, None) for p in placement.local
        ]
    else:
        shards = start.shards
        if any(shard._indices is None for shard in shards):
            shards = placement.map(lambda k, shard: shard.to_sparse(), shards)
        pairs = [(shard._indices, shard._values) for shard in shards]
    sources, values = zip(*pairs, strict=True)
    return sources, values


def graph(A: Any, T: Any) -> PeerGraph:
    """The shards of A and of its transpose as the peer form takes them; kept with A."""
    kind = "peers" if T is None else "peers_both"
    if kind not in A._derived:
        placement, symmetric = A.device, bool(A.symmetric)
        partition = placement.partition(A.nrows)

        types = index_types(A, T)

        def inside(k: int, shard: Matrix) -> tuple[Any, Any]:
            return _typed(shard, partition, types)

        out = placement.map(inside, A.shards)
        back = out if T is A else [(None, None)] * len(out)
        if T is not None and T is not A:
            back = placement.map(inside, T.shards)
        ids = [None] * len(out)
        if partition.ids is not None:
            ids = placement.map(lambda k, shard: partition.user_ids(shard.device), A.shards)
        parts = zip(out, back, ids, strict=True)
        shards = [PeerShard(i, j, ti, tj, every) for (i, j), (ti, tj), every in parts]
        # the columns of a row ascend by the user's ids, whatever they are inside
        offsets = tuple(partition.offsets.tolist())
        A._derived[kind] = PeerGraph(offsets, shards, ordered=True, symmetric=symmetric)
    return A._derived[kind]


def index_types(A: Any, T: Any) -> tuple[np.dtype, np.dtype]:
    """(of offsets, of ids): a kernel knows one of each for all shards, and for the transpose."""
    shards = [*A.shards, *(() if T is None else T.shards)]
    offsets = np.result_type(*(shard._indptr.dtype for shard in shards))
    return offsets, np.result_type(*(shard._indices.dtype for shard in shards))


def _typed(shard: Matrix, partition: Any, types: tuple[np.dtype, np.dtype]) -> tuple[Any, Any]:
    """(offsets, internal ids) of a shard."""
    ids = partition.to_internal(shard._indices).astype(types[1], copy=False)
    return shard._indptr.astype(types[0], copy=False), ids


def closure(A: Any, start: Any, semiring: TypedSemiring, delta: Any) -> DistributedVector:
    """As `closure` of a backend, in one launch a GPU for all rounds."""
    try:
        return _as_vector(closed(A, start, semiring, delta), A)
    except ConvergenceError as error:
        error.result = _as_vector(cast(Closed, error.result), A)
        raise


def closed(A: Any, start: Any, semiring: TypedSemiring, delta: Any) -> Closed:
    """The closure's parts, and how many edges were looked at in how many rounds."""
    first = A.device.map(lambda k, shard: shard.to_sparse(), start.shards)
    ids, values = [shard._indices for shard in first], [shard._values for shard in first]
    return closure_peers(weighted(A), A.device.peers, ids, values, semiring, delta)


def _as_vector(found: Closed, A: Any) -> DistributedVector:
    shards = [
        Vector(part.values.size, part.values, bits=part.bits, nvals=part.reached)
        for part in found.parts
    ]
    return DistributedVector(A.nrows, shards, A.device)


def weighted(A: Any) -> ClosureGraph:
    """The shards as the peer form of closure takes them, with in-edges where they are at hand; kept
    with A.
    """
    T = A.T if A.has_transpose else None
    kind = "closure" if T is None else "closure_both"
    if kind not in A._derived:
        placement = A.device
        partition = placement.partition(A.nrows)

        types = index_types(A, T)

        def inside(k: int, shard: Matrix) -> tuple[Any, Any, Any]:
            return *_typed(shard, partition, types), shard._values

        out = placement.map(inside, A.shards)
        back: list[Any] = out if T is A else [(None, None, None)] * len(out)
        if T is not None and T is not A:
            back = placement.map(inside, T.shards)
        shards = [ClosureShard(*rows, *columns) for rows, columns in zip(out, back, strict=True)]
        A._derived[kind] = ClosureGraph(tuple(partition.offsets.tolist()), shards, A.iso)
    return A._derived[kind]
