"""The peer form of breadth-first search: one cooperative kernel on each of several GPUs,
which exchange their frontiers by writing into each other's memory.

The host allocates the results from CuPy's pool, looks whether a device still works, and launches:
no copy, no fill, and nothing that waits. Kernels, the memory that GPUs share and where things lie
in it are made once for a graph.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from spgraph.backends.cuda.exchange.buffers import (
    BARRIER_BYTES,
    INBOX_BYTES,
    Launching,
    Plan,
    fetch_results,
)
from spgraph.backends.cuda.exchange.plan import check, peer_plan, places_of, planned
from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.backends.cuda.search.search import (
    DIRECTIONS,
    LONG_ROW,
    decisions,
    small_bytes,
    small_frontier,
)
from spgraph.backends.shards.buffers import forgotten_on_failure
from spgraph.backends.shards.graph import GraphRows, ShardedGraph
from spgraph.backends.shards.search import Found, SearchRequest
from spgraph.containers.storage.arrays import Array, array_module, index_dtype, move, words
from spgraph.semirings import TypedSemiring, min_secondi

# as in kernels/shards/search_peers.cu
CONTROL_BYTES = 128
THREADS = 1024
# words of a launch's result, and where how many vertices and levels it has found lie
RESULT, VISITED, DEPTH = 3, 0, 1

# levels, values, and their bits, as in Found
Results: TypeAlias = tuple[Array, Array | None, Array, Array | None]


def search_peers(
    graph: ShardedGraph, buffers: Launching, asked: SearchRequest
) -> tuple[list[Found], np.ndarray | None]:
    """(each local shard's part, rows of the trace). One launch a device; nothing else is read back.

    The trace is that of the first local shard, and costs a second run. Raises ValueError where ids
    need more bits than the shards have.
    """
    ids, kind = graph.shards[0].indices.dtype, index_dtype(graph.size)
    sought = None if asked.values is None else values_of(asked.semiring, graph, kind)
    dtype = None if sought is None else sought.semiring.dtype
    sources, new = asked.sources, functools.partial(new_plan, asked.rows, asked.findable)
    given = [None] * len(sources) if asked.values is None else asked.values

    def launch(levels: int | None) -> tuple[list[Results], Callable[[], Any], list[Array]]:
        """(the shards' results; what waits for their totals; a trace of that many levels)."""
        found, results, calls, traces = [], [], [], []
        for k, shard in enumerate(graph.shards):
            xp = array_module(shard.indptr)
            with jit.device(shard.indptr):
                found.append(results_of(xp, shard.indptr.size - 1, kind, dtype))
                results.append(xp.empty(RESULT, np.int64))
                rows = jit.NULL if levels is None else xp.zeros((max(1, levels), 4), np.int64)
                traces.append(rows)
            made = (jit.NULL if array is None else array for array in found[k])
            calls.append((plan.given[k], *made, results[k], *starts[k], *limits, traces[k]))
        buffers.launch(plan, calls, counts.index(max(counts)))
        return found, functools.cache(lambda: fetch_results("search", buffers, results)), traces

    with buffers.lock:
        plan = planned("search", graph, buffers, sought, new)
        with forgotten_on_failure(buffers):
            starts = [
                source_arguments(*own, ids, dtype) for own in zip(sources, given, strict=True)
            ]
            counts, number = [start[-1] for start in starts], 1  # of all sources
            if not (sources[0] is None or isinstance(sources[0], int)):
                number = int(buffers.gather(np.array([sum(counts)])).sum())
            way, deadline = DIRECTIONS[asked.direction], np.uint64(int(buffers.deadline * 1e9))
            limits = (number, way, asked.max_depth, deadline)
            found, totals, traces = launch(None)
            if asked.trace:
                found, totals, traces = launch(totals()[0][DEPTH])
                levels = totals()[0][DEPTH]
    visited = [
        functools.partial(lambda k, of: of()[k][VISITED], k, totals) for k in range(len(found))
    ]
    parts = [Found(*part, number) for part, number in zip(found, visited, strict=True)]
    return parts, move(traces[0], "cpu")[:levels] if asked.trace else None


def results_of(xp: ModuleType, n: int, kind: np.dtype, dtype: np.dtype | None) -> Results:
    """Memory for the results of a shard of n vertices, as in Found: levels of type `kind`, and
    values of type `dtype` if there are any.
    """
    level, visited = xp.empty(n, kind), xp.empty(words(n), np.uint32)
    if dtype is None:
        return level, None, visited, None
    return level, xp.empty(n, dtype), visited, xp.empty(words(n), np.uint32)


def source_arguments(
    own: Array | int | None,
    values: Array | np.generic | int | None,
    ids: np.dtype,
    dtype: np.dtype | None,
) -> tuple[Array, Array, int, int, int]:
    """What a kernel takes for the sources of a shard: two arrays, a number and the bits of its
    value, how many. `dtype` is the type of values, None if there are none.
    """
    if own is None:
        return jit.NULL, jit.NULL, 0, 0, 0
    if isinstance(own, int):
        bits = 0
        if dtype is not None:
            bits = int(np.asarray(values).astype(dtype).view(f"i{dtype.itemsize}"))
        return jit.NULL, jit.NULL, own, bits, 1
    assert not isinstance(values, int | np.generic)
    with jit.device(own):  # another type is another array, made where the first one is
        given = jit.NULL
        if dtype is not None and values is not None:
            given = values.astype(dtype, copy=False)
        return own.astype(ids, copy=False), given, 0, 0, int(own.size)


# --- what is made once for a graph ----------------------------------------------------------------


class Values(NamedTuple):
    """What a search finds beside levels: the sums of a semiring, over graphs whose edges have one
    value (`iso`) or not; or `parents`, those of `parents_values`.
    """

    semiring: TypedSemiring
    parents: bool
    iso: bool

    @property
    def looks_at_values(self) -> bool:
        """Whether a product depends on the value of the vertex that the edge leaves."""
        return self.semiring.multiply.uses("x")


def new_plan(
    rows: Sequence[tuple[Array, Array] | None],
    findable: int,
    graph: ShardedGraph,
    buffers: Launching,
    values: Values | None,
) -> Plan:
    """The plan of a search over a graph, of whose transposes `rows` are known."""
    sizes = check("search", graph, buffers, graph.size + 32 * (len(graph.offsets) - 1))
    first, begins = graph.shards[0], np.cumsum([0, *map(words, sizes)]).tolist()
    kinds = (first.indices.dtype, first.indptr.dtype, index_dtype(graph.size))
    capacity = small_frontier(*kinds[:2])
    padded = any(int(graph.offsets[p]) != 32 * begin for p, begin in enumerate(begins[:-1]))
    shape = (len(sizes), THREADS, padded, capacity, LONG_ROW)
    text = program(shape, tuple(kind.str for kind in kinds), values)
    # where levels alone are sought, memory stays as searches for parents leave it
    sums = values or parents_values(kinds[2].str)
    parts = layout(sizes, begins[-1], kinds, capacity, sums)
    # memory holds as many identities as there are vertices
    held = (sums.semiring.dtype, np.asarray(sums.semiring.add.identity).tobytes())
    key = (tuple(sizes), kinds, capacity, *held, sums.looks_at_values)
    # of kernels/shards/search_peers.cu: two frontiers, or Pull
    small = 2 * small_bytes(*kinds[:2], capacity, capacity + capacity // 16)

    def fields(k: int, p: int, known: dict[str, Any]) -> dict[str, Any]:
        shard, (leading, nonempty) = graph.shards[k], rows[k] or (None, None)
        made = row_fields(shard, leading if first_decides(values) else None, nonempty)
        made |= {"me": p, "first": list(graph.offsets), "word": begins}
        made |= {"base": begins[p], "words": begins[p + 1] - begins[p], "memory": known["memory"]}
        made |= {"m": known["edges"], "findable": findable}
        made |= {"symmetric": graph.symmetric or shard.t_indices is shard.indices}
        made |= {"warps": known["blocks"] * (THREADS // 32), "ids": shard.ids}
        return made | {name: known[name] for name in parts[p] if name != "end"}

    compiled = ("search_peers", text, THREADS, max(small, 4 * THREADS))
    return peer_plan(graph, buffers, compiled, key, parts, fields)


def row_fields(rows: GraphRows, leading: Array | None, nonempty: Array | None) -> dict[str, Any]:
    """What kernels call Rows: where the rows of a shard are, with the leading neighbours of its
    transpose and a bit for each row that has an entry.
    """
    edges = 0 if rows.t_indices is None else rows.t_indices.size
    fields: dict[str, Any] = {"count_bits": (rows.indptr.size - 1).bit_length(), "in_edges": edges}
    names = ("indptr", "indices", "values", "t_indptr", "t_indices", "t_values")
    fields |= {name: getattr(rows, name) for name in names}
    return fields | {"leading": leading, "nonempty": nonempty}


def layout(
    sizes: Sequence[int],
    all_words: int,
    kinds: tuple[np.dtype, ...],
    capacity: int,
    sums: Values,
) -> list[dict[str, int]]:
    """Where the last fields of Given lie in each shard's memory; peers write to the same in all."""
    ids, offsets, labels = (kind.itemsize for kind in kinds)
    value = sums.semiring.dtype.itemsize
    looked_at = value if sums.looks_at_values else 0
    peers, widest, result = len(sizes), max(map(words, sizes)), []
    for n in sizes:
        parts = {
            "inbox": INBOX_BYTES,
            "frontier": 4 * all_words,
            "next": 4 * all_words,
            "messages": 2 * peers * 8 * capacity * 2 * max(labels, value),
            "received": 4 * peers * widest,
            "partials": 32 * value * peers * widest,
            "frontier_value": 32 * looked_at * all_words,
            "barrier": BARRIER_BYTES,
            "control": CONTROL_BYTES,
            "visited": 4 * all_words,
            "visited_next": 4 * all_words,
            "partial": 32 * value * all_words,
            "queue": ids * n,
            "offset": offsets * n,
        }
        result.append(places_of(parts))
    return result


def first_decides(values: Values | None) -> bool:
    """Whether the first entry in the frontier of a row that ascends by the users' ids decides."""
    return values is None or values.parents or values.semiring.add.any


def program(shape: tuple[int, ...], kinds: tuple[str, ...], values: Values | None) -> str:
    """The preamble of kernels/shards/search_peers.cu."""
    text = shards_program("PEERS THREADS PADDED SMALL LONG_ROW", shape, kinds, values)
    return text + decisions(values is not None, first_decides(values))


@functools.lru_cache(maxsize=1024)
def shards_program(
    names: str, shape: tuple[int, ...], kinds: tuple[str, ...], values: Values | None
) -> str:
    """Constants of these names, the types I, O, L and Q as far as there are `kinds`, and what
    kernels are told of the values that they find, with the types A and Z.
    """
    text = preamble.constants(**dict(zip(names.split(), shape, strict=True)))
    text += preamble.types(
        **{name: np.dtype(kind) for name, kind in zip("IOLQ", kinds, strict=False)}
    )
    if values is None:
        text += preamble.constants(VALUES=0, PARENTS=0, FIRST=1, ISO=1, USES_X=0, USES_U=0)
        return text + preamble.types(A=np.dtype(np.uint8), Z=np.dtype(kinds[2]))
    multiply = values.semiring.multiply
    text += preamble.constants(VALUES=1, PARENTS=values.parents, FIRST=first_decides(values))
    text += preamble.constants(ISO=values.iso)
    text += preamble.constants(USES_X=multiply.uses("x"), USES_U=multiply.uses("jx", "iy"))
    return text + preamble.types(A=multiply.arguments[1]) + preamble.semiring(values.semiring)


@functools.cache
def parents_values(labels: str) -> Values:
    """The values of a search for parents: the least of the users' ids."""
    ids = np.dtype(labels)
    typed = min_secondi.resolve(ids, np.dtype(np.uint8), index=ids)
    return Values(typed, parents=True, iso=True)


def values_of(semiring: TypedSemiring | None, graph: ShardedGraph, kind: np.dtype) -> Values:
    """The values of a search over a semiring, or, for None, over parents of type `kind`. Where no
    product looks at a value of the matrix, graphs of all types of values share one program.
    """
    if semiring is None:
        return parents_values(kind.str)
    pattern = semiring.of_pattern
    return Values(pattern or semiring, parents=False, iso=graph.iso or pattern is not None)
