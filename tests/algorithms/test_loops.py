"""Cores, independent sets, colourings, spanning trees and communities against NetworkX, SciPy and
plain loops.
"""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from fixtures_device import device  # noqa: F401
from scipy.sparse import csgraph

import spgraph as sg
from spgraph.algorithms.core_number import core_number
from spgraph.algorithms.greedy_color import greedy_color
from spgraph.algorithms.label_propagation import label_propagation
from spgraph.algorithms.maximal_independent_set import maximal_independent_set
from spgraph.algorithms.minimum_spanning_tree import minimum_spanning_tree
from spgraph.algorithms.random_words import random_words
from spgraph.containers.arrays import check_device
from spgraph.errors import ConvergenceError, DimensionMismatch, DomainMismatch

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")

SEEDED = (maximal_independent_set, greedy_color, label_propagation)
ALL = (core_number, minimum_spanning_tree, *SEEDED)


def with_isolated() -> nx.Graph:
    G = nx.gnp_random_graph(30, 0.2, seed=2)
    G.add_nodes_from(range(30, 70))
    return G


def with_loops() -> nx.Graph:
    G = nx.gnp_random_graph(40, 0.15, seed=5)
    G.add_edges_from((v, v) for v in range(0, 40, 3))
    return G


def parallel() -> nx.MultiGraph:
    rng = np.random.default_rng(6)
    G = nx.MultiGraph()
    G.add_nodes_from(range(20))
    G.add_edges_from(rng.integers(0, 20, (120, 2)).tolist())
    return G


GRAPHS: dict[str, Any] = {
    "one": lambda: nx.empty_graph(1),
    "no edges": lambda: nx.empty_graph(40),
    "path": lambda: nx.path_graph(33),
    "star": lambda: nx.star_graph(100),
    "cycle": lambda: nx.cycle_graph(31),
    "complete": lambda: nx.complete_graph(80),  # more colours than a word of flags has bits
    "two components": lambda: nx.disjoint_union(nx.complete_graph(6), nx.cycle_graph(9)),
    "loops": with_loops,
    "parallel": parallel,
    "isolated": with_isolated,
    "directed": lambda: nx.gnp_random_graph(70, 0.06, seed=7, directed=True),
    "acyclic": lambda: nx.DiGraph([(i, j) for i in range(30) for j in range(i, 30, 4)]),
    "bipartite": lambda: nx.complete_bipartite_graph(9, 14),
    "tree": lambda: nx.balanced_tree(3, 4),
    "grid": lambda: sg.generators.grid(17, 23, remove=0.1).to_scipy(),
    "rmat": lambda: sg.generators.kronecker(10, 8).to_scipy(),
}


@functools.cache
def case(name: str) -> tuple[Any, nx.Graph]:
    """(weights 1..9 at the edges of a graph, what it looks like undirected and without loops)."""
    G = GRAPHS[name]()
    S = nx.to_scipy_sparse_array(G, format="csr") if isinstance(G, nx.Graph) else G
    S = scipy.sparse.csr_array(S, dtype=np.int64)
    S.sum_duplicates()
    S.data[:] = np.random.default_rng(1).integers(1, 10, S.nnz)
    both = nx.from_scipy_sparse_array(S + S.T)
    both.remove_edges_from(list(nx.selfloop_edges(both)))
    return S, both


@pytest.mark.parametrize("name", GRAPHS)
def test_core_number_equals_networkx(name: str, device: str) -> None:
    S, both = case(name)
    found = core_number(sg.Matrix.from_scipy(S).to(device))
    assert found.storage == "full" and found.dtype.kind == "i"
    expected = nx.core_number(both)
    assert found.to_numpy().tolist() == [expected[v] for v in range(S.shape[0])]


@pytest.mark.parametrize("name", GRAPHS)
def test_independent_set_is_the_one_of_taking_vertices_in_turn(name: str, device: str) -> None:
    S, both = case(name)
    found = maximal_independent_set(sg.Matrix.from_scipy(S).to(device), seed=3)
    assert found.storage == "full" and found.dtype == np.bool_
    words = random_words("", 3, S.shape[0], "cpu").to_numpy()
    expected: set[int] = set()
    for v in np.argsort(words)[::-1].tolist():
        if not expected & set(both[v]):
            expected.add(v)
    assert set(np.flatnonzero(found.to_numpy()).tolist()) == expected


@pytest.mark.parametrize("name", GRAPHS)
def test_every_vertex_has_the_least_colour_that_it_can(name: str, device: str) -> None:
    S, both = case(name)
    found = greedy_color(sg.Matrix.from_scipy(S).to(device), seed=3)
    assert found.storage == "full" and found.dtype.kind == "i"
    color = found.to_numpy().tolist()
    for v in both:
        seen = {color[u] for u in both[v]}
        assert color[v] not in seen
        assert seen >= set(range(color[v]))
    assert max(color) <= max(degree for _, degree in both.degree)


def kruskal(S: Any) -> set[tuple[int, int, Any]]:
    """The entries of the tree, equal weights in the order of (i, j)."""
    C = S.tocoo()
    edges = sorted(zip(C.data.tolist(), C.row.tolist(), C.col.tolist(), strict=True))
    trees = nx.utils.UnionFind(range(S.shape[0]))
    kept = set()
    for weight, i, j in edges:
        if trees[i] != trees[j]:
            trees.union(i, j)
            kept.add((i, j, weight))
    return kept


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize(
    "kind", ["int64", "float32", pytest.param("uint8", marks=pytest.mark.full), "iso"]
)
def test_tree_equals_kruskal_and_scipy(name: str, kind: str, device: str) -> None:
    S, _ = case(name)
    A = sg.Matrix.from_scipy(S)
    if kind == "iso":
        A = A.pattern()
        A.is_symmetric()
    elif kind == "float32":
        A = A.dup(kind)
        A._values[:] = np.random.default_rng(2).standard_normal(A.nvals)
    else:
        A = A.dup(kind)
    S = A.to_scipy()
    found = minimum_spanning_tree(A.to(device))
    assert found.shape == A.shape and found.dtype == A.dtype and found.device.startswith(device)
    assert set(found) == kruskal(S)
    T = csgraph.minimum_spanning_tree(S.astype(np.float64))
    assert found.nvals == T.nnz
    assert np.isclose(found.to_scipy().astype(np.float64).sum(), T.sum())


def test_tree_of_a_symmetric_matrix_keeps_first_entries(device: str) -> None:
    A = sg.generators.kronecker(9, 6).to(device)
    tree = minimum_spanning_tree(A)
    assert tree.iso and all(i < j for i, j, _ in tree)
    assert set(tree) == kruskal(A.to_scipy())


def test_tree_keeps_edges_of_weight_zero_and_the_lesser_direction(device: str) -> None:
    A = sg.Matrix.from_coo([0, 1, 1, 2, 2], [1, 0, 2, 1, 0], [5, 3, 0, 7, 9], nrows=4, ncols=4)
    assert list(minimum_spanning_tree(A.to(device))) == [(1, 0, 3), (1, 2, 0)]
    zero = sg.Matrix.from_coo([0, 0, 1, 2], [1, 2, 2, 0], [0.0, -0.0, 0.0, -np.inf])
    assert list(minimum_spanning_tree(zero.to(device))) == [(0, 1, 0.0), (2, 0, -np.inf)]


def propagate(both: nx.Graph, color: list[int]) -> dict[int, int]:
    """Labels colour by colour, until none changes."""
    label = {v: v for v in both}
    while True:
        last = dict(label)
        for c in range(max(color) + 1):
            fresh = {}
            for v in (v for v in both if color[v] == c and both[v]):
                count = Counter(label[u] for u in both[v])
                most = max(count.values())
                first = min(k for k in count if count[k] == most)
                fresh[v] = label[v] if count[label[v]] == most else first
            label |= fresh
        if label == last:
            return label


@pytest.mark.parametrize("name", GRAPHS)
def test_labels_equal_those_of_plain_loops(name: str, device: str) -> None:
    S, both = case(name)
    A = sg.Matrix.from_scipy(S).to(device)
    found = label_propagation(A, seed=9)
    assert found.storage == "full" and found.dtype.kind == "i"
    label = found.to_numpy().tolist()
    expected = propagate(both, greedy_color(A, seed=9).to_numpy().tolist())
    assert label == [expected[v] for v in range(len(label))]
    for v in both:
        count = Counter(label[u] for u in both[v])
        assert not count or count[label[v]] == max(count.values())


def test_labels_find_cliques(device: str) -> None:
    for G, communities in ((nx.caveman_graph(12, 8), 12), (nx.connected_caveman_graph(12, 8), 6)):
        label = label_propagation(sg.Matrix.from_networkx(G).to(device), seed=1).to_numpy()
        cliques = label.reshape(12, 8)
        assert (cliques == cliques[:, :1]).all()
        assert len(set(label.tolist())) >= communities


def test_labels_that_do_not_come_to_rest(device: str) -> None:
    A = sg.generators.grid(20, 20, device=device)
    with pytest.raises(ConvergenceError, match="label_propagation: .* after 1 sweeps") as error:
        label_propagation(A, max_iter=1, seed=1)
    result: Any = error.value.result
    assert result.size == 400 and len(set(result.to_numpy().tolist())) < 400


def test_a_seed_gives_one_result_and_another_seed_another(device: str) -> None:
    A = sg.generators.grid(20, 20)
    for call in SEEDED:
        first, again, other = (call(A.to(device), seed=seed) for seed in (1, 1, 2**64 - 1))
        assert first.isequal(again) and not first.isequal(other), call.__name__
        assert first.to("cpu").isequal(call(A, seed=1)), call.__name__
        assert not call(A).isequal(call(A)), call.__name__


def test_words_are_distinct_and_look_random(device: str) -> None:
    place = check_device(device)
    drawn = [random_words("", seed, 10_000, place).to_numpy().tolist() for seed in (0, 1)]
    words = np.array(drawn, np.uint64).ravel()
    assert len(set(words.tolist())) == 20_000
    ones = np.unpackbits(words.view(np.uint8)).mean()
    assert abs(ones - 0.5) < 0.005
    assert drawn[0] == random_words("", 0, 10_000, "cpu").to_numpy().tolist()


@pytest.mark.parametrize("call", ALL, ids=lambda call: call.__name__)
def test_no_vertices_and_what_matrix_takes(call: Any, device: str) -> None:
    assert call(sg.Matrix.empty(0, 0, device=device)).nvals == 0
    seed = {"seed": 1} if call in SEEDED else {}
    S, _ = case("directed")
    assert call(S, **seed).isequal(call(sg.Matrix.from_scipy(S), **seed))


@pytest.mark.parametrize(
    "call",
    # every kernel anew: one by default
    [
        minimum_spanning_tree,
        *(pytest.param(f, marks=pytest.mark.full) for f in (core_number, *SEEDED)),
    ],
)
def test_indices_of_64_bits(call: Any, device: str) -> None:
    seed = {"seed": 1} if call in SEEDED else {}
    A = sg.Matrix.from_scipy(case("directed")[0])
    wide = sg.Matrix(*A.shape, A.indptr.astype(np.int64), A.indices.astype(np.int64), A.values)
    assert call(wide.to(device), **seed).to("cpu").isequal(call(A, **seed))


def test_bad_input() -> None:
    A = sg.generators.grid(2, 2)
    for call in ALL:
        name = call.__name__
        with pytest.raises(DimensionMismatch, match=f"{name}: A: expected a square matrix"):
            call(sg.Matrix.empty(2, 3))
        with pytest.raises(DomainMismatch):
            call("graph")
    with pytest.raises(ValueError, match="minimum_spanning_tree: A: .* got NaN"):
        minimum_spanning_tree([[0.0, np.nan], [1.0, 0.0]])
    for call in SEEDED[:2]:
        for seed in (1.5, True, "1"):
            with pytest.raises(DomainMismatch, match=f"{call.__name__}: seed: expected an integer"):
                call(A, seed=seed)
        with pytest.raises(ValueError, match="seed: expected an integer from 0 to"):
            call(A, seed=-1)
    for limit in (-1, 1.5, True):
        with pytest.raises(ValueError, match="label_propagation: max_iter: expected an integer"):
            label_propagation(A, max_iter=limit)
