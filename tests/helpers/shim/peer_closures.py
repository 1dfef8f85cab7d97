"""Closures by the peer form itself, of shards made here, on whatever devices: for what no call of
`closure` asks for.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spgraph.backends.cuda.closure import closure_peers
from spgraph.backends.shards.closure import Part
from spgraph.backends.shards.graph import GraphRows, ShardedGraph
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import move


def shards_of(
    A: Matrix, offsets: Sequence[int], transposed: bool = True, index: str = "i4", rows: str = "i4"
) -> ShardedGraph:
    """The matrix in shards."""
    T, made = A.T, []
    for begin, end in itertools.pairwise(offsets):
        parts: list[Any] = []
        values: list[Any] = []
        for M in (A, T) if transposed else (A,):
            at = slice(int(M.indptr[begin]), int(M.indptr[end]))
            parts += [(M.indptr[begin : end + 1] - at.start).astype(rows)]
            parts += [M.indices[at].astype(index)]
            values += [M.values if M.iso else M.values[at].copy()]
        made.append(GraphRows(*parts, **dict(zip(("values", "t_values"), values, strict=False))))
    return ShardedGraph(tuple(offsets), made, A.iso)


def run(
    made: ShardedGraph,
    buffers: Any,
    start: Vector,
    semiring: Any,
    delta: Any,
    place: Callable[[int, np.ndarray], Any] = lambda p, array: array,
) -> tuple[dict[int, Any], list[Part]]:
    """(the entries of the closure, what came with them); `place` moves arrays to a device."""
    ids, values = start.to_coo()
    sources, given = [], []
    for p, (begin, end) in enumerate(itertools.pairwise(made.offsets)):
        mine = (ids >= begin) & (ids < end)
        sources.append(place(p, ids[mine] - begin))
        given.append(place(p, values[mine]))
    parts = closure_peers.closure_peers(made, buffers, sources, given, semiring, delta)
    return together(made, parts), parts


def together(made: ShardedGraph, parts: list[Part]) -> dict[int, Any]:
    found: dict[int, Any] = {}
    for part, begin in zip(parts, made.offsets, strict=False):
        x = move(part.values, "cpu")
        seen = np.unpackbits(move(part.bits, "cpu").view(np.uint8), bitorder="little")
        assert not seen[x.size :].any() and seen.sum() == part.reached
        at = np.flatnonzero(seen)
        found |= dict(zip((at + begin).tolist(), x[at].tolist(), strict=True))
    return found
