"""The edge list of Graph500, and its kernel 1: the graph made of the list.

Both are in shards where the graph is to be. A tuple has two ends and a weight; loops and repeated
tuples are in the list, in no order that tells anything: every tuple is random by itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import Array, array_module, index_dtype, is_cuda, on_device
from spgraph.distributed import Communicator, DistributedVector
from spgraph.distributed.containers.partition import Partition
from spgraph.distributed.containers.partitioners import partition_by_counts
from spgraph.distributed.io.ingest import Rows, compact, starts_of
from spgraph.distributed.io.input import matrix_of_rows
from spgraph.generators import kronecker_model
from spgraph.random_edges import generate_edges, numbers, state_of, vertex_labels
from spgraph.semirings import binary

WEIGHTS = 3  # a purpose of random numbers, beside those of spgraph.generators
STEP, STEP_CUDA = 1 << 20, 1 << 25  # tuples looked at together
LOW = 0xFFFFFFFF

R = TypeVar("R")


class Tuples(NamedTuple):
    """The part of the edge list that each local shard of a communicator has, on its device: keys
    start << 32 | end, int64, and weights, float32, uniform in [0, 1).
    """

    keys: list[Array]
    weights: list[Array]
    communicator: Communicator


class Graph(NamedTuple):
    """What kernel 1 makes: the symmetric Matrix without loops, of repeated tuples the least weight;
    of each vertex the ends of tuples that it is, those of loops twice; and the same of tuples that
    are no loops, as an array of all vertices on the device of each local shard.
    """

    A: Matrix
    ends: Vector
    degrees: list[Array]


def generate_tuples(scale: int, edgefactor: int, seed: int, communicator: Communicator) -> Tuples:
    """edgefactor * 2**scale tuples of 2**scale vertices, a share of them for each shard.

    The edges are those of `spgraph.generators.kronecker`: A, B, C, D = 0.57, 0.19, 0.19, 0.05, and
    permuted vertices. The list is the same whatever the number of shards and their devices.
    """
    model = kronecker_model(scale, edgefactor, seed=seed, self_loops=True)
    shards, state = communicator.num_shards, state_of(seed, WEIGHTS)

    def share(k: int, xp: ModuleType) -> tuple[Array, Array]:
        p = communicator.local[k]
        first, last = model.edges * p // shards, model.edges * (p + 1) // shards
        keys = xp.empty(last - first, np.int64)
        generate_edges(keys, model, vertex_labels(model, xp), first)
        weights = xp.empty(last - first, np.float32)
        for part in _steps(keys):
            ids = xp.arange(first + part.start, first + part.stop, dtype=np.uint64)
            # 24 bits, which float32 holds exactly: 1 is never reached
            weights[part] = (numbers(state, ids) >> np.uint64(40)) * np.float32(2.0**-24)
        return keys, weights

    made = _on_each(communicator, share)
    return Tuples([keys for keys, _ in made], [weights for _, weights in made], communicator)


def construct(tuples: Tuples, exchange: str = "auto") -> Graph:
    """Kernel 1: the graph of the tuples, in as many shards as these are, a plain Matrix if it is
    one. The number of vertices is found out, as the specification asks: the largest id + 1.
    """
    comm = tuples.communicator
    largest = max(_on_each(comm, lambda k, xp: _largest(tuples.keys[k])))
    n = 1 + int(comm.all_reduce_host(np.array([largest]), "max")[0])

    def count(loops: bool) -> list[Array]:
        return comm.all_reduce(
            _on_each(comm, lambda k, xp: _counted(tuples.keys[k], n, loops)), "sum"
        )

    def without_loops() -> list[Array]:
        loops = count(True)
        return _on_each(comm, lambda k, xp: ends[k] - loops[k])

    ends = count(False)
    degrees = without_loops()
    if comm.num_shards == 1 and comm.devices[0] == "cpu":
        return Graph(_on_cpu(tuples, n), Vector._of(n, ends[0]), degrees)
    with on_device(comm.devices[0]):
        partition = partition_by_counts(degrees[0], comm.num_shards)
    rows = _placed(tuples, degrees, partition)
    if comm.num_shards == 1:
        indptr, indices, values = rows[0]
        A = Matrix._of(n, n, indptr, indices, values, symmetric=True)
        return Graph(A, Vector._of(n, ends[0]), degrees)
    G = matrix_of_rows(partition, rows, comm, exchange, True)
    own = G.device.map(lambda k, all: all[partition.slice(comm.local[k])].copy(), ends)
    shards = [Vector._of(array.size, array) for array in own]
    return Graph(G, DistributedVector(n, shards, G.device), degrees)


def _on_each(comm: Communicator, function: Callable[[int, ModuleType], R]) -> list[R]:
    """[function(k, the library of its device) for each local shard k], each on its device; several
    GPUs get a thread each.
    """

    def run(k: int) -> R:
        with on_device(comm.devices[k]) as xp:
            return function(k, xp)

    ks = range(len(comm.devices))
    if len(set(comm.devices)) < len(comm.devices) or len(ks) == 1:
        return [run(k) for k in ks]
    with ThreadPoolExecutor(len(ks)) as pool:
        return list(pool.map(run, ks))


def _steps(array: Array) -> Iterator[slice]:
    step = STEP_CUDA if is_cuda(array) else STEP
    for first in range(0, array.size, step):
        yield slice(first, min(first + step, array.size))


def _largest(keys: Array) -> int:
    """The largest end of these tuples, -1 of none."""
    parts = (keys[part] for part in _steps(keys))
    return max((max(int(x.max()) >> 32, int((x & LOW).max())) for x in parts), default=-1)


def _counted(keys: Array, n: int, loops: bool) -> Array:
    """Of each vertex the ends of these tuples that it is; of those that are loops alone."""
    xp = array_module(keys)
    counts = xp.zeros(n, np.int64)
    for part in _steps(keys):
        start, end = keys[part] >> 32, keys[part] & LOW
        if loops:
            start = end = start[start == end]
        for ids in (start, end):
            if ids.size:
                counts += xp.bincount(ids, minlength=n)
    return counts


def _off_diagonal(keys: Array, weights: Array) -> tuple[Array, Array]:
    """The tuples that are no loops, both ways."""
    xp = array_module(keys)
    off = keys >> 32 != keys & LOW
    keys, weights = keys[off], weights[off]
    return xp.concatenate([keys, keys << 32 | keys >> 32]), xp.concatenate([weights, weights])


def _on_cpu(tuples: Tuples, n: int) -> Matrix:
    keys, weights = _off_diagonal(tuples.keys[0], tuples.weights[0])
    return Matrix.from_coo(
        *(keys >> 32, keys & LOW, weights), nrows=n, ncols=n, dup_op=binary.min, symmetric=True
    )


# --- in shards, and on a GPU ----------------------------------------------------------------------


def _placed(tuples: Tuples, degrees: list[Array], partition: Partition) -> list[Rows]:
    """The rows of each local shard. Each round sends the tuples of a step to the owners of their
    rows, where they are put into slots of these; then rows are sorted and repeats combined.
    """
    comm, kind = tuples.communicator, index_dtype(partition.size)

    def slots(k: int, xp: ModuleType) -> tuple[Array, Array, Array]:
        own = degrees[k][partition.slice(comm.local[k])]
        size = int(own.sum())
        return starts_of(own), xp.empty(size, kind), xp.empty(size, np.float32)

    arrays = _on_each(comm, slots)
    for keys_in, weights_in in _rounds(tuples, partition):

        def put(k: int, xp: ModuleType, came: Any = (keys_in, weights_in)) -> None:
            for keys, weights in zip(came[0][k], came[1][k], strict=True):
                _put(*arrays[k], keys, weights, int(partition.offsets[comm.local[k]]))

        _on_each(comm, put)
    return _on_each(comm, lambda k, xp: compact(*arrays[k], "min"))


def _rounds(
    tuples: Tuples, partition: Partition
) -> Iterator[tuple[list[list[Array]], list[list[Array]]]]:
    """Of each step the entries that come to each local shard from every shard, sorted."""
    comm = tuples.communicator
    cuts = [list(_steps(keys)) for keys in tuples.keys]
    most = int(comm.all_reduce_host(np.array([max(map(len, cuts))]), "max")[0])
    for step in range(most):

        def by_owner(k: int, xp: ModuleType, step: int = step) -> tuple[list[Array], list[Array]]:
            part = cuts[k][step] if step < len(cuts[k]) else slice(0)
            keys, weights = _off_diagonal(tuples.keys[k][part], tuples.weights[k][part])
            order = keys.argsort()
            keys, weights = keys[order], weights[order]
            bounds = xp.asarray(partition.offsets[1:-1] << 32)
            ends = [0, *xp.searchsorted(keys, bounds).tolist(), keys.size]
            ranges = [slice(*pair) for pair in itertools.pairwise(ends)]
            return [keys[part] for part in ranges], [weights[part] for part in ranges]

        out = _on_each(comm, by_owner)
        keys_out, weights_out = [keys for keys, _ in out], [weights for _, weights in out]
        if comm.num_shards == 1:
            yield keys_out, weights_out
        else:
            keys_in = comm.all_to_all(keys_out)
            sizes = [[piece.size for piece in row] for row in keys_in]
            yield keys_in, comm.all_to_all(weights_out, sizes=sizes)


def _put(
    offsets: Array, indices: Array, values: Array, keys: Array, weights: Array, first: int
) -> None:
    """Put sorted entries into free slots of their rows, of which the first is `first`.

    offsets[r + 1] is the next free slot of row r, as in `starts_of`.
    """
    if not keys.size:
        return
    xp = array_module(keys)
    rows = (keys >> 32) - first
    begins = xp.ones(rows.size, bool)
    xp.not_equal(rows[1:], rows[:-1], out=begins[1:])
    starts = xp.flatnonzero(begins)
    lengths = xp.empty(starts.size, np.int64)
    lengths[:-1] = starts[1:] - starts[:-1]
    lengths[-1] = rows.size - int(starts[-1])
    free = rows[starts] + 1
    slots = (offsets[free] - starts)[xp.cumsum(begins, dtype=np.int64) - 1]
    slots += xp.arange(rows.size)
    offsets[free] += lengths
    indices[slots] = (keys & LOW).astype(indices.dtype)
    values[slots] = weights
