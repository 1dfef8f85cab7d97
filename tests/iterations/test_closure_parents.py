"""The edges and the parents that carry the values of a closure, against plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from closure_cases import CASES, GRAPHS, entries, expected, graph, least_parents, path_graph
from fixtures_device import device  # noqa: F401

import spgraph as sg
from spgraph.iterations.fixed_point import closure, counted
from spgraph.iterations.shortest_path_dag import dag_edges, parents
from spgraph.semirings import Semiring, binary, bor_band, min_plus, monoid


@pytest.mark.parametrize("case", ["distance", "distance, zeros", "width", "reliability"])
@pytest.mark.parametrize("name", ["one", "star in", "sparse directed", "grid", "many sources"])
def test_tight_edges(name: str, case: str, device: str) -> None:
    made, (semiring, _, multiply, *_) = graph(name, CASES[case]), CASES[case]
    x = expected(name, CASES[case])
    found = dag_edges(made.A.to(device), closure(made.A, made.v, semiring).to(device), semiring).to(
        "cpu"
    )
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


@pytest.mark.parametrize("case", ["distance", "distance, zeros", "width", "reliability"])
@pytest.mark.parametrize("name", ["one", "loop", "star in", "sparse directed", "many sources"])
def test_parents(name: str, case: str, device: str) -> None:
    made, (semiring, _, multiply, *_) = graph(name, CASES[case]), CASES[case]
    found = parents(made.A.to(device), closure(made.A, made.v, semiring).to(device), semiring)
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
        one = counted("sssp", M, made.v.to(device), None)
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
    start = sg.Vector.from_coo([0], np.array([5], np.int8), size=3)
    one = counted("sssp", A.to(device), start.to(device), None)
    assert one is not None and entries(one.into_distance()) == {0: 5, 1: 105, 2: 125}


@pytest.mark.fused
@pytest.mark.parametrize("threads", [1, 2])
def test_path_parents_are_sole_or_searched_for(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the CPU one pass finds the parents where no vertex has two to choose from, and one thread
    searches for those of few edges.
    """
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
            d, least = entries(x), {3: 3}
            while len(least) < len(d):  # one edge more, and there the least
                found = [(j, i) for i, j in edges if i in least and j not in least]
                found = [(j, i) for j, i in found if d[i] + edges[i, j] == d[j]]
                for j, i in sorted(found, reverse=True):
                    least[j] = i
            for T in (None, A.T):
                found = path_parents(A, T, x, typed, 3)
                assert (found is None) == (ties and threads > 1)
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
            one = counted("sssp", made.A, made.v, None)
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
    for semiring, multiply in (
        (Semiring(monoid.min, binary.times), lambda x, a: x * a),
        (Semiring(monoid.max, binary.minus), lambda x, a: x - a),
        (bor_band, lambda x, a: x & a),
    ):
        M = A.dup().to(device)
        for has_transpose in (False, True):
            assert M.has_transpose == has_transpose
            found = parents(M, v.to(device), semiring)
            assert entries(found) == least_parents(edges, some, multiply)
            assert M.T.indptr.size == 41


def test_no_parents(device: str) -> None:
    A, v = path_graph([1, 2], device)
    assert parents(A, sg.Vector.empty(3, np.int64, device=device), min_plus).nvals == 0
    none = parents(sg.Matrix.empty(3, 3, np.int64, device=device), v, min_plus)
    assert none.nvals == 0 and none.size == 3
    assert parents(A, v, min_plus).nvals == 0
