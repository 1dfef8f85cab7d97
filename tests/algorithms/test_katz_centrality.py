"""Katz centrality on every device, against NetworkX and the linear system."""

from __future__ import annotations

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401
from networkx_cases import listed, networkx_of
from search_cases import matrix, weighted_graph

import spgraph as sg
from spgraph.algorithms import katz_centrality
from spgraph.errors import ConvergenceError

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")


@pytest.mark.parametrize("weighted", [False, True])
def test_equals_networkx_and_the_linear_system(weighted: bool, device: str) -> None:
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


def test_beta_scales_nothing() -> None:
    A = matrix("path")
    one, seven = katz_centrality(A), katz_centrality(A, beta=7)
    assert one.isclose(seven, rtol=1e-6)


def test_bad_alpha_and_beta() -> None:
    A = matrix("path")
    for alpha in (-0.1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="katz_centrality: alpha: expected a finite number"):
            katz_centrality(A, alpha=alpha)
    for alpha in ("0.1", None, [0.1], np.array([0.1])):
        with pytest.raises(ValueError, match="alpha: expected a finite number >= 0, got "):
            katz_centrality(A, alpha=alpha)
    for wrong in ("x", None, 1j):
        with pytest.raises(
            TypeError, match="katz_centrality: beta: expected a number, or a Vector"
        ):
            katz_centrality(A, beta=wrong)
    with pytest.raises(ValueError, match="beta: expected a number that float64 holds"):
        katz_centrality(A, beta=10**400)
    # the squares of the greatest sum up to infinity, those of the least to 0: the ranks were zeros
    beyond = (1e200, -1e200, 1e-200, 5e-324, float("inf"), float("nan"))
    for beta in (*beyond, *([one, *[1e-200] * 63] for one in beyond)):
        for tol in (1e-6, None):
            with pytest.raises(ValueError, match="katz_centrality: beta: expected finite numbers"):
                katz_centrality(A, beta=beta, tol=tol)
    for beta in (1e140, -1e-140, 3, np.float32(3), np.array(3)):
        expected = katz_centrality(A, tol=None, max_iter=50)
        found = katz_centrality(A, beta=beta, tol=None, max_iter=50)
        assert expected.isclose(abs(found), rtol=1e-12)
    with pytest.raises(ValueError, match="katz_centrality: beta.size 3 != A.nrows 64"):
        katz_centrality(A, beta=np.ones(3))
    with pytest.raises(ConvergenceError):
        katz_centrality(A, alpha=2.0)
