"""What only a GPU shows of the CUDA backend: large sizes, contended atomics, streams. The shared
tests run there too.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tests.backends.cuda.test_operations_shim as host
from spgraph import direction, generators, operations, semirings, triangle_count
from spgraph.backends import cpu, cuda
from spgraph.containers import Mask, Matrix, Vector
from spgraph.containers.storage.arrays import move
from spgraph.errors import DomainMismatch
from spgraph.semirings import Semiring, binary, indexunary, monoid

pytestmark = pytest.mark.gpu
triangles = importlib.import_module("spgraph.backends.cuda.structure.triangles")


def both(
    name: str, A: Matrix, u: Vector, semiring: Any, mask: Mask | None, flip: bool = False
) -> None:
    """The same product by both backends."""
    typed = semiring.resolve(
        *((u.dtype, A.dtype) if flip == (name == "pull") else (A.dtype, u.dtype)),
        index=A.indices.dtype,
    )
    there = None if mask is None else Mask(mask.parent.to("cuda"), mask.structure, mask.complement)
    ours = getattr(cuda, name)(A.to("cuda"), u.to("cuda"), typed, there, flip).to("cpu")
    theirs = getattr(cpu, name)(A, u, typed, mask, flip)
    host.same(typed.name, ours, theirs)


MASKS = ("none", "structure", "complement value")


@pytest.mark.parametrize(("semiring", "dtype", "iso"), host.SEMIRINGS, ids=lambda value: str(value))
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_rows_of_every_length(semiring: str, dtype: str, iso: bool, index: str) -> None:
    A = host.rows_of_every_length(dtype, iso, index)
    for share, flip in ((1.1, False), (0.3, True), (0.002, False)):
        for kind in MASKS:
            mask = host.mask_of(host.vector(A.nrows, 0.5, "int8"), kind)
            both(
                "pull",
                A,
                host.vector(A.ncols, share, dtype).to_bitmap(),
                getattr(semirings, semiring),
                mask,
                flip,
            )
        for kind in MASKS:
            mask = host.mask_of(host.vector(A.ncols, 0.5, "int8"), kind)
            both(
                "push",
                A,
                host.vector(A.nrows, share, dtype),
                getattr(semirings, semiring),
                mask,
                flip,
            )


@pytest.mark.parametrize("case", host.ARRAYS, ids=lambda case: "-".join(map(str, case[:6])))
def test_multiply_array_rows_of_every_length(case: tuple[Any, ...]) -> None:
    for width in case[-1]:
        host.check_array(case, width, "cuda:0", move)


def test_multiply_array_of_rows_at_any_address() -> None:
    cupy = pytest.importorskip("cupy")
    A = host.rows_of_every_length("float32", False)
    for offset in (0, 1, 2, 4):
        store = cupy.arange(A.ncols * 4 + offset, dtype=np.float32) % 7
        X = store[offset:].reshape(A.ncols, 4)
        got = (A.to("cuda") @ X).get()
        assert np.array_equal(got, A.to_scipy() @ X.get())


@pytest.mark.parametrize("width", [2, 32, 64, 100, 256])
def test_multiply_array_of_a_power_law_graph(width: int) -> None:
    """Hub rows of many pieces, and rows without entries, in tens of thousands of blocks."""
    A = generators.kronecker(15, 16, seed=1).astype(np.float64)
    X = np.random.default_rng(0).integers(0, 9, (A.ncols, width)).astype(np.float64)
    got = A.to("cuda") @ move(X, "cuda:0")
    assert np.array_equal(got.get(), A.to_scipy() @ X)
    again = A.to("cuda") @ move(X, "cuda:0")
    assert bool((got == again).all())


def random_matrix(n: int, degree: int, dtype: str, index: str) -> Matrix:
    chance = np.random.default_rng(7)
    # squared numbers gather at the low columns: hubs that many rows meet at
    columns = (chance.random((n, degree)) ** 2 * n).astype(np.int64)
    S = scipy.sparse.csr_array(
        (
            chance.integers(1, 9, n * degree).astype(dtype),
            columns.ravel(),
            np.arange(0, n * degree + 1, degree),
        ),
        shape=(n, n),
    )
    A = Matrix.from_scipy(S)
    return Matrix._of(n, n, A.indptr.astype(index), A.indices.astype(index), A.values)


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize(
    ("semiring", "dtype"), [("plus_times", "int64"), ("min_plus", "int32"), ("min_plus", "float32")]
)
def test_large(semiring: str, dtype: str, index: str) -> None:
    A = random_matrix(1_000_003, 16, dtype, index)
    for share in (1.1, 0.3, 0.001):
        u = host.vector(A.nrows, share, dtype)
        both("pull", A, u.to_bitmap(), getattr(semirings, semiring), None)
        both("push", A, u, getattr(semirings, semiring), ~u.S)


@pytest.mark.parametrize("inward", [False, True])
def test_star(inward: bool) -> None:
    n = 3_000_017
    S = scipy.sparse.coo_array(
        (np.arange(1, n) % 100, (np.zeros(n - 1, int), np.arange(1, n))), shape=(n, n)
    )
    S = (S.T if inward else S).tocsr()
    A, x = Matrix.from_scipy(S), np.arange(n) % 7
    u, typed = Vector.from_dense(x).to("cuda"), semirings.plus_times.resolve(A.dtype, x.dtype)
    pulled, pushed = (
        getattr(cuda, name)(A.to("cuda"), u, typed, None, False) for name in ("pull", "push")
    )
    assert np.array_equal(pulled.to_numpy(fill=0), S @ x)
    assert np.array_equal(pushed.to_numpy(fill=0), x @ S)


def contended(add: Any, dtype: np.dtype) -> Matrix:
    """Three hundred thousand terms onto 37 neighbouring positions."""
    chance = np.random.default_rng(11)
    n = 20_011
    columns = np.argsort(chance.random((n, 37)), axis=1)[:, :16]
    columns.sort(axis=1)
    values = chance.integers(0, 2 if dtype.kind == "b" else 100, 16 * n).astype(dtype)
    if add == monoid.times:
        values = np.where(chance.random(values.size) < 0.0005, dtype.type(2), dtype.type(1)).astype(
            dtype
        )
    elif dtype.kind == "f" and add in (monoid.min, monoid.max):
        values *= chance.choice([-1, 1], values.size).astype(dtype)
        values[::7], values[::11] = np.nan, -0.0
    return Matrix._of(
        n,
        37,
        np.arange(0, 16 * n + 1, 16, dtype=np.int32),
        columns.ravel().astype(np.int32),
        values,
    )


def typed_monoids() -> list[tuple[str, str]]:
    found = []
    for name in monoid:
        for dtype in ("bool", "int8", "uint16", "int32", "uint64", "float32", "float64"):
            try:
                getattr(monoid, name).resolve(dtype)
                found.append((name, dtype))
            except DomainMismatch:
                continue
    return found


@pytest.mark.parametrize(("name", "dtype"), typed_monoids())
def test_atomics_of_every_monoid(name: str, dtype: str) -> None:
    add, kind = getattr(monoid, name), np.dtype(dtype)
    A = contended(add, kind)
    typed = Semiring(add, binary.second).resolve(kind, kind)
    u = Vector.from_dense(np.ones(A.nrows, kind))
    pushed = cuda.push(A.to("cuda"), u.to("cuda"), typed, None, False).to("cpu")
    assert pushed.nvals == 37
    if name == "any":
        assert set(pushed.values.tolist()) <= set(A.values.tolist())
    else:
        assert pushed.isequal(cpu.push(A, u, typed, None, False), check_dtype=True)


def test_more_than_two_to_the_31() -> None:
    import cupy

    if cupy.cuda.Device().mem_info[0] < 40 << 30:
        pytest.skip("gpu: needs 40 GB of free memory")
    n = 2**31 + 77
    values = cupy.zeros(n, np.int8)
    values[-1], values[-33] = 9, 5
    u = Vector._of(n, values)
    assert operations.reduce(u, monoid.max) == 9
    last = operations.extract(u, np.array([n - 1, 0, n - 33]))
    assert last.to_numpy().tolist() == [9, 0, 5]
    kept = cuda.select(u, indexunary.valuelt.resolve(np.int8, np.int8), np.int8(9))
    assert (kept.storage, kept.nvals) == ("bitmap", n - 1)
    doubled = cuda.ewise(u, kept, binary.plus.resolve(np.int8, np.int8), True)
    assert operations.extract(doubled, np.array([n - 1, 0, n - 33])).to_numpy().tolist() == [
        9,
        0,
        10,
    ]


def test_runs_on_the_current_stream() -> None:
    import cupy

    A = random_matrix(100_003, 8, "float32", "int32")
    u = Vector.from_dense(np.ones(A.nrows, np.float32))
    there = A.to("cuda"), u.to("cuda")
    expected = operations.mxv(A, u)
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    with stream:
        product = operations.mxv(*there)
        product = operations.apply(product, binary.times, right=2)
        stream.synchronize()
    assert product.to("cpu").isclose(operations.apply(expected, binary.times, right=2))


def test_pull_is_the_same_every_time() -> None:
    A = host.rows_of_every_length("float32", False).to("cuda")
    u = Vector.from_dense(np.random.default_rng(0).random(A.ncols).astype(np.float32)).to("cuda")
    first = operations.mxv(A, u, direction="pull").to_numpy(fill=0)
    assert all(
        np.array_equal(operations.mxv(A, u, direction="pull").to_numpy(fill=0), first)
        for _ in range(5)
    )


def test_occupancy() -> None:
    from spgraph.backends.cuda.runtime import jit, offline

    kernel = jit.kernel("push", "push", offline.preambles()["push"])
    assert jit.occupancy(kernel) % jit.multiprocessors(0) == 0
    assert jit.occupancy(kernel) >= 2 * jit.multiprocessors(0)


@pytest.mark.parametrize("semiring", ["plus_times", "min_plus", "any_pair"])
def test_rows_wider_than_a_table(semiring: str) -> None:
    """Rows with more sums than fit into shared memory beside short ones, masked or not."""
    chance, typed = np.random.default_rng(7), getattr(semirings, semiring)
    left = scipy.sparse.random_array((40, 600), density=0.02, rng=chance, format="lil")
    left[[3, 17]] = chance.integers(1, 5, (2, 600))
    right = scipy.sparse.random_array((600, 60_000), density=0.002, rng=chance, format="csr")
    right.data = chance.integers(1, 5, right.nnz)
    A = Matrix.from_scipy(left.tocsr().astype(np.int64))
    B = Matrix.from_scipy(right.astype(np.int64))
    M = Matrix.from_scipy(scipy.sparse.random_array((40, 60_000), density=0.3, rng=chance).tocsr())
    assert np.diff((left.tocsr() @ right).indptr)[3] > 30_000
    for mask in (None, M.S, ~M.S):
        there = None if mask is None else Mask(M.to("cuda"), True, mask.complement)
        ours = operations.mxm(A.to("cuda"), B.to("cuda"), typed, mask=there)
        assert ours.to("cpu").isequal(operations.mxm(A, B, typed, mask=mask), check_dtype=True)


def test_long_rows_times_a_matrix_that_is_full() -> None:
    chance = np.random.default_rng(8)
    left = scipy.sparse.random_array((50, 5000), density=0.01, rng=chance, format="lil")
    left[[0, 49]] = chance.integers(1, 5, (2, 5000))
    A = Matrix.from_scipy(left.tocsr())
    for width in (1, 3, 70):
        X = chance.integers(-3, 4, (5000, width)).astype(float)
        ours = operations.mxm(A.to("cuda"), Matrix.from_dense(X, missing=None).to("cuda"))
        np.testing.assert_allclose(ours.to("cpu").to_scipy().toarray(), left @ X, rtol=1e-9)


@pytest.mark.parametrize("name", ["kronecker", "uniform", "grid"])
def test_triangles_equal_those_of_the_cpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    A = {
        "kronecker": lambda: generators.kronecker(17, 24, seed=4),
        "uniform": lambda: generators.uniform_random(1 << 17, 8, seed=4),
        "grid": lambda: generators.grid(500, 600, remove=0.1),
    }[name]()
    expected, B = triangle_count(A), A.to("cuda")
    assert triangle_count(B) == expected
    for short in (-1.0, 1e9):
        monkeypatch.setattr(direction, "SHORT_ROWS", short)
        assert triangle_count(B) == expected
    monkeypatch.setattr(direction, "SHORT_ROWS", -1.0)
    for name, value in (("PART", 32), ("SHORT", 0), ("WINDOW", 1 << 10), ("SLOTS", 64)):
        monkeypatch.setattr(triangles, name, value)
        assert triangle_count(B) == expected
