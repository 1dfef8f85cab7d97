"""Random graphs generated in shards: the same graphs as on one device, but no process holds all
edges.

On CPUs each shard generates a share of the edges and sends them to the owners of their rows. A GPU
generates edges faster than they can be sent, so that each shard generates all and keeps its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from spgraph.containers.storage.arrays import Array, array_module, move, on_device
from spgraph.distributed.communicators import Communicator
from spgraph.distributed.containers.partition import Partition
from spgraph.distributed.containers.partitioners import partition_by_counts
from spgraph.distributed.containers.placement import Placement
from spgraph.distributed.io.ingest import (
    Piece,
    Pieces,
    Rows,
    build,
    compact,
    mirrored,
    row_counts,
    starts_of,
)
from spgraph.random_edges import LOOP, GraphModel, generate_edges, vertex_labels
from spgraph.steps import backend

How = str | Sequence[int] | Array | Partition  # who owns which vertex

EDGES = 1 << 20  # the shards of a process generate so many at once


def generate_shards(
    model: GraphModel, communicator: Communicator, how: How = "edges"
) -> tuple[Partition, list[Rows]]:
    """The partition and the rows of each local shard, on its device, of the graph of `model`.

    `how` is an argument of `partition_by_counts`; 'edges' balances the generated edges, with
    repeated ones. Every process calls it with the same arguments.
    """
    if hasattr(backend(communicator.devices[0]), "random_edges"):
        return _on_gpus(model, communicator, how)
    pieces = _pieces(model, communicator.num_shards, EDGES // len(communicator.local))
    counts = row_counts(pieces, model.vertices, communicator)
    partition = partition_by_counts(counts, communicator.num_shards, how)
    communicator.tag_graph(partition.checksum)
    return partition, build(pieces, counts, partition, communicator)


# --- CPUs: each shard generates a share -----------------------------------------------------------


def _pieces(model: GraphModel, shards: int, step: int) -> Pieces:
    """The edges that each shard generates, mirrored if the graph is symmetric."""
    edges, labels = model.edges, vertex_labels(model, np)

    def generated(p: int) -> Iterator[Piece]:
        last = edges * (p + 1) // shards
        for start in range(edges * p // shards, last, step):
            keys = np.empty(min(step, last - start), np.int64)
            generate_edges(keys, model, labels, start)
            yield Piece(keys[keys != LOOP].view(np.uint64))

    return mirrored(generated) if model.symmetric else generated


# --- GPUs: each shard generates all edges ---------------------------------------------------------


def _on_gpus(
    model: GraphModel, communicator: Communicator, how: How
) -> tuple[Partition, list[Rows]]:
    devices, local, shards = communicator.devices, communicator.local, communicator.num_shards
    kernels = backend(devices[0]).random_edges
    labels: dict[str, Array | None] = {}
    for device in set(devices):
        with on_device(device) as xp:
            labels[device] = vertex_labels(model, xp)

    def count(xp: ModuleType, p: int, device: str) -> Array:
        """The number of entries in each row that the shard's share of the edges makes."""
        made = xp.zeros(model.vertices, np.int64)
        share = model.edges * p // shards, model.edges * (p + 1) // shards
        kernels.count_rows(made, model, *share, labels[device])
        return made

    counts: list[Any] = communicator.all_reduce(communicator.on_each(count, local, devices), "sum")
    with on_device(devices[0]):
        partition = partition_by_counts(counts[0], shards, how)

    def place(k: int) -> Rows:
        rows, everywhere, places = partition.slice(local[k]), counts[k], None
        xp, counts[k] = array_module(everywhere), None
        if partition.ids is None:
            own = everywhere[rows].copy()
        else:
            own = everywhere[xp.asarray(partition.ids[rows])]
            places = move(partition.internal_ids, devices[k])
        del everywhere
        offsets, columns = starts_of(own), xp.empty(int(own.sum()), np.int32)
        del own
        free = offsets[1:], model, labels[devices[k]], places, rows.start
        kernels.place_columns(columns, *free)
        return compact(offsets, columns, None)

    return partition, Placement(partition, communicator).map(place)
