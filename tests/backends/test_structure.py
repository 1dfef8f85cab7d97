"""Parts, transposes and Kronecker products of matrices in every backend, against dictionaries."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from spgraph.backends import cuda
from spgraph.containers import Matrix
from spgraph.semirings import binary
from tests.backends.test_matrices import (  # noqa: F401
    INDICES,
    INT32,
    INT64,
    MINUS,
    Place,
    backend,
    draw,
    entries,
    equal,
    over,
    three_workers,
    uneven,
)


@over([both[0] for both in INDICES], wide=False)
def test_extract(backend: Place, types: Any) -> None:
    chance = np.random.default_rng(8)

    def lists(size: int) -> Iterator[np.ndarray | None]:
        yield None
        yield np.empty(0, types[1])
        if size:
            yield np.flatnonzero(chance.random(size) < 0.5).astype(types[1])
            yield chance.permutation(size).astype(types[1])
            yield chance.integers(0, size, 2 * size + 3).astype(types[1])

    for shape, iso in itertools.product(backend.shapes, (False, True)):
        A = draw(chance, shape, INT32, types, iso=iso)
        pairs = list(itertools.product(lists(shape[0]), lists(shape[1])))
        if backend.module is cuda:
            pairs = pairs[:: 5 if iso else 4]
        for rows, columns in pairs:
            given, a = (rows, columns), entries(A)
            at = [range(n) if ids is None else ids for n, ids in zip(shape, given, strict=True)]
            expected = {
                (k, m): a[i, j]
                for (k, i), (m, j) in itertools.product(*map(enumerate, at))
                if (i, j) in a
            }
            C = backend.extract_matrix(A, rows, columns)
            equal(C, expected, INT32)
            assert C.shape == (len(at[0]), len(at[1])) and C.iso == iso


@pytest.mark.parametrize("wide", [False, True])
def test_extract_many(backend: Place, wide: bool) -> None:
    """Lists that are long or short beside the matrix, in and out of order; rows with few entries
    and many columns.
    """
    chance = np.random.default_rng(9)
    A = uneven(3)
    if wide:
        S = scipy.sparse.random_array((33, 90_000), density=4e-5, rng=9)
        A = Matrix.from_scipy((S * 1000).astype(np.int32).tocsr())
    S = A.to_scipy()
    rows = chance.integers(0, A.nrows, 20)
    for size in (1, 40, 1500):
        for columns in (
            np.sort(chance.choice(A.ncols, size, replace=False)),
            chance.permutation(np.concatenate((chance.integers(0, A.ncols, size), S.indices[:50]))),
            np.unique(S.indices)[::2],
        ):
            got = backend.extract_matrix(A, rows, columns)
            expected = S[rows][:, columns].tocsr()
            entries(got)
            assert got.nvals == expected.nnz and (got.to_scipy() != expected).nnz == 0
    assert got.nvals > 0


@over([both[0] for both in INDICES])
def test_transpose(backend: Place, types: Any) -> None:
    chance = np.random.default_rng(10)
    for shape, iso in itertools.product(backend.shapes, (False, True)):
        A = draw(chance, shape, INT32, types, iso=iso)
        C = backend.transpose(A)
        equal(C, {(j, i): value for (i, j), value in entries(A).items()}, INT32)
        assert C.shape == shape[::-1] and C.iso == iso


def test_transpose_of_many(backend: Place) -> None:
    """Enough entries for more than one bucket of columns."""
    S = scipy.sparse.random_array((3000, 5000), density=0.005, rng=11)
    S = (S * 1000).astype(np.int32).tocsr()
    got, expected = backend.transpose(Matrix.from_scipy(S)), S.T.tocsr()
    assert np.array_equal(got.indptr, expected.indptr)
    assert np.array_equal(got.indices, expected.indices)
    assert np.array_equal(got.values, expected.data)


@over(INDICES, wide=False)
def test_kronecker(backend: Place, types: Any) -> None:
    chance = np.random.default_rng(12)
    shapes = [(0, 0), (0, 3), (1, 1), (2, 5), (4, 3), (7, 7)]
    for shape, other in itertools.product(shapes, shapes):
        iso, other_iso = (bool(flag) for flag in chance.integers(0, 2, 2))
        A = draw(chance, shape, INT32, types[0], iso=iso)
        B = draw(chance, other, INT64, types[1], iso=other_iso)
        expected = {
            (i * other[0] + k, j * other[1] + m): x - y
            for ((i, j), x), ((k, m), y) in itertools.product(
                entries(A).items(), entries(B).items()
            )
        }
        C = backend.kronecker(A, B, MINUS)
        equal(C, expected, INT64)
        assert C.shape == (shape[0] * other[0], shape[1] * other[1])
        assert C.iso or not (iso and other_iso)


def test_kronecker_positions(backend: Place) -> None:
    op = binary.secondi.resolve(INT32, INT64, index=INT64)
    chance = np.random.default_rng(13)
    A, B = draw(chance, (4, 4), INT32, iso=True), draw(chance, (4, 4), INT64, iso=True)
    pairs = itertools.product(entries(A), entries(B))
    expected = {(i * 4 + k, j * 4 + m): k for (i, j), (k, m) in pairs}
    equal(backend.kronecker(A, B, op), expected, INT64)


def test_kronecker_of_wide_matrices(backend: Place) -> None:
    """More columns than int32 counts."""
    last = 2**20 - 1
    A, B = (
        Matrix._of(1, 2**20, *(np.array(part, INT32) for part in ([0, 2], [first, last])), values)
        for first, values in ((5, np.array([7, 8], INT32)), (6, np.array([2, 3], INT64)))
    )
    C = backend.kronecker(A, B, MINUS)
    assert C.ncols == 2**40 and C.indices.dtype == INT64
    columns = [(i << 20) + j for i, j in itertools.product((5, last), (6, last))]
    assert C.indices.tolist() == columns and C.values.tolist() == [5, 4, 6, 5]
