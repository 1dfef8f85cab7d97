"""What follows from a closure on CUDA, without a GPU: the edges that carry its values, and parents.
Host code on NumPy arrays, kernels under the shim.
"""

from __future__ import annotations

import importlib
from typing import Any

import cuda_host_shim
import numpy as np
import pytest
import shim_exchanges
from closure_cases import CASES, GRAPHS, best_parents, entries, fixed_point, graph, least_parents

import spgraph as sg
from spgraph.algorithms.sssp import sssp
from spgraph.backends import cuda
from spgraph.containers import Matrix, Vector
from spgraph.iterations.integer_sums import plus_and_one
from spgraph.iterations.path_parents import with_paths
from spgraph.semirings import Semiring, min_plus, monoid

pytestmark = pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")


@pytest.fixture(autouse=True)
def on_the_shim(monkeypatch: pytest.MonkeyPatch) -> None:
    shim_exchanges.install(monkeypatch)
    monkeypatch.setattr(host(), "THREADS", 64)  # a step of 2 x 1024 fibers takes 0.1 s
    host().kernel_of.cache_clear()


def host() -> Any:
    return importlib.import_module("spgraph.backends.cuda.closure.closure")


def carried() -> Any:
    return importlib.import_module("spgraph.backends.cuda.closure.parents")


def of_types(A: Matrix, index: str, offset: str, values: Any) -> Matrix:
    return Matrix._of(A.nrows, A.ncols, A.indptr.astype(offset), A.indices.astype(index), values)


@pytest.mark.parametrize("name", GRAPHS)
def test_tight_equals_plain_loops(name: str) -> None:
    case = CASES["distance, zeros"]
    made = graph(name, case)
    x = fixed_point(made.edges, made.start, min, case.multiply)
    values = np.array([x[v] for v in sorted(x)], np.int64)
    v = Vector.from_coo(np.array(sorted(x)), values, size=made.A.nrows)
    for storage in (v, v.to_bitmap()):
        found = cuda.dag_edges(made.A, storage, min_plus.resolve("int64", "int64"))
        expected = sorted(
            (i, j) for (i, j), a in made.edges.items() if i in x and j in x and x[i] + a == x[j]
        )
        assert found.iso and found.indptr[-1] == found.nvals
        rows, columns = found.to_coo()[:2]
        assert list(zip(rows.tolist(), columns.tolist(), strict=True)) == expected


@pytest.mark.parametrize("entries_", [1023, 1024, 1025, 3072, 5000])
def test_tight_over_chunks(entries_: int) -> None:
    """Matrices that end before, at and behind a chunk's end; 64-bit indices; a full vector."""
    rng = np.random.default_rng(entries_)
    keys = np.sort(rng.choice(90 * 90, entries_, replace=False))
    a = rng.integers(0, 4, entries_)
    A = Matrix.from_coo(keys // 90, keys % 90, a.astype(np.uint8), nrows=90, ncols=90)
    A = of_types(A, "int64", "int64", A.values)
    x = rng.integers(0, 4, 90)
    found = cuda.dag_edges(A, Vector.from_dense(x), min_plus.resolve("int64", "uint8"))
    expected = keys[x[keys // 90] + a == x[keys % 90]]
    rows, columns = found.to_coo()[:2]
    assert np.array_equal(rows * 90 + columns, expected)


@pytest.mark.parametrize("name", GRAPHS)
def test_parents_equal_plain_loops(name: str) -> None:
    """Over weights of zero too; of the transpose, and without one; an iso Matrix."""
    made = graph(name, CASES["distance, zeros"])
    bits = 16
    for A in (made.A, made.A.pattern()):
        edges = dict.fromkeys(made.edges, 1) if A.iso else made.edges
        typed = Semiring(monoid.min, plus_and_one(bits)).resolve("int64", A.dtype)
        x = fixed_point(edges, made.start, min, lambda x, a: x + (a << bits) + 1)
        expected = least_parents(edges, x, lambda x, a: x + (a << bits) + 1)
        values = np.array([x[v] for v in sorted(x)], np.int64)
        v = Vector.from_coo(np.array(sorted(x)), values, size=A.nrows)
        for T in (None, A.T):
            found = carried().parents(A, T, v, typed)
            assert entries(found) == expected and found.nvals == len(expected)


@pytest.mark.parametrize(
    ("index", "offset"), [("int64", "int32"), ("int32", "int64"), ("int32", "int32")]
)
def test_parents_in_one_pass(index: str, offset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Matrix that is its own transpose: many vertices before and behind the floor. A warp takes
    several shares of its entries.
    """
    cuda_host_shim.with_thresholds(monkeypatch, {"parents": ("CHUNK_ENTRIES",)}, CHUNK_ENTRIES=64)
    made = graph("skewed both", CASES["distance"])
    S = made.A.to_scipy()
    S = (S + S.T).tocsr()
    A = Matrix.from_scipy(S, symmetric=True)
    A = of_types(A, index, offset, A.values)
    assert A.nvals > 3 * 64 * 16  # of 2 blocks of 8 warps
    edges = dict(
        zip(zip(*(c.tolist() for c in A.to_coo()[:2]), strict=True), A.values.tolist(), strict=True)
    )
    typed = Semiring(monoid.min, plus_and_one(16)).resolve("int64", "int64", index=index)

    def multiply(x: Any, a: Any) -> Any:
        return x + (a << 16) + 1

    x = fixed_point(edges, {5: 0, 17: 3 << 16}, min, multiply)
    v = Vector.from_coo(np.array(sorted(x)), np.array([x[v] for v in sorted(x)]), size=A.nrows)
    expected = least_parents(edges, x, multiply)
    for T in (None, A, A.dup()):
        for storage in (v, v.to_bitmap()):
            found = carried().parents(A, T, storage, typed)
            assert found.dtype == index and entries(found) == expected


@pytest.mark.parametrize(("seed", "nothing"), list(enumerate([0, -3, 5, 0, -2, 7])))
def test_parents_of_values_that_are_no_fixed_point(seed: int, nothing: int) -> None:
    """Values of one's own, with gaps, and products that are better than their operands."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, 80, (1500, 2))
    pairs = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)
    a = (pairs.sum(axis=1) * 5 + pairs[:, 0] * pairs[:, 1]) % 7 - 3  # the same both ways
    A = Matrix.from_coo(pairs[:, 0], pairs[:, 1], a, nrows=80, ncols=80)
    edges = dict(zip(map(tuple, pairs.tolist()), a.tolist(), strict=True))
    x = {v: int(z) for v, z in enumerate(rng.integers(-6, 7, 80)) if v % 4}
    x[1], x[2] = -8, 8  # each alone before the floor of its order
    v = Vector.from_coo(np.array(list(x)), np.array(list(x.values())), size=80).to_bitmap()
    for semiring, multiply in (
        (min_plus, lambda x, a: x + a),
        (sg.semirings.max_plus, lambda x, a: x + a),
        (sg.semirings.max_min, min),
    ):
        typed = semiring.resolve("int64", "int64")
        v._values[::4] = nothing  # what lies where there is no entry
        for T in (None, A, A.dup()):
            found = carried().parents(A, T, v, typed)
            assert entries(found) == least_parents(edges, x, multiply)


@pytest.mark.parametrize("kind", ["float32", "int64"])
def test_parents_of_widths(kind: str) -> None:
    """An order from greatest to least, and vertices of equal values; products of positions."""
    made = graph("skewed both", CASES["width"])
    A = of_types(made.A, "int32", "int32", made.A.values.astype(kind))
    x = fixed_point(made.edges, made.start, max, min)
    v = Vector.from_coo(
        np.array(sorted(x)), np.array([x[v] for v in sorted(x)], kind), size=A.nrows
    )
    semiring = sg.semirings.max_min.resolve(kind, kind)
    for T in (None, A.T):
        assert entries(carried().parents(A, T, v, semiring)) == least_parents(made.edges, x, min)
    v = Vector.from_dense(np.arange(A.nrows))
    semiring = sg.semirings.max_secondj.resolve("int64", A.dtype, index="int64")
    expected = {}
    for i, j in sorted(made.edges):
        if i != j:
            expected.setdefault(j, i)
    for T in (None, A.T):
        assert entries(carried().parents(A, T, v, semiring)) == expected


def float_graph(kind: str, seed: int = 3) -> tuple[Matrix, dict[tuple[int, int], Any]]:
    """A symmetric graph of 300 vertices with weights of zero, weights that rounding absorbs, and
    weights that tie.
    """
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, 300, (900, 2))
    pairs = np.concatenate([pairs, np.arange(300)[:, None] + [0, 1]]) % 300
    a = rng.choice([0.0, 1e-9, 0.25, 0.5, 1.0, *rng.random(15)], len(pairs)).astype(kind)
    weight: dict[tuple[int, int], Any] = {}
    for (i, j), w in zip(pairs.tolist(), a, strict=True):
        weight[i, j] = weight[j, i] = w
    i, j = np.array(list(weight)).T
    A = Matrix.from_coo(i, j, np.array(list(weight.values()), kind), nrows=300, ncols=300)
    A.symmetric = True
    return A, weight


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("transpose", ["its own", "another", "none"])
def test_path_parents(kind: str, transpose: str) -> None:
    """Equal to a search over all edges of the shortest-path DAG."""
    A, edges = float_graph(kind)
    T = {"its own": A, "another": A.dup(), "none": None}[transpose]
    x = fixed_point(edges, {7: np.dtype(kind).type(0)}, min, lambda x, a: x + a)
    v = Vector.from_coo(np.array(sorted(x)), np.array([x[u] for u in sorted(x)], kind), size=300)
    found = carried().path_parents(A, T, v, min_plus.resolve(kind, kind), 7)
    assert found is not None
    expected = best_parents(edges, x, lambda x, a: x + a, 7)
    least = least_parents(edges, x, lambda x, a: x + a) | {7: 7}
    several = sum(expected[u] != least[u] for u in expected)
    assert several > 5  # the least is not on a path of the fewest edges
    assert entries(found) == expected and found.nvals == len(expected)


# of kernels/closure_state.cuh: queues that are pushed, thresholds that end in pulls, local steps
PATHS: dict[str, dict[str, int]] = {
    "shipped": {},
    "pushed": {"LOCAL_EDGES": 0},
    "threshold": {"THRESHOLD_EDGES": 1, "LOCAL_EDGES": 40, "PULL_AGAIN_SHARE": 1},
    "threshold, local": {"THRESHOLD_EDGES": 1, "STEPS": 2},
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("symmetric", [True, False])
def test_one_loop_finds_path_parents(
    path: str, symmetric: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of ties, of weights of zero, in loops too, and of infinite ones. Vertex 0 is the least parent
    of many: what ties with it is no less.
    """
    monkeypatch.setattr(host(), "TRANSPOSE_FROM", 0)
    thresholds = "LOCAL_EDGES", "THRESHOLD_EDGES", "STEPS", "PULL_AGAIN_SHARE"
    cuda_host_shim.with_thresholds(monkeypatch, {"closure": thresholds}, **PATHS[path])
    edges = float_graph("float32", 4)[1]
    inf = np.float32(np.inf)
    edges |= {(v, v): np.float32(v % 2) for v in range(0, 300, 7)}
    edges |= {(300, 301): inf, (301, 300): inf, (301, 302): inf, (302, 301): inf}
    edges |= {(9, 300): inf, (300, 9): inf, (0, 301): inf, (301, 0): inf}
    if not symmetric:
        edges = {(i, j): a for (i, j), a in edges.items() if (i * 31 + j * 17) % 4}
    ends, weights = np.array(list(edges)).T, np.array(list(edges.values()), np.float32)
    A = Matrix.from_coo(*ends, weights, nrows=310, ncols=310)
    A.symmetric = symmetric
    several = 0
    for source in (7, 0):
        x = fixed_point(edges, {source: np.float32(0)}, min, lambda x, a: x + a)
        expected = best_parents(edges, x, lambda x, a: x + a, source)
        least = least_parents(edges, x, lambda x, a: x + a) | {source: source}
        several += sum(expected[u] != least[u] for u in expected)
        for delta, reach in ((0.02, 0.3), (0.3, 0.3), (5.0, 5.0)):
            distance, parent = carried().closure_path_parents(A, source, delta, reach)
            assert entries(distance) == x and distance.nvals == len(x)
            assert parent is not None and parent.nvals == len(x)
            assert entries(parent) == expected
    assert several > 5  # the least is not on a path of the fewest edges


@pytest.mark.parametrize("name", [name for name in GRAPHS if name not in ("one", "no edges")])
def test_paths_of_integers_behind_one_loop(name: str) -> None:
    """Over weights of zero too; with the transpose at hand, and without; of both widths of ids. A
    vertex that is not reached has no entry, the source is its own parent.
    """
    case = CASES["distance, zeros"]
    made = graph(name, case)
    source = min(made.start)
    x = fixed_point(made.edges, {source: 0}, min, case.multiply)
    expected = best_parents(made.edges, x, case.multiply, source)
    wide = of_types(made.A, "int64", "int64", made.A.values)
    for A in (made.A.dup(), wide):
        for again in (False, True):
            found = with_paths("sssp", A, source, None)
            assert found is not None and found[1] is not None
            distance, parent = found
            assert entries(distance) == x and distance.dtype == np.int64
            assert entries(parent) == expected and parent.dtype == A.indices.dtype
            assert distance.nvals == parent.nvals == len(x)
            assert again or A.T.indptr.size > A.nrows  # makes the transpose


@pytest.mark.parametrize(("limit", "most"), [("MOST_TIES", 1), ("MOST", 1), ("LONGEST_WALK", 1)])
def test_one_loop_gives_up(limit: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where vertices have too many parents, or walks are too long, a search finds them; of other
    types a pass over the edges.
    """
    A, source = float_graph("float32")[0].dup(), 7
    expected = sssp(A, source)
    assert with_paths("sssp", float_graph("float64")[0], source, None) is None
    assert with_paths("sssp", of_types(A, "int64", "int64", A.values), source, None) is None
    found = with_paths("sssp", A, source, None)
    assert found is not None and found[1] is not None and found[1].isequal(expected.parent)
    monkeypatch.setattr(carried(), limit, most)
    A = A.dup()  # the programs that it keeps have the limits
    found = with_paths("sssp", A, source, None)
    assert found is not None and found[1] is None and found[0].isequal(expected.distance)
    again = sssp(A, source)
    assert again.parent.isequal(expected.parent) and again.distance.isequal(expected.distance)


@pytest.mark.parametrize("limit", ["MOST", "LONGEST_WALK", "MOST_ROUNDS"])
def test_path_parents_give_up(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where vertices have too many parents, or walks are too long, a search finds them."""
    A, source = float_graph("float64")[0], 7
    expected = sssp(A, source)
    typed = min_plus.resolve("float64", "float64")
    found = carried().path_parents(A, A, expected.distance, typed, source)
    assert found.isequal(expected.parent)
    monkeypatch.setattr(carried(), limit, 1)
    assert carried().path_parents(A, A, expected.distance, typed, source) is None
    assert sssp(A, source).parent.isequal(expected.parent)


def test_path_parents_of_sole_parents() -> None:
    """Without a tie nothing is compared."""
    A = Matrix.from_coo([0, 1, 0, 3], [1, 2, 2, 4], [1.0, 2.0, 3.5, 1.0], nrows=5, ncols=5)
    distance = sssp(A, 0, parents=False).distance
    found = carried().path_parents(A, None, distance, min_plus.resolve("float64", "float64"), 0)
    assert entries(found) == {0: 0, 1: 0, 2: 1}


def test_shortest_paths_with_parents() -> None:
    for name in ("grid", "two components"):
        case = CASES["distance, zeros"]
        made = graph(name, case)
        source = min(made.start)
        distance, parent = sssp(made.A, source)
        x = fixed_point(made.edges, {source: 0}, min, case.multiply)
        assert entries(distance) == x
        assert entries(parent) == best_parents(made.edges, x, case.multiply, source)
