"""What the peer form of breadth-first search makes once for a graph: kernels, the memory that GPUs
share and where things lie in it, and which rows a pull looks at.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spgraph.backends.cuda.exchange.buffers import BARRIER_BYTES, INBOX_BYTES, Launching, Plan
from spgraph.backends.cuda.exchange.plan import check, peer_plan, places_of
from spgraph.backends.cuda.runtime import preamble
from spgraph.backends.cuda.search.search import LONG_ROW, decisions, small_bytes, small_frontier
from spgraph.backends.shards.graph import GraphRows, ShardedGraph
from spgraph.containers.storage.arrays import Array, index_dtype, words
from spgraph.semirings import TypedSemiring, min_secondi

# as in kernels/shards/search_peers.cu
CONTROL_BYTES = 128
THREADS = 1024


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
