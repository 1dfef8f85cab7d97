"""One shard of a closure in rounds that the host drives: its kernels, and the arrays that it keeps
for them. The exchange between shards is the caller's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spgraph.backends.cuda.closure.closure import (
    THREADS,
    block_bytes,
    check_counts,
    kernel_of,
    width_of,
)
from spgraph.backends.cuda.closure.closure_peers import given_fields, program, shard_arrays
from spgraph.backends.cuda.exchange.given import block
from spgraph.backends.cuda.runtime import jit
from spgraph.backends.shards.closure import ClosureShard, Totals, counts_of
from spgraph.backends.shards.graph import ShardedGraph
from spgraph.containers.storage.arrays import Array, array_module, words
from spgraph.semirings import TypedSemiring

# bytes of a RoundControl beside its words for each shard
CONTROL = 512


def pair_words(values: np.dtype, ids: np.dtype) -> int:
    """The 32-bit words of a pair of a vertex and a value."""
    return max(values.itemsize, 4) // 4 + ids.itemsize // 4


class Shard(ClosureShard):
    """Shard `number` of a graph, number k of those of this process, with the kernels and arrays of
    closures over `semiring`. `edges` are those of all shards; `host_counters`, of `counts_of`
    words, is host-mapped memory that kernels write.
    """

    def __init__(
        self,
        graph: ShardedGraph,
        k: int,
        number: int,
        edges: int,
        semiring: TypedSemiring,
        ordered: bool,
        host_counters: np.ndarray,
    ) -> None:
        arrays, shards, n = graph.shards[k], len(graph.offsets) - 1, graph.size
        self.number, self.dtype = number, semiring.dtype
        self.first, last = int(graph.offsets[number]), int(graph.offsets[number + 1])
        self.own, self.size = last - self.first, n
        ids, rows = arrays.indices.dtype, arrays.indptr.dtype
        check_counts(self.own, int(arrays.indices.size), " of a shard")
        kinds = (("I", ids.str), ("O", rows.str), ("A", arrays.values.dtype.str))
        text = program(semiring, kinds, ordered, THREADS, shards)
        self.xp, self.arrays = array_module(arrays.indptr), arrays
        self.pair = pair_words(self.dtype, ids)
        with jit.device(arrays.indptr):
            empty = self.xp.empty
            self.shared = block_bytes(self.dtype, ids, rows)
            device = jit.current_device()
            self.kernel = kernel_of("closure_rounds", text, device, self.shared)
            self.ends = jit.kernel("closure_rounds", "closure_ends", text, cooperative=True)
            self.grid = jit.occupancy(self.kernel, THREADS, self.shared)
            # kept with the graph: of closures over several semirings only one runs at a time
            place = ("memory of closures in rounds", k, self.pair)
            if place not in graph.derived:
                sizes = shard_arrays(n, self.own, ids, rows) | {
                    "pairs": (self.pair * n, np.dtype(np.uint32)),
                    "control": (CONTROL // 8 + shards, np.dtype(np.int64)),
                    "counts": (counts_of(shards), np.dtype(np.int64)),
                }
                graph.derived[place] = {name: empty(*size) for name, size in sizes.items()}
            held = self.held = graph.derived[place]
            self.pairs, self.control, self.counts = held["pairs"], held["control"], held["counts"]
            working = {name: held[name] for name in shard_arrays(n, self.own, ids, rows)}
            fields = given_fields(graph, number, arrays, edges, working)
            fields |= {name: held[name] for name in ("pairs", "control", "counts")}
            fields |= {"host_counters": host_counters}
            self.given = block(fields, self.xp)

    def begin(self, sources: Array, values: Array, delta: float | int | None) -> None:
        """Begin a closure with `values` at the own vertices `sources`, counted from 0."""
        with jit.device(self.given):
            self.x = self.xp.empty(self.size, self.dtype)
            self.control.fill(0)
            sources = sources.astype(self.arrays.indices.dtype, copy=False)
            self.start = (sources, values.astype(self.dtype, copy=False), sources.size)
            self.nothing = self.xp.empty(0, np.uint32)
            self.width = width_of(delta, self.dtype)

    def launch(self, action: int, totals: Totals, received: Array | None, round_: int) -> None:
        """Run one round as far as the shard can alone. `received` are the pairs that others have
        sent, or None.
        """
        received = self.nothing if received is None else received
        with jit.device(self.given):
            pairs = received, received.size // self.pair
            inputs = self.given, action, self.x, self.width, *totals
            arguments = (*inputs, *pairs, *self.start, round_)
            self.kernel((self.grid,), (THREADS,), arguments, shared_mem=self.shared)

    def sent(self, numbers: list[int], offsets: Sequence[int]) -> list[Array]:
        """The pairs for each shard, of which there are `numbers`."""
        firsts = [self.pair * int(first) for first in offsets[:-1]]
        sizes = [self.pair * number for number in numbers]
        return [self.pairs[a : a + size] for a, size in zip(firsts, sizes, strict=True)]

    @property
    def part(self) -> Array:
        """The values of the own vertices."""
        return self.x[self.first : self.first + self.own]

    def take(self) -> tuple[Array, Array]:
        """(the values of the own vertices, a bit for each that has an entry); the shard gives up
        its own references to them.
        """
        with jit.device(self.given):
            values = self.xp.empty(self.own, self.dtype)
            found = self.xp.empty(words(self.own), np.uint32)
            grid = min(self.grid, max(1, -(-self.own // THREADS)))
            arguments = (self.first, self.own, self.x, self.held["bits"], values, found)
            self.ends((grid,), (THREADS,), arguments)
        del self.x, self.start
        return values, found
