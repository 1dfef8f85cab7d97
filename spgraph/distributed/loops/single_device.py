"""The single-device fallback: loops run on the first of several GPUs where rounds between GPUs
cost more than the edges. The graph is gathered there once, each start Vector when it is needed, and
results are scattered to the shards.
"""

from __future__ import annotations

import logging
from typing import Any, cast

from spgraph import direction as directions
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import import_cupy, on_device
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.placement import Placement
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.distributed.exchange.collectives import replicate
from spgraph.distributed.exchange.coordinates import owned_part
from spgraph.errors import ConvergenceError

logger = logging.getLogger("spgraph.distributed")

# the whole graph may take at most 1 / 8 of the free memory of each device: all of them receive it,
# and the first one makes its transpose and the workspace of loops, too
SHARE = 8


class SingleDevice:
    """The `whole` of a distributed Matrix on the first device, and how Vectors are gathered there
    and scattered back.
    """

    def __init__(self, A: DistributedMatrix, whole: Matrix | None = None) -> None:
        self.placement: Placement = A.device
        self.whole = A.replicated()[0] if whole is None else whole

    def run(self, loop: str, *arguments: Any) -> Any:
        """What the backend's `loop` makes of the graph and these arguments, with containers in
        shards gathered and those of the result scattered; None where that is None.
        """
        given = [self.gather(v) if isinstance(v, DistributedVector) else v for v in arguments]
        # the transpose of the graph is the only Matrix among them
        given = [self.whole._T if isinstance(v, DistributedMatrix) else v for v in given]
        try:
            found = getattr(self.placement.backend(0), loop)(self.whole, *given)
        except ConvergenceError as error:
            error.result = self.scatter(cast(Vector, error.result))
            raise
        if found is None:
            return None
        if isinstance(found, tuple):
            return tuple(self.scatter(v) if isinstance(v, Vector) else v for v in found)
        return self.scatter_matrix(found) if isinstance(found, Matrix) else self.scatter(found)

    def gather(self, v: DistributedVector) -> Vector:
        """The whole of v on the first device."""
        if v.entry is None:
            return replicate(v)[0]
        owner, place, value, dtype = v.entry
        partition, device = self.placement.partition(v.size), self.placement.devices[0]
        at = int(partition.offsets[owner]) + place
        at = at if partition.ids is None else int(partition.ids[at])
        return Vector.unit(at, value, size=v.size, dtype=dtype, device=device)

    def scatter(self, v: Vector) -> DistributedVector:
        """v, a Vector of the first device, divided among the shards that own its entries."""
        placement, nvals = self.placement, v.nvals  # raises if the loop has failed
        partition = placement.partition(v.size)
        with on_device(placement.devices[0]):
            v = v.to_bitmap()
            cut = [owned_part(v, partition, p) for p in range(partition.num_shards)]
        parts = [part.to(device) for part, device in zip(cut, placement.devices, strict=True)]
        made = DistributedVector(v.size, parts, placement)
        made._nvals = nvals
        return made

    def scatter_matrix(self, M: Matrix) -> DistributedMatrix:
        """M, a Matrix of the first device, in shards of rows; loops over it run there, too."""
        made = DistributedMatrix.spread(M, self.placement)
        made._derived["single_device"] = SingleDevice(made, M)
        return made


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
    if not faster:
        return None
    free = min(free_memory(device) for device in placement.devices)
    fits = SHARE * sum(shard.nbytes for shard in A.shards) <= free
    return placement.devices[0] if fits else None


def free_memory(device: str) -> int:
    """How many bytes this process can still allocate on a GPU: free ones, and those of its pool."""
    with on_device(device):
        pool = import_cupy().get_default_memory_pool()
        free = import_cupy().cuda.runtime.memGetInfo()[0] + pool.free_bytes()
        limit = pool.get_limit()
        return min(free, limit - pool.used_bytes()) if limit else free
