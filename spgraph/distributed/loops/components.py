"""Weak components over shards.

Between GPUs that write into each other's memory a symmetric graph whose vertices are all near each
other takes the way about the giant: a search from the vertex with most edges finds most of it;
whatever it reached is one component, and the edges that are left are so few that every shard looks
at them all. Any other graph takes the way of forests: every shard finds the components of its own
rows, tells the owners of others' vertices what these rows join them to, and all shards get what
the owners have not known. Where a symmetric graph has many edges, this is done twice: with two of
each vertex, and with those that are not inside of the giant then.

Both ways give their lists room for a share of the vertices and look only at the end whether that
was enough, so that the host waits once for each call. Beside the search, the way about the giant
reads two bits a vertex twice and writes each label once, in four launches a GPU; forests pass over
the labels of all vertices on every GPU some ten times, and exchange a bit a vertex.

Of two H200s, in ms (one GPU): Kronecker graphs of 2^25 vertices and 1.05e9 edges 0.69 (1.66), of
which the search takes 0.53, and by forests 2.2, whatever the exchange; of 2^24 and 1.02e9 edges
0.49 (1.03), and 1.3 to 1.5. What is left beside the giant is some 5000 pairs of 1e9 edges. Two
giants alike of 1.3e8 edges each take 2.4 (1.6). Of a directed graph every edge is read: 11.7 (8.2).
"""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from spgraph import direction as directions
from spgraph.backends.cuda.contract import components as on_gpu
from spgraph.backends.cuda.contract.contract import Forest
from spgraph.backends.cuda.runtime.jit import address
from spgraph.containers import Matrix, Vector
from spgraph.containers.arrays import Array, array_module, index_dtype, on_device
from spgraph.distributed.containers.placement import Placement
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.distributed.exchange.collectives import materialize, send_to_owners, tag_graph
from spgraph.distributed.exchange.host_counters import POLL, host_mapped
from spgraph.distributed.loops import peers
from spgraph.distributed.loops.single_device import single_device_of

NEAR = 8  # levels in which a search is expected to reach all
MOST_LEVELS = 2 * NEAR  # after which it ends
ROOM, SHARE = 1024, 512  # pairs in a list: so many, or so many vertices for each


def contract(A: Any, undirected: bool) -> Vector:
    """The smallest vertex of every vertex's weakly connected component."""
    tag_graph(A)
    materialize(A)
    if A.device.devices[0] == "cpu":
        return in_lists(A)
    if one := single_device_of(A):
        return one.scatter(A.device.backend(0).contract(one.whole, undirected))
    return in_kernels(A, undirected)


# --- on GPUs --------------------------------------------------------------------------------------


def in_kernels(A: Any, undirected: bool) -> Vector:
    """The labels, about the giant where that does, else by forests."""
    if A.nvals == 0:
        return A.device.arange(A.nrows)
    plan = planned(A)
    if undirected and plan.giant:
        found = about_the_giant(A, plan)
        if found is not None:
            return found
        plan.giant = None  # nor will it be the next time
    return by_forests(A, plan, undirected and directions.a_sample_pays(A.nrows, A.nvals))


class Plan:
    """What calls on one graph share: the local shards' `rows`, whether to look for the `giant`
    first, and the `room` for pairs in a list.
    """

    def __init__(self, A: Any) -> None:
        placement, n = A.device, A.nrows
        partition, kind = placement.partition(n), index_dtype(n)

        def own(k: int, shard: Matrix) -> on_gpu.Rows:
            first = int(partition.offsets[placement.local[k]])
            if partition.ids is None:
                return on_gpu.Rows(shard, n, first, None, None)
            every = array_module(shard._indptr).arange(n, dtype=kind)
            places = partition.to_internal(every).astype(kind, copy=False)
            ids = placement.shard_ids(k, n).astype(kind, copy=False)
            return on_gpu.Rows(shard, n, first, ids, places)

        self.rows = placement.map(own, A.shards)
        self.room = max(ROOM, n // SHARE)
        self.giant: Giant | None = None
        if placement.peers is not None and A.symmetric:
            giant = Giant(A, self.rows, self.room)
            if directions.all_are_near(n, A.nvals, giant.degree, NEAR):
                self.giant = giant


class Giant:
    """What the search for the giant needs: a `start` at the vertex with most edges, its `degree`,
    and memory of every shard for a list that others read, and of the host for what became of it.
    """

    def __init__(self, A: Any, rows: list[on_gpu.Rows], room: int) -> None:
        placement, n = A.device, A.nrows

        def most(k: int, shard: Matrix) -> tuple[int, int]:
            if shard.nvals == 0:
                return 0, 0
            degrees = shard._indptr[1:] - shard._indptr[:-1]
            at = int(degrees.argmax())
            return int(degrees[at]), int(placement.shard_ids(k, n)[at])

        self.degree, hub = max(placement.map(most, A.shards))
        self.start = placement.unit(hub, hub, size=n, dtype=index_dtype(n))
        self.room = room
        self.messages = reachable(placement, on_gpu.pairs_form(rows[0], room).size)
        self.addresses = []
        for device in placement.devices:
            with on_device(device) as xp:
                self.addresses.append(xp.asarray([address(array) for array in self.messages]))
        self.host_counters = host_mapped((len(rows), 1), rows[0].nonempty)[:, 0]
        self.lock = threading.Lock()
        self.round = 0

    def wait(self, placement: Placement) -> bool:
        """Whether the labels are void, when all shards have said so to the host."""
        looked = time.monotonic()
        while (self.host_counters >> 1 != self.round).any():
            if time.monotonic() - looked > POLL:
                for device in placement.devices:
                    with on_device(device) as xp:
                        _ = xp.cuda.get_current_stream().done  # or what a kernel has met
                looked = time.monotonic()
        return bool((self.host_counters & 1).any())


def planned(A: Any) -> Plan:
    """The plan; kept with A."""
    if "components" not in A._derived:
        A._derived["components"] = Plan(A)
    return A._derived["components"]


def reachable(placement: Placement, size: int) -> list[Array]:
    """`size` words of each shard's device: not of a pool, whose memory others may not reach."""
    made = []
    for device in placement.devices:
        with on_device(device) as xp:
            memory = xp.cuda.MemoryPointer(xp.cuda.Memory(8 * size), 0)
            made.append(xp.ndarray((size,), np.int64, memory))
    return made


def about_the_giant(A: Any, plan: Plan) -> Vector | None:
    """The labels, by a search for the giant component; None where that leaves too much."""
    placement, giant, work = A.device, plan.giant, range(len(plan.rows))
    assert giant is not None
    with giant.lock:
        giant.round += 1
        level: Any = peers.search(A, A.T, giant.start, None, "auto", MOST_LEVELS, False)[0]
        visited = [shard._bits for shard in level.unchecked]
        tables, found = [], []
        for k in work:
            with on_device(placement.devices[k]):
                arguments = (visited[k], giant.messages[k], giant.room)
                tables.append(on_gpu.outside(plan.rows[k], *arguments))
        with placement.peers.lock:
            placement.peers.meet()
        for k in work:
            with on_device(placement.devices[k]):
                lists = (giant.messages[k], giant.addresses[k], giant.room)
                answer = (giant.round, address(giant.host_counters[k:]))
                found.append(on_gpu.settle(plan.rows[k], visited[k], tables[k], *lists, *answer))
        is_void = giant.wait(placement)
    _ = level.shards  # raises where a device was lost
    return None if is_void else labels(A, found)


def by_forests(A: Any, plan: Plan, sampled: bool) -> Vector:
    """The labels, from the components of every shard's rows; if `sampled`, of two edges of each
    vertex first: the graph is symmetric.
    """
    placement, comm = A.device, A.device.communicator
    work = range(len(plan.rows))
    while True:
        forests, reports, found = [], [], []
        for k in work:
            with on_device(placement.devices[k]) as xp:
                forests.append(Forest(A.lifted(k)))
                forests[k].sample()
                if not sampled:  # a row of one shard's giant may lead to that of another
                    forests[k].rest(undirected=False)
                reports.append(xp.zeros(1, np.int64))
        came = tell_all(placement, plan, forests, reports)
        if sampled:
            for k in work:
                with on_device(placement.devices[k]):
                    on_gpu.follow(plan.rows[k], forests[k], came[k], plan.room)
            tell_all(placement, plan, forests, reports)
        for k in work:
            with on_device(placement.devices[k]):
                found.append(on_gpu.finish(plan.rows[k], forests[k]))
        # the same in all processes: from messages that all got
        longest = max(int(report[0]) for report in comm.fetch(reports))
        if longest <= plan.room:
            return labels(A, found)
        # lists that were cut short may have hidden a longer answer
        plan.room = 1 << (longest - 1).bit_length()


def tell_all(
    placement: Placement, plan: Plan, forests: list[Forest], reports: list[Array]
) -> list[Array]:
    """The messages of all shards at each, when every forest knows what they tell of its own
    vertices.
    """
    told, answers = [], []
    for k, rows in enumerate(plan.rows):
        with on_device(placement.devices[k]):
            told.append(on_gpu.send_roots(rows, forests[k], plan.room))
    came = gathered(placement, told)
    for k, rows in enumerate(plan.rows):
        with on_device(placement.devices[k]):
            me = placement.local[k]
            answers.append(on_gpu.receive_roots(rows, forests[k], me, came[k], plan.room))
    links = gathered(placement, answers)
    for k, rows in enumerate(plan.rows):
        with on_device(placement.devices[k]):
            on_gpu.join(rows, forests[k], links[k], reports[k], plan.room)
    return came


def gathered(placement: Placement, messages: list[Array]) -> list[Array]:
    """The messages of all shards, which are of one size, at every local shard."""
    sizes = [messages[0].size] * placement.num_shards
    return placement.communicator.all_gather(messages, sizes=sizes)


def labels(A: Any, found: list[Array]) -> Vector:
    return DistributedVector(A.nrows, [Vector(x.size, x) for x in found], A.device)


# --- on CPUs --------------------------------------------------------------------------------------


def in_lists(A: Any) -> Vector:
    """The way of forests, with lists as long as they have to be."""
    placement, n = A.device, A.nrows

    def tell(k: int, _: Matrix) -> tuple[Array, tuple[Array, Array]]:
        label = placement.backend(k).contract(A.lifted(k), False)._values
        own = placement.shard_ids(k, n)
        told = label != np.arange(n)
        told[label[own]] = True  # the names of what own rows join with vertices of others
        told[own] = False
        others = np.flatnonzero(told).astype(label.dtype)
        return label, (others, label[others])

    told = placement.map(tell, A.shards)
    came = send_to_owners([pair for _, pair in told], placement, n)

    def hear(k: int, mine: Any, pieces: Any) -> tuple[Array, Array, Array]:
        label, own = mine[0], placement.shard_ids(k, n)
        known = label[np.concatenate([own[inside] for inside, _ in pieces])]
        names = np.concatenate([roots for _, roots in pieces])
        after = united(placement, k, label, known, names)
        changed = np.unique(np.concatenate([known, names]))
        changed = changed[after[changed] != changed]
        return after, changed, after[changed]

    heard = placement.map(hear, told, came)
    comm = placement.communicator
    low = comm.all_gather([mine[1] for mine in heard])
    high = comm.all_gather([mine[2] for mine in heard])

    def finish(k: int, mine: Any, u: Array, v: Array) -> Array:
        return united(placement, k, mine[0], u, v)[placement.shard_ids(k, n)]

    return labels(A, placement.map(finish, heard, low, high))


def united(placement: Placement, k: int, label: Array, u: Array, v: Array) -> Array:
    """The labels when also u[i] and v[i] are joined; every vertex leads straight to its root."""
    u, v = label[u], label[v]
    nodes = np.unique(np.concatenate([u, v]))
    ends = (np.searchsorted(nodes, u), np.searchsorted(nodes, v))
    links = Matrix.from_coo(*ends, nrows=nodes.size, ncols=nodes.size)
    label = label.copy()
    label[nodes] = nodes[placement.backend(k).contract(links, False)._values]
    return label[label]
