"""Matrices and Vectors from SciPy, NetworkX and dense arrays, and back to them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from fixtures_device import device  # noqa: F401

from spgraph.backends.cpu.runtime import pool
from spgraph.containers import Matrix, Vector, as_matrix
from spgraph.containers.methods import conversions
from spgraph.containers.storage.arrays import as_array
from spgraph.errors import DomainMismatch

FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]
TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()
DENSE = np.array([[0, 2, 0, 3], [0, 0, 0, 0], [5, 0, 6, 7]])


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("format", FORMATS)
def test_from_scipy_takes_every_format(format: str, kind: str) -> None:
    S = getattr(sp, f"{format}_{kind}")(DENSE.astype(float))
    A = Matrix.from_scipy(S)
    assert A.shape == (3, 4)
    assert np.array_equal(A.to_scipy().toarray(), DENSE)
    assert A.nvals == (5 if format != "dia" else A.nvals)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_canonical_csr_is_copied_or_borrowed(dtype: str, index: type) -> None:
    S = sp.csr_array(DENSE.astype(dtype))
    S.indptr, S.indices = S.indptr.astype(index), S.indices.astype(index)
    theirs = S.indptr, S.indices, S.data
    for copy in (True, False):
        A = Matrix.from_scipy(S, copy=copy)
        for ours, given in zip((A.indptr, A.indices, A.values), theirs, strict=True):
            assert np.shares_memory(ours, given) != copy and ours.dtype == given.dtype
        for copied in (True, False):
            back = A.to_scipy(copy=copied)
            assert (back != S).nnz == 0 and back.dtype == np.dtype(dtype)
            for ours, given in ((A.indices, back.indices), (A.values, back.data)):
                assert np.shares_memory(ours, given) != copied


def test_unsorted_and_duplicate_csr_is_summed_without_changing_it() -> None:
    S = sp.csr_array(
        (np.array([1.0, 2, 4, 8]), np.array([2, 0, 2, 1]), np.array([0, 3, 4])), shape=(2, 3)
    )
    before = S.indices.copy()
    A = Matrix.from_scipy(S)
    assert A.to_scipy().toarray().tolist() == [[2, 0, 5], [0, 8, 0]]
    assert np.array_equal(S.indices, before) and S.nnz == 4, "the caller's matrix is left as it was"


def test_explicit_zeros_are_entries() -> None:
    S = sp.csr_array((np.array([0.0, 1.0]), np.array([0, 1]), np.array([0, 2, 2])), shape=(2, 2))
    assert Matrix.from_scipy(S).nvals == 2


def test_csr_with_spare_room_loses_it() -> None:
    S = sp.csr_array(
        (np.array([1.0, 2.0, 99.0]), np.array([0, 1, 7]), np.array([0, 1, 2])), shape=(2, 2)
    )
    A = Matrix.from_scipy(S)
    assert A.nvals == 2 and A.indices.size == 2 and A.values.size == 2


@pytest.mark.parametrize("dtype", ["complex128", "float16", "longdouble", "O"])
def test_other_value_types_are_refused(dtype: str) -> None:
    if np.dtype(dtype) == np.dtype("float64"):
        pytest.skip("long double is double on this system")
    with pytest.raises(DomainMismatch, match="dtype: expected bool"):
        Matrix.from_dense(DENSE.astype(dtype))


def test_from_networkx() -> None:
    networkx = pytest.importorskip("networkx", reason="pip install 'spgraph[dev]'")
    G = networkx.Graph([("a", "b", {"weight": 2.5}), ("b", "c")])
    A = Matrix.from_networkx(G, nodelist=["c", "b", "a"])
    assert A.to_scipy().toarray().tolist() == [[0, 1, 0], [1, 0, 2.5], [0, 2.5, 0]]
    assert A.symmetric
    pattern = Matrix.from_networkx(G, weight=None)
    assert pattern.iso and pattern.dtype == np.bool_ and pattern.nvals == 4
    D = networkx.DiGraph([(0, 1), (1, 2)])
    assert as_matrix(D).to_scipy().toarray().tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert not as_matrix(D).is_symmetric()
    assert Matrix.from_networkx(networkx.Graph()).shape == (0, 0)


def test_from_dense_with_other_missing_values() -> None:
    array = np.array([[np.nan, 0.0], [1.0, np.nan]])
    assert Matrix.from_dense(array, missing=np.nan).nvals == 2
    assert Matrix.from_dense(array, missing=None).nvals == 4
    assert Matrix.from_dense(array).nvals == 3


@pytest.mark.fused
@pytest.mark.parametrize("shape", [(3, 50_000), (50_000, 3), (1, 90_001), (90_001, 1), (317, 331)])
@pytest.mark.parametrize("kind", ["<f8", ">f4", "bool", ">i2", "fortran", "read-only"])
def test_large_arrays_have_the_entries_of_scipy(
    kind: str, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of several threads begin and end inside of rows."""
    monkeypatch.setattr(conversions, "MANY", 1)
    monkeypatch.setattr(pool, "threads_for", lambda work, share=0: 2)
    rng = np.random.default_rng(7)
    dense = (rng.integers(1, 9, shape) * (rng.random(shape) < 0.3)).astype(
        np.float64 if "-" in kind or kind == "fortran" else kind
    )
    dense[shape[0] // 2 :: 3] = 0
    dense = np.asfortranarray(dense) if kind == "fortran" else dense
    dense.flags.writeable = kind != "read-only"
    expected = sp.csr_array(dense.astype(dense.dtype.newbyteorder("=").name))
    for missing in (0, None):
        A = Matrix.from_dense(dense, missing=missing)
        assert A.nvals == (expected.nnz if missing == 0 else dense.size)
        assert np.array_equal(A.to_dense(), dense)
    A = Matrix.from_dense(dense)
    assert np.array_equal(A.indptr, expected.indptr)
    assert np.array_equal(A.indices, expected.indices)
    assert np.array_equal(A.values, dense[dense != 0]) and A.values.dtype.isnative


def test_missing_is_one_number_and_compared_exactly() -> None:
    large = np.array([[2**53 + 1, 2**53]])
    assert Matrix.from_dense(large, missing=2.0**53).values.tolist() == [2**53 + 1]
    for dtype, missing in ((np.uint64, -1), (np.uint64, np.int64(-1)), (np.int8, 256.0)):
        assert Vector.from_dense(np.array([-1]).astype(dtype), missing=missing).nvals == 1
    assert Vector.from_dense(np.array([3, 1]), missing=np.inf).nvals == 2
    for missing, held in ((2**70, 2), (-1, 2), (0.5, 2), (np.nan, 2), (1, 1), (False, 1)):
        assert Vector.from_dense(np.array([True, False]), missing=missing).nvals == held
    for missing in ("0", b"0", [0], np.zeros(2), 1j, object(), np.datetime64(0, "s"), {0}):
        with pytest.raises(DomainMismatch, match="missing: expected a real number or None"):
            Matrix.from_dense(np.eye(2), missing=missing)
        with pytest.raises(DomainMismatch, match="missing: expected a real number or None"):
            Vector.from_dense(np.ones(2), missing=missing)


@pytest.mark.filterwarnings("ignore:Warning. converting a masked element to nan")
def test_lists_of_masked_arrays_are_refused() -> None:
    hidden = np.ma.array([1.0, 2.0], mask=[False, True])
    for rows in ([hidden, hidden], (hidden, [0, 1]), [[np.ma.masked, 1.0], [0.0, 1.0]]):
        with pytest.raises(DomainMismatch, match="expected an array without a mask"):
            Matrix.from_dense(rows)
    for numbers in ([hidden[0], hidden[1]], [np.ma.array(True, mask=True), True]):
        with pytest.raises(DomainMismatch, match="expected an array without a mask"):
            Vector(numbers)
    for deep in ([[hidden, [0, 1]]], [hidden.astype(int), [0, 1]]):
        with pytest.raises(DomainMismatch, match="x: expected an array without a mask"):
            as_array("x", deep)
    v = Vector.empty(2)
    with pytest.raises(DomainMismatch, match=r"\[\]: expected an array without a mask"):
        v[:] = [hidden[0], hidden[1]]
    assert v.nvals == 0
    for row in ([np.nan, 1.0], [np.float64(2), np.nan], [np.float32(1), 2]):
        assert Matrix.from_dense([row]).nvals == Vector(row).nvals == 2


def test_to_numpy_never_invents_a_value() -> None:
    v = Vector.from_coo([1], [7], size=3, dtype="uint8")
    with pytest.raises(ValueError, match="fill: the Vector has 1 entries in 3 positions"):
        v.to_numpy()
    with pytest.raises(ValueError, match="fill"):
        np.asarray(v)
    assert v.to_numpy(fill=-1).tolist() == [-1, 7, -1]
    assert v.to_numpy(fill=-1).dtype == np.int16, "promoted to hold the fill"
    filled = v.to_numpy(fill=np.nan)
    assert filled.dtype.kind == "f" and np.isnan(filled[[0, 2]]).all()
    assert np.asarray(Vector.from_dense([1, 2])).tolist() == [1, 2]


def test_to_numpy_rounds_no_integer(device: str) -> None:
    exact = [2**53, -(2**53), 2**53 + 2, 2**62, -(2**63)]
    for kind, held, lost in [
        ("int64", exact, [2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**62 + 2**8]),
        ("uint64", [0, 2**63, 2**64 - 2**11], [2**53 + 1, 2**64 - 1, 2**63 + 1]),
    ]:
        v = Vector.from_coo(range(1, len(held) + 1), np.array(held, kind), size=9).to(device)
        assert v.to_numpy(fill=np.nan)[1 : len(held) + 1].tolist() == held
        for value in lost:
            v = Vector.from_coo([1, 3], np.array([5, value], kind), size=100).to(device)
            A = Matrix.from_coo([0, 1], [1, 0], np.array([5, value], kind)).to(device)
            for call in (v.to_numpy, v.to_bitmap().to_numpy, A.to_dense):
                with pytest.raises(ValueError, match=f"fill: .* {kind} holds.* rounds {value};"):
                    call(fill=np.nan)
            assert v.to_numpy(fill=7)[3] == value  # of the type itself
    w = Vector.from_coo([1], np.array([5], "int64"), size=3)
    with pytest.raises(ValueError, match=f"float64, which rounds {2**64 - 1};"):
        w.to_numpy(fill=2**64 - 1)
    assert w.to_numpy(fill=2**63).tolist() == [2**63, 5, 2**63]


@pytest.mark.parametrize("dtype", TYPES)
def test_to_numpy_looks_at_entries_alone(dtype: str, device: str) -> None:
    given = np.array([1, 0, 1], dtype)
    v = Vector.from_coo([0, 2, 40], given, size=70).to(device)
    assert v.storage == "bitmap"
    # beneath an absent bit, where kernels leave what they computed
    v._values[1] = 2**53 + 1 if dtype in ("int64", "uint64") else 1
    for fill in (0, -1, -0.0, 2.5, float("nan"), 2**40):
        found, expected = v.to_numpy(fill), v.to_sparse().to_numpy(fill)
        assert found.dtype == expected.dtype and found.tobytes() == expected.tobytes()


def test_dlpack_goes_out_where_full() -> None:
    v = Vector.from_dense([1.0, 2.0])
    assert np.from_dlpack(v).tolist() == [1, 2]
