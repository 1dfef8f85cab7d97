"""nnz, ndim, toarray, astype, tocsr, tocsc, tocoo, transpose beside SciPy's sparse arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from scipy_sparse_cases import (
    TYPES,
    assert_same,
    assert_same_outcome,
    outcome,
    random_coo,
    random_csr,
)

import spgraph as sg
from spgraph.errors import DomainMismatch

FORMATS = {"tocsr": "csr", "tocsc": "csc", "tocoo": "coo"}


def parts(S: Any) -> list[np.ndarray]:
    names = {"csr": ("data", "indices", "indptr"), "csc": ("data", "indices", "indptr")}
    names["coo"] = ("data", "row", "col") if S.ndim == 2 else ("data", "col")
    return [getattr(S, name) for name in names[S.format]]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(7, 5), (0, 3), (3, 0)])
def test_of_a_matrix(dtype: str, shape: tuple[int, int]) -> None:
    S = random_csr(dtype, shape, 0.5, 1)
    for A in (sg.Matrix(S), sg.Matrix(S.T.tocsr()).T):
        assert (A.nnz, A.ndim, A.dtype) == (S.nnz, S.ndim, S.dtype)
        assert_same(A.toarray(), S.toarray())
        assert A.toarray("F").flags.f_contiguous and A.toarray("C").flags.c_contiguous
        out = np.ones(shape, dtype)
        assert A.toarray(out=out) is out
        assert_same(out, S.toarray())
        for name, format in FORMATS.items():
            ours, theirs = getattr(A, name)(), getattr(S, name)()
            assert type(ours) is type(theirs) and ours.format == format
            assert ours.shape == theirs.shape
            for one, other in zip(parts(ours), parts(theirs), strict=True):
                assert one.dtype == other.dtype and np.array_equal(one, other, equal_nan=True)
        assert_same(A.transpose(), S.transpose())
        assert_same(A.transpose((1, 0), copy=True), S.transpose((1, 0)))
        assert A.transpose() is A.T


def test_what_tocsr_gives_is_a_copy_unless_asked() -> None:
    A = sg.Matrix([[1, 2], [0, 4]])
    assert A.T.indptr.size  # the transpose is there
    for name in FORMATS:
        getattr(A, name)().data[:] = 9
        assert A.toarray().tolist() == [[1, 2], [0, 4]]
    assert np.shares_memory(A.tocsr(copy=False).data, A.values)
    v = sg.Vector([1, 2])
    v.tocoo().data[:] = 9
    assert v.toarray().tolist() == [1, 2]


@pytest.mark.parametrize("dtype", TYPES)
def test_of_a_vector(dtype: str) -> None:
    for size, density in ((60, 0.02), (9, 0.5), (4, 1.0), (0, 0.0)):
        S = random_coo(dtype, size, density, 1)
        v = sg.Vector(S)
        assert (v.nnz, v.ndim, v.dtype, v.shape) == (S.nnz, S.ndim, S.dtype, S.shape)
        assert_same(v.toarray(), S.toarray())
        for name in ("tocoo", "tocsr"):
            ours, theirs = getattr(v, name)(), getattr(S, name)()
            assert type(ours) is type(theirs) and ours.shape == theirs.shape
            assert_same(sg.Vector(ours), theirs)
        assert v.transpose() is v and v.transpose((0,), copy=True) is not v


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32"])
@pytest.mark.parametrize("to", ["bool", "int16", "float64", np.uint8, "complex128", "float16"])
def test_astype(dtype: str, to: Any) -> None:
    S = random_csr(dtype, (6, 4), 0.5, 1)
    S.data[~np.isfinite(S.data)] = 3
    A = sg.Matrix(S)
    if np.dtype(to).kind == "c" or to == "float16":
        with pytest.raises(DomainMismatch, match="dtype: expected bool"):
            A.astype(to)
        return
    for casting in ("unsafe", "same_kind", "safe", "no"):
        assert_same_outcome(A, S, "astype", to, casting=casting)
        v, T = sg.Vector(S.data), scipy.sparse.coo_array(S.data)
        found, expected = outcome(v.astype, to, casting), outcome(T.astype, to, casting)
        if isinstance(expected, Exception):
            assert isinstance(found, type(expected))
        else:  # zeros of an array are entries of ours
            assert_same(found.toarray(), expected.toarray())
    assert A.astype(dtype, copy=False) is A and A.astype(dtype) is not A
    v = sg.Vector(S.data)
    assert v.astype(dtype, copy=False) is v and v.astype(dtype) is not v


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda A: A.toarray("C", out=np.zeros((2, 2))), "toarray: order: expected none beside"),
        (lambda A: A.toarray(out=np.zeros((2, 2))), r"toarray: out: .* type int64, got .*float64"),
        (lambda A: A.toarray(out=np.zeros((2, 3), int)), r"shape \(2, 2\) .* got \(2, 3\)"),
        (lambda A: A.transpose((0, 1)), r"transpose: axes: expected None or \(1, 0\)"),
        (lambda A: A[0].transpose((1,)), r"transpose: axes: expected None or \(0,\)"),
    ],
)
def test_arguments_that_do_not_fit(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(sg.Matrix([[1, 2], [3, 4]]))


def test_in_shards() -> None:
    S = random_csr("float64", (6, 5), 0.5, 1)
    A = sg.Matrix(S).distribute(2)
    assert A.nnz == S.nnz
    assert_same(A.toarray(), S.toarray())
    for name in FORMATS:
        assert_same(sg.Matrix(getattr(A, name)()), getattr(S, name)())
    assert_same(A.transpose().gather(), S.T)
    v = A.row_degrees()
    assert v.toarray().tolist() == np.diff(S.indptr).tolist()
    assert_same(sg.Vector(v.tocoo()), scipy.sparse.coo_array(v.toarray()))


@pytest.mark.gpu
def test_on_a_gpu() -> None:
    import cupy
    import cupyx.scipy.sparse

    S = random_csr("float64", (6, 5), 0.5, 1)
    A = sg.Matrix(S).to("cuda")
    assert isinstance(A.toarray(), cupy.ndarray)
    assert_same(A.toarray().get(), S.toarray())
    for name, format in FORMATS.items():
        found = getattr(A, name)()
        assert isinstance(found, getattr(cupyx.scipy.sparse, f"{format}_matrix"))
        assert np.array_equal(found.toarray().get(), S.toarray(), equal_nan=True)
    for dtype in ("bool", "int8"):  # types that CuPy's own conversion does not take
        found = sg.Matrix(random_csr(dtype, (6, 5), 0.5, 1)).to("cuda").tocsc()
        assert np.array_equal(found.toarray().get(), random_csr(dtype, (6, 5), 0.5, 1).toarray())
    v = A[0]
    assert_same(v.toarray().get(), S.toarray()[0])
    with pytest.raises(DomainMismatch, match=r"tocoo: CuPy has no sparse arrays of one dimension"):
        v.tocoo()
