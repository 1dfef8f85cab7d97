"""Betweenness and its loops, closeness and searches from many sources, against plain loops and
NetworkX, on every device and on the shim.
"""

from __future__ import annotations

import functools
import importlib
import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cuda_host_shim
import numpy as np
import pytest
from fixtures_device import device  # noqa: F401
from hypothesis import given, settings
from hypothesis import strategies as st
from search_cases import GRAPHS, edges_of

import spgraph as sg
from spgraph.algorithms.betweenness_centrality import betweenness_centrality
from spgraph.algorithms.closeness_centrality import closeness_centrality
from spgraph.algorithms.multi_source_bfs import multi_source_bfs
from spgraph.backends import cpu, cuda
from spgraph.backends.cpu.runtime import pool
from spgraph.containers.arrays import import_cupy
from spgraph.distributed import LocalCommunicator
from spgraph.errors import (
    BackendMismatch,
    CommunicationError,
    DimensionMismatch,
    DomainMismatch,
    IndexOutOfBound,
    NegativeWeight,
)
from spgraph.iterations import path_dependencies as loops
from spgraph.iterations.path_dependencies import (
    composed,
    composed_levels,
    dependencies,
    dependencies_along,
    level_sums,
    levels,
)
from tests.distributed.loops.test_search_peers_shim import HostBuffers

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")

# beside the graphs of the searches
MORE = ("empty", "acyclic", "grid", "rmat 8", "rmat 10", "rmat 9 directed", "layers", "braid")


@functools.cache
def edges(name: str) -> tuple[int, np.ndarray]:
    """(vertices, directed edges as pairs)."""
    if name in GRAPHS:
        return edges_of(name)[:2]
    rng = np.random.default_rng(5)
    if name == "empty":
        return 0, np.empty((0, 2), int)
    if name == "acyclic":
        pairs = np.sort(rng.integers(0, 150, (600, 2)), axis=1)
        return 150, pairs[pairs[:, 0] < pairs[:, 1]]
    if name in ("layers", "braid"):  # 16 ** 260 paths from end to end are more than float64 holds
        i, j, k = np.meshgrid(np.arange(16), np.arange(16), np.arange(260), indexing="ij")
        pairs = np.stack([(16 * k + i).ravel(), (16 * k + 16 + j).ravel()], axis=1)
        n = 16 * 261
        if name == "braid":  # and one path of the same length beside them
            line = n + np.arange(261)
            n += 261
            beside = np.stack([line[:-1], line[1:]], axis=1)
            pairs = np.concatenate([pairs, beside, [[0, line[1]], [line[-1], 16 * 260]]])
        return n, np.concatenate([pairs, pairs[:, ::-1]])
    if name == "grid":
        A = sg.generators.grid(13, 17)
    else:
        directed = "directed" in name
        A = sg.generators.kronecker(int(name.split()[1]), 6, seed=2, symmetric=not directed)
    return A.nrows, np.stack(A.to_coo()[:2], axis=1)


@functools.cache
def matrix(name: str) -> sg.Matrix:
    n, pairs = edges(name)
    A = sg.Matrix.from_coo(pairs[:, 0], pairs[:, 1], nrows=n, ncols=n)
    A.is_symmetric()
    return A


def some_sources(n: int, most: int = 7) -> np.ndarray:
    return np.random.default_rng(n).permutation(n)[:most]


@functools.cache
def by_loops(name: str, sources: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """(scores, a row of levels for each source); numbers of paths are Python's own integers."""
    n, pairs = edges(name)
    after: list[set[int]] = [set() for _ in range(n)]
    for i, j in pairs.tolist():
        after[i].add(j)
    score, rows = [0.0] * n, []
    for s in sources:
        level, paths, order = [-1] * n, [0] * n, [s]
        level[s], paths[s] = 0, 1
        for u in order:
            for v in after[u]:
                if level[v] < 0:
                    level[v] = level[u] + 1
                    order.append(v)
                if level[v] == level[u] + 1:
                    paths[v] += paths[u]
        carried = [0.0] * n
        for u in reversed(order):
            for v in after[u]:
                if level[v] == level[u] + 1:
                    carried[u] += paths[u] / paths[v] * (1 + carried[v])
            if u != s:
                score[u] += carried[u]
        rows.append(level)
    return np.array(score), np.array(rows).reshape(len(rows), n)


def same(got: Any, expected: np.ndarray) -> None:
    assert got.storage == "full" and got.dtype == np.float64
    np.testing.assert_allclose(got.to_numpy(), expected, rtol=1e-10, atol=1e-300)


def check(name: str, device: str, most: int = 7) -> None:
    A = matrix(name).to(device)
    sources = some_sources(A.nrows, most)
    got = dependencies(A, sources)
    assert got.device == A.device
    same(got, by_loops(name, tuple(sources.tolist()))[0])


# --- the loops ------------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", [*GRAPHS, *MORE])
def test_dependencies_equal_loops(graph: str, device: str) -> None:
    check(graph, device)
    check(graph, device, most=1)


@pytest.mark.parametrize("graph", [g for g in (*GRAPHS, *MORE) if g not in ("layers", "braid")])
def test_fused_equals_composed(graph: str, device: str) -> None:
    A = matrix(graph).to(device)
    sources = some_sources(A.nrows, 2)
    same(dependencies(A, sources), composed(A, sources).to_numpy())


@pytest.mark.parametrize("extended", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_forms_and_thread_counts_agree(threads: int, extended: bool) -> None:
    if threads > pool.processors():
        pytest.skip("one processor")
    host = importlib.import_module("spgraph.backends.cpu.dependencies.dependencies")
    for name in ("path", "star both", "sparse directed", "acyclic", "grid", "rmat 10"):
        A = matrix(name)
        sources = some_sources(A.nrows).astype(np.int64)
        apart, shared = np.zeros(A.nrows), np.zeros(A.nrows)
        assert not host._apart(A, A.T, sources, threads, apart, extended).size
        host._shared(A, A.T, sources, None, threads, shared, extended)
        expected, rows = by_loops(name, tuple(sources.tolist()))
        np.testing.assert_allclose(apart, expected, rtol=1e-10)
        np.testing.assert_allclose(shared, expected, rtol=1e-10)
        # as every path of an acyclic graph is a shortest one if the others are left out
        i, j, _ = A.to_coo()
        kept = (rows[0][i] >= 0) & (rows[0][i] + 1 == rows[0][j])
        D = sg.Matrix.from_coo(i[kept], j[kept], nrows=A.nrows, ncols=A.ncols)
        along = np.zeros(A.nrows)
        level = sg.Vector.from_dense(rows[0], missing=-1)
        host._shared(D, D.T, sources[:1], level, threads, along, extended)
        np.testing.assert_allclose(
            along, by_loops(name, (int(sources[0]),))[0], rtol=1e-10, err_msg=name
        )


def test_threads_share_large_levels() -> None:
    host = importlib.import_module("spgraph.backends.cpu.dependencies.dependencies")
    for A in (
        sg.generators.kronecker(13, 12, seed=3),
        sg.generators.kronecker(13, 6, seed=3, symmetric=False),
    ):
        sources = some_sources(A.nrows, 3).astype(np.int64)
        expected = np.zeros(A.nrows)
        assert not host._apart(A, A.T, sources, 1, expected, False).size
        for threads in range(1, min(2, pool.processors()) + 1):
            for extended in (False, True):
                score = np.zeros(A.nrows)
                host._shared(A, A.T, sources, None, threads, score, extended)
                np.testing.assert_allclose(score, expected, rtol=1e-10)


def test_path_counts_beyond_float64(device: str) -> None:
    """On a grid of 520 x 520 there are 2 ** 1033 paths from corner to corner. Of the paths to
    (i, j + 1) the share j / (i + j) comes along the row, so that dependencies need no counts.
    """
    n = 520
    A = sg.generators.grid(n, n).to(device)
    expected = np.zeros((n + 1, n + 1))
    for total in range(2 * n - 2, -1, -1):
        i = np.arange(max(0, total - n + 1), min(total, n - 1) + 1)
        j = total - i
        down = np.where(i + 1 < n, (i + 1) / (total + 1) * (1 + expected[i + 1, j]), 0)
        right = np.where(j + 1 < n, (j + 1) / (total + 1) * (1 + expected[i, j + 1]), 0)
        expected[i, j] = down + right
    expected[0, 0] = 0
    same(dependencies(A, [0]), expected[:n, :n].ravel())


def dense(found: sg.Matrix) -> np.ndarray:
    """Levels as an array, -1 where there is none."""
    rows, columns, values = found.to("cpu").to_coo()
    array = np.full(found.shape, -1, values.dtype)
    array[rows, columns] = values
    return array


# each of them compiles three kernels anew
INDEX_TYPES = [
    pytest.param(*case, marks=[] if case == ("rmat 8", np.int64, np.int64) else pytest.mark.full)
    for case in itertools.product(("rmat 8", "acyclic"), (np.int64,), (np.int32, np.int64))
]


@pytest.mark.parametrize(("name", "offsets", "ids"), INDEX_TYPES)
def test_index_types(name: str, offsets: type, ids: type, device: str) -> None:
    A = matrix(name)
    arrays = A.indptr.astype(offsets), A.indices.astype(ids), A.values
    B = sg.Matrix(*A.shape, *arrays, iso=A.iso, symmetric=A.symmetric).to(device)
    sources = some_sources(A.nrows)
    expected, rows = by_loops(name, tuple(sources.tolist()))
    same(dependencies(B, sources), expected)
    same(dependencies(B, sources[:1]), by_loops(name, (int(sources[0]),))[0])
    np.testing.assert_array_equal(dense(levels(B, sources)), rows)


@pytest.mark.parametrize("graph", [*GRAPHS, *MORE])
def test_levels_equal_loops(graph: str, device: str) -> None:
    A = matrix(graph).to(device)
    for most in (1, 9):
        sources = some_sources(A.nrows, most)
        found = levels(A, sources)
        assert found.dtype == np.int32 and found.shape == (sources.size, A.nrows)
        rows = by_loops(graph, tuple(sources.tolist()))[1]
        np.testing.assert_array_equal(dense(found), rows)
        assert composed_levels(A, sources).isequal(found)
        reached, total = level_sums(A, sources)
        np.testing.assert_array_equal(reached, (rows >= 0).sum(axis=1))
        np.testing.assert_array_equal(total, np.maximum(rows, 0).sum(axis=1))


@settings(max_examples=60)
@given(
    n=st.integers(1, 40),
    pairs=st.lists(st.tuples(st.integers(0, 39), st.integers(0, 39)), max_size=120),
    both=st.booleans(),
)
def test_random_graphs(n: int, pairs: list[tuple[int, int]], both: bool) -> None:
    kept = np.array([pair for pair in pairs if max(pair) < n], int).reshape(-1, 2)
    if both:
        kept = np.concatenate([kept, kept[:, ::-1]])
    A = sg.Matrix.from_coo(kept[:, 0], kept[:, 1], nrows=n, ncols=n)
    G = nx.DiGraph()
    G.add_nodes_from(range(n))
    G.add_edges_from(kept.tolist())
    expected = nx.betweenness_centrality(G, normalized=False)
    np.testing.assert_allclose(
        betweenness_centrality(A).to_numpy(), [expected[v] for v in range(n)], atol=1e-9
    )


def test_the_loops_refuse_bad_input() -> None:
    A = matrix("path")
    for loop in (dependencies, levels, composed):
        with pytest.raises(DimensionMismatch, match="A: expected a square matrix, got 2 x 3"):
            loop(sg.Matrix.empty(2, 3), [0])
        with pytest.raises(IndexOutOfBound, match="expected 0 <= source < 64, got 64"):
            loop(A, [1, 64])
        with pytest.raises(DomainMismatch, match="A: expected a Matrix"):
            loop("edges", [0])
        for wrong in ([0.5], 3):
            with pytest.raises(DomainMismatch, match="sources: expected a sequence of vertices"):
                loop(A, wrong)
    with pytest.raises(DimensionMismatch, match="level.size 3 != A.nrows 64"):
        dependencies_along(A, sg.Vector.from_dense([0, 1, 2]))
    with pytest.raises(DomainMismatch, match="level: expected a Vector"):
        dependencies_along(A, [0, 1])


@pytest.mark.gpu
def test_devices_may_not_be_mixed() -> None:
    with pytest.raises(BackendMismatch, match="level is on cpu"):
        dependencies_along(matrix("path").to("cuda"), sg.Vector.from_dense(np.arange(64)))


# --- betweenness ----------------------------------------------------------------------------------


def networkx_of(name: str, weights: np.ndarray | None = None) -> nx.DiGraph:
    A = matrix(name)
    G = nx.DiGraph()
    G.add_nodes_from(range(A.nrows))
    i, j, _ = A.to_coo()
    w = np.ones(A.nvals, int) if weights is None else weights
    G.add_weighted_edges_from(zip(i.tolist(), j.tolist(), w.tolist(), strict=True))
    return G


@pytest.mark.parametrize(
    "graph",
    [
        "one",
        "loop",
        "path",
        "star both",
        "cycle",
        "complete",
        "two components",
        "acyclic",
        "rmat 8",
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
        W = sg.Matrix(*A.shape, A.indptr, A.indices, weights, symmetric=A.symmetric).to(device)
        sources = some_sources(A.nrows, 3).tolist()
        G = networkx_of(name, weights)
        expected = nx.betweenness_centrality_subset(G, sources, list(G), weight="weight")
        got = betweenness_centrality(W, sources=sources, weighted=True)
        same(got, np.array([expected[v] for v in range(A.nrows)]))


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
        (np.float64, 3),
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


# --- closeness, searches from many sources --------------------------------------------------------


@pytest.mark.parametrize("graph", ["one", "path", "two components", "acyclic", "cycle", "rmat 8"])
def test_closeness_equals_networkx(graph: str, device: str) -> None:
    A = matrix(graph).to(device)
    G = networkx_of(graph)
    for improved in (True, False):
        expected = nx.closeness_centrality(G, wf_improved=improved)
        got = closeness_centrality(A, wf_improved=improved)
        same(got, np.array([expected[v] for v in range(A.nrows)]))


def test_closeness_of_some(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "BATCH", 600)
    A = matrix("rmat 8").to(device)
    got = closeness_centrality(A, sources=[200, 7, 31, 7])
    assert got.to("cpu").to_coo()[0].tolist() == [7, 31, 200]
    everywhere = closeness_centrality(A).to_numpy()
    np.testing.assert_array_equal(got.to("cpu").to_coo()[1], everywhere[[7, 31, 200]])
    assert closeness_centrality(sg.Matrix.empty(0, 0).to(device)).size == 0
    with pytest.raises(IndexOutOfBound, match="closeness_centrality: sources"):
        closeness_centrality(A, sources=[256])


@pytest.mark.parametrize("graph", ["one", "no edges", "two components", "sparse directed", "grid"])
def test_multi_source_bfs(graph: str, device: str) -> None:
    A = matrix(graph).to(device)
    sources = [*some_sources(A.nrows, 5).tolist(), 0, 0]
    L = multi_source_bfs(A, sources).to("cpu")
    rows = by_loops(graph, tuple(sources))[1]
    assert L.shape == (len(sources), A.nrows) and L.nvals == (rows >= 0).sum()
    i, j, level = L.to_coo()
    np.testing.assert_array_equal(level, rows[i, j])
    np.testing.assert_array_equal(np.lexsort((j, i)), np.arange(L.nvals))
    assert level.dtype == np.int32
    for k, source in enumerate(sources[:3]):  # and as one search after the other
        found = sg.bfs(A, source, parents=False).level.to("cpu")
        np.testing.assert_array_equal(found.to_numpy(fill=-1), rows[k])


def test_multi_source_bfs_takes_none_or_one(device: str) -> None:
    A = matrix("path").to(device)
    assert multi_source_bfs(A, []).shape == (0, 64)
    assert multi_source_bfs(A, 5).nvals == 64
    with pytest.raises(IndexOutOfBound, match="multi_source_bfs: sources"):
        multi_source_bfs(A, [64])
    with pytest.raises(DomainMismatch, match="multi_source_bfs: sources"):
        multi_source_bfs(A, "0")


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


# --- the CUDA kernels without a GPU ---------------------------------------------------------------

shim = pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")
COVER = ("one", "loop", "path", "star both", "two components", "sparse directed", "grid", "rmat 8")


@pytest.fixture
def on_the_shim(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The module of the CUDA backend, with small blocks; levels come from the CPU."""
    cuda_host_shim.install(monkeypatch)
    host = importlib.import_module("spgraph.backends.cuda.dependencies.dependencies")
    device_jit = importlib.import_module("spgraph.backends.cuda.runtime.jit")
    monkeypatch.setattr(device_jit, "current_device", lambda: 0)
    monkeypatch.setattr(device_jit, "multiprocessors", lambda device: 2)
    monkeypatch.setattr(host, "THREADS", 64)
    monkeypatch.setattr(host, "THREADS_APART", 32)
    on_cpu = importlib.import_module("spgraph.backends.cpu.dependencies.dependencies")
    monkeypatch.setattr(host, "_levels_from", on_cpu._levels_from)
    monkeypatch.setattr(loops, "backend", lambda device: cuda)
    return host


def define(monkeypatch: pytest.MonkeyPatch, **constants: int) -> None:
    """Let the kernels decide by other thresholds."""
    device_jit = importlib.import_module("spgraph.backends.cuda.runtime.jit")
    text = "".join(f"#define {name} {value}\n" for name, value in constants.items())

    def kernel(stem: str, name: str, preamble: str, *, cooperative: bool = False) -> Any:
        return cuda_host_shim.kernel(stem, name, text + preamble, cooperative)

    monkeypatch.setattr(device_jit, "kernel", kernel)


@shim
@pytest.mark.parametrize(("small", "extended"), [(40, False), (0, False), (40, True)])
def test_all_blocks_on_one_source(
    small: int, extended: bool, on_the_shim: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(monkeypatch, SMALL_EDGES=small)
    for name in (*COVER, "rmat 10") if small == 40 else COVER:
        A = matrix(name)
        sources = some_sources(A.nrows, 2).astype(np.int64)
        score = np.zeros(A.nrows)
        assert not on_the_shim._together(A, A.T, sources, None, score, extended).size
        expected, rows = by_loops(name, tuple(sources.tolist()))
        np.testing.assert_allclose(score, expected, rtol=1e-10, err_msg=name)
        i, j, _ = A.to_coo()
        kept = (rows[0][i] >= 0) & (rows[0][i] + 1 == rows[0][j])
        D = sg.Matrix.from_coo(i[kept], j[kept], nrows=A.nrows, ncols=A.ncols)
        level, along = sg.Vector.from_dense(rows[0], missing=-1), np.zeros(A.nrows)
        on_the_shim._together(D, D.T, sources[:1], level, along, extended)
        np.testing.assert_allclose(
            along, by_loops(name, (int(sources[0]),))[0], rtol=1e-10, err_msg=name
        )


@shim
@pytest.mark.parametrize("extended", [False, True])
def test_a_block_a_source(extended: bool, on_the_shim: Any) -> None:
    for name in (*COVER, "acyclic", "rmat 10"):
        A = matrix(name)
        sources = some_sources(A.nrows, 3).astype(np.int64)
        score = np.zeros(A.nrows)
        assert not on_the_shim._apart(A, A.T, sources, score, extended).size
        expected, rows = by_loops(name, tuple(sources.tolist()))
        np.testing.assert_allclose(score, expected, rtol=1e-10, err_msg=name)
        np.testing.assert_array_equal(cuda.levels(A, A.T, sources), rows)


@shim
def test_too_many_paths_are_noticed(on_the_shim: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources are done again with exponents where paths are more than a number made small here."""
    define(monkeypatch, MOST=50)
    sources = [0, 110]
    expected = by_loops("grid", tuple(sources))[0]
    for pays in (True, False):
        monkeypatch.setattr(on_the_shim, "apart_pays", lambda *arguments, pays=pays: pays)
        same(dependencies(matrix("grid"), sources), expected)


class Meetings(HostBuffers):
    """Stands for PeerBuffers: what was launched is done, so that to meet is nothing."""

    def meet(self) -> None:
        pass


def in_shards(
    name: str,
    cuts: tuple[float, ...],
    peers: bool,
    patch: pytest.MonkeyPatch,
    sources: Any = None,
    relabelled: bool = False,
    failed: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """(scores, sources that are left) for shards that begin at these shares of a graph; levels come
    from plain loops.
    """
    host = importlib.import_module("spgraph.distributed.loops.dependencies")
    steps = importlib.import_module("spgraph.backends.cuda.dependencies.dependencies_shard")
    device_jit = importlib.import_module("spgraph.backends.cuda.runtime.jit")
    A = matrix(name)
    owner = np.searchsorted([int(x * A.nrows) for x in cuts], np.arange(A.nrows), side="right")
    if relabelled:
        owner = np.random.default_rng(3).permutation(owner)
    G: Any = A.distribute(len(cuts) + 1, partition=owner)
    G.T.shards  # noqa: B018 - made before kernels go to the shim
    sources = two(name) if sources is None else sources
    level = {
        source: sg.Vector.from_dense(row.astype(np.int32), missing=-1).to(G.device)
        for source, row in zip(sources, by_loops(name, tuple(sources))[1], strict=True)
    }
    if failed:
        level[sources[-1]] = lost(level[sources[-1]])
    if peers:
        G.device.peers = Meetings(G.device.num_shards)
        G._derived["dependencies"] = Meetings(G.device.num_shards)
    cuda_host_shim.install(patch)
    patch.setattr(device_jit, "BLOCK", 64)
    patch.setattr(steps, "THREADS", 64)
    patch.setattr(host, "_levels_from", lambda A, T, source: level[source])
    scores = [np.zeros(size) for size in G.device.main.sizes]
    left = host.in_shards(G, G.T, np.array(sources), scores)
    found = np.empty(A.nrows)
    found[slice(None) if G.device.main.ids is None else G.device.main.ids] = np.concatenate(scores)
    return found, left


def lost(level: Any) -> Any:
    """The levels of a search that has lost a device, which nobody has noticed yet."""

    def reached() -> int:
        raise CommunicationError("search by peer writes: device 1 did not come")

    shards = []
    for shard in level.shards:
        given, bits = shard.to_bitmap(), np.full(shard.size // 32 + 1, 0xFFFFFFFF, np.uint32)
        bits = bits if given.bits is None else given.bits
        shards.append(sg.Vector(shard.size, given.values, bits=bits, nvals=reached))
    return type(level).in_flight(level.size, shards, level.device)


def two(name: str) -> list[int]:
    return some_sources(matrix(name).nrows, 2).tolist()


def check_shards(name: str, cuts: tuple[float, ...], peers: bool, **more: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        found, left = in_shards(name, cuts, peers, patch, **more)
    expected = by_loops(name, tuple(two(name)))[0]
    np.testing.assert_allclose(found, expected, rtol=1e-10, err_msg=name)
    assert not left.size


@shim
@pytest.mark.parametrize("peers", [True, False])
@pytest.mark.parametrize("cuts", [(), (0.0, 0.4), (0.2, 0.5, 0.7)])
def test_shards_in_step(cuts: tuple[float, ...], peers: bool) -> None:
    for name in ("one", "star both", "two components", "sparse directed", "acyclic", "rmat 8"):
        check_shards(name, cuts, peers, relabelled=len(cuts) == 3)


# thresholds with which small graphs take every form of a level
FORMS = {
    "push": {"PUSH_STEP": 0},
    "pull": {"PUSH_STEP": 100, "SMALL_EDGES": 0},
    "rows in phases": {"PUSH_STEP": 100, "SMALL_EDGES": 0, "CACHED": 64, "LONG_PART": 1},
    "marks": {"PUSH_STEP": 100, "SMALL_EDGES": 0, "MARKED_EDGES": 0, "RARE": 1},
    "read where they are": {"UNREAD": 0},
}


# ... and shards that meet for nothing
FREE = {"SUM_STEP": 0, "MEETING": 0, "MEETING_LISTS": 0}


@shim
@pytest.mark.parametrize("form", FORMS)
def test_forms_of_a_level(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = importlib.import_module("spgraph.backends.cuda.dependencies.dependencies_plan")
    for name, value in (FREE | FORMS[form]).items():
        monkeypatch.setattr(plan, name, value)
    for graph in ("star both", "sparse directed", "rmat 8"):
        check_shards(graph, (0.2, 0.5), graph != "rmat 8")


@pytest.mark.gpu
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("exchange", ["", "auto", "nccl", "peer"])
def test_forms_on_gpus(form: str, exchange: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On one of them; in three shards there; a shard each on two."""
    host = importlib.import_module("spgraph.backends.cuda.dependencies.dependencies")
    plan = importlib.import_module("spgraph.backends.cuda.dependencies.dependencies_plan")
    monkeypatch.setattr(host, "LARGE", 0)
    monkeypatch.setattr(host, "apart_pays", lambda *arguments: False)
    for name, value in (FREE | FORMS[form]).items():
        monkeypatch.setattr(plan, name, value)
    shards, devices = (3, ["cuda:0"] * 3) if exchange == "auto" else (2, "cuda")
    if shards == 2 and exchange and import_cupy().cuda.runtime.getDeviceCount() < 2:
        pytest.skip("needs 2 GPUs")
    for graph in ("rmat 10", "rmat 9 directed", "grid"):
        A: Any = matrix(graph)
        if exchange:
            A = A.distribute(shards, devices=devices, exchange=exchange)
        else:
            A = A.to("cuda")
        got = dependencies(A, two(graph))
        got = got.gather() if exchange else got  # type: ignore[attr-defined]
        same(got, by_loops(graph, tuple(two(graph)))[0])


@shim
def test_counts_of_several_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """They travel by the communicator: here it says that there are others."""
    monkeypatch.setattr(LocalCommunicator, "processes", 2)
    check_shards("rmat 8", (0.2, 0.5), False)


@shim
def test_one_device_in_steps(on_the_shim: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a source of many levels on all is left to other forms; so is one of too many paths."""
    steps = importlib.import_module("spgraph.backends.cuda.dependencies.dependencies_shard")
    monkeypatch.setattr(steps, "THREADS", 64)

    def check(name: str, sources: list[int], done: list[int], few: int) -> None:
        monkeypatch.setattr(steps, "FEW", few)
        A, score = matrix(name), np.zeros(matrix(name).nrows)
        left = on_the_shim._in_steps(A, A.T, np.array(sources), score)
        assert sorted([*left.tolist(), *done]) == sorted(sources)
        np.testing.assert_allclose(score, by_loops(name, tuple(done))[0], rtol=1e-10)

    for name in ("rmat 8", "sparse directed"):
        check(name, two(name), two(name), 64)
    check("two components", [10, 3, 10], [10], 5)
    check("layers", [2000, 0], [2000], 1000)
    monkeypatch.setattr(on_the_shim, "LARGE", 0)
    monkeypatch.setattr(on_the_shim, "apart_pays", lambda *arguments: False)
    same(dependencies(matrix("grid"), two("grid")), by_loops("grid", tuple(two("grid")))[0])


@shim
@pytest.mark.parametrize("peers", [True, False])
def test_shards_with_many_levels(peers: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than are read back at once, than are counted at first, than bytes tell apart."""
    steps = importlib.import_module("spgraph.backends.cuda.dependencies.dependencies_shard")
    for name, value in (("FEW", 3), ("LEVELS", 5), ("SHALLOW", 8)):
        monkeypatch.setattr(steps, name, value)
        check_shards("grid", (0.5,), peers)
    check_shards("path", (0.5,), peers)


@shim
@pytest.mark.parametrize("peers", [True, False])
def test_shards_with_too_many_paths(peers: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source is left over, and nothing is added for it: the paths from end to end are too many,
    those from the middle are not.
    """
    found, left = in_shards("layers", (0.4,), peers, monkeypatch, [0, 2000])
    assert left.tolist() == [0]
    np.testing.assert_allclose(found, by_loops("layers", (2000,))[0], rtol=1e-10)


@shim
def test_scores_of_a_search_that_failed_are_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CommunicationError, match="device 1 did not come"):
        in_shards("grid", (0.5,), True, monkeypatch, failed=True)


@shim
def test_exponents_on_the_shim(on_the_shim: Any) -> None:
    A, score = matrix("braid"), np.zeros(matrix("braid").nrows)
    on_the_shim._apart(A, A.T, np.array([3]), score, True)
    np.testing.assert_allclose(score, by_loops("braid", (3,))[0], rtol=1e-10)


@shim
def test_wide_indices_on_the_shim(on_the_shim: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    A = matrix("acyclic")
    arrays = A.indptr.astype(np.int64), A.indices.astype(np.int64), A.values
    B = sg.Matrix(*A.shape, *arrays, iso=A.iso)
    sources = some_sources(A.nrows, 2)
    expected = by_loops("acyclic", tuple(sources.tolist()))[0]
    same(dependencies(B, sources), expected)
    monkeypatch.setattr(on_the_shim, "apart_pays", lambda *arguments: False)
    same(dependencies(B, sources), expected)


@pytest.mark.full  # a search of its own is compiled for it
@shim
def test_a_real_search_on_the_shim(monkeypatch: pytest.MonkeyPatch) -> None:
    host = importlib.import_module("spgraph.backends.cuda.dependencies.dependencies")
    A = matrix("acyclic")
    sources = some_sources(A.nrows, 1)
    cuda_host_shim.install(monkeypatch)
    device_jit = importlib.import_module("spgraph.backends.cuda.runtime.jit")
    monkeypatch.setattr(device_jit, "current_device", lambda: 0)
    monkeypatch.setattr(loops, "backend", lambda device: cuda)
    monkeypatch.setattr(host, "apart_pays", lambda *arguments: False)
    rows = by_loops("acyclic", tuple(sources.tolist()))[1]
    np.testing.assert_array_equal(dense(levels(A, sources)), rows)


def test_backends_have_the_loops() -> None:
    assert {"dependencies", "levels"} <= set(cpu.__all__) & set(cuda.__all__)
