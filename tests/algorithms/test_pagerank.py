"""PageRank on every device, against a dense solution of its equations and NetworkX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from fixtures_device import device  # noqa: F401
from search_cases import GRAPHS, matrix, weighted_graph

import spgraph as sg
from spgraph.algorithms import pagerank
from spgraph.errors import ConvergenceError, NegativeWeight

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")


def solved(
    S: Any, damping: float = 0.85, restart: Any = None, weighted: bool = False
) -> np.ndarray:
    """The ranks as the solution of (I - d P') r = (1 - d) v, P with v where nothing goes out."""
    D = S.toarray().astype(float)
    D = D if weighted else (D != 0).astype(float)
    n = D.shape[0]
    v = np.full(n, 1 / n) if restart is None else np.asarray(restart, float) / np.sum(restart)
    out = D.sum(axis=1)
    P = np.where(out[:, None] > 0, D / np.where(out > 0, out, 1)[:, None], v)
    return np.linalg.solve(np.eye(n) - damping * P.T, (1 - damping) * v)


@pytest.mark.parametrize(
    "name",
    [pytest.param(g, marks=[pytest.mark.long] if g.endswith("both") else []) for g in GRAPHS],
)
def test_error_is_within_six_tol(name: str, device: str) -> None:
    A = matrix(name)
    expected, G = solved(A.to_scipy()), A.to(device)
    for tol in (1e-2, 1e-6, 1e-7, 1e-10):
        rank = pagerank(G, tol=tol, max_iter=200)
        assert rank.dtype == np.float64 and rank.storage == "full" and rank.device == G.device
        assert abs(rank.to_numpy() - expected).sum() <= 6 * tol
        assert rank.to_numpy().sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("damping", [0.01, 0.5, 0.85, 0.99])
def test_weights_and_damping(weighted: bool, damping: float, device: str) -> None:
    A = weighted_graph(200, 3000)
    expected = solved(A.to_scipy(), damping, weighted=weighted)
    rank = pagerank(A.to(device), damping=damping, tol=1e-12, max_iter=5000, weighted=weighted)
    np.testing.assert_allclose(rank.to_numpy(), expected, rtol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("personal", [False, True])
def test_equals_networkx(weighted: bool, personal: bool, device: str) -> None:
    A = weighted_graph(150, 900, seed=4)
    G = nx.from_scipy_sparse_array(A.to_scipy(), create_using=nx.DiGraph)
    assert min(d for _, d in G.out_degree()) == 0
    wanted = {3: 1.0, 77: 2.5, 149: 0.25}
    expected = nx.pagerank(
        G,
        weight="weight" if weighted else None,
        personalization=wanted if personal else None,
        tol=1e-15,
        max_iter=1000,
    )
    dense = np.zeros(150)
    dense[list(wanted)] = list(wanted.values())
    sparse = sg.Vector.from_coo(list(wanted), list(wanted.values()), size=150)
    for personalization in [sparse.to(device), dense] if personal else [None]:
        if device != "cpu" and personalization is dense:
            personalization = sg.Vector.from_dense(dense).to(device)
        rank = pagerank(
            A.to(device),
            tol=1e-11,
            personalization=personalization,
            weighted=weighted,
            max_iter=500,
        )
        np.testing.assert_allclose(rank.to_numpy(), [expected[v] for v in range(150)], rtol=1e-8)


def test_tol_none_runs_exactly_max_iter(device: str) -> None:
    A = weighted_graph(100, 600)
    D = (A.to_scipy().toarray() != 0).astype(float)
    out, r = D.sum(axis=1), np.full(100, 0.01)
    for count in range(4):
        found = pagerank(A.to(device), tol=None, max_iter=count).to_numpy()
        np.testing.assert_allclose(found, r, rtol=1e-6)
        share = np.where(out > 0, r / np.where(out > 0, out, 1), 0)
        r = 0.85 * share @ D + (0.15 + 0.85 * r[out == 0].sum()) / 100


def test_rmat_with_dangling_vertices(device: str) -> None:
    A = sg.generators.kronecker(10, 8, symmetric=False)
    assert (np.diff(A.indptr) == 0).any()
    rank = pagerank(A.to(device), tol=1e-10, max_iter=200).to_numpy()
    np.testing.assert_allclose(rank, solved(A.to_scipy()), rtol=1e-7)


def test_parallel_edges_of_a_scipy_matrix_count_once_unless_weighted() -> None:
    rows, columns = [0, 0, 0, 1, 2], [1, 1, 2, 0, 0]
    S = scipy.sparse.coo_array((np.ones(5), (rows, columns)), shape=(3, 3))
    once = scipy.sparse.csr_array(np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]]))
    np.testing.assert_allclose(pagerank(S, tol=1e-12, max_iter=500), solved(once), rtol=1e-9)
    np.testing.assert_allclose(
        pagerank(S, tol=1e-12, max_iter=500, weighted=True),
        solved(S.tocsr(), weighted=True),
        rtol=1e-9,
    )


# three kernels each; the other tests have float64
TYPES = [np.int8, np.uint64]
TYPES += [pytest.param(kind, marks=pytest.mark.full) for kind in (bool, np.float32)]


@pytest.mark.parametrize("dtype", TYPES)
def test_types_of_values(dtype: Any, device: str) -> None:
    S = weighted_graph(60, 500).to_scipy()
    S.data = np.ceil(S.data * 3).astype(dtype)
    A = sg.Matrix.from_scipy(S).to(device)
    rank = pagerank(A, tol=1e-11, max_iter=500, weighted=True).to_numpy()
    np.testing.assert_allclose(rank, solved(S, weighted=True), rtol=1e-8)


def test_values_of_zero_carry_nothing(device: str) -> None:
    S = scipy.sparse.csr_array((np.array([0.0, 2.0]), ([0, 1], [1, 0])), shape=(2, 2))
    A = sg.Matrix.from_scipy(S).to(device)
    weighted, counted = (
        pagerank(A, tol=1e-12, max_iter=500, weighted=w).to_numpy() for w in (True, False)
    )
    np.testing.assert_allclose(weighted, solved(S, weighted=True), rtol=1e-9)
    np.testing.assert_allclose(counted, [0.5, 0.5], rtol=1e-9)


def test_no_vertex_and_one(device: str) -> None:
    assert pagerank(sg.Matrix.empty(0, 0, device=device)).size == 0
    assert pagerank(sg.Matrix.empty(1, 1, device=device)).to_numpy().tolist() == [1.0]


def test_it_does_not_come_to_rest(device: str) -> None:
    A = weighted_graph(100, 600).to(device)
    with pytest.raises(ConvergenceError, match=r"pagerank: after max_iter=3 .* at most 1e-06"):
        pagerank(A, max_iter=3)
    with pytest.raises(ConvergenceError) as caught:
        pagerank(A, max_iter=3, tol=1e-9)
    assert caught.value.result.isclose(pagerank(A, max_iter=3, tol=None), rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"damping": 0}, ValueError, r"pagerank: damping: expected a number in \(0, 1\), got 0"),
        ({"damping": 1.0}, ValueError, "got 1.0"),
        ({"damping": float("nan")}, ValueError, "got nan"),
        ({"damping": "0.85"}, ValueError, "pagerank: damping: expected a number .* got '0.85'"),
        ({"damping": None}, ValueError, "pagerank: damping: expected a number .* got None"),
        ({"damping": [0.85]}, ValueError, "pagerank: damping: expected a number .* got "),
        ({"tol": 0}, ValueError, "pagerank: tol: expected a number > 0 or None, got 0"),
        ({"tol": -1e-6}, ValueError, "got -1e-06"),
        ({"max_iter": -1}, ValueError, "pagerank: max_iter"),
        ({"personalization": np.ones(3)}, ValueError, "personalization.size 3 != A.nrows 4"),
        ({"personalization": ["1"] * 4}, TypeError, "^pagerank: personalization: dtype: expected"),
        ({"personalization": np.ones((4, 1))}, TypeError, "pagerank: personalization: array: exp"),
        ({"personalization": [[1], [1, 2]]}, ValueError, "^pagerank: personalization: .* same l"),
        ({"personalization": np.zeros(4)}, ValueError, "one of them above 0"),
        ({"personalization": [1, -1, 1, 1]}, ValueError, "numbers from -1 to 1"),
        ({"personalization": [1, np.nan, 1, 1]}, ValueError, "expected finite numbers"),
        ({"personalization": [1, np.inf, 1, 1]}, ValueError, "expected finite numbers"),
    ],
)
def test_bad_input(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        pagerank(sg.Matrix.from_coo([0, 1], [1, 2], nrows=4, ncols=4), **options)


def test_personalization_whose_sum_is_infinite(device: str) -> None:
    A = sg.Matrix.from_coo([0, 1, 3], [1, 2, 0], nrows=4, ncols=4).to(device)
    where = sg.Vector.from_dense([1, 1, 0, 0.5]).to(device)
    expected = pagerank(A, personalization=where)
    for factor in (1e308, 1.7e308, 1e-300):
        found = pagerank(A, personalization=where * factor)
        assert found.isclose(expected, rtol=1e-12), "they were zeros"


def test_more_iterations_than_int64_counts(device: str) -> None:
    A = sg.Matrix.from_coo([0, 1], [1, 2], nrows=4, ncols=4).to(device)
    assert pagerank(A, max_iter=10**30).isequal(pagerank(A))


def test_bad_matrices() -> None:
    def of(values: list[float]) -> sg.Matrix:
        return sg.Matrix.from_coo([0, 1], [1, 0], values)

    with pytest.raises(ValueError, match="pagerank: A: expected a square matrix, got 2 x 3"):
        pagerank(np.ones((2, 3)))
    with pytest.raises(TypeError, match="pagerank: A: expected a Matrix"):
        pagerank("web")
    with pytest.raises(NegativeWeight, match="pagerank: A: expected values >= 0, got -2"):
        pagerank(of([1.0, -2.0]), weighted=True)
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="pagerank: A: expected finite values"):
            pagerank(of([1.0, bad]), weighted=True)
    assert pagerank(of([-2.0, np.nan])).to_numpy().tolist() == [0.5, 0.5]
