"""What shards exchange in a loop, and how long that takes beside what they compute.

On GPUs that write into each other's memory a loop is one launch, in which both happen at once. So
what is measured here is the same loop in rounds, with a collective of the communicator between two
rounds: all devices wait before and after each collective, and the time between is the exchange.
That takes longer than the loop without the waits, and longer than one launch; it tells which share
of the work is exchange, not what a search takes.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from spgraph.algorithms import bfs
from spgraph.benchmarking.timing import timed, wait
from spgraph.distributed import Communicator, DistributedMatrix, Placement

COLLECTIVES = (
    "all_gather",
    "all_to_all",
    "all_reduce",
    "reduce_scatter",
    "broadcast",
    "all_to_all_into",
)
MOST_LEVELS = 64  # of searches whose levels are told apart


class Step(NamedTuple):
    """The seconds of a level, of the slowest process: its collectives, and all else since the last
    collective of the level before.
    """

    exchange_seconds: float
    compute_seconds: float


class Cost(NamedTuple):
    """What a loop costs over shards, by the model of Pan et al.: W is `edges`, H `bytes_sent`, C
    `elements`, S `rounds`.

    `edges` leave the vertices of a search's frontiers, or are read by a closure, `bytes_sent` go
    from one shard to another, `elements` are those of the arrays that are packed before collectives
    and read after them, and `collectives` how many there are. `edges` and `rounds` are None where a
    loop does not report them. All are sums over the shards of all processes; the seconds are those
    of the slowest.
    `levels` are those of a search, in order, empty for other loops and beyond 64 levels.

    Source: Pan, Wang, Wu, Yang, Owens, "Multi-GPU graph analytics", 2017.
    """

    edges: int | None
    bytes_sent: int
    elements: int
    rounds: int | None
    collectives: int
    exchange_seconds: float
    compute_seconds: float
    levels: list[Step]


class WatchedCommunicator:
    """A communicator that times its collectives and counts what they move; all devices wait before
    and after each. Everything else is the communicator's within.
    """

    def __init__(self, within: Communicator) -> None:
        self._within = within
        self.forget()

    def forget(self) -> None:
        """Begin to count anew."""
        self.elements, self.sent_before = 0, self._within.bytes_sent
        self.edges, self.rounds = 0, 0  # of a closure, as its local shards report
        self.spans: list[tuple[float, float]] = []  # when each collective began and ended
        self.began = time.perf_counter()

    @property
    def collectives(self) -> int:
        """How many there were."""
        return len(self.spans)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._within, name)
        if name == "gathering":
            return lambda *given: self._prepared(found(*given), given[1:])
        if name in COLLECTIVES:
            return lambda *given, **more: self._watched(found, given, more)
        return found

    def _prepared(self, run: Callable[[], None], pairs: Any) -> Callable[[], None]:
        """A call that gathers `pairs`, timed and counted."""
        return lambda: self._watched(lambda arrays: run(), (pairs,), {})

    def _watched(self, collective: Callable[..., Any], given: Any, more: Any) -> Any:
        self._wait()
        begin = time.perf_counter()
        result = collective(*given, **more)
        self._wait()
        self.spans.append((begin, time.perf_counter()))
        self.elements += _elements(given[0]) + _elements(result)
        return result

    def _wait(self) -> None:
        self._within.synchronize()  # raises where a collective cannot end
        wait(self._within.devices)

    def cost(
        self,
        edges: int | None,
        rounds: int | None,
        seconds: float,
        ends: Sequence[int] | None = None,
    ) -> Cost:
        """What was counted since `forget`, in `seconds` altogether; `ends` are the numbers of
        collectives after each level but the last, None where levels are not told apart. Of a
        closure `edges` and `rounds` are its own.
        """
        sent = self._within.bytes_sent - self.sent_before
        counts = np.array([sent, self.elements, self.edges], np.int64)
        sent, elements, looked = self._within.all_reduce_host(counts, "sum").tolist()
        if self.rounds:
            edges, rounds = looked, self.rounds
        cuts, moments = [0, *(ends or ()), self.collectives], [self.began]
        moments += [self.spans[end - 1][1] if end else self.began for end in cuts[1:-1]]
        moments.append(self.began + seconds)
        spent = []
        for (first, end), (before, now) in zip(
            itertools.pairwise(cuts), itertools.pairwise(moments), strict=True
        ):
            exchange = sum(after - begin for begin, after in self.spans[first:end])
            spent += [exchange, now - before - exchange]
        every = [sum(spent[::2]), sum(spent[1::2]), *spent]
        exchange, compute, *spent = self._within.all_reduce_host(np.array(every), "max").tolist()
        levels = [] if ends is None else list(map(Step, spent[::2], spent[1::2]))
        return Cost(edges, sent, elements, rounds, self.collectives, exchange, compute, levels)


def _elements(arrays: Any) -> int:
    """Of the arrays in lists, at any depth."""
    if isinstance(arrays, Sequence):
        return sum(map(_elements, arrays))
    return 0 if arrays is None else int(arrays.size)


class WatchedPlacement(Placement):
    """A Placement with a WatchedCommunicator, over which loops run in rounds."""

    @property
    def kernels(self) -> Any:
        """Those of the backend; its closures in rounds report what they read."""
        return WatchedKernels(super().kernels, cast(WatchedCommunicator, self.communicator))


class WatchedKernels:
    """Those `within`, whose closures in rounds report to the communicator."""

    def __init__(self, within: Any, watched: WatchedCommunicator) -> None:
        self._within, self._watched = within, watched

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._within, name)
        if name == "ClosureShard":
            return functools.partial(WatchedClosure, self._watched, found)
        return found


class WatchedClosure:
    """A shard of a closure in rounds, which reports its rounds, and the edges that it has read."""

    def __init__(self, watched: WatchedCommunicator, kind: Any, *given: Any) -> None:
        self._watched, self._shard = watched, kind(*given)

    def closure(self, *given: Any) -> Generator[Any, Any, Any]:
        """The steps of the shard."""
        steps, answer, rounds = self._shard.closure(*given), None, 0
        try:
            while True:
                request = steps.send(answer)
                rounds += request[0] == "counts"
                answer = yield request
        except StopIteration as end:
            self._watched.rounds = rounds
            self._watched.edges += int(end.value.relaxations)
            return end.value
        finally:
            steps.close()


def in_rounds(A: DistributedMatrix) -> tuple[DistributedMatrix, WatchedCommunicator]:
    """A, with the same arrays, on a Placement over which loops run in rounds; what they exchange
    from now on is counted.
    """
    watched = WatchedCommunicator(A.device.communicator)
    partition = A.device.graph_partition
    own = cast(Communicator, watched)
    placement = WatchedPlacement(partition, own, None, exchange_given=True)
    made = DistributedMatrix(A.nrows, A.ncols, A.shards, placement, symmetric=A.symmetric)
    return made, watched


def search_cost(A: DistributedMatrix, source: int, **options: Any) -> Cost:
    """The `Cost` of `sg.bfs` from a vertex, with its `options`, in rounds.

    >>> import spgraph as sg
    >>> A = sg.generators.kronecker(6).distribute(2)
    >>> found = search_cost(A, 0)
    >>> found.rounds, found.edges > found.rounds, found.bytes_sent > 0, found.exchange_seconds > 0
    (4, True, True, True)
    >>> len(found.levels), found.levels[0].exchange_seconds > 0
    (4, True)
    """
    G, watched = in_rounds(A)
    trace = bfs(G, source, trace=True, **options).trace  # which also prepares the next one

    def run(depth: int | None = None) -> int:
        watched.forget()
        return bfs(G, source, max_depth=depth, **options).level.nvals

    ends, told_apart = [], 0 < len(trace) <= MOST_LEVELS
    for depth in range(1, len(trace)) if told_apart else ():
        run(depth)  # has the collectives of a longer search so far
        ends.append(watched.collectives)
    _, seconds = timed(G.device.devices, run, G.device.communicator)
    edges = sum(level.edges for level in trace)
    return watched.cost(edges, len(trace), seconds, ends if told_apart else None)
