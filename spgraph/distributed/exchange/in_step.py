"""Loops of shards in step: each local shard's part is a generator that yields what it needs of the
others; when all have asked, all are answered, by a communicator or by peers.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

from spgraph.backends.shards.buffers import Buffers
from spgraph.containers.storage.arrays import Array, on_device
from spgraph.distributed.communicators import Communicator

R = TypeVar("R")

# a part of a vector in the order of the shards, and the size of each shard's part
Part = tuple[Any, Sequence[int]]


def run(
    steps: Sequence[Generator[tuple[str, Any], Any, R]],
    devices: Sequence[str],
    answers: Callable[[str, list[Any]], Sequence[Any]],
) -> list[R]:
    """What the generators return, which run to their ends together, each on its device. When all
    have yielded (request, data), always the same request, each is sent its part of
    answers(request, [data of each]).
    """
    sent: Sequence[Any] = [None] * len(steps)
    while True:
        requests, found = [], []
        for step, device, answer in zip(steps, devices, sent, strict=True):
            with on_device(device):
                try:
                    requests.append(step.send(answer))
                except StopIteration as end:
                    found.append(end.value)
        if found:
            return found
        sent = answers(requests[0][0], [data for _, data in requests])


class ByCommunicator:
    """Shards send their parts through the communicator."""

    def __init__(self, communicator: Communicator) -> None:
        self.communicator = communicator

    def gather(self, given: Sequence[Part]) -> list[Array]:
        """The parts of all shards, joined."""
        return self.communicator.all_gather([part for part, _ in given], sizes=given[0][1])

    def reduce(self, given: Sequence[Part]) -> list[Array]:
        """Each shard's own part of the sum of the vectors that all shards give."""
        return self.communicator.reduce_scatter([part for part, _ in given], given[0][1], "sum")


class ByPeers:
    """Kernels have written what others need into the memory of all devices, which only meet."""

    def __init__(self, peers: Buffers) -> None:
        self.peers = peers

    def meet(self, given: Sequence[R]) -> Sequence[R]:
        """`given`, once the devices' streams are in order."""
        self.peers.barrier()
        return given

    gather = reduce = meet
