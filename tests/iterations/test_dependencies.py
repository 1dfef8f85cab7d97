"""The loop `dependencies` and its levels on every device, against plain loops and its composed
form.
"""

from __future__ import annotations

import importlib
import itertools

import numpy as np
import pytest
from dependencies_cases import MORE, by_loops, dense, matrix, same, some_sources
from fixtures_device import device  # noqa: F401
from search_cases import GRAPHS

import spgraph as sg
from spgraph.backends import cpu, cuda
from spgraph.backends.cpu.runtime import pool
from spgraph.errors import BackendMismatch, DimensionMismatch, DomainMismatch, IndexOutOfBound
from spgraph.iterations.path_dependencies import (
    composed_dependencies,
    composed_levels,
    dependencies,
    dependencies_along,
    level_sums,
    levels,
)


def check(name: str, device: str, most: int = 7) -> None:
    A = matrix(name).to(device)
    sources = some_sources(A.nrows, most)
    got = dependencies(A, sources)
    assert got.device == A.device
    same(got, by_loops(name, tuple(sources.tolist()))[0])


MANY_PATHS = ("layers", "braid")  # more than float64 holds
CASES = [
    pytest.param(g, marks=[pytest.mark.fused] if g in MANY_PATHS else []) for g in (*GRAPHS, *MORE)
]


@pytest.mark.parametrize("graph", CASES)
def test_dependencies_equal_loops(graph: str, device: str) -> None:
    check(graph, device)
    check(graph, device, most=1)


@pytest.mark.fused
@pytest.mark.parametrize("graph", [g for g in (*GRAPHS, *MORE) if g not in MANY_PATHS])
def test_fused_equals_composed(graph: str, device: str) -> None:
    A = matrix(graph).to(device)
    sources = some_sources(A.nrows, 2)
    same(dependencies(A, sources), composed_dependencies(A, None, sources, None).to_numpy())


def test_dependencies_along(device: str) -> None:
    """Two paths lead to 3: 1 and 2 carry half of what leads to 3 and beyond, each."""
    A = sg.Matrix.from_coo([0, 0, 1, 2, 3], [1, 2, 3, 3, 4], nrows=5, ncols=5).to(device)
    level = sg.Vector.from_dense([0, 1, 1, 2, 3]).to(device)
    same(dependencies_along(A, level), np.array([0.0, 1.0, 1.0, 1.0, 0.0]))


def test_composed_along_equals_fused() -> None:
    A = matrix("acyclic")  # whose edges lead to greater vertices
    level, pairs = {0: 0}, []
    for i, j, _ in A:
        if i in level:
            level[j] = max(level.get(j, 0), level[i] + 1)
            pairs.append((i, j))
    D = sg.Matrix.from_coo(*zip(*pairs, strict=True), nrows=A.nrows, ncols=A.ncols)
    levels_ = sg.Vector.from_coo(list(level), list(level.values()), size=A.nrows)
    same(
        dependencies_along(D, levels_),
        composed_dependencies(D, None, np.zeros(1, int), levels_).to_numpy(),
    )
    assert max(level.values()) > 3


@pytest.mark.fused
def test_composed_takes_paths_beyond_float64() -> None:
    """More than 1e300 of them, as logarithms."""
    A = matrix("layers")
    same(dependencies(A, [0]), composed_dependencies(A, None, np.array([0]), None).to_numpy())


@pytest.mark.parametrize("extended", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_forms_and_thread_counts_agree(threads: int, extended: bool) -> None:
    if threads > pool.processors():
        pytest.skip("one processor")
    host = importlib.import_module("spgraph.backends.cpu.dependencies.dependencies")
    for name in ("path", "star both", "sparse directed", "acyclic", "grid", "rmat 10"):
        A = matrix(name)
        sources = some_sources(A.nrows).astype(np.int64)
        by_source, by_level = np.zeros(A.nrows), np.zeros(A.nrows)
        assert not host._source_parallel(A, A.T, sources, threads, by_source, extended).size
        host._level_parallel(A, A.T, sources, None, threads, by_level, extended)
        expected, rows = by_loops(name, tuple(sources.tolist()))
        np.testing.assert_allclose(by_source, expected, rtol=1e-10)
        np.testing.assert_allclose(by_level, expected, rtol=1e-10)
        # as every path of an acyclic graph is a shortest one if the others are left out
        i, j, _ = A.to_coo()
        kept = (rows[0][i] >= 0) & (rows[0][i] + 1 == rows[0][j])
        D = sg.Matrix.from_coo(i[kept], j[kept], nrows=A.nrows, ncols=A.ncols)
        along = np.zeros(A.nrows)
        level = sg.Vector.from_dense(rows[0], missing=-1)
        host._level_parallel(D, D.T, sources[:1], level, threads, along, extended)
        np.testing.assert_allclose(
            along, by_loops(name, (int(sources[0]),))[0], rtol=1e-10, err_msg=name
        )


def test_threads_share_large_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    host = importlib.import_module("spgraph.backends.cpu.dependencies.dependencies")
    monkeypatch.setattr(host, "ALONE", 4096)
    for A in (
        sg.generators.kronecker(13, 12, seed=3),
        sg.generators.kronecker(13, 6, seed=3, symmetric=False),
    ):
        sources = some_sources(A.nrows, 3).astype(np.int64)
        expected = np.zeros(A.nrows)
        assert not host._source_parallel(A, A.T, sources, 1, expected, False).size
        for threads in range(1, min(2, pool.processors()) + 1):
            for extended in (False, True):
                score = np.zeros(A.nrows)
                host._level_parallel(A, A.T, sources, None, threads, score, extended)
                np.testing.assert_allclose(score, expected, rtol=1e-10)


@pytest.mark.fused
def test_path_counts_beyond_float64(device: str) -> None:
    """On a grid of 520 x 520 there are 2 ** 1033 paths from corner to corner. Of the paths to
    (i, j + 1) the share j / (i + j) comes along the row, so that dependencies need no counts.
    """
    n = 520
    A = sg.generators.grid(n, n).to(device)
    expected = np.zeros((n + 1, n + 1))
    for total in range(2 * n - 2, -1, -1):
        i = np.arange(max(0, total - n + 1), min(total, n - 1) + 1)
        j = total - i
        down = np.where(i + 1 < n, (i + 1) / (total + 1) * (1 + expected[i + 1, j]), 0)
        right = np.where(j + 1 < n, (j + 1) / (total + 1) * (1 + expected[i, j + 1]), 0)
        expected[i, j] = down + right
    expected[0, 0] = 0
    same(dependencies(A, [0]), expected[:n, :n].ravel())


# each of them compiles three kernels anew
INDEX_TYPES = [
    pytest.param(*case, marks=[] if case == ("rmat 8", np.int64, np.int64) else pytest.mark.full)
    for case in itertools.product(("rmat 8", "acyclic"), (np.int64,), (np.int32, np.int64))
]


@pytest.mark.parametrize(("name", "offsets", "ids"), INDEX_TYPES)
def test_index_types(name: str, offsets: type, ids: type, device: str) -> None:
    A = matrix(name)
    arrays = A.indptr.astype(offsets), A.indices.astype(ids), A.values
    B = sg.Matrix._of(*A.shape, *arrays, iso=A.iso, symmetric=A.symmetric).to(device)
    sources = some_sources(A.nrows)
    expected, rows = by_loops(name, tuple(sources.tolist()))
    same(dependencies(B, sources), expected)
    same(dependencies(B, sources[:1]), by_loops(name, (int(sources[0]),))[0])
    np.testing.assert_array_equal(dense(levels(B, sources)), rows)


@pytest.mark.parametrize("graph", CASES)
def test_levels_equal_loops(graph: str, device: str) -> None:
    A = matrix(graph).to(device)
    for most in (1, 9):
        sources = some_sources(A.nrows, most)
        found = levels(A, sources)
        assert found.dtype == np.int32 and found.shape == (sources.size, A.nrows)
        rows = by_loops(graph, tuple(sources.tolist()))[1]
        np.testing.assert_array_equal(dense(found), rows)
        assert composed_levels(A, sources).isequal(found)
        reached, total = level_sums(A, sources)
        np.testing.assert_array_equal(reached, (rows >= 0).sum(axis=1))
        np.testing.assert_array_equal(total, np.maximum(rows, 0).sum(axis=1))


def test_the_loops_refuse_bad_input() -> None:
    A = matrix("path")
    for loop in (dependencies, levels):
        with pytest.raises(DimensionMismatch, match="A: expected a square matrix, got 2 x 3"):
            loop(sg.Matrix.empty(2, 3), [0])
        with pytest.raises(IndexOutOfBound, match="expected 0 <= source < 64, got 64"):
            loop(A, [1, 64])
        with pytest.raises(DomainMismatch, match="A: expected a Matrix"):
            loop("edges", [0])
        for wrong in ([0.5], 3):
            with pytest.raises(DomainMismatch, match="sources: expected a sequence of vertices"):
                loop(A, wrong)
    with pytest.raises(DimensionMismatch, match="level.size 3 != A.nrows 64"):
        dependencies_along(A, sg.Vector.from_dense([0, 1, 2]))
    with pytest.raises(DomainMismatch, match="level: expected a Vector"):
        dependencies_along(A, [0, 1])


@pytest.mark.gpu
def test_devices_may_not_be_mixed() -> None:
    with pytest.raises(BackendMismatch, match="level is on cpu"):
        dependencies_along(matrix("path").to("cuda"), sg.Vector.from_dense(np.arange(64)))


def test_backends_have_the_loops() -> None:
    assert all(callable(loop) for on in (cpu, cuda) for loop in (on.dependencies, on.levels))


@pytest.mark.gpu
def test_levels_on_a_gpu_that_is_not_the_current_one() -> None:
    """What the host asks of arrays is computed where they lie, in order with what made them."""
    gpus = pytest.importorskip("gpus")
    device = gpus.names(2)[1]
    A = sg.generators.kronecker(9, 8, seed=1)
    values = np.random.default_rng(1).random(A.nvals)
    A = sg.Matrix.from_coo(*A.to_coo()[:2], values, nrows=A.nrows, ncols=A.nrows)
    sources = np.arange(0, A.nrows, 7)
    B = A.to(device)
    for _ in range(5):
        for found, right in zip(level_sums(B, sources), level_sums(A, sources), strict=True):
            np.testing.assert_array_equal(found, right)
        assert levels(B, sources).to("cpu").isequal(levels(A, sources))
        fresh = A.to(device)
        assert fresh._value_range() == A._value_range()
        assert np.isclose(fresh._sampled_mean(), A._sampled_mean())
