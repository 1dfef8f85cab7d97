"""NumPy's universal functions, and operators beside arrays: of the values of entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special
from fixtures_device import entries, matrix_entries
from scipy_sparse_cases import TYPES, random_coo, random_csr

import spgraph as sg
from spgraph.errors import BackendMismatch, DimensionMismatch, DomainMismatch
from spgraph.semirings import unary

DENSE = np.array([[0, 2.0, 0], [3, 0, 4]])
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
UNARY = (np.sqrt, np.exp, np.negative, np.abs, np.isnan, np.sign, np.floor, np.conj, np.square)
BINARY = (np.add, np.subtract, np.multiply, np.divide, np.maximum, np.less, np.equal, np.arctan2)


def assert_values(found: Any, container: Any, expected: Any) -> None:
    """Entries where the container has some, of these values."""
    assert type(found) is type(container) and found.shape == container.shape
    places, theirs = found.to_coo()[:-1], container.to_coo()[:-1]
    assert all(np.array_equal(one, other) for one, other in zip(places, theirs, strict=True))
    assert found.dtype == expected.dtype
    assert np.array_equal(found.to_coo()[-1], expected, equal_nan=expected.dtype.kind == "f")


@pytest.mark.parametrize("dtype", TYPES)
def test_of_one_container(dtype: str) -> None:
    A, v = sg.Matrix(random_csr(dtype, (6, 5), 0.5, 1)), sg.Vector(random_coo(dtype, 20, 0.4, 1))
    for u in (A, v):
        values = u.to_coo()[-1]
        for f in UNARY:
            if f in (np.negative, np.sign) and dtype == "bool":
                with pytest.raises(TypeError):
                    f(u)
                continue
            expected = f(values)
            if expected.dtype == np.float16:
                expected = f(values, dtype=np.float32)
            assert_values(f(u), u, expected)
        assert_values(np.add(u, 1), u, values + 1)
        assert_values(np.power(2.0, u), u, 2.0**values)
        assert_values(np.multiply(np.float64(0.5), u), u, np.float64(0.5) * values)
    # the same types as `apply`
    assert np.sqrt(v).dtype == sg.apply(v, unary.sqrt).dtype


@pytest.mark.parametrize("dtypes", [("float64", "float64"), ("int8", "int64"), ("bool", "float32")])
def test_beside_arrays(dtypes: tuple[str, str]) -> None:
    A, X = (
        sg.Matrix(random_csr(dtypes[0], (6, 5), 0.5, 1)),
        random_csr(dtypes[1], (6, 5), 1, 2).toarray(),
    )
    v, x = sg.Vector(random_coo(dtypes[0], 20, 0.4, 1)), random_coo(dtypes[1], 20, 1, 2).toarray()
    rows, columns, values = A.to_coo()
    places, own = v.to_coo()
    for f in BINARY:
        for array in (X, X[0], X[:, :1], X[:1]):
            beside = np.broadcast_to(array, A.shape)[rows, columns]
            if f is np.subtract and dtypes[0] == dtypes[1] == "bool":
                continue
            assert_values(f(A, array), A, f(values, beside).astype(f(A, array).dtype))
            assert_values(f(array, A), A, f(beside, values).astype(f(array, A).dtype))
        assert_values(f(v, x), v, f(own, x[places]).astype(f(v, x).dtype))


def test_operators_beside_arrays_and_lists() -> None:
    v, x = sg.Vector.from_coo([0, 2], [1.0, 4.0], size=3), np.array([10.0, 20, 4])
    for found, expected in (
        (v + x, {0: 11, 2: 8}),
        (x + v, {0: 11, 2: 8}),
        (v - x, {0: -9, 2: 0}),
        (x - v, {0: 9, 2: 0}),
        (v * x.tolist(), {0: 10, 2: 16}),
        (x.tolist() / v, {0: 10, 2: 1}),
        (v == x, {0: False, 2: True}),
        (x != v, {0: True, 2: False}),
        (x > v, {0: True, 2: False}),
        (v ** np.array([2, 2, 2]), {0: 1, 2: 16}),
    ):
        assert entries(found) == expected
    A = sg.Matrix(DENSE)
    assert matrix_entries(A + DENSE) == {(0, 1): 4, (1, 0): 6, (1, 2): 8}
    assert matrix_entries(DENSE[0] * A) == {(0, 1): 4, (1, 0): 0, (1, 2): 0}


def test_of_two_containers_what_their_operators_give() -> None:
    A, B = sg.Matrix(DENSE), sg.Matrix([[1, 1, 0], [0, 0, 1.0]])
    for f, expected in (
        (np.add, A + B),
        (np.subtract, A - B),
        (np.multiply, A * B),
    ):
        assert f(A, B).isequal(expected, check_dtype=True)
        assert f(A, B.tocsr()).isequal(expected, check_dtype=True)
    assert np.matmul(A, B.T).isequal(A @ B.T) and np.matmul(A, np.ones(3)).tolist() == [2, 7]
    assert (np.ones(2) @ A).tolist() == [3, 2, 4]


def test_iso_values_views_and_what_no_entry_hides() -> None:
    P = sg.Matrix.from_coo([0, 1], [1, 0], 4.0)
    assert np.sqrt(P).iso and np.sqrt(P).values.tolist() == [2]
    assert matrix_entries(np.add(P, np.array([[1, 2], [3, 4]]))) == {(0, 1): 6, (1, 0): 7}
    assert matrix_entries(np.sqrt(sg.Matrix(DENSE**2).T)) == {(1, 0): 2, (0, 1): 3, (2, 1): 4}
    v = sg.Vector.from_coo([1, 3], [1.0, 4.0], size=6)
    assert v.storage == "bitmap"
    with np.errstate(all="raise"):  # NumPy sees no zeros in the place of absent entries
        assert entries(np.log2(v)) == {1: 0, 3: 2}
    assert scipy.special.expit(sg.Vector([0.0])).to_numpy().tolist() == [0.5]


def test_in_shards() -> None:
    A = sg.Matrix(DENSE).distribute(2)
    assert np.sqrt(A).gather().isequal(np.sqrt(sg.Matrix(DENSE)))
    v = sg.Vector.from_coo([1], [4.0], size=3).to(A.device)
    assert entries(np.sqrt(v).gather()) == {1: 2} and entries((np.float64(2) * v).gather()) == {
        1: 8
    }
    with pytest.raises(DomainMismatch, match=r"numpy\.add: .* same Placement .* Vector\(x\)"):
        np.add(v, np.ones(3))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda A: np.add.reduce(A), DomainMismatch, r"numpy\.add\.reduce: .* \.sum\(\)"),
        (lambda A: np.add.outer(A, A), DomainMismatch, r"numpy\.add\.outer: .* \.toarray\(\)"),
        (
            lambda A: np.modf(A),
            DomainMismatch,
            r"numpy\.modf: expected a function of single values",
        ),
        (lambda A: np.vecdot(A, A), TypeError, "function of single"),
        (lambda A: np.maximum(A, A), DomainMismatch, r"numpy\.maximum: .* got 2; sg\.ewise_add"),
        (lambda A: np.add(A, A, dtype=float), DomainMismatch, r"numpy\.add: dtype: expected none"),
        (
            lambda A: np.sqrt(A, out=DENSE),
            DomainMismatch,
            r"numpy\.sqrt: out: expected none beside",
        ),
        (lambda A: np.sqrt(A, where=DENSE > 1), DomainMismatch, r"numpy\.sqrt: where: expected"),
        (lambda A: np.sqrt(A, dtype=complex), DomainMismatch, "dtype: expected bool, .*complex128"),
        (lambda A: np.add(A, "a"), DomainMismatch, r"numpy\.add: expected numbers beside a"),
        (lambda A: np.add(A, None), DomainMismatch, r"numpy\.add: expected numbers .* object"),
        (lambda A: A + np.array(["a"] * 3), DomainMismatch, r"numpy\.add: expected numbers"),
        (lambda A: A + np.ma.masked_array(DENSE), DomainMismatch, "an array without a mask"),
        (lambda A: A + DENSE.T, DimensionMismatch, r"numpy\.add: the shape \(3, 2\) of the array"),
        (lambda A: np.ones(2) == A, DimensionMismatch, r"numpy\.equal: the shape \(2,\)"),
        (lambda A: np.ones(2) @ A[0], DimensionMismatch, r"@: the shape \(2,\) does not fit"),
    ],
)
def test_what_has_no_meaning(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(sg.Matrix(DENSE))


def test_an_array_is_not_written_by_an_operator() -> None:
    x = np.ones(3)
    with pytest.raises(DomainMismatch, match=r"numpy\.add: out: .* \.toarray\(\) makes an array"):
        x += sg.Vector([1.0, 2, 3])
    assert x.tolist() == [1, 1, 1]


@pytest.mark.gpu
def test_on_a_gpu() -> None:
    import cupy

    A, v = sg.Matrix(DENSE).to("cuda"), sg.Vector.from_coo([0, 2], [1.0, 4.0], size=3).to("cuda")
    x, X = cupy.asarray([10.0, 20, 4]), cupy.asarray(DENSE)
    assert matrix_entries(np.sqrt(A).to("cpu")) == matrix_entries(np.sqrt(sg.Matrix(DENSE)))
    for found, expected in (
        (np.sqrt(v), {0: 1, 2: 2}),
        (np.add(v, x), {0: 11, 2: 8}),
        (v + x, {0: 11, 2: 8}),
        (x + v, {0: 11, 2: 8}),
        (x - v, {0: 9, 2: 0}),
        (v == x, {0: False, 2: True}),
        (cupy.asarray(2.0) * v, {0: 2, 2: 8}),
        (np.float64(2) * v, {0: 2, 2: 8}),
    ):
        assert found.device == "cuda:0" and entries(found) == expected
    assert matrix_entries((A + X).to("cpu")) == {(0, 1): 4, (1, 0): 6, (1, 2): 8}
    assert (cupy.ones(2) @ A).get().tolist() == [3, 2, 4]
    assert np.sqrt(sg.Vector(cupy.asarray([4], cupy.int8))).dtype == np.float32
    with pytest.raises(
        BackendMismatch, match=r"numpy\.add: the array is on cpu, the Matrix on cuda"
    ):
        np.add(A, DENSE)


@pytest.mark.parametrize("ufunc", [np.bitwise_and, np.bitwise_or])
def test_bits_with_an_array_on_the_left(ufunc: np.ufunc) -> None:
    """NumPy makes `x & v` of it, which must not differ from `v & x` without a word."""
    x, v, flags = np.array([1, 2]), sg.Vector([2, 2]), sg.Vector([True, False])
    assert ufunc(v, x).toarray().tolist() == ufunc([2, 2], x).tolist()
    assert ufunc(x > 1, flags).toarray().tolist() == ufunc(x > 1, [True, False]).tolist()
    for left, right in ((x, v), (x > 1, v), (x, flags), (np.int64(2), v)):
        with pytest.raises(DomainMismatch, match=r"x1: expected the container.*numpy\.logical_"):
            ufunc(left, right)
