"""What the centralities that are power iterations have in common: no edges, no rest, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401
from search_cases import matrix, weighted_graph

import spgraph as sg
from spgraph.algorithms import eigenvector_centrality, hits, katz_centrality, pagerank, salsa
from spgraph.errors import ConvergenceError, NegativeWeight

ALL = (hits, salsa, katz_centrality, eigenvector_centrality)


@pytest.mark.parametrize("algorithm", ALL)
def test_no_vertex_and_no_edge(algorithm: Any, device: str) -> None:
    for n in (0, 1, 5):
        found = algorithm(sg.Matrix.empty(n, n, device=device))
        for vector in found if isinstance(found, tuple) else (found,):
            values = vector.to_numpy()
            assert values.shape == (n,) and np.isfinite(values).all() and np.ptp([*values, 0]) <= 1


@pytest.mark.parametrize("algorithm", ALL)
def test_it_does_not_come_to_rest(algorithm: Any, device: str) -> None:
    A = weighted_graph(90, 700).to(device)
    with pytest.raises(ConvergenceError, match=f"{algorithm.__name__}: after max_iter=2") as caught:
        algorithm(A, max_iter=2, tol=1e-15)
    same = algorithm(A, max_iter=2, tol=None)
    found = caught.value.result
    assert type(found) is type(same)
    pairs = ((found, same),) if isinstance(found, sg.Vector) else zip(found, same, strict=True)
    for one, other in pairs:
        assert one.isclose(other, rtol=1e-12)


@pytest.mark.parametrize("algorithm", ALL)
def test_bad_input(algorithm: Any) -> None:
    A, name = matrix("path"), algorithm.__name__
    with pytest.raises(ValueError, match=f"{name}: A: expected a square matrix, got 2 x 3"):
        algorithm(np.ones((2, 3)))
    with pytest.raises(TypeError, match=f"{name}: A: expected a Matrix"):
        algorithm(3)
    with pytest.raises(ValueError, match=f"{name}: tol: expected a number > 0 or None, got 0"):
        algorithm(A, tol=0)
    with pytest.raises(ValueError, match=f"{name}: max_iter: expected an integer >= 0, got 1.5"):
        algorithm(A, max_iter=1.5)
    with pytest.raises(NegativeWeight, match=f"{name}: A: expected values >= 0, got -1"):
        algorithm(sg.Matrix.from_coo([0, 1], [1, 0], [1.0, -1.0]), weighted=True)
    with pytest.raises(ValueError, match=f"{name}: A: expected finite values"):
        algorithm(sg.Matrix.from_coo([0, 1], [1, 0], [1.0, np.nan]), weighted=True)
    for value in (1e-170, 1e200):  # whose squares vanish or overflow
        with pytest.raises(ValueError, match=f"{name}: A: expected values with sums of squares"):
            algorithm(sg.Matrix.from_coo([0, 1], [1, 0], [value, 0.0]), weighted=True)


@pytest.mark.parametrize("algorithm", [pagerank, salsa])
def test_weights_without_an_inverse_in_float64(algorithm: Any, device: str) -> None:
    rows, columns = [0, 0, 1, 2], [1, 2, 2, 0]
    A = sg.Matrix.from_coo(rows, columns, [1e-310, 2e-310, 1.0, 1.0]).to(device)
    for B in (A, A.distribute(2, devices=device)):
        with pytest.raises(ValueError, match=f"{algorithm.__name__}: A: expected the weights of a"):
            algorithm(B, weighted=True, tol=None, max_iter=3)
    # zeros have none either, and lead nowhere
    A = sg.Matrix.from_coo(rows, columns, [0.0, 0.0, 1.0, 1.0]).to(device)
    found = algorithm(A, weighted=True, tol=None, max_iter=3)
    for vector in found if isinstance(found, tuple) else (found,):
        assert vector.to_numpy().sum() == pytest.approx(1)


@pytest.mark.parametrize("algorithm", [hits, salsa, eigenvector_centrality, pagerank])
@pytest.mark.parametrize("unit", [1e-40, 1e-8, 1e-3, 1e45])
def test_the_unit_of_weights_does_not_matter(algorithm: Any, unit: float, device: str) -> None:
    A = weighted_graph(90, 700)
    B = sg.Matrix.from_coo(*A.to_coo()[:2], A.values * unit, nrows=90, ncols=90).to(device)
    found, expected = algorithm(B, weighted=True), algorithm(A.to(device), weighted=True)
    pairs = (
        ((found, expected),) if isinstance(found, sg.Vector) else zip(found, expected, strict=True)
    )
    for one, other in pairs:
        np.testing.assert_allclose(one.to_numpy(), other.to_numpy(), atol=1e-4)
