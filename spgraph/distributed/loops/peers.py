"""Search and closure between GPUs of one process that write into each other's memory (*peers*): one
kernel launch on each GPU for the whole loop.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from spgraph.backends.shards.closure import Closed
from spgraph.backends.shards.graph import GraphRows, ShardedGraph
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import Array
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.partition import Partition
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.errors import ConvergenceError
from spgraph.semirings import TypedSemiring, binary, monoid


@functools.lru_cache(maxsize=1024)
def finds_parents(semiring: TypedSemiring) -> bool:
    """Whether its sums are parents: the least, or any, of the neighbours' ids."""
    add, multiply = semiring.add, semiring.multiply
    if multiply.name not in ("secondi", "firstj") or not (add.any or add.name == "min"):
        return False
    # a user's operators may carry any name, and give values that are no ids
    if semiring.dtype not in (np.dtype(np.int32), np.dtype(np.int64)):
        return False
    named = getattr(binary, multiply.name).resolve(*multiply.arguments[:2], index=semiring.dtype)
    least = monoid.min.resolve(semiring.dtype)
    return multiply == named and (add.any or add.function == least.function)


def search(
    A: DistributedMatrix,
    T: DistributedMatrix | None,
    start: DistributedVector,
    semiring: TypedSemiring | None,
    direction: str,
    max_depth: int,
    trace: bool,
) -> tuple[DistributedVector, DistributedVector | None, np.ndarray | None]:
    """As `search` of a backend, with one launch on each GPU for all levels. The host waits for no
    device, unless `start` has to be made sparse.
    """
    placement = A.device
    assert placement.peers is not None
    parents = semiring is not None and finds_parents(semiring)
    transposed = A.T if T is None and parents else T
    sources, values = start_entries(start)
    found, rows = placement.kernels.search_peers(
        sharded_graph(A, transposed),
        placement.peers,
        sources,
        None if semiring is None else values,
        None if parents else semiring,
        direction=direction,
        max_depth=max_depth,
        trace=trace,
    )

    def whole(values: Sequence[Array], bits: Sequence[Array]) -> DistributedVector:
        shards = [
            Vector._of(own.size, own, bits=present, nvals=part.num_visited)
            for part, own, present in zip(found, values, bits, strict=True)
        ]
        return DistributedVector.in_flight(A.nrows, shards, placement)

    level = whole([part.level for part in found], [part.visited for part in found])
    if semiring is None:
        return level, None, rows
    dtype = semiring.dtype
    sums: list[Array] = [part.value for part in found]
    if parents and sums[0].dtype != dtype:

        def own(k: int, least: Array, at: Any, given: Any) -> Array:
            return widened(least, at, given, dtype)

        sums = placement.map(own, sums, sources, values)
    return level, whole(sums, [part.visited_copy for part in found]), rows


def widened(parents: Array, sources: Any, values: Any, dtype: np.dtype) -> Array:
    """Parents in the type of the semiring, and what `start` has at the sources: kernels hold both
    in the smallest type of ids, which some values do not fit. The sources are positions or None.
    """
    wide = parents.astype(dtype)
    if sources is not None:
        wide[sources] = values
    return wide


def start_entries(
    start: DistributedVector,
) -> tuple[Sequence[Array | int | None], Sequence[Array | np.generic | None]]:
    """(positions, values) of the entries of each local shard, as `search_peers` takes them: arrays;
    or, of a Vector of one entry, two numbers for the shard that owns it and None for the others.
    """
    placement, entry = start.device, start.entry
    if entry is not None:
        value = entry.dtype.type(entry.value)
        own = [p == entry.owner for p in placement.local]
        return [entry.place if it else None for it in own], [value if it else None for it in own]
    positions, values = zip(*sparse_entries(start), strict=True)
    return positions, values


def sparse_entries(v: DistributedVector) -> list[tuple[Array, Array]]:
    """(positions, values) of the entries of each local shard."""
    shards = v.shards
    if any(shard._indices is None for shard in shards):
        shards = v.device.map(lambda k, shard: shard.to_sparse(), shards)
    return [(shard._indices, shard._values) for shard in shards]


def sharded_graph(A: DistributedMatrix, T: DistributedMatrix | None) -> ShardedGraph:
    """The shards of A, and of its transpose if given, with internal ids and values: the graph that
    kernels take. Kept with A.
    """
    kind = "sharded_graph" if T is None else "sharded_graph_both"
    if kind not in A._derived:
        placement = A.device
        partition = placement.partition(A.nrows)
        types = index_types(A, T)

        def internal(k: int, shard: Matrix) -> tuple[Array, Array, Array]:
            return *_typed(shard, partition, types), shard._values

        out = placement.map(internal, A.shards)
        back: list[Any] = out if T is A else [(None, None, None)] * len(out)
        if T is not None and T is not A:
            back = placement.map(internal, T.shards)
        user_ids: list[Array | None] = [None] * len(out)
        if partition.ids is not None:
            user_ids = placement.map(lambda k, s: partition.user_ids(s.device), A.shards)
        shards = [
            GraphRows(i, j, ti, tj, ids, x, tx)
            for (i, j, x), (ti, tj, tx), ids in zip(out, back, user_ids, strict=True)
        ]
        # the columns of a row ascend by the user's ids, whatever their internal ids are
        offsets, symmetric = tuple(partition.offsets.tolist()), bool(A.symmetric)
        A._derived[kind] = ShardedGraph(offsets, shards, A.iso, symmetric=symmetric)
    return A._derived[kind]


def index_types(A: DistributedMatrix, T: DistributedMatrix | None) -> tuple[np.dtype, np.dtype]:
    """(of offsets, of ids): a kernel has one type of each for all shards and for the transpose."""
    shards = [*A.shards, *(() if T is None else T.shards)]
    offsets = np.result_type(*(shard._indptr.dtype for shard in shards))
    return offsets, np.result_type(*(shard._indices.dtype for shard in shards))


def _typed(
    shard: Matrix, partition: Partition, types: tuple[np.dtype, np.dtype]
) -> tuple[Array, Array]:
    """(offsets, internal ids) of a shard, in these types."""
    ids = partition.to_internal(shard._indices).astype(types[1], copy=False)
    return shard._indptr.astype(types[0], copy=False), ids


def closure(
    A: DistributedMatrix,
    start: DistributedVector,
    semiring: TypedSemiring,
    delta: float | int | None,
) -> DistributedVector:
    """As `closure` of a backend, with one launch on each GPU for all rounds."""
    try:
        return _as_vector(run_closure(A, start, semiring, delta), A)
    except ConvergenceError as error:
        error.result = _as_vector(cast(Closed, error.result), A)
        raise


def run_closure(
    A: DistributedMatrix,
    start: DistributedVector,
    semiring: TypedSemiring,
    delta: float | int | None,
) -> Closed:
    """What the kernels of a closure leave: the shards' values, the rounds, the relaxed edges."""
    placement = A.device
    assert placement.peers is not None
    ids, values = zip(*sparse_entries(start), strict=True)
    graph, peers = closure_graph(A), placement.peers
    return placement.kernels.closure_peers(graph, peers, ids, values, semiring, delta)


def _as_vector(found: Closed, A: DistributedMatrix) -> DistributedVector:
    shards = [
        Vector._of(part.values.size, part.values, bits=part.bits, nvals=part.reached)
        for part in found.parts
    ]
    return DistributedVector(A.nrows, shards, A.device)


def closure_graph(A: DistributedMatrix) -> ShardedGraph:
    """The graph that closure kernels take: with in-edges where A has its transpose already."""
    return sharded_graph(A, A.T if A.has_transpose else None)
