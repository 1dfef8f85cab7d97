"""Tensors of PyTorch and arrays of JAX, in and out; skipped where these are not installed."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import spgraph as sg
from spgraph.errors import DomainMismatch

X = np.array([[1.0, 8], [5, 6], [7, 3], [2, 4]], np.float32)
S = scipy.sparse.csr_array(np.array([[0, 2, 3, 0], [0, 0, 4, 0], [0, 0, 0, 0], [5, 0, 0, 6.0]]))


@pytest.fixture(params=["torch", "jax"])
def library(request: pytest.FixtureRequest) -> Any:
    pytest.importorskip(request.param)
    if request.param == "jax":
        return pytest.importorskip("jax.numpy")
    return pytest.importorskip("torch")


@pytest.fixture
def torch() -> Any:
    module = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse")
        yield module


@pytest.fixture
def bcoo() -> Any:
    return pytest.importorskip("jax.experimental.sparse")


def graph(dtype: str = "float32") -> sg.Matrix:
    return sg.Matrix(S.astype(dtype))


def test_products(library: Any) -> None:
    A, T = graph(), library.asarray(X)
    kind = type(T)
    v = sg.Vector.from_coo([1, 3], np.array([2, 3], np.float32), size=4)
    for found, expected in (
        (A @ T, A @ X),
        (T.T @ A, X.T @ A),
        (A @ T[:, 0], A @ X[:, 0]),
        (T[:, 0] @ A, X[:, 0] @ A),
        (sg.mxm(A, T, "min_plus"), sg.mxm(A, X, "min_plus")),
        (sg.agg.mean(A, T), sg.agg.mean(A, X)),
        (A.dot(T), A.dot(X)),
        (A.matmat(T), A.matmat(X)),
        (v @ T, v @ X),
        (T.T @ v, X.T @ v),
        (A @ T[:0].T, A @ X[:0].T) if A.ncols == 2 else (A @ T[:, :0], A @ X[:, :0]),
    ):
        assert type(found) is kind and isinstance(expected, np.ndarray)
        got = np.asarray(found)
        assert got.dtype == expected.dtype and got.shape == expected.shape
        assert np.allclose(got, expected)
    assert float(v @ T[:, 0]) == float(T[:, 0] @ v) == float(v @ X[:, 0])


def test_operators_and_constructors(library: Any) -> None:
    A, t = graph(), library.asarray(X[:, 0])
    x = X[:, 0]
    for op in ("__add__", "__radd__", "__mul__", "__rmul__", "__truediv__", "__lt__", "__eq__"):
        assert getattr(A, op)(t).isequal(getattr(A, op)(x)), op
    for found, expected in ((t * A, x * A), (t + A, x + A), (t - A, x - A), (t < A, x < A)):
        assert isinstance(found, sg.Matrix) and found.isequal(expected)
    assert sg.Vector(t).to_numpy().tolist() == x.tolist() and sg.Vector(t).dtype == np.float32
    assert sg.Matrix(library.asarray(X)).isequal(sg.Matrix(X))
    ids = library.asarray(np.array([3, 0], np.int32))
    assert sg.Vector.from_coo(ids, t[:2]).isequal(sg.Vector.from_coo([3, 0], x[:2]))
    assert A[ids].isequal(A[[3, 0]])
    v = sg.Vector(t)
    v[ids] = t[1:3]
    v[t > 6] = 0
    assert v.to_numpy().tolist() == [7, 5, 0, 5]
    assert (A * t[0]).isequal(A * x[0])


def test_a_vector_goes_out_without_a_copy(library: Any) -> None:
    v = sg.Vector(X[:, 0])
    seen = library.from_dlpack(v)
    assert np.asarray(seen).tolist() == v.to_numpy().tolist()
    if library.__name__ == "torch":
        assert seen.data_ptr() == v.values.ctypes.data
        seen[0] = 9
        assert v[0] == 9
    with pytest.raises(ValueError, match=r"1 entries in 3 positions; .* to_numpy\(fill=-1\)"):
        library.from_dlpack(sg.Vector.from_coo([1], [5], size=3))


def test_the_arrays_of_a_matrix_go_out(torch: Any) -> None:
    A = graph()
    for part in (A.indptr, A.indices, A.values):
        assert torch.from_dlpack(part).data_ptr() == part.ctypes.data


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr"])
def test_sparse_tensors(torch: Any, layout: str, dtype: str) -> None:
    A = graph(dtype)
    tensor = A.to_torch()
    assert tensor.layout == torch.sparse_csr and tuple(tensor.shape) == A.shape
    assert tensor.to_dense().numpy().tolist() == A.toarray().tolist()
    if layout == "coo":
        tensor = tensor.to_sparse_coo()
    elif layout == "csc":
        tensor = tensor.to_sparse_csc()
    elif layout == "bsr":
        if dtype == "bool":
            pytest.skip("PyTorch converts no blocks of bool")
        tensor = tensor.to_sparse_bsr((2, 2))
    B = sg.Matrix(tensor)
    assert B.dtype == A.dtype and B.toarray().tolist() == A.toarray().tolist()
    assert np.array_equal((tensor.to_dense().double().numpy()), B.toarray().astype(float))
    # blocks store zeros, which stay entries as SciPy's do
    assert (A @ tensor).toarray().tolist() == (A @ A).toarray().tolist()
    assert (A * tensor).toarray().tolist() == (A * A).toarray().tolist()


def test_sparse_tensors_share_where_asked(torch: Any) -> None:
    A = graph()
    assert A.to_torch(copy=False).values().data_ptr() == A.values.ctypes.data
    assert A.to_torch(copy=False).col_indices().data_ptr() == A.indices.ctypes.data
    for tensor in (A.to_torch(), A.pattern().to_torch(copy=False)):
        assert tensor.values().data_ptr() != A.values.ctypes.data
    tensor = A.to_torch()
    B = sg.Matrix(tensor)
    tensor.values()[:] = 9
    assert B.isequal(A)
    assert sg.Matrix(A.pattern().to_torch()).isequal(A.pattern())
    for shape in ((0, 3), (3, 0), (0, 0)):
        assert sg.Matrix(sg.Matrix.empty(*shape).to_torch()).shape == shape


def test_sparse_tensors_with_duplicates(torch: Any) -> None:
    ids = torch.tensor([[1, 0, 1], [0, 1, 0]])
    tensor = torch.sparse_coo_tensor(ids, torch.tensor([2.0, 3, 4]), (2, 2))
    assert sg.Matrix(tensor).toarray().tolist() == [[0, 3], [6, 0]]
    parts = torch.tensor([0, 2]), torch.tensor([1, 0]), torch.tensor([5, 6])
    row = torch.sparse_csr_tensor(*parts, (1, 2), check_invariants=False)
    assert sg.Matrix(row).toarray().tolist() == [[6, 5]]


def test_sums_of_duplicates_do_not_wrap_around(torch: Any) -> None:
    """PyTorch's own sums do."""
    for dtype in (torch.int8, torch.uint8, torch.int32, torch.int64):
        large = torch.iinfo(dtype).max
        for ids, kind in (([[0, 0], [1, 1]], sg.Matrix), ([[1, 1]], sg.Vector)):
            size = (2,) * len(ids)
            near = torch.sparse_coo_tensor(ids, torch.tensor([large - 1, 1], dtype=dtype), size)
            assert kind(near).sum() == large
            tensor = torch.sparse_coo_tensor(ids, torch.tensor([large, 1], dtype=dtype), size)
            with pytest.raises(OverflowError, match=r"expected numbers that u?int\d+ holds"):
                kind(tensor)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda t: t.ones(3, dtype=t.bfloat16), "Vector: x: .* Tensor of torch.bfloat16: "),
        (lambda t: t.ones(3, requires_grad=True), "Vector: x: .*requires grad.*detach"),
        (lambda t: t.ones(3, requires_grad=True).to_sparse(), "x: .*requires grad.*detach"),
        (lambda t: t.ones(3, dtype=t.float16), "dtype: expected bool"),
        (lambda t: t.ones(3, dtype=t.complex64), "dtype: expected bool"),
        (lambda t: t.ones(3, device="meta"), "Vector: x: .*meta"),
        (lambda t: t.conj(t.ones(3) * 1j).imag, "Vector: x: .*resolve_neg"),
        (lambda t: t.ones(3, 2).to_sparse(), "expected a sparse array of 1 dimension, neither"),
    ],
)
def test_tensors_that_are_refused(torch: Any, make: Any, message: str) -> None:
    with pytest.raises(DomainMismatch, match=message):
        sg.Vector(make(torch))


def test_views_of_tensors(torch: Any) -> None:
    t = torch.arange(8.0)
    for each in (t[::3], t[:0], t[2].expand(4), t[::3].to_sparse()):
        assert sg.Vector(each).toarray().tolist() == each.to_dense().tolist()
    with pytest.raises(DomainMismatch, match="sparse array of 2 dimensions, neither batched"):
        sg.Matrix(torch.ones(2, 2, 2).to_sparse())
    with pytest.raises(DomainMismatch, match="sparse array of 2 dimensions, neither batched"):
        sg.Matrix(torch.ones(2, 2, 2).to_sparse(2))


@pytest.mark.parametrize("dtype", ["bool", "int32", "float32"])
def test_sparse_arrays_of_jax(bcoo: Any, dtype: str) -> None:
    A = graph(dtype)
    made = A.to_jax()
    assert isinstance(made, bcoo.BCOO) and made.shape == A.shape and made.unique_indices
    assert np.asarray((made.astype("float32")).todense()).tolist() == A.toarray().tolist()
    for given in (made, bcoo.BCSR.from_bcoo(made)):
        B = sg.Matrix(given)
        assert B.isequal(A, check_dtype=True) and (A @ given).isequal(A @ A)
    padded = bcoo.BCOO.fromdense(A.toarray(), nse=12)
    assert sg.Matrix(padded).isequal(A)
    assert sg.Vector(bcoo.BCOO.fromdense(A.toarray()[0], nse=3)).isequal(A[0])
    assert (A * made).isequal(A * A) and sg.mxm(made, A).isequal(A @ A)
    assert sg.Matrix(A.pattern().to_jax()).isequal(A.pattern())
    assert sg.Matrix(sg.Matrix.empty(0, 3, "float32").to_jax()).shape == (0, 3)


def test_what_jax_does_not_hold(bcoo: Any) -> None:
    import jax

    A = sg.Matrix.from_coo([0], [1], [2**40], nrows=2, ncols=2)
    t = jax.numpy.ones(2, "int32")
    assert not jax.config.jax_enable_x64
    with pytest.raises(OverflowError, match="jax_enable_x64"):
        A @ t
    with pytest.raises(OverflowError, match="jax_enable_x64"):
        A.to_jax()
    with pytest.raises(OverflowError, match="to_jax: expected positions of 32 bits"):
        sg.Matrix.from_coo([0], [2**40]).to_jax()
    assert (graph("int64") @ jax.numpy.ones(4, "int32")).dtype == "int32"
    with pytest.raises(DomainMismatch, match="Vector: x: .*bfloat16|dtype: expected bool"):
        sg.Vector(jax.numpy.ones(2, "bfloat16"))
    with pytest.raises(DomainMismatch, match="mxv: u: .*Tracer"):
        jax.jit(lambda x: graph() @ x)(jax.numpy.ones(4))


@pytest.mark.gpu
def test_tensors_on_a_gpu(torch: Any) -> None:
    if not torch.cuda.is_available():
        pytest.skip("gpu: this PyTorch sees none")
    A, T = graph().to("cuda"), torch.asarray(X, device="cuda")
    found = A @ T
    assert found.is_cuda and np.allclose(found.cpu().numpy(), graph() @ X)
    assert np.allclose((T.T @ A).cpu().numpy(), X.T @ graph())
    assert sg.agg.mean(A, T).is_cuda
    v = sg.Vector(T[:, 0])
    assert v.device == "cuda:0" and torch.from_dlpack(v).data_ptr() == v.values.data.ptr
    tensor = A.to_torch()
    assert tensor.is_cuda and sg.Matrix(tensor).isequal(A)
    assert sg.Matrix(tensor.to_sparse_coo()).isequal(A)
    assert A.to_torch(copy=False).values().data_ptr() == A.values.data.ptr
