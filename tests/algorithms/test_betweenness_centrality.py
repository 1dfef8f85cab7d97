"""Betweenness centrality on every device, against NetworkX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dependencies_cases import dense, matrix, networkx_of, same, some_sources
from drawn_graphs import drawn_graphs
from fixtures_device import device  # noqa: F401
from hypothesis import given, settings
from networkx_cases import directed_of

import spgraph as sg
from spgraph.algorithms.betweenness_centrality import betweenness_centrality
from spgraph.errors import DomainMismatch, IndexOutOfBound, NegativeWeight
from spgraph.iterations.path_dependencies import levels

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")


@settings(max_examples=60)
@given(A=drawn_graphs(vertices=40, edges=120, symmetric=None))
def test_random_graphs(A: sg.Matrix) -> None:
    expected = nx.betweenness_centrality(directed_of(A), normalized=False)
    np.testing.assert_allclose(
        betweenness_centrality(A).to_numpy(), [expected[v] for v in range(A.nrows)], atol=1e-9
    )


@pytest.mark.parametrize(
    "graph",
    [
        "one",
        "loop",
        "complete",
        "acyclic",
        *(
            pytest.param(graph, marks=pytest.mark.long)
            for graph in ("path", "star both", "cycle", "two components", "rmat 8")
        ),
    ],
)
def test_equals_networkx(graph: str, device: str) -> None:
    A = matrix(graph).to(device)
    G = networkx_of(graph)
    for normalized in (False, True):
        expected = nx.betweenness_centrality(G, normalized=normalized)
        got = betweenness_centrality(A, normalized=normalized)
        same(got, np.array([expected[v] for v in range(A.nrows)]))
    if A.symmetric:  # which NetworkX halves
        halved = nx.betweenness_centrality(G.to_undirected(), normalized=False)
        same(betweenness_centrality(A), 2 * np.array([halved[v] for v in range(A.nrows)]))


@pytest.mark.long
def test_sources_and_samples(device: str) -> None:
    A = matrix("rmat 8").to(device)
    sources = [9, 3, 200, 3]
    expected = nx.betweenness_centrality_subset(networkx_of("rmat 8"), {3, 9, 200}, range(256))
    same(betweenness_centrality(A, sources=sources), np.array([expected[v] for v in range(256)]))
    same(betweenness_centrality(A, sources=[]), np.zeros(256))
    one = betweenness_centrality(A, sources=3)
    same(one, betweenness_centrality(A, sources=[3]).to_numpy())
    drawn = betweenness_centrality(A, k=20, seed=1)
    assert drawn.isclose(betweenness_centrality(A, k=20, seed=1), rtol=1e-12)
    assert not drawn.isclose(betweenness_centrality(A, k=20, seed=2), rtol=1e-6)
    assert betweenness_centrality(A, k=256).isclose(betweenness_centrality(A), rtol=1e-10)


def weights_of(name: str, dtype: Any) -> np.ndarray:
    """The same for both directions of an edge; few values, so that many paths are of one length."""
    i, j, _ = matrix(name).to_coo()
    return (1 + (np.minimum(i, j) * 7 + np.maximum(i, j) * 13) % 3).astype(dtype)


# shortest paths are tested over the others
OTHERS = (np.int32, np.float32, np.float64)

WEIGHTS = [np.uint64, *(pytest.param(kind, marks=pytest.mark.full) for kind in OTHERS)]


@pytest.mark.parametrize("dtype", WEIGHTS)
def test_weighted_equals_networkx(dtype: type, device: str) -> None:
    for name in ("one", "path", "complete", "two components", "acyclic", "grid"):
        A = matrix(name)
        weights = weights_of(name, dtype)
        W = sg.Matrix._of(*A.shape, A.indptr, A.indices, weights, symmetric=A.symmetric).to(device)
        sources = some_sources(A.nrows, 3).tolist()
        G = networkx_of(name, weights)
        expected = nx.betweenness_centrality_subset(G, sources, list(G), weight="weight")
        got = betweenness_centrality(W, sources=sources, weighted=True)
        same(got, np.array([expected[v] for v in range(A.nrows)]))


@pytest.mark.long
def test_weighted_by_ones_is_unweighted(device: str) -> None:
    for name in ("rmat 8", "sparse directed", "layers"):
        A = matrix(name).to(device)
        sources = some_sources(A.nrows, 2)
        got = betweenness_centrality(A, sources=sources, weighted=True)
        same(got, betweenness_centrality(A, sources=sources).to_numpy())


@pytest.mark.parametrize(
    ("kind", "shards"),
    [
        (np.float32, None),
        pytest.param(np.float64, 3, marks=pytest.mark.long),
        pytest.param(np.float32, 3, marks=pytest.mark.full),
        pytest.param(np.float64, None, marks=pytest.mark.full),
    ],
)
def test_weights_that_rounding_absorbs(kind: type, shards: int | None, device: str) -> None:
    """In a tree they change no path, however many vertices are at one distance."""
    chance = np.random.default_rng(5)
    for seed, choices in enumerate([(1.0, 1e-17), (1.0, 1e-17, 2.0**30, np.inf)] * 3):
        tree = nx.random_labeled_tree(14, seed=seed)
        rows, columns = np.array(tree.edges).T
        weights = chance.choice(choices, rows.size).astype(kind)
        both = np.r_[rows, columns], np.r_[columns, rows], np.r_[weights, weights]
        A = sg.Matrix.from_coo(*both, nrows=14, ncols=14).to(device)
        expected = nx.betweenness_centrality(tree, normalized=False)
        if shards:
            A = A.distribute(shards, devices=[f"{device}:0" if device == "cuda" else device] * 3)
        same(
            betweenness_centrality(A, weighted=True),
            np.array([2 * expected[v] for v in range(14)]),
        )


def test_absorbed_weights_in_a_cycle(device: str) -> None:
    """0 leads to 1 and 2, these to 3 and each other, 3 to 4: of the vertices at distance 1 those
    count that are reached from nearer, and then in the fewest steps.
    """
    tiny = 1e-17
    edges = [(0, 1, 1.0), (0, 2, 1.0), (1, 2, tiny), (2, 1, tiny), (1, 3, tiny), (2, 3, tiny)]
    edges += [(3, 1, tiny), (3, 4, 1.0), (4, 3, 1.0)]
    rows, columns, weights = (np.array(part) for part in zip(*edges, strict=True))
    A = sg.Matrix.from_coo(rows, columns, weights, nrows=5, ncols=5).to(device)
    got = betweenness_centrality(A, sources=[0], weighted=True)
    assert got.to_numpy().tolist() == [0.0, 1.0, 1.0, 1.0, 0.0]


def test_lengths_beyond_int64_matter_where_they_are_needed(device: str) -> None:
    A = sg.Matrix.from_coo([0, 1, 0], [1, 2, 2], np.array([1, 2, 2**63 + 9], np.uint64), nrows=3)
    got = betweenness_centrality(A.to(device), sources=[0], weighted=True)
    assert got.to_numpy().tolist() == [0.0, 1.0, 0.0]


def test_takes_what_a_matrix_can_be_made_from() -> None:
    G = nx.karate_club_graph()
    for weighted in (False, True):
        expected = nx.betweenness_centrality(
            G, normalized=True, weight="weight" if weighted else None
        )
        given = nx.to_numpy_array(G) if weighted else G
        got = betweenness_centrality(given, normalized=True, weighted=weighted)
        same(got, np.array([expected[v] for v in G]))


@pytest.mark.long
def test_the_matrix_stays_as_it_is(device: str) -> None:
    A = matrix("rmat 8").to(device)
    before = A.dup()
    first = betweenness_centrality(A)
    kept = first.to_numpy()
    betweenness_centrality(A)
    assert A.isequal(before) and (first.to_numpy() == kept).all()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"sources": [8]}, IndexOutOfBound, "sources: expected 0 <= source < 3, got 8"),
        ({"sources": [0.5]}, DomainMismatch, "sources: expected a vertex or a sequence"),
        ({"sources": [0], "k": 1}, ValueError, "k: expected sources or k, got both"),
        ({"seed": 1}, ValueError, "seed: expected k, too"),
        (
            {"k": 2, "seed": -1},
            ValueError,
            "betweenness_centrality: seed: expected an integer from",
        ),
        ({"k": 2, "seed": "x"}, TypeError, "betweenness_centrality: seed: expected an integer or"),
        ({"k": 2, "seed": [1]}, TypeError, "betweenness_centrality: seed: expected an integer or"),
        ({"k": 4}, ValueError, "k: expected 1 <= k <= 3, got 4"),
        ({"k": 0}, ValueError, "k: expected 1 <= k <= 3, got 0"),
        ({"k": 1.0}, DomainMismatch, "k: expected an integer, got 1.0"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], error: type, message: str) -> None:
    A = sg.Matrix.from_coo([0, 1], [1, 2], [1, 2], nrows=3, ncols=3)
    with pytest.raises(error, match=message):
        betweenness_centrality(A, **arguments)


def test_bad_weights() -> None:
    def weighted(values: list[Any], dtype: Any = None) -> None:
        A = sg.Matrix.from_coo([0, 1], [1, 2], np.array(values, dtype), nrows=3, ncols=3)
        betweenness_centrality(A, sources=[0], weighted=True)

    with pytest.raises(ValueError, match=r"expected weights > 0 .*, got A\[1, 2\] = 0"):
        weighted([1, 0])
    with pytest.raises(NegativeWeight, match=r"got A\[0, 1\] = -1.5"):
        weighted([-1.5, 1.0])
    with pytest.raises(ValueError, match=r"got A\[1, 2\] = nan"):
        weighted([1.0, np.nan])
    with pytest.raises(OverflowError, match="expected distances that int64 holds"):
        weighted([1, 2**63], np.uint64)


@pytest.mark.parametrize("name", ["usa-road-NY.gr.xz", "soc-Epinions1.txt.gz"])
def test_real_graphs(name: str, device: str, shared_data: Path) -> None:
    """A second opinion where plain loops take too long: all that is carried is counted at both
    ends. The sum of a source's dependencies is that of all distances, less one for each vertex.
    """
    A = sg.read(shared_data / name).to(device)
    sources = [17, 4001]
    got = betweenness_centrality(A, sources=sources).to_numpy()
    rows = dense(levels(A, sources)).astype(np.int64)
    np.testing.assert_allclose(got.sum(), (rows - 1)[rows > 0].sum(), rtol=1e-10)
    assert (got >= 0).all()
