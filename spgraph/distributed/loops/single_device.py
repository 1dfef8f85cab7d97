"""The single-device fallback: loops run on the first of several GPUs where rounds between GPUs
cost more than the edges. The graph is gathered there once, each start Vector when it is needed, and
results are scattered to the shards.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from spgraph import direction as directions
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import (
    Array,
    array_module,
    import_cupy,
    index_dtype,
    move,
    on_device,
    pack_bits,
    unpack_bits,
    words,
)
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.placement import Placement
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.distributed.exchange.coordinates import lift, owned_part

logger = logging.getLogger("spgraph.distributed")

# up to so many entries of a start go through the host: that waits for each device once, but needs
# no copies between devices
SMALL = 4096
# the whole graph may take at most 1 / 8 of the free memory of the device, because its transpose and
# the workspace of loops come on top
SHARE = 8


class SingleDevice:
    """The `whole` of a distributed Matrix on the first device, and how Vectors are gathered there
    and scattered back.
    """

    def __init__(self, A: DistributedMatrix, whole: Matrix | None = None) -> None:
        self.placement: Placement = A.device
        self.devices = self.placement.devices
        self._events = []
        for device in self.devices if self.devices[0] != "cpu" else ():
            with on_device(device) as cupy:
                self._events.append(cupy.cuda.Event(disable_timing=True))
        self.whole = self._gathered(A) if whole is None else whole

    def gather(self, v: DistributedVector) -> Vector:
        """The whole of v on the first device: sparse if all its shards are, else a bitmap."""
        partition, size = self.placement.partition(v.size), v.size
        if v.entry is not None:
            at = int(partition.offsets[v.entry.owner]) + v.entry.place
            at = at if partition.ids is None else int(partition.ids[at])
            value, dtype = v.entry.value, v.entry.dtype
            return Vector.unit(at, value, size=size, dtype=dtype, device=self.devices[0])
        if all(shard._indices is not None for shard in v.shards):
            if sum(shard._values.size for shard in v.shards) <= SMALL:
                return self._gather_small(v)
            lifted = []
            for k, shard in enumerate(v.shards):
                with on_device(self.devices[k]):
                    lifted.append(lift(shard, self.placement, k, size))
            ids = self._joined([shard._indices for shard in lifted])
            values = self._joined([shard._values for shard in lifted])
            with on_device(self.devices[0]):
                if partition.ids is not None:
                    order = array_module(ids).argsort(ids)
                    ids, values = ids[order], values[order]
                return Vector._of(size, values, indices=ids)
        whole, flags = [], []
        for shard, device in zip(v.shards, self.devices, strict=True):
            with on_device(device) as xp:
                shard = shard.to_bitmap()
                whole.append(shard._values)
                full = shard._bits is None
                flags.append(
                    xp.ones(shard.size, bool) if full else unpack_bits(shard._bits, shard.size)
                )
        with on_device(self.devices[0]):
            present = pack_bits(partition.in_user_order(self._joined(flags)))
            return Vector._of(size, partition.in_user_order(self._joined(whole)), bits=present)

    def scatter(self, v: Vector) -> DistributedVector:
        """v, a Vector of the first device, divided among the shards that own its entries."""
        partition = self.placement.partition(v.size)
        nvals = v.nvals  # raises if the loop has failed
        aligned = partition.ids is None and not (partition.offsets[:-1] & 31).any()
        with on_device(self.devices[0]):
            v = v.to_bitmap()
            cut = []
            for p in range(partition.num_shards):
                own = partition.slice(p)
                if not aligned:
                    shard = owned_part(v, partition, p)
                    cut.append((shard._values, shard._bits))
                    continue
                bits = None if v._bits is None else v._bits[own.start >> 5 : words(own.stop)]
                cut.append((v._values[own], bits))
        self._order_streams()
        parts = []
        for (values, bits), device in zip(cut, self.devices, strict=True):
            bits = None if bits is None else move(bits, device)
            parts.append(Vector._of(values.size, move(values, device), bits=bits))
        self._order_streams()
        made = DistributedVector(v.size, parts, self.placement)
        made._nvals = nvals
        return made

    def scatter_matrix(self, M: Matrix) -> DistributedMatrix:
        """M, a Matrix of the first device, in shards of rows; loops over it run there, too."""
        made = DistributedMatrix.spread(M, self.placement)
        made._derived["single_device"] = SingleDevice(made, M)
        return made

    def _gathered(self, A: DistributedMatrix) -> Matrix:
        """The whole of A on the first device."""
        partition, n = self.placement.partition(A.nrows), A.nrows
        lengths = []
        for shard, device in zip(A.shards, self.devices, strict=True):
            with on_device(device):
                lengths.append(shard._indptr[1:] - shard._indptr[:-1])
        degrees = self._joined(lengths)
        indices = self._joined([shard._indices for shard in A.shards])
        values = None if A.iso else self._joined([shard._values for shard in A.shards])
        with on_device(self.devices[0]) as xp:
            values = A.shards[0]._values.copy() if values is None else values
            indptr = xp.zeros(n + 1, index_dtype(int(indices.size)))
            xp.cumsum(degrees, out=indptr[1:])
            whole = Matrix._of(n, A.ncols, indptr, indices, values, iso=A.iso)
            if partition.ids is not None:
                order = partition.in_user_order(xp.arange(n))
                whole = self.placement.backend(0).extract_matrix(whole, order, None)
        whole.symmetric = A.symmetric
        return whole

    def _gather_small(self, v: DistributedVector) -> Vector:
        """As `gather`, of few entries, through the host."""
        partition = self.placement.partition(v.size)
        ids, values = [], []
        for first, shard in zip(partition.offsets.tolist(), v.shards, strict=False):
            if shard._values.size:
                ids.append(move(shard._indices, "cpu").astype(index_dtype(v.size)) + first)
                values.append(move(shard._values, "cpu"))
        inside = np.concatenate(ids or [np.empty(0, np.int32)]).astype(index_dtype(v.size))
        given = np.concatenate(values or [np.empty(0, v.dtype)])
        if partition.ids is not None:
            inside = partition.ids[inside]
            order = np.argsort(inside)
            inside, given = inside[order], given[order]
        return Vector._of(
            v.size, move(given, self.devices[0]), indices=move(inside, self.devices[0])
        )

    def _joined(self, arrays: Sequence[Array]) -> Array:
        """The arrays of all shards joined, on the first device."""
        self._order_streams()
        with on_device(self.devices[0]) as xp:
            joined = xp.concatenate([move(array, self.devices[0]) for array in arrays])
        self._order_streams()
        return joined

    def _order_streams(self) -> None:
        """Every GPU's current stream waits for those of the others, so that a copy between two GPUs
        reads what was written before, and its source is not freed or overwritten until it is done.
        The host does not wait.
        """
        streams = []
        for event, device in zip(self._events, self.devices, strict=False):
            with on_device(device) as cupy:
                streams.append(cupy.cuda.get_current_stream())
                event.record(streams[-1])
        for k, stream in enumerate(streams):
            with on_device(self.devices[k]):
                for event in (*self._events[:k], *self._events[k + 1 :]):
                    stream.wait_event(event)


def single_device_of(A: DistributedMatrix) -> SingleDevice | None:
    """The single-device fallback of A; None where loops over the shards are faster, or the user
    named the exchange. Decided once and kept with A; then logged to "spgraph.distributed".
    """
    if "single_device" not in A._derived:
        device = device_for(A)
        A._derived["single_device"] = None if device is None else SingleDevice(A)
        if device is not None:
            logger.info(
                "searches and closures over %d vertices and %d edges in %d shards run on %s alone, "
                "where rounds are shorter; exchange='peer' or 'nccl' keeps them in shards",
                *(A.nrows, A.nvals, A.device.num_shards, device),
            )
    return A._derived["single_device"]


def device_for(A: DistributedMatrix) -> str | None:
    """The device on which loops over A should run alone; None: on all shards.

    There is one only where one process drives all GPUs, each with one shard. For a Matrix that is
    used once (`_transient`) gathering does not pay.
    """
    placement = A.device
    one_each = len(set(placement.devices)) == placement.num_shards > 1
    if (
        A._transient
        or placement.exchange_given
        or placement.communicator.processes > 1
        or not one_each
    ):
        return None
    faster = directions.one_device_pays(
        A.nrows, A.nvals, placement.num_shards, placement.peers is not None
    )
    if not faster or SHARE * sum(shard.nbytes for shard in A.shards) > free_memory(
        placement.devices[0]
    ):
        return None
    return placement.devices[0]


def free_memory(device: str) -> int:
    """How many bytes this process can still allocate on a GPU: free ones, and those of its pool."""
    with on_device(device):
        pool = import_cupy().get_default_memory_pool()
        free = import_cupy().cuda.runtime.memGetInfo()[0] + pool.free_bytes()
        limit = pool.get_limit()
        return min(free, limit - pool.used_bytes()) if limit else free
