"""Matrix, Vector and Mask: making them, what they say of themselves, and the way back out."""

from __future__ import annotations

import gc
import re
import threading
import weakref
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from fixtures_device import device  # noqa: F401

import spgraph as sg
from spgraph.containers import Mask, Matrix, Vector, as_matrix
from spgraph.containers.storage.arrays import as_array
from spgraph.errors import (
    BackendUnavailable,
    DimensionMismatch,
    DomainMismatch,
    IndexOutOfBound,
)
from spgraph.semirings import BinaryOp, binary, monoid

FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]
TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()
DENSE = np.array([[0, 2, 0, 3], [0, 0, 0, 0], [5, 0, 6, 7]])


# --- Matrix and SciPy -----------------------------------------------------------------------------


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


def test_as_matrix_makes_transient_matrices() -> None:
    A = Matrix.from_dense(DENSE)
    assert as_matrix(A) is A and not A._transient
    for given in (sp.csr_array(DENSE), sp.coo_matrix(DENSE), DENSE, DENSE.tolist()):
        made = as_matrix(given)
        assert made._transient and np.array_equal(made.to_scipy().toarray(), DENSE)
    with pytest.raises(DomainMismatch, match="A: expected a Matrix.*got str"):
        as_matrix("graph")


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


@pytest.mark.parametrize("index", [0.5, 1.0, True, [1], np.float64(1), "1", None])
def test_a_unit_vector_has_an_integer_position(index: Any) -> None:
    for where in ("cpu", Matrix.empty(3, 3).distribute(2).device):
        with pytest.raises(DomainMismatch, match="index: expected an integer"):
            Vector.unit(index, 1.0, size=3, dtype=float, device=where)
        with pytest.raises(ValueError, match="size: expected an integer"):
            Vector.unit(1, 1.0, size=2.5, dtype=float, device=where)


# --- Matrix from coordinates ----------------------------------------------------------------------


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


# --- what a Matrix derives ------------------------------------------------------------------------


def test_transpose_is_kept_and_shared() -> None:
    A = Matrix.from_dense(DENSE)
    assert not A.has_transpose
    T = A.T
    assert A.T is T and T.T is A and not A.has_transpose
    assert T.indices.size == A.nvals and A.has_transpose
    assert np.array_equal(T.to_scipy().toarray(), DENSE.T)
    assert Matrix.from_coo([0, 1], [1, 2]).T.iso


def test_a_new_view_has_what_was_made_for_the_one_before() -> None:
    A = Matrix.from_dense(DENSE)
    before = A.T
    indices, bits = before._indices, before._nonempty_rows()
    was = weakref.ref(before)
    del before
    assert was() is None and A.has_transpose and A.T._has_arrays
    assert A.T._indices is indices and A.T._nonempty_rows() is bits
    view = A.T
    A._become(Matrix.from_dense(DENSE))  # the view stays that of what was there
    assert view.T is not A and A.T is not view and view._indices is indices


@pytest.mark.parametrize("shards", [0, 3])
def test_memory_is_free_with_the_last_reference(shards: int) -> None:
    def arrays(A: Matrix) -> list[Any]:
        held = A.shards if shards else [A]  # type: ignore[attr-defined]
        return [weakref.ref(array) for each in held for array in (each._indptr, each._indices)]

    def alive(references: list[Any]) -> bool:
        return any(reference() is not None for reference in references)

    def graph(dense: np.ndarray) -> Matrix:
        A = Matrix.from_dense(dense)
        return A.distribute(shards) if shards else A

    square = DENSE[:, :3]

    def home(A: Any) -> Matrix:
        return A.gather() if shards else A

    gc.collect()
    gc.disable()
    try:
        A = graph(square)
        held = arrays(A) + arrays(A.T)
        assert alive(held)
        del A
        assert not alive(held)
        A = graph(square)
        view, own = A.T, arrays(A)
        made = arrays(view)
        del A
        # the view holds its source
        assert alive(own) and home(view.T).isequal(Matrix.from_dense(square))
        source = view.T
        del view
        assert alive(made) and home(source.T).isequal(Matrix.from_dense(square.T))
        source._become(graph(square.T))
        assert not alive(own + made)
        A = graph(square + square.T)
        own, made = arrays(A), arrays(A.T)
        assert A.is_symmetric() and alive(own) and not alive(made)
        A = graph(square + square.T)
        view, made = A.T, arrays(A.T)
        assert alive(made) and view.is_symmetric() and A.T is view and view.T is A
        del view
        assert not alive(made)
        own = arrays(A)
        del A
        assert not alive(own)
    finally:
        gc.enable()


def test_symmetry_is_tested_once() -> None:
    A = Matrix.from_dense(DENSE[:, :3] + DENSE[:, :3].T)
    assert A.symmetric is None and A.is_symmetric() and A.symmetric
    assert A._T is A and A.T is not A and A.T._indices is A._indices and A.T._derived is A._derived
    B = Matrix.from_dense([[0, 1], [2, 0]])
    assert not B.is_symmetric() and B.symmetric is False and B.T is not B
    assert Matrix.from_dense(DENSE).is_symmetric() is False
    word = Matrix.from_coo([0, 1], [1, 0], symmetric=True)
    assert word.symmetric and word.T.indices.size == 2 and word.has_transpose, "the caller's word"
    assert Matrix.from_coo([0, 0], [0, 1], symmetric=True).shape == (2, 2)
    with pytest.raises(DimensionMismatch, match="symmetric: expected a square matrix, got 1 x 2"):
        Matrix.from_coo([0], [1], nrows=1, symmetric=True)


def test_symmetry_and_transpose_from_several_threads() -> None:
    A = Matrix.from_scipy(sp.random_array((300, 300), density=0.05, rng=np.random.default_rng(0)))
    seen: list[int] = []
    threads = [
        threading.Thread(target=lambda: seen.append(A.T.nvals + A.is_symmetric())) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [A.nvals] * 4


def test_matrix_equality() -> None:
    A = Matrix.from_dense(DENSE)
    assert (
        A.isequal(A.dup()) and not A.isequal(A.T) and not A.isequal(Matrix.from_dense(DENSE + 0.5))
    )
    assert A.isequal(Matrix.from_dense(DENSE * 1.0)) and not A.isequal(
        Matrix.from_dense(DENSE * 1.0), check_dtype=True
    )
    iso, plain = Matrix.from_coo([0, 1], [1, 0], 3), Matrix.from_coo([0, 1], [1, 0], [3, 3])
    assert iso.isequal(plain)
    with pytest.raises(DomainMismatch, match="other: expected a Matrix"):
        A.isequal(DENSE)


def test_matrix_goes_to_a_device_and_back(device: str) -> None:
    A = Matrix.from_dense(DENSE)
    B = A.to(device)
    assert B.device.startswith(device) and B.to("cpu").isequal(A)
    assert B.T.to("cpu").isequal(A.T)


# --- Vector ---------------------------------------------------------------------------------------


def test_storage_follows_the_density() -> None:
    assert Vector.from_coo([1], [1], size=100).storage == "sparse"
    assert Vector.from_coo(np.arange(50), np.arange(50), size=100).storage == "bitmap"
    assert Vector.from_coo(np.arange(100), 1, size=100).storage == "full"
    assert Vector.from_dense([1, 2]).storage == "full"
    assert Vector.empty(0).storage == "sparse"


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


def test_vector_copies_what_it_is_made_from() -> None:
    array = np.arange(3.0)
    v = Vector.from_dense(array)
    array[0] = 9
    assert v.to_numpy()[0] == 0
    w = v.dup()
    assert not np.shares_memory(w.values, v.values)


@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 100])
def test_other_storages_share_no_array_that_operations_write(size: int) -> None:
    full = Vector.from_dense(np.arange(size))
    assert size == 0 or not np.shares_memory(full.to_sparse().values, full.values)
    complete = Vector._of(size, np.arange(size), indices=np.arange(size, dtype=np.int32))
    assert size == 0 or not np.shares_memory(complete.to_bitmap().values, complete.values)
    assert complete.to_bitmap().isequal(full)


def test_dlpack_goes_out_where_full() -> None:
    v = Vector.from_dense([1.0, 2.0])
    assert np.from_dlpack(v).tolist() == [1, 2]


def test_vector_equality() -> None:
    v = Vector.from_coo([1, 3], [1.0, np.nan], size=5)
    assert v.isequal(v.to_bitmap()) and v.to_bitmap().isequal(v.to_sparse())
    assert not v.isequal(Vector.from_coo([1, 2], [1.0, np.nan], size=5))
    assert not v.isequal(Vector.from_coo([1, 3], [1.0, np.nan], size=6))
    assert v.isclose(Vector.from_coo([1, 3], [1.0 + 1e-9, np.nan], size=5))
    assert not v.isclose(Vector.from_coo([1, 3], [1.1, np.nan], size=5))


def test_vector_goes_to_a_device_and_back(device: str) -> None:
    for v in (
        Vector.from_coo([3], [2], size=90),
        Vector.from_coo(range(40), 1, size=90),
        Vector.from_dense([1, 2]),
    ):
        w = v.to(device)
        assert w.device.startswith(device) and w.storage == v.storage and w.to("cpu").isequal(v)


def test_devices_that_are_not_there() -> None:
    v = Vector.from_dense([1, 2])
    with pytest.raises(ValueError, match="device: expected 'cpu', 'cuda' or 'cuda:N', got 'gpu'"):
        v.to("gpu")
    try:
        import cupy

        assert cupy.cuda.runtime.getDeviceCount() > 0
    except Exception:
        with pytest.raises(BackendUnavailable, match=r"spgraph\[cuda|nvidia-smi|no GPU"):
            v.to("cuda")
    else:
        with pytest.raises(BackendUnavailable, match="GPUs are visible"):
            v.to("cuda:99")
        with pytest.raises(TypeError, match=r"\.to_numpy\(\)"):
            np.asarray(v.to("cuda"))


# --- Mask -----------------------------------------------------------------------------------------


def test_masks_say_what_they_are() -> None:
    v = Vector.from_coo([0], [1], size=3)
    assert isinstance(v.S, Mask) and (~~v.V).complement is False
    assert repr(~v.S) == "Mask(complement of structure of Vector 3)"
    assert repr(Matrix.from_dense(DENSE).V) == "Mask(truth of Matrix 3x4)"
    for thing in (v.S, v, Matrix.from_dense(DENSE)):
        with pytest.raises(TypeError, match="no truth value"):
            bool(thing)


# --- for people -----------------------------------------------------------------------------------


def test_text_and_html_show_the_facts() -> None:
    v = Vector.from_coo(np.arange(0, 1000, 50), np.arange(20) / 3, size=1000)
    lines = repr(v).splitlines()
    assert lines[0] == f"Vector 1000, 20 entries, float64, sparse, cpu, {20 * 12} B"
    assert lines[2].split() == ["50", "0.333333"] and lines[-1].strip() == "... 12 more"
    A = Matrix.from_dense(DENSE)
    assert repr(A).splitlines()[0].startswith("Matrix 3x4, 5 entries, int64, CSR, cpu, ")
    assert repr(A).splitlines()[1].split() == ["0", "1", "2"]
    assert "iso" in repr(A.pattern()) and "symmetric" in repr(
        Matrix.from_coo([0], [0], symmetric=True)
    )
    for container in (
        v,
        A,
        v.to_bitmap(),
        Vector.from_dense([True]),
        Vector.empty(0),
        Matrix.empty(0, 0),
    ):
        html = container._repr_html_()
        assert repr(container).split(",")[0] in re.sub("<.*?>", "", html)
        assert html.count("<tr>") == html.count("</tr>")


def test_the_head_of_a_bitmap_is_its_first_entries() -> None:
    v = Vector.from_coo([40, 70, 99], [1, 2, 3], size=100).to_bitmap()
    assert v.storage == "bitmap"
    assert [line.split() for line in repr(v).splitlines()[1:]] == [
        ["40", "1"],
        ["70", "2"],
        ["99", "3"],
    ]


def test_nbytes_counts_all_arrays() -> None:
    assert Vector.from_dense(np.zeros(10)).nbytes == 80
    assert Vector.from_coo([0], [1.0], size=64).nbytes == 12
    assert Vector.from_coo([0], [1.0], size=64).to_bitmap().nbytes == 64 * 8 + 8
    A = Matrix.from_coo([0], [0], nrows=4, ncols=4)
    assert A.nbytes == 5 * 4 + 4 + 1


def test_from_coo_counts_repeats_of_a_scalar() -> None:
    A = sg.Matrix.from_coo([0, 0, 1], [1, 1, 0], 1, dup_op=binary.plus)
    assert A.to_scipy().toarray().tolist() == [[0, 2], [1, 0]]


def test_from_coo_never_keeps_the_callers_indices() -> None:
    ids = np.array([2, 5], np.int32)
    v = sg.Vector.from_coo(ids, [1, 2], size=1000)
    ids[0] = 7
    assert v.to_coo()[0].tolist() == [2, 5]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: sg.Vector.from_coo([1], [300], dtype=np.int8), ValueError, "int8 holds, got 300"),
        (lambda: sg.Vector.from_coo([1], [1e30], dtype=np.int32), ValueError, "int32 holds"),
        (lambda: sg.Vector.from_coo([1, 2], [1, 2], dup_op=3), TypeError, "dup_op: expected"),
        (lambda: sg.Matrix.from_scipy(np.eye(3)), TypeError, "Matrix.from_dense takes arrays"),
        (
            lambda: sg.assign(sg.Vector.from_dense([1, 2]), float("nan"), [0]),
            DomainMismatch,
            "assign: value: expected an integer to write into int64, got nan",
        ),
    ],
)
def test_values_and_arguments_that_do_not_fit(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_nan_is_dropped_in_every_direction() -> None:
    A = sg.Matrix.from_coo([0], [1], [np.nan], nrows=2, ncols=2)
    u = sg.Vector.from_coo([0], [1.0], size=2)
    for direction in ("push", "pull"):
        t = sg.vxm(u, A, sg.semirings.min_plus, direction=direction)
        assert t.to_coo()[1].tolist() == [np.inf]


def test_no_method_gives_a_kept_array_that_can_be_written() -> None:
    """Every public attribute and method without arguments: twice the same memory, or none of it."""
    A = Matrix.from_dense([[0, 1, 2], [0, 0, 0], [3, 0, 0]])
    for name in dir(A):
        if name.startswith(("_", "from_")):
            continue
        try:
            first, second = (
                value() if callable(value) else value
                for value in (getattr(A, name), getattr(A, name))
            )
        except (TypeError, ImportError, sg.errors.BackendUnavailable):
            continue  # it takes arguments, or needs what is not here
        if isinstance(first, np.ndarray) and np.shares_memory(first, second):
            assert not first.flags.writeable, name
    assert not hasattr(A, "nonempty_rows")
