"""Matrix(x) and Vector(x): new containers of what stands for one."""

from __future__ import annotations

import pickle
from typing import Any

import networkx
import numpy as np
import pytest
import scipy.sparse

import spgraph as sg
from spgraph.errors import DomainMismatch, IndexOutOfBound

DENSE = np.array([[0, 2.5, 0], [1, 0, 3]])


class Exported:
    """An array that is known by DLPack alone."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class Table:
    """What NumPy can read as an array, as pandas.DataFrame."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.array


@pytest.mark.parametrize(
    "make",
    [
        scipy.sparse.csr_array,
        scipy.sparse.csc_matrix,
        scipy.sparse.coo_array,
        np.array,
        np.ndarray.tolist,
        Exported,
        Table,
        sg.Matrix.from_dense,
    ],
)
def test_a_matrix_of_what_stands_for_one(make: Any) -> None:
    given = make(DENSE)
    A = sg.Matrix(given)
    assert A.isequal(sg.Matrix.from_dense(DENSE), check_dtype=True)
    assert A is not given and A.symmetric is False
    assert not A._transient and pickle.loads(pickle.dumps(A)).isequal(A)
    if isinstance(given, scipy.sparse.csr_array | sg.Matrix):
        theirs = given.data if isinstance(given, scipy.sparse.csr_array) else given.values
        assert not np.shares_memory(A.values, theirs)


def test_a_matrix_of_a_graph() -> None:
    A = sg.Matrix(networkx.path_graph(3))
    assert A.to_dense().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]] and A.symmetric


@pytest.mark.parametrize(
    "make",
    [
        np.array,
        np.ndarray.tolist,
        Exported,
        sg.Vector.from_dense,
    ],
)
def test_a_vector_of_an_array(make: Any) -> None:
    given = make(DENSE[0])
    v = sg.Vector(given)
    assert v.isequal(sg.Vector.from_dense(DENSE[0]), check_dtype=True)
    assert v.nvals == 3  # zeros are entries
    v[1] = 7
    assert DENSE[0, 1] == 2.5 and v is not given
    assert pickle.loads(pickle.dumps(v)).isequal(v)


def test_a_vector_of_a_sparse_array_has_its_entries() -> None:
    S = scipy.sparse.coo_array((np.array([2, 0, 5]), (np.array([4, 1, 4]),)), shape=(6,))
    v = sg.Vector(S)
    assert v.size == 6 and list(v) == [(1, 0), (4, 7)] and v.dtype == np.int64
    assert S.nnz == 3 and sg.Vector(S.tocsr()).isequal(v)


CUBE = scipy.sparse.coo_array(([1.0], ([0], [1], [0])), shape=(2, 2, 2))


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (sg.Matrix, (3, 4), "Matrix: x: expected a Matrix, a SciPy .* Matrix.empty a number of"),
        (sg.Matrix, 3, "Matrix: x: expected a Matrix, .* got int; Matrix.from_coo"),
        (sg.Matrix, sg.Vector([1, 2]), "Matrix: x: expected a Matrix, .* got Vector; "),
        (sg.Matrix, [1, 2], "Matrix: x: expected 2 dimensions, got 1; Vector.x. takes 1"),
        (sg.Matrix, np.ma.masked_array([[1, 2]], [[0, 1]]), "expected an array without a mask"),
        (
            sg.Vector,
            3,
            r"Vector: x: expected a list .* got int of 0 dimensions; .* Vector.empty a size",
        ),
        (
            sg.Vector,
            DENSE,
            r"Vector: x: expected .* got ndarray of 2 dimensions; Matrix\(x\) takes 2",
        ),
        (sg.Vector, scipy.sparse.csr_array(DENSE), r"Vector: x: expected 1 dimension, got 2"),
        (sg.Matrix, CUBE, "S: expected 2 dimensions, got 3$"),
        (
            sg.Matrix,
            scipy.sparse.coo_array([1, 2]),
            r"S: expected 2 .*, got 1; Vector\(S\) takes 1",
        ),
        (sg.Vector, CUBE, "Vector: x: expected 1 dimension, got 3$"),
        (sg.Vector, ["a"], "dtype: expected bool"),
        (sg.Vector, np.ma.masked_array([1, 2], [0, 1]), "expected an array without a mask"),
        (sg.Matrix, sg.Matrix(DENSE).distribute(2), r"one device, got a distributed one; \.gather"),
        (sg.Vector, sg.Matrix(DENSE).distribute(2).row_degrees(), r"\.gather\(\) makes a plain"),
    ],
)
def test_what_stands_for_nothing(kind: Any, given: Any, message: str) -> None:
    with pytest.raises(DomainMismatch, match=message):
        kind(given)


@pytest.mark.gpu
def test_of_arrays_on_a_gpu() -> None:
    import cupy
    import cupyx.scipy.sparse

    there = cupy.asarray(DENSE)
    made = [sg.Matrix(there), sg.Matrix(cupyx.scipy.sparse.csr_matrix(there))]
    for A in made:
        assert A.device == "cuda:0" and np.array_equal(A.to("cpu").to_dense(), DENSE)
    given = cupy.asarray(DENSE[0])
    v = sg.Vector(given)
    given[0] = 9
    assert v.device == "cuda:0" and v.to_numpy().tolist() == DENSE[0].tolist()


@pytest.mark.parametrize("ncols", [1, 7, 8, 9, 2**61, 2**61 + 1])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_from_coo_of_matrices_of_any_width(ncols: int, device: str) -> None:
    """A column lies behind its row in 63 bits where both fit: here those of 2**61 columns do."""
    last = ncols - 1
    A = sg.Matrix.from_coo(
        [2, 0, 2, 2], [last, 0, 0, last], [1, 2, 4, 8], ncols=ncols, dup_op="plus", device=device
    )
    expected = {(0, 0): 2, (2, 0): 4}
    expected[2, last] = expected.get((2, last), 0) + 9
    assert A.shape == (3, ncols) and dict(zip(*entries(A), strict=True)) == expected
    with pytest.raises(ValueError, match=rf"position \(2, {last}\) is given more than once"):
        sg.Matrix.from_coo([2, 0, 2], [last, 0, last], [1, 2, 4], ncols=ncols, device=device)


def entries(A: sg.Matrix) -> tuple[list[tuple[int, int]], list[int]]:
    rows, columns, values = A.to_coo()
    return list(zip(rows.tolist(), columns.tolist(), strict=True)), values.tolist()


@pytest.mark.parametrize("entries", [255, 256, 700])
@pytest.mark.parametrize("bits", [0, 3, 8, 9, 16, 17, 24, 31])
@pytest.mark.parametrize("ids", ["int32", "uint64"])
def test_from_coo_of_ids_of_any_length_keeps_the_order_of_repeated_positions(
    entries: int, bits: int, ids: str
) -> None:
    random = np.random.default_rng(entries + bits)
    n, distinct = 1 << bits, max(entries // 3, 1)
    places = random.integers(0, n, (2, distinct))[:, random.integers(0, distinct, entries)]
    rows, columns = places.astype(ids)
    values = np.arange(entries, dtype=np.float64)
    pairs = list(zip(rows.tolist(), columns.tolist(), strict=True))
    last = dict(zip(pairs, values.tolist(), strict=True))
    first = dict(zip(pairs[::-1], values[::-1].tolist(), strict=True))
    square = {"nrows": n, "ncols": n, "compact": False}
    if bits <= 20:  # row pointers of little memory
        for name, expected in (("first", first), ("second", last)):
            A = sg.Matrix.from_coo(rows, columns, values, dup_op=name, **square)
            assert [((i, j), x) for i, j, x in A] == sorted(expected.items())
        pattern = sg.Matrix.from_coo(rows, columns, **square)
        assert [(i, j) for i, j, _ in pattern] == sorted(last)
    v = sg.Vector.from_coo(columns, values, size=n, dup_op="second")
    of_columns = dict(zip(columns.tolist(), values.tolist(), strict=True))
    assert list(v) == sorted(of_columns.items())


@pytest.mark.parametrize("n", [4, 1 << 17])
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64", "uint64"])
def test_sums_of_repeated_positions_do_not_wrap_around(dtype: str, n: int) -> None:
    """For few entries, and for many, which a kernel sorts."""
    values, ids = np.ones(n, dtype), np.arange(n)
    ids[1] = 0
    values[0] = np.iinfo(dtype).max - 1
    for op in ("plus", "times"):
        held = sg.Matrix.from_coo(ids, ids, values, dup_op=op)[0, 0]
        assert held == np.iinfo(dtype).max - (op == "times")
    values[1] = 2
    for op in ("plus", "times"):
        with pytest.raises(OverflowError, match=f"from_coo: dup_op: expected numbers that {dtype}"):
            sg.Matrix.from_coo(ids, ids, values, dup_op=op)
        with pytest.raises(OverflowError, match="give values of a wider type"):
            sg.Vector.from_coo(ids, values, dup_op=op)
    assert sg.Vector.from_coo(ids, values, dup_op="max")[0] == values[0]
    assert sg.Vector.from_coo(ids, values.astype(float), dup_op="plus")[0] == float(values[0]) + 2


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([2**70, 0], f"expected indices below 2.*63 - 1, got {2**70}"),
        ([2**63, 0], f"expected indices below 2.*63 - 1, got {2**63}"),
        ((2**64 - 1, 0), f"expected indices below 2.*63 - 1, got {2**64 - 1}"),
        ([0, -(2**63) - 1], f"expected indices >= 0, got {-(2**63) - 1}"),
        ([2**63, -1], "expected indices >= 0, got -1"),
        (np.array([2**70, 0], object), f"expected indices below 2.*63 - 1, got {2**70}"),
    ],
)
def test_indices_beyond_int64_are_named(ids: Any, message: str) -> None:
    """NumPy makes floats or objects of them."""
    with pytest.raises(IndexOutOfBound, match=f"rows: {message}"):
        sg.Matrix.from_coo(ids, [0, 1], 1)
    with pytest.raises(IndexOutOfBound, match=f"columns: {message}"):
        sg.Matrix.from_coo([0, 1], ids, 1)
    with pytest.raises(IndexOutOfBound, match=f"indices: {message}"):
        sg.Vector.from_coo(ids, 1)
    with pytest.raises(DomainMismatch, match="rows: expected integers, got float64"):
        sg.Matrix.from_coo([2.0, 1], [0, 1], 1)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "uint64"])
def test_sums_of_duplicates_of_scipy_do_not_wrap_around(dtype: str) -> None:
    """A CSR and a CSC whose first row and column are given twice, and what is made of them."""
    large = np.iinfo(dtype).max
    parts = np.array([0, 0, 1]), np.array([0, 2, 3])
    for values in ([large - 1, 1, 7], [large - 1, 2, 7]):
        data = np.array(values, dtype)
        csr = scipy.sparse.csr_array((data, *parts), shape=(2, 2))
        csc = scipy.sparse.csc_array((data, *parts), shape=(2, 2))
        bsr = scipy.sparse.bsr_array((data.reshape(3, 1, 1), *parts), shape=(2, 2))
        coo = scipy.sparse.coo_array((data, ([0, 0, 1], [0, 0, 1])), shape=(2, 2))
        line = scipy.sparse.coo_array((data, ([0, 0, 1],)), shape=(2,))
        if values[1] == 1:
            for S in (csr, csc, bsr, coo):
                assert sg.Matrix(S).to_dense().tolist() == [[large, 0], [0, 7]]
            assert sg.Vector(line).to_numpy(0).tolist() == [large, 7]
        else:
            for S in (csr, csc, bsr, coo):
                with pytest.raises(OverflowError, match=f"from_scipy: S: .* that {dtype} holds"):
                    sg.Matrix(S)
            with pytest.raises(OverflowError, match=f"expected numbers that {dtype} holds"):
                sg.Vector(line)
