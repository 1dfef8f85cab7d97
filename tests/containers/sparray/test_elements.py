"""multiply, power, dot, conj, diagonal, setdiag, nonzero beside those of SciPy's sparse arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from scipy_sparse_cases import TYPES, assert_same, assert_same_outcome, random_coo, random_csr

import spgraph as sg
from spgraph.errors import BackendMismatch, DimensionMismatch, DomainMismatch

pytestmark = [
    pytest.mark.filterwarnings("ignore:(invalid|overflow|divide):RuntimeWarning"),
]


@pytest.mark.parametrize("dtype", TYPES)
def test_multiply_by_a_number_and_power(dtype: str) -> None:
    S, T = random_csr(dtype, (5, 4), 0.6, 1), random_coo(dtype, 9, 0.6, 1)
    numbers: tuple[Any, ...] = (2, -1, 0, 0.5, True, np.float32(3), np.int64(2), np.array(2), "a")
    for ours, theirs in ((sg.Matrix(S), S), (sg.Vector(T), T)):
        for n in numbers:
            assert_same_outcome(ours, theirs, "multiply", n)
            assert_same_outcome(ours, theirs, "power", n)
        assert_same(ours.power(2, dtype="float64"), theirs.power(2, dtype="float64"))
        assert_same_outcome(ours, theirs, "power", [1])
        assert_same(ours.conj(), theirs.conj())
        assert ours.conj() is not ours and ours.conj(copy=False) is ours
        assert_same(ours.nonzero(), theirs.nonzero())


SHAPES = ((5, 4), (1, 4), (5, 1), (1, 1), (4, 5))


@pytest.mark.parametrize("kind", ["sparse", "array", "matrix of ours"])
@pytest.mark.parametrize("shape", SHAPES)
def test_multiply_broadcasts(kind: str, shape: tuple[int, int]) -> None:
    for own in SHAPES:
        S, T = random_csr("float64", own, 0.6, 1), random_csr("float64", shape, 0.6, 2)
        given = {"sparse": T, "array": T.toarray(), "matrix of ours": sg.Matrix(T)}[kind]
        assert_same_outcome(sg.Matrix(S), S, "multiply", given)


@pytest.mark.parametrize("types", [("bool", "bool"), ("int8", "uint8")])
def test_multiply_has_the_type_of_numpy(types: tuple[str, str]) -> None:
    S, T = random_csr(types[0], (5, 4), 0.6, 1), random_csr(types[1], (5, 4), 0.6, 2)
    assert_same(sg.Matrix(S).multiply(T.toarray()), S.multiply(T.toarray()))
    assert_same(sg.Matrix(S).multiply(T), S.multiply(T))


def test_multiply_one_dimension() -> None:
    S, x = random_csr("float64", (5, 4), 0.6, 1), np.arange(4.0)
    u, v = random_coo("float64", 4, 0.6, 1), random_coo("int64", 4, 0.6, 2)
    A, ours = sg.Matrix(S), sg.Vector(u)
    assert_same(A.multiply(x), S.multiply(x))
    assert_same(A.multiply(x.tolist()), S.multiply(x))
    assert_same(A.multiply(sg.Vector(v)), S.multiply(v))
    assert_same(A.multiply(v), S.multiply(v))
    assert_same(ours.multiply(v), u.multiply(v))
    assert_same(ours.multiply(sg.Vector(v)), u.multiply(v))
    assert_same(ours.multiply(x), u.multiply(x))
    assert_same(ours.multiply(A), u.multiply(S))
    assert_same(
        ours.multiply(np.arange(12.0).reshape(3, 4)), u.multiply(np.arange(12.0).reshape(3, 4))
    )
    assert_same(A.multiply(np.ones((2, 5, 4))), S.multiply(np.ones((2, 5, 4))))
    with pytest.raises(DimensionMismatch, match=r"multiply: the shapes \(5, 4\) and \(3,\) differ"):
        A.multiply(np.ones(3))
    with pytest.raises(DomainMismatch, match="multiply: other: expected numbers, got object"):
        A.multiply(object())


def test_dot() -> None:
    S, T = random_csr("float64", (5, 4), 0.6, 1), random_csr("float64", (4, 3), 0.6, 2)
    u = random_coo("float64", 4, 0.6, 3)
    S.data[~np.isfinite(S.data)] = T.data[~np.isfinite(T.data)] = u.data[~np.isfinite(u.data)] = 1
    A, B, v = sg.Matrix(S), sg.Matrix(T), sg.Vector(u)
    X, x = T.toarray(), T.toarray()[:, 0]
    assert A.dot(B).dtype == S.dot(T).dtype
    for found in (A.dot(B), A.dot(T)):  # zeros stay entries, as in A @ B
        assert_same(found.toarray(), S.dot(T).toarray())
    assert_same(A.dot(X), S.dot(X))
    assert_same(A.dot(x), S.dot(x))
    assert_same(A.dot(x.tolist()), S.dot(x.tolist()))
    for given in (v, u):
        assert_same(A.dot(given).toarray(), S.dot(u).toarray())
    assert_same(v.dot(B).toarray(), u.dot(T).toarray())
    assert_same(v.dot(X), u.dot(X))
    assert_same(v.dot(x), u.dot(x))
    assert v.dot(v) == u.dot(u) and v.dot(v).dtype == u.dot(u).dtype
    assert_same(A.dot(3), S.dot(3))
    with pytest.raises(DimensionMismatch):
        A.dot(A)


@pytest.mark.parametrize("dtype", ["bool", "int8"])
def test_dot_has_the_type_of_numpy(dtype: str) -> None:
    """Where the product of ours counts, and is of 64 bits; of one form, as each compiles."""
    S, T = random_csr(dtype, (5, 4), 0.9, 1), random_csr(dtype, (4, 3), 0.9, 2)
    S.data, T.data = S.data.astype(bool) * S.dtype.type(20), T.data.astype(bool) * T.dtype.type(20)
    if dtype == "bool":
        S, T = S.astype(bool), T.astype(bool)
    assert_same(sg.Matrix(S).dot(T.toarray()), S.dot(T.toarray()))  # 800 wraps in int8


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float64"])
@pytest.mark.parametrize("shape", [(5, 4), (1, 6), (0, 3), (3, 3)])
def test_diagonal(dtype: str, shape: tuple[int, int]) -> None:
    S = random_csr(dtype, shape, 0.6, 1)
    for k in range(-6, 7):
        assert_same(sg.Matrix(S).diagonal(k), S.diagonal(k))
    assert_same(sg.Matrix(S).diagonal(), S.diagonal())


@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
@pytest.mark.parametrize("shape", [(5, 4), (4, 6), (0, 3)])
def test_setdiag(shape: tuple[int, int]) -> None:
    given: tuple[Any, ...] = (7, 2.5, [1, 2], [8, 9, 10, 11, 12, 13, 14], [], np.array([5]), True)
    for values in given:
        for k in (-5, -4, -2, 0, 1, 5):
            S = random_csr("int64", shape, 0.6, 1)
            assert_same_outcome(sg.Matrix(S), S, "setdiag", values, k)
    with pytest.raises(ValueError, match=r"setdiag: k: expected a diagonal of \(.*\), got 9"):
        sg.Matrix(S).setdiag(1, 9)


@pytest.mark.parametrize(
    ("dtype", "values", "kind"),
    [
        ("int64", np.nan, ValueError),
        ("int64", np.uint64(2**64 - 1), ValueError),
        ("int8", [1, 200], ValueError),
        ("uint8", -0.5 - 1, ValueError),
        ("float32", 1e300, ValueError),
        ("int64", 1j, DomainMismatch),
        ("float64", None, DomainMismatch),
        ("float64", "1", DomainMismatch),
        ("int64", np.datetime64(1, "s"), DomainMismatch),
    ],
)
def test_setdiag_refuses_what_the_type_does_not_hold(
    dtype: str, values: Any, kind: type[Exception]
) -> None:
    A = sg.Matrix(np.ones((2, 2), dtype))
    for B in (A, A.distribute(2)):
        with pytest.raises(kind, match=r"setdiag: values: expected .*numbers"):
            B.setdiag(values)
    assert A.isequal(sg.Matrix(np.ones((2, 2), dtype)))


def test_a_memoryview_is_an_array() -> None:
    x = np.array([1.0, 2.0, 3.0])
    A, v = sg.Matrix(np.diag([2.0, 0.0, 5.0]) + np.eye(3, k=1)), sg.Vector([4.0, 5.0, 6.0])
    for u in (A, v):
        np.testing.assert_array_equal(u.dot(memoryview(x)), u.dot(x))
        assert u.multiply(memoryview(x)).isequal(u.multiply(x))


def test_in_shards() -> None:
    S, T = random_csr("float64", (5, 4), 0.6, 1), random_csr("float64", (5, 4), 0.6, 2)
    A = sg.Matrix(S).distribute(2)
    B = sg.Matrix(T).to(A.device)
    assert_same(A.multiply(2).gather(), S.multiply(2))
    assert_same(A.power(2).gather(), S.power(2))
    assert_same(A.multiply(B).gather(), S.multiply(T))
    assert_same(A.nonzero(), S.nonzero())
    assert_same(A.diagonal(-1), S.diagonal(-1))
    assert_same(A.dot(np.ones(4)), S.dot(np.ones(4)))
    A.setdiag([7, 8], 1)
    S.setdiag([7, 8], 1)
    assert_same(A.gather(), S)
    with pytest.raises(DomainMismatch, match=r"multiply: .* same Placement .* Matrix\(x\)"):
        A.multiply(np.ones(4))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["bool", "int64", "float32"])
def test_on_a_gpu(dtype: str) -> None:
    import cupy

    S, T = random_csr(dtype, (5, 4), 0.6, 1), random_csr(dtype, (5, 4), 0.6, 2)
    S.data[~np.isfinite(S.data)] = 1
    A, B = sg.Matrix(S).to("cuda"), sg.Matrix(T).to("cuda")
    X = T.toarray()
    assert_same(A.multiply(2).to("cpu"), S.multiply(2))
    assert_same(A.power(2).to("cpu"), S.power(2))
    assert_same(A.multiply(B).to("cpu"), S.multiply(T))
    assert_same(A.multiply(cupy.asarray(X)).to("cpu"), S.multiply(X))
    assert_same(A.multiply(cupy.asarray(X[0])).to("cpu"), S.multiply(X[0]))
    assert_same(tuple(ids.get() for ids in A.nonzero()), S.nonzero())
    assert_same(A.diagonal(-1).get(), S.diagonal(-1))
    A.setdiag([7, 8], 1)
    S.setdiag(np.array([7, 8]).astype(dtype), 1)
    assert_same(A.to("cpu"), S)
    v, u = sg.Vector(cupy.asarray(X[0])), scipy.sparse.coo_array(X[0])
    assert_same(tuple(ids.get() for ids in v.nonzero()), u.nonzero())
    assert_same(A.dot(cupy.asarray(np.ones(4, dtype))).get(), S.dot(np.ones(4, dtype)))
    with pytest.raises(BackendMismatch, match="multiply: the array is on cpu, the Matrix on cuda"):
        A.multiply(X)
