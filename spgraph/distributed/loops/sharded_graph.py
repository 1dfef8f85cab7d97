"""What kernels of loops over shards take: the graph, and the entries of a start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spgraph.backends.shards.graph import GraphRows, ShardedGraph
from spgraph.containers import Matrix
from spgraph.containers.storage.arrays import Array
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.vector import DistributedVector


def sharded_graph(A: DistributedMatrix, T: DistributedMatrix | None) -> ShardedGraph:
    """The shards of A, and of its transpose if given, with internal ids and values: the graph that
    kernels take. Kept with A.
    """
    kind = "sharded_graph" if T is None else "sharded_graph_both"
    if kind in A._derived:
        return A._derived[kind]
    placement, partition = A.device, A.device.partition(A.nrows)
    # a kernel has one type of offsets, and one of ids, for all shards and for the transpose
    every = [*A.shards, *(() if T is None else T.shards)]
    offsets = np.result_type(*(shard._indptr.dtype for shard in every))
    offsets = np.dtype(f"{offsets.kind}{placement.largest(offsets.itemsize)}")  # of all processes
    ids = np.result_type(*(shard._indices.dtype for shard in every))

    def internal(k: int, shard: Matrix) -> tuple[Array, Array, Array]:
        columns = partition.to_internal(shard._indices).astype(ids, copy=False)
        return shard._indptr.astype(offsets, copy=False), columns, shard._values

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
    begins, symmetric = tuple(partition.offsets.tolist()), bool(A.symmetric)
    A._derived[kind] = ShardedGraph(begins, shards, A.iso, symmetric=symmetric)
    return A._derived[kind]


def closure_graph(A: DistributedMatrix) -> ShardedGraph:
    """The graph that closure kernels take: with in-edges where A has its transpose already."""
    return sharded_graph(A, A._T if A.has_transpose else None)


def start_entries(
    start: DistributedVector,
) -> tuple[Sequence[Array | int | None], Sequence[Array | np.generic | None]]:
    """(positions, values) of the entries of each local shard, as `search_peers` takes them: arrays;
    or, of a Vector of one entry, two numbers for the shard that owns it and None for the others.
    """
    placement, entry = start.device, start.entry
    if entry is None:
        return sparse_entries(start)
    value = entry.dtype.type(entry.value)
    own = [p == entry.owner for p in placement.local]
    return [entry.place if it else None for it in own], [value if it else None for it in own]


def sparse_entries(v: DistributedVector) -> tuple[list[Array], list[Array]]:
    """(positions, values) of the entries of each local shard."""
    shards = v.shards
    if any(shard._indices is None for shard in shards):
        shards = v.device.map(lambda k, shard: shard.to_sparse(), shards)
    return [shard._indices for shard in shards], [shard._values for shard in shards]
