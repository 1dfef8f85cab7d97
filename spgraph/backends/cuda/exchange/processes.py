"""Buffers of several processes of one host, with a GPU each."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from spgraph.backends.cuda.exchange.buffers import Launching
from spgraph.backends.cuda.exchange.mapped import MappedMemory, Segment
from spgraph.backends.cuda.exchange.peers import PeerBuffers
from spgraph.containers.storage.arrays import Array
from spgraph.errors import CommunicationError


class ProcessBuffers(Launching):
    """As `PeerBuffers`, of processes with one shard each: every process allocates the memory of its
    GPU and maps that of the others, and launches its own kernel.

    The processes reserve, launch and fail together, in the same order. Which memory is allocated
    depends on nothing but that order, so that a `reserve` that finds its memory asks nobody. A
    launch runs after those before it on all GPUs: a barrier of one warp comes first, which also
    waits for a process that is late. The kernels of a launch then wait for each other as long as
    those of one process do.
    """

    lock = PeerBuffers.lock

    def __init__(self, mapped: MappedMemory) -> None:
        self._mapped, self._order = mapped, mapped.memory.order
        self.devices, self.contexts = tuple(range(mapped.processes)), [mapped.memory.context()]
        self._layout: object = None
        self._segment: Segment | None = None
        self._release: Any = None

    @property
    def local(self) -> range:
        return range(self._mapped.rank, self._mapped.rank + 1)

    def another(self) -> ProcessBuffers:
        return ProcessBuffers(self._mapped)

    def reserve(self, layout: object, sizes: Sequence[int]) -> list[int]:
        self._mapped.communicator.check()
        held = self._segment
        if held is None or any(a < b for a, b in zip(held.sizes, sizes, strict=True)):
            self._segment = self._layout = None
            if self._release is not None:
                self._release()
            number, held = self._mapped.allocate(sizes)
            self._release = weakref.finalize(self, self._mapped.release, number)
            self._release.atexit = False
        elif layout != self._layout:
            self._mapped.clear(held)
        self._segment, self._layout = held, layout
        return held.addresses

    def forget(self, reason: str = "an error") -> None:
        """After a failure in this process alone: the others get CommunicationError."""
        self.failure(f"{reason} in a loop of all processes")

    @property
    def nbytes(self) -> int:
        """How much memory is held, on all GPUs together."""
        return 0 if self._segment is None else sum(self._segment.sizes)

    def barrier(self) -> None:
        self._mapped.communicator.check()
        self._order.barrier()
        self._mapped.meet()

    def hand_over(self) -> None:
        self._order.hand_over()

    def gather(self, own: np.ndarray) -> np.ndarray:
        return self._mapped.gather(own)

    def fetch(self, arrays: Sequence[Array]) -> list[np.ndarray]:
        return self._mapped.communicator.fetch(arrays)

    def check(self) -> None:
        if self._mapped.lost():
            raise self.failure(
                f"peer exchange: a process did not come to a barrier of {len(self.devices)}; the "
                "result is void"
            )

    def failure(self, message: str) -> CommunicationError:
        return self._mapped.communicator.failure(message)
