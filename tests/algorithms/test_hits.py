"""HITS, SALSA, Katz and eigenvector centrality on every device, against NetworkX and dense
algebra.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401
from scipy.sparse import csgraph
from search_cases import matrix

import spgraph as sg
from spgraph.algorithms import eigenvector_centrality, hits, katz_centrality, salsa
from spgraph.errors import ConvergenceError, NegativeWeight
from tests.iterations.test_power import weighted_graph

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")

ALL = (hits, salsa, katz_centrality, eigenvector_centrality)


def networkx_of(A: sg.Matrix, weighted: bool = True) -> nx.DiGraph:
    S = A.to_scipy()
    S.data = S.data if weighted else np.ones_like(S.data)
    return nx.from_scipy_sparse_array(S, create_using=nx.DiGraph)


def listed(values: dict[int, float]) -> np.ndarray:
    return np.array([values[v] for v in range(len(values))])


@pytest.mark.parametrize("weighted", [False, True])
def test_hits_equals_networkx(weighted: bool, device: str) -> None:
    A = weighted_graph(120, 1500)
    hub, authority = nx.hits(networkx_of(A, weighted), tol=1e-14)
    found = hits(A.to(device), weighted=weighted, tol=1e-12, max_iter=500)
    np.testing.assert_allclose(found.hub.to_numpy(), listed(hub), atol=1e-9)
    np.testing.assert_allclose(found.authority.to_numpy(), listed(authority), atol=1e-9)
    assert found.hub.device == found.authority.device == A.to(device).device


def test_hits_is_a_singular_pair(device: str) -> None:
    A = sg.generators.kronecker(9, 8, symmetric=False)
    found = hits(A.to(device), tol=1e-12, max_iter=500)
    u, _, v = np.linalg.svd(A.to_scipy().toarray().astype(float))
    for vector, expected in ((found.hub, abs(u[:, 0])), (found.authority, abs(v[0]))):
        np.testing.assert_allclose(vector.to_numpy(), expected / expected.sum(), atol=1e-9)


@pytest.mark.parametrize("name", ["dense directed", "two components", "star out", "skewed both"])
def test_salsa_is_the_share_of_edges_in_each_component(name: str, device: str) -> None:
    """Lempel and Moran, proposition 6: within a component of the graph of hubs and authorities the
    walker stands on a vertex in proportion to its degree; components share by their hubs.
    """
    A = matrix(name)
    D = A.to_scipy().toarray() != 0
    n = A.nrows
    both = np.block([[np.zeros((n, n)), D], [D.T, np.zeros((n, n))]])
    part = csgraph.connected_components(both)[1]
    out, into = D.sum(axis=1), D.sum(axis=0)
    hubs = np.bincount(part[:n][out > 0], minlength=part.max() + 1) / (out > 0).sum()
    edges = np.bincount(part[:n], weights=out, minlength=part.max() + 1)
    found = salsa(A.to(device), tol=1e-12, max_iter=20_000)
    for vector, degree, place in ((found.hub, out, part[:n]), (found.authority, into, part[n:])):
        expected = hubs[place] * degree / np.maximum(edges[place], 1)
        np.testing.assert_allclose(vector.to_numpy(), expected, atol=1e-8)
        assert vector.to_numpy().sum() == pytest.approx(1, abs=1e-12)


def test_salsa_with_weights(device: str) -> None:
    A = weighted_graph(60, 900)
    D = A.to_scipy().toarray()
    found = salsa(A.to(device), tol=1e-13, max_iter=20_000, weighted=True)
    out, into = D.sum(axis=1), D.sum(axis=0)
    np.testing.assert_allclose(found.hub.to_numpy(), out / out.sum(), atol=1e-9)
    np.testing.assert_allclose(found.authority.to_numpy(), into / into.sum(), atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_katz_equals_networkx_and_the_linear_system(weighted: bool, device: str) -> None:
    A = weighted_graph(120, 1500)
    D = A.to_scipy().toarray() if weighted else (A.to_scipy().toarray() != 0).astype(float)
    alpha = 0.5 / abs(np.linalg.eigvals(D)).max()
    expected = listed(
        nx.katz_centrality(networkx_of(A), alpha, tol=1e-13, weight="weight" if weighted else None)
    )
    found = katz_centrality(A.to(device), alpha=alpha, tol=1e-13, weighted=weighted)
    np.testing.assert_allclose(found.to_numpy(), expected, rtol=1e-9)
    beta = np.random.default_rng(1).random(120)
    x = np.linalg.solve(np.eye(120) - alpha * D.T, beta)
    where = sg.Vector.from_dense(beta).to(device)
    found = katz_centrality(A.to(device), alpha=alpha, beta=where, tol=1e-13, weighted=weighted)
    np.testing.assert_allclose(found.to_numpy(), x / np.linalg.norm(x), rtol=1e-9)


def test_katz_beta_scales_nothing() -> None:
    A = matrix("path")
    one, seven = katz_centrality(A), katz_centrality(A, beta=7)
    assert one.isclose(seven, rtol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_eigenvector_equals_networkx(weighted: bool, device: str) -> None:
    A = weighted_graph(120, 1500)
    weight = "weight" if weighted else None
    expected = nx.eigenvector_centrality(networkx_of(A), tol=1e-13, max_iter=5000, weight=weight)
    found = eigenvector_centrality(A.to(device), tol=1e-13, max_iter=5000, weighted=weighted)
    np.testing.assert_allclose(found.to_numpy(), listed(expected), atol=1e-10)


@pytest.mark.parametrize("name", ["star both", "complete", "path", "cycle", "loop", "one"])
def test_eigenvector_of_small_graphs(name: str, device: str) -> None:
    A = matrix(name)
    x = eigenvector_centrality(A.to(device), tol=1e-12, max_iter=100_000).to_numpy()
    D = A.to_scipy().toarray().astype(float)
    value = x @ (x @ D)
    np.testing.assert_allclose(x @ D, value * x, atol=1e-4)
    assert np.linalg.norm(x) == pytest.approx(1)


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


def test_bad_alpha_and_beta() -> None:
    A = matrix("path")
    for alpha in (-0.1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="katz_centrality: alpha: expected a finite number"):
            katz_centrality(A, alpha=alpha)
    with pytest.raises(ValueError, match="katz_centrality: beta.size 3 != A.nrows 64"):
        katz_centrality(A, beta=np.ones(3))
    with pytest.raises(ConvergenceError):
        katz_centrality(A, alpha=2.0)
