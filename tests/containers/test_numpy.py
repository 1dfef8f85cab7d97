"""What NumPy, and what is built on it, makes of containers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import spgraph as sg
from spgraph import Matrix, Vector
from spgraph.errors import DomainMismatch

DENSE = np.array([[0, 2, 0], [3, 0, 4]])


@pytest.fixture(params=["plain", "view", "distributed"])
def matrix(request: pytest.FixtureRequest) -> Matrix:
    A = Matrix.from_dense(DENSE)
    if request.param == "view":
        return Matrix.from_dense(DENSE.T).T
    return A if request.param == "plain" else A.distribute(2)


@pytest.mark.parametrize(
    "call",
    [
        np.asarray,
        np.array,
        lambda A: np.stack([A, A]),
        lambda A: np.array(A, dtype=object),
        lambda A: np.testing.assert_array_equal(A, DENSE),
        lambda A: pytest.approx(A) == DENSE,
    ],
)
def test_a_matrix_is_no_array(matrix: Matrix, call: Any) -> None:
    with pytest.raises(TypeError, match=r"2 x 3 is no array: \.to_dense\(fill=0\) .* \.to_scipy"):
        call(matrix)


def test_the_dimensions_of_a_matrix(matrix: Matrix) -> None:
    """No array is made for them: SciPy's linear operators say how many they have."""
    assert np.ndim(matrix) == 2 and np.shape(matrix) == (2, 3)


def test_a_product_with_scipys_on_the_left_names_ours() -> None:
    S, A = scipy.sparse.csr_array(DENSE), Matrix(DENSE.T)
    with pytest.raises(
        TypeError, match=r"a Matrix of 3 x 2 is no array: .* sg\.mxm\(S, A\) is the"
    ):
        S @ A
    assert sg.mxm(S, A).toarray().tolist() == (S @ DENSE.T).tolist()
    assert (S + A.T).toarray().tolist() == (2 * DENSE).tolist()


@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.coo_matrix])
def test_sums_with_scipys_on_the_left(kind: Any) -> None:
    """SciPy leaves them to the operand on the right: the union, and in the order written."""
    X, Y = np.array([[0, 2, 0], [3, 0, 4]]), np.array([[5, 7, 0], [0, 0, 1]])
    S, A = kind(X), Matrix(Y)
    assert (S + A).toarray().tolist() == (X + Y).tolist() == (A + S).toarray().tolist()
    assert (S - A).toarray().tolist() == (X - Y).tolist()
    assert (A - S).toarray().tolist() == (Y - X).tolist()


def test_operators_take_sparse_arrays_of_one_dimension() -> None:
    x, y = np.array([0, 2, 3]), np.array([5, 7, 0])
    s, v = scipy.sparse.coo_array(x), sg.Vector.from_dense(y, missing=0)
    assert (s + v).toarray().tolist() == (x + y).tolist() == (v + s).toarray().tolist()
    assert (s - v).toarray().tolist() == (x - y).tolist()
    assert (v * s).toarray().tolist() == (x * y).tolist()


def test_operators_take_scalars_of_numpy() -> None:
    v, expected = Vector.from_dense([1.0, 4.0]), [3.0, 12.0]
    for three in (3, 3.0, np.float64(3), np.int8(3), np.array(3), np.array(3.0)):
        assert (v * three).to_numpy().tolist() == expected
        assert (three * v).to_numpy().tolist() == expected
    assert (v == None) is False and (v != "x") is True  # noqa: E711


@pytest.mark.parametrize("true", [True, np.True_, np.array(True)])
def test_differences_of_truth_values_on_both_sides(true: Any) -> None:
    v = Vector.from_dense([True, False])
    for difference in (true - v, v - true, np.subtract(true, v), np.subtract(v, true)):
        assert difference.dtype == bool
        assert difference.to_numpy().tolist() == [False, True]


@pytest.mark.parametrize(
    "dtype, fill, kind",
    [
        ("int64", 0, "int64"),
        ("int8", 0, "int8"),
        ("int8", -1, "int8"),
        ("int8", 200, "int16"),
        ("uint8", -1, "int16"),
        ("bool", 0, "bool"),
        ("bool", True, "bool"),
        ("bool", 2, "uint8"),
        ("float32", np.inf, "float32"),
        ("int32", np.nan, "float64"),
        ("uint64", 2**64 - 1, "uint64"),
        ("int8", 0.1, "float64"),
        ("bool", np.nan, "float64"),
        ("int16", 2.0**24 + 1, "float64"),
        ("uint8", np.float32(0.1), "float32"),
        ("int8", np.float16(0.5), "float32"),
        ("float32", np.float64(0.1), "float64"),
        ("float32", np.float64(0.5), "float32"),
        ("float32", 1e300, "float64"),
    ],
)
def test_dense_arrays(matrix: Matrix, dtype: str, fill: Any, kind: str) -> None:
    A = Matrix.from_dense(DENSE.astype(dtype))
    A = A.distribute(2) if matrix.device != "cpu" else A
    got = A.to_dense(fill)
    expected = np.where(DENSE != 0, DENSE.astype(dtype), np.asarray(fill))
    assert got.dtype == kind and got.shape == (2, 3)
    np.testing.assert_array_equal(got, expected)
    v = Vector.from_coo([1], np.ones(1, dtype), size=3)
    assert v.to_numpy(fill=fill).dtype == kind
    np.testing.assert_array_equal(v.to_numpy(fill=fill), [fill, 1, fill])


@pytest.mark.parametrize("fill", [2**64, 1j, "x", None, [1, 2]])
def test_what_a_dense_array_cannot_hold(fill: Any) -> None:
    with pytest.raises(ValueError, match="fill: "):
        Vector.from_coo([1], [7], size=3).to_numpy(fill=fill)
    with pytest.raises(ValueError, match="fill: expected a real number of at most 64 bits"):
        Matrix.from_dense(DENSE).to_dense(fill)


def test_a_dense_array_without_memory() -> None:
    for extent in (2**62, 2**55):
        A = Matrix.from_coo([0], [1], nrows=2, ncols=extent)
        with pytest.raises(
            MemoryError, match=f"to_dense: no memory for 2 x {extent} values of bool"
        ):
            A.to_dense()


def test_positions_of_more_than_64_bits() -> None:
    v, A = Vector.from_dense([1, 2]), Matrix.from_dense(DENSE)
    for call in (
        lambda: v[2**70],
        lambda: A[0, 2**70],
        lambda: A[[0, 2**64]],
        lambda: sg.extract(v, [2**65, 0]),
        lambda: sg.assign(v, 1, [2**65]),
        lambda: sg.bfs(Matrix.from_dense(np.eye(2)), 2**64),
    ):
        with pytest.raises(IndexError, match=r"expected (0|-\d) <= .*got \d{20}"):
            call()
    for call in (
        lambda: sg.diag(v, 2**63 - 2),
        lambda: sg.diag(A, -(2**70)),
        lambda: Vector.unit(0, 1, size=2**63, dtype=int),
        lambda: Matrix.from_coo([0], [1], ncols=2**63),
        lambda: Matrix.from_coo([], [], nrows=2**63, ncols=2),
        lambda: Vector.from_coo([0], [1], size=2**63),
    ):
        with pytest.raises(ValueError, match=r"expected an? \w+ below 2\*\*63"):
            call()


def test_dense_arrays_of_iso_matrices_and_views() -> None:
    A = Matrix.from_dense(DENSE)
    assert A.to_dense().tolist() == DENSE.tolist() == A.T.to_dense().T.tolist()
    assert A.pattern().to_dense().tolist() == (DENSE != 0).tolist()
    assert A.pattern(np.int8).to_dense(fill=-1).tolist() == [[-1, 1, -1], [1, -1, 1]]
    assert Matrix.empty(2, 0).to_dense().shape == (2, 0)
    assert np.shares_memory(A.to_dense(), A.values) is False


def test_a_full_vector_is_an_array() -> None:
    v = Vector.from_dense([1.5, 2.5])
    for made in (np.asarray(v), np.array(v), np.array(v, copy=True), np.asarray(v, np.float64)):
        assert made.tolist() == [1.5, 2.5] and not np.shares_memory(made, v.values)
        made[0] = 7  # a copy, which is its owner's to write
    seen = np.array(v, copy=False)
    assert np.shares_memory(seen, v.values) and not seen.flags.writeable
    assert np.asarray(v, dtype=np.int8).tolist() == [1, 2]
    assert v.to_numpy().tolist() == [1.5, 2.5]
    np.testing.assert_array_equal(v, [1.5, 2.5])
    assert np.allclose(v, v) and v == pytest.approx(np.array([1.5, 2.5 + 1e-12]))
    assert np.array([1.5, 2.5 + 1e-12]) == pytest.approx(v)
    assert np.array([1.5, 2.6]) != pytest.approx(v)


def test_no_copy_where_one_is_needed() -> None:
    v, bitmap = Vector.from_dense([1.5, 2.5]), Vector.from_coo([1, 0], [2.5, 1.5], size=2)
    sparse = Vector.from_coo([0, 9], [1, 2], size=100).to_sparse()
    with pytest.raises(ValueError, match="copy=False: an array of float32 needs a copy"):
        np.array(v, dtype=np.float32, copy=False)
    with pytest.raises(ValueError, match="2 entries in 100 positions"):
        np.array(sparse, copy=False)
    assert np.shares_memory(np.array(bitmap, copy=False), bitmap.values)
    assert np.asarray(bitmap).tolist() == [1.5, 2.5]


@pytest.mark.parametrize("call", [np.asarray, lambda v: pytest.approx(v), np.median])
def test_a_vector_with_empty_positions_is_none(call: Any) -> None:
    with pytest.raises(ValueError, match=r"1 entries in 3 positions; .* to_numpy\(fill=-1\)"):
        call(Vector.from_coo([1], [7.0], size=3))


def test_other_libraries_see_a_full_vector() -> None:
    v = Vector.from_dense([1.5, 2.5, 0.5])
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.subplots()
    (line,) = axes.plot(v)
    assert line.get_ydata().tolist() == [1.5, 2.5, 0.5]
    axes.scatter(v, v)
    axes.hist(v)
    with pytest.raises(TypeError, match="is no array"):
        axes.imshow(Matrix.from_dense(DENSE))
    with pytest.raises(ValueError, match="array"):
        axes.plot(Vector.from_coo([1], [7.0], size=3))


def test_pandas_sees_a_full_vector() -> None:
    pandas = pytest.importorskip("pandas", reason="pip install 'spgraph[dev]'")
    v = Vector.from_dense([1.5, 2.5, 0.5])
    assert pandas.Series(v).tolist() == [1.5, 2.5, 0.5]
    frame = pandas.DataFrame({"rank": v})
    assert frame["rank"].tolist() == [1.5, 2.5, 0.5]
    with pytest.raises(ValueError, match="1 entries in 3 positions"):
        pandas.Series(Vector.from_coo([1], [7.0], size=3))


@pytest.mark.gpu
def test_what_lies_on_cuda_is_not_read_in_silence() -> None:
    v, A = Vector.from_dense([1.5, 2.5]).to("cuda"), Matrix.from_dense(DENSE).to("cuda")
    for copy in (None, True, False):
        with pytest.raises(TypeError, match=r"the Vector is on cuda:0: .* \.to_numpy\(\)"):
            np.array(v, copy=copy)
    with pytest.raises(TypeError, match="is no array"):
        np.asarray(A)
    made = A.to_dense(fill=-1)
    assert type(made).__module__.startswith("cupy")
    assert made.get().tolist() == np.where(DENSE, DENSE, -1).tolist()
    assert (v * sg.Vector.from_dense([2.0]).to("cuda")._total()).to_numpy().tolist() == [3.0, 5.0]


def test_masked_arrays_are_refused() -> None:
    hidden = np.ma.masked_array([1, 2], [False, True])
    number = np.ma.masked_array(3.0, True)
    v, A = Vector.from_dense([1.0, 2.0, 3.0]), Matrix.from_dense(np.ones((3, 3)))
    shards = A.distribute(2)
    calls: list[Callable[[], object]] = [
        lambda: sg.extract(v, hidden),
        lambda: sg.extract(A, hidden, [0]),
        lambda: A[0, hidden],
        lambda: v[hidden],
        lambda: v + number,
        lambda: v + np.ma.masked,
        lambda: v > number,
        lambda: sg.select(v, sg.semirings.indexunary.valuegt, number),
        lambda: sg.apply(v, sg.semirings.binary.plus, right=number),
        lambda: sg.assign(v.dup(), number),
        lambda: sg.assign(v.dup(), 1.0, hidden),
        lambda: Vector.filled(number, size=3),
        lambda: Vector.from_dense([1.0, 2.0], missing=np.ma.masked),
        lambda: Vector.from_coo([0], [1.0], size=2).to_numpy(fill=number),
        lambda: sg.multi_source_bfs(A, hidden),
        lambda: sg.betweenness_centrality(A, sources=hidden),
        lambda: sg.closeness_centrality(A, sources=hidden),
        lambda: A.distribute(2, partition=np.ma.masked_array([0, 1, 1], [0, 1, 0])),
        lambda: sg.extract(shards, hidden, [0]),
        lambda: sg.betweenness_centrality(shards, sources=hidden),
    ]
    for call in (
        *calls,
        lambda: Vector.from_dense(hidden),
        lambda: Matrix.from_dense(np.ma.masked_array(np.eye(2), np.eye(2))),
        lambda: Matrix.from_coo(hidden, [0, 1], [1, 2]),
        lambda: Vector.from_coo([0, 1], hidden),
    ):
        with pytest.raises(DomainMismatch, match="expected an array without a mask"):
            call()


def test_equality_of_what_is_no_array() -> None:
    """NumPy takes the error of a conversion for False."""
    A, v = sg.Matrix([[1, 2], [0, 3]]), sg.Vector([1, 2])
    sparse = sg.Vector.from_coo([1], [2], size=3)
    for test in (np.array_equal, np.array_equiv):
        for pair in ((A, A), (A.toarray(), A), (A, A.distribute(2)), (sparse, sparse)):
            said = rf"^numpy.{test.__name__}: expected arrays, got .*; A.isequal\(B\) compares"
            with pytest.raises(TypeError, match=said):
                test(*pair)
        assert test(v, v) and test(v, [1, 2]) and not test(v, [1, 3])
    assert np.sum(A) == 6 and np.shape(A) == (2, 2)


def test_a_matrix_beside_a_row_or_column() -> None:
    A = sg.Matrix([[1, 2], [0, 3]])
    B: Any
    for B in (A > 1, A, A.to_scipy() > 1):
        for key in ((B, 0), (0, B), (slice(None), B)):
            with pytest.raises(DomainMismatch, match=r"^\[\]: expected rows and columns, each"):
                A[key]
            with pytest.raises(
                DomainMismatch, match=r"of 2 x 2; a bool Matrix is the only key, A\[A > 1\]"
            ):
                A[key] = 1


def test_an_array_of_no_dimensions_is_an_integer() -> None:
    """As NumPy and SciPy take it."""
    at: Any = np.array(1)
    A = sg.generators.grid(2, 2)
    for find in (sg.bfs, sg.sssp, sg.multi_source_bfs):
        one, other = find(A, at), find(A, 1)
        same = zip(one, other, strict=True) if isinstance(one, tuple) else [(one, other)]
        assert all(x.isequal(y) for x, y in same if y is not None)
    assert sg.bfs(A, 0, max_depth=at).level.isequal(sg.bfs(A, 0, max_depth=1).level)
    assert sg.Vector.empty(at).size == 1 and sg.extract(A, at).isequal(A[1])
    assert sg.pagerank(A, damping=np.array(0.5), max_iter=np.array(99)).isequal(  # type: ignore[arg-type]
        sg.pagerank(A, damping=0.5, max_iter=99)
    )
    with pytest.raises(DomainMismatch, match="source: expected an integer"):
        sg.bfs(A, np.array(1.0))  # type: ignore[arg-type]
    with pytest.raises(DomainMismatch, match="source: expected an integer"):
        sg.bfs(A, np.array([1]))  # type: ignore[arg-type]
