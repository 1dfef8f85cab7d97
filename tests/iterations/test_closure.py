"""The loop `closure`, on every device, against plain loops and its composed form."""

from __future__ import annotations

import importlib
import os
import signal
import threading
from typing import Any

import numpy as np
import pytest
from closure_cases import CASES, GRAPHS, check_closure, entries, expected, graph, path_graph
from fixtures_device import device  # noqa: F401
from hypothesis import given
from hypothesis import strategies as st

import spgraph as sg
from spgraph.iterations.fixed_point import closure, composed, counted
from spgraph.iterations.shortest_path_dag import parents
from spgraph.semirings import (
    BinaryOp,
    Monoid,
    Semiring,
    binary,
    bor_band,
    max_plus,
    min_plus,
    monoid,
)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", GRAPHS)
def test_closure_equals_plain_loops(name: str, case: str, device: str) -> None:
    check_closure(name, CASES[case], graph(name, CASES[case]).A.to(device))


@pytest.mark.parametrize("case", ["distance", "distance, zeros", "width"])
@pytest.mark.parametrize("delta", [0.01, 1, 20.5, 10**6])
def test_delta_changes_nothing(delta: float, case: str, device: str) -> None:
    for name in ("path", "skewed both", "grid", "many sources"):
        check_closure(name, CASES[case], graph(name, CASES[case]).A.to(device), delta=delta)


# compiled in both forms; each form of the others is compared with plain loops above, the composed
# one on the minimal backend
OTHERS = ("width, float32", "least label", "a user's")
FUSED = ["distance", *(pytest.param(case, marks=pytest.mark.full) for case in OTHERS)]


@pytest.mark.fused
@pytest.mark.parametrize("case", FUSED)
@pytest.mark.parametrize("name", ["star both", "sparse directed", "many sources", "no edges"])
def test_fused_equals_composed(name: str, case: str, device: str) -> None:
    made, semiring = graph(name, CASES[case]), CASES[case].semiring
    A, v = made.A.to(device), made.v.to(device)
    assert closure(A, v, semiring).isequal(composed(A, v, semiring), check_dtype=True)


@pytest.mark.parametrize(
    "case", ["distance", "least label", pytest.param("width, float32", marks=pytest.mark.full)]
)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_thread_counts_agree(threads: int, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small graphs run on one thread, with room for all; here they share, and run out of room."""
    from spgraph.backends.cpu.runtime import pool

    module = importlib.import_module("spgraph.backends.cpu.closure.closure")
    few = {"BLOCK": 4, "ALONE": 9, "SHARED": 3, "HEAVY": 20, "BUCKETS": 8, "CAPACITY": 1}
    few |= {"PATIENCE": 0, "LAUNCH": 1}  # threads leave early, and are soon brought back
    for name, value in few.items():
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(pool, "processors", lambda: 3)
    monkeypatch.setattr(pool, "threads_for", lambda work, *share: threads)
    pool.close()
    module.program.cache_clear()
    try:
        for name in GRAPHS:
            check_closure(name, CASES[case], graph(name, CASES[case]).A)
        for delta in (0.1, 30.0) if case == "distance" else ():
            check_closure(
                "many sources", CASES[case], graph("many sources", CASES[case]).A, delta=delta
            )
        for name in GRAPHS if case == "distance" else ():  # parents that are found on the way
            made = graph(name, CASES[case])
            one = counted("sssp", made.A, made.v, None)
            assert one is not None and one.parent is not None
            least = entries(parents(made.A, one.value, one.semiring))
            own = {v: v for v in entries(one.value) if v not in least}
            assert set(own) <= set(made.start) and entries(one.parent) == least | own
    finally:
        pool.close()
        module.program.cache_clear()


def forest(seed: int, kind: str) -> sg.Matrix:
    """A symmetric Matrix of which most vertices have one edge: a path of stars, a pair."""
    random = np.random.default_rng(seed)
    hubs = np.sort(random.choice(120, 12, replace=False))
    ends = np.setdiff1d(np.arange(120), hubs)
    rows = np.concatenate([hubs[:-1], random.choice(hubs, ends.size - 2), ends[:1]])
    columns = np.concatenate([hubs[1:], ends[2:], ends[1:2]])
    weights = random.integers(0, 4, rows.size).astype(kind)
    both = np.append(rows, columns), np.append(columns, rows), np.append(weights, weights)
    A = sg.Matrix.from_coo(*both, nrows=120, ncols=120)
    assert A.is_symmetric() and 2 * np.sum(A.row_degrees().to_numpy() == 1) > 120
    return A


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", ["int32", "float64"])
def test_edges_back_from_where_a_graph_ends(
    kind: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They improve no distance, and are not followed; but may bring another semiring a value."""
    from spgraph.backends.cpu.runtime import pool

    monkeypatch.setattr(pool, "processors", lambda: 3)
    monkeypatch.setattr(pool, "threads_for", lambda work, *share: threads)
    pool.close()
    try:
        for seed in range(5):
            A = forest(seed, kind)
            starts = [0, 7, 50, 119]
            v = sg.Vector.from_coo(starts, np.array([3, 0, 9, 1], kind), size=120)
            for semiring in (min_plus, Semiring(monoid.min, binary.second)):
                assert closure(A, v, semiring).isequal(composed(A, v, semiring))
            for source in starts:
                found = sg.sssp(A, source)
                unknown = sg.Matrix._of(120, 120, A.indptr, A.indices, A.values)
                assert unknown.symmetric is None
                expected = sg.sssp(unknown, source)
                assert found.distance.isequal(expected.distance)
                assert found.parent is not None and found.parent.isequal(expected.parent)
    finally:
        pool.close()


@pytest.mark.timeout(60, method="thread")  # no signal ends threads that do not poll
def test_threads_that_wait_for_a_vertex_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that writes a vertex's value and parent locks it; others that wait for it have to
    leave after Ctrl-C, also if it stays locked.
    """
    from spgraph.backends.cpu.runtime import pool

    n, locked = 5_000, -2  # as in kernels/closure.py
    i = np.arange(n - 1)
    A = sg.Matrix.from_coo(i, np.full(i.size, n - 1), 1, nrows=n, ncols=n)
    start = sg.Vector.from_coo(i, 0, size=n)
    original = pool.launch

    def launch(kernel: Any, threads: int, *given: Any) -> None:
        if threads > 1:
            given[4][n - 1] = locked
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        original(kernel, threads, *given)

    monkeypatch.setattr(pool, "processors", lambda: 2)
    monkeypatch.setattr(pool, "threads_for", lambda work, *share: 2)
    pool.close()
    try:
        expected = counted("sssp", A, start, None)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(pool, "launch", launch)
            counted("sssp", A, start, None)
        again = counted("sssp", A, start, None)
        assert expected is not None and expected.parent is not None
        assert again is not None and again.parent is not None
        assert again.value.isequal(expected.value) and again.parent.isequal(expected.parent)
    finally:
        pool.close()


# --- types and storages ---------------------------------------------------------------------------


def test_iso_and_index_types(device: str) -> None:
    made = graph("sparse directed", CASES["distance, equal"])
    wide = sg.Matrix._of(
        *(made.A.nrows, made.A.ncols, made.A.indptr.astype(np.int64)),
        *(made.A.indices.astype(np.int64), np.full(1, 7, np.uint8)),
        iso=True,
    )
    found = closure(wide.to(device), made.v.to(device), min_plus)
    assert entries(found) == expected("sparse directed", CASES["distance, equal"])


def test_a_start_of_every_storage(device: str) -> None:
    A, _ = path_graph([2, 2, 2])
    for values, missing in (([5, 9, 1, 3], None), ([5, -1, 9, -1], -1)):
        v = sg.Vector.from_dense(np.array(values), missing=missing)
        slow = composed(A, v, min_plus)
        for start in (v, v.to_sparse(), v.to_bitmap()):
            before = start.dup()
            found = closure(A.to(device), start.to(device), min_plus)
            assert found.to("cpu").isequal(slow) and start.isequal(before)


# --- other semirings ------------------------------------------------------------------------------


def test_sets_of_sources(device: str) -> None:
    """bor_band: which of some sources reach a vertex, through gates on the edges."""
    A = sg.Matrix.from_coo([0, 1, 2, 3], [2, 2, 3, 0], [7, 7, 5, 7], nrows=4, ncols=4).to(device)
    start = sg.Vector.from_coo([0, 1], [1, 2], size=4, device=device)
    assert closure(A, start, bor_band).to_numpy().tolist() == [1, 2, 3, 1]


def test_a_monoid_of_ones_own(device: str) -> None:
    def gcd(x, y):  # type: ignore[no-untyped-def]
        while y != 0:
            x, y = y, x % y
        return abs(x)

    semiring = Semiring(Monoid(BinaryOp.define(gcd), 0, 1, idempotent=True), binary.first)
    A = sg.Matrix.from_coo([0, 1, 2, 3], [2, 2, 3, 0], nrows=4, ncols=4).to(device)
    start = sg.Vector.from_coo([0, 1], [12, 20], size=4, device=device)
    assert closure(A, start, semiring).to_numpy().tolist() == [4, 20, 4, 4]


def test_longest_paths_end_without_cycles(device: str) -> None:
    """max_plus comes to rest in a directed acyclic graph, within as many rounds as vertices."""
    made = graph("acyclic", CASES["distance"])
    A, v = made.A.to(device), made.v.to(device)
    found = closure(A, v, max_plus)
    longest: dict[int, int] = dict(made.start)
    for (i, j), w in sorted(made.edges.items()):
        if i in longest:
            longest[j] = max(longest.get(j, -1), longest[i] + w)
    assert entries(found) == longest


def test_what_never_rests_is_an_error(device: str) -> None:
    A = sg.Matrix.from_coo([0, 1, 2], [1, 2, 1], [1, 1, 1], nrows=4, ncols=4).to(device)
    start = sg.Vector.from_coo([0], [0], size=4, device=device)
    for loop in (closure, composed):
        with pytest.raises(sg.errors.ConvergenceError, match="after 4 rounds") as caught:
            loop(A, start, max_plus)
        assert set(entries(caught.value.result)) == {0, 1, 2}
    with pytest.raises(sg.errors.ConvergenceError):
        closure(A, start, max_plus, delta=3)
    assert closure(A, start, min_plus).to_numpy(fill=-1).tolist() == [0, 1, 2, -1]


def test_negative_weights_under_a_plus_of_ones_own(device: str) -> None:
    """No cycle is negative, so the rounds end; buckets only have to bear it."""

    def plus(x, y):  # type: ignore[no-untyped-def]
        return x + y

    made = graph("acyclic", CASES["distance"])
    weights = np.random.default_rng(3).integers(-20, 60, made.A.nvals)
    A = sg.Matrix._of(*made.A.shape, made.A.indptr, made.A.indices, weights).to(device)
    semiring = Semiring(monoid.min, BinaryOp.define(plus))
    least: dict[int, int] = dict(made.start)
    rows, columns, _ = made.A.to_coo()
    for i, j, w in zip(rows.tolist(), columns.tolist(), weights.tolist(), strict=True):
        if i in least:
            least[j] = min(least.get(j, 10**9), least[i] + w)
    assert entries(closure(A, made.v.to(device), semiring, delta=4.0)) == least


# --- random graphs --------------------------------------------------------------------------------


@st.composite
def small_graphs(draw: Any) -> tuple[int, list[tuple[int, int]], list[int], list[int]]:
    n = draw(st.integers(1, 12))
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), unique=True))
    weights = draw(st.lists(st.integers(0, 9), min_size=len(pairs), max_size=len(pairs)))
    sources = draw(st.lists(st.integers(0, n - 1), unique=True, max_size=4))
    return n, pairs, weights, sources


DRAWN = ["distance", "a user's", "width", "least label"]


# compared with the composed form, which is compiled for each, too: by default as FUSED
@pytest.mark.parametrize("composed_too", [DRAWN[:2], pytest.param(DRAWN, marks=pytest.mark.full)])
@given(made=small_graphs(), case=st.sampled_from(DRAWN))
def test_random_graphs(composed_too: list[str], made: Any, case: str) -> None:
    from closure_cases import fixed_point

    n, pairs, weights, sources = made
    semiring, add, multiply, starts, _, kind = CASES[case]
    rows, columns = np.array(pairs, int).reshape(-1, 2).T
    A = sg.Matrix.from_coo(rows, columns, np.array(weights, np.int64), nrows=n, ncols=n)
    start = {s: starts[k % len(starts)] for k, s in enumerate(sources)}
    values = np.array(list(start.values()), kind)
    v = sg.Vector.from_coo(np.array(sources, np.int64), values, size=n)
    edges = dict(zip(pairs, weights, strict=True))
    found = closure(A, v, semiring)
    assert entries(found) == fixed_point(edges, start, add, multiply)
    if case in composed_too:
        assert found.isequal(composed(A, v, semiring), check_dtype=True)
