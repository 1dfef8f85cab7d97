"""The power iteration over shards: each iterates over its own vertices, in step with the others.
Half of a Kronecker graph's vertices have no edges; to send the others alone, packed, would cost as
much in unpacking as it saves between two GPUs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, cast

import numpy as np

from spgraph.backends.loops import PowerIteration
from spgraph.backends.shards.buffers import Buffers, forgotten_on_failure
from spgraph.backends.shards.power import SUMS, change
from spgraph.containers import Vector
from spgraph.containers.storage.arrays import Array, on_device
from spgraph.containers.storage.device_memory import to_host
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.placement import Placement
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.distributed.exchange.collectives import tag_graph
from spgraph.distributed.exchange.lockstep import ByCommunicator, ByPeers, run
from spgraph.iterations import Hop, Step, power_iteration

R = TypeVar("R", float, None)

# (a part of a vector, partial sums) of one shard; or (the whole vector, the sums of all shards)
Share = tuple[Array | None, Array | None]


def power(
    x: DistributedVector | float, iteration: PowerIteration
) -> tuple[DistributedVector, Array]:
    """As `power` of a backend. In each iteration the parts of the vector that a hop multiplies are
    all-gathered, and so are three sums over vertices; with a `tol` the host reads one of them.

    GPUs that write into each other's memory do so in the kernels that compute the values, and
    synchronise once in an iteration, twice with a norm, once more for a second hop.
    """
    matrices = cast(tuple[DistributedMatrix, ...], iteration.matrices)
    limits = *iteration.constants, iteration.norm, iteration.tol, iteration.max_iter
    tag_graph(matrices[0], None, iteration.semiring, *limits)
    if not isinstance(x, DistributedVector):
        n = matrices[0].nrows
        x = matrices[0].device.filled(x, size=n, dtype=np.float64)
    placement, n, peers = x.device, x.size, x.device.peers
    if not placement.has("power_shard"):
        return _composed(x, iteration)

    def of_shard(v: Vector | R, k: int) -> Vector | R:
        return v.shards[k].to_bitmap() if isinstance(v, DistributedVector) else v

    def arguments(k: int) -> tuple[Vector, PowerIteration]:
        own = iteration._replace(
            matrices=tuple(M.shards[k] for M in matrices),
            scales=tuple(of_shard(scale, k) for scale in iteration.scales),
            restart=of_shard(iteration.restart, k),
        )
        return x.shards[k].to_bitmap(), own

    def found(steps: Sequence[Any], between: Any) -> tuple[DistributedVector, Array]:
        ends = run(steps, placement.devices, between)
        return DistributedVector(n, [value for value, _ in ends], placement), ends[0][1]

    local, kernels = range(len(x.shards)), placement.kernels
    if peers is None or not placement.has("power_peers"):
        return found([kernels.power_shard(*arguments(k)) for k in local], Gathering(placement, n))
    partition = placement.partition(n)
    with peers.lock, forgotten_on_failure(peers):
        starts = [shard._values for shard in x.shards]
        ids = None if partition.ids is None else [placement.shard_ids(k, n) for k in local]
        offsets = partition.offsets.tolist()
        places = kernels.peer_places(peers, offsets, iteration.single, starts, ids)
        peers.barrier()
        steps = [kernels.power_peers(places[k], *arguments(k)) for k in local]
        result = found(steps, Barrier(peers, placement))
        peers.hand_over()
        peers.check()
        return result


def _composed(x: DistributedVector, iteration: PowerIteration) -> tuple[DistributedVector, Any]:
    """The same by operations on containers in shards."""
    pulled = zip(iteration.matrices, iteration.scales, strict=True)
    hops = tuple(Hop(M._T, scale) for M, scale in pulled)
    weighted = iteration.semiring.multiply.name != "second"
    step = Step(hops, *iteration.constants, iteration.restart, weighted=weighted)
    limits: Any = {name: getattr(iteration, name) for name in ("norm", "tol", "max_iter")}
    made = power_iteration.composed(x, step, **limits)
    return cast(DistributedVector, made.value), (made.iterations, made.change)


class Gathering(ByCommunicator):
    """Shards exchange through the communicator."""

    def __init__(self, placement: Placement, n: int) -> None:
        super().__init__(placement.communicator)
        self.partition = placement.partition(n)

    def share(self, given: Sequence[Share]) -> list[Share]:
        """All-gather the parts of the vector and the sums, each of them unless it is None."""
        wholes = totals = [None] * len(given)
        if given[0][0] is not None:
            wholes = self.gather([(part, self.partition.sizes) for part, _ in given])
            if self.partition.ids is not None:
                wholes = self.communicator.on_each(
                    lambda xp, whole: self.partition.in_user_order(whole), wholes
                )
        if given[0][1] is not None:
            sizes = [SUMS] * self.communicator.num_shards
            totals = self.gather([(sums, sizes) for _, sums in given])
        return list(zip(wholes, totals, strict=True))

    def change(self, given: Sequence[Array]) -> list[float]:
        """The change of the iterate, for each local shard; every shard has the sums of all."""
        return [change(sums) for sums in self.communicator.fetch(given)]


class Barrier(ByPeers):
    """Shards have written into the memory of all devices, and only meet."""

    def __init__(self, peers: Buffers, placement: Placement) -> None:
        super().__init__(peers)
        self.first = placement.devices[0]

    share = ByPeers.meet

    def report(self, given: Sequence[Array]) -> list[None]:
        """Start to copy the sums from the first device to the host; all devices have the same."""
        with on_device(self.first):
            self.reading = to_host(given[0])
        return [None] * len(given)

    def change(self, given: Sequence[Array]) -> list[float]:
        """The change of the iterate, for each local shard, from the last report."""
        return [change(self.reading())] * len(given)
