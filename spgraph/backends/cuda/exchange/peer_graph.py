"""A graph in shards on GPUs of one process that write into each other's memory, and what loops over
it ask of that memory.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn, Protocol

from spgraph.backends.cuda.runtime.jit import Kernel
from spgraph.containers.storage.arrays import Array
from spgraph.errors import CommunicationError

# as in kernels/peers.cuh: bytes of Inbox and of PeerBarrier, words that GPUs send each other
MOST_PEERS = 8
INBOX_BYTES, BARRIER_BYTES, WORDS_SENT = 1024, 128, 4
DEADLINE = 5.0  # seconds that a device waits for another


class Buffers(Protocol):
    """What loops ask of `peers.PeerBuffers`."""

    devices: tuple[int, ...]

    @property
    def lock(self) -> threading.RLock: ...

    def reserve(self, layout: object, sizes: Sequence[int]) -> list[int]: ...

    def forget(self) -> None: ...

    def launch(
        self,
        kernels: Sequence[Kernel],
        grids: Sequence[int],
        threads: int,
        arguments: Sequence[tuple[Any, ...]],
        shared: int,
        first: int = 0,
    ) -> None: ...


class PeerShard(NamedTuple):
    """The rows that one device owns: of A, and of its transpose (None: there is only push). Columns
    are ids of all shards' vertices; `ids`, if they are not the user's own, are the user's ids of
    *all* vertices, on this device.
    """

    indptr: Array
    indices: Array
    t_indptr: Array | None
    t_indices: Array | None
    ids: Array | None = None


@dataclasses.dataclass(eq=False)
class PeerGraph:
    """A graph in shards: shard p owns the vertices from offsets[p] to offsets[p + 1].

    `ordered` says that the rows of the transpose ascend by the user's ids, so that the first parent
    found is the least: as they do where `ids` are None. `symmetric` says that A is its own
    transpose, which helps to choose directions; that both are one array says it too. Index types
    are the same in all shards, and so is what is None. `derived` keeps what searches make once.
    """

    offsets: Sequence[int]
    shards: Sequence[PeerShard]
    ordered: bool = True
    symmetric: bool = False
    derived: dict[Any, Any] = dataclasses.field(default_factory=dict)

    @property
    def size(self) -> int:
        """The number of vertices."""
        return int(self.offsets[-1])

    @property
    def edges(self) -> int:
        """The number of entries of A."""
        return sum(int(shard.indices.size) for shard in self.shards)


def raise_lost(name: str, buffers: Buffers, lost: Sequence[int], deadline: float) -> NoReturn:
    """Raise CommunicationError for the loop `name`, which devices gave up with the states `lost`:
    each has sent the others the number, from 1, of the device that it waited for.
    """
    peers = len(buffers.devices)
    named = [state - 1 for state in lost if 0 < state <= peers]
    device = f"device {buffers.devices[named[0]]} (shard {named[0]})" if named else "a device"
    raise CommunicationError(
        f"{name} by peer writes: {device} did not come to a barrier of {peers} devices "
        f"within {deadline:g} s; the result is void"
    )
