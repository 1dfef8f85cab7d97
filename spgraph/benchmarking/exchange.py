"""What shards exchange in a loop, and how long that takes beside what they compute.

On GPUs that write into each other's memory a loop is one launch, in which both happen at once. So
what is measured here is the same loop in rounds, with a collective of the communicator between two
rounds: all devices wait before and after each collective, and the time between is the exchange.
That takes longer than the loop without the waits, and longer than one launch; it tells which share
of the work is exchange, not what a search takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from spgraph.algorithms import bfs
from spgraph.benchmarking.timing import timed, wait
from spgraph.distributed import Communicator, DistributedMatrix, Placement

COLLECTIVES = ("all_gather", "all_to_all", "all_reduce", "reduce_scatter", "broadcast")


class Cost(NamedTuple):
    """What a loop costs over shards, by the model of Pan et al.: W is `edges`, H `bytes_sent`, C
    `elements`, S `rounds`.

    `edges` leave the vertices of the frontiers, `bytes_sent` go from one shard to another,
    `elements` are those of the arrays that are packed before collectives and read after them, and
    `collectives` how many there are. `edges` and `rounds` are None where a loop does not report
    them. All are sums over the shards of all processes; the seconds are those of the slowest.

    Source: Pan, Wang, Wu, Yang, Owens, "Multi-GPU graph analytics", 2017.
    """

    edges: int | None
    bytes_sent: int
    elements: int
    rounds: int | None
    collectives: int
    exchange_seconds: float
    compute_seconds: float


class WatchedCommunicator:
    """A communicator that times its collectives and counts what they move; all devices wait before
    and after each. Everything else is the communicator's within.
    """

    def __init__(self, within: Communicator) -> None:
        self._within = within
        self.forget()

    def forget(self) -> None:
        """Begin to count anew."""
        self.seconds, self.elements, self.collectives = 0.0, 0, 0
        self.sent_before = self._within.bytes_sent

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._within, name)
        if name in COLLECTIVES:
            return lambda *given, **more: self._watched(found, given, more)
        return found

    def _watched(self, collective: Callable[..., Any], given: Any, more: Any) -> Any:
        self._wait()
        begin = time.perf_counter()
        result = collective(*given, **more)
        self._wait()
        self.seconds += time.perf_counter() - begin
        self.elements += _elements(given[0]) + _elements(result)
        self.collectives += 1
        return result

    def _wait(self) -> None:
        self._within.synchronize()  # raises where a collective cannot end
        wait(self._within.devices)

    def cost(self, edges: int | None, rounds: int | None, seconds: float) -> Cost:
        """What was counted since `forget`, in `seconds` altogether."""
        counts = np.array([self._within.bytes_sent - self.sent_before, self.elements], np.int64)
        sent, elements = self._within.all_reduce_host(counts, "sum").tolist()
        spent = np.array([self.seconds, seconds - self.seconds])
        exchange, compute = self._within.all_reduce_host(spent, "max").tolist()
        return Cost(edges, sent, elements, rounds, self.collectives, exchange, compute)


def _elements(arrays: Any) -> int:
    """Of the arrays in lists, at any depth."""
    if isinstance(arrays, Sequence):
        return sum(map(_elements, arrays))
    return 0 if arrays is None else int(arrays.size)


def in_rounds(A: DistributedMatrix) -> tuple[DistributedMatrix, WatchedCommunicator]:
    """A, with the same arrays, on a Placement over which loops run in rounds; what they exchange
    from now on is counted.
    """
    watched = WatchedCommunicator(A.device.communicator)
    partition = A.device.graph_partition
    placement = Placement(partition, cast(Communicator, watched), None, exchange_given=True)
    made = DistributedMatrix(A.nrows, A.ncols, A.shards, placement, symmetric=A.symmetric)
    return made, watched


def search_cost(A: DistributedMatrix, source: int) -> Cost:
    """The `Cost` of `sg.bfs` with parents from a vertex, in rounds.

    >>> import spgraph as sg
    >>> A = sg.generators.kronecker(6).distribute(2)
    >>> found = search_cost(A, 0)
    >>> found.rounds, found.edges > found.rounds, found.bytes_sent > 0, found.exchange_seconds > 0
    (4, True, True, True)
    """
    G, watched = in_rounds(A)
    trace = bfs(G, source, trace=True).trace  # which also prepares the next one
    watched.forget()
    _, seconds = timed(G.device.devices, lambda: bfs(G, source).level.nvals, G.device.communicator)
    return watched.cost(sum(level.edges for level in trace), len(trace), seconds)
