"""The power iteration in one launch on a GPU: graphs of millions of entries, rows in pieces."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import spgraph as sg

pytestmark = pytest.mark.gpu
on_cuda = importlib.import_module("spgraph.backends.cuda.power.power")


def hub(n: int) -> sg.Matrix:
    """A vertex with an edge to all others, which are on a path."""
    at = np.arange(1, n)
    rows, columns = np.r_[np.zeros(n - 1, int), at[:-1]], np.r_[at, at[1:]]
    both = np.r_[rows, columns], np.r_[columns, rows]
    return sg.Matrix.from_coo(*both, nrows=n, ncols=n, symmetric=True).pattern()


@pytest.mark.parametrize("name", ["kronecker", "hub", "uniform"])
def test_one_launch_equals_launches_for_every_step(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    A = {
        "kronecker": lambda: sg.generators.kronecker(16, 32, seed=3),
        "hub": lambda: hub(1_000_000),
        "uniform": lambda: sg.generators.uniform_random(1 << 18, 8, seed=3),
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
