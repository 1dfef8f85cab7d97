"""Memory on the GPUs of several processes of one host that all of them have mapped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from spgraph.backends.cuda.exchange.buffers import (
    BARRIER_BYTES,
    DEADLINE,
    INBOX_BYTES,
    MOST_PEERS,
)
from spgraph.backends.cuda.exchange.mappable import HANDLE_WORDS, MappableMemory
from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.containers.storage.arrays import Array
from spgraph.errors import CommunicationError

# seconds that a GPU waits before a launch for those of other processes, which may have other things
# to do first; where a process is lost, the others stop waiting at once
LATE = 1800.0
# of kernels/peers.cuh: bytes of an Inbox for each peer, which are before its `lost`
SENT_BYTES = 64


class Communicator(Protocol):
    """What is asked of a communicator of processes that have one shard each."""

    @property
    def rank(self) -> int: ...
    @property
    def processes(self) -> int: ...
    def all_gather(self, parts: Sequence[Array]) -> list[Array]: ...
    def fetch(self, arrays: Sequence[Array]) -> list[np.ndarray]: ...
    def check(self) -> None: ...
    def failure(self, reason: str) -> CommunicationError: ...
    def when_lost(self, callback: Callable[[], object]) -> None: ...


class Refused(CommunicationError):
    """Memory cannot be allocated, or not be mapped by another process."""


class Segment(NamedTuple):
    """An allocation of each process, and where this process finds them."""

    addresses: list[int]
    sizes: list[int]


class MappedMemory:
    """The segments of all processes of a communicator, and a barrier between their GPUs' streams.

    An exporter may free memory only when nobody has it mapped any more, and processes collect
    garbage in different orders. So `release` only notes that this process needs a segment no
    longer: what all have released is freed in the next `allocate`, which they call together. The
    rest is freed at the end of the communicator by `unmap` and `free`, or by the driver with the
    process. What a process has mapped stays valid when its exporter is killed.
    """

    def __init__(self, communicator: Communicator, memory: MappableMemory, late: float) -> None:
        self.communicator, self.memory = communicator, memory
        self.rank, self.processes = communicator.rank, communicator.processes
        self._late = late
        self._segments: dict[int, Segment] = {}  # the same numbers in all processes
        self._made = 0
        self._released: set[int] = set()
        self._open = True
        self._ending = threading.Lock()  # held while `stop` writes, or `unmap` ends that
        text = preamble.constants(PEERS=self.processes, BARRIER=INBOX_BYTES)
        with memory.context():
            self._kernel = jit.kernel("peer_barrier", "peer_barrier", text)
            self._kernel((1,), (32,), (jit.NULL, np.int32(0), np.uint64(0)))
        _, self._inboxes = self.allocate([INBOX_BYTES + BARRIER_BYTES] * self.processes)
        self._table = memory.array(np.array(self._inboxes.addresses, np.int64))
        self._lost = memory.word(self._lost_of(self.rank))

    @classmethod
    def connect(
        cls, communicator: Communicator, memory: MappableMemory, late: float = LATE
    ) -> MappedMemory | None:
        """The memory; None, in all processes, where they are not on one host, or a GPU cannot
        access another, or the system refuses (in a container without the host's IPC namespace).
        """
        own, processes = memory.identity(), communicator.processes
        identities = gathered(communicator, memory, own).reshape(processes, -1)
        hosts, gpus = (np.unique(part, axis=0) for part in np.split(identities, 2, axis=1))
        able = len(hosts) == 1 and hosts.any() and len(gpus) == processes <= MOST_PEERS
        if not able:  # seen by all
            return None
        others = [identities[p] for p in range(processes) if p != communicator.rank]
        reached = all(memory.reaches(identity) for identity in others)
        if not gathered(communicator, memory, np.array([reached])).all():
            return None
        try:
            made = cls(communicator, memory, late)
        except Refused:
            return None
        made.meet(DEADLINE)
        if made.gather(np.array([made.lost()])).any():
            made.unmap()
            made.gather(np.zeros(1, np.int64))
            made.free()
            return None
        communicator.when_lost(made.stop)
        return made

    # --- segments ---------------------------------------------------------------------------------

    def allocate(self, sizes: Sequence[int]) -> tuple[int, Segment]:
        """(its number, a segment of zeros): sizes[p] bytes of process p. Every process calls it.

        Raises CommunicationError, in all processes, where one cannot allocate or map its memory.
        """
        self._free_released()
        own, mapped, row = 0, {}, np.zeros(1 + HANDLE_WORDS, np.int64)
        error: Exception | None = None
        try:
            own = self.memory.allocate(sizes[self.rank])
            self.memory.clear(own, sizes[self.rank])
            row[0], row[1:] = 1, self.memory.handle(own)
        except (RuntimeError, MemoryError) as failed:
            error = failed
        rows = self.gather(row).reshape(self.processes, -1)
        if rows[:, 0].all():
            try:
                for p in range(self.processes):
                    if p != self.rank:
                        mapped[p] = self.memory.map(rows[p, 1:])
            except RuntimeError as failed:
                error = failed
        able = self.gather(np.array([error is None]))
        if not able.all():
            for address in mapped.values():
                self.memory.unmap(address)
            self.gather(np.zeros(1, np.int64))
            if own:
                self.memory.free(own)
            what = f"{max(sizes)} bytes that all processes write" + (f" ({error})" if error else "")
            who = ", ".join(map(str, np.flatnonzero(~able)))
            raise Refused(
                f"peer exchange: process {who} of {self.processes} cannot allocate or map {what}: "
                "use a smaller graph or exchange='nccl'"
            ) from error
        self._made += 1
        addresses = [own if p == self.rank else mapped[p] for p in range(self.processes)]
        self._segments[self._made] = Segment(addresses, list(sizes))
        return self._made, self._segments[self._made]

    def clear(self, segment: Segment) -> None:
        """Fill a segment with zeros. Every process calls it."""
        self.memory.synchronize()  # what was launched on streams other than the current one, too
        self.gather(np.zeros(1, np.int64))  # all have ended what they do with it
        self.memory.clear(segment.addresses[self.rank], segment.sizes[self.rank])
        self.gather(np.zeros(1, np.int64))

    def release(self, number: int) -> None:
        """Note that this process needs a segment no longer. Calls nothing, so that a garbage
        collector may call it.
        """
        self._released.add(number)

    def _free_released(self) -> None:
        live = sorted(self._segments)
        if not live:
            return
        own = np.array([number in self._released for number in live])
        of_all = self.gather(own).reshape(self.processes, -1).all(axis=0)
        segments = [self._segments.pop(live[at]) for at in np.flatnonzero(of_all)]
        self._released.intersection_update(self._segments)
        if segments:
            self.memory.synchronize()
            for addresses, _ in segments:
                self._unmap(addresses)
            self.gather(np.zeros(1, np.int64))
            for addresses, _ in segments:
                self.memory.free(addresses[self.rank])

    def _unmap(self, addresses: Sequence[int]) -> None:
        for p, address in enumerate(addresses):
            if p != self.rank:
                self.memory.unmap(address)

    def unmap(self) -> None:
        """At the end of the communicator: unmap what others have allocated. When all processes have
        done so, each calls `free`.
        """
        with self._ending:
            self._open = False
        self.memory.synchronize()
        for addresses, _ in self._segments.values():
            self._unmap(addresses)

    def free(self) -> None:
        """See `unmap`."""
        for addresses, _ in self._segments.values():
            self.memory.free(addresses[self.rank])
        self._segments.clear()

    # --- processes --------------------------------------------------------------------------------

    def gather(self, own: np.ndarray) -> np.ndarray:
        """The 1-D arrays of all processes, joined."""
        return gathered(self.communicator, self.memory, own)

    def meet(self, limit: float | None = None) -> None:
        """Let the current streams of all processes meet: what is launched from now on runs after
        all work that any of them has by now.
        """
        late = np.uint64(int(1e9 * (self._late if limit is None else limit)))
        with self.memory.context():
            self._kernel((1,), (32,), (self._table, np.int32(self.rank), late))

    def lost(self) -> bool:
        """Whether a process did not come to `meet`; waits for the current stream."""
        with self.memory.context():
            return bool(self.communicator.fetch([self._lost])[0][0])

    def stop(self) -> None:
        """After the loss of a process: let GPUs that wait for others in `meet` go on. Any thread
        calls it.
        """
        with self._ending:
            for p in (self.rank, *(p for p in range(self.processes) if p != self.rank)):
                if self._open:
                    self.memory.mark(self._lost_of(p))

    def _lost_of(self, process: int) -> int:
        return self._inboxes.addresses[process] + SENT_BYTES * self.processes


def map_memory(communicator: Communicator, device: int) -> MappedMemory | None:
    """`MappedMemory.connect` of a GPU of this process, by its number."""
    return MappedMemory.connect(communicator, MappableMemory(device))


def gathered(communicator: Communicator, memory: MappableMemory, own: np.ndarray) -> np.ndarray:
    """The 1-D arrays of all processes, joined."""
    with memory.context():
        return communicator.fetch(communicator.all_gather([memory.array(own)]))[0]
