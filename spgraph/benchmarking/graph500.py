"""The Graph500 benchmark, specification 2.0: an edge list, the graph made of it, 64 searches, 64
trees of shortest paths, and the check of each.

Two things are not as the specification asks, so that a result is none to submit: ids of vertices
have 32 bits, not 48, which bounds the scale to 30; what searches on GPUs keep with a graph, four
neighbours of large degree for each vertex, is made in the first run, which is not timed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from spgraph.algorithms import bfs, sssp
from spgraph.benchmarking.exchange import Cost, search_cost
from spgraph.benchmarking.timing import timed
from spgraph.benchmarking.tuples import Graph, construct, generate_tuples
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import Array, check_device, device_of, move, on_device
from spgraph.containers.storage.numbers import flags, is_integer
from spgraph.distributed import Communicator, DistributedMatrix
from spgraph.distributed.communicators import LocalCommunicator
from spgraph.distributed.distribute import check_communicator, chosen
from spgraph.iterations import Level
from spgraph.operations import ewise_mult, reduce
from spgraph.random_edges import numbers, state_of
from spgraph.semirings import binary
from spgraph.validation import Failure, validate_bfs, validate_sssp

SMALL = 13  # the scale of a list whose generation compiles what that of any list calls
KEYS = 4  # a purpose of random numbers, beside those of the edges


class Root(NamedTuple):
    """One search from one key: seconds, the input tuples of the component, how long the check took,
    and what it found.
    """

    key: int
    seconds: float
    edges: int
    validation_seconds: float
    failures: list[Failure]


class Graph500(NamedTuple):
    """What `graph500` measured; times are in seconds. `cost` is what the search of `trace` costs in
    rounds, over several shards (spgraph/benchmarking/exchange.py).
    """

    scale: int
    edgefactor: int
    processes: int
    shards: int
    device: str
    vertices: int
    entries: int
    generation_seconds: float
    construction_first_seconds: float
    construction_seconds: float
    bfs_first_seconds: float
    bfs: list[Root]
    sssp_first_seconds: float
    sssp: list[Root]
    trace: list[Level] | None
    cost: Cost | None

    @property
    def valid(self) -> bool:
        """Whether every tree has passed every check."""
        return not any(root.failures for root in (*self.bfs, *self.sssp))


def graph500(
    scale: int,
    edgefactor: int = 16,
    *,
    device: str = "cpu",
    shards: int = 1,
    communicator: Communicator | None = None,
    roots: int = 64,
    seed: int = 1,
    trace: bool = False,
) -> Graph500:
    """Run the Graph500 benchmark: `Graph500`, all times and what is wrong with any tree.

    Parameters:
        scale: the edge list has 2**scale vertices.
        edgefactor: tuples of the edge list for each vertex.
        device: "cpu", "cuda" or "cuda:N"; with `shards` > 1, "cuda" is all GPUs in turn.
        shards: in how many shards.
        communicator: of the processes, each of which calls this; instead of `device` and `shards`.
        roots: from how many keys.
        seed: which random edges and keys.
        trace: the levels of the search from the first key, too, in a run of its own; over several
            shards also what it costs in rounds, exchange and compute apart in each level.

    The edge list is made first, loops and repeated tuples included, with weights uniform in [0, 1).
    Kernel 1 makes the graph of it and is timed, kernel 2 is `sg.bfs` and kernel 3 `sg.sssp`, both
    with parents, from `roots` different keys, random among the vertices with an edge to another
    one; from fewer if the graph has fewer. Each of the three runs once, kernels 2 and 3 from the
    first key, before its times are taken: kernels are compiled then, and what searches keep with a
    graph is made. These runs are `construction_first_seconds` and so on.
    After each run all five checks of `sg.validation` are made, where the graph is. `edges` are the
    tuples of the list within the component, loops and repeated ones included.

    Raises ValueError for a scale outside of 1..30, an edgefactor, shards or roots below 1, a seed
    outside of 0..2**64 - 1 or with loops alone; BackendUnavailable for a device that is not there.

    Source: Graph500 benchmark specification 2.0, 2017; https://graph500.org/?page_id=12.

    >>> import spgraph as sg
    >>> found = sg.benchmarking.graph500(6, roots=3)
    >>> found.valid, len(found.bfs), len(found.sssp), found.vertices
    (True, 3, 3, 64)
    """
    _check(trace, scale=scale, edgefactor=edgefactor, roots=roots)
    comm = _communicator(device, shards, communicator)
    graph, spent = _made(comm, scale, edgefactor, seed)
    keys = search_keys(graph.degrees, roots, seed)
    graph.degrees.clear()
    bfs_first, searches = _runs(comm, graph, keys, bfs, validate_bfs)
    sssp_first, trees = _runs(comm, graph, keys, sssp, validate_sssp)
    return Graph500(
        *(scale, edgefactor, comm.processes, comm.num_shards),
        comm.devices[0].partition(":")[0],
        *(graph.A.nrows, graph.A.nvals),
        *(*spent, bfs_first),
        searches,
        sssp_first,
        trees,
        *(_traced(graph.A, keys[0]) if trace else (None, None)),
    )


def _traced(A: Matrix, key: int) -> tuple[list[Level], Cost | None]:
    """The levels of a search, and over several shards its cost in rounds."""
    cost = search_cost(A, key) if isinstance(A, DistributedMatrix) else None
    return bfs(A, key, trace=True).trace, cost


def _check(trace: bool, **numbers: object) -> None:
    """DomainMismatch for a `trace` that is no truth, ValueError for what is no integer >= 1."""
    flags("graph500", trace=trace)
    for name, value in numbers.items():
        if not is_integer(value) or value < 1:
            raise ValueError(f"graph500: {name}: expected an integer >= 1, got {value!r}")


def _made(
    comm: Communicator, scale: int, edgefactor: int, seed: int
) -> tuple[Graph, tuple[float, float, float]]:
    """The graph, and the seconds that its edge list took, kernel 1 the first time, and kernel 1.
    The list is gone then.
    """
    generate_tuples(min(scale, SMALL), min(edgefactor, 16), seed, comm)  # compiles
    tuples, generation = timed(
        comm.devices, lambda: generate_tuples(scale, edgefactor, seed, comm), comm
    )
    # of the same tuples: CuPy has other kernels for arrays of more than 2 GiB
    graph, first = timed(comm.devices, lambda: construct(tuples), comm)
    del graph  # before the other is made
    graph, construction = timed(comm.devices, lambda: construct(tuples), comm)
    return graph, (generation, first, construction)


def _communicator(device: str, shards: int, given: Communicator | None) -> Communicator:
    """The communicator of the shards; that of one shard on one device holds it alone."""
    if given is not None:
        check_communicator("graph500", given)
        return given
    if shards == 1:
        return LocalCommunicator(1, [check_device(device)])
    return chosen("graph500", shards, device, None, "auto")


def _finished(found: Any) -> Any:
    """A result that devices have written: the number of its entries is one of them."""
    found.parent.nvals  # noqa: B018
    return found


def _runs(
    comm: Communicator,
    graph: Graph,
    keys: list[int],
    kernel: Callable[..., Any],
    check: Callable[..., list[Failure]],
) -> tuple[float, list[Root]]:
    """The seconds of a run from the first key, and the timed runs with their checks."""

    def run(key: int) -> tuple[Any, float]:
        return timed(comm.devices, lambda: _finished(kernel(graph.A, key)), comm)

    def validated(key: int, found: Any) -> tuple[list[Failure], float]:
        return timed(comm.devices, lambda: check(graph.A, key, *found), comm)

    found, first = run(keys[0])
    validated(keys[0], found)
    runs = []
    for key in keys:
        found, seconds = run(key)
        failures, spent = validated(key, found)
        runs.append(Root(key, seconds, component_edges(graph, found.parent), spent, failures))
    return first, runs


def component_edges(graph: Graph, reached: Vector) -> int:
    """The number of input tuples whose ends have entries, loops and repeated ones included."""
    return int(reduce(ewise_mult(graph.ends, reached, binary.first), "plus")) // 2


def search_keys(degrees: list[Array], count: int, seed: int) -> list[int]:
    """Different random vertices with an edge to another one, at most `count`; ValueError without
    any.
    """
    mine, state, device = degrees[0], state_of(seed, KEYS), device_of(degrees[0])
    keys: dict[int, None] = {}  # in the order in which they were found
    with on_device(device):
        there = int((mine > 0).sum())
    batch = 4096
    for first in range(0, 1 << 40, batch):
        if len(keys) >= min(count, there):
            break
        random = numbers(state, np.arange(first, first + batch, dtype=np.uint64))
        ids = (random % np.uint64(mine.size)).astype(np.int64)
        with on_device(device):
            connected = move(mine[move(ids, device)] > 0, "cpu")
        keys |= dict.fromkeys(ids[connected].tolist())
    if not keys:
        raise ValueError(
            "graph500: seed: expected an edge list with an edge between two vertices, got one of "
            f"loops alone from seed {seed}; take another"
        )
    return list(keys)[:count]
