"""The peer form of search without GPUs: its host code on NumPy arrays, its kernels under the shim,
one launch for each device and all of them at the same time.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import cuda_host_shim
import numpy as np
import pytest
import scipy.sparse

import spgraph as sg
from spgraph.backends.cuda.runtime import jit
from spgraph.backends.cuda.search import search_peers, search_peers_plan
from spgraph.backends.shards.search import SearchGraph, SearchRows
from spgraph.containers.storage.arrays import move
from spgraph.errors import CommunicationError

pytestmark = pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")


class HostBuffers:
    """Stands for PeerBuffers: plain memory, and a thread for each device."""

    def __init__(self, peers: int) -> None:
        self.devices = tuple(range(peers))
        self.lock = threading.RLock()
        self.memory: list[np.ndarray] = []
        self.layout: object = None
        self.absent: int | None = None

    def reserve(self, layout: object, sizes: Sequence[int]) -> list[int]:
        if layout != self.layout:
            self.memory = [np.zeros(size // 8 + 1, np.int64) for size in sizes]
            self.layout = layout
        return [memory.ctypes.data for memory in self.memory]

    def forget(self) -> None:
        self.layout = None

    def launch(
        self,
        kernels: Any,
        grids: Any,
        threads: int,
        arguments: Any,
        shared: int,
        first: int = 0,
    ) -> None:
        def one(p: int) -> None:
            kernels[p]((grids[p],), (threads,), arguments[p], shared_mem=shared)

        runs = [
            threading.Thread(target=one, args=(p,)) for p in range(len(kernels)) if p != self.absent
        ]
        for run in runs:
            run.start()
        for run in runs:
            run.join()


@pytest.fixture(autouse=True)
def on_the_shim(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda_host_shim.install(monkeypatch)
    monkeypatch.setattr(jit, "current_device", lambda: 0)
    # few and small, so that graphs of a few hundred vertices see every form of a level
    monkeypatch.setattr(search_peers_plan, "THREADS", 64)
    monkeypatch.setattr(search_peers_plan, "LONG_ROW", 128)
    monkeypatch.setattr(search_peers_plan, "small_frontier", lambda ids, offsets: 32)
    search_peers_plan.loaded.cache_clear()


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


def random(n: int, m: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, n, (m, 2))


def both(pairs: np.ndarray) -> np.ndarray:
    return np.concatenate([pairs, pairs[:, ::-1]])


def chain(n: int) -> np.ndarray:
    return np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)


def star(n: int) -> np.ndarray:
    return np.stack([np.zeros(n - 1, int), np.arange(1, n)], axis=1)


@functools.cache
def graph(name: str) -> tuple[Any, bool, list[int]]:
    """(adjacency as SciPy's CSR, whether it is symmetric, sources)."""
    rng = np.random.default_rng(7)
    if name == "kronecker":
        S = sg.generators.kronecker(10, 8, seed=1).to_scipy().tocsr()
        return S, True, [int(np.diff(S.indptr).argmax())]
    skewed = (random(900, 9000) * rng.random((9000, 2)) ** 2).astype(int)
    broom = np.concatenate([both(star(700)), both(chain(40) + 699)])
    middle = np.arange(1, 401)  # from 0 through 400 vertices to 401, 402 and 403, and on to 404
    layers = [(0 * middle, middle), *((middle, 0 * middle + hub) for hub in (401, 402, 403))]
    layers += [(np.array([401, 402, 403]), np.array([404, 404, 404]))]
    funnel = np.concatenate([np.stack(layer, axis=1) for layer in layers])
    n, pairs, symmetric, sources = {
        "one": (1, np.empty((0, 2), int), True, [0]),
        "no edges": (70, np.empty((0, 2), int), True, [69]),
        "path": (70, both(chain(70)), True, [0]),
        "directed path": (60, chain(60), False, [3]),
        "star": (600, both(star(600)), True, [77]),
        "star in": (600, star(600)[:, ::-1], False, [599]),
        "broom": (740, broom, True, [738]),
        "funnel": (420, both(funnel), True, [0]),
        "grid": (400, grid(20), True, [0]),
        "directed": (500, random(500, 1500), False, [5, 400]),
        "dense directed": (200, random(200, 9000), False, [0]),
        "skewed": (1000, both(skewed), True, [3]),
        "many sources": (900, both(random(900, 1500)), True, list(range(0, 900, 4))),
    }[name]
    S = scipy.sparse.csr_array((np.ones(len(pairs)), pairs.T), shape=(n, n))
    S.sum_duplicates()
    return S, symmetric, sources


def grid(side: int) -> np.ndarray:
    k = np.arange(side * side).reshape(side, side)
    right = np.stack([k[:, :-1].ravel(), k[:, 1:].ravel()], axis=1)
    down = np.stack([k[:-1].ravel(), k[1:].ravel()], axis=1)
    return both(np.concatenate([right, down]))


def shards_of(
    S: Any,
    symmetric: bool,
    offsets: Sequence[int],
    user: np.ndarray | None = None,
    ids: str = "i4",
    rows: str = "i4",
    ordered: bool | None = None,
) -> SearchGraph:
    """The graph in shards; `user[i]` is what the user calls vertex i. If `ordered`, the transpose's
    rows ascend by that.
    """
    T = scipy.sparse.csr_array(S.T.tocsr())
    T.sort_indices()
    if ordered and user is not None:
        rows_of = np.repeat(np.arange(T.shape[0]), np.diff(T.indptr))
        T.indices = T.indices[np.lexsort((user[T.indices], rows_of))]
    made = []
    for begin, end in itertools.pairwise(offsets):
        parts: list[Any] = []
        for M in (S, T):
            part = M.indptr[begin : end + 1] - M.indptr[begin]
            parts += [part.astype(rows), M.indices[M.indptr[begin] : M.indptr[end]].astype(ids)]
        if symmetric and not ordered:
            parts[2:] = parts[:2]
        parts.append(None if user is None else user.astype(np.int32))
        made.append(SearchRows(*parts))
    return SearchGraph(tuple(offsets), made, ordered=user is None if ordered is None else ordered)


def run(
    made: SearchGraph,
    buffers: Any,
    sources: Sequence[int],
    parents: bool,
    direction: str,
    depth: int,
    user: np.ndarray,
    place: Callable[[int, np.ndarray], Any] = lambda p, array: array,
    **more: Any,
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
    found, trace = search_peers.search_peers(
        made,
        buffers,
        own,
        values if parents else None,
        direction=direction,
        max_depth=depth,
        **more,
    )
    levels, given = [], []
    for part in found:
        n, reached = part.level.size, part.num_visited()
        visited = np.unpackbits(move(part.visited, "cpu").view(np.uint8), bitorder="little")
        assert not visited[n:].any()
        visited = visited[:n].astype(bool)
        assert reached == visited.sum()
        levels.append(np.where(visited, move(part.level, "cpu"), -1))
        if parents:
            given.append(np.where(visited, move(part.parent, "cpu"), -1))
    return np.concatenate(levels), np.concatenate(given) if parents else None, trace


def check(
    name: str,
    offsets: Sequence[float],
    *,
    directions: Sequence[str] = ("auto", "push", "pull"),
    depths: Sequence[int] = (10**6,),
    relabelled: bool = False,
    ordered: bool | None = None,
) -> None:
    """Levels and parents equal those of plain loops, in all directions, in the same buffers."""
    S, symmetric, sources = graph(name)
    n = S.shape[0]
    places = [int(x * n) for x in (0, *offsets, 1)]
    user = np.random.default_rng(3).permutation(n) if relabelled else np.arange(n)
    made = shards_of(S, symmetric, places, user if relabelled else None, ordered=ordered)
    buffers = HostBuffers(len(places) - 1)
    for depth in depths:
        level, parent = breadth_first(S, sources, user, depth)
        for direction in directions:
            for parents in (True, False):
                got, given, _ = run(made, buffers, sources, parents, direction, depth, user)
                np.testing.assert_array_equal(got, level, f"{direction} {parents} {depth}")
                if parents:
                    np.testing.assert_array_equal(given, parent, f"{direction} {depth}")


NAMES = (
    "one", "no edges", "path", "directed path", "star", "star in", "broom", "funnel", "grid",
    "directed", "dense directed", "skewed", "many sources", "kronecker",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_three_shards(name: str) -> None:
    check(name, (0.3, 0.71))


def test_one_shard() -> None:
    check("skewed", (), depths=(10**6, 2, 1, 0))


def test_a_shard_that_owns_nothing() -> None:
    check("skewed", (0.4, 0.4), depths=(10**6, 2, 0))
    check("directed", (0.0, 0.4), depths=(10**6, 3))


def test_two_shards_that_begin_at_words() -> None:
    check("many sources", (320 / 900,), depths=(10**6, 2))


def test_relabelled_vertices() -> None:
    """Parents are the least of the user's ids, whatever the order inside."""
    for ordered in (False, True):
        check("skewed", (0.3, 0.4), relabelled=True, ordered=ordered)
        check("directed", (0.3, 0.4), relabelled=True, ordered=ordered)


def test_many_push_to_one() -> None:
    """The least parent wins wherever it lies, and a hub is found without a look at its row."""
    for offsets in ((0.5, 0.957), (0.01, 0.2), (0.96, 0.98)):
        check("funnel", offsets, directions=("auto", "push"), relabelled=True)
    check("star", (0.1, 0.6), directions=("push",), relabelled=True, depths=(10**6, 2, 1))


@pytest.mark.parametrize("begin", [0, 1, 3])
def test_in_edges_that_begin_and_end_anywhere(begin: int) -> None:
    """Pulls load 16 aligned bytes at a time, and nothing beside the caller's array."""
    S, symmetric, sources = graph("directed path")
    user = np.random.default_rng(3).permutation(60)
    made = shards_of(S, symmetric, (0, 60), user)
    assert made.shards[0].t_indices is not None and made.shards[0].t_indices.size == 59
    larger = np.concatenate([np.zeros(begin, np.int32), made.shards[0].t_indices])
    made = SearchGraph(made.offsets, [made.shards[0]._replace(t_indices=larger[begin:])], False)
    level, parent = breadth_first(S, sources, user, 60)
    got, given, _ = run(made, HostBuffers(1), sources, True, "pull", 60, user)
    np.testing.assert_array_equal(got, level)
    np.testing.assert_array_equal(given, parent)


def test_wide_indices() -> None:
    S, symmetric, sources = graph("directed")
    user = np.arange(500)
    made = shards_of(S, symmetric, (0, 201, 350, 500), ids="i8", rows="i8")
    got, parents, _ = run(made, HostBuffers(3), sources, True, "auto", 500, user)
    level, parent = breadth_first(S, sources, user, 500)
    np.testing.assert_array_equal(got, level)
    np.testing.assert_array_equal(parents, parent)


def test_push_needs_no_transpose() -> None:
    S, _, sources = graph("directed")
    whole = shards_of(S, False, (0, 224, 500))
    shards = [shard._replace(t_indptr=None, t_indices=None) for shard in whole.shards]
    user, buffers = np.arange(500), HostBuffers(2)
    made = SearchGraph(whole.offsets, shards)
    expected = breadth_first(S, sources, user, 500)
    for parents in (True, False):
        level, parent, _ = run(made, buffers, sources, parents, "auto", 10**6, user)
        np.testing.assert_array_equal(level, expected[0])
        if parents:
            np.testing.assert_array_equal(parent, expected[1])
        with pytest.raises(ValueError, match="'pull' needs the transpose"):
            run(made, buffers, sources, parents, "pull", 10**6, user)


def test_buffers_serve_one_graph_after_another() -> None:
    buffers = HostBuffers(3)
    for name in ("skewed", "grid", "skewed"):
        S, symmetric, sources = graph(name)
        n = S.shape[0]
        user = np.arange(n)
        made = shards_of(S, symmetric, (0, n // 3, n // 2, n))
        level, parent = breadth_first(S, sources, user, n)
        got, given, _ = run(made, buffers, sources, True, "auto", n, user)
        np.testing.assert_array_equal(got, level)
        np.testing.assert_array_equal(given, parent)


@pytest.mark.parametrize("direction", ("auto", "push", "pull"))
def test_trace(direction: str) -> None:
    S, _, sources = graph("skewed")
    made, user = shards_of(S, True, (0, 416, 1000)), np.arange(1000)
    level, _, trace = run(made, HostBuffers(2), sources, False, direction, 1000, user, trace=True)
    degrees = np.diff(S.indptr)
    for depth, (way, frontier, edges, time) in enumerate(trace.tolist()):
        assert frontier == (level == depth).sum()
        assert way in {"auto": (1, 2), "push": (1,), "pull": (2,)}[direction]
        assert edges == degrees[level == depth].sum() if way == 1 else edges > 0
        assert time > 0
    assert len(trace) in (level.max(), level.max() + 1)


def test_a_device_that_does_not_come_is_named() -> None:
    S, _, sources = graph("grid")
    made, user, buffers = shards_of(S, True, (0, 100, 200, 400)), np.arange(400), HostBuffers(3)
    for direction in ("push", "pull"):
        run(made, buffers, sources, True, direction, 400, user)
        buffers.absent = 1
        with pytest.raises(CommunicationError, match=r"device 1 \(shard 1\) did not come.*0.2 s"):
            run(made, buffers, sources, True, direction, 400, user, deadline=0.2)
        buffers.absent = None
        level, _, _ = run(made, buffers, sources, True, direction, 400, user)
        np.testing.assert_array_equal(level, breadth_first(S, sources, user, 400)[0])


def test_what_cannot_run_is_refused() -> None:
    S, _, sources = graph("one")
    made, user = shards_of(S, True, (0, 1)), np.arange(1)
    with pytest.raises(ValueError, match="a device for each of 1 shards, got 2 devices"):
        run(made, HostBuffers(2), sources, True, "auto", 1, user)
    many = shards_of(S, True, (0,) * 9 + (1,))
    with pytest.raises(ValueError, match="expected 1 to 8 shards, got 9"):
        run(many, HostBuffers(9), sources, True, "auto", 1, user)
