"""Tiles on a GPU, where their copies are bulk ones: products equal those of plain rows. The power
iteration in one launch equals that in launches for every step.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import spgraph as sg
from spgraph import semirings
from spgraph.algorithms import pagerank
from spgraph.backends import cuda
from spgraph.backends.cuda.products import tiles, tiles_build
from spgraph.backends.cuda.runtime import jit
from spgraph.containers.storage.arrays import array_module

pytestmark = pytest.mark.gpu
on_cuda = importlib.import_module("spgraph.backends.cuda.power.power")
CASES = [
    ("plus_second", "float32", True, False),
    ("plus_second", "float64", True, False),
    ("plus_times", "float32", False, True),
    ("plus_times", "float64", False, False),
    ("plus_times", "int64", False, False),
    ("min_plus", "float32", False, False),
    ("min_plus", "float64", False, True),
    ("max_minus", "int8", False, True),
]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small matrices are cut into tiles, with pieces of rows, several ranges of columns, and, if
    they are square, two batches of rows.
    """
    small = {"ENTRIES": 1, "COLUMNS": 1, "PIECE": 64, "RANGE": 1 << 14, "SHORT": 4}
    for name, value in {**small, "SUMS": (0.05, 0.1)}.items():
        monkeypatch.setattr(tiles_build, name, value)
    monkeypatch.setattr(tiles_build, "sectors", lambda *arguments: (2.0, 1.0))
    monkeypatch.setattr(jit, "shared_memory", lambda device: 40_000)


def graph(part: int, dtype: str, iso: bool) -> sg.Matrix:
    """The first 1 / part of the rows of a Kronecker graph, with values 1 to 9."""
    A = sg.generators.kronecker(17, 16, seed=1, device="cuda")
    rows, xp = A.nrows // part, array_module(A.indptr)
    indptr = A.indptr[: rows + 1].copy()
    m = int(indptr[-1])
    values = (xp.arange(1 if iso else m) * 7919 % 9 + 1).astype(dtype)
    return sg.Matrix._of(rows, A.ncols, indptr, A.indices[:m].copy(), values, iso=iso)


@pytest.mark.parametrize(("semiring", "dtype", "iso", "flip"), CASES)
@pytest.mark.parametrize("part", [1, 4])
def test_products_equal_those_of_plain_rows(
    semiring: str, dtype: str, iso: bool, flip: bool, part: int
) -> None:
    A = graph(part, dtype, iso)
    xp = array_module(A.indptr)
    u = sg.Vector.from_dense((xp.arange(A.ncols) * 104729 % 10).astype(dtype))
    typed = getattr(semirings, semiring).resolve(u.dtype, u.dtype)
    plain = cuda.pull(A, u, typed, None, flip)
    made: Any = tiles.prepare(A)
    first = made.batches[0]
    assert first.number > 1 and first.split > 0 and made.rest.slices > 0
    assert len(made.batches) == (2 if part == 1 else 1) and made.renumbered == (part == 1)
    # whole numbers: sums are exact in any order
    assert cuda.pull(A, u, typed, None, flip).isequal(plain)


def test_sums_are_the_same_each_time() -> None:
    A = graph(1, "float32", True)
    xp = array_module(A.indptr)
    u = sg.Vector.from_dense(xp.sqrt(xp.arange(A.ncols, dtype=np.float32)))
    typed = semirings.plus_second.resolve(u.dtype, u.dtype)
    assert tiles.prepare(A) is not None
    first = cuda.pull(A, u, typed, None, False)
    for _ in range(20):
        assert cuda.pull(A, u, typed, None, False).isequal(first)


@pytest.mark.parametrize("symmetric", [True, False])
def test_pagerank(symmetric: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_cuda, "LARGE", 0)
    A = sg.generators.kronecker(17, 16, seed=1, symmetric=symmetric, device="cuda")
    A.T._derived["shared_tiles"] = None
    plain = pagerank(A, tol=None, max_iter=20)
    del A.T._derived["shared_tiles"]
    tiled = pagerank(A, tol=None, max_iter=20)
    assert A.T._derived["shared_tiles"] is not None
    np.testing.assert_allclose(tiled.to_numpy(), plain.to_numpy(), rtol=1e-6)


def hub(n: int) -> sg.Matrix:
    """A vertex with an edge to all others, which are on a path."""
    at = np.arange(1, n)
    rows, columns = np.r_[np.zeros(n - 1, int), at[:-1]], np.r_[at, at[1:]]
    both = np.r_[rows, columns], np.r_[columns, rows]
    return sg.Matrix.from_coo(*both, nrows=n, ncols=n, symmetric=True).pattern()


@pytest.mark.parametrize("name", ["kronecker", "hub", "uniform", "grid"])
def test_one_launch_equals_launches_for_every_step(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    A = {
        "kronecker": lambda: sg.generators.kronecker(16, 32, seed=3),
        "hub": lambda: hub(1_000_000),
        "uniform": lambda: sg.generators.uniform_random(1 << 18, 8, seed=3),
        "grid": lambda: sg.generators.grid(300, 400),  # without hubs
    }[name]().to("cuda")
    W = sg.Matrix._of(*A.shape, A.indptr, A.indices, (A.indices % 7 + 1).astype(np.float32))
    asked: list[dict[str, Any]] = [{"tol": None, "max_iter": 9}, {"tol": 1e-9, "max_iter": 500}]
    for options in asked:
        for M, weighted in ((A, False), (W, True)):
            monkeypatch.setattr(on_cuda, "LARGE", 1 << 62)
            one, again = (sg.pagerank(M, weighted=weighted, **options) for _ in range(2))
            assert one.isequal(again)
            monkeypatch.setattr(on_cuda, "LARGE", 0)
            many = sg.pagerank(M, weighted=weighted, **options)
            np.testing.assert_allclose(one.to_numpy(), many.to_numpy(), rtol=1e-6, atol=1e-9)
    monkeypatch.setattr(on_cuda, "LARGE", 1 << 62)
    one = sg.hits(A, tol=None, max_iter=9)
    monkeypatch.setattr(on_cuda, "LARGE", 0)
    many = sg.hits(A, tol=None, max_iter=9)
    for a, b in zip(one, many, strict=True):
        np.testing.assert_allclose(a.to_numpy(), b.to_numpy(), rtol=1e-9)
