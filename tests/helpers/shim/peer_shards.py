"""Searches by the peer form itself, of shards made here, on whatever devices: for what no call of
`search` asks for.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from search_cases import edges_of

from spgraph.backends.cuda.search import search_peers
from spgraph.backends.cuda.search.search_rows import leading_and_nonempty
from spgraph.backends.shards.graph import GraphRows, ShardedGraph
from spgraph.backends.shards.search import SearchRequest
from spgraph.containers.storage.arrays import move


@functools.cache
def graph(name: str) -> tuple[Any, bool, list[int]]:
    """(adjacency as SciPy's CSR, whether it is symmetric, sources)."""
    n, pairs, sources = edges_of(name)
    S = scipy.sparse.csr_array((np.ones(len(pairs)), pairs.T), shape=(n, n))
    S.sum_duplicates()
    return S, (S != S.T).nnz == 0, sources


def breadth_first(
    S: Any, sources: Sequence[int], user: np.ndarray, depth: int
) -> tuple[np.ndarray, np.ndarray]:
    """(levels, least user's ids of a neighbour in the level before), -1 where not reached."""
    n = S.shape[0]
    level, parent = np.full(n, -1), np.full(n, -1)
    level[list(sources)] = 0
    parent[list(sources)] = user[list(sources)]
    frontier = list(sources)
    for d in range(1, depth + 1):
        found: dict[int, int] = {}
        for u in frontier:
            for v in S.indices[S.indptr[u] : S.indptr[u + 1]].tolist():
                if level[v] < 0:
                    found[v] = min(found.get(v, n), int(user[u]))
        for v, u in found.items():
            level[v], parent[v] = d, u
        frontier = list(found)
        if not found:
            break
    return level, parent


def shards_of(
    S: Any,
    symmetric: bool,
    offsets: Sequence[int],
    user: np.ndarray | None = None,
    ids: str = "i4",
    rows: str = "i4",
) -> ShardedGraph:
    """The graph in shards; `user[i]` is what the user calls vertex i, by which rows ascend."""
    T = scipy.sparse.csr_array(S.T.tocsr())
    T.sort_indices()
    if user is not None:
        rows_of = np.repeat(np.arange(T.shape[0]), np.diff(T.indptr))
        T.indices = T.indices[np.lexsort((user[T.indices], rows_of))]
    made = []
    for begin, end in itertools.pairwise(offsets):
        parts: list[Any] = []
        for M in (S, T):
            part = M.indptr[begin : end + 1] - M.indptr[begin]
            parts += [part.astype(rows), M.indices[M.indptr[begin] : M.indptr[end]].astype(ids)]
        if symmetric and user is None:
            parts[2:] = parts[:2]
        parts.append(None if user is None else user.astype(np.int32))
        made.append(GraphRows(*parts))
    return ShardedGraph(tuple(offsets), made)


def run(
    made: ShardedGraph,
    buffers: Any,
    sources: Sequence[int],
    parents: bool,
    direction: str,
    depth: int,
    user: np.ndarray,
    place: Callable[[int, np.ndarray], Any] = lambda p, array: array,
) -> tuple[np.ndarray, np.ndarray | None, Any]:
    """(levels, parents, trace), -1 where not reached; `place` moves arrays to a device."""
    own: list[Any] = []
    values: list[Any] = []
    for p, (begin, end) in enumerate(itertools.pairwise(made.offsets)):
        mine = np.array([v for v in sources if begin <= v < end], np.int64)
        if parents and len(sources) == 1:  # a number instead of an array
            own.append(sources[0] - begin if mine.size else None)
            values.append(int(user[sources[0]]) if mine.size else None)
        else:
            own.append(place(p, mine - begin))
            values.append(place(p, user[mine]))
    rows: Any = [None] * len(made.shards)
    findable = made.size
    if made.shards[0].t_indptr is not None:
        if "rows" not in made.derived:  # plans, which are kept with the graph, have their addresses
            made.derived["rows"] = [leading_and_nonempty(shard) for shard in made.shards]
        found_rows = made.derived["rows"]
        rows, findable = [row for row, _ in found_rows], sum(count for _, count in found_rows)
    given = values if parents else None
    asked = SearchRequest(rows, findable, own, given, None, direction, depth)
    found, trace = search_peers.search_peers(made, buffers, asked)
    levels, given = [], []
    for part in found:
        n, reached = part.level.size, part.num_visited()
        visited = np.unpackbits(move(part.visited, "cpu").view(np.uint8), bitorder="little")
        assert not visited[n:].any()
        visited = visited[:n].astype(bool)
        assert reached == visited.sum()
        levels.append(np.where(visited, move(part.level, "cpu"), -1))
        if parents:
            given.append(np.where(visited, move(part.value, "cpu"), -1))
    return np.concatenate(levels), np.concatenate(given) if parents else None, trace
