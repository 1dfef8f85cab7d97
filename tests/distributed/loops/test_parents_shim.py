"""Parents of closures over shards by CUDA's kernels, without a GPU: the same as on one device."""

from __future__ import annotations

import importlib
from typing import Any

import cuda_host_shim
import numpy as np
import pytest
import shim_exchanges
from closure_cases import best_parents, entries, fixed_point, least_parents
from shim_exchanges import EXCHANGES

from spgraph.algorithms.sssp import sssp
from spgraph.containers import Matrix, Vector
from spgraph.distributed.loops import parents as loops
from spgraph.iterations import dag_edges
from spgraph.iterations.path_parents import path_parents
from spgraph.semirings import max_min, min_plus

pytestmark = pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")

SHARDS = [name for name, exchange in EXCHANGES.items() if exchange.form != "one device"]
N = 300


@pytest.fixture(autouse=True)
def on_the_shim(monkeypatch: pytest.MonkeyPatch) -> None:
    shim_exchanges.install(monkeypatch)


def float_graph(seed: int, kind: str = "float32") -> dict[tuple[int, int], Any]:
    """A symmetric graph with weights of zero, weights that rounding absorbs, and weights that tie;
    the last vertices are not reached.
    """
    rng = np.random.default_rng(seed)
    pairs = np.concatenate([rng.integers(0, N - 9, (900, 2)), np.arange(N - 10)[:, None] + [0, 1]])
    a = rng.choice([0.0, 1e-9, 0.25, 0.5, 1.0, *rng.random(15)], len(pairs)).astype(kind)
    weight: dict[tuple[int, int], Any] = {}
    for (i, j), w in zip(pairs.tolist(), a, strict=True):
        weight[i, j] = weight[j, i] = w
    return weight


def matrix(edges: dict[tuple[int, int], Any], kind: str, symmetric: bool) -> Matrix:
    ends, weights = np.array(list(edges)).T, np.array(list(edges.values()), kind)
    A = Matrix.from_coo(*ends, weights, nrows=N, ncols=N)
    A.symmetric = symmetric
    return A


def spread(v: dict[int, Any], kind: str, G: Any) -> Any:
    ids = np.array(sorted(v))
    return Vector.from_coo(ids, np.array([v[i] for i in sorted(v)], kind), size=N).to(G.device)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("name", SHARDS)
def test_paths_of_the_fewest_edges(name: str, symmetric: bool) -> None:
    """With the transpose at hand; and of directed graphs without it, too."""
    edges = float_graph(3)
    if not symmetric:
        edges = {(i, j): a for (i, j), a in edges.items() if (i * 31 + j * 17) % 4}
    A = matrix(edges, "float32", symmetric)
    G = EXCHANGES[name].place(A)
    several = 0
    for source in (7, 0):
        x = fixed_point(edges, {source: np.float32(0)}, min, lambda x, a: x + a)
        expected = best_parents(edges, x, lambda x, a: x + a, source)
        least = least_parents(edges, x, lambda x, a: x + a) | {source: source}
        several += sum(expected[u] != least[u] for u in expected)
        typed = min_plus.resolve("float32", "float32")
        for T in {True: (G,), False: (G._T, None)}[symmetric]:
            found = loops.path_parents(G, T, spread(x, "float32", G), typed, source)
            assert found is not None and found.nvals == len(expected)
            assert entries(found.gather()) == expected and found.dtype == A.index_dtype
    assert several > 5  # the least is not on a path of the fewest edges


@pytest.mark.parametrize("name", ["3 peers", "3 peers, relabelled", "rounds, relabelled"])
def test_ids_of_64_bits(name: str) -> None:
    """Those of a small graph, whose vertices are numbered within shards in 32 bits."""
    A = matrix(float_graph(3), "float32", True)
    ids = A.indices.astype(np.int64)
    wide = Matrix._of(N, N, A.indptr, ids, A.values, symmetric=True)
    G, expected = EXCHANGES[name].place(wide), sssp(A, 7)
    typed = min_plus.resolve("float32", "float32", index="int64")
    found = loops.path_parents(G, G, expected.distance.to(G.device), typed, 7)
    assert found is not None and found.dtype == np.int64
    assert entries(found.gather()) == entries(expected.parent)


@pytest.mark.parametrize("name", ["3 peers", "rounds, relabelled"])
def test_shortest_paths_make_no_edges_of_the_dag(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    A = matrix(float_graph(5), "float32", True)
    expected = sssp(A, 7)
    monkeypatch.setattr(importlib.import_module(path_parents.__module__), "dag_edges", None)
    found = sssp(EXCHANGES[name].place(A), 7)
    assert found.distance.gather().isequal(expected.distance)
    assert found.parent is not None and found.parent.gather().isequal(expected.parent)


@pytest.mark.parametrize("limit", ["MOST", "LONGEST_WALK"])
def test_gives_up(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where vertices have too many parents, or walks are too long, a search finds them."""
    A = matrix(float_graph(3), "float32", True)
    G, expected = EXCHANGES["3 peers"].place(A), sssp(A, 7)
    module = "spgraph.backends.cuda.closure."
    for name in ("parents", "parents_shards"):
        monkeypatch.setattr(importlib.import_module(module + name), limit, 1, raising=False)
    typed = min_plus.resolve("float32", "float32")
    distance = expected.distance.to(G.device)
    assert loops.path_parents(G, G, distance, typed, 7) is None
    assert path_parents(G, distance, 7).gather().isequal(expected.parent)


def test_a_sole_parent_each() -> None:
    """Without a tie nothing is compared; one shard has no entries, and values have no floor."""
    edges = {(0, 1): 1.0, (1, 2): 2.0, (0, 2): 3.5, (3, 4): 1.0}
    A = matrix(edges, "float64", False)
    for name in ("3 peers, one empty", "rounds, 3 shards"):
        G = EXCHANGES[name].place(A)
        typed = min_plus.resolve("float64", "float64")
        x = spread({0: 0.0, 1: 1.0, 2: 3.0}, "float64", G)
        found = loops.path_parents(G, G._T, x, typed, 0)
        assert found is not None and entries(found.gather()) == {0: 0, 1: 0, 2: 1}


@pytest.mark.parametrize("name", SHARDS)
def test_least_parents(name: str) -> None:
    """Of values that are no fixed point, in either order, with the transpose and without."""
    rng = np.random.default_rng(4)
    edges = {e: int(10 * a) for e, a in float_graph(4).items()}
    A = matrix(edges, "int64", True)
    G = EXCHANGES[name].place(A)
    x = {v: int(z) for v, z in enumerate(rng.integers(0, 12, N)) if v % 4}
    x[1], x[2] = -8, 30  # each alone before the floor of its order
    for semiring, multiply in ((min_plus, lambda x, a: x + a), (max_min, min)):
        typed, expected = semiring.resolve("int64", "int64"), least_parents(edges, x, multiply)
        for T in (G, None):
            found = loops.parents(G, T, spread(x, "int64", G), typed)
            assert entries(found.gather()) == expected and found.nvals == len(expected)


def test_the_dag_of_shards() -> None:
    A = matrix(float_graph(6), "float32", True)
    distance = sssp(A, 7, parents=False).distance
    G = EXCHANGES["rounds, 3 shards"].place(A)
    found = dag_edges(G, distance.to(G.device), min_plus)
    assert found.gather().isequal(dag_edges(A, distance, min_plus))
