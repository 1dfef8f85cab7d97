"""The CUDA loop `dependencies` without a GPU: its host code on NumPy arrays, its kernels under the
shim.
"""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import cuda_host_shim
import numpy as np
import pytest
from dependencies_cases import by_loops, dense, matrix, same, some_sources, two

import spgraph as sg
from spgraph.backends import cuda
from spgraph.iterations import path_dependencies as loops
from spgraph.iterations.path_dependencies import dependencies, levels

shim = pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")

COVER = ("one", "loop", "path", "star both", "two components", "sparse directed", "grid", "rmat 8")


@pytest.fixture
def on_the_shim(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The module of the CUDA backend, with small blocks; levels come from the CPU."""
    cuda_host_shim.install(monkeypatch)
    host = importlib.import_module("spgraph.backends.cuda.dependencies.dependencies")
    device_jit = importlib.import_module("spgraph.backends.cuda.runtime.jit")
    monkeypatch.setattr(device_jit, "current_device", lambda: 0)
    monkeypatch.setattr(device_jit, "multiprocessors", lambda device: 2)
    monkeypatch.setattr(host, "THREADS", 64)
    monkeypatch.setattr(host, "SOURCE_THREADS", 32)
    on_cpu = importlib.import_module("spgraph.backends.cpu.dependencies.dependencies")
    monkeypatch.setattr(host, "_levels_from", on_cpu._levels_from)
    monkeypatch.setattr(loops, "backend", lambda device: cuda)
    return host


def define(monkeypatch: pytest.MonkeyPatch, **constants: int) -> None:
    """Let the kernels decide by other thresholds."""
    device_jit = importlib.import_module("spgraph.backends.cuda.runtime.jit")
    text = "".join(f"#define {name} {value}\n" for name, value in constants.items())

    def kernel(stem: str, name: str, preamble: str, *, cooperative: bool = False) -> Any:
        return cuda_host_shim.kernel(stem, name, text + preamble, cooperative)

    monkeypatch.setattr(device_jit, "kernel", kernel)


def by_levels(
    host: Any,
    A: sg.Matrix,
    sources: np.ndarray,
    level: sg.Vector | None,
    score: np.ndarray,
    extended: bool,
) -> np.ndarray:
    """The sources that all blocks have left, one after the other."""
    found = host._found(A, A.T, sources, level)
    left: np.ndarray = host._level_parallel(
        A, A.T, sources, found, level is not None, score, extended
    )
    return left


@shim
@pytest.mark.parametrize(
    ("small", "middle", "extended"),
    [(40, 40, False), (0, 0, False), (8, 80, False), (40, 40, True)],
)
def test_all_blocks_on_one_source(
    small: int, middle: int, extended: bool, on_the_shim: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(monkeypatch, SMALL_EDGES=small, MIDDLE_EDGES=middle)
    for name in (*COVER, "rmat 10") if small == 40 else COVER:
        A = matrix(name)
        sources = some_sources(A.nrows, 2).astype(np.int64)
        score = np.zeros(A.nrows)
        assert not by_levels(on_the_shim, A, sources, None, score, extended).size
        expected, rows = by_loops(name, tuple(sources.tolist()))
        np.testing.assert_allclose(score, expected, rtol=1e-10, err_msg=name)
        i, j, _ = A.to_coo()
        kept = (rows[0][i] >= 0) & (rows[0][i] + 1 == rows[0][j])
        D = sg.Matrix.from_coo(i[kept], j[kept], nrows=A.nrows, ncols=A.ncols)
        level, along = sg.Vector.from_dense(rows[0], missing=-1), np.zeros(A.nrows)
        by_levels(on_the_shim, D, sources[:1], level, along, extended)
        np.testing.assert_allclose(
            along, by_loops(name, (int(sources[0]),))[0], rtol=1e-10, err_msg=name
        )


@shim
@pytest.mark.parametrize("extended", [False, True])
def test_a_block_a_source(extended: bool, on_the_shim: Any) -> None:
    for name in (*COVER, "acyclic", "rmat 10"):
        A = matrix(name)
        sources = some_sources(A.nrows, 3).astype(np.int64)
        score = np.zeros(A.nrows)
        assert not on_the_shim._source_parallel(A, A.T, sources, score, extended).size
        expected, rows = by_loops(name, tuple(sources.tolist()))
        np.testing.assert_allclose(score, expected, rtol=1e-10, err_msg=name)
        np.testing.assert_array_equal(cuda.levels(A, A.T, sources), rows)


@shim
@pytest.mark.parametrize("extended", [False, True])
def test_a_block_forgets_what_a_source_has_reached(extended: bool, on_the_shim: Any) -> None:
    """Sources that reach little, by the list of it, and others, with all vertices, in turn."""
    path, clique = np.arange(9), np.arange(100, 140)
    i = np.concatenate([*(path[:-1] + 10 * k for k in range(10)), np.repeat(clique, 40)])
    j = np.concatenate([*(path[1:] + 10 * k for k in range(10)), np.tile(clique, 40)])
    A = sg.Matrix.from_coo(i, j, nrows=140, ncols=140)
    sources = np.random.default_rng(1).permutation(140)
    score = np.zeros(140)
    assert not on_the_shim._source_parallel(A, A.T, sources, score, extended).size
    before = path * (8.0 - path)  # of a path: how many lead to a vertex times how many it leads to
    expected = np.zeros(140)
    expected[:100].reshape(10, 10)[:, :9] = before
    np.testing.assert_allclose(score, expected, rtol=1e-10)
    assert 8 * path.size < A.nrows < 8 * clique.size


@shim
def test_too_many_paths_are_noticed(on_the_shim: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources are done again with exponents where paths are more than a number made small here."""
    define(monkeypatch, MOST=50)
    sources = [0, 110]
    expected = by_loops("grid", tuple(sources))[0]
    for pays in (True, False):
        monkeypatch.setattr(on_the_shim, "source_parallel_pays", lambda *arguments, pays=pays: pays)
        same(dependencies(matrix("grid"), sources), expected)


@shim
def test_levels_are_found_once(on_the_shim: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a source that is done again with exponents, too."""
    define(monkeypatch, MOST=50)
    search, sought = on_the_shim._levels_from, []
    monkeypatch.setattr(on_the_shim, "source_parallel_pays", lambda *arguments: False)
    monkeypatch.setattr(
        on_the_shim, "_levels_from", lambda A, T, v: (sought.append(v), search(A, T, v))[1]
    )
    same(dependencies(matrix("grid"), [110]), by_loops("grid", (110,))[0])
    assert sought == [110]


@shim
def test_one_device_stepwise(on_the_shim: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a source of many levels on all is left to other forms; so is one of too many paths."""
    steps = importlib.import_module("spgraph.backends.cuda.dependencies.dependencies_shard")
    monkeypatch.setattr(steps, "THREADS", 64)

    def check(name: str, sources: list[int], done: list[int], few: int) -> None:
        monkeypatch.setattr(steps, "FEW", few)
        A, score = matrix(name), np.zeros(matrix(name).nrows)
        left = on_the_shim._stepwise(A, A.T, np.array(sources), score)
        assert sorted([*left.tolist(), *done]) == sorted(sources)
        np.testing.assert_allclose(score, by_loops(name, tuple(done))[0], rtol=1e-10)

    for name in ("rmat 8", "sparse directed"):
        check(name, two(name), two(name), 64)
    check("two components", [10, 3, 10], [10], 5)
    check("layers", [2000, 0], [2000], 1000)
    monkeypatch.setattr(on_the_shim, "LARGE", 0)
    monkeypatch.setattr(on_the_shim, "source_parallel_pays", lambda *arguments: False)
    same(dependencies(matrix("grid"), two("grid")), by_loops("grid", tuple(two("grid")))[0])


@shim
def test_exponents(on_the_shim: Any) -> None:
    A, score = matrix("braid"), np.zeros(matrix("braid").nrows)
    on_the_shim._source_parallel(A, A.T, np.array([3]), score, True)
    np.testing.assert_allclose(score, by_loops("braid", (3,))[0], rtol=1e-10)


@shim
def test_wide_indices(on_the_shim: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    A = matrix("acyclic")
    arrays = A.indptr.astype(np.int64), A.indices.astype(np.int64), A.values
    B = sg.Matrix._of(*A.shape, *arrays, iso=A.iso)
    sources = some_sources(A.nrows, 2)
    expected = by_loops("acyclic", tuple(sources.tolist()))[0]
    same(dependencies(B, sources), expected)
    monkeypatch.setattr(on_the_shim, "source_parallel_pays", lambda *arguments: False)
    same(dependencies(B, sources), expected)


@pytest.mark.full  # a search of its own is compiled for it
@shim
def test_a_real_search(monkeypatch: pytest.MonkeyPatch) -> None:
    host = importlib.import_module("spgraph.backends.cuda.dependencies.dependencies")
    A = matrix("acyclic")
    sources = some_sources(A.nrows, 1)
    cuda_host_shim.install(monkeypatch)
    device_jit = importlib.import_module("spgraph.backends.cuda.runtime.jit")
    monkeypatch.setattr(device_jit, "current_device", lambda: 0)
    monkeypatch.setattr(loops, "backend", lambda device: cuda)
    monkeypatch.setattr(host, "source_parallel_pays", lambda *arguments: False)
    rows = by_loops("acyclic", tuple(sources.tolist()))[1]
    np.testing.assert_array_equal(dense(levels(A, sources)), rows)
