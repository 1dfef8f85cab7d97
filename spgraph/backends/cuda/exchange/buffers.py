"""What loops over shards ask of memory that several GPUs write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn, Protocol

from spgraph.backends.cuda.runtime.jit import Kernel
from spgraph.backends.shards.buffers import Buffers

# as in kernels/peers.cuh: devices, bytes of Inbox and of PeerBarrier
MOST_PEERS = 8
INBOX_BYTES, BARRIER_BYTES = 1024, 128
DEADLINE = 5.0  # seconds that a device waits for another


class Launching(Buffers, Protocol):
    """Buffers that launch the kernels of all local devices at once, as `peers.PeerBuffers` do."""

    def launch(
        self,
        kernels: Sequence[Kernel],
        grids: Sequence[int],
        threads: int,
        arguments: Sequence[tuple[object, ...]],
        shared: int,
        first: int = 0,
    ) -> None: ...


def raise_lost(name: str, buffers: Buffers, lost: Sequence[int], deadline: float) -> NoReturn:
    """Raise CommunicationError for the loop `name`, which devices gave up with the states `lost`:
    each has sent the others the number, from 1, of the device that it waited for. The caller holds
    the lock of the buffers.
    """
    peers = len(buffers.devices)
    named = [state - 1 for state in lost if 0 < state <= peers]
    device = f"device {buffers.devices[named[0]]} (shard {named[0]})" if named else "a device"
    raise buffers.failure(
        f"{name} by peer writes: {device} did not come to a barrier of {peers} devices "
        f"within {deadline:g} s; the result is void"
    )
