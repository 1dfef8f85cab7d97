"""Random graphs generated in shards: the same graphs as on one device, but no process holds all
edges.

On CPUs each shard generates a share of the edges and sends them to the owners of their rows. A GPU
generates edges faster than they can be sent, so that each shard generates all and keeps its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import numpy as np

from spgraph.containers.storage.arrays import Array, device_of, move, on_device
from spgraph.distributed.communicators import Communicator
from spgraph.distributed.containers.partition import Partition, partition_by_counts
from spgraph.distributed.io.ingest import (
    LOW,
    Piece,
    Pieces,
    Rows,
    build,
    compact,
    keys_of,
    mirrored,
    row_counts,
    starts_of,
)
from spgraph.random_edges import LOOP, Recipe, generate_edges, numbers
from spgraph.steps import backend

How = str | Sequence[int] | Array | Partition  # who owns which vertex

EDGES = 1 << 20  # the shards of a process generate so many at once


def generate_shards(
    recipe: Recipe, communicator: Communicator, how: How = "edges"
) -> tuple[Partition, list[Rows]]:
    """The partition and the rows of each local shard, on its device, of the graph of `recipe`.

    `how` is an argument of `partition_by_counts`; 'edges' balances the generated edges, with
    repeated ones. Every process calls it with the same arguments.
    """
    if hasattr(backend(communicator.devices[0]), "random_edges"):
        return _on_gpus(recipe, communicator, how)
    pieces = _pieces(recipe, communicator.num_shards, EDGES // len(communicator.local))
    counts = row_counts(pieces, recipe.vertices, communicator)
    partition = partition_by_counts(counts, communicator.num_shards, how)
    return partition, build(pieces, counts, partition, communicator)


# --- CPUs: each shard generates a share -----------------------------------------------------------


def _pieces(recipe: Recipe, shards: int, step: int) -> Pieces:
    """The edges that each shard generates, mirrored if the graph is symmetric."""
    kind, parameters, _, edges, state, *_ = recipe
    labels = vertex_labels(recipe, np)

    def generated(p: int) -> Iterator[Piece]:
        last = edges * (p + 1) // shards
        for start in range(edges * p // shards, last, step):
            keys = np.empty(min(step, last - start), np.int64)
            generate_edges(keys, kind, parameters, state, None, recipe.self_loops, start)
            keys = keys[keys != LOOP]
            if labels is None:
                yield Piece(keys.view(np.uint64))
            else:
                yield Piece(keys_of(labels[keys >> 32], labels[keys & LOW.astype(np.int64)]))

    return mirrored(generated) if recipe.symmetric else generated


def vertex_labels(recipe: Recipe, xp: ModuleType) -> Array | None:
    """The new id of each vertex, int32, as in `spgraph.generators`; None: vertices keep theirs."""
    if recipe.labels is None:
        return None
    random = xp.empty(recipe.vertices, np.uint64)
    step = 1 << 24  # in steps, for small temporary arrays
    for first in range(0, recipe.vertices, step):
        part = xp.arange(first, min(first + step, recipe.vertices), dtype=np.uint64)
        random[first : first + step] = numbers(recipe.labels, part)
    return xp.argsort(random).astype(np.int32)


# --- GPUs: each shard generates all edges ---------------------------------------------------------


def _on_gpus(recipe: Recipe, communicator: Communicator, how: How) -> tuple[Partition, list[Rows]]:
    devices, shards = communicator.devices, communicator.num_shards
    ks = range(len(devices))
    labels: dict[str, Array | None] = {}

    def count(k: int) -> Array:
        with on_device(devices[k]) as xp:
            p = communicator.local[k]
            share = recipe.edges * p // shards, recipe.edges * (p + 1) // shards
            return _counts(recipe, *share, labels[devices[k]], xp)

    def place(k: int) -> Rows:
        with on_device(devices[k]) as xp:
            p, everywhere = communicator.local[k], counts[k]
            rows, places = partition.slice(p), None
            counts[k] = None
            if partition.ids is None:
                own = everywhere[rows].copy()
            else:
                own = everywhere[xp.asarray(partition.ids[rows])]
                places = move(partition.internal_ids, devices[k])
            del everywhere
            return _placed(recipe, own, labels[devices[k]], places, rows.start, xp)

    for device in set(devices):
        with on_device(device) as xp:
            labels[device] = vertex_labels(recipe, xp)
    counts: list[Array] = communicator.all_reduce([count(k) for k in ks], "sum")
    with on_device(devices[0]):
        partition = partition_by_counts(counts[0], shards, how)
    if len(set(devices)) < len(devices):  # shards of one GPU, one after the other
        return partition, [place(k) for k in ks]
    with ThreadPoolExecutor(len(devices)) as pool:
        return partition, list(pool.map(place, ks))


def _counts(recipe: Recipe, first: int, last: int, labels: Array | None, xp: ModuleType) -> Array:
    """The number of entries in each row that edges first..last - 1 make."""
    counts = xp.zeros(recipe.vertices, np.int64)
    backend(device_of(counts)).random_edges.count_rows(counts, recipe, first, last, labels)
    return counts


def _placed(
    recipe: Recipe,
    counts: Array,
    labels: Array | None,
    places: Array | None,
    row: int,
    xp: ModuleType,
) -> Rows:
    """The rows from internal id `row` on; counts[r] is the number of entries of the r-th."""
    offsets = starts_of(counts)
    columns = xp.empty(int(counts.sum()), np.int32)
    del counts
    backend(device_of(columns)).random_edges.place_columns(
        columns, offsets[1:], recipe, labels, places, row
    )
    return compact(offsets, columns, None)
