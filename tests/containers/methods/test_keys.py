"""Truth values between the brackets of a container, and arrays that are written there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from fixtures_device import device, entries, matrix_entries  # noqa: F401

import spgraph as sg
from spgraph.errors import DimensionMismatch, DomainMismatch, IndexOutOfBound

DENSE = np.array([[0, 2, 0], [3, 0, 4], [0, 0, 5]])


def on(device: str, array: Any) -> Any:
    """The array where the containers are."""
    if device == "cpu":
        return array
    import cupy

    return cupy.asarray(array)


def host(x: Any) -> np.ndarray:
    plain = x if isinstance(x.device, str) else x.gather()
    return plain.to("cpu").toarray()


def test_a_bool_matrix_is_its_truth(device: str) -> None:
    A = sg.Matrix(DENSE).to(device)
    B = A > 2
    assert B.dtype == bool and B.nvals == 4
    assert matrix_entries(A[B]) == {(1, 0): 3, (1, 2): 4, (2, 2): 5} and A[B].shape == A.shape
    assert A[B].isequal(A[B.V])
    A[B] = 7
    assert matrix_entries(A) == {(0, 1): 2, (1, 0): 7, (1, 2): 7, (2, 2): 7}
    # true where A has no entry
    C = sg.Matrix(np.eye(3, dtype=bool)).to(device)
    A[C] = sg.Matrix(np.full((3, 3), 9)).to(device)
    assert matrix_entries(A)[0, 0] == 9 and A.nvals == 6


def test_a_bool_vector_is_its_truth(device: str) -> None:
    v = sg.Vector.from_coo([0, 2, 3], [1, 5, 2], size=5).to(device)
    b = v > 1
    assert entries(v[b]) == {2: 5, 3: 2} and v[b].size == 5
    v[b] = 8
    assert entries(v) == {0: 1, 2: 8, 3: 8}
    v[sg.Vector([False, True, False, False, False]).to(device)] = sg.Vector([9] * 5).to(device)
    assert entries(v) == {0: 1, 1: 9, 2: 8, 3: 8}


def test_an_array_of_bool_picks_positions(device: str) -> None:
    x, flags = np.array([3, 1, 2, 9]), np.array([True, False, True, True])
    v = sg.Vector(x).to(device)
    assert v[on(device, flags)].to("cpu").to_numpy().tolist() == x[flags].tolist()
    assert v[flags.tolist()].to("cpu").to_numpy().tolist() == x[flags].tolist()
    assert v[on(device, np.zeros(4, bool))].size == 0
    v[on(device, flags)] = 0
    x[flags] = 0
    assert v.to("cpu").to_numpy().tolist() == x.tolist()
    v[on(device, flags)] = on(device, np.array([4, 5, 6]))
    x[flags] = [4, 5, 6]
    assert v.to("cpu").to_numpy().tolist() == x.tolist()


def test_rows_and_columns_that_are_true(device: str) -> None:
    A, rows, columns = (
        sg.Matrix(DENSE).to(device),
        np.array([True, False, True]),
        [False, True, True],
    )
    assert A[on(device, rows)].to("cpu").toarray().tolist() == DENSE[rows].tolist()
    assert A[:, columns].to("cpu").toarray().tolist() == DENSE[:, columns].tolist()
    both = A[on(device, rows), columns].to("cpu").toarray()
    assert both.tolist() == DENSE[np.ix_(rows, columns)].tolist()
    assert A[sg.Vector(rows).to(device)].to("cpu").toarray().tolist() == DENSE[rows].tolist()
    assert A[1, columns].to("cpu").toarray().tolist() == DENSE[1, columns].tolist()


def test_arrays_are_written(device: str) -> None:
    v, A = sg.Vector([1, 2, 3]).to(device), sg.Matrix(DENSE).to(device)
    v[[2, 0]] = on(device, np.array([7, 8]))
    v[1:2] = on(device, np.array([9]))
    assert v.to("cpu").to_numpy().tolist() == [8, 9, 7]
    A[0] = on(device, np.array([1, 0, 6]))
    A[1:, 1] = [5, 4]
    assert A.to("cpu").toarray().tolist() == [[1, 0, 6], [3, 5, 4], [0, 4, 5]]
    assert A.nvals == 8  # the 0 of an array is an entry


def test_lists_are_written_and_sparse_arrays_are_keys() -> None:
    v, A, S = sg.Vector([1, 2, 3]), sg.Matrix(DENSE), scipy.sparse.csr_array(DENSE)
    v[[2, 0]] = [7, 8]
    assert v.to_numpy().tolist() == [8, 2, 7]
    assert A[S > 2].isequal(A[A > 2])
    A[S > 2] = 0
    assert A.toarray().tolist() == [[0, 2, 0], [0, 0, 0], [0, 0, 0]]


def test_lists_with_zero_fit_unsigned_integers() -> None:
    """They may be written where an array of int64 may not."""
    v = sg.Vector(np.array([1, 2, 3], np.uint8))
    v[[0, 2]] = [0, 255]
    assert v.to_numpy().tolist() == [0, 2, 255] and v.dtype == np.uint8
    with pytest.raises(DomainMismatch, match="got int64"):
        v[[0, 2]] = [-1, 5]
    with pytest.raises(DomainMismatch, match="got int64"):
        v[[0, 2]] = np.array([0, 5])


def test_rows_and_columns_in_every_form(device: str) -> None:
    """Each of the rows with each of the columns, as numpy.ix_ means them."""
    A, expected = sg.Matrix(DENSE).to(device), DENSE[np.ix_([2, 0], [1, 2])].tolist()
    rows, columns = on(device, np.array([2, 0])), on(device, np.array([1, 2]))
    for flat in ([2, 0], rows):
        for given in ([1, 2], columns):
            assert host(A[flat, given]).tolist() == expected
    for given in ([1, 2], columns, columns[None, :]):
        assert host(A[rows[:, None], given]).tolist() == expected
    with pytest.raises(DomainMismatch, match="expected a slice or 1 dimension, got 2"):
        A[rows[:, None], columns[:, None]]


IDS = ["int8", "uint8", "int16", "uint32", "uint64", ">i8"]


@pytest.mark.parametrize("shards", [0, 3])
@pytest.mark.parametrize("kind", IDS)
def test_ids_of_every_type_of_integers(kind: str, shards: int, device: str) -> None:
    """Of a small type id + 1 would overflow; uint64 beside int64 is float64."""
    size, ids = 300, np.array([127, 3] if kind == "int8" else [255, 3]).astype(kind)
    if device != "cpu" and not ids.dtype.isnative:
        pytest.skip("CuPy has arrays of native order alone")
    dense = np.arange(size * size, dtype=float).reshape(size, size) % 7
    new = np.array([[1.0, 2.0], [3.0, 4.0]])
    A, v, B = sg.Matrix(dense).to(device), sg.Vector(dense[5]).to(device), sg.Matrix(new).to(device)
    if shards:
        A = A.distribute(shards)
        v, B = v.to(A.device), B.to(A.device)
    given = ids if shards else on(device, ids)
    assert (host(A[given]) == dense[ids]).all()
    assert (host(A[given, given]) == dense[np.ix_(ids, ids)]).all()
    assert (host(v[given]) == dense[5][ids]).all()
    A[given], v[given] = 9.0, 9.0
    expected = dense.copy()
    expected[ids] = 9
    assert (host(A) == expected).all()
    assert host(v)[ids].tolist() == [9, 9]
    A[given, given] = B
    expected[np.ix_(ids, ids)] = new
    assert (host(A) == expected).all()
    as_vector = sg.Vector(ids).to(A.device)
    A[as_vector, as_vector] = 2.0
    expected[np.ix_(ids, ids)] = 2
    assert (host(A) == expected).all()


@pytest.mark.parametrize("k", [np.int8(-128), np.uint8(255), np.uint64(255)])
def test_diagonals_named_by_a_number_of_numpy(k: Any, device: str) -> None:
    A = sg.Matrix.empty(300, 300).to(device)
    A.setdiag(2.0, k)
    assert A.nvals == 300 - abs(int(k))
    assert A.diagonal(k).tolist() == A.diagonal(int(k)).tolist() == [2.0] * A.nvals


def test_in_shards() -> None:
    A = sg.Matrix(DENSE).distribute(2)
    assert A[A > 2].gather().isequal(sg.Matrix(DENSE)[sg.Matrix(DENSE) > 2])
    v = sg.Vector([3, 1, 2]).to(A.device)
    flags = np.array([True, False, True])
    assert list(v[v > 1].gather()) == [(0, 3), (2, 2)]
    assert v[flags].to_numpy().tolist() == [3, 2]
    assert A[flags].gather().toarray().tolist() == DENSE[flags].tolist()
    assert A[v > 1].gather().toarray().tolist() == DENSE[flags].tolist()
    v[v > 1] = 0
    assert v.to_numpy().tolist() == [0, 1, 0]
    v[flags] = [5, 6]
    assert v.to_numpy().tolist() == [5, 1, 6]


def test_lists_of_truth_values_of_numpy() -> None:
    flags, v, A = list(np.array([True, False, True])), sg.Vector([1, 2, 3]), sg.Matrix(DENSE)
    assert v[flags].to_numpy().tolist() == [1, 3]
    assert A[:, flags].isequal(A[:, [0, 2]])
    v[flags] = 7
    assert v.to_numpy().tolist() == [7, 2, 7]


@pytest.mark.parametrize(
    ("key", "error", "message"),
    [
        (sg.Matrix(DENSE), DomainMismatch, r"\[\]: expected truth values of bool .* x\.V is the"),
        (
            DENSE > 2,
            DomainMismatch,
            r"\[\]: expected a bool Matrix, got an array; A\[Matrix\(x\)\]",
        ),
        (sg.Matrix([[True]]), DimensionMismatch, r"mask\.shape \(1, 1\) != the result\.shape"),
        (np.array([True]), IndexError, r"\[\]: expected an array of bool of 3 rows, got one of 1"),
        ((slice(None), [True] * 4), IndexError, r"bool of 3 columns, got one of 4"),
        (np.ma.masked_array([True] * 3, [0, 1, 0]), DomainMismatch, "an array without a mask"),
    ],
)
def test_keys_that_do_not_fit(key: Any, error: type[Exception], message: str) -> None:
    A = sg.Matrix(DENSE)
    with pytest.raises(error, match=message):
        A[key]
    with pytest.raises(error, match=message):
        A[key] = 1
    assert A.isequal(sg.Matrix(DENSE))


def test_vectors_do_not_fit_either() -> None:
    v = sg.Vector([1, 2, 3])
    with pytest.raises(DimensionMismatch, match="mask.size 2 != the result.size 3"):
        v[sg.Vector([True, False])]
    with pytest.raises(IndexError, match="bool of 3 positions, got one of 2"):
        v[np.array([True, False])]
    with pytest.raises(DimensionMismatch, match="expected the mask of a Vector"):
        v[sg.Matrix([[True]])]


@pytest.mark.parametrize("key", ["a", 0.0, 1.5, np.float64(1), np.array(0.5)])
def test_one_key_that_is_no_integer(key: Any) -> None:
    A, v = sg.Matrix(DENSE), sg.Vector([1, 2, 3])
    for call in (
        lambda: A[key],
        lambda: A[0, key],
        lambda: A[key, 0],
        lambda: A[key, [1]],
        lambda: v[key],
        lambda: A.__setitem__(key, 1),
        lambda: A.__setitem__((0, key), 1),
        lambda: v.__setitem__(key, 1),
        lambda: A.distribute(2)[key],
    ):
        with pytest.raises(
            DomainMismatch, match=r"(indices|columns): expected integers \(one, .*got"
        ):
            call()


def test_a_vector_has_one_dimension(device: str) -> None:
    v = sg.Vector([3, 1, 2]).to(device)
    for key in ((0, 2), (0, 0), (), (slice(None), 1)):
        for call in (lambda: v[key], lambda: v.__setitem__(key, 9)):  # noqa: B023
            with pytest.raises(DomainMismatch, match=f"one dimension, got {len(key)} indices"):
                call()
    assert v[(2,)] == 2 and entries(v) == {0: 3, 1: 1, 2: 2}


@pytest.mark.parametrize("many", [0, 1, 30, 400])
def test_every_entry_is_read_by_its_position(many: int, device: str) -> None:
    """Of every storage, of views, of iso Matrices; from both ends."""
    random, n = np.random.default_rng(many), 20
    rows, columns = np.divmod(random.choice(n * n, many, replace=False), n)
    values = random.integers(1, 99, many).astype(np.int16)
    for given in (values, np.int16(7)):
        A = sg.Matrix.from_coo(rows, columns, given, nrows=n, ncols=n).to(device)
        whole, there = host(A), host(A.pattern())
        for i, j in np.ndindex(n, n):
            found = A[i, j], A[i - n, j - n], A.T[j, i], A[i][j], A[i][j - n]
            if there[i, j]:
                assert all(x == whole[i, j] and x.dtype == np.int16 for x in found)
            else:
                assert found == (None,) * 5
    S = A.to("cpu").to_scipy()
    S.indptr, S.indices = S.indptr.astype(np.int64), S.indices.astype(np.int64)
    B = sg.Matrix.from_scipy(S)
    assert sum(B[i, j] is not None for i, j in np.ndindex(n, n)) == many
    sparse = sg.Vector.from_coo([4, 90], [1.5, 2.5], size=200).to(device)
    assert (sparse.storage, sparse[4], sparse[-110], sparse[5], sparse[199]) == (
        "sparse", 1.5, 2.5, None, None
    )  # fmt: skip


@pytest.mark.parametrize("values", ["bool", "uint64", "float32"])
@pytest.mark.parametrize("iso", [False, True])
def test_one_entry_is_written_anywhere(iso: bool, values: str, device: str) -> None:
    S = scipy.sparse.coo_array(DENSE > 0)
    rows, columns = S.coords
    x: Any = np.ones(S.nnz, values)
    A = sg.Matrix.from_coo(rows, columns, x[0] if iso else x, nrows=3, ncols=3).to(device)
    for i in range(3):
        for j in range(-3, 3):
            for number in (1, 0):
                B, expected = A.dup(), matrix_entries(A) | {(i, j % 3): number}
                before = B.T, B.T.to("cpu").toarray(), B.pattern()
                B[i, j] = number
                assert matrix_entries(B) == expected and B.dtype == values
                assert B[i, j] == number and B.iso == (iso and number == 1)
                # what was made of it stays
                assert np.array_equal(before[0].to("cpu").toarray(), before[1])
                assert matrix_entries(before[2]).keys() == matrix_entries(A).keys()


def test_one_entry_is_written_into_none(device: str) -> None:
    A = sg.Matrix.from_coo([], [], nrows=2, ncols=3).to(device)
    A[-1, np.int8(1)] = True
    assert matrix_entries(A) == {(1, 1): True}
    before = A.dup()
    for key, value, error in (
        ((2, 0), True, IndexError),
        ((0, -4), True, IndexError),
        ((0, 0), 2, OverflowError),
        ((0, 0), [True], DimensionMismatch),
        ((0, 0), 1j, DomainMismatch),
    ):
        with pytest.raises(error):
            A[key] = value
        assert A.isequal(before)
    with pytest.raises(DomainMismatch, match="is only read"):
        A.T[0, 0] = True


@pytest.mark.parametrize("shards", [0, 2])
@pytest.mark.parametrize(
    "key",
    [
        (1, 2),
        (-2, -1),
        1,
        (slice(None), 2),
        ([2, 0], [2, 1]),
        slice(1, 3),
        np.array([True, False, True]),
    ],
)
def test_deleted_entries_of_a_matrix(key: Any, shards: int, device: str) -> None:
    wanted = DENSE.copy()
    wanted[np.ix_(*key) if isinstance(key, tuple) and isinstance(key[0], list) else key] = 0
    A = sg.Matrix(DENSE).to(device)
    A = A.distribute(shards) if shards else A
    del A[key]
    assert A.nvals == np.count_nonzero(wanted)
    np.testing.assert_array_equal(host(A), wanted)


@pytest.mark.parametrize("key", [1, -1, [2, 0], slice(1, 3), np.array([True, False, True])])
def test_deleted_entries_of_a_vector(key: Any, device: str) -> None:
    wanted = np.array([4, 5, 6])
    wanted[key] = 0
    for v in (sg.Vector([4, 5, 6]).to(device), sg.Vector([4, 5, 6]).to(device).to_sparse()):
        del v[key]
        assert v.nvals == np.count_nonzero(wanted)
        np.testing.assert_array_equal(host(v), wanted)


def test_deleted_under_a_mask() -> None:
    A, v = sg.Matrix(DENSE), sg.Vector([4, 5, 6])
    del A[A > 3]
    del v[(v > 4).V]
    assert (list(A), list(v)) == ([(0, 1, 2), (1, 0, 3)], [(0, 4)])
    with pytest.raises(IndexOutOfBound, match="rows: expected -3 <= index < 3, got 3"):
        del A[3, 0]
    with pytest.raises(DomainMismatch, match="a view, the transpose of another"):
        del A.T[0, 1]
    assert A.nvals == 2
