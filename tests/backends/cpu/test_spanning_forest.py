"""The CPU's spanning forests on any number of threads, against Kruskal's algorithm."""

from __future__ import annotations

import numpy as np
import pytest

import spgraph as sg
from spgraph.backends.cpu.traversals import spanning_forest as module
from spgraph.backends.cpu.traversals import traversals

TYPES = ("bool", "int8", "uint8", "int32", "int64", "uint64", "float32", "float64")


def kruskal(A: sg.Matrix) -> np.ndarray:
    """Whether each entry is in the forest, those of equal value in the order of the rows."""
    values = np.broadcast_to(A.values, A.nvals)
    heads, tails = A.row_indices(), A.indices
    root = list(range(A.nrows))

    def of(v: int) -> int:
        while root[v] != v:
            root[v] = v = root[root[v]]
        return v

    kept = np.zeros(A.nvals, bool)
    for e in np.argsort(values, kind="stable").tolist():  # NaN last
        i, j = of(int(heads[e])), of(int(tails[e]))
        if i != j:
            root[i], kept[e] = j, True
    return kept


def random_matrix(n: int, entries: int, dtype: str, symmetric: bool, seed: int) -> sg.Matrix:
    """A Matrix with loops, of about so many entries, many of equal value."""
    random = np.random.default_rng(seed)
    rows, columns = np.divmod(np.unique(random.integers(0, n * n, entries)), n)
    if symmetric:
        rows, columns = rows[rows <= columns], columns[rows <= columns]
    values = random.integers(0 if dtype[0] in "bu" else -40, 40, rows.size).astype(dtype)
    A = sg.Matrix.from_coo(rows, columns, values, nrows=n, ncols=n)
    if symmetric:
        A = sg.ewise_add(A, A.T.dup(), "min")
        A.symmetric = True
    return A


def check(A: sg.Matrix) -> None:
    """Of each number of edges a vertex one that takes the light ones first, and one that does not.
    The Matrix that is returned, and the flags that csgraph reads.
    """
    expected = kruskal(A)
    found = module.spanning_forest(A)
    assert found is not None and found.dtype == A.dtype and found.iso == A.iso
    assert np.array_equal(found.row_indices(), A.row_indices()[expected])
    assert np.array_equal(found.indices, A.indices[expected])
    values = np.broadcast_to(A.values, A.nvals)[expected]
    assert np.array_equal(np.broadcast_to(found.values, found.nvals), values)
    if not A.iso:
        rows = A.indptr, A.indices, A.values
        assert np.array_equal(traversals.spanning_forest(rows), expected)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("dtype", TYPES)
def test_first_of_least_edges(dtype: str, symmetric: bool, threads: int) -> None:
    for n, entries in ((1, 0), (1, 1), (30, 0), (90, 60), (60, 2000)):
        check(random_matrix(n, entries, dtype, symmetric, n))


@pytest.mark.parametrize("symmetric", [False, True])
def test_lists_of_several_pieces(symmetric: bool, threads: int) -> None:
    check(random_matrix(2500, 14_000, "int32", symmetric, 1))
    check(random_matrix(1500, 60_000, "float64", symmetric, 2))


@pytest.mark.parametrize("symmetric", [False, True])
def test_one_weight_of_all(symmetric: bool, threads: int) -> None:
    for n, entries in ((40, 30), (60, 2000)):
        A = random_matrix(n, entries, "int64", symmetric, 5).pattern()
        A.symmetric = symmetric or None
        assert A.iso
        check(A)


def test_long_chains_and_a_star(threads: int) -> None:
    """Each vertex of a path selects the one before it; a star's middle has most of the edges."""
    v = np.arange(3000)
    check(sg.Matrix.from_coo(v[:-1], v[1:], v[:-1], nrows=3000, ncols=3000))
    check(sg.Matrix.from_coo(v[:-1], v[1:], v[:0:-1], nrows=3000, ncols=3000))
    check(sg.Matrix.from_coo(0 * v[1:], v[1:], v[1:] % 7, nrows=3000, ncols=3000))
    check(sg.Matrix.from_coo(v[1:], 0 * v[1:], v[1:] % 7, nrows=3000, ncols=3000))


def test_zeros_of_both_signs_infinities_and_nan(threads: int) -> None:
    random = np.random.default_rng(3)
    for entries, share in ((80, 0.2), (2000, 0.5), (2000, 0.99), (2000, 1)):
        A = random_matrix(60, entries, "float64", False, 4)
        values = random.choice([0.0, -0.0, np.inf, -np.inf, 1.0], A.nvals)
        values[random.random(A.nvals) < share] = np.nan
        expected = kruskal(sg.Matrix._of(60, 60, A.indptr, A.indices, values))
        found = traversals.spanning_forest((A.indptr, A.indices, values))
        assert np.array_equal(found, expected)


def test_few_edges_are_joined_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The light ones come first only where there are many."""
    asked = []
    limit = module._limit
    monkeypatch.setattr(module, "_limit", lambda *given: asked.append(1) or limit(*given))
    check(random_matrix(90, 60, "int32", False, 1))
    assert not asked
    check(random_matrix(60, 2000, "int32", False, 1))
    assert asked
