"""Aggregations over neighbours against loops over the entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401

import spgraph as sg
from spgraph.containers.storage.arrays import is_cuda, move
from spgraph.errors import BackendMismatch, DimensionMismatch, DomainMismatch

FOLDS: dict[str, Callable[..., Any]] = {"sum": np.sum, "max": np.max, "mean": np.mean}
TYPES = {"sum": {"bool": "int64"}, "max": {}, "mean": dict.fromkeys(("bool", "int16"), "float64")}


def graph(rows: int = 30, columns: int = 25) -> sg.Matrix:
    """Weights that must not count, some of them 0; rows without entries."""
    chance = np.random.default_rng(6)
    i, j = np.nonzero(chance.random((rows, columns)) < 0.15)
    keep = ~np.isin(i, [0, 11, rows - 1])
    weights = chance.integers(-1, 2, keep.sum())
    return sg.Matrix.from_coo(i[keep], j[keep], weights, nrows=rows, ncols=columns)


# each is compiled, but for the mean of real numbers, which is their sum's kernel
KINDS = [("sum", "float32"), ("sum", "bool"), ("max", "float64"), ("max", "int16")]
KINDS += [("mean", "float32"), ("mean", "int16")]


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param(name, dtype, marks=() if (name, dtype) in KINDS else pytest.mark.full)
        for name in FOLDS
        for dtype in ("float32", "float64", "int16", "bool")
    ],
)
@pytest.mark.parametrize("shards", [1, 3])
def test_against_loops(name: str, dtype: str, shards: int, device: str) -> None:
    A = graph()
    B = A.to(device) if shards == 1 else A.to(device).distribute(shards)
    X = np.random.default_rng(1).integers(-5, 5, (25, 6)).astype(dtype)
    for x in (X, X[:, :1], X[:, 0]):
        expected = np.zeros((30, *x.shape[1:]), TYPES[name].get(dtype, dtype))
        for i in range(30):
            neighbours = A.indices[A.indptr[i] : A.indptr[i + 1]]
            if neighbours.size:
                expected[i] = FOLDS[name](x[neighbours], axis=0)
        got = getattr(sg.agg, name)(B, move(x, A.to(device).device))
        assert is_cuda(got) == (device == "cuda")
        got = move(got, "cpu")
        assert got.dtype == expected.dtype and np.allclose(got, expected, rtol=1e-6)
        assert got.flags.writeable and not np.shares_memory(got, x)


def test_a_mean_of_large_integers() -> None:
    A = sg.Matrix.from_coo([0, 0], [0, 1], nrows=1, ncols=2)
    assert sg.agg.mean(A, np.full(2, 2**62)).tolist() == [2.0**62]


@pytest.mark.parametrize("width", [None, 1, 2, 20])
def test_nan_and_integers_that_wrap_around(width: int | None, device: str) -> None:
    A = sg.Matrix.from_coo([0, 0, 1], [0, 1, 1], nrows=3, ncols=2).to(device)

    def features(*values: float, kind: str) -> Any:
        x = np.array(values, kind)
        return move(x if width is None else np.repeat(x[:, None], width, axis=1), A.device)

    def column(found: Any) -> list[float]:
        found = move(found, "cpu").reshape(3, -1)
        assert (found == found[:, :1]).all()
        return found[:, 0].tolist()

    assert column(sg.agg.max(A, features(-2, np.nan, kind="float64"))) == [-2, -np.inf, 0]
    assert column(sg.agg.sum(A, features(100, 100, kind="int8"))) == [-56, 100, 0]
    assert column(sg.agg.mean(A, features(100, 100, kind="int8"))) == [100, 100, 0]


def test_what_stands_for_a_matrix() -> None:
    A, X = graph(), np.random.default_rng(1).random((25, 4))
    assert np.array_equal(sg.agg.mean(A.to_scipy(), X), sg.agg.mean(A, X))


@pytest.mark.parametrize("name", FOLDS)
def test_refused(name: str) -> None:
    aggregate = getattr(sg.agg, name)
    with pytest.raises(DomainMismatch, match=rf"agg.{name}: X: expected an array.*got list"):
        aggregate(graph(), [1.0] * 25)
    with pytest.raises(DomainMismatch, match=rf"agg.{name}: X: expected an array.*got Vector"):
        aggregate(graph(), sg.Vector.arange(25))
    with pytest.raises(DomainMismatch, match=rf"agg.{name}: X: dtype: .*got complex128"):
        aggregate(graph(), np.ones(25, complex))
    with pytest.raises(DimensionMismatch, match=rf"agg.{name}: X: expected .* 1 or 2 dimensions"):
        aggregate(graph(), np.ones((25, 2, 2)))
    with pytest.raises(DimensionMismatch, match=rf"agg.{name}: X.shape \(30,\) does not fit A.nc"):
        aggregate(graph(), np.ones(30))
    with pytest.raises(DomainMismatch, match=rf"agg.{name}: A: expected a Matrix.*got str"):
        aggregate("A", np.ones(30))


@pytest.mark.gpu
@pytest.mark.parametrize("name", FOLDS)
def test_features_on_another_device(name: str) -> None:
    with pytest.raises(BackendMismatch, match=rf"agg.{name}: X is an array on cpu"):
        getattr(sg.agg, name)(graph().to("cuda"), np.ones(25))
