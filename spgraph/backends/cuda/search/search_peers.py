"""The peer form of breadth-first search: one cooperative kernel on each of several GPUs of this
process, which exchange their frontiers by writing into each other's memory.

The host makes the results (a pool's memory), looks whether a device still works, and launches: no
copy, no fill, and nothing that waits. With two devices `sg.bfs` is back after 0.12 ms; the kernels
begin in the midst of that, and the first waits for the last.

On two H200, Kronecker graph of 2^24 vertices and 1.02e9 edges, in microseconds: a meeting of the
blocks of one GPU 1.2, of all GPUs 2.6; a small level 4.6 and 3.8 for its exchange; a level that
pushes 46 vertices with 678290 edges 55 (push 12, send 4, settle 20), with parents 100; pulls 114
and 40; last levels, where hardly anything is open, 10 to 12. Settling and pulling read a few bytes
here and there of what memory delivers in 64, the rest are fixed costs.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from spgraph import direction as directions
from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.backends.cuda.search.search import (
    DIRECTIONS,
    PUSH_STEP,
    PUSH_STEP_HUBS,
    small_frontier,
)
from spgraph.containers.arrays import Array, array_module, index_dtype, move, words
from spgraph.errors import CommunicationError
from spgraph.semirings.translate import cuda_function

# as in kernels/search_peers.cu and peers.cuh
MOST_PEERS = 8
INBOX_BYTES, MEETING, CONTROL, WORDS_SENT = 1024, 128, 128, 4
THREADS = 1024
LONG_ROW = 8192  # in-edges of a row that one warp looks at before all take it
PLACES = ("frontier", "other", "messages", "received", "parents")
OWN = ("visited", "visited_next", "best", "queue", "offset", "meeting", "control")
DEADLINE = 5.0  # seconds that a device waits for another


class Buffers(Protocol):
    """What a search asks of `peers.PeerBuffers`."""

    devices: tuple[int, ...]
    lock: Any

    def reserve(self, layout: object, sizes: Sequence[int]) -> list[int]: ...
    def forget(self) -> None: ...
    def launch(
        self,
        kernels: Sequence[Any],
        grids: Sequence[int],
        threads: int,
        arguments: Sequence[tuple[Any, ...]],
        shared: int,
        first: int = 0,
    ) -> None: ...


class PeerShard(NamedTuple):
    """The rows that one device owns: of A, and of its transpose (None: there is only push). Columns
    are ids of all shards' vertices; `ids`, if they are not the user's own, are the user's ids of
    *all* vertices, on this device.
    """

    indptr: Array
    indices: Array
    t_indptr: Array | None
    t_indices: Array | None
    ids: Array | None = None


@dataclasses.dataclass(eq=False)
class PeerGraph:
    """A graph in shards: shard p owns the vertices from offsets[p] to offsets[p + 1].

    `ordered` says that the rows of the transpose ascend by the user's ids, so that the first parent
    found is the least: as they do where `ids` are None. `symmetric` says that A is its own
    transpose, which helps to choose directions; that both are one array says it too. Index types
    are the same in all shards, and so is what is None. `derived` keeps what searches make once.
    """

    offsets: Sequence[int]
    shards: Sequence[PeerShard]
    ordered: bool = True
    symmetric: bool = False
    derived: dict[Any, Any] = dataclasses.field(default_factory=dict)

    @property
    def size(self) -> int:
        """The number of vertices."""
        return int(self.offsets[-1])

    @property
    def edges(self) -> int:
        """The number of entries of A."""
        return sum(int(shard.indices.size) for shard in self.shards)


class Found(NamedTuple):
    """One shard's part of a search, on its device: levels and parents of the vertices whose bit is
    set in `visited`, undefined elsewhere. `visited_copy` has the same bits in memory of its own, so
    that the levels and the parents may each own a bitmap.

    `num_visited()` is how many they are; it waits for all devices, and raises CommunicationError if
    one of them was lost.
    """

    level: Array
    parent: Array | None
    visited: Array
    visited_copy: Array | None
    num_visited: Callable[[], int]


def search_peers(
    graph: PeerGraph,
    buffers: Buffers,
    sources: Sequence[Array | int | None],
    values: Sequence[Array | int | None] | None,
    *,
    direction: str = "auto",
    max_depth: int,
    trace: bool = False,
    deadline: float = DEADLINE,
) -> tuple[list[Found], np.ndarray | None]:
    """(each shard's part, rows of the trace): breadth-first search from `sources`, which shard p
    owns as its own numbers 0, 1, ... (as many as its vertices) with the parents `values[p]`; None:
    levels only. The sources of a shard are an array, one number, or None.

    The parent of a vertex is the least user's id among its neighbours of the level before. The
    trace, of shard 0, has a row (direction, frontier, edges, nanoseconds) for each level, and costs
    a second run. One launch a device; nothing is read back but for a trace.

    Raises ValueError where ids or the direction need what the shards do not have.
    """
    peers = len(graph.shards)
    transposed = graph.shards[0].t_indptr is not None
    if not transposed and direction == "pull":
        raise ValueError(
            "search: exchange='peer': direction 'pull' needs the transpose of the shards"
        )
    with buffers.lock:
        plan = planned(graph, buffers, values is not None)
        limit = np.uint64(int(deadline * 1e9))
        way = np.int32(DIRECTIONS[direction if transposed else "push"])
        kind = index_dtype(graph.size)
        ids = graph.shards[0].indices.dtype
        parents = [None] * peers if values is None else values
        starts = [told(own, its, ids, kind) for own, its in zip(sources, parents, strict=True)]
        counts = [start[-1] for start in starts]
        total, first = sum(counts), counts.index(max(counts))
        rows: list[Any] = [jit.NULL] * peers
        levels = 0
        for again in range(1 + trace):
            found, arguments, results = [], [], []
            for p, shard in enumerate(graph.shards):
                xp, n = array_module(shard.indptr), plan.vertices[p]
                parent = visited_copy = None
                with jit.device(shard.indptr):
                    level, result = xp.empty(n, kind), xp.empty(3, np.int64)
                    visited = xp.empty(words(n), np.uint32)
                    if values is not None:
                        parent, visited_copy = xp.empty(n, kind), xp.empty(words(n), np.uint32)
                    if again:
                        rows[p] = xp.zeros((max(1, levels), 4), np.int64)
                results.append(result)
                made = (level, parent, visited, visited_copy)
                arguments.append(
                    (
                        *(plan.given[p], *(jit.NULL if array is None else array for array in made)),
                        *(result, *starts[p], total, way, max_depth, limit, rows[p]),
                    )
                )
                found.append(made)
            try:
                buffers.launch(plan.kernels, plan.grids, THREADS, arguments, plan.shared, first)
            except BaseException:  # some devices wait for others that never started
                buffers.forget()
                raise
            totals = functools.cache(functools.partial(read, buffers, results, deadline))
            if trace:
                levels = totals()[0][1]
        parts = [
            Found(*part, functools.partial(lambda p, totals: totals()[p][0], p, totals))
            for p, part in enumerate(found)
        ]
    return parts, move(rows[0], "cpu")[:levels] if trace else None


def told(own: Any, values: Any, ids: np.dtype, kind: np.dtype) -> tuple[Any, Any, int, int, int]:
    """What a kernel hears of the sources of a shard: two arrays, two numbers, how many."""
    if own is None:
        return jit.NULL, jit.NULL, 0, 0, 0
    if isinstance(own, int):
        return jit.NULL, jit.NULL, own, values or 0, 1
    with jit.device(own):
        given = jit.NULL if values is None else values.astype(kind, copy=False)
        return own.astype(ids, copy=False), given, 0, 0, int(own.size)


def read(buffers: Buffers, results: Sequence[Array], deadline: float) -> list[tuple[int, int]]:
    """(vertices visited, levels) of each shard; waits for all."""
    host = [move(result, "cpu").tolist() for result in results]
    lost = [state for _, _, state in host if state != 0]
    if lost:
        with buffers.lock:
            buffers.forget()
        # who waits for a device that gave up has heard which one that was
        named = [state - 1 for state in lost if 0 < state <= len(results)]
        name = f"device {buffers.devices[named[0]]} (shard {named[0]})" if named else "a device"
        raise CommunicationError(
            f"search by peer writes: {name} did not come to a meeting of {len(results)} devices "
            f"within {deadline:g} s; the result is void"
        )
    return [(visited, depth) for visited, depth, _ in host]


def checked(graph: PeerGraph, buffers: Buffers) -> None:
    """Raise where no search can run."""
    peers = len(graph.shards)
    if not 1 <= peers <= MOST_PEERS:
        raise ValueError(f"search: exchange='peer': expected 1 to {MOST_PEERS} shards, got {peers}")
    if len(buffers.devices) != peers:
        raise ValueError(
            f"search: exchange='peer': expected a device for each of {peers} shards, "
            f"got {len(buffers.devices)} devices"
        )
    padded = graph.size + 32 * peers
    if padded > np.iinfo(graph.shards[0].indices.dtype).max:
        raise ValueError(
            f"search: exchange='peer': expected column ids of 64 bits for {graph.size} vertices"
        )
    for shard in graph.shards:
        if shard.indptr.size.bit_length() + shard.indices.size.bit_length() > 64:
            raise ValueError(
                "search: exchange='peer': expected at most 64 bits for a vertex and an edge of a "
                f"shard, got {shard.indptr.size - 1} vertices, {shard.indices.size} edges"
            )


class Plan(NamedTuple):
    """What every search of a graph with the same buffers needs."""

    layout: object
    sizes: list[int]  # bytes of each device's buffer
    memory: list[int]  # their addresses
    kernels: list[Any]
    grids: list[int]
    shared: int
    vertices: list[int]  # of each shard
    given: list[Array]  # of each shard: what the kernel calls Given


def planned(graph: PeerGraph, buffers: Buffers, parents: bool) -> Plan:
    """The plan for levels, or for `parents` too; made once, with all that is to be compiled, loaded
    or allocated for it.
    """
    plan = graph.derived.get(("plan", parents))
    if plan is None or buffers.reserve(plan.layout, plan.sizes) != plan.memory:
        plan = graph.derived["plan", parents] = new_plan(graph, buffers, parents)
    return plan


def new_plan(graph: PeerGraph, buffers: Buffers, parents: bool) -> Plan:
    checked(graph, buffers)
    first, peers = graph.shards[0], len(graph.shards)
    sizes = [int(graph.offsets[p + 1] - graph.offsets[p]) for p in range(peers)]
    begins = np.concatenate([[0], np.cumsum([words(n) for n in sizes])])
    kinds = (first.indices.dtype, first.indptr.dtype, index_dtype(graph.size))
    capacity = small_frontier(*kinds[:2])
    padded = any(int(graph.offsets[p]) != 32 * int(begins[p]) for p in range(peers))
    in_order = not parents or graph.ordered
    shape = (peers, THREADS, parents, in_order, padded, capacity, LONG_ROW)
    text = program(shape, tuple(kind.str for kind in kinds))
    parts = layout(sizes, int(begins[-1]), kinds, capacity)
    key, needed = (tuple(sizes), kinds, capacity), [part["end"] for part in parts]
    memory = buffers.reserve(key, needed)
    vertex = kinds[0].itemsize + 2 * kinds[1].itemsize
    # of kernels/search_peers.cu: two frontiers, or Pull
    small = 2 * (capacity * vertex + 4 * (capacity + capacity // 16))
    shared = max(small, (4 + 2 * kinds[0].itemsize) * THREADS)
    rows = None if first.t_indptr is None else leading_and_nonempty(graph, hubs=not parents)
    findable = graph.size if rows is None else sum(count for _, _, count in rows)
    kernels, grids, given = [], [], []
    for shard in graph.shards:
        with jit.device(shard.indptr):
            kernel = loaded(text, jit.current_device(), shared)
            kernels.append(kernel)
            grids.append(jit.occupancy(kernel, THREADS, shared))
    for p, shard in enumerate(graph.shards):
        xp = array_module(shard.indptr)
        with jit.device(shard.indptr):
            leading, nonempty = rows[p][:2] if rows else (None, None)
            arrays = (
                *(shard.indptr, shard.indices, shard.t_indptr, shard.t_indices),
                *(leading if in_order else None, nonempty, shard.ids),
            )
            fields = [p, *graph.offsets, *begins, *memory]
            fields += [parts[p][name] for name in PLACES]
            symmetric = graph.symmetric or shard.t_indices is shard.indices
            fields += [graph.edges, findable, symmetric, min(grids) * (THREADS // 32)]
            in_edges = 0 if shard.t_indices is None else shard.t_indices.size
            fields += [sizes[p].bit_length(), in_edges, *map(address, arrays)]
            fields += [memory[p] + parts[p][name] for name in OWN]
            given.append(xp.asarray(np.array([int(field) for field in fields], np.int64)))
    return Plan(key, needed, memory, kernels, grids, shared, sizes, given)


def address(array: Any) -> int:
    """Where a device array lies; 0 for none."""
    if array is None:
        return 0
    return int(array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr)


def layout(
    sizes: Sequence[int], all_words: int, kinds: tuple[np.dtype, ...], capacity: int
) -> list[dict[str, int]]:
    """Where things lie in each shard's memory; what peers write is at the same place in all."""
    ids, offsets, labels = (kind.itemsize for kind in kinds)
    peers, widest, result = len(sizes), max(map(words, sizes)), []
    for n in sizes:
        parts = {
            "inbox": INBOX_BYTES,
            "messages": 2 * peers * 8 * capacity * 2 * labels,
            "frontier": 4 * all_words,
            "other": 4 * all_words,
            "received": 4 * peers * widest,
            "parents": 32 * labels * peers * widest,
            "meeting": MEETING,
            "control": CONTROL,
            "visited": 4 * all_words,
            "visited_next": 4 * all_words,
            "best": 32 * labels * all_words,
            "queue": ids * n,
            "offset": offsets * n,
        }
        ends = np.cumsum([-(-size // 256) * 256 for size in parts.values()])
        places = dict(zip(parts, [0, *ends[:-1].tolist()], strict=True))
        result.append(places | {"end": int(ends[-1])})
    return result


@functools.cache
def program(shape: tuple[int, ...], kinds: tuple[str, ...]) -> str:
    """The preamble of kernels/search_peers.cu."""
    names = ("PEERS", "THREADS", "PARENTS", "FIRST", "PADDED", "SMALL", "LONG_ROW")
    text = preamble.constants(**dict(zip(names, shape, strict=True)))
    text += preamble.types(**{k: np.dtype(v) for k, v in zip("IOL", kinds, strict=True)})
    double = np.dtype(np.float64)
    text += cuda_function(directions.pull_pays, "pull_rule", (double,) * 4, np.dtype(bool))
    step = PUSH_STEP if shape[names.index("PARENTS")] else PUSH_STEP_HUBS
    arguments = f"mf, (left) / {step}, (open) / {step}, m"
    return text + f"#define PULL_PAYS(mf, left, open, m) pull_rule({arguments})\n"


@functools.cache
def loaded(text: str, device_id: int, shared: int) -> Any:
    """The kernel on the current device, run once for nothing: a grid must not wait for peers that
    a driver first has to load, which it may do only when the device is idle.
    """
    kernel = jit.kernel("search_peers", "search_peers", text, cooperative=True)
    kernel.max_dynamic_shared_size_bytes = shared
    null, none = jit.NULL, np.int64(0)
    arguments = (*(null,) * 8, *(none,) * 4, np.int32(0), none, np.uint64(0), null)
    kernel((1,), (THREADS,), arguments, shared_mem=shared)
    return kernel


def leading_and_nonempty(graph: PeerGraph, hubs: bool) -> list[tuple[Any, Any, int]]:
    """(leading neighbours, one bit a row that has an entry, how many rows have) of each shard's
    transpose.

    Leading neighbours are places in the bitmaps: of those four neighbours that have most edges, if
    `hubs`, else of a row's first; see kernels/leading_neighbours.cu.
    """
    name = "hubs" if hubs else "leading"
    if name in graph.derived:
        return graph.derived[name]
    made, before = [], graph.derived.get("leading" if hubs else "hubs")
    whole = None
    if hubs:  # all degrees, as an indptr
        degrees = [np.diff(move(shard.indptr, "cpu")) for shard in graph.shards]
        whole = np.concatenate([[0], np.cumsum(np.concatenate(degrees), dtype=np.int64)])
    for p, shard in enumerate(graph.shards):
        xp = array_module(shard.indptr)
        with jit.device(shard.indptr):
            n = int(graph.offsets[p + 1] - graph.offsets[p])
            assert shard.t_indptr is not None and shard.t_indices is not None
            ids, offsets = shard.t_indices.dtype, shard.t_indptr.dtype
            if before:
                bits, findable = before[p][1:]
            else:
                bits, count = xp.empty(words(n), np.uint32), xp.zeros(1, np.int64)
                kernel = jit.kernel("nonempty", "nonempty", preamble.types(O=offsets))
                jit.sweep(kernel, 32 * bits.size, n, shard.t_indptr, bits, count)
                findable = int(count[0])
            indptr, degree = shard.t_indptr, shard.t_indptr
            if whole is not None:
                wide = np.dtype(np.int64) if whole[-1] > np.iinfo(offsets).max else offsets
                indptr, degree = indptr.astype(wide, copy=False), xp.asarray(whole.astype(wide))
            text = preamble.constants(HUBS=hubs) + preamble.types(I=ids, O=indptr.dtype)
            leading = xp.empty((n, 4), ids)
            kernel = jit.kernel("leading_neighbours", "leading_neighbours", text)
            jit.sweep(kernel, n, n, indptr, shard.t_indices, degree, leading)
            shift = 0
            for q in range(1, len(graph.shards)):  # from ids to places: shards begin at a word
                more = -int(graph.offsets[q] - graph.offsets[q - 1]) % 32
                if more:
                    leading += xp.where(leading >= int(graph.offsets[q]) + shift, more, 0).astype(
                        ids
                    )
                shift += more
            made.append((leading, bits, findable))
    graph.derived[name] = made
    return made
