"""Searches over shards: on one GPU; on several, in one launch or in rounds; or made of operations,
level by level.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from spgraph.backends.loops import LevelSearch
from spgraph.backends.shards import Steps
from spgraph.backends.shards.graph import GraphRows, ShardedGraph
from spgraph.backends.shards.search import COUNTS, Found, SearchRequest
from spgraph.containers import Vector
from spgraph.containers.storage.arrays import Array, array_module
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.placement import Placement
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.distributed.exchange.collectives import tag_graph
from spgraph.distributed.exchange.lockstep import rounds_of
from spgraph.distributed.loops.sharded_graph import sharded_graph, sparse_entries, start_entries
from spgraph.distributed.loops.single_device import single_device_of
from spgraph.iterations.level_search import composed_search
from spgraph.semirings import TypedSemiring, binary, monoid

# of each local shard what its pulls look at first, if it pulls; rows of all shards with entries
Rows: TypeAlias = tuple[Sequence[Any], int]
# levels, values, rows of the trace
Result = tuple[DistributedVector, DistributedVector | None, np.ndarray | None]


def search(
    A: DistributedMatrix,
    T: DistributedMatrix | None,
    start: DistributedVector,
    asked: LevelSearch,
) -> Result:
    """As `search` of a backend: q<not visited> = q (add.multiply) A, level by level.

    It runs on one GPU alone where that is faster; else on several, in one launch where they write
    into each other's memory, or in rounds with an exchange after each level. Where the backend has
    no kernels for that, a level is a product under the mask of the unvisited.
    """
    tag_graph(A, start, asked.semiring, asked.max_depth)
    if one := single_device_of(A):
        return one.run("search", T, start, asked)
    if A.device.has("SearchShard" if A.device.peers is None else "search_peers"):
        return by_kernels(A, T, start, asked)
    return cast(Result, composed_search(A, T, start, asked))


def by_kernels(
    A: DistributedMatrix,
    T: DistributedMatrix | None,
    start: DistributedVector,
    asked: LevelSearch,
) -> Result:
    """The same on several GPUs. Where they write into each other's memory the host waits for no
    device, unless `start` has to be made sparse. In rounds, the first search of a graph prepares
    it.
    """
    placement, semiring = A.device, asked.semiring
    parents = semiring is not None and finds_parents(semiring)
    # kernels of one launch take a start of one entry as numbers
    sources, values = sparse_entries(start) if placement.peers is None else start_entries(start)
    T = A._T if T is None and parents and placement.peers is not None else T
    graph = sharded_graph(A, T)
    rows: Rows = [None] * len(sources), A.nrows
    if T is not None:
        rows = rows_of(placement, graph, semiring is not None)
    request = SearchRequest(
        *rows,
        sources,
        values=None if semiring is None else values,
        semiring=None if parents else semiring,
        direction="push" if T is None else asked.direction,
        max_depth=asked.max_depth,
        trace=asked.trace,
    )
    if placement.peers is None:
        found, levels = in_rounds(A, graph, request)
    else:
        found, levels = placement.kernels.search_peers(graph, placement.peers, request)
    level = joined(A, found, [part.level for part in found], [part.visited for part in found])
    if semiring is None:
        return level, None, levels
    labels: list[Any] = [part.value for part in found]
    if labels[0].dtype != semiring.dtype:  # parents, in the least type of ids
        kinds = [semiring.dtype] * len(labels)
        labels = placement.map(widened, labels, sources, values, kinds)
    return level, joined(A, found, labels, [part.visited_copy for part in found]), levels


def in_rounds(
    A: DistributedMatrix, graph: ShardedGraph, asked: SearchRequest
) -> tuple[list[Found], np.ndarray | None]:
    """What each local shard finds in rounds that the host drives, and rows of the trace."""
    placement, edges = A.device, A.nvals
    sought = (asked.values is not None, asked.semiring)

    def make(k: int, p: int, words: np.ndarray) -> Any:
        return placement.kernels.SearchShard(graph, k, p, edges, asked, words)

    def begin(k: int, shard: Any) -> Steps[tuple[Found, list[tuple[int, ...]]]]:
        values = None if asked.values is None else asked.values[k]
        return shard.search(asked.sources[k], values, asked.direction, asked.max_depth)

    made = rounds_of("search", sought, placement, graph, COUNTS, make).run(begin)
    levels = np.array(made[0][1], np.int64).reshape(-1, 4) if asked.trace else None
    return [part for part, _ in made], levels


def joined(
    A: DistributedMatrix,
    found: Sequence[Found],
    values: Sequence[Array],
    bits: Sequence[Array | None],
) -> DistributedVector:
    """The Vector of what the local shards have found: these values where the bits are set."""
    shards = [
        Vector._of(own.size, own, bits=present, nvals=part.num_visited)
        for part, own, present in zip(found, values, bits, strict=True)
    ]
    return DistributedVector(A.nrows, shards, A.device, in_flight=True)


@functools.lru_cache(maxsize=1024)
def finds_parents(semiring: TypedSemiring) -> bool:
    """Whether its sums are parents: the least, or any, of the neighbours' ids."""
    add, multiply = semiring.add, semiring.multiply
    if multiply.name not in ("secondi", "firstj") or not (add.any or add.name == "min"):
        return False
    # a user's operators may carry any name, and give values that are no ids
    if semiring.dtype not in (np.dtype(np.int32), np.dtype(np.int64)):
        return False
    named = getattr(binary, multiply.name).resolve(*multiply.arguments[:2], index=semiring.dtype)
    least = monoid.min.resolve(semiring.dtype)
    return multiply == named and (add.any or add.function == least.function)


def widened(k: int, parents: Array, sources: Any, values: Any, dtype: np.dtype) -> Array:
    """Parents in the type of the semiring, and what `start` has at the sources: kernels hold both
    in the smallest type of ids, which some values do not fit. The sources are positions or None.
    """
    wide = parents.astype(dtype)
    if sources is not None:
        wide[sources] = values
    return wide


def rows_of(placement: Placement, graph: ShardedGraph, values: bool) -> Rows:
    """(what the backend's `leading_and_nonempty` finds for each local shard, with the degrees of
    all vertices where levels alone are sought; how many rows of all shards have entries). Kept with
    the graph.
    """
    name = "rows of values" if values else "rows of levels"
    if name in graph.derived:
        return graph.derived[name]
    of_all: list[Array | None] = [None] * len(graph.shards)
    if not values:
        degrees = placement.map(
            lambda k, shard: (shard.indptr[1:] - shard.indptr[:-1]).astype(np.int64), graph.shards
        )
        of_all = placement.communicator.all_gather(degrees, sizes=graph.sizes)

    def own(k: int, shard: GraphRows, counts: Array | None) -> tuple[tuple[Array, Array], int]:
        if counts is None:
            return placement.kernels.leading_and_nonempty(shard)
        xp = array_module(counts)
        indptr = xp.zeros(counts.size + 1, np.int64)
        xp.cumsum(counts, out=indptr[1:])
        return placement.kernels.leading_and_nonempty(shard, indptr)

    rows, numbers = zip(*placement.map(own, graph.shards, of_all), strict=True)
    graph.derived[name] = list(rows), placement.total(numbers)
    return graph.derived[name]
