"""The edge list of Graph500, and its kernel 1: the graph made of the list.

Both are in shards where the graph is to be. A tuple has two ends and a weight; loops and repeated
tuples are in the list, in no order that tells anything: every tuple is random by itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from spgraph.build import build_matrix
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import Array, array_module, index_dtype, is_cuda, on_device
from spgraph.distributed import Communicator, DistributedVector
from spgraph.distributed.containers.partition import Partition, partition_by_counts
from spgraph.distributed.generate.recipes import vertex_labels
from spgraph.distributed.io.ingest import Rows, compact, starts_of
from spgraph.distributed.io.input import matrix_of_rows
from spgraph.generators import kronecker_recipe
from spgraph.random_edges import generate_edges, numbers, state_of
from spgraph.semirings import binary

WEIGHTS = 3  # a purpose of random numbers, beside those of spgraph.generators
STEP, STEP_CUDA = 1 << 20, 1 << 25  # tuples looked at together
LOW = 0xFFFFFFFF


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
    recipe = kronecker_recipe(scale, edgefactor, seed=seed, self_loops=True)
    shards, state = communicator.num_shards, state_of(seed, WEIGHTS)
    found = Tuples([], [], communicator)
    for p, device in zip(communicator.local, communicator.devices, strict=True):
        first, last = recipe.edges * p // shards, recipe.edges * (p + 1) // shards
        with on_device(device) as xp:
            labels = vertex_labels(recipe, xp)
            labels = None if labels is None else labels.astype(np.int64)
            keys = xp.empty(last - first, np.int64)
            generate_edges(keys, recipe.kind, recipe.parameters, recipe.state, labels, True, first)
            del labels
            weights = xp.empty(last - first, np.float32)
            for part in _steps(keys):
                ids = xp.arange(first + part.start, first + part.stop, dtype=np.uint64)
                # 24 bits, which float32 holds exactly: 1 is never reached
                weights[part] = (numbers(state, ids) >> np.uint64(40)) * np.float32(2.0**-24)
        found.keys.append(keys)
        found.weights.append(weights)
    return found


def construct(tuples: Tuples, exchange: str = "auto") -> Graph:
    """Kernel 1: the graph of the tuples, in as many shards as these are, a plain Matrix if it is
    one. The number of vertices is found out, as the specification asks: the largest id + 1.
    """
    comm = tuples.communicator
    n = 1 + int(comm.all_reduce_host(np.array([max(map(_largest, tuples.keys))]), "max")[0])
    ends = comm.all_reduce([_counted(keys, n, loops=False) for keys in tuples.keys], "sum")
    loops = comm.all_reduce([_counted(keys, n, loops=True) for keys in tuples.keys], "sum")
    degrees = [_minus(a, b) for a, b in zip(ends, loops, strict=True)]
    del loops
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


def _steps(array: Array) -> Iterator[slice]:
    step = STEP_CUDA if is_cuda(array) else STEP
    for first in range(0, array.size, step):
        yield slice(first, min(first + step, array.size))


def _largest(keys: Array) -> int:
    """The largest end of these tuples, -1 of none."""
    with on_device(_device(keys)):
        parts = (keys[part] for part in _steps(keys))
        found = [max(int(part.max()) >> 32, int((part & LOW).max())) for part in parts]
    return max(found, default=-1)


def _device(array: Array) -> str:
    return f"cuda:{array.device.id}" if is_cuda(array) else "cpu"


def _counted(keys: Array, n: int, *, loops: bool) -> Array:
    """Of each vertex the ends of these tuples that it is; of those that are loops alone."""
    with on_device(_device(keys)) as xp:
        counts = xp.zeros(n, np.int64)
        for part in _steps(keys):
            start, end = keys[part] >> 32, keys[part] & LOW
            if loops:
                start = end = start[start == end]
            for ids in (start, end):
                if ids.size:
                    counts += xp.bincount(ids, minlength=n)
    return counts


def _minus(a: Array, b: Array) -> Array:
    with on_device(_device(a)):
        return a - b


def _off_diagonal(keys: Array, weights: Array) -> tuple[Array, Array]:
    """The tuples that are no loops, both ways."""
    xp = array_module(keys)
    off = keys >> 32 != keys & LOW
    keys, weights = keys[off], weights[off]
    return xp.concatenate([keys, keys << 32 | keys >> 32]), xp.concatenate([weights, weights])


def _on_cpu(tuples: Tuples, n: int) -> Matrix:
    keys, weights = _off_diagonal(tuples.keys[0], tuples.weights[0])
    made = build_matrix(
        *(keys >> 32, keys & LOW, weights),
        nrows=n,
        ncols=n,
        dtype=None,
        dup_op=binary.min,
        symmetric=True,
        device=None,
        compact=None,
    )
    assert isinstance(made, Matrix)
    return made


# --- in shards, and on a GPU ----------------------------------------------------------------------


def _placed(tuples: Tuples, degrees: list[Array], partition: Partition) -> list[Rows]:
    """The rows of each local shard. Each round sends the tuples of a step to the owners of their
    rows, where they are put into slots of these; then rows are sorted and repeats combined.
    """
    comm = tuples.communicator
    kind, offsets = index_dtype(partition.size), []
    indices, values = [], []
    for p, device, all in zip(comm.local, comm.devices, degrees, strict=True):
        with on_device(device) as xp:
            own = all[partition.slice(p)]
            offsets.append(starts_of(own))
            indices.append(xp.empty(int(own.sum()), kind))
            values.append(xp.empty(int(own.sum()), np.float32))
    for keys_in, weights_in in _rounds(tuples, partition):
        for k, (keys, weights) in enumerate(zip(keys_in, weights_in, strict=True)):
            with on_device(comm.devices[k]):
                for piece in zip(keys, weights, strict=True):
                    _put(offsets[k], indices[k], values[k], *piece, _first_row(partition, comm, k))
    made = []
    for k, device in enumerate(comm.devices):
        with on_device(device):
            made.append(compact(offsets[k], indices[k], values[k], "min"))
        indices[k] = values[k] = None
    return made


def _first_row(partition: Partition, comm: Communicator, k: int) -> int:
    return int(partition.offsets[comm.local[k]])


def _rounds(
    tuples: Tuples, partition: Partition
) -> Iterator[tuple[list[list[Array]], list[list[Array]]]]:
    """Of each step the entries that come to each local shard from every shard, sorted."""
    comm = tuples.communicator
    cuts = [list(_steps(keys)) for keys in tuples.keys]
    most = int(comm.all_reduce_host(np.array([max(map(len, cuts))]), "max")[0])
    for step in range(most):
        keys_out, weights_out = [], []
        for k, device in enumerate(comm.devices):
            part = cuts[k][step] if step < len(cuts[k]) else slice(0)
            with on_device(device) as xp:
                keys, weights = _off_diagonal(tuples.keys[k][part], tuples.weights[k][part])
                order = keys.argsort()
                keys, weights = keys[order], weights[order]
                del order
                bounds = xp.asarray(partition.offsets[1:-1] << 32)
                ends = [0, *xp.searchsorted(keys, bounds).tolist(), keys.size]
            keys_out.append([keys[a:b] for a, b in itertools.pairwise(ends)])
            weights_out.append([weights[a:b] for a, b in itertools.pairwise(ends)])
            del keys, weights
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
