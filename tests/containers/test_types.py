"""The types of values: explicit conversion. NumPy is the oracle."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401

import spgraph as sg
from spgraph.semirings.functions import TYPES

PAIRS = list(itertools.product(TYPES, TYPES))


def edges_of(dtype: np.dtype) -> np.ndarray:
    """Values of a type that others may not hold."""
    if dtype.kind == "f":
        return np.array([0, 1, -1, 1.5, -2.7, 100, 100.5], dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    info = np.iinfo(dtype)
    return np.array([0, 1, info.min, info.max, info.max // 2 + 1, info.min // 2], dtype)


@pytest.mark.parametrize(("before", "after"), PAIRS, ids=lambda dtype: dtype.name)
def test_astype_is_numpys(before: np.dtype, after: np.dtype, device: str) -> None:
    values = edges_of(before)
    if before.kind == "f" and after.kind == "u":
        values = abs(values)  # a negative float has no meaning there
    expected = values.astype(after)
    v = sg.Vector.from_dense(values).to(device)
    made = v.astype(after)
    assert made.dtype == after and np.array_equal(made.to_numpy(), expected)
    w = sg.Vector.from_coo(np.arange(values.size) * 3, values).to(device)
    assert w.to_bitmap().astype(after).isequal(w.to_sparse().astype(after), check_dtype=True)
    A = sg.Matrix.from_coo(np.arange(values.size), np.arange(values.size)[::-1], values).to(device)
    assert A.astype(after).dtype == after
    assert np.array_equal(A.astype(after).to("cpu").values, expected)
    assert A.T.astype(after).isequal(A.astype(after).T, check_dtype=True)
    if device == "cpu":
        for shards in (1, 3):
            assert A.distribute(shards).astype(after).gather().isequal(A.astype(after))
            spread = v.to(A.distribute(shards).device).astype(after)
            assert spread.gather().isequal(made, check_dtype=True)
    assert np.array_equal(A.to("cpu").values, values) and np.array_equal(v.to_numpy(), values)


def test_astype_shares_no_values_and_asks_about_symmetry_again(device: str) -> None:
    A = sg.Matrix.from_coo([0, 1], [1, 0], [1.25, 1.5]).to(device)
    assert not A.is_symmetric()
    G = A.distribute(2, devices=device)
    assert not G.is_symmetric()
    for B in (A, G):
        assert B.astype(np.int8).is_symmetric() and B.dup(np.int8).is_symmetric()
        assert B.pattern().is_symmetric() and not B.dup().is_symmetric()
        assert not B.astype(np.float64).is_symmetric()
    B, v = A.astype(np.float64), sg.Vector.from_dense([1.0, 2.0]).to(device)
    B._values[:] = 7
    v.astype(np.float64)[0] = 7.0
    assert A[0, 1] == 1.25 and v[0] == 1
    iso = sg.Matrix.from_coo([0, 1], [1, 0], symmetric=True).to(device)
    assert iso.astype("int64").iso and iso.astype("int64").symmetric


def test_astype_refuses_types_without_a_domain() -> None:
    v = sg.Vector.from_dense([1])
    for dtype in (np.complex128, np.float16, object, "U1"):
        for made in (v, sg.Matrix.from_dense([[1]])):
            with pytest.raises(sg.errors.DomainMismatch, match="dtype: expected bool"):
                made.astype(dtype)


def extreme(dtype: np.dtype) -> int | float:
    """A value of a type that no narrower one holds."""
    if dtype.kind == "f":
        return dtype.type(1 + np.finfo(dtype).eps).item()
    return True if dtype.kind == "b" else int(np.iinfo(dtype).max)


@pytest.mark.parametrize(
    ("inside", "outside"),
    [pair for pair in PAIRS if np.can_cast(*pair, "same_kind")],
    ids=lambda dtype: dtype.name,
)
@pytest.mark.parametrize("shards", [0, 2])
def test_assign_leaves_what_is_outside_of_the_region(
    inside: np.dtype, outside: np.dtype, shards: int, device: str
) -> None:
    """The value has an empty position and another type."""
    kept = extreme(outside)
    W = sg.Matrix.from_coo([0, 0, 1, 1], [0, 1, 0, 1], np.full(4, kept, outside)).to(device)
    W = W.distribute(shards, devices=device) if shards else W
    row = sg.Vector.from_coo([0], np.ones(1, inside), size=2).to(W.device)
    block = sg.Matrix.from_coo([0], [0], np.ones(1, inside), nrows=1, ncols=2).to(W.device)
    for at, value in (((0, None), row), ((None, 0), row), (([0], None), block)):
        w = sg.assign(W.dup(), value, *at)
        expected = dict.fromkeys([(0, 0), (0, 1), (1, 0), (1, 1)], kept)
        expected[0, 0] = 1
        del expected[(1, 0) if at == (None, 0) else (0, 1)]
        assert w.dtype == outside
        assert {(i, j): x for i, j, x in w.to("cpu")} == expected
