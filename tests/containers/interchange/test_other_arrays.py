"""Arrays of other libraries, in and out: what is taken, what shares memory, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import spgraph as sg
from spgraph.containers.storage.arrays import is_array
from spgraph.errors import BackendMismatch, DimensionMismatch, DomainMismatch

X = np.array([[1.0, 8], [5, 6], [7, 3], [2, 4]])


class Tensor:
    """An array of a library that offers DLPack alone, on the host."""

    place = 1

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.dtype, self.shape = array, array.dtype, array.shape
        self.ndim = array.ndim

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.place, 0

    def __array_namespace__(self) -> Any:
        return SimpleNamespace(from_dlpack=lambda x: Tensor(np.from_dlpack(x)), __name__="tensors")


class Elsewhere(Tensor):
    place = 8  # of DLPack: Metal


class Torn(Tensor):
    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("it requires gradients")


def graph(dtype: str = "float64") -> sg.Matrix:
    return sg.Matrix.from_coo(
        [0, 0, 1, 3], [1, 2, 2, 0], np.array([2, 3, 4, 5], dtype), nrows=4, ncols=4
    )


def test_products_give_arrays_of_the_library_that_was_given() -> None:
    A, x = graph(), X[:, 0]
    T, t = Tensor(X), Tensor(x)
    v = sg.Vector.from_coo([1, 3], [2.0, 3], size=4)
    calls: list[tuple[Any, Any]] = [
        (A @ T, A @ X),
        (A @ t, A @ x),
        (t @ A, x @ A),
        (Tensor(X.T) @ A, X.T @ A),
        (sg.mxv(A, t, "min_plus"), sg.mxv(A, x, "min_plus")),
        (sg.vxm(t, A), sg.vxm(x, A)),
        (sg.mxm(Tensor(X.T), A), sg.mxm(X.T, A)),
        (sg.agg.mean(A, T), sg.agg.mean(A, X)),
        (A.matvec(t), A.matvec(x)),
        (A.rmatmat(T), A.rmatmat(X)),
        (A.dot(T), A.dot(X)),
        (v @ T, v @ X),
        (v.dot(T), v.dot(X)),
    ]
    for found, expected in calls:
        assert isinstance(found, Tensor) and isinstance(expected, np.ndarray)
        assert found.array.dtype == expected.dtype and found.array.tolist() == expected.tolist()


def test_other_operands_are_taken_as_arrays_of_numpy_are() -> None:
    A, v = graph("int64"), sg.Vector([4, 0, 3, 1])
    ids = Tensor(np.array([2, 0]))
    flags = Tensor(np.array([True, False, True, False]))
    assert sg.Vector(ids).to_numpy().tolist() == [2, 0]
    assert sg.Matrix(Tensor(X)).toarray().tolist() == X.tolist()
    assert list(sg.Vector.from_coo(ids, Tensor(np.array([1.5, 2])))) == [(0, 2.0), (2, 1.5)]
    B = sg.Matrix.from_coo(ids, ids, Tensor(np.array([7, 8], np.int8)))
    assert list(B) == [(0, 0, 8), (2, 2, 7)] and B.dtype == np.int8
    assert (A * Tensor(np.arange(4))).isequal(A * np.arange(4))
    assert (Tensor(np.arange(4)) + v).isequal(np.arange(4) + v)
    assert A.multiply(Tensor(X.T[:1])).isequal(A.multiply(X.T[:1]))
    assert v[ids].to_numpy().tolist() == [3, 4] and v[flags].nvals == 2
    assert A[flags].isequal(A[[0, 2]]) and A[ids, ids].isequal(A[[2, 0], [2, 0]])
    v[:] = Tensor(np.array([9, 8, 7, 6]))
    v[ids] = Tensor(np.array([1, 2]))
    assert v.to_numpy().tolist() == [2, 8, 1, 6]
    A[0] = Tensor(np.array([1, 2, 3, 4]))
    assert A[0].to_numpy().tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x[::-1],
        lambda x: x.repeat(2)[::2],
        lambda x: np.broadcast_to(x[0], x.shape),
        lambda x: x.astype(">f8"),
        lambda x: x[:0],
        lambda x: np.asfortranarray(x),
    ],
    ids=["reversed", "strided", "one element", "other byte order", "empty", "by columns"],
)
@pytest.mark.parametrize("writable", [True, False])
def test_any_strides(make: Any, writable: bool) -> None:
    x = make(np.array([3.0, 1, 2, 4]))
    x.flags.writeable = writable and x.strides != (0,)
    given = Tensor(x) if writable and x.dtype.isnative else x  # DLPack of NumPy 2.0 has no others
    v = sg.Vector(given)
    assert v.to_numpy().tolist() == x.tolist() and v.dtype == np.float64
    assert v.values.flags.c_contiguous and not np.shares_memory(v.values, x)
    A = sg.Matrix.from_coo([0, 1], [0, 0], [2.0, 3.0], nrows=2, ncols=x.size) if x.size else None
    if A is not None:
        found = A @ given
        assert np.asarray(getattr(found, "array", found)).tolist() == [2 * x[0], 3 * x[0]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda t: sg.Vector(Torn(t)), DomainMismatch, "Vector: x: .* got Torn of float64: it req"),
        (
            lambda t: graph() @ Torn(t),
            DomainMismatch,
            "mxv: u: expected .* shares .* detach",
        ),
        (lambda t: sg.Vector(Elsewhere(t)), BackendMismatch, "Vector: x: .* DLPack's type 8; move"),
        (lambda t: graph() @ Tensor(t[:2]), DimensionMismatch, r"mxv: u\.shape \(2,\)"),
        (lambda t: sg.Vector(Tensor(t.astype("f2"))), DomainMismatch, "dtype: expected bool"),
        (lambda t: sg.Vector(Tensor(t.astype("c8"))), DomainMismatch, "dtype: expected bool"),
    ],
)
def test_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(X[:, 0].copy())


@pytest.mark.parametrize("size", [0, 1, 5])
def test_a_full_vector_gives_its_memory(size: int) -> None:
    for v in (
        sg.Vector(np.arange(size, dtype=np.float32)),
        sg.Vector(np.arange(size)).to_sparse(),  # in each storage, if each position has an entry
        sg.Vector._of(size, np.ones(size, bool), bits=np.array([2**size - 1], np.uint32)),
    ):
        seen = np.from_dlpack(v)
        assert seen.dtype == v.dtype and seen.tolist() == [value for _, value in v]
        assert size == 0 or np.shares_memory(seen, v.values)
        assert v.__dlpack_device__() == (1, 0)
        assert np.array(v, copy=False).tolist() == seen.tolist()


def test_a_writer_through_dlpack_writes_the_vector() -> None:
    v = sg.Vector([1.0, 2.0])
    seen = np.from_dlpack(Tensor(v._values))
    v[0] = 7
    assert seen.tolist() == [7, 2] == np.from_dlpack(v).tolist()


def test_what_has_empty_positions_gives_none() -> None:
    v = sg.Vector.from_coo([1], [5], size=3)
    for call in (np.from_dlpack, lambda v: np.array(v, copy=False), lambda v: v.__dlpack__()):
        with pytest.raises(ValueError, match=r"1 entries in 3 positions; .* to_numpy\(fill=-1\)"):
            call(v)
    assert not hasattr(sg.Matrix([[1]]), "__dlpack__")


def test_containers_are_no_arrays() -> None:
    A = graph()
    assert not any(map(is_array, (A, sg.Vector([1]), A.tocsr(), [1], 2, np.float64(1), None)))
    assert all(map(is_array, (X, Tensor(X), np.ma.masked_array(X))))
    assert not hasattr(A, "__cuda_array_interface__")
    assert not hasattr(sg.Vector([1]), "__cuda_array_interface__")


def test_in_shards() -> None:
    A, x = graph(), X[:, 0]
    B = A.distribute(2)
    assert (B @ Tensor(x)).array.tolist() == (A @ x).tolist()
    assert (Tensor(X.T) @ B).array.tolist() == (X.T @ A).tolist()
    v = B.row_degrees()
    assert np.from_dlpack(v).tolist() == [2, 1, 0, 1] and v.__dlpack_device__() == (1, 0)
    v[[0, 1]] = Tensor(np.array([5, 6], np.int32))
    assert v.to_numpy().tolist() == [5, 6, 0, 1]
    assert (v @ X).tolist() == pytest.approx(([5, 6, 0, 1] @ X).tolist())


@pytest.mark.parametrize("dtype", ["bool", "float64"])
def test_vectors_by_arrays(dtype: str) -> None:
    values = np.array([1, 0, 2], dtype)
    v = sg.Vector.from_coo([0, 2, 3], values, size=4)
    dense = v.toarray()
    x = X[:, 0]
    assert (v @ x) == dense @ x == (x @ v) and np.ndim(v @ x) == 0
    assert np.array_equal(v @ X, dense @ X) and np.array_equal(X.T @ v, X.T @ dense)
    assert (v @ X).shape == (2,) and (X.T @ v).shape == (2,)
    assert (v @ X[:, :0]).shape == (0,) and np.matmul(v, X).tolist() == (v @ X).tolist()
    with pytest.raises(DimensionMismatch, match=r"@: the shape \(3, 2\) does not fit"):
        v @ X[:3]
    with pytest.raises(DimensionMismatch, match="@: expected an array of 1 or 2 dimensions, got 3"):
        v @ X[None]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["bool", "int32", "float64"])
def test_on_a_gpu(dtype: str) -> None:
    import cupy

    class OnGpu(Tensor):
        place = 2

        def __array_namespace__(self) -> Any:
            return SimpleNamespace(
                from_dlpack=lambda made: OnGpu(cupy.from_dlpack(made)), __name__="tensors"
            )

    x = cupy.asarray(X[:, 0].astype(dtype))
    A, t = graph().to("cuda"), OnGpu(x)
    assert cupy.allclose(cupy.asarray((A @ t).array), A @ x)
    v = sg.Vector(t)
    assert v.device == "cuda:0" and v.to("cpu").to_numpy().tolist() == x.get().tolist()
    seen = cupy.from_dlpack(v)
    assert seen.data.ptr == v.values.data.ptr and v.__dlpack_device__() == (2, 0)
    assert cupy.allclose(v @ cupy.asarray(X), x.astype(float) @ cupy.asarray(X))
    assert float(v @ x.astype(float)) == pytest.approx(float(x.astype(float) @ x.astype(float)))

    class Interface:  # as of Numba
        __cuda_array_interface__ = x.__cuda_array_interface__

    assert sg.Vector(Interface()).isequal(v)
    with pytest.raises(BackendMismatch, match="mxv: u is an array on cpu, the Matrix on cuda:0"):
        A @ X[:, 0]
    with pytest.raises(TypeError, match="cupy.from_dlpack shares"):
        np.asarray(v)


@pytest.mark.gpu
def test_on_a_gpu_that_is_not_the_current_one() -> None:
    import cupy
    import gpus

    _, second = gpus.names(2)
    A, x = graph().to(second), gpus.place(1, X)
    with cupy.cuda.Device(0):
        found, v = A @ x, sg.Vector(x[:, 0])
        seen = cupy.from_dlpack(v)
        assert v.__dlpack_device__() == (2, 1)
        total = v @ x
    assert found.device.id == seen.device.id == total.device.id == 1 and v.device == second
    assert np.allclose(found.get(), graph() @ X) and seen.tolist() == X[:, 0].tolist()
    assert np.allclose(total.get(), X[:, 0] @ X)


def test_a_product_of_pandas_and_a_matrix_says_what_to_write() -> None:
    """pandas asks for an array and never for the Matrix's own product."""
    pandas = pytest.importorskip("pandas", reason="pip install 'spgraph[dev]'")
    A = sg.Matrix([[0, 1.0], [2, 0]])
    column, table = pandas.Series([1.0, 2]), pandas.DataFrame([[1.0, 2]])
    for given in (column, table):
        for B in (A, A.T):
            with pytest.raises(TypeError, match=r"of pandas take the array, s\.to_numpy\(\) @ A"):
                given @ B
    assert (column.to_numpy() @ A).tolist() == [4, 1]
    assert (table.to_numpy() @ A).tolist() == [[4, 1]]
    assert (A @ column).tolist() == [2, 2]
