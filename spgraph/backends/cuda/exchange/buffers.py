"""What loops over shards ask of memory that several GPUs write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from spgraph.backends.cuda.runtime.jit import Kernel
from spgraph.backends.shards.buffers import Buffers
from spgraph.containers.storage.arrays import Array

# as in kernels/peers.cuh: devices, bytes of Inbox and of PeerBarrier
MOST_PEERS = 8
INBOX_BYTES, BARRIER_BYTES = 1024, 128
DEADLINE = 5.0  # seconds that a device waits for another


class Plan(NamedTuple):
    """What every launch of a loop over a graph with the same buffers needs."""

    layout: object
    sizes: list[int]  # bytes of each device's buffer
    memory: list[int]  # their addresses; what follows is of the local shards
    kernels: list[Kernel]
    grids: list[int]
    threads: int  # of a block
    shared: int
    given: list[Array]  # what the kernel calls Given


class Launching(Buffers, Protocol):
    """Buffers that launch the kernels of all local devices at once."""

    contexts: Sequence[Any]  # the local devices, to work in
    deadline: float = DEADLINE

    def launch(self, plan: Plan, arguments: Sequence[tuple[object, ...]], first: int = 0) -> None:
        """Run the kernel of every local shard once, that of shard `first`, which has something to
        do while it waits for the others, before them; after all work that the devices' current
        streams have by now, and after the last such launch.
        """
        self.barrier()
        for k in sorted(range(len(self.contexts)), key=lambda k: k != first):
            with self.contexts[k]:
                grid, block = (plan.grids[k],), (plan.threads,)
                plan.kernels[k](grid, block, arguments[k], shared_mem=plan.shared)
        self.hand_over()


def fetch_results(loop: str, buffers: Launching, results: Sequence[Array]) -> list[list[int]]:
    """Host copies of what the kernels of a launch have returned; waits for them. The last number is
    0, or the number, from 1, of the device that a device waited for until it gave up, of which it
    has told the others: then CommunicationError.
    """
    host = [result.tolist() for result in buffers.fetch(results)]
    lost = [result[-1] for result in host if result[-1]]
    if not lost:
        return host
    peers = len(buffers.devices)
    named = [state - 1 for state in lost if 0 < state <= peers]
    device = f"device {buffers.devices[named[0]]} (shard {named[0]})" if named else "a device"
    with buffers.lock:
        raise buffers.failure(
            f"{loop} by peer writes: {device} did not come to a barrier of {peers} devices "
            f"within {buffers.deadline:g} s; the result is void"
        )
