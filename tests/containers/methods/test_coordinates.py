"""Matrices and Vectors from coordinates."""

from __future__ import annotations

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401

import spgraph as sg
from spgraph.containers import Matrix, Vector
from spgraph.errors import DimensionMismatch, DomainMismatch, IndexOutOfBound
from spgraph.semirings import BinaryOp, binary, monoid


def test_duplicates_need_an_operator() -> None:
    with pytest.raises(ValueError, match=r"position \(0, 1\) is given more than once.*dup_op"):
        Matrix.from_coo([0, 0], [1, 1], [2, 3])


@pytest.mark.parametrize(
    ("operator", "value"),
    [
        (binary.plus, 10),
        (monoid.min, 2),
        (binary.first, 5),
        (binary.second, 2),
        (binary.minus, 5 - 3 - 2),
        (BinaryOp.define(lambda x, y: 2 * x + y), 2 * (2 * 5 + 3) + 2),
    ],
    ids=["plus", "min", "first", "second", "minus", "user"],
)
def test_duplicates_are_folded_in_their_order(operator: object, value: int, device: str) -> None:
    A = Matrix.from_coo([1, 0, 1, 1], [2, 0, 2, 2], [5, 9, 3, 2], dup_op=operator, device=device)
    rows, columns, values = (a.tolist() for a in A.to("cpu").to_coo())
    assert (rows, columns, values) == ([0, 1], [0, 2], [9, value])
    v = Vector.from_coo([3, 0, 3, 3], [5, 9, 3, 2], size=4, dup_op=operator, device=device)
    assert v.to("cpu").to_numpy(fill=-1).tolist() == [9, -1, -1, value]


def test_a_scalar_makes_an_iso_matrix() -> None:
    A = Matrix.from_coo([0, 1, 0], [1, 0, 1])
    assert A.iso and A.dtype == np.bool_ and A.nvals == 2 and A.values.size == 1
    B = Matrix.from_coo([0], [1], 2.5)
    assert B.iso and B.expanded_values().tolist() == [2.5]
    assert Matrix.from_coo([], [], nrows=2, ncols=2).nvals == 0


def test_shape_is_the_least_that_fits_or_as_given() -> None:
    assert Matrix.from_coo([0, 4], [2, 1]).shape == (5, 3)
    assert Matrix.from_coo([0], [0], nrows=7, ncols=9).shape == (7, 9)
    with pytest.raises(IndexOutOfBound, match="rows: expected indices below nrows = 3, got 4"):
        Matrix.from_coo([0, 4], [2, 1], nrows=3)
    with pytest.raises(IndexOutOfBound, match="columns: expected indices >= 0, got -1"):
        Matrix.from_coo([0, 4], [2, -1])


def test_coordinates_of_the_wrong_kind() -> None:
    with pytest.raises(DomainMismatch, match="rows: expected integers, got float64"):
        Matrix.from_coo([0.5], [1])
    with pytest.raises(DimensionMismatch, match="columns: expected 2 indices"):
        Matrix.from_coo([0, 1], [1])
    with pytest.raises(DimensionMismatch, match="values: expected a scalar or 2 values"):
        Matrix.from_coo([0, 1], [1, 0], [1, 2, 3])
    with pytest.raises(ValueError, match="size: expected an integer >= 0, got -1"):
        Vector.from_coo([], [], size=-1)
    with pytest.raises(DomainMismatch, match="indices: expected 1 dimension"):
        Vector.from_coo([[0]], [1])


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_nan_where_an_integer_is_asked(wrong: float) -> None:
    for values in ([1.0, wrong], wrong):
        with pytest.raises(ValueError, match="values: expected numbers that int32 holds, got"):
            Vector.from_coo([0, 1], values, dtype="int32")
        with pytest.raises(ValueError, match="values: expected numbers that int32 holds, got"):
            Matrix.from_coo([0, 1], [1, 0], values, dtype="int32")
    assert Vector.from_coo([0, 1], [1.0, 2.0], dtype="int32").dtype == np.int32


def test_ids_beyond_64_bits_are_refused() -> None:
    with pytest.raises(IndexOutOfBound, match="indices: expected indices below"):
        Vector.from_coo(np.array([2**64 - 1], np.uint64), [1])
    with pytest.raises(ValueError, match="nrows \\* ncols"):
        Matrix.from_coo([2**40], [2**40])


@pytest.mark.parametrize(
    "kind", ["i1", "i2", "i4", "i8", ">i4", ">i8", "u1", "u2", "u4", "u8", ">u8"]
)
def test_ids_of_every_type_are_checked(kind: str) -> None:
    made = np.array([9, 127, 1, 9, 7, 1], kind)
    for ids in (made[:3], made[::2]):  # one of them with a step
        if kind[-2] == "i":
            wrong = ids.copy()
            wrong[2] = least = np.iinfo(kind).min
            with pytest.raises(IndexOutOfBound, match=f"indices: expected .* >= 0, got {least}$"):
                Vector.from_coo(wrong, 1)
        assert Vector.from_coo(ids, 1, dup_op="plus").size == int(ids.max()) + 1
        with pytest.raises(IndexOutOfBound, match=f"expected .* nrows = 5, got {ids.max()}$"):
            Matrix.from_coo(ids, ids, nrows=5, dup_op="any")


def test_index_types_stay_as_they_came() -> None:
    indptr, indices = np.array([0, 1, 2], np.int64), np.array([1, 0], np.int32)
    A = Matrix._of(2, 2, indptr, indices, np.ones(2))
    assert A.T.nvals == 2 and A.is_symmetric()
    assert A.indptr.dtype == np.int64 and A.indices.dtype == np.int32


def test_from_coo_counts_repeats_of_a_scalar() -> None:
    A = sg.Matrix.from_coo([0, 0, 1], [1, 1, 0], 1, dup_op=binary.plus)
    assert A.to_scipy().toarray().tolist() == [[0, 2], [1, 0]]


def test_from_coo_never_keeps_the_callers_indices() -> None:
    ids = np.array([2, 5], np.int32)
    v = sg.Vector.from_coo(ids, [1, 2], size=1000)
    ids[0] = 7
    assert v.to_coo()[0].tolist() == [2, 5]
