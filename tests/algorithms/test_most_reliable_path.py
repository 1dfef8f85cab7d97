"""Most reliable paths on every device, against plain loops and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from closure_cases import GRAPHS, check_paths, weighted
from fixtures_device import device  # noqa: F401
from scipy.sparse import csgraph

import spgraph as sg
from spgraph.algorithms import most_reliable_path
from spgraph.errors import DimensionMismatch, DomainMismatch, IndexOutOfBound


@pytest.mark.parametrize("name", GRAPHS)
def test_values_and_parents(name: str, device: str) -> None:
    check_paths(most_reliable_path, name, "reliability", 1.0, max, lambda x, a: x * a, device)


def test_equals_scipy(device: str) -> None:
    """Reliabilities are distances of -log."""
    S = weighted(sg.generators.uniform_random(300, 4, seed=8), np.int64)
    P = S.astype(np.float64) / 65
    reliability = most_reliable_path(sg.Matrix.from_scipy(P).to(device), 5).reliability
    costs = P.copy()
    costs.data = -np.log(P.data)
    expected = np.exp(-csgraph.dijkstra(costs, indices=5))
    np.testing.assert_allclose(reliability.to_numpy(fill=0), expected, rtol=1e-12)


def test_a_pattern_is_reliable(device: str) -> None:
    pattern = sg.Matrix.from_dense(np.array([[0, 2, 9], [0, 0, 3], [0, 0, 0]])).pattern()
    reliability = most_reliable_path(pattern.to(device), 0, parents=False).reliability
    assert reliability.dtype == np.float64 and reliability.to_numpy().tolist() == [1.0, 1.0, 1.0]


def test_bad_input() -> None:
    A = sg.Matrix.from_coo([0, 1, 2], [1, 2, 3], [4.0, 2.0, 3.0], nrows=4, ncols=4)
    with pytest.raises(
        ValueError, match="^most_reliable_path: A: .* from 0 to 1, got A\\[0, 1\\] = 4.0"
    ):
        most_reliable_path(A, 0)
    with pytest.raises(DomainMismatch, match="most_reliable_path: source: .* got 'a'"):
        most_reliable_path(A, "a")
    with pytest.raises(IndexOutOfBound, match="most_reliable_path: source: .* got 4"):
        most_reliable_path(A, 4)
    with pytest.raises(DimensionMismatch, match="most_reliable_path: A: .* got 2 x 3"):
        most_reliable_path(np.ones((2, 3)), 0)
