"""The peer form of closure without GPUs: its host code on NumPy arrays, its kernels under the shim,
one launch for each device and all of them at the same time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import cuda_host_shim
import numpy as np
import pytest
from closure_cases import CASES, entries, expected, fixed_point, graph
from shim_exchanges import HostBuffers

import spgraph as sg
from spgraph.backends.cuda.closure import closure_peers
from spgraph.backends.cuda.runtime import jit
from spgraph.backends.shards.closure import Closed, ClosureGraph, ClosureRows
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import move
from spgraph.errors import CommunicationError, ConvergenceError
from spgraph.iterations.integer_sums import plus_and_one
from spgraph.semirings import Semiring, min_plus, monoid

pytestmark = pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")

# thresholds with which small graphs take every path of the kernel
THRESHOLDS = ("LOCAL_EDGES", "THRESHOLD_EDGES", "STEPS", "SATURATED_EDGES", "ALONE")
PATHS = {
    "as shipped": {},
    "in step": {"SATURATED_EDGES": 0, "LOCAL_EDGES": 0},
    "threshold": {"THRESHOLD_EDGES": 1, "SATURATED_EDGES": 10, "LOCAL_EDGES": 40},
    "few steps alone": {"ALONE": 1, "STEPS": 2, "SATURATED_EDGES": 10000},
}
PATHS_COVER = (("in step", "distance, zeros"), ("threshold", "distance, zeros"))
THIRDS = (0.3, 0.71)
FULL = pytest.mark.full
# values of every width; each is a program of its own
COVER = ("distance, float32", "narrowness", "reached")


@pytest.fixture(autouse=True)
def on_the_shim(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda_host_shim.install(monkeypatch)
    monkeypatch.setattr(jit, "current_device", lambda: 0)
    monkeypatch.setattr(closure_peers, "THREADS", 64)
    take(monkeypatch, "as shipped")


def take(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """Let the kernel decide by other thresholds."""
    cuda_host_shim.with_thresholds(monkeypatch, ["closure_peers"], THRESHOLDS, **PATHS[path])
    closure_peers.loaded.cache_clear()


def shards_of(
    A: Matrix, offsets: Sequence[int], transposed: bool = True, index: str = "i4", rows: str = "i4"
) -> ClosureGraph:
    """The matrix in shards."""
    T, made = A.T, []
    for begin, end in itertools.pairwise(offsets):
        parts: list[Any] = []
        for M in (A, T) if transposed else (A,):
            at = slice(int(M.indptr[begin]), int(M.indptr[end]))
            parts += [(M.indptr[begin : end + 1] - at.start).astype(rows)]
            parts += [M.indices[at].astype(index), M.values if M.iso else M.values[at].copy()]
        made.append(ClosureRows(*parts))
    return ClosureGraph(tuple(offsets), made, A.iso)


def run(
    made: ClosureGraph,
    buffers: Any,
    start: Vector,
    semiring: Any,
    delta: Any,
    place: Callable[[int, np.ndarray], Any] = lambda p, array: array,
    **more: Any,
) -> tuple[dict[int, Any], Closed]:
    """(the entries of the closure, what came with them); `place` moves arrays to a device."""
    ids, values = start.to_coo()
    sources, given = [], []
    for p, (begin, end) in enumerate(itertools.pairwise(made.offsets)):
        mine = (ids >= begin) & (ids < end)
        sources.append(place(p, ids[mine] - begin))
        given.append(place(p, values[mine]))
    closed = closure_peers.closure_peers(made, buffers, sources, given, semiring, delta, **more)
    return together(made, closed), closed


def together(made: ClosureGraph, closed: Closed) -> dict[int, Any]:
    found: dict[int, Any] = {}
    for part, begin in zip(closed.parts, made.offsets, strict=False):
        x = move(part.values, "cpu")
        seen = np.unpackbits(move(part.bits, "cpu").view(np.uint8), bitorder="little")
        assert not seen[x.size :].any() and seen.sum() == part.reached
        at = np.flatnonzero(seen)
        found |= dict(zip((at + begin).tolist(), x[at].tolist(), strict=True))
    return found


def check(name: str, case: str, cuts: Sequence[float] = THIRDS, **more: Any) -> Closed:
    """The closure of a graph in shards equals that of plain loops; its widths are default ones."""
    made, kind = graph(name, CASES[case]), CASES[case]
    typed = kind.ring.resolve(made.v.dtype, made.A.dtype)
    n = made.A.nrows
    offsets = [int(x * n) for x in (0, *cuts, 1)]
    buffers = HostBuffers(len(offsets) - 1)
    shards = shards_of(made.A, offsets)
    for delta in more.get("deltas", (3,)):
        ordered = kind.ring.monoid in (monoid.min, monoid.max)
        found, closed = run(shards, buffers, made.v, typed, delta if ordered else None)
        assert found == expected(name, kind)
    return closed


NAMES = (
    "one", "loop", "path", "star both", "two components", "sparse directed", "dense directed",
    "skewed both", "many sources", "acyclic", "grid", "isolated vertices",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_three_shards(name: str) -> None:
    check(name, "distance, zeros", deltas=(0.6, 20))


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=() if case in COVER else FULL) for case in CASES]
)
def test_semirings(case: str) -> None:
    check("skewed both", case)


@pytest.mark.parametrize(
    ("path", "case"),
    [
        pytest.param(path, case, marks=() if (path, case) in PATHS_COVER else FULL)
        for path in PATHS
        if path != "as shipped"
        for case in ("distance, zeros", "width, float32")
    ],
)
def test_every_path(path: str, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch, path)
    for name in ("dense directed", "skewed both", "grid", "many sources"):
        check(name, case, deltas=(0.05, 2, 10**6) if name == "skewed both" else (2,))


def test_one_and_two_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch, "threshold")
    for cuts in ((), (0.5,)):
        check("skewed both", "distance, zeros", cuts, deltas=(2, None))


def test_shards_that_own_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch, "threshold")
    check("skewed both", "distance, zeros", (0.4, 0.4))
    check("sparse directed", "distance, zeros", (0.0, 0.4))


def test_a_full_inbox_is_sent_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closure_peers, "INBOX", 5)
    for path in ("as shipped", "in step"):
        take(monkeypatch, path)
        check("skewed both", "distance, zeros")
        check("grid", "distance, zeros", deltas=(1000,))


@pytest.mark.parametrize(("index", "rows"), [("i8", "i4"), pytest.param("i4", "i8", marks=FULL)])
def test_types_of_indices(index: str, rows: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch, "threshold")
    made = graph("skewed both", CASES["distance"])
    n = made.A.nrows
    shards = shards_of(made.A, (0, n // 3, n // 2, n), index=index, rows=rows)
    typed = min_plus.resolve("int64", "int64")
    found, _ = run(shards, HostBuffers(3), made.v, typed, 5)
    assert found == expected("skewed both", CASES["distance"])


def test_one_value_for_all_entries_and_no_transpose() -> None:
    A = sg.generators.kronecker(8, 8, seed=1)
    source = int(np.diff(A.indptr).argmax())
    start = Vector.unit(source, 0, size=256, dtype=np.int64)
    shards = shards_of(A, (0, 90, 140, 256), transposed=False)
    found, _ = run(shards, HostBuffers(3), start, min_plus.resolve("int64", "bool"), 1)
    rows, columns = A.to_coo()[:2]
    edges = dict.fromkeys(zip(rows.tolist(), columns.tolist(), strict=True), 1)
    assert found == fixed_point(edges, {source: 0}, min, lambda x, a: x + a)


def test_distances_that_count_their_edges() -> None:
    """As shortest paths with parents take them: ties are broken by hops, in one integer."""
    made = graph("skewed both", CASES["distance, zeros"])
    ring = Semiring(monoid.min, plus_and_one(16)).resolve(np.dtype("int64"), made.A.dtype)
    start = made.v._with_values(lambda x: x << 16)
    n = made.A.nrows
    found, _ = run(shards_of(made.A, (0, 400, 401, n)), HostBuffers(3), start, ring, 2.0 * 2**16)
    assert found == fixed_point(made.edges, entries(start), min, lambda x, a: x + a * 65536 + 1)


def test_products_that_are_better_than_their_operands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative lengths without a negative cycle: values behind a threshold may improve."""
    take(monkeypatch, "threshold")
    rng = np.random.default_rng(3)
    pairs = np.unique(np.sort(rng.integers(0, 300, (6000, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    weights = rng.integers(-20, 30, len(pairs))
    A = Matrix.from_coo(pairs[:, 0], pairs[:, 1], weights, nrows=300, ncols=300)
    edges = dict(zip(map(tuple, pairs.tolist()), weights.tolist(), strict=True))
    start = Vector.from_coo([0, 7], [0, -5], size=300)
    shards, typed = shards_of(A, (0, 60, 180, 300)), min_plus.resolve("int64", "int64")
    for delta in (1, 25):
        found, _ = run(shards, HostBuffers(3), start, typed, delta)
        assert found == fixed_point(edges, {0: 0, 7: -5}, min, lambda x, a: x + a)


def test_relaxations_stay_few() -> None:
    """Three shards look at no more than half again as many edges as one."""
    for name in ("grid", "skewed both"):
        alone = check(name, "distance", (), deltas=(20,)).relaxations
        apart = check(name, "distance", deltas=(20,)).relaxations
        m = graph(name, CASES["distance"]).A.nvals
        assert m <= 2 * alone and apart <= 1.5 * alone


def test_buffers_serve_one_graph_after_another() -> None:
    buffers = HostBuffers(2)
    for name in ("skewed both", "grid", "skewed both"):
        made = graph(name, CASES["distance"])
        n = made.A.nrows
        shards, typed = shards_of(made.A, (0, n // 3, n)), min_plus.resolve("int64", "int64")
        for _ in range(2):
            found, _ = run(shards, buffers, made.v, typed, 9)
            assert found == expected(name, CASES["distance"])


def test_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch, "threshold")
    made = graph("skewed both", CASES["distance"])
    n, typed = made.A.nrows, min_plus.resolve("int64", "int64")
    shards = shards_of(made.A, (0, n // 3, n))
    _, closed = run(shards, HostBuffers(2), made.v, typed, 9, trace_rows=500)
    assert closed.trace is not None and set(closed.trace[:, 0]) >= {0, 3, 4, 5}
    assert closed.rounds <= (closed.trace[:, 0] >= 3).sum()
    assert (closed.trace[:, 3] >= 0).all()


@pytest.mark.parametrize("delta", [pytest.param(None, marks=FULL), 3])
@pytest.mark.parametrize("cycle", [(0, 1, 2), (0, 3, 4)])
def test_no_fixed_point(delta: Any, cycle: tuple[int, ...]) -> None:
    """A cycle of negative length, in a shard or across two, ends in an error that has the last
    iterate.
    """
    i, j, k = cycle
    A = Matrix.from_coo([i, j, k, 5], [j, k, i, 0], [4, 3, -8, 1], nrows=7, ncols=7)
    start = Vector.unit(0, 0, size=7, dtype=np.int64)
    shards, typed = shards_of(A, (0, 3, 7)), min_plus.resolve("int64", "int64")
    with pytest.raises(ConvergenceError, match=r"min_plus.*7 rounds") as caught:
        run(shards, HostBuffers(2), start, typed, delta)
    assert set(together(shards, caught.value.result)) == set(cycle)  # type: ignore[arg-type]


def test_a_start_without_entries() -> None:
    made = graph("grid", CASES["distance"])
    n, typed = made.A.nrows, min_plus.resolve("int64", "int64")
    start = Vector.empty(n, np.int64)
    assert run(shards_of(made.A, (0, 50, n)), HostBuffers(2), start, typed, 9)[0] == {}


def test_a_device_that_does_not_come_is_named() -> None:
    made = graph("grid", CASES["distance"])
    n, typed = made.A.nrows, min_plus.resolve("int64", "int64")
    shards, buffers = shards_of(made.A, (0, 50, 90, n)), HostBuffers(3)
    for _ in range(2):
        buffers.absent = 1
        with pytest.raises(CommunicationError, match=r"device 1 \(shard 1\) did not come.*0.2 s"):
            run(shards, buffers, made.v, typed, 9, deadline=0.2)
        buffers.absent = None
        found, _ = run(shards, buffers, made.v, typed, 9)
        assert found == expected("grid", CASES["distance"])


def test_what_cannot_run_is_refused() -> None:
    made = graph("one", CASES["distance"])
    typed = min_plus.resolve("int64", "int64")
    with pytest.raises(ValueError, match="a device for each of 1 shards, got 2 devices"):
        run(shards_of(made.A, (0, 1)), HostBuffers(2), made.v, typed, 9)
    with pytest.raises(ValueError, match="expected 1 to 8 shards, got 9"):
        run(shards_of(made.A, (0,) * 9 + (1,)), HostBuffers(9), made.v, typed, 9)
