"""The loop `closure`, on every device, against plain loops and its composed form."""

from __future__ import annotations

import importlib
import os
import signal
import threading
import types
from typing import Any

import numpy as np
import pytest
from closure_cases import (
    CASES,
    GRAPHS,
    check_closure,
    check_nan,
    entries,
    expected,
    graph,
    least_parents,
)
from fixtures_device import device  # noqa: F401
from hypothesis import given
from hypothesis import strategies as st

import spgraph as sg
from spgraph.backends.cuda.closure.closure import width_of
from spgraph.direction import bucket_width, may_be_narrow, narrow_width
from spgraph.iterations import closure_widths
from spgraph.iterations.closure_buckets import composed_closure, next_limit
from spgraph.iterations.fixed_point import closure, composed, counted
from spgraph.iterations.shortest_path_dag import dag_edges, parents
from spgraph.semirings import (
    BinaryOp,
    Monoid,
    Semiring,
    any_first,
    binary,
    bor_band,
    lor_land,
    max_min,
    max_plus,
    max_times,
    min_first,
    min_plus,
    monoid,
    plus_times,
)


def least_or_nan(x: float, y: float) -> float:
    return x if x != x or x < y else y


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
    made, ring = graph(name, CASES[case]), CASES[case].ring
    A, v = made.A.to(device), made.v.to(device)
    assert closure(A, v, ring).isequal(composed(A, v, ring), check_dtype=True)


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
            one = counted(made.A, made.v)
            assert one is not None and one.parent is not None
            least = entries(parents(made.A, one.value, one.semiring))
            own = {v: v for v in entries(one.value) if v not in least}
            assert set(own) <= set(made.start) and entries(one.parent) == least | own
    finally:
        pool.close()
        module.program.cache_clear()


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
        expected = counted(A, start)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(pool, "launch", launch)
            counted(A, start)
        again = counted(A, start)
        assert expected is not None and expected.parent is not None
        assert again is not None and again.parent is not None
        assert again.value.isequal(expected.value) and again.parent.isequal(expected.parent)
    finally:
        pool.close()


DELTAS = [1e-323, 1e308, 10**400, np.float16(0.5), np.float32(3e38), np.int8(3), np.uint64(2**63)]


def test_delta_may_be_any_positive_number(device: str) -> None:
    A = graph("sparse directed", CASES["distance"]).A
    for M in (A.to(device), A.astype("float32").to(device)):
        expected = sg.sssp(M, 0)
        assert expected.parent is not None
        for delta in DELTAS:
            found = sg.sssp(M, 0, delta=delta)
            assert found.parent is not None and found.parent.isequal(expected.parent)
            assert found.distance.isequal(expected.distance)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_buckets_are_as_wide_as_a_normal_number(kind: Any) -> None:
    """Others would never end where those below compare as zero."""
    dtype, tiny = np.dtype(kind), np.finfo(kind).tiny
    assert width_of(1e-323, dtype) == tiny and width_of(0.5, dtype) == 0.5
    assert width_of(1e308, dtype) == min(1e308, float(np.finfo(kind).max))
    for sign in (1, -1):
        assert next_limit(kind(0), 1e-323, sign, dtype) == sign * tiny
        assert next_limit(kind(1), 1e-323, sign, dtype) == np.nextafter(kind(1), kind(1 + sign))


# --- what the values may be -----------------------------------------------------------------------


def path_graph(weights: Any, device: str = "cpu") -> tuple[sg.Matrix, sg.Vector]:
    """A directed path over these weights, and a start of their type at its first vertex."""
    values = np.asarray(weights)
    n = values.size + 1
    A = sg.Matrix.from_coo(np.arange(n - 1), np.arange(1, n), values, nrows=n, ncols=n)
    kind = values.dtype if values.dtype.kind == "f" else np.int64
    return A.to(device), sg.Vector.from_coo([0], np.zeros(1, kind), size=n, device=device)


def test_lengths_below_the_normal_numbers(device: str) -> None:
    """A GPU may take them for zero, as CuPy compiles with -ftz=true; buckets of their width end."""
    kind = np.finfo(np.float32)
    least = kind.smallest_subnormal
    A, v = path_graph(np.array([3, 2, 1], np.float32) * least, device)
    expected = np.array([0, 3, 5, 6], np.float32) * least
    for delta in (None, float(least), 1e-323):
        found = closure(A, v, min_plus, delta=delta).to_numpy()
        np.testing.assert_allclose(found, expected, 0, 0 if device == "cpu" else kind.tiny)


def test_huge_integers(device: str) -> None:
    """A sum beyond int64 is an error only where it is the best one."""
    top = np.iinfo(np.int64).max
    A, v = path_graph([top - 5, 3], device)
    assert closure(A, v, min_plus).to_numpy().tolist() == [0, top - 5, top - 2]
    for weights in ([top - 5, 5], [top], [top, 0, 0]):
        found = closure(*path_graph(weights, device), min_plus)
        assert found.to_numpy().tolist() == [0, *np.cumsum(weights).tolist()]
    for weights in ([top - 5, 6], [top, 0, 1], [2**62, 2**62, 0], [2**62, 2**62, 2**62]):
        with pytest.raises(OverflowError, match="float64"):
            closure(*path_graph(weights, device), min_plus)
    detour = sg.Matrix.from_coo([0, 1, 0], [1, 2, 2], [2**62, 2**62, 2**62 + 7], nrows=3, ncols=3)
    start = sg.Vector.from_coo([0], [0], size=3, device=device)
    found = closure(detour.to(device), start, min_plus)
    assert found.to_numpy().tolist() == [0, 2**62, 2**62 + 7]
    assert composed(detour.to(device), start, min_plus).isequal(found)


# of uint8, sums have the same wider type as of int8
@pytest.mark.parametrize("kind", ["int8", pytest.param("uint8", marks=pytest.mark.full), "uint64"])
def test_an_integer_type_is_refused_where_a_value_does_not_fit(kind: str, device: str) -> None:
    """And nowhere else, whatever sums along other walks would come to."""
    top = int(np.iinfo(kind).max)
    start = sg.Vector.from_coo([0], np.zeros(1, kind), size=4, device=device)
    for last in (1, 3, 6, 7, 40):
        weights = np.array([top - 27, 20, last], kind)
        A, _ = path_graph(weights, device)
        for loop in (closure, composed):
            if last <= 7:
                found = loop(A, start, min_plus)
                assert found.dtype == kind
                assert found.to_numpy().tolist() == [0, top - 27, top - 7, top - 7 + last]
            else:
                with pytest.raises(OverflowError, match=f"closure: A: .* that {kind} holds"):
                    loop(A, start, min_plus)
    back = sg.Matrix.from_coo([0, 1, 1], [1, 0, 1], np.array([top - 1, 9, top], kind), nrows=4,
                              ncols=4)  # fmt: skip
    assert closure(back.to(device), start, min_plus).to_numpy(fill=0).tolist() == [0, top - 1, 0, 0]


@pytest.mark.parametrize("kind", [pytest.param(np.float32, marks=pytest.mark.full), np.float64])
def test_reals_near_the_limit(kind: Any, device: str) -> None:
    """Sums that leave the type become inf, which is a value: the vertex is reached."""
    big = np.finfo(kind).max
    A, v = path_graph(np.array([big, big / 4, 1, 0], kind), device)
    found = closure(A, v, min_plus)
    assert found.dtype == kind and found.nvals == 5
    assert found.to_numpy().tolist() == [0, big, np.inf, np.inf, np.inf]
    assert found.isequal(composed(A, v, min_plus))
    A, v = path_graph(np.array([np.inf, 1], kind), device)
    assert closure(A, v, min_plus).to_numpy().tolist() == [0, np.inf, np.inf]
    # CuPy compiles for GPUs so that subnormal float32 numbers are zero
    flushed = device == "cuda" and kind == np.float32
    tiny = np.finfo(kind).tiny if flushed else np.finfo(kind).smallest_subnormal
    A, v = path_graph(np.array([tiny, tiny, 1], kind), device)
    assert closure(A, v, min_plus).to_numpy().tolist() == [0, tiny, 2 * tiny, 1]


def test_absorbed_reals(device: str) -> None:
    """Weights too small to change the sum, in a cycle."""
    n = 40
    rows, columns = np.arange(n), (np.arange(n) + 1) % n
    weights = np.where(np.arange(n) == 0, np.float32(2**25), np.float32(0.25))
    A = sg.Matrix.from_coo(rows, columns, weights, nrows=n, ncols=n).to(device)
    start = sg.Vector.from_coo([0], np.zeros(1, np.float32), size=n, device=device)
    assert closure(A, start, min_plus).to_numpy().tolist() == [0.0] + [2.0**25] * (n - 1)


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

    ring = Semiring(Monoid(BinaryOp.define(gcd), 0, 1, idempotent=True), binary.first)
    A = sg.Matrix.from_coo([0, 1, 2, 3], [2, 2, 3, 0], nrows=4, ncols=4).to(device)
    start = sg.Vector.from_coo([0, 1], [12, 20], size=4, device=device)
    assert closure(A, start, ring).to_numpy().tolist() == [4, 20, 4, 4]


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
    ring = Semiring(monoid.min, BinaryOp.define(plus))
    least: dict[int, int] = dict(made.start)
    rows, columns, _ = made.A.to_coo()
    for i, j, w in zip(rows.tolist(), columns.tolist(), weights.tolist(), strict=True):
        if i in least:
            least[j] = min(least.get(j, 10**9), least[i] + w)
    assert entries(closure(A, made.v.to(device), ring, delta=4.0)) == least


@pytest.mark.parametrize("sign", [1, pytest.param(-1, marks=pytest.mark.full)])
@pytest.mark.parametrize("delta", [None, 2.5])
def test_nan(sign: int, delta: Any, device: str) -> None:
    """Named semirings refuse NaN; with a multiply of one's own min and max omit it."""

    def run(A: sg.Matrix, start: sg.Vector, ring: Semiring) -> Any:
        return closure(A.to(device), start.to(device), ring, delta=delta)

    check_nan(run, sign)


@pytest.mark.parametrize("shards", [1, 3])
def test_nan_in_shards(shards: int) -> None:
    def run(A: sg.Matrix, start: sg.Vector, ring: Semiring) -> Any:
        G = A.distribute(shards)
        return closure(G, start.to(G.device), ring, delta=2.5)

    check_nan(run, 1)


def test_nan_that_a_monoid_keeps(device: str) -> None:
    """A minimum of one's own that NaN wins over: it settles, too."""
    A = sg.Matrix.from_coo([0, 0, 1], [0, 1, 2], [1.0, 1.0, 2.0], nrows=4, ncols=4).to(device)
    start = sg.Vector.from_coo([0, 1], [np.nan, 3.0], size=4).to(device)
    ring = Semiring(Monoid(BinaryOp.define(least_or_nan), np.inf, None, True), binary.plus)
    found = entries(closure(A, start, ring).to("cpu"))
    np.testing.assert_array_equal([found[v] for v in range(3)], [np.nan] * 3)


def test_nan_that_is_an_identity() -> None:
    """Which vertices are visited is told by their values where these are not the identity."""

    def lesser(x, y):  # type: ignore[no-untyped-def]
        return y if x != x or y < x else x

    ring = Semiring(Monoid(BinaryOp.define(lesser), np.nan, None, True), binary.plus)
    A = sg.Matrix.from_coo([0, 1, 0, 3], [1, 2, 2, 4], [1.0, 1.0, 5.0, 1.0], nrows=5, ncols=5)
    start = sg.Vector.from_coo([0], [0.0], size=5)
    assert entries(closure(A, start, ring)) == {0: 0.0, 1: 1.0, 2: 2.0}


def test_values_without_a_total_order_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every vertex passes on in a round what it has, even if its value has changed since: so there
    need not be more rounds than vertices.
    """
    from spgraph.backends.cpu.closure import closure as fused

    monkeypatch.setattr(fused, "ALONE", 1)  # no rounds but those that are counted
    union = BinaryOp.define(lambda x, y: x | y)
    ring = Semiring(Monoid(union, 0, None, True), binary.first)
    rows, columns = [0, 0, 0, 1, 1, 1, 2, 3, 3, 3], [0, 2, 3, 0, 2, 3, 0, 0, 1, 3]
    A = sg.Matrix.from_coo(rows, columns, 1, nrows=4, ncols=4)
    found = closure(A, sg.Vector.from_dense([1, 2, 4, 8]), ring)
    assert entries(found) == dict.fromkeys(range(4), 15)


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_composed_buckets_keep_nan(shards: int) -> None:
    """A value that is no number comes before every limit, as without buckets: min passes it over,
    but what it reaches has an entry.
    """
    ends = [0, 0, 1, 3], [1, 2, 3, 4]
    A = sg.Matrix.from_coo(*ends, [1.0, 1.0, 2.0, 5.0], nrows=5, ncols=5).distribute(shards)
    start = sg.Vector.from_coo([0, 2], [np.nan, 1.0], size=5).to(A.device)
    typed = min_plus.resolve("float64", "float64")
    for delta in (None, 0.5, 1e9):
        found: Any = composed_closure(A, start, typed, delta)
        right = np.array([np.nan, np.inf, 1.0, np.inf, np.inf])
        np.testing.assert_array_equal(found.to_numpy(fill=-1.0), right)


# --- the edges that carry the values --------------------------------------------------------------


@pytest.mark.parametrize("case", ["distance", "distance, zeros", "width", "reliability"])
@pytest.mark.parametrize("name", ["one", "star in", "sparse directed", "grid", "many sources"])
def test_tight_edges(name: str, case: str, device: str) -> None:
    made, (ring, _, multiply, *_) = graph(name, CASES[case]), CASES[case]
    x = expected(name, CASES[case])
    found = dag_edges(made.A.to(device), closure(made.A, made.v, ring).to(device), ring).to("cpu")
    assert found.iso and found.dtype == bool and found.shape == made.A.shape
    rows, columns, _ = found.to_coo()
    carrying = {(i, j) for (i, j), w in made.edges.items() if i in x and multiply(x[i], w) == x[j]}
    pairs = list(zip(rows.tolist(), columns.tolist(), strict=True))
    assert pairs == sorted(pairs)
    loops = {(i, j) for i, j in carrying if i == j}  # which may be left out
    assert set(pairs) | loops == carrying


def test_tight_is_shared_by_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    from spgraph.backends.cpu.runtime import pool

    made = graph("skewed both", CASES["distance"])
    x = closure(made.A, made.v, min_plus)
    alone = dag_edges(made.A, x, min_plus)
    monkeypatch.setattr(pool, "threads_for", lambda work, *share: 2)
    assert dag_edges(made.A, x, min_plus).isequal(alone) and alone.nvals > 0
    empty = sg.Matrix.empty(5, 5, np.int64)
    assert dag_edges(empty, sg.Vector.from_dense(np.arange(5)), min_plus).nvals == 0


# --- one vertex that carries each value -----------------------------------------------------------


@pytest.mark.parametrize("case", ["distance", "distance, zeros", "width", "reliability"])
@pytest.mark.parametrize("name", ["one", "loop", "star in", "sparse directed", "many sources"])
def test_parents(name: str, case: str, device: str) -> None:
    made, (ring, _, multiply, *_) = graph(name, CASES[case]), CASES[case]
    found = parents(made.A.to(device), closure(made.A, made.v, ring).to(device), ring)
    assert found.dtype == made.A.indices.dtype and found.size == made.A.nrows
    assert entries(found) == least_parents(made.edges, expected(name, CASES[case]), multiply)


@pytest.mark.fused
@pytest.mark.parametrize("case", ["distance", "distance, zeros", "distance, equal"])
@pytest.mark.parametrize("name", GRAPHS)
def test_parents_along_in_edges(name: str, case: str, device: str) -> None:
    """A transpose at hand changes nothing but the way; sources have no parent."""
    made = graph(name, CASES[case])
    A = made.A.pattern() if case == "distance, equal" else made.A.dup()
    edges = dict.fromkeys(made.edges, 1) if A.iso else made.edges
    wide = sg.Matrix._of(
        *(A.nrows, A.ncols, A.indptr.astype(np.int64), A.indices.astype(np.int64), A.values),
        iso=A.iso,
    )
    # wide indices are a kernel of their own, whatever the values
    for M in (A.to(device), wide.to(device)) if case == "distance" else (A.to(device),):
        one = counted(M, made.v.to(device))
        assert one is not None and not M.has_transpose
        assert one.semiring.multiply.name == f"plus_and_one_{one.bits}"
        apart = parents(M, one.value, one.semiring)
        assert M.T.indptr.size > M.nrows and M.has_transpose
        found = parents(M, one.value, one.semiring)
        assert found.dtype == M.indices.dtype and found.isequal(apart)

        def multiply(x: Any, a: Any, bits: int = one.bits) -> Any:
            return x + (int(a) << bits) + 1

        x = entries(one.value)
        assert entries(found) == least_parents(edges, x, multiply)
        assert {v for v in x if x[v] >> one.bits == made.start.get(v)} >= set(x) - set(
            entries(found)
        )


def test_counted_from_a_small_type(device: str) -> None:
    """Sums beyond int8 take 64 bits, and so does a start that is shifted to make space."""
    A = sg.Matrix.from_coo([0, 1], [1, 2], np.array([100, 20], np.int8), nrows=3, ncols=3)
    one = counted(A.to(device), sg.Vector.from_coo([0], np.array([5], np.int8), size=3).to(device))
    assert one is not None and entries(one.distance) == {0: 5, 1: 105, 2: 125}


@pytest.mark.fused
@pytest.mark.parametrize("threads", [1, 2])
def test_path_parents_are_sole_or_searched_for(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the CPU one pass finds the parents where no vertex has two to choose from."""
    from spgraph.backends.cpu import path_parents
    from spgraph.backends.cpu.runtime import pool

    n, typed = 60, min_plus.resolve("float64", "float64")
    rows, columns = np.divmod(np.random.default_rng(5).choice(n * n, 400, replace=False), n)
    weights = np.random.default_rng(6).random(400)
    monkeypatch.setattr(pool, "processors", lambda: 2)
    monkeypatch.setattr(pool, "threads_for", lambda work, *share: threads)
    pool.close()
    try:
        for values, ties in ((weights, False), (np.ceil(4 * weights), True), (weights * 0, True)):
            A = sg.Matrix.from_coo(rows, columns, values, nrows=n + 1, ncols=n + 1)
            x = closure(A, sg.Vector.from_coo([3], [0.0], size=n + 1), min_plus)
            edges = {(i, j): w for i, j, w in zip(*(a.tolist() for a in A.to_coo()), strict=True)}
            least = least_parents(edges, entries(x), lambda x, a: x + a) | {3: 3}
            for T in (None, A.T):
                found = path_parents(A, T, x, typed, 3)
                assert (found is None) == ties
                assert found is None or (entries(found) == least and found.nvals == x.nvals > 50)
    finally:
        pool.close()


def test_parents_are_shared_by_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    from spgraph.backends.cpu.runtime import pool

    monkeypatch.setattr(pool, "processors", lambda: 3)
    pool.close()
    try:
        for name in ("skewed both", "complete", "two components"):
            made = graph(name, CASES["distance, zeros"])
            one = counted(made.A, made.v)
            assert one is not None
            found = []
            for threads in (1, 2, 3):
                monkeypatch.setattr(pool, "threads_for", lambda work, *share, many=threads: many)
                A = made.A.dup()
                assert not A.has_transpose
                found += [parents(A, one.value, one.semiring)]
                assert A.T.indptr.size > A.nrows and A.has_transpose
                found += [parents(A, one.value, one.semiring)]
            assert found[0].nvals > 0 and all(f.isequal(found[0]) for f in found)
    finally:
        pool.close()


def test_parents_of_values_without_order(device: str) -> None:
    """Of any semiring: products that reverse the order of values, values that are no fixed point,
    one direction only.
    """
    rng = np.random.default_rng(5)
    keys = np.sort(rng.choice(40 * 40, 600, replace=False))
    a, x = rng.integers(-3, 4, 600), rng.integers(-4, 5, 40)
    A = sg.Matrix.from_coo(keys // 40, keys % 40, a, nrows=40, ncols=40)
    edges = dict(zip(zip(*divmod(keys, 40), strict=True), a.tolist(), strict=True))
    some = {v: int(x[v]) for v in range(40) if v % 3}
    v = sg.Vector.from_coo(np.array(list(some)), np.array(list(some.values())), size=40)
    for ring, multiply in (
        (Semiring(monoid.min, binary.times), lambda x, a: x * a),
        (Semiring(monoid.max, binary.minus), lambda x, a: x - a),
        (bor_band, lambda x, a: x & a),
    ):
        M = A.dup().to(device)
        for has_transpose in (False, True):
            assert M.has_transpose == has_transpose
            found = parents(M, v.to(device), ring)
            assert entries(found) == least_parents(edges, some, multiply)
            assert M.T.indptr.size == 41


def test_no_parents(device: str) -> None:
    A, v = path_graph([1, 2], device)
    assert parents(A, sg.Vector.empty(3, np.int64, device=device), min_plus).nvals == 0
    none = parents(sg.Matrix.empty(3, 3, np.int64, device=device), v, min_plus)
    assert none.nvals == 0 and none.size == 3
    assert parents(A, v, min_plus).nvals == 0


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
    ring, add, multiply, starts, _, kind = CASES[case]
    rows, columns = np.array(pairs, int).reshape(-1, 2).T
    A = sg.Matrix.from_coo(rows, columns, np.array(weights, np.int64), nrows=n, ncols=n)
    start = {s: starts[k % len(starts)] for k, s in enumerate(sources)}
    values = np.array(list(start.values()), kind)
    v = sg.Vector.from_coo(np.array(sources, np.int64), values, size=n)
    edges = dict(zip(pairs, weights, strict=True))
    found = closure(A, v, ring)
    assert entries(found) == fixed_point(edges, start, add, multiply)
    if case in composed_too:
        assert found.isequal(composed(A, v, ring), check_dtype=True)


# --- the width of a bucket ------------------------------------------------------------------------


def test_bucket_width() -> None:
    for where in ("cpu", "cuda:0"):
        assert bucket_width(32.5, 1000, 2500, where) > bucket_width(32.5, 1000, 32500, where)
        assert bucket_width(65.0, 1000, 2500, where) == 2 * bucket_width(32.5, 1000, 2500, where)
        assert bucket_width(0.0, 1000, 1000, where) == 1.0  # never none
        assert bucket_width(3.0, 5, 0, where) > 0
    assert bucket_width(32.5, 1000, 32500, "cpu") == 32.5 / 16
    # a GPU takes a road network in wide buckets; with many edges a vertex, it finds its work in any
    steps = [bucket_width(1.0, 1000, 1000 * degree, "cuda:0") for degree in (2, 4, 8, 32, 64, 700)]
    assert steps[:2] == [60.0, 60.0] and 1.0 < steps[2] < 2.0
    assert 0.15 < steps[4] < steps[3] < 0.25 and 0.08 < steps[5] < 0.11


def test_narrow_buckets() -> None:
    kron26 = 1 << 26, 2_100_000_000  # vertices, edges
    # a skewed graph of many edges has narrow buckets, a uniform one or a small one has not
    assert narrow_width(0.106, 0.5, 0.0, *kron26, 9400.0) < 0.106 / 20
    assert narrow_width(0.105, 0.5, 0.0, 1 << 24, 537_000_000, 33.0) > 0.105 / 2
    assert narrow_width(0.108, 0.5, 0.0, 1 << 18, 7_600_000, 1250.0) > 0.108 / 2
    # nor has one without large vertices, a grid
    assert narrow_width(30.0, 15.0, 0.0, 4_000_000, 15_992_000, 3.998) == 30.0
    # of integers none is narrower than three of the least, nor wider than others
    assert narrow_width(6.9, 32.5, 1.0, *kron26, 9400.0) == 3.0
    assert narrow_width(2.0, 32.5, 1.0, *kron26, 9400.0) == 2.0
    # a bucket costs more where the host drives its rounds
    narrow = [narrow_width(0.1, 0.5, 0.0, *kron26, 9400.0, host) for host in (False, True)]
    assert narrow[0] < narrow[1] < 0.1
    assert narrow_width(1.0, 0.0, 0.0, 5, 0, 0.0) == 1.0 and not may_be_narrow(4 << 19)
    # whatever the unit; where the sampled edges change nothing, nobody knows how narrow
    for unit in (1e-200, 1e-300, 1e250):
        ratio = narrow_width(0.1 * unit, 0.5 * unit, 0.0, *kron26, 9400.0) / unit
        assert ratio == pytest.approx(narrow_width(0.1, 0.5, 0.0, *kron26, 9400.0))
    assert narrow_width(1.0, 0.0, 0.0, *kron26, 9400.0) == 1.0


def test_default_widths() -> None:
    """A CPU has one width; a GPU two on skewed graphs, for floats and integers alike."""

    def widths(device: Any, kind: str, mean: float, low: float) -> tuple[float, float | None]:
        A: Any = types.SimpleNamespace(nrows=1 << 26, nvals=2_100_000_000, device=device)
        A._sampled_mean, A._value_range = lambda: mean, lambda: (low, 2 * mean)
        A._sampled_row_length = lambda: 9400.0
        return closure_widths.default_widths(A, min_plus, np.dtype(kind))

    assert widths("cpu", "float64", 0.5, 0.0) == (0.5 / 16, None)
    width, reach = widths("cuda:0", "float32", 0.5, 0.0)
    assert reach == bucket_width(0.5, 1 << 26, 2_100_000_000, "cuda:0") > 20 * width > 0
    assert widths("cuda:0", "int64", 32.5, 1.0) == (3.0, pytest.approx(65 * reach))
    assert widths("cuda:0", "int64", 0.5, 0.0) == (1.0, 1.0)

    def shards(number: int, peers: Any) -> Any:
        return types.SimpleNamespace(num_shards=number, devices=["cuda:0"], peers=peers)

    # edges are divided among GPUs, and rounds of the host cost more
    several = [widths(shards(4, peers), "float32", 0.5, 0.0) for peers in (True, None)]
    assert width < several[0][0] < several[1][0] < reach == several[0][1] == several[1][1]


# --- bad input ------------------------------------------------------------------------------------

A5 = sg.Matrix.from_coo([0, 1, 2], [1, 2, 3], [4.0, 2.0, 3.0], nrows=5, ncols=5)
V5 = sg.Vector.from_coo([0], [0.0], size=5)


def edited(value: float, at: int = 1) -> sg.Matrix:
    values = A5.values.copy()
    values[at] = value
    return sg.Matrix._of(5, 5, A5.indptr, A5.indices, values)


def vector(value: float) -> sg.Vector:
    return sg.Vector.from_coo([0], [value], size=5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: closure(np.ones((2, 3)), V5, min_plus), "ValueError: closure: A: .* got 2 x 3"),
        (
            lambda: closure(A5, sg.Vector.empty(4), min_plus),
            "ValueError: .* start.size 4 != A.nrow",
        ),
        (lambda: closure(A5, [0], min_plus), "TypeError: .* start: expected a Vector, got list"),
        (lambda: closure(A5, V5, 3), "TypeError: .* expected a Semiring"),
        (lambda: closure(A5, V5, plus_times), "TypeError: .* x \\+ x == x .* got plus_times"),
        (lambda: closure(A5, V5, any_first), "TypeError: .* one result, .* got any_first"),
        (lambda: closure(A5, V5, min_plus, delta=0), "ValueError: delta: .* positive .* got 0"),
        (lambda: closure(A5, V5, min_plus, delta="1"), "ValueError: delta: .* got '1'"),
        (lambda: closure(A5, V5, min_plus, delta=np.inf), "ValueError: delta: .* got inf"),
        (lambda: closure(A5, V5, lor_land, delta=1), "ValueError: delta: .* None for lor_land"),
        (lambda: closure(edited(-2.0), V5, min_plus), "NegativeWeight: A: .* A\\[1, 2\\] = -2.0; "),
        (lambda: closure(edited(-2.0, 0), V5, min_plus), "NegativeWeight: .* A\\[0, 1\\] = -2.0"),
        (lambda: composed(edited(-2.0), V5, min_plus), "NegativeWeight: .* A\\[1, 2\\] = -2.0"),
        (lambda: closure(edited(np.nan, 2), V5, min_plus), "ValueError: A: .* A\\[2, 3\\] = nan"),
        (lambda: closure(edited(np.nan), V5, max_min), "ValueError: A: .* A\\[1, 2\\] = nan"),
        (lambda: closure(A5, vector(np.nan), min_plus), "ValueError: start: .* got NaN"),
        (lambda: closure(A5, V5, max_times), "ValueError: .* 0 to 1, got A\\[0, 1\\] = 4.0"),
        (lambda: closure(edited(-0.5, 0), V5, max_times), "ValueError: .* A\\[0, 1\\] = -0.5"),
        (lambda: closure(A5.pattern(), vector(-1.0), max_times), "ValueError: start: .* got -1.0"),
        (
            lambda: dag_edges(A5, sg.Vector.empty(4), min_plus),
            "ValueError: dag_edges: x.size 4 != A.nrows",
        ),
        (
            lambda: dag_edges(A5, sg.Vector.empty(5, int), min_plus),
            "TypeError: dag_edges: x: .* got int64",
        ),
        (lambda: parents(A5, sg.Vector.empty(4), min_plus), "ValueError: parents: x.size 4 != "),
        (lambda: parents(A5, sg.Vector.empty(5, int), min_plus), "TypeError: parents: x: .* int64"),
        (lambda: parents(A5, V5, 3), "TypeError: parents: .* expected a Semiring"),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    kind, _, text = message.partition(": ")
    with pytest.raises(Exception, match=text) as caught:
        call()
    assert kind in {parent.__name__ for parent in type(caught.value).__mro__}
    assert closure(A5, V5, min_plus).nvals == 4  # everything is still usable


def test_start_without_entries(device: str) -> None:
    A, _ = path_graph([1, 2], device)
    for loop, ring, kind in ((closure, min_first, np.int32), (composed, min_plus, np.int64)):
        found = loop(A, sg.Vector.empty(3, kind, device=device), ring)
        assert found.nvals == 0 and found.dtype == kind and found.size == 3


def test_the_type_of_nothing_is_that_of_values(device: str) -> None:
    """A sum that might leave int8 is computed in a wider type, which is not that of the result."""
    A = path_graph([100, 100], device)[0].astype(np.int8)
    for loop in (closure, composed):
        for entries_of_start in ([], [2]):
            start = sg.Vector.from_coo(
                entries_of_start, np.zeros(len(entries_of_start), np.int8), size=3, device=device
            )
            assert loop(A, start, min_plus).dtype == np.int8
