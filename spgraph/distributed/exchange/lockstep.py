"""Loops of shards in lockstep: each local shard's part is a generator that yields what it needs of
the others; when all have asked, all are answered, by a communicator or by peers.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from spgraph.backends.shards.buffers import Buffers
from spgraph.backends.shards.graph import ShardedGraph
from spgraph.containers.storage.arrays import Array, on_device
from spgraph.distributed.communicators import Communicator
from spgraph.distributed.exchange.host_counters import host_mapped, on_device_too, wait_for_counts

if TYPE_CHECKING:
    from spgraph.distributed.containers.placement import Placement

R = TypeVar("R")

NOTHING: AbstractContextManager[Any] = contextlib.nullcontext()
Rows = list[list[int]]  # the counts of all shards
# a part of a vector in the order of the shards, and the size of each shard's part
Part = tuple[Any, Sequence[int]]


def run(
    steps: Sequence[Generator[tuple[str, Any], Any, R]],
    devices: Sequence[str],
    exchange: Any,
    **more: Callable[[list[Any]], Sequence[Any]],
) -> list[R]:
    """What the generators return, which run to their ends together, each on its device. When all
    have yielded (request, data), always the same request, each is sent its part of the answer to
    [data of each]: by `more`, where that has the request, else by the method of `exchange`. Where
    one fails, the others are closed.
    """
    sent: Sequence[Any] = [None] * len(steps)
    places: Sequence[AbstractContextManager[Any]] = [on_device(device) for device in devices]
    only = NOTHING
    if len(places) == 1:  # it stays the current one between the steps
        (only,), places = places, [NOTHING]
    try:
        with only:
            while True:
                requests, found = [], []
                for step, place, answer in zip(steps, places, sent, strict=True):
                    with place:
                        try:
                            requests.append(step.send(answer))
                        except StopIteration as end:
                            found.append(end.value)
                if found:
                    return found
                request = requests[0][0]
                answers = more.get(request) or getattr(exchange, request)
                sent = answers([data for _, data in requests])
    finally:
        for step in steps:
            step.close()


class ByCommunicator:
    """Shards send their parts through the communicator. What kernels count reaches the host in
    `host_counters`, a row of words for each local shard.
    """

    def __init__(self, communicator: Communicator, host_counters: np.ndarray | None = None) -> None:
        self.communicator, self.host_counters = communicator, host_counters
        self.of_all: np.ndarray | None = None  # the counts of the shards of several processes
        # the collectives of a round by what travels with its counts, which shards keep
        self.prepared: dict[int, Callable[[], None]] = {}

    def gather(self, given: Sequence[Part]) -> list[Array]:
        """The parts of all shards, joined; shards on one device share them."""
        return self.communicator.all_gather([part for part, _ in given], sizes=given[0][1])

    def gather_own(self, given: Sequence[Part]) -> list[Array]:
        """The same in memory of its own for each shard."""
        whole = self.gather(given)
        for k, device in enumerate(self.communicator.devices):
            if any(whole[k] is other for other in whole[:k]):
                with on_device(device):  # CuPy copies to the current device
                    whole[k] = whole[k].copy()
        return whole

    def reduce(self, given: Sequence[Part]) -> list[Array]:
        """Each shard's own part of the sum of the vectors that all shards give."""
        return self.communicator.reduce_scatter([part for part, _ in given], given[0][1], "sum")

    def union(self, given: Sequence[Part]) -> list[Array]:
        """Each shard's own part of the union of the bitmaps that all shards give."""
        return self.communicator.reduce_scatter([part for part, _ in given], given[0][1], "or")

    def send(self, given: Sequence[tuple[list[Array], list[int], Array]]) -> Sequence[Array]:
        """What each shard is sent, joined in the last thing that it gives: an array for each of all
        shards, and the sizes of those that come.
        """
        return self.communicator.all_to_all_into(*zip(*given, strict=True))

    def counts(
        self, given: Sequence[tuple[Array, int, tuple[Array, Array] | None]]
    ) -> list[tuple[Rows, list[int], Array | None]]:
        """(the counts of all shards, in rows; their sums; the parts that travel with them, joined).
        A shard gives the array of its counts; the number of its round, which kernels have written
        beside them for the host; and its part, beside the array for those of all shards, or None.
        """
        arrays, rounds, parts = zip(*given, strict=True)
        comm, wholes = self.communicator, [part and part[1] for part in parts]
        start = self.prepared.get(id(wholes[0])) or self._prepare(arrays, parts)
        start()
        if self.of_all is not None:
            comm.synchronize()
            rows = self.of_all.tolist()
        else:
            assert self.host_counters is not None
            rows = wait_for_counts(self.host_counters, rounds, arrays, comm).tolist()
        # few numbers: NumPy takes longer to add them, and to look at one
        sums = [sum(column) for column in zip(*rows, strict=True)]
        return [(rows, sums, whole) for whole in wholes]

    def _prepare(
        self, arrays: Sequence[Array], parts: Sequence[tuple[Array, Array] | None]
    ) -> Callable[[], None]:
        """The collectives of `counts`: of several processes' counts, and of parts, if any."""
        comm, pairs = self.communicator, []
        if comm.processes > 1:
            if self.of_all is None:
                self.of_all = host_mapped((comm.num_shards, arrays[0].size), arrays[0])
            pairs.append((arrays, [on_device_too(self.of_all, arrays[0])] * len(arrays)))
        if parts[0] is not None:
            pairs.append(tuple(zip(*parts, strict=True)))
        start = comm.gathering("counts", *pairs) if pairs else comm.check
        self.prepared[id(parts[0] and parts[0][1])] = start
        return start


class Rounds(NamedTuple):
    """A loop in rounds: its local shards, which a graph keeps, and how they exchange."""

    shards: list[Any]
    devices: Sequence[str]
    exchange: ByCommunicator
    lock: threading.Lock  # of the graph: another thread's loop over it uses the same memory

    def run(self, begin: Callable[[int, Any], Generator[tuple[str, Any], Any, R]]) -> list[R]:
        """What the shards find; begin(k, shard) is the generator of local shard k."""
        with self.lock:
            steps = list(map(begin, range(len(self.shards)), self.shards))
            return run(steps, self.devices, self.exchange)


def rounds_of(
    loop: str,
    asked: object,
    placement: Placement,
    graph: ShardedGraph,
    counts: int,
    make: Callable[[int, int, np.ndarray], Any],
) -> Rounds:
    """The rounds of a loop for what is asked, made once and kept with the graph. make(k, p, words)
    is local shard k, which is p of all, with words of the host for its counts: `counts` and one for
    each shard.
    """
    kept: dict[Any, Rounds] = graph.plans(f"{loop} in rounds", asked)
    found = kept.get(asked)
    if found is None:  # another thread may forget it, or make one too
        shape = len(graph.shards), counts + placement.num_shards
        counters = host_mapped(shape, graph.shards[0].indptr)
        shards = placement.map(lambda k, p: make(k, p, counters[k]), placement.local)
        exchange = ByCommunicator(placement.communicator, counters)
        found = kept[asked] = Rounds(shards, placement.devices, exchange, graph.lock)
    return found


class ByPeers:
    """Kernels have written what others need into the memory of all devices, which only meet."""

    def __init__(self, peers: Buffers) -> None:
        self.peers = peers

    def meet(self, given: Sequence[R]) -> Sequence[R]:
        """`given`, once the devices' streams are in order."""
        self.peers.barrier()
        return given

    def meet_processes(self, given: Sequence[R]) -> Sequence[R]:
        """As `meet`, but those of one process alone do not wait for each other."""
        return given if len(self.peers.local) == len(self.peers.devices) else self.meet(given)

    gather = reduce = meet
