"""`reachable`, on every device and in shards.

CONTRIBUTING.md takes this file and algorithms/reachable.py as the pattern of a new algorithm.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from fixtures_device import device, entries  # noqa: F401
from scipy.sparse import csgraph
from search_cases import GRAPHS, edges_of

import spgraph as sg
from spgraph.algorithms import reachable


def reached(A: sg.Matrix, sources: Any, device: str, shards: int | None = None) -> set[int]:
    """The positions of the result, on a device or in shards of it."""
    A = A.to(device)
    if shards is None:
        found = reachable(A, sources)
        assert found.device == A.device
    else:
        devices = [f"{device}:0" if device == "cuda" else device] * shards
        found = reachable(A.distribute(shards, devices=devices), sources).gather()
    assert found.dtype == bool and found.size == A.nrows
    result = entries(found)
    assert all(value is True for value in result.values())
    return set(result)


# --- an oracle: another library, and no code of ours ----------------------------------------------


def by_scipy(n: int, pairs: np.ndarray, sources: list[int]) -> set[int]:
    rows, columns = pairs.T
    S = scipy.sparse.csr_array((np.ones(len(pairs)), (rows, columns)), shape=(n, n))
    orders = [csgraph.breadth_first_order(S, s, return_predecessors=False) for s in sources]
    return set(np.concatenate(orders).tolist())


@pytest.mark.parametrize("shards", [None, 2])
@pytest.mark.parametrize("name", GRAPHS)
def test_the_same_as_scipy(name: str, shards: int | None, device: str) -> None:
    n, pairs, sources = edges_of(name)
    A = sg.Matrix.from_coo(*np.unique(pairs, axis=0).T, nrows=n, ncols=n)
    assert reached(A, sources, device, shards) == by_scipy(n, pairs, sources)


# --- properties: what has to be true of every result ----------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_properties(seed: int, device: str) -> None:
    """No edge leads out of the result; several sources give a union; A.T reaches back."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    D = rng.random((n, n)) < 1.2 / n  # about one edge a vertex: some are reached, some are not
    A = sg.Matrix.from_dense(D, missing=False)
    a, b = (int(v) for v in rng.integers(0, n, 2))
    from_a, from_b = reached(A, a, device), reached(A, b, device)
    assert a in from_a
    assert all(j in from_a for i, j in np.argwhere(D).tolist() if i in from_a)
    assert reached(A, [a, b], device) == from_a | from_b
    assert all(a in reached(A.T, v, device) for v in from_a)


# --- arguments ------------------------------------------------------------------------------------


def test_sources(device: str) -> None:
    A = sg.Matrix.from_coo([0, 1, 3], [1, 2, 2], nrows=5, ncols=5)
    for sources, expected in (
        (1, {1, 2}),
        (np.int32(3), {2, 3}),
        ([3, 0, 3], {0, 1, 2, 3}),
        (np.array([4], np.uint8), {4}),
        (range(2), {0, 1, 2}),
        ([], set()),
    ):
        assert reached(A, sources, device) == expected


@pytest.mark.parametrize(
    ("sources", "error", "message"),
    [
        ([0, 4], IndexError, "reachable: sources: expected 0 <= source < 4, got 4"),
        ([-1], IndexError, "reachable: sources: .* got -1"),
        ([0.5], TypeError, r"reachable: sources: expected a vertex or .*, got \[0.5\]"),
        ("ab", TypeError, "reachable: sources: .* got 'ab'"),
        ([[0]], TypeError, r"reachable: sources: .* got \[\[0\]\]"),
        (True, TypeError, "reachable: sources: .* got True"),
    ],
)
def test_sources_that_are_refused(sources: Any, error: type[Exception], message: str) -> None:
    A = sg.Matrix.from_coo([0, 1, 2], [1, 2, 3], nrows=4, ncols=4)
    with pytest.raises(error, match=message):
        reachable(A, sources)


def test_a_matrix_that_is_not_square_is_refused() -> None:
    with pytest.raises(sg.errors.DimensionMismatch, match="reachable: A: .*, got 2 x 3"):
        reachable(np.ones((2, 3)), 0)
