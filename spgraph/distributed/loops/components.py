"""Weakly connected components over shards, in one of two ways.

*By the giant component*, for symmetric graphs of small diameter on GPUs that write into each
other's memory: a search from the vertex of largest degree visits most of the graph. All visited
vertices are one component, and the remaining edges are so few that every shard merges all of them.

*By forests*, for any other graph: every shard finds the components of its own rows and sends the
root of each vertex of another shard to the vertex's owner. The owner has a root for it, too; where
the two differ they are of one component, and the owner sends the pair to all shards, which merge
all pairs. Where a symmetric graph has many edges, this is done twice: with two edges of each
vertex, then with the edges that are not inside of the giant component that the first time found.

Both ways use lists of a fixed capacity, a share of the vertices, and check only at the end whether
that was enough, so that the host waits once for each call. Beside the search, the first way reads
two bits a vertex twice and writes each label once, in four launches a GPU; forests pass over the
labels of all vertices on every GPU some ten times, and exchange a bit a vertex.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from spgraph import direction as directions
from spgraph.backends.loops import LevelSearch
from spgraph.backends.shards import Steps
from spgraph.backends.shards.buffers import forgotten_on_failure
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import Array, array_module, index_dtype
from spgraph.containers.storage.device_memory import address, array_at
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.placement import Placement
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.distributed.exchange.collectives import send_to_owners, tag_graph
from spgraph.distributed.exchange.coordinates import materialize
from spgraph.distributed.exchange.host_counters import host_mapped, wait_for_counts
from spgraph.distributed.exchange.lockstep import ByCommunicator, ByPeers, run
from spgraph.distributed.loops import search as searches
from spgraph.distributed.loops.single_device import single_device_of
from spgraph.iterations import contract as contract_whole

NEAR = 8  # levels in which the search for the giant component is expected to visit it all
MOST_LEVELS = 2 * NEAR  # after so many it ends
# a list holds so many pairs, or one for so many vertices
LEAST_CAPACITY, VERTICES_A_PAIR = 1024, 512


def contract(A: DistributedMatrix, undirected: bool) -> DistributedVector:
    """The smallest vertex of every vertex's weakly connected component. `undirected` says that A is
    symmetric.
    """
    tag_graph(A)
    materialize(A)
    if not A.device.has("ComponentsShard"):
        return by_exact_lists(A)
    if one := single_device_of(A):
        return one.run("contract", undirected)
    return by_kernels(A, undirected)


# --- by kernels -----------------------------------------------------------------------------------


def by_kernels(A: DistributedMatrix, undirected: bool) -> DistributedVector:
    """The labels: by the giant component if that is expected to pay and does, else by forests."""
    if A.nvals == 0:
        return A.device.arange(A.nrows)
    plan = plan_of(A)
    if undirected and plan.giant:
        found = by_giant(A, plan)
        if found is not None:
            return found
        plan.giant = None  # the next call does not try it again
    return by_forests(A, plan, undirected and directions.a_sample_pays(A.nrows, A.nvals))


class Plan:
    """What is kept of a graph from call to call: the local `shards`, `giant` where to begin by the
    giant component (else None), and the `capacity` of lists, in pairs.
    """

    def __init__(self, A: DistributedMatrix) -> None:
        placement, n = A.device, A.nrows
        partition, kind = placement.partition(n), index_dtype(n)

        def own(k: int, shard: Matrix) -> Any:
            ids = internal_ids = None
            if partition.ids is not None:
                every = array_module(shard._indptr).arange(n, dtype=kind)
                internal_ids = partition.to_internal(every).astype(kind, copy=False)
                ids = placement.shard_ids(k, n).astype(kind, copy=False)
            first = int(partition.offsets[placement.local[k]])
            return placement.kernels.ComponentsShard(shard, n, first, ids, internal_ids)

        self.shards = placement.map(own, A.shards)
        self.capacity = max(LEAST_CAPACITY, n // VERTICES_A_PAIR)
        self.giant: Giant | None = None
        if placement.has("search_peers") and placement.peers is not None and A.symmetric:
            giant = Giant(A, self.shards, self.capacity)
            if directions.all_are_near(n, A.nvals, giant.degree, NEAR):
                self.giant = giant


class Giant:
    """What the search for the giant component needs: a `start` at the vertex of largest degree, its
    `degree`, memory on each device for a list that the other devices read, and host-mapped counters
    for the outcome.
    """

    def __init__(self, A: DistributedMatrix, shards: Sequence[Any], capacity: int) -> None:
        placement, n = A.device, A.nrows

        def most(k: int, shard: Matrix) -> tuple[int, int]:
            if shard.nvals == 0:
                return 0, 0
            degrees = shard._indptr[1:] - shard._indptr[:-1]
            at = int(degrees.argmax())
            return int(degrees[at]), int(placement.shard_ids(k, n)[at])

        degree, hub = max(placement.map(most, A.shards))
        self.degree = placement.largest(degree)  # of all processes
        hub = placement.largest(hub if degree == self.degree else 0)
        self.start = placement.unit(hub, hub, size=n, dtype=index_dtype(n))
        self.capacity = capacity
        self.messages, places = peer_memory(placement, shards[0].pairs_words(capacity))
        self.addresses = placement.communicator.on_each(lambda xp: xp.asarray(places, np.int64))
        self.host_counters = host_mapped((len(shards), 1), shards[0].nonempty)
        self.lock = threading.Lock()
        self.round = 0


def plan_of(A: DistributedMatrix) -> Plan:
    """The Plan of A, made once and kept with A."""
    if "components" not in A._derived:
        A._derived["components"] = Plan(A)
    return A._derived["components"]


def peer_memory(placement: Placement, size: int) -> tuple[list[Array], list[int]]:
    """(`size` 64-bit words on the device of each local shard, which all devices can access; the
    addresses of those of all shards).
    """
    assert placement.peers is not None
    buffers = placement.peers.another()
    places = buffers.reserve("components", [8 * size] * placement.num_shards)

    def array(xp: ModuleType, p: int) -> Array:  # it keeps the buffers
        return array_at(places[p], size, np.dtype(np.int64), buffers)

    return placement.communicator.on_each(array, placement.local), places


def by_giant(A: DistributedMatrix, plan: Plan) -> DistributedVector | None:
    """The labels by the giant component; None where too many edges remain outside of it."""
    placement, giant = A.device, plan.giant
    assert giant is not None and placement.peers is not None
    with giant.lock:
        giant.round += 1
        level = searches.by_kernels(A, A._T, giant.start, LevelSearch(MOST_LEVELS))[0]
        steps = [
            shard.around(
                *(visited._bits, giant.messages[k], giant.addresses[k], giant.capacity),
                *(giant.round, address(giant.host_counters[k:])),
            )
            for k, (shard, visited) in enumerate(zip(plan.shards, level.unchecked, strict=True))
        ]
        with placement.peers.lock, forgotten_on_failure(placement.peers):
            found = run(steps, placement.devices, ByPeers(placement.peers))
        rounds = [giant.round] * len(steps)
        comm = placement.communicator
        is_void = wait_for_counts(giant.host_counters, rounds, giant.messages, comm).any()
    _ = level.shards  # raises where a device was lost
    placement.peers.check()
    return None if is_void else labels(A, found)


def by_forests(A: DistributedMatrix, plan: Plan, sampled: bool) -> DistributedVector:
    """The labels by forests; if `sampled`, of two edges of each vertex first, for which the graph
    has to be symmetric.
    """
    placement, comm = A.device, A.device.communicator
    while True:
        steps = [
            shard.forests(A.lifted(k), p, placement.num_shards, sampled, plan.capacity)
            for k, (p, shard) in enumerate(zip(placement.local, plan.shards, strict=True))
        ]
        found, lengths = zip(*run(steps, placement.devices, ByCommunicator(comm)), strict=True)
        # equal in all processes: they come from messages that all have received
        longest = max(int(length[0]) for length in comm.fetch(lengths))
        if longest <= plan.capacity:
            return labels(A, found)
        # a list that was full may have hidden that a later one needs more
        plan.capacity = 1 << (longest - 1).bit_length()


def labels(A: DistributedMatrix, found: Sequence[Array]) -> DistributedVector:
    """The Vector of these labels, one array for each local shard."""
    return DistributedVector(A.nrows, [Vector._of(x.size, x) for x in found], A.device)


# --- out of operations ----------------------------------------------------------------------------


def by_exact_lists(A: DistributedMatrix) -> DistributedVector:
    """The labels by forests, with lists of exact length."""
    placement, n = A.device, A.nrows
    comm = placement.communicator

    def forest(k: int) -> Steps[Array]:
        label, own = contract_whole(A.lifted(k))._values, placement.shard_ids(k, n)
        sent = label != array_module(label).arange(n)
        sent[label[own]] = True  # roots of components that span several shards
        sent[own] = False
        others = np.flatnonzero(sent).astype(label.dtype)
        pieces = yield "to_owners", (others, label[others])
        own_roots = label[np.concatenate([own[inside] for inside, _ in pieces])]
        their_roots = np.concatenate([roots for _, roots in pieces])
        label = merge_labels(label, own_roots, their_roots)
        changed = np.unique(np.concatenate([own_roots, their_roots]))
        changed = changed[label[changed] != changed]
        low = yield "gather", (changed, None)
        high = yield "gather", (label[changed], None)
        return merge_labels(label, low, high)[own]

    def to_owners(pairs: list[tuple[Array, ...]]) -> list[list[tuple[Array, ...]]]:
        return send_to_owners(pairs, placement, n)

    steps = [forest(k) for k in range(len(placement.local))]
    found = run(steps, placement.devices, ByCommunicator(comm), to_owners=to_owners)
    return labels(A, found)


def merge_labels(label: Array, u: Array, v: Array) -> Array:
    """The labels after the components of u[i] and v[i] are merged, for each i; every label is a
    root, the least vertex of its component.
    """
    u, v = label[u], label[v]
    roots = np.unique(np.concatenate([u, v]))
    ends = (np.searchsorted(roots, u), np.searchsorted(roots, v))
    edges = Matrix.from_coo(*ends, nrows=roots.size, ncols=roots.size)
    label = label.copy()
    label[roots] = roots[contract_whole(edges)._values]
    return label[label]
