"""The logic of the CUDA backend where there is no GPU: its kernels run as C++ on the CPU (see
cuda_host_shim.h).
"""

from __future__ import annotations

import itertools
import signal
import zlib
from typing import Any

import cuda_host_shim as shim
import numpy as np
import pytest
import scipy.sparse

import tests.operations.test_elements as elements
import tests.operations.test_hypersparse as hypersparse
import tests.operations.test_products as products
from spgraph import semirings
from spgraph.backends import cpu, cuda
from spgraph.backends.cuda.entrywise import storage
from spgraph.backends.cuda.products import dense
from spgraph.containers import Mask, Matrix, Vector
from spgraph.semirings import Semiring, binary, monoid

pytestmark = pytest.mark.skipif(shim.COMPILER is None, reason="needs g++")


@pytest.fixture(autouse=True)
def on_host(monkeypatch: pytest.MonkeyPatch) -> None:
    shim.install(monkeypatch)


# --- operations: the cases of the CPU backend, some by default ------------------------------------


def some(cases: list[Any], each: int) -> list[Any]:
    return [
        pytest.param(case, marks=[pytest.mark.full] if k % each else [])
        for k, case in enumerate(cases)
    ]


@pytest.mark.parametrize("case", [*some(products.CASES, 6), *products.FREE], ids=products.name_of)
def test_products(case: dict[str, Any]) -> None:
    products.check(case, "cpu")


@pytest.mark.parametrize("case", [*some(elements.CASES, 12), *elements.FREE], ids=elements.name_of)
def test_elements(case: dict[str, Any]) -> None:
    chance = np.random.default_rng(zlib.crc32(elements.name_of(case).encode()))
    vectors = (
        elements.draw_vector(chance, elements.SIZE, case[key] or "sparse", case["dtype"])
        for key in elements.FOUR
    )
    elements.check(case, "cpu", *vectors, peer=False)


def test_hypersparse_vectors() -> None:
    hypersparse.test_masked_writes(0, "cpu")
    hypersparse.test_ways_to_write_a_mask("cpu")


# --- products: rows of every length ---------------------------------------------------------------

NCOLS = 5003


def rows_of_every_length(dtype: str, iso: bool, index: str = "int32") -> Matrix:
    """Rows of all classes in random order, with every length at which a class begins or ends."""
    chance = np.random.default_rng(5)
    lengths = [0, 1, 4, 5, 8, 9, 31, 32, 33, 64, 127, 128, 129, 1023, 1024, 1025, 2049, 5003]
    lengths += chance.integers(0, 40, 50).tolist()
    chance.shuffle(lengths)
    columns = [np.sort(chance.choice(NCOLS, length, replace=False)) for length in lengths]
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(index)
    values = np.ones(1, dtype) if iso else chance.integers(0, 4, int(indptr[-1])).astype(dtype)
    return Matrix._of(
        len(lengths), NCOLS, indptr, np.concatenate(columns).astype(index), values, iso=iso
    )


def vector(size: int, share: float, dtype: str, seed: int = 3) -> Vector:
    chance = np.random.default_rng(seed)
    found = np.flatnonzero(chance.random(size) < share)
    return Vector.from_coo(found, chance.integers(0, 5, found.size).astype(dtype), size=size)


SEMIRINGS = [
    ("plus_times", "int64", False),
    ("min_plus", "float32", False),
    ("lor_land", "bool", True),
    ("any_secondi", "int32", True),
    ("max_first", "uint8", False),
]


def same(semiring: str, ours: Vector, theirs: Vector) -> None:
    """Equal entries; for `any`, equal positions."""
    if semiring.startswith("any"):
        assert np.array_equal(ours.to_coo()[0], theirs.to_coo()[0])
    else:
        assert ours.isequal(theirs, check_dtype=True)


SHARES = {"pull": [(1.1, False), (0.3, True), (0.002, False)]}
SHARES["push"] = [(1.1, False), (0.3, True), (0.01, False)]


def crossed(kind: str) -> list[Any]:
    """Semirings x shares x masks. Each is compiled, for both backends: by default each share meets
    each mask once, with one semiring after the other.
    """
    cases = []
    for r, semiring in enumerate(SEMIRINGS):
        for s, share in enumerate(SHARES[kind]):
            for m, mask in enumerate(("none", "structure", "complement value")):
                marks = [] if r == (3 * s + m) % len(SEMIRINGS) else pytest.mark.full
                name = "-".join(map(str, (*semiring, *share, mask)))
                cases.append(pytest.param(*semiring, *share, mask, id=name, marks=marks))
    return cases


def mask_of(v: Vector, kind: str) -> Mask | None:
    return {"none": None, "structure": v.S, "complement value": ~v.V}[kind]


FACTORS = ("semiring", "dtype", "iso", "share", "flip", "mask")


@pytest.mark.parametrize(FACTORS, crossed("pull"))
def test_pull_rows_of_every_length(
    semiring: str, dtype: str, iso: bool, share: float, flip: bool, mask: str
) -> None:
    A = rows_of_every_length(dtype, iso)
    typed = getattr(semirings, semiring).resolve(A.dtype, A.dtype, index=A.indices.dtype)
    chosen = mask_of(vector(A.nrows, 0.5, "int8"), mask)
    u = vector(NCOLS, share, dtype).to_bitmap()
    same(semiring, cuda.pull(A, u, typed, chosen, flip), cpu.pull(A, u, typed, chosen, flip))


@pytest.mark.parametrize(FACTORS, crossed("push"))
def test_push_rows_of_every_length(
    semiring: str, dtype: str, iso: bool, share: float, flip: bool, mask: str
) -> None:
    A = rows_of_every_length(dtype, iso, "int64")
    typed = getattr(semirings, semiring).resolve(A.dtype, A.dtype, index=A.indices.dtype)
    chosen = mask_of(vector(NCOLS, 0.5, "int8"), mask)
    u = vector(A.nrows, share, dtype)
    same(semiring, cuda.push(A, u, typed, chosen, flip), cpu.push(A, u, typed, chosen, flip))


# (semiring, type of A, of X, iso, index, flip) and columns: of one load a lane, of two, of several
# tiles, and rows that are not aligned to 16 bytes
ARRAYS = [
    ("plus_times", "float32", "float32", False, "int32", False, (2, 4, 33, 64, 256, 300)),
    ("min_plus", "float64", "float64", False, "int64", True, (6, 64, 130)),
    ("lor_land", "bool", "bool", True, "int32", False, (5, 16, 48)),
    ("any_secondi", "int32", "int32", True, "int32", False, (8,)),
    ("plus_pair", "uint8", "int8", False, "int32", True, (32, 7)),
    ("max_secondj", "int32", "float32", False, "int64", False, (12,)),
    ("plus_times", "int16", "float64", False, "int32", False, (2,)),
]


def check_array(
    case: tuple[Any, ...], width: int, device: str, move: Any = lambda x, device: x
) -> None:
    """The product of rows of every length with an array, by both backends."""
    name, dtype, other, iso, index, flip, _ = case
    A = rows_of_every_length(dtype, iso, index)
    X = np.random.default_rng(width).integers(0, 5, (NCOLS, width)).astype(other)
    types = (other, dtype) if flip else (dtype, other)
    semiring = getattr(semirings, name, None) or Semiring(monoid.max, binary.secondj)
    typed = semiring.resolve(*types, index=A.indices.dtype)
    fill = typed.dtype.type(1)
    expected = cpu.multiply_array(A, X, typed, flip, fill)
    got = cuda.multiply_array(A.to(device), move(X, device), typed, flip, fill)
    got = move(got, "cpu")
    assert got.dtype == expected.dtype == typed.dtype and got.shape == expected.shape
    if name.startswith("any"):  # one of the products: a column of the row
        first = got[:, :1]
        assert np.array_equal(got, np.broadcast_to(first, got.shape))
        rows = [set(A.indices[a:b].tolist()) or {1} for a, b in pairwise_of(A.indptr)]
        assert all(value in row for value, row in zip(first[:, 0].tolist(), rows, strict=True))
    else:
        assert np.array_equal(got, expected)


def pairwise_of(bounds: np.ndarray) -> list[tuple[int, int]]:
    return list(itertools.pairwise(bounds.tolist()))


@pytest.mark.parametrize(
    ("case", "width"),
    [
        pytest.param(case, width, marks=pytest.mark.full if k > 1 else [])
        for case in ARRAYS
        for k, width in enumerate(case[-1])
    ],
    ids=lambda value: "-".join(map(str, value[:6])) if isinstance(value, tuple) else str(value),
)
def test_multiply_array_rows_of_every_length(case: tuple[Any, ...], width: int) -> None:
    check_array(case, width, "cpu")


@pytest.mark.parametrize("offset", [0, 1, 4])
def test_multiply_array_of_rows_at_any_address(offset: int) -> None:
    """16 bytes are loaded at once only where that is allowed."""
    A = rows_of_every_length("float32", False)
    store = np.arange(NCOLS * 4 + offset, dtype=np.float32) % 7
    X = store[offset:].reshape(NCOLS, 4)
    assert dense.dense_shape(4, 4, X.ctypes.data)[2] == (4 if X.ctypes.data % 16 == 0 else 1)
    typed = semirings.plus_times.resolve(A.dtype, X.dtype)
    got = cuda.multiply_array(A, X, typed, False, np.float32(0))
    assert np.array_equal(got, A.to_scipy() @ X)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (5, 5)])
def test_multiply_array_without_entries(shape: tuple[int, int]) -> None:
    A, X = Matrix.empty(*shape, np.float32), np.ones((shape[1], 8), np.float32)
    typed = semirings.plus_times.resolve(A.dtype, X.dtype)
    got = cuda.multiply_array(A, X, typed, False, np.float32(2))
    assert got.shape == (shape[0], 8) and (got == 2).all()


@pytest.mark.parametrize("inward", [False, True])
def test_star(inward: bool) -> None:
    """One row, or one column, that holds nearly all entries."""
    n = 7001
    S = scipy.sparse.coo_array(
        (np.arange(1, n), (np.zeros(n - 1, int), np.arange(1, n))), shape=(n, n)
    ).tocsr()
    S = (S.T if inward else S).tocsr()
    A, x = Matrix.from_scipy(S), np.arange(n) % 7
    typed = semirings.plus_times.resolve(A.dtype, A.dtype)
    u = Vector.from_dense(x)
    assert cuda.pull(A, u, typed, None, False).to_numpy(fill=0).tolist() == (S @ x).tolist()
    assert cuda.push(A, u, typed, None, False).to_numpy(fill=0).tolist() == (x @ S).tolist()


def test_narrow_types_are_counted_in_wide_ones() -> None:
    A = rows_of_every_length("bool", False)
    dense = A.to_scipy().toarray().astype(np.int64)
    x = np.random.default_rng(2).random(A.ncols) < 0.6
    y = np.random.default_rng(3).random(A.nrows) < 0.6
    typed = semirings.plus_times.resolve("bool", "bool")
    pulled = cuda.pull(A, Vector.from_dense(x), typed, None, False)
    pushed = cuda.push(A, Vector.from_dense(y), typed, None, False)
    assert pulled.dtype == pushed.dtype == np.int64
    assert pulled.to_numpy(fill=0).tolist() == (dense @ x).tolist()
    assert pushed.to_numpy(fill=0).tolist() == (y @ dense).tolist()
    for values in (x, np.full(3000, 100, np.int8), np.full(3000, 200, np.uint8)):
        found = cuda.reduce(Vector.from_dense(values), monoid.plus.reduction(values.dtype))
        assert found == values.sum() and found.dtype == values.sum().dtype


def test_nothing_to_do() -> None:
    typed = semirings.plus_times.resolve(np.float32, np.float32)
    for shape in ((0, 0), (5, 0), (0, 5), (5, 5)):
        A = Matrix.empty(*shape, np.float32)
        for u in (
            Vector.empty(shape[1], np.float32),
            Vector.from_dense(np.ones(shape[1], np.float32)),
        ):
            assert cuda.pull(A, u, typed, None, False).nvals == 0
        for u in (
            Vector.empty(shape[0], np.float32),
            Vector.from_dense(np.ones(shape[0], np.float32)),
        ):
            assert cuda.push(A, u, typed, None, False).nvals == 0


@pytest.mark.parametrize("size", [0, 1, 32, 33, 1000, 40_000])
@pytest.mark.parametrize("dtype", [bool, np.int16, np.float32, np.float64])
def test_a_bitmap_as_a_list(size: int, dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "PARTS", 3)  # of several steps each
    chance = np.random.default_rng(size)
    for share in (0.0, 0.001, 0.02, 0.9):
        ids = np.flatnonzero(chance.random(size) < share)
        values = chance.integers(0, 2, ids.size).astype(dtype)
        bitmap = Vector.from_coo(ids, values, size=size).to_bitmap()
        result = Vector._of(size, bitmap._values, bits=bitmap._bits)
        for found in (storage.to_sparse(bitmap), storage.conform(result)):
            assert found.nvals == ids.size
            assert np.array_equal(found.to_coo()[0], ids)
            assert np.array_equal(found.to_coo()[1], values)
        assert result._conform().storage == storage.conform(result).storage


@pytest.mark.parametrize("count", [1, 4, 1023, 1025, 4096, 4097])
def test_few_entries_and_many_are_pushed(count: int) -> None:
    """Of few entries one block adds up the degrees: here several steps of it."""
    size, chance = 5000, np.random.default_rng(count)
    S = scipy.sparse.random_array((size, size), density=0.001, rng=chance, format="csr")
    A = Matrix(S.astype(np.float32))
    ids = np.sort(chance.permutation(size)[:count])
    u = Vector.from_coo(ids, chance.integers(1, 9, count).astype(np.float32), size=size)
    typed = semirings.plus_times.resolve(np.float32, np.float32)
    found = cuda.push(A, u.to_sparse(), typed, None, False)
    expected = cpu.push(A, u, typed, None, False)
    assert np.array_equal(found.to_coo()[0], expected.to_coo()[0])
    assert np.allclose(found.to_coo()[1], expected.to_coo()[1], rtol=1e-5)


# --- Ctrl-C ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
def test_what_is_written_in_place_is_written_whole(
    sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt after each launch is raised when the entries and their bits fit together."""
    from spgraph.backends.cuda.runtime import jit

    sweep = jit.sweep
    present = np.arange(100) % 3 > 0
    out = Vector.from_coo(np.flatnonzero(present), np.arange(100)[present], size=100)
    mask = Vector.from_coo([0, 1, 2, 50], True, size=100)
    t = Vector.from_coo([0, 2, 51], [7, 8, 9], size=100)
    t = t if sparse else t.to_bitmap()
    out, mask = out.to_bitmap(), mask if sparse else mask.to_bitmap()
    expected = out.dup()
    cpu.write(expected, t.dup(), mask.S, None, False)

    def interrupted(*given: Any) -> None:
        sweep(*given)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(jit, "sweep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cuda.write(out, t, mask.S, None, False)
    monkeypatch.setattr(jit, "sweep", sweep)
    assert out.nvals == expected.nvals and out.isequal(expected)
