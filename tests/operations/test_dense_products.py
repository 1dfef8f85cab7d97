"""Products of a Matrix with arrays: against plain loops, SciPy, and products of Vectors.

A pairwise cover of the parameters runs by default, more of the types under the marker `full`.
"""

# ruff: noqa: E501  (the cases of `REFUSED` are a table, one line each)

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from typing import Any

import hypothesis.extra.numpy as arrays
import numpy as np
import oracle
import pytest
import scipy.sparse
from fixtures_device import device  # noqa: F401
from hypothesis import given, settings
from hypothesis import strategies as some
from pairwise import pairwise

import spgraph as sg
from spgraph import operations, semirings
from spgraph.backends.cpu.runtime import pool
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import is_cuda, move
from spgraph.errors import BackendMismatch, DimensionMismatch, DomainMismatch
from spgraph.semirings import Monoid, Semiring, any_first, binary, min_plus, monoid

TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()
ADD = ["plus", "min", "max", "any", "lor", "times"]
WIDTHS = [0, 1, 2, 4, 5, 8, 16, 31, 32, 64, 100, 600]
MULTIPLY = ["first", "second", "times", "plus", "pair", "firsti", "secondj1", "minus"]
# Each is a kernel to compile, two with widths: every operator, every kind of type on either side,
# both sides and both types of indices are in one of them.
KERNEL = ("add", "multiply", "dtype", "other", "left", "index")
KERNELS: list[tuple[Any, ...]] = [
    ("plus", "times", "float32", "int64", False, "int32"),
    ("plus", "minus", "int64", "uint8", True, "int64"),
    ("plus", "pair", "bool", "float32", True, "int32"),
    ("min", "plus", "float32", "float32", False, "int64"),
    ("max", "first", "int64", "float32", True, "int32"),
    ("max", "secondj1", "bool", "int64", False, "int64"),
    ("times", "firsti", "float32", "uint8", True, "int32"),
    ("any", "second", "int64", "int64", False, "int32"),
    ("lor", "second", "bool", "bool", False, "int32"),
    ("times", "second", "bool", "uint8", False, "int64"),
]
LAYOUT: dict[str, list[Any]] = {
    "width": [None, 1, 3, 33],  # None: one dimension
    "iso": [False, True],
    "order": ["C", "F", "strided", "reversed"],
    "fill": [None, 1],
    "threads": [1, 2],
}
FREE_KERNEL: dict[str, list[Any]] = {
    "add": ADD,
    "multiply": MULTIPLY,
    "dtype": TYPES,
    "other": TYPES,
    "left": [False, True],
    "index": ["int32", "int64"],
}
NROWS, NCOLS = 23, 29


def possible(case: dict[str, Any]) -> bool:
    """Whether a semiring of that name takes the types."""
    try:
        ring_of(case).resolve(case["dtype"], case["other"])
    except DomainMismatch:
        return False
    return True


def ring_of(case: dict[str, Any]) -> Semiring:
    return Semiring(getattr(monoid, case["add"]), getattr(binary, case["multiply"]))


def name_of(case: dict[str, Any]) -> str:
    return "-".join(map(str, case.values()))


CASES = [
    dict(zip(KERNEL, case.pop("kernel"), strict=True)) | case
    for case in pairwise({"kernel": KERNELS} | LAYOUT)
]
FREE = [
    pytest.param(case, marks=pytest.mark.full)
    for case in pairwise(FREE_KERNEL | LAYOUT | {"width": WIDTHS}, seed=1)
    if possible(case)
]


def draw(chance: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    low = 0 if np.dtype(dtype).kind in "bu" else -3
    return chance.integers(low, 6, shape).astype(dtype)


def matrix_of(case: dict[str, Any], chance: np.random.Generator) -> Matrix:
    """A random Matrix with empty rows and columns."""
    present = chance.random((NROWS, NCOLS)) < 0.2
    present[[0, 7, NROWS - 1]] = False
    present[:, [3, NCOLS - 1]] = False
    indptr = np.concatenate(([0], np.cumsum(present.sum(1)))).astype(case["index"])
    values = draw(chance, (1 if case["iso"] else int(indptr[-1]),), case["dtype"])
    columns = np.nonzero(present)[1].astype(case["index"])
    return Matrix._of(NROWS, NCOLS, indptr, columns, values, iso=case["iso"])


def laid_out(x: np.ndarray, order: str) -> np.ndarray:
    """The same values in another layout, read-only."""
    if order == "F":
        x = np.asfortranarray(x)
    elif order == "strided":
        x = np.repeat(x, 3, axis=-1)[..., ::3]
    elif order == "reversed":
        x = np.ascontiguousarray(x[::-1])[::-1]
    else:
        x = x.copy()
    x.flags.writeable = False
    return x


def expected_of(case: dict[str, Any], A: Matrix, X: np.ndarray, nothing: Any) -> np.ndarray:
    """The product in plain loops: X has one column for each product (`left`: one row)."""
    add, multiply, left = case["add"], case["multiply"], case["left"]
    types = (case["other"], case["dtype"]) if left else (case["dtype"], case["other"])
    kind = oracle.product_type(add, multiply, *types, case["index"])
    lines = X if left else X.T
    found = np.full((len(lines), NCOLS if left else NROWS), nothing, kind)
    for c, line in enumerate(lines):
        for i, j, a in A:
            k, to = (i, j) if left else (j, i)
            at = (c, k, k, j) if left else (i, k, k, c)
            pair = (line[k].item(), a) if left else (a, line[k].item())
            value = oracle.call(multiply, kind, *pair, at=at)
            if (c, to) in (done := expected_of.__dict__.setdefault("done", set())):
                value = oracle.call(add, kind, found[c, to].item(), value)
            done.add((c, to))
            found[c, to] = value
    expected_of.__dict__["done"] = set()
    return found if left else found.T


def identity_of(case: dict[str, Any]) -> Any:
    types = (case["other"], case["dtype"]) if case["left"] else (case["dtype"], case["other"])
    return ring_of(case).resolve(*types, index=np.dtype(case["index"])).add.identity


@pytest.mark.parametrize("case", [*CASES, *FREE], ids=name_of)
def test_cover(case: dict[str, Any], device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "threads_for", lambda work, *share: case["threads"])
    check(case, device)


def check(case: dict[str, Any], device: str) -> None:
    chance = np.random.default_rng(zlib.crc32(name_of(case).encode()))
    A, left, width = matrix_of(case, chance), case["left"], case["width"]
    if case["add"] == "any":  # any one of the products: let all be equal
        A = Matrix._of(NROWS, NCOLS, A.indptr, A.indices, np.ones(1, case["dtype"]), iso=True)
    size = NROWS if left else NCOLS
    X = draw(chance, (1 if width is None else width, size), case["other"])
    X = np.ones_like(X) if case["add"] == "any" else X
    X = X if left else X.T
    fill = 1 if case["add"] == "any" else case["fill"]
    nothing = identity_of(case) if fill is None else fill
    expected = expected_of(case, A, X, nothing)
    there = A.to(device)
    x = move(laid_out(X if width is not None else X.ravel(), case["order"]), there.device)
    name = "mxm" if width is not None else "vxm" if left else "mxv"
    got = getattr(operations, name)(*((x, there) if left else (there, x)), ring_of(case), fill=fill)
    assert is_cuda(got) == is_cuda(x) and type(got) is type(x)
    assert got.dtype == expected.dtype
    assert got.shape == (expected.shape if width is not None else (expected.size,))
    if case["add"] == "any" and case["multiply"] in ("firsti", "secondj1"):
        return  # which of the positions is free
    assert np.array_equal(move(got, "cpu").reshape(expected.shape), expected, equal_nan=True)


# --- the names of the operators: SciPy's results --------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "other"),
    [
        pytest.param("float32", "float32", marks=pytest.mark.full),
        ("float64", "float32"),
        pytest.param("int32", "int64", marks=pytest.mark.full),
    ],
)
def test_scipys_products(dtype: str, other: str) -> None:
    chance = np.random.default_rng(5)
    S = scipy.sparse.random_array((60, 50), density=0.1, rng=chance, format="csr")
    S = (8 * S).astype(dtype)
    A = Matrix.from_scipy(S)
    x, y = draw(chance, (50,), other), draw(chance, (60,), other)
    X, Y = draw(chance, (50, 9), other), draw(chance, (4, 60), other)
    for ours, theirs in ((A @ x, S @ x), (y @ A, y @ S), (A @ X, S @ X), (Y @ A, Y @ S)):
        assert type(ours) is np.ndarray and ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape and np.allclose(ours, theirs, rtol=1e-5)


# both sides where values are added: by default the other semirings are on one
ONE_SIDE = [("plus_times", True), ("min_plus", False), ("plus_pair", True), ("lor_land", False)]
ONE_SIDE += [("max_first", True)]


@pytest.mark.parametrize(
    ("name", "left"),
    [
        pytest.param(name, left, marks=pytest.mark.full if (name, left) in ONE_SIDE else ())
        for name in ("plus_times", "min_plus", "max_first", "plus_pair", "lor_land")
        for left in (False, True)
    ],
)
def test_the_same_as_vectors_column_by_column(name: str, left: bool, device: str) -> None:
    """With NaN, infinities and negative zeros among the values."""
    chance = np.random.default_rng(8)
    S = scipy.sparse.random_array((40, 40), density=0.2, rng=chance, format="csr")
    S.data[::7], S.data[1::9] = np.nan, -np.inf
    X = chance.random((40, 6))
    X[::5], X[1::6], X[2::7] = np.inf, np.nan, -0.0
    semiring = getattr(semirings, name)
    A = Matrix.from_scipy(S).to(device)
    given = move(np.ascontiguousarray(X.T if left else X), A.device)
    got = sg.mxm(given, A, semiring) if left else sg.mxm(A, given, semiring)
    lines = move(got if left else got.T, "cpu")
    nothing = semiring.resolve(A.dtype, X.dtype).add.identity
    for column, line in zip(X.T, lines, strict=True):
        u = Vector.from_dense(column).to(device)
        t = sg.vxm(u, A, semiring) if left else sg.mxv(A, u, semiring)
        assert np.allclose(line, t.to_numpy(fill=nothing), rtol=1e-12, equal_nan=True)


@settings(max_examples=40, deadline=None)
@given(some.data())
def test_any_array_that_numpy_multiplies(data: some.DataObject) -> None:
    nrows, ncols, width = (data.draw(some.integers(0, 6)) for _ in range(3))
    numbers = some.integers(-4, 4)
    a = data.draw(arrays.arrays(np.int64, (nrows, ncols), elements=numbers))
    X = data.draw(arrays.arrays(np.int64, (ncols, width), elements=numbers))
    A = Matrix.from_dense(a)
    assert np.array_equal(A @ X, a @ X)
    assert np.array_equal(X.T @ A.T, X.T @ a.T)
    if width:
        assert np.array_equal(A @ X[:, 0], a @ X[:, 0])
        assert np.array_equal(X[:, 0] @ A.T, X[:, 0] @ a.T)


# --- rows without entries -------------------------------------------------------------------------

EMPTY = Matrix.from_coo([0, 2], [1, 1], [2.0, 3.0], nrows=3, ncols=2)


@pytest.mark.parametrize("width", [None, 1, 2])
def test_a_row_without_entries_holds_the_identity_or_fill(width: int | None, device: str) -> None:
    A = EMPTY.to(device)
    x = move(np.ones(2) if width is None else np.ones((2, width)), A.device)
    product = sg.mxv if width is None else sg.mxm

    def row(*semiring: Any, **fill: Any) -> Any:
        return np.unique(move(product(A, x, *semiring, **fill), "cpu")[1]).tolist()

    assert row() == [0] and row(min_plus) == [np.inf] and row(semirings.max_times) == [-np.inf]
    assert row(fill=-1) == [-1] and row(any_first, fill=np.float32(0.5)) == [0.5]
    with pytest.raises(ValueError, match=r"fill: expected a number for rows without entries.*any"):
        row(any_first)
    with pytest.raises(ValueError, match=r"fill: expected a number that int64 holds.*nan; to_n"):
        row(semirings.plus_pair, fill=np.nan)


@pytest.mark.parametrize("width", [None, 1, 2, 20])
def test_the_sign_of_a_zero_fill_is_kept(width: int | None, device: str) -> None:
    A = EMPTY.to(device)
    x = move(np.ones(2) if width is None else np.ones((2, width)), A.device)
    product = sg.mxv if width is None else sg.mxm
    assert np.signbit(move(product(A, x, fill=-0.0), "cpu")[1]).all()
    assert not np.signbit(move(product(A, x, fill=0.0), "cpu")[1]).any()


def test_a_monoid_of_ones_own_has_its_identity() -> None:
    third = Monoid(binary.max, identity=7)
    assert sg.mxv(EMPTY, np.ones(2), Semiring(third, binary.times)).tolist() == [7, 7, 7]


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("width", [0, 1, 4])
def test_no_rows_or_columns(shape: tuple[int, int], width: int, device: str) -> None:
    A = Matrix.empty(*shape).to(device)
    X = move(np.ones((shape[1], width)), A.device)
    assert (A @ X).shape == (shape[0], width) and not move(A @ X, "cpu").any()
    assert (X.T @ A.T).shape == (width, shape[0])
    assert (A @ move(np.ones(shape[1]), A.device)).tolist() == [0] * shape[0]


# --- kinds of arrays ------------------------------------------------------------------------------


def test_arrays_of_other_kinds_are_answered(tmp_path: Any) -> None:
    a = np.arange(12.0).reshape(3, 4)
    A, X = Matrix.from_dense(a), np.arange(8.0).reshape(4, 2)
    mapped = np.memmap(tmp_path / "x", np.float64, "w+", shape=(4, 2))
    mapped[:] = X
    with pytest.warns(PendingDeprecationWarning):
        old = np.asmatrix(X)
    for array in (X.astype(">f8"), X.view(np.recarray), mapped, old, X.astype(">i2")):
        got = A @ array
        assert type(got) is np.ndarray and got.dtype == np.float64
        assert np.array_equal(got, a @ X)
    assert type(old.T @ A.T) is np.ndarray
    assert type(sg.mxv(a, X[:, 0])) is np.ndarray and type(sg.mxm(a, X)) is np.ndarray


def test_the_result_is_new_and_arguments_stay(device: str) -> None:
    identity = Matrix.from_dense(np.eye(4)).to(device)
    for shape in (4, (4, 1), (4, 3)):
        x = move(np.ones(shape), identity.device)
        first = identity @ x
        first += 1
        assert x.tolist() == np.ones(shape).tolist()
        assert (identity @ x).tolist() == np.ones(shape).tolist()


X2 = np.ones((2, 2))
REFUSED: list[tuple[str, Callable[[Matrix], Any], type[Exception], str]] = [
    ("complex", lambda A: A @ (X2 * 1j), DomainMismatch, "mxm: B: dtype: expected bool, .*float64, got complex128"),
    ("object", lambda A: A @ X2.astype(object), DomainMismatch, "mxm: B: dtype: .*got object"),
    ("half", lambda A: A @ X2.astype("f2"), DomainMismatch, "mxm: B: dtype: .*got float16"),
    ("text", lambda A: np.array(["a", "b"]) @ A.T, DomainMismatch, "vxm: u: dtype: .*got <U1"),
    ("masked", lambda A: A @ np.ma.masked_array(X2), DomainMismatch, "mxm: B: expected an array without a mask"),
    ("masked left", lambda A: np.ma.masked_array(X2[0]) @ A.T, DomainMismatch, "vxm: u: expected an array without a mask"),
    ("none", lambda A: A @ np.array(1.0), DimensionMismatch, "mxm: B: expected an array of 2 dimensions, got 0"),
    ("three", lambda A: A @ np.ones((2, 2, 2)), DimensionMismatch, "mxm: B: expected an array of 2 dimensions, got 3"),
    ("mxv two", lambda A: sg.mxv(A, X2), DimensionMismatch, "mxv: u: expected an array of 1 dimension, got 2; mxm takes 2"),
    ("vxm two", lambda A: sg.vxm(X2, A.T), DimensionMismatch, "vxm: u: expected an array of 1 dimension, got 2; mxm takes 2"),
    ("mxm one", lambda A: sg.mxm(A, X2[0]), DimensionMismatch, "mxm: B: expected .* got 1; mxv takes 1"),
    ("mxm one left", lambda A: sg.mxm(X2[0], A), DimensionMismatch, "mxm: A: expected .* got 1; vxm takes 1"),
    ("rows", lambda A: A @ np.ones((3, 2)), DimensionMismatch, r"mxm: B.shape \(3, 2\) does not fit A.ncols 2"),
    ("columns", lambda A: np.ones((2, 2)) @ A, DimensionMismatch, r"mxm: A.shape \(2, 2\) does not fit B.nrows 3"),
    ("size", lambda A: A @ np.ones(3), DimensionMismatch, r"mxv: u.shape \(3,\) does not fit A.ncols 2"),
    ("size left", lambda A: np.ones(2) @ A, DimensionMismatch, r"vxm: u.shape \(2,\) does not fit A.nrows 3"),
    ("semiring", lambda A: sg.mxm(A, X2, binary.plus), DomainMismatch, "mxm: semiring: expected a Semiring"),
    ("types", lambda A: sg.mxm(A, X2, Semiring(monoid.bor, binary.plus)), DomainMismatch, "mxm: .*bor"),
    ("mask", lambda A: sg.mxm(A, X2, mask=A.S), ValueError, "mxm: mask: expected none beside an array.*give B as a Vector or Matrix"),
    ("accum", lambda A: sg.mxv(A, X2[0], accum=binary.plus), ValueError, "mxv: accum: expected none beside an array"),
    ("replace", lambda A: sg.vxm(X2[0], A.T, replace=True), ValueError, "vxm: replace: expected none beside an array"),
    ("out", lambda A: sg.mxv(A, X2[0], out=np.ones(3)), ValueError, "mxv: out: expected none beside an array.*NumPy's functions"),
    ("direction", lambda A: sg.mxv(A, X2[0], direction="down"), ValueError, "mxv: direction: expected 'auto'"),
    ("fill", lambda A: sg.mxv(A, Vector.arange(2), fill=0), ValueError, "mxv: fill: expected none beside a Vector.*to_numpy"),
    ("fill mxm", lambda A: sg.mxm(A, A.T, fill=0), ValueError, "mxm: fill: expected none"),
    ("fill list", lambda A: sg.mxm(A, X2, fill=[1]), DomainMismatch, "mxm: fill: expected a scalar, got list"),
    ("fill array", lambda A: sg.mxv(A, X2[0], fill=np.ones(1)), DomainMismatch, "mxv: fill: expected a scalar, got ndarray"),
    ("fill fraction", lambda A: sg.mxv(A, X2[0], semirings.plus_pair, fill=0.5), ValueError, "mxv: fill: expected a number that int64 holds, the type of the product over plus_pair, got 0.5; to_numpy"),
    ("fill range", lambda A: sg.mxm(A, X2, semirings.plus_pair, fill=2**70), ValueError, "mxm: fill: expected a number that int64 holds, .*to_dense"),
    ("fill text", lambda A: sg.mxm(A, X2, fill="1"), DomainMismatch, "mxm: fill"),
    ("vector", lambda A: Vector.arange(3) @ X2, DimensionMismatch, r"@: the shape \(2, 2\) does not fit a Vector of 3"),
    ("list", lambda A: A @ [1, 2], DomainMismatch, "@: expected a Matrix or a Vector, got list"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "error", "message"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_refused(call: Callable[[Matrix], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        call(EMPTY)
    assert re.search(message, str(raised.value))


@pytest.mark.gpu
def test_arrays_on_another_device() -> None:
    cupy = pytest.importorskip("cupy")
    for x in (np.ones(2), X2):
        with pytest.raises(BackendMismatch, match=r"on cpu, the Matrix on cuda:0; cupy.asarray"):
            EMPTY.to("cuda") @ x
        with pytest.raises(BackendMismatch, match=r"on cuda:0, the Matrix on cpu; cupy.asnumpy"):
            EMPTY @ cupy.asarray(x)
        with pytest.raises(BackendMismatch, match=r"on cuda:0, the Matrix on cpu; cupy.asnumpy"):
            cupy.asarray(x).T @ EMPTY.T
    assert isinstance(EMPTY.to("cuda") @ cupy.ones(2), cupy.ndarray)
    assert isinstance(cupy.ones((4, 3)) @ EMPTY.to("cuda"), cupy.ndarray)
