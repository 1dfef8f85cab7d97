"""The CUDA closure without a GPU: its host code on NumPy arrays, its kernels under the shim."""

from __future__ import annotations

import importlib
from typing import Any

import cuda_host_shim
import numpy as np
import pytest
from closure_cases import (
    CASES,
    GRAPHS,
    best_parents,
    check_closure,
    entries,
    fixed_point,
    graph,
    least_parents,
)

import spgraph as sg
from spgraph import iterations
from spgraph.algorithms.sssp import sssp
from spgraph.backends import cuda
from spgraph.backends.cuda.runtime import jit
from spgraph.containers import Matrix, Vector
from spgraph.errors import ConvergenceError
from spgraph.iterations.integer_sums import plus_and_one, saturating_plus
from spgraph.semirings import BinaryOp, Monoid, Semiring, binary, min_plus, monoid

pytestmark = pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")

# thresholds with which small graphs take every path of the kernel
THRESHOLDS = ("LOCAL_EDGES", "THRESHOLD_EDGES", "STEPS")
PATHS = {
    "as shipped": {},
    "pushed": {"LOCAL_EDGES": 0},
    "threshold": {"THRESHOLD_EDGES": 1, "LOCAL_EDGES": 40},
    "threshold, local": {"THRESHOLD_EDGES": 1, "STEPS": 2},
}
# graphs that between them have every shape; the rest take long for what they add
COVER = ("one", "loop", "star both", "two components", "sparse directed", "skewed both")
FULL = pytest.mark.full
MANY = ("path", "complete", "dense directed", "skewed both", "grid", "many sources")


@pytest.fixture(autouse=True)
def on_the_shim(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda_host_shim.install(monkeypatch)
    for loop in (iterations.fixed_point, iterations.level_search):
        monkeypatch.setattr(loop, "backend", lambda device: cuda)
    monkeypatch.setattr(jit, "current_device", lambda: 0)
    monkeypatch.setattr(host(), "TRANSPOSE_FROM", 0)
    monkeypatch.setattr(host(), "THREADS", 64)  # a step of 2 x 1024 fibers takes 0.1 s
    take(monkeypatch, "as shipped")


def host() -> Any:
    return importlib.import_module("spgraph.backends.cuda.closure.closure")


def take(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """Let the kernel decide by other thresholds."""
    cuda_host_shim.with_thresholds(monkeypatch, ["closure"], THRESHOLDS, **PATHS[path])
    host()._kernel.cache_clear()


# --- closure --------------------------------------------------------------------------------------


# two that others stand for: each case is a program to compile
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=FULL if case in ("distance, equal", "width, float32") else ())
        for case in CASES
    ],
)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in COVER else FULL) for name in GRAPHS]
)
def test_closure_equals_plain_loops(name: str, case: str) -> None:
    check_closure(name, CASES[case], "cpu")


EVERY_PATH = [
    pytest.param(
        *(path, case),
        marks=() if case == "distance, zeros" or (path, case) == ("threshold", "width") else FULL,
    )
    for path in PATHS
    for case in ("distance, zeros", "distance, float32", "width")
]


@pytest.mark.parametrize(("path", "case"), EVERY_PATH)
def test_every_path(path: str, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch, path)
    for name in MANY:
        for delta in (0.02, 2, 10**7):
            check_closure(name, CASES[case], "cpu", delta=delta)


def of_types(A: Matrix, index: str, offset: str, values: Any) -> Matrix:
    return Matrix(A.nrows, A.ncols, A.indptr.astype(offset), A.indices.astype(index), values)


@pytest.mark.parametrize(
    ("index", "offset"), [pytest.param("int64", "int32", marks=FULL), ("int32", "int64")]
)
def test_types_of_indices(index: str, offset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch, "threshold, local")
    made = graph("skewed both", CASES["distance"])
    A = of_types(made.A, index, offset, made.A.values)
    expected = fixed_point(made.edges, made.start, min, lambda x, a: x + a)
    assert entries(host().closure(A, made.v, min_plus.resolve("int64", "int64"), 5.0)) == expected


def test_one_value_for_all_entries() -> None:
    pattern = graph("grid", CASES["distance"]).A.pattern()
    start = Vector.unit(20, 0, size=pattern.nrows, dtype=np.int64)
    rows, columns = pattern.to_coo()[:2]
    edges = dict.fromkeys(zip(rows.tolist(), columns.tolist(), strict=True), 1)
    found = sg.iterations.closure(pattern, start, min_plus)
    assert entries(found) == fixed_point(edges, {20: 0}, min, lambda x, a: x + a)


def smaller(x, y):  # type: ignore[no-untyped-def]
    return x if x < y else y


MONOIDS = {
    "compare and swap": (Monoid(BinaryOp.define(smaller), 2**31 - 1, None, True), binary.plus),
    "sets of bits": (monoid.bor, binary.band),
    "sets of bits, all": (monoid.band, binary.bor),
    "greatest bytes": (monoid.max, binary.min),
}


@pytest.mark.parametrize("name", MONOIDS)
def test_monoids(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What memory has an instruction for, and what it has none for."""
    ring = Semiring(*MONOIDS[name])
    kind = "uint8" if "bytes" in name else "int32"
    python = {
        "compare and swap": (min, lambda x, a: x + a),
        "sets of bits": (lambda x, y: x | y, lambda x, a: x & a),
        "sets of bits, all": (lambda x, y: x & y, lambda x, a: x | a),
        "greatest bytes": (max, min),
    }[name]
    for path in ("as shipped", "pushed"):
        take(monkeypatch, path)
        for graph_name in ("two components", "skewed both"):
            made = graph(graph_name, CASES["distance, zeros"])
            A = Matrix(*made.A.shape, made.A.indptr, made.A.indices, made.A.values.astype(kind))
            start = {20: 255 if "all" not in name else 0, 30: 6}
            v = Vector.from_coo([20, 30], np.array(list(start.values()), kind), size=A.nrows)
            found = sg.iterations.closure(A, v, ring)
            assert entries(found) == fixed_point(made.edges, start, *python)


def test_products_that_are_better_than_their_operands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative lengths without a negative cycle: values behind a threshold may improve."""
    rng = np.random.default_rng(3)
    pairs = np.unique(np.sort(rng.integers(0, 300, (6000, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    weights = rng.integers(-20, 30, len(pairs))
    A = Matrix.from_coo(pairs[:, 0], pairs[:, 1], weights, nrows=300, ncols=300)
    edges = dict(zip(map(tuple, pairs.tolist()), weights.tolist(), strict=True))
    expected = fixed_point(edges, {0: 0, 7: -5}, min, lambda x, a: x + a)
    start = Vector.from_coo([0, 7], [0, -5], size=300)
    for path in PATHS:
        take(monkeypatch, path)
        for delta in (None, 1, 25):
            found = host().closure(A, start, min_plus.resolve("int64", "int64"), delta)
            assert entries(found) == expected


@pytest.mark.parametrize("delta", [None, 3])
def test_no_fixed_point(delta: Any) -> None:
    """A cycle of negative length ends in an error that has the last iterate."""
    A = Matrix.from_coo([0, 1, 2, 3], [1, 2, 1, 0], [4, 3, -5, 1], nrows=5, ncols=5)
    start = Vector.unit(0, 0, size=5, dtype=np.int64)
    with pytest.raises(ConvergenceError, match=r"min_plus.*5 rounds") as caught:
        host().closure(A, start, min_plus.resolve("int64", "int64"), delta)
    assert caught.value.result.nvals == 3


@pytest.mark.parametrize("kind", ["int64", "uint64"])
def test_sums_that_stay_at_the_greatest_integer(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They reach a vertex, and improve nothing."""
    top = int(np.iinfo(kind).max)
    edges = {(0, 1): top - 3, (1, 0): 9, (1, 1): top, (1, 2): 3, (2, 3): 1, (3, 4): 0, (0, 4): top}
    rows, columns = zip(*edges, strict=True)
    A = Matrix.from_coo(rows, columns, np.array(list(edges.values()), kind), nrows=6, ncols=6)
    typed = Semiring(monoid.min, saturating_plus(np.dtype(kind))).resolve(kind, kind)
    start = Vector.unit(0, 0, size=6, dtype=np.dtype(kind))
    expected = fixed_point(edges, {0: 0}, min, lambda x, a: min(x + a, top))
    for path in PATHS:
        take(monkeypatch, path)
        for delta in (None, 1, 2.0**60):
            assert entries(host().closure(A, start, typed, delta)) == expected


def test_products_of_the_value_of_nothing() -> None:
    """An infinite length reaches a vertex too, and what lies behind it."""
    edges = {(0, 1): np.inf, (1, 2): 1.0, (2, 3): 0.5, (0, 3): 8.0}
    rows, columns = zip(*edges, strict=True)
    A = Matrix.from_coo(rows, columns, list(edges.values()), nrows=5, ncols=5)
    for ring, multiply in ((min_plus, lambda x, a: x + a), (sg.semirings.min_second, max)):
        start = Vector.unit(0, 0.0, size=5, dtype=float)
        expected = fixed_point(
            edges, {0: 0.0}, min, multiply if ring == min_plus else lambda x, a: a
        )
        for delta in (None, 0.5):
            typed = ring.resolve("float64", "float64")
            assert entries(host().closure(A, start, typed, delta)) == expected


def test_products_that_are_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least vertex with an edge to it: an entry says nothing without its vertex."""
    made = graph("skewed both", CASES["distance"])
    reached = fixed_point(made.edges, made.start, min, lambda x, a: x + a)
    expected = {3: 7} | {j: 10**6 for _, j in made.edges if j in reached}
    for i, j in made.edges:
        if i in reached:
            expected[j] = min(expected[j], i)
    start = Vector.unit(3, 7, size=made.A.nrows, dtype=np.int32)
    expected[3] = min(expected[3], 7)
    typed = sg.semirings.min_secondi.resolve("int32", "int64", index="int32")
    for path in ("as shipped", "threshold"):
        take(monkeypatch, path)
        for delta in (None, 50):
            assert entries(host().closure(made.A, start, typed, delta)) == expected


def test_trace_counts_the_edges() -> None:
    A = sg.generators.grid(9, 11)
    start = Vector.unit(0, 0, size=99, dtype=np.int64)
    ring = min_plus.resolve("int64", "bool")
    found, steps = host().run(A, start, ring, 1, trace_rows=500)
    assert found.nvals == 99 and steps[:, 0].max() <= 4
    assert steps[:, 1].sum() >= 99  # a vertex at least once, but for what warps do by themselves


# --- the edges that carry the values --------------------------------------------------------------


@pytest.mark.parametrize("name", GRAPHS)
def test_tight_equals_plain_loops(name: str) -> None:
    case = CASES["distance, zeros"]
    made = graph(name, case)
    x = fixed_point(made.edges, made.start, min, case.multiply)
    values = np.array([x[v] for v in sorted(x)], np.int64)
    v = Vector.from_coo(np.array(sorted(x)), values, size=made.A.nrows)
    for storage in (v, v.to_bitmap()):
        found = host().dag_edges(made.A, storage, min_plus.resolve("int64", "int64"))
        expected = sorted(
            (i, j) for (i, j), a in made.edges.items() if i in x and j in x and x[i] + a == x[j]
        )
        assert found.iso and found.indptr[-1] == found.nvals
        rows, columns = found.to_coo()[:2]
        assert list(zip(rows.tolist(), columns.tolist(), strict=True)) == expected


@pytest.mark.parametrize("entries_", [1023, 1024, 1025, 3072, 5000])
def test_tight_over_chunks(entries_: int) -> None:
    """Matrices that end before, at and behind a chunk's end; 64-bit indices; a full vector."""
    rng = np.random.default_rng(entries_)
    keys = np.sort(rng.choice(90 * 90, entries_, replace=False))
    a = rng.integers(0, 4, entries_)
    A = Matrix.from_coo(keys // 90, keys % 90, a.astype(np.uint8), nrows=90, ncols=90)
    A = of_types(A, "int64", "int64", A.values)
    x = rng.integers(0, 4, 90)
    found = host().dag_edges(A, Vector.from_dense(x), min_plus.resolve("int64", "uint8"))
    expected = keys[x[keys // 90] + a == x[keys % 90]]
    rows, columns = found.to_coo()[:2]
    assert np.array_equal(rows * 90 + columns, expected)


@pytest.mark.parametrize("name", GRAPHS)
def test_parents_equal_plain_loops(name: str) -> None:
    """Over weights of zero too; of the transpose, and without one; an iso Matrix."""
    made = graph(name, CASES["distance, zeros"])
    bits = 16
    for A in (made.A, made.A.pattern()):
        edges = dict.fromkeys(made.edges, 1) if A.iso else made.edges
        typed = Semiring(monoid.min, plus_and_one(bits)).resolve("int64", A.dtype)
        x = fixed_point(edges, made.start, min, lambda x, a: x + (a << bits) + 1)
        expected = least_parents(edges, x, lambda x, a: x + (a << bits) + 1)
        values = np.array([x[v] for v in sorted(x)], np.int64)
        v = Vector.from_coo(np.array(sorted(x)), values, size=A.nrows)
        for T in (None, A.T):
            found = host().parents(A, T, v, typed)
            assert entries(found) == expected and found.nvals == len(expected)


@pytest.mark.parametrize(
    ("index", "offset"), [("int64", "int32"), ("int32", "int64"), ("int32", "int32")]
)
def test_parents_in_one_pass(index: str, offset: str) -> None:
    """A Matrix that is its own transpose: many vertices before and behind the floor."""
    made = graph("skewed both", CASES["distance"])
    S = made.A.to_scipy()
    S = (S + S.T).tocsr()
    A = Matrix.from_scipy(S, symmetric=True)
    A = of_types(A, index, offset, A.values)
    edges = dict(
        zip(zip(*(c.tolist() for c in A.to_coo()[:2]), strict=True), A.values.tolist(), strict=True)
    )
    typed = Semiring(monoid.min, plus_and_one(16)).resolve("int64", "int64", index=index)

    def multiply(x: Any, a: Any) -> Any:
        return x + (a << 16) + 1

    x = fixed_point(edges, {5: 0, 17: 3 << 16}, min, multiply)
    v = Vector.from_coo(np.array(sorted(x)), np.array([x[v] for v in sorted(x)]), size=A.nrows)
    expected = least_parents(edges, x, multiply)
    for T in (None, A, A.dup()):
        for storage in (v, v.to_bitmap()):
            found = host().parents(A, T, storage, typed)
            assert found.dtype == index and entries(found) == expected


@pytest.mark.parametrize(("seed", "nothing"), list(enumerate([0, -3, 5, 0, -2, 7])))
def test_parents_of_values_that_are_no_fixed_point(seed: int, nothing: int) -> None:
    """Values of one's own, with gaps, and products that are better than their operands."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, 80, (1500, 2))
    pairs = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)
    a = (pairs.sum(axis=1) * 5 + pairs[:, 0] * pairs[:, 1]) % 7 - 3  # the same both ways
    A = Matrix.from_coo(pairs[:, 0], pairs[:, 1], a, nrows=80, ncols=80)
    edges = dict(zip(map(tuple, pairs.tolist()), a.tolist(), strict=True))
    x = {v: int(z) for v, z in enumerate(rng.integers(-6, 7, 80)) if v % 4}
    x[1], x[2] = -8, 8  # each alone before the floor of its order
    v = Vector.from_coo(np.array(list(x)), np.array(list(x.values())), size=80).to_bitmap()
    for ring, multiply in (
        (min_plus, lambda x, a: x + a),
        (sg.semirings.max_plus, lambda x, a: x + a),
        (sg.semirings.max_min, min),
    ):
        typed = ring.resolve("int64", "int64")
        v._values[::4] = nothing  # what lies where there is no entry
        for T in (None, A, A.dup()):
            found = host().parents(A, T, v, typed)
            assert entries(found) == least_parents(edges, x, multiply)


@pytest.mark.parametrize("kind", ["float32", "int64"])
def test_parents_of_widths(kind: str) -> None:
    """An order from greatest to least, and vertices of equal values; products of positions."""
    made = graph("skewed both", CASES["width"])
    A = of_types(made.A, "int32", "int32", made.A.values.astype(kind))
    x = fixed_point(made.edges, made.start, max, min)
    v = Vector.from_coo(
        np.array(sorted(x)), np.array([x[v] for v in sorted(x)], kind), size=A.nrows
    )
    ring = sg.semirings.max_min.resolve(kind, kind)
    for T in (None, A.T):
        assert entries(host().parents(A, T, v, ring)) == least_parents(made.edges, x, min)
    v = Vector.from_dense(np.arange(A.nrows))
    ring = sg.semirings.max_secondj.resolve("int64", A.dtype, index="int64")
    expected = {}
    for i, j in sorted(made.edges):
        if i != j:
            expected.setdefault(j, i)
    for T in (None, A.T):
        assert entries(host().parents(A, T, v, ring)) == expected


def test_shortest_paths_with_parents() -> None:
    for name in ("grid", "two components"):
        case = CASES["distance, zeros"]
        made = graph(name, case)
        source = min(made.start)
        distance, parent = sssp(made.A, source)
        x = fixed_point(made.edges, {source: 0}, min, case.multiply)
        assert entries(distance) == x
        assert entries(parent) == best_parents(made.edges, x, case.multiply, source)
