"""Python's operators, indices and iteration of containers, beside what NumPy gives."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import spgraph as sg
from spgraph.errors import DimensionMismatch, DomainMismatch, IndexOutOfBound

X = np.array([[0, 4, 9, 0], [0, 0, -3, 5], [2, 0, 0, 7]])
STORED = X != 0


def containers(dtype: str) -> list[Any]:
    A = sg.Matrix(X.astype(dtype))
    return [A, A.T.dup().T, A.distribute(2)]


def entries(found: Any) -> np.ndarray:
    found = found if isinstance(found.device, str) else found.gather()
    assert np.array_equal(found.row_indices(), STORED.nonzero()[0])
    return found.expanded_values()


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("dtype", ["int64", "float64"])
@pytest.mark.filterwarnings("ignore:(divide|invalid):RuntimeWarning")
def test_operators_of_numbers_and_arrays(name: str, dtype: str) -> None:
    f, x = OPERATORS[name], X.astype(dtype)[STORED]
    row = np.array([1, 2, 3, 4], dtype)
    for A in containers(dtype):
        for n in (2, 3.5) if dtype == "float64" else (2, np.int8(3)):
            found = f(A, n)
            assert found.dtype == f(x, n).dtype and np.allclose(
                entries(found), f(x, n), equal_nan=1
            )
            if not (name == "**" and dtype == "int64" and isinstance(n, int | np.int8)):
                assert np.allclose(entries(f(n, A)), f(n, x), equal_nan=True)
        if not isinstance(A.device, str):
            continue
        beside = np.broadcast_to(row, X.shape)[STORED]
        assert np.allclose(entries(f(A, row)), f(x, beside), equal_nan=True)
        if not (name == "**" and dtype == "int64"):
            assert np.allclose(entries(f(row, A)), f(beside, x), equal_nan=True)
        if dtype == "int64":  # of both kinds no more than what compiles
            assert np.allclose(entries(f(A, abs(A))), f(x, abs(x)), equal_nan=True)


def test_both_parts_of_a_division() -> None:
    x = X[STORED]
    for A in containers("int64"):
        for found, expected in (
            (divmod(A, 4), divmod(x, 4)),
            (divmod(7, A), divmod(7, x)),
            (divmod(A, A), divmod(x, x)),
        ):
            assert [entries(part).tolist() for part in found] == [y.tolist() for y in expected]
    A = containers("int64")[0]
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        assert entries(A // 0).tolist() == [0] * 6
    A //= 2
    assert entries(A).tolist() == (x // 2).tolist()


@pytest.mark.parametrize("dtype", ["int64", "bool"])
def test_integers_to_negative_powers(dtype: str) -> None:
    positive = np.abs(X).astype(dtype)
    for A in (sg.Matrix(positive), sg.Matrix(positive).distribute(2)):
        for base, power in ((A, -1), (A, np.int8(-2)), (2, -A.astype("int8"))):
            with pytest.raises(ValueError, match=r"\*\*: expected integers to powers >= 0, got -"):
                base**power
        assert np.allclose(entries(A**-1.0), positive[STORED] ** -1.0)
        assert np.allclose(entries(A.astype(float) ** -1), 1 / positive[STORED].astype(float))
        assert entries(2**A).tolist() == (2 ** positive[STORED]).tolist()
    A = sg.Matrix(positive)
    with pytest.raises(ValueError, match=r"powers >= 0, got -[91];"):
        A ** -(A.astype("int64"))
    assert sg.apply(sg.Vector([1, 4]), "pow", right=-1).to_numpy().tolist() == [1, 0]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64"])
def test_what_stands_before_one_container(dtype: str) -> None:
    x = X.astype(dtype)[STORED]
    for A in containers(dtype):
        assert entries(~A).tolist() == (~x).tolist() and (~A).dtype == dtype
        assert entries(+A).tolist() == x.tolist() and +A is not A
        assert entries(abs(A)).tolist() == abs(x).tolist()
        assert entries(round(A)).tolist() == x.tolist() == entries(round(A, 1)).tolist()
    with pytest.raises(DomainMismatch):
        ~sg.Vector([1.5])


def test_rounding() -> None:
    v = sg.Vector.from_coo([1, 3], [2.55, -1.4], size=5)
    assert [value for _, value in round(v, 1)] == np.round([2.55, -1.4], 1).tolist()
    assert [value for _, value in round(v)] == [3.0, -1.0] and round(v).dtype == np.float64


def test_logical_operators_on_either_side() -> None:
    A, B = sg.Matrix([[1, 0], [2, 3]]), sg.Matrix([[0, 4], [5, 0]])
    assert (A ^ B).to_dense(False).tolist() == [[True, True], [False, True]]
    assert (A ^ B).isequal(np.logical_xor(A, B)) and (A ^ B).dtype == bool
    for f in (operator.and_, operator.or_, operator.xor):
        assert f(True, A).isequal(f(A, True)) and f(True, A).dtype == bool
    assert entries_of(A ^ True) == [False, False, False] and entries_of(A ^ 0) == [True, True, True]


def entries_of(A: sg.Matrix) -> list[Any]:
    return A.expanded_values().tolist()


def test_a_vector_of_more_positions_than_memory_is_iterated() -> None:
    v = sg.Vector.from_coo([5, 2**40], [1.5, 2.5], size=2**62)
    assert list(v) == [(5, 1.5), (2**40, 2.5)] == sorted(v) == [*v]
    assert dict(v) == {5: 1.5, 2**40: 2.5} and v.size == 2**62
    with pytest.raises(TypeError, match=r"len: expected .* less than 2\*\*31 positions.*\.size"):
        len(v)
    assert len(sg.Vector.empty(2**31 - 1)) == 2**31 - 1
    A = sg.Matrix.from_coo([0, 1], [2**40, 3], [7, 8])
    assert list(A) == [(0, 2**40, 7), (1, 3, 8)]


def test_entries_are_made_piece_by_piece() -> None:
    v = sg.Vector.arange(200_001)
    seen = iter(v)
    assert next(seen) == (0, 0) and sum(value for _, value in seen) == 200_000 * 200_001 // 2
    assert list(sg.Vector.empty(3)) == [] == list(sg.Matrix.empty(2, 2))


def test_positions() -> None:
    v, A = sg.Vector([5, 6, 7, 8]), sg.Matrix(X)
    x = v.to_numpy()
    one: list[Any] = [np.array(1), np.array(-1), np.int8(2), (3,), (np.array(2),)]
    for key in one:
        assert v[key] == x[key] and np.ndim(v[key]) == 0
    for key in (..., (...,), (slice(1, 3),)):
        assert v[key].to_numpy().tolist() == x[key].tolist()
    assert v[range(1, 3)].to_numpy().tolist() == [6, 7]
    assert v[np.array([2, 0], object)].to_numpy().tolist() == [7, 5]
    assert A[np.array(2), np.array(3)] == 7 and A[..., 2].toarray().tolist() == X[:, 2].tolist()
    assert A[...].isequal(A) and A[1, ...].isequal(A[1]) and A[(1,)].isequal(A[1])
    assert A[np.array([2, 0], object)].isequal(A[[2, 0]])
    for key in (np.array([2**70], object), np.array([9], object)):
        with pytest.raises(IndexOutOfBound, match=r"expected 0 <= index < 4, got (1180|9)"):
            v[key]
    for key in (np.array([0.5], object), np.array(["a"], object), 1.0, np.array([1.0]), "a"):
        with pytest.raises(DomainMismatch, match="extract: indices: expected"):
            v[key]


def test_writing() -> None:
    sparse = scipy.sparse.coo_array([1, 0, 3, 4])
    for w in (sg.Vector([5, 6, 7, 8]), sg.Vector.empty(4, int), sg.Vector([1, 2, 3, 4])):
        w[:] = sparse
        assert list(w) == [(0, 1), (2, 3), (3, 4)]
        w[...] = (4, 3, 2, 1)
        assert w.to_numpy().tolist() == [4, 3, 2, 1]
        w[np.array(1)] = 9
        w[1:3] = range(2)
        w[np.array([3, 0], object)] = scipy.sparse.coo_array([6, 5])
        assert w.to_numpy().tolist() == [5, 0, 1, 6]
    A = sg.Matrix(X)
    A[0] = sparse
    A[:, 0] = scipy.sparse.coo_array([0, 8, 0])
    A[np.array(2), np.array(3)] = -1
    assert A.toarray().tolist() == [[0, 0, 3, 4], [8, 0, -3, 5], [0, 0, 0, -1]]
    v = sg.Vector(np.array([1, 2], np.uint8))
    v[[]] = []
    assert v.to_numpy().tolist() == [1, 2]
    v[:] = [3, 255]
    assert v.to_numpy().tolist() == [3, 255]
    for wrong, error in (
        ([3, -1], DomainMismatch),
        ([3, 256], OverflowError),
        ([1.5, 2], DomainMismatch),
    ):
        with pytest.raises(error):
            v[:] = wrong
    assert A.nvals == 6  # a position that the sparse array leaves out is emptied
    with pytest.raises(DimensionMismatch, match="assign: value.size 4 != the number of indices 3"):
        sg.Vector([1, 2, 3])[:] = sparse
    B = sg.Matrix(X).distribute(2)
    B[0] = sparse
    assert B.gather()[0].toarray().tolist() == [1, 0, 3, 4]
    u = B.row_degrees()
    u[:] = scipy.sparse.coo_array(np.array([1, 0, 3], u.dtype))
    assert list(u.gather()) == [(0, 1), (2, 3)]


@pytest.mark.gpu
def test_on_a_gpu() -> None:
    import cupy

    A, x = sg.Matrix(X).to("cuda"), X[STORED]
    for f in (operator.floordiv, operator.mod, divmod):
        for n in (3, -2, 2.5):
            found, expected = f(A, n), f(x, n)
            pairs = zip(found, expected, strict=True) if f is divmod else [(found, expected)]
            for part, y in pairs:
                assert np.allclose(entries(part.to("cpu")), y)
    assert entries((A // 0).to("cpu")).tolist() == [0] * 6
    assert np.allclose(entries((A % abs(A)).to("cpu")), x % abs(x))
    assert entries((2 ** abs(A)).to("cpu")).tolist() == (2 ** abs(x)).tolist()
    with pytest.raises(ValueError, match=r"powers >= 0, got -3"):
        2**A
    assert entries((~A).to("cpu")).tolist() == (~x).tolist()
    assert entries(round(A.astype(float), 1).to("cpu")).tolist() == x.tolist()
    v = sg.Vector(cupy.asarray([5, 6, 7]))
    assert v[cupy.asarray(1)] == 6 and list(v) == [(0, 5), (1, 6), (2, 7)]
    v[...] = (1, 2, 3)
    assert v.to("cpu").to_numpy().tolist() == [1, 2, 3]


@pytest.mark.gpu
def test_on_a_gpu_that_is_not_the_current_one() -> None:
    import cupy
    import gpus

    _, second = gpus.names(2)
    A, x = sg.Matrix(X).to(second), gpus.place(1, np.array([1, 2, 3, 4]))
    with cupy.cuda.Device(0):
        flags = gpus.place(1, np.array([True, False, True, False]))
        v = sg.Vector(x)
        for found, expected in (
            (A // 2, X // 2),
            (A % x, X % np.array([1, 2, 3, 4])),
            (round(A), X),
            (A[:, flags], X[:, [0, 2]]),
        ):
            assert found.device == second
            assert found.to("cpu").toarray().tolist() == expected.tolist()
        assert v[flags].to("cpu").toarray().tolist() == [1, 0, 3, 0][::2]
        assert (v @ x) == 30 and v.dot(x) == 30
        assert A.dot(x).get().tolist() == (X @ [1, 2, 3, 4]).tolist()
