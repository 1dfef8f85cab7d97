"""Host-mapped counters: memory of the host that the kernels of a round write directly. Each 64-bit
word is a count, shifted left by 16, and in the low 16 bits the number of the round, by which the
host sees that the word has been written.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from spgraph.backends.shards.graph import ShardedGraph
from spgraph.containers.storage.arrays import Array, device_of, import_cupy, is_cuda, on_device
from spgraph.distributed.communicators import Communicator

if TYPE_CHECKING:
    from spgraph.distributed.containers.placement import Placement

POLL = 0.05  # seconds between two checks for failures


class RoundShard(Protocol):
    """What is asked of a shard of loops in rounds."""

    counts: Array  # of the last launch, on the shard's device


class Rounds:
    """What loops in rounds have in common: local shards whose kernels count into `host_counters`, a
    row of so many counts for each, and the number of the round.
    """

    shards: Sequence[Any]  # each a RoundShard

    def __init__(self, placement: Placement, counts: int, graph: ShardedGraph) -> None:
        # one for all loops over the graph: those over several semirings share the memory of shards
        self.lock = graph.derived.setdefault("lock of rounds", threading.Lock())
        self.placement, self.communicator = placement, placement.communicator
        self.host_counters = host_mapped((len(graph.shards), counts), graph.shards[0].indptr)
        self.round = 0

    def next_round(self) -> None:
        """What is launched from now on counts for a new round."""
        self.round += 1

    def counts(self) -> np.ndarray:
        """The counts of this round, a row for each of all shards."""
        return counts_of_round(self.host_counters, self.round, self.shards, self.communicator)

    def exchange(
        self, parts: Callable[[Any, list[int]], list[Array]], sent: list[list[int]], width: int
    ) -> list[Array | None]:
        """What each local shard receives, joined, None for nothing: sent[p][q] entries of `width`
        elements go from shard p to shard q, as `parts` of a shard gives them.
        """
        if not any(map(any, sent)):
            return [None] * len(self.shards)
        given = [parts(shard, sent[shard.number]) for shard in self.shards]
        sizes = [[width * row[shard.number] for row in sent] for shard in self.shards]
        received: list[Array | None] = []
        for pieces_of_all in self.communicator.all_to_all(given, sizes=sizes):
            pieces = [piece for piece in pieces_of_all if piece.size]
            if len(pieces) > 1:
                with on_device(device_of(pieces[0])) as xp:
                    pieces = [xp.concatenate(pieces)]
            received.append(pieces[0] if pieces else None)
        return received


def host_mapped(shape: tuple[int, int], array: Array) -> np.ndarray:
    """Words of the host, zero: pinned, so that kernels can write them, if `array` is on a GPU."""
    if not is_cuda(array):
        return np.zeros(shape, np.int64)
    memory = import_cupy().cuda.alloc_pinned_memory(8 * shape[0] * shape[1])
    made = np.frombuffer(memory, np.int64, shape[0] * shape[1]).reshape(shape)
    made[:] = 0
    return made


def counts_of_round(
    host_counters: np.ndarray,
    round_: int,
    shards: Sequence[RoundShard],
    communicator: Communicator,
) -> np.ndarray:
    """The counts of a round, a row for each of all shards. With one process they come from
    `host_counters`; with several from an all-gather of the arrays `counts` of the local `shards`.
    """
    if communicator.processes == 1:
        return wait_for_counts(host_counters, round_, shards, communicator)
    number = host_counters.shape[1]
    gathered = communicator.all_gather(
        [shard.counts for shard in shards], sizes=[number] * communicator.num_shards
    )
    return communicator.fetch(gathered)[0].reshape(-1, number)


def wait_for_counts(
    host_counters: np.ndarray,
    round_: int,
    shards: Sequence[RoundShard],
    communicator: Communicator,
) -> np.ndarray:
    """The counts of the local shards, as soon as their kernels have written all of them."""
    mark, looked = round_ & 0xFFFF, time.monotonic()
    while ((host_counters & 0xFFFF) != mark).any():
        if time.monotonic() - looked > POLL:
            check(shards, communicator)
            looked = time.monotonic()
    # the counts are valid only if no collective was aborted whose result the kernels have read
    communicator.check()
    return host_counters >> 16


def check(shards: Sequence[RoundShard], communicator: Communicator) -> None:
    """Raise if the counts can no longer come: a kernel, a device or a process has failed."""
    communicator.check()
    for shard in shards:
        if is_cuda(shard.counts):
            with shard.counts.device:
                _ = import_cupy().cuda.get_current_stream().done  # raises if a kernel has failed
