"""The backends' products of matrices against loops over dictionaries and against SciPy.

Every test of meaning runs on the CPU backend with 1, 2 and 3 threads, on the CUDA backend as the
shim runs it (see cuda_host_shim.py) and, marked `gpu`, on a GPU.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import oracle
import pytest
import scipy.sparse

import spgraph as sg
from spgraph import semirings
from spgraph.backends.cpu.products import multiply
from spgraph.backends.cpu.runtime import pool
from spgraph.containers import Mask, Matrix
from spgraph.semirings import BinaryOp, Semiring, TypedSemiring, monoid
from tests.backends.test_matrices import (  # noqa: F401
    Entries,
    Place,
    backend,
    draw,
    entries,
    equal,
    three_workers,
)

BOOL, INT8, INT32, INT64 = (np.dtype(name) for name in ("bool", "int8", "int32", "int64"))
FLOAT32 = np.dtype("float32")
# (rows of A, what both share, columns of B)
SHAPES = [(1, 1, 1), (1, 20, 130), (20, 1, 4), (13, 17, 11)]
EMPTY = [(0, 5, 3), (5, 0, 3), (5, 3, 0), (0, 0, 0)]
MASKS = ["none", "structure", "value", "complement structure", "complement value"]


class Case(NamedTuple):
    """A semiring over the types of A and B, and the same in plain Python."""

    typed: TypedSemiring
    types: tuple[np.dtype, np.dtype]
    add: str
    multiply: Callable[..., Any]


def built_in(name: str, dtype: np.dtype, index: np.dtype = INT64) -> Case:
    typed = getattr(semirings, name).resolve(dtype, dtype, index=index)
    add, operator = name.split("_")
    return Case(typed, (dtype, dtype), add, oracle.BINARY[operator])


def own(x: float, y: float) -> float:
    return x + 2 * y


CASES = {
    "plus_times float32": built_in("plus_times", FLOAT32),
    "plus_times int8": built_in("plus_times", INT8, INT32),
    "min_plus float32": built_in("min_plus", FLOAT32),
    "any_pair bool": built_in("any_pair", BOOL),
    "max_first int64": built_in("max_first", INT64),
    "plus_pair bool": built_in("plus_pair", BOOL),
    "min_secondi int64": built_in("min_secondi", INT64, INT32),
    "lor_land bool": built_in("lor_land", BOOL),
    "own": Case(
        Semiring(monoid.plus, BinaryOp.define(own)).resolve(INT64, INT8),
        (INT64, INT8),
        "plus",
        lambda x, y, *at: own(x, y),
    ),
}
# each of them compiles anew, so not every form sees all
DENSE = ["plus_times float32", "any_pair bool", "min_plus float32", "min_secondi int64", "own"]
FORMS = {"rows": list(CASES), "dots": [*DENSE, "lor_land bool"], "dense": DENSE}
# tests/operations/test_matrices.py multiplies over int8, too; the others are met in another form
FULL = {
    "rows": ["plus_times int8", "any_pair bool", "min_secondi int64", "lor_land bool"],
    "dots": ["min_plus float32", "own"],
    "dense": ["min_secondi int64", "plus_times float32"],
}
SHIM = ["plus_times float32", "any_pair bool", "own"]


def product(a: Entries, b: Entries, case: Case) -> dict[tuple[int, int], list[Any]]:
    """The products of each entry of A B, in ascending order of k."""
    rows: dict[int, list[tuple[int, Any]]] = {}
    for (k, j), y in sorted(b.items()):
        rows.setdefault(k, []).append((j, y))
    found: dict[tuple[int, int], list[Any]] = {}
    for (i, k), x in sorted(a.items()):
        for j, y in rows.get(k, ()):
            value = oracle.cast(case.multiply(x, y, i, k, k, j), case.typed.dtype)
            found.setdefault((i, j), []).append(value)
    return found


def check(got: Matrix, case: Case, found: dict[tuple[int, int], list[Any]]) -> None:
    dtype = case.typed.dtype
    if case.add != "any":
        expected = {at: oracle.total(case.add, dtype, values) for at, values in found.items()}
        equal(got, expected, dtype)
        return
    values = entries(got)
    equal(got, values, dtype)
    assert values.keys() == found.keys()
    assert all(value in found[at] for at, value in values.items())


def mask_of(kind: str, M: Matrix) -> Mask | None:
    if kind == "none":
        return None
    mask = M.S if kind.endswith("structure") else M.V
    return ~mask if kind.startswith("complement") else mask


def full(chance: np.random.Generator, shape: tuple[int, int], dtype: np.dtype, iso: bool) -> Matrix:
    """A matrix that has all its entries."""
    values = chance.integers(0, 4, 1 if iso else shape[0] * shape[1]).astype(dtype)
    indptr = np.arange(shape[0] + 1, dtype=np.int32) * np.int32(shape[1])
    columns = np.tile(np.arange(shape[1], dtype=np.int32), shape[0])
    return Matrix._of(*shape, indptr, columns, values, iso=iso)


def on_shim(backend: Place) -> bool:
    return backend.module.__name__.endswith("cuda") and backend.device == "cpu"


@pytest.mark.parametrize(
    ("form", "name"),
    [
        pytest.param(form, name, marks=pytest.mark.full if name in FULL[form] else [])
        for form, names in FORMS.items()
        for name in names
    ],
)
def test_semirings(backend: Place, name: str, form: str) -> None:
    if on_shim(backend) and name not in SHIM:
        pytest.skip("the shim takes seconds to compile each")
    case = CASES[name]
    chance = np.random.default_rng(list(CASES).index(name))
    isos = [(False, False), (True, False), (False, True), (True, True)]
    for (n, m, p), iso in [*zip(EMPTY, isos, strict=True), *itertools.product(SHAPES, isos)]:
        A = draw(chance, (n, m), case.types[0], iso=iso[0])
        if form == "dense":
            B = full(chance, (m, p), case.types[1], iso[1])
            got = backend.multiply_dense(A, B, case.typed)
            check(got, case, product(entries(A), entries(B), case))
            continue
        B = draw(chance, (m, p), case.types[1], iso=iso[1])
        found = product(entries(A), entries(B), case)
        if form == "rows":
            got = backend.multiply_rows(A, B, case.typed, None)
        else:
            M = draw(chance, (n, p))
            got = backend.multiply_dots(A, B.T, case.typed, M.S)
            found = {at: found[at] for at in found.keys() & entries(M).keys()}
        check(got, case, found)
        assert got.iso or name != "any_pair bool"


MASKED = [
    pytest.param(name, mask, marks=pytest.mark.full if "any" in name and k % 3 else [])
    for name in ("plus_times float32", "any_pair bool")
    for k, mask in enumerate(MASKS[1:])
]


@pytest.mark.parametrize(("name", "mask"), MASKED)
def test_masks(backend: Place, name: str, mask: str) -> None:
    """Mask rows that are empty, complete, shorter and longer than the products, true and false."""
    case = CASES[name]
    chance = np.random.default_rng(MASKS.index(mask))
    shapes = [*SHAPES, (9, 6, 300), (300, 6, 9)]
    for (n, m, p), iso in itertools.product(shapes, [False, True]):
        A, B = draw(chance, (n, m), case.types[0]), draw(chance, (m, p), case.types[1])
        M = draw(chance, (n, p), INT8, iso=iso)
        found = product(entries(A), entries(B), case)
        may = oracle.allowed((n, p), mask, entries(M))
        found = {at: found[at] for at in found.keys() & may}
        chosen = mask_of(mask, M)
        check(backend.multiply_rows(A, B, case.typed, chosen), case, found)
        if not mask.startswith("complement"):
            check(backend.multiply_dots(A, B.T, case.typed, chosen), case, found)


def test_index_types(backend: Place) -> None:
    """int32 and int64 of each array alike; the result has the smallest that fit."""
    case = CASES["plus_times float32"]
    chance = np.random.default_rng(5)
    A = draw(chance, (13, 17), FLOAT32, (INT64, INT32))
    B = draw(chance, (17, 11), FLOAT32, (INT32, INT64))
    M = draw(chance, (13, 11), types=(INT64, INT32))
    found = product(entries(A), entries(B), case)
    found = {at: found[at] for at in found.keys() & entries(M).keys()}
    check(backend.multiply_rows(A, B, case.typed, M.S), case, found)
    check(backend.multiply_dots(A, B.T, case.typed, M.S), case, found)
    X = full(chance, (17, 4), FLOAT32, False)
    check(backend.multiply_dense(A, X, case.typed), case, product(entries(A), entries(X), case))


def test_flops(backend: Place) -> None:
    chance = np.random.default_rng(6)
    for n, m, p in [*EMPTY, *SHAPES]:
        A, B = draw(chance, (n, m)), draw(chance, (m, p))
        length = np.diff(B.indptr)
        # not through the wrapper, which moves a Matrix back
        got = backend.module.multiply_flops(backend.there(A), backend.there(B))
        assert isinstance(got, int) and got == sum(length[k] for k in A.indices)


def test_nan_is_left_out_of_a_minimum(backend: Place) -> None:
    if on_shim(backend):
        pytest.skip("the shim takes seconds to compile each")
    typed = CASES["min_plus float32"].typed
    A = Matrix.from_dense(np.array([[np.nan, 0], [np.nan, 7]], np.float32), missing=0)
    B = Matrix.from_dense(np.ones((2, 5), np.float32))
    for got in (
        backend.multiply_rows(A, B, typed, None),
        backend.multiply_dots(A, B.T, typed, B.S),
        backend.multiply_dense(A, B, typed),
    ):
        assert got.to_scipy().toarray().tolist() == [[np.inf] * 5, [8] * 5]


def test_results_share_nothing(backend: Place) -> None:
    typed = CASES["plus_times float32"].typed
    A = full(np.random.default_rng(7), (6, 6), FLOAT32, False)
    for got in (
        backend.multiply_rows(A, A, typed, A.S),
        backend.multiply_dots(A, A, typed, A.S),
        backend.multiply_dense(A, A, typed),
    ):
        arrays = (got.indptr, got.indices, got.values)
        given = (A.indptr, A.indices, A.values)
        assert not any(np.shares_memory(x, y) for x in arrays for y in given)


# --- larger ones, against SciPy -------------------------------------------------------------------


def random(
    chance: np.random.Generator, shape: tuple[int, int], lengths: np.ndarray, dtype: np.dtype
) -> Matrix:
    """A matrix with rows of these lengths."""
    columns = [np.sort(chance.choice(shape[1], length, replace=False)) for length in lengths]
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    values = chance.integers(1, 9, indptr[-1]).astype(dtype)
    return Matrix._of(*shape, indptr, np.concatenate(columns).astype(np.int32), values)


def same(got: Matrix, expected: Any) -> None:
    expected = scipy.sparse.csr_array(expected)
    expected.sort_indices()
    assert got.indptr.tolist() == expected.indptr.tolist()
    assert np.array_equal(got.indices, expected.indices)
    assert np.array_equal(got.expanded_values(), expected.data)


@pytest.mark.usefixtures("three_workers")
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(
    ("threads", "buffer", "untouched", "sums"),
    [(1, 1, 0, 0), (1, 1, 1 << 27, 1 << 21), (2, 2500, 0, 1 << 21), (3, 1 << 20, 1 << 27, 0)],
)
def test_buffers(
    mask: str,
    threads: int,
    buffer: int,
    untouched: int,
    sums: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Results of many times the buffer, which grow as they come, or written in their place; columns
    in several words of the coarsest bitmap; a sum for every column, or for those of products.
    """
    monkeypatch.setattr(multiply, "LEAST_BUFFER", buffer)
    monkeypatch.setattr(multiply, "MOST_BUFFER", buffer)
    monkeypatch.setattr(multiply, "UNTOUCHED", untouched)
    monkeypatch.setattr(multiply, "SUMS_BYTES", sums)
    monkeypatch.setattr(pool, "threads_for", lambda work, *share: threads)
    chance = np.random.default_rng(8)
    n, m, p = 60, 80, 300_000
    # the last rows hold most, so that what the first took tells little
    A = random(chance, (n, m), chance.integers(0, 4, n) + np.arange(n) // 5, FLOAT32)
    lengths = np.where(np.arange(m) % 40 == 7, 900, np.arange(m) % 5 * 7)
    B = random(chance, (m, p), lengths, FLOAT32)
    C = (A.to_scipy() @ B.to_scipy()).tocoo()
    at = C.row.astype(np.int64) * p + C.col
    # rows of the mask with no entry, with half of the products', with many more
    named = at[(C.row % 3 > 0) & (chance.random(at.size) < 0.5)]
    rest = 3 * p * chance.integers(0, n // 3, 100_000) + chance.integers(2 * p, 3 * p, 100_000)
    named = np.union1d(named, rest)
    true = chance.integers(0, 2, named.size)
    M = Matrix.from_coo(named // p, named % p, true, nrows=n, ncols=p)
    if mask != "none":
        chosen = np.isin(at, named if mask.endswith("structure") else named[true == 1])
        chosen ^= mask.startswith("complement")
        C = scipy.sparse.coo_array((C.data[chosen], (C.row[chosen], C.col[chosen])), shape=C.shape)
    got = multiply.multiply_rows(A, B, CASES["plus_times float32"].typed, mask_of(mask, M))
    same(got, C)


@pytest.mark.usefixtures("three_workers")
@pytest.mark.parametrize("threads", [1, 3])
def test_rows_of_few_products_and_of_more(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of 0 to 66 products, most of them of columns that others have, too."""
    monkeypatch.setattr(pool, "threads_for", lambda work, *share: threads)
    chance = np.random.default_rng(3)
    A = random(chance, (500, 90), np.arange(500) % 12, FLOAT32)
    B = random(chance, (90, 25), np.full(90, 6) - (np.arange(90) % 30 == 0), FLOAT32)
    C = A.to_scipy() @ B.to_scipy()
    same(multiply.multiply_rows(A, B, CASES["plus_times float32"].typed, None), C)
    got = multiply.multiply_rows(A.pattern(), B.pattern(), CASES["any_pair bool"].typed, None)
    C.data = np.ones_like(C.data)
    same(got, C)


@pytest.mark.parametrize(
    "name", ["plus_times float32", "plus_pair bool", "any_pair bool", "lor_land bool"]
)
def test_dots_of_short_and_long_rows(backend: Place, name: str) -> None:
    """Rows that are streamed, rows that are searched for in the other, and sums that end early."""
    chance = np.random.default_rng(9)
    typed, dtype = CASES[name].typed, CASES[name].types[0]
    lengths = np.array([0, 1, 2, 40, 900, 3000])
    A = random(chance, (60, 3000), chance.choice(lengths, 60), dtype)
    BT = random(chance, (50, 3000), chance.choice(lengths, 50), dtype)
    M = random(chance, (60, 50), chance.choice([0, 1, 5, 50], 60), INT64)
    S, T = (scipy.sparse.csr_array(X.to_scipy(), dtype=np.float64) for X in (A, BT))
    if name == "plus_pair bool":
        S, T = S.sign(), T.sign()
    C = (S @ T.T).multiply(M.to_scipy().sign()).tocsr()
    C.data = C.data.astype(typed.dtype)
    same(backend.multiply_dots(A, BT, typed, M.S), C)


@pytest.mark.parametrize("width", [1, 3, 4, 7, 64])
def test_dense_blocks(backend: Place, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiply, "BLOCK", 6)
    chance = np.random.default_rng(10)
    A = random(chance, (70, 50), chance.choice([0, 1, 9, 50], 70), FLOAT32)
    for iso in (False, True):
        X = full(chance, (50, width), FLOAT32, iso)
        got = backend.multiply_dense(A, X, CASES["plus_times float32"].typed)
        assert np.array_equal(got.to_scipy().toarray(), A.to_scipy() @ X.to_scipy().toarray())
        assert got.nvals == width * np.count_nonzero(np.diff(A.indptr))


@pytest.mark.usefixtures("three_workers")
def test_float_sums_do_not_depend_on_the_number_of_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    typed = CASES["plus_times float32"].typed
    chance = np.random.default_rng(11)
    lengths = chance.integers(0, 60, 400)
    A = random(chance, (400, 400), lengths, FLOAT32)
    A._values[:] = chance.random(A.nvals)
    X = full(chance, (400, 33), FLOAT32, False)
    X._values[:] = chance.random(X.nvals)
    results = []
    for threads, buffer, sums in ((1, 1 << 20, 1 << 21), (2, 100, 0), (3, 1 << 20, 1 << 21)):
        monkeypatch.setattr(pool, "threads_for", lambda work, *share, threads=threads: threads)
        monkeypatch.setattr(multiply, "LEAST_BUFFER", buffer)
        monkeypatch.setattr(multiply, "MOST_BUFFER", buffer)
        monkeypatch.setattr(multiply, "SUMS_BYTES", sums)
        results.append(
            (
                multiply.multiply_rows(A, A, typed, None),
                multiply.multiply_rows(A, A, typed, A.S),
                multiply.multiply_dots(A, A.T, typed, A.S),
                multiply.multiply_dense(A, X, typed),
            )
        )
    # a row by itself, or as dots, sums the same products in the same order
    assert np.array_equal(results[0][1].values, results[0][2].values)
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            assert one.values.tobytes() == two.values.tobytes()
            assert np.array_equal(one.indices, two.indices)


def test_pair_is_known_over_all_types() -> None:
    """On a GPU its products are counted, not summed."""
    from spgraph.backends.cuda.products.operands import is_pair

    for add in ("plus", "min", "any", "lor", "bor"):
        semiring = getattr(semirings, f"{add}_pair")
        assert is_pair(semiring.resolve(INT8, INT8).multiply)
    assert is_pair(semirings.plus_oneb.resolve(BOOL, FLOAT32).multiply)
    assert not is_pair(semirings.plus_first.resolve(BOOL, BOOL).multiply)
    two = BinaryOp.from_expressions("pair", python="2", cuda="2")
    assert not is_pair(Semiring(monoid.plus, two).resolve(INT64, INT64).multiply)


@pytest.mark.parametrize("name", ["plus_times", "min_plus", "any_pair"])
def test_rows_of_one_entry_have_as_many_products_as_they_like(name: str) -> None:
    chance = np.random.default_rng(5)
    B = Matrix(np.where(chance.random((40, 300)) < 0.5, chance.random((40, 300)), 0))
    D = Matrix.from_coo(np.arange(40), chance.permutation(40), chance.random(40))
    found, given = sg.mxm(D, B, name), D.to_dense() @ B.to_dense()
    assert found.nvals == B.nvals
    i, j, values = found.to_coo()
    wanted = {
        "plus_times": given[i, j],
        "min_plus": D.values[i] + B.to_dense()[D.indices[i], j],
        "any_pair": np.ones(i.size),
    }
    np.testing.assert_allclose(values, wanted[name])
