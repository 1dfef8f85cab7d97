"""Shortest paths on every device, against Bellman-Ford in plain loops and SciPy."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from closure_cases import GRAPHS, check_paths, check_random_paths, weighted
from fixtures_device import device  # noqa: F401
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csgraph

import spgraph as sg
from spgraph.algorithms import sssp

networkx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")


def plus(x: Any, a: Any) -> Any:
    return x + a


def plus_float32(x: Any, a: Any) -> Any:
    return np.float32(x) + np.float32(a)


# case of weights: value of the source, (x)
CASES = {
    "distance": (0, plus),
    "distance, zeros": (0, plus),
    "distance, equal": (0, plus),
    "distance, float32": (np.float32(0), plus_float32),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", GRAPHS)
def test_values_and_parents(name: str, case: str, device: str) -> None:
    first, multiply = CASES[case]
    check_paths(sssp, name, case, first, min, multiply, device)


def check_tree(S: Any, source: int, distance: np.ndarray, parent: np.ndarray) -> None:
    """What makes distances and parents right, edge by edge; -1 where not reached."""
    coo = S.tocoo()
    tail, head = coo.coords
    data = coo.data.astype(distance.dtype)
    reached = distance >= 0
    assert distance[source] == 0 and parent[source] == source
    np.testing.assert_array_equal(reached, parent >= 0)
    from_reached = reached[tail]
    assert reached[head[from_reached]].all()
    assert (distance[head] <= distance[tail] + data)[from_reached].all()
    on_shortest_path = from_reached & (distance[head] == distance[tail] + data)
    # hops over edges of shortest paths alone, by SciPy
    ends = tail[on_shortest_path], head[on_shortest_path]
    T = scipy.sparse.csr_array((np.ones(ends[0].size), ends), shape=S.shape)
    hops = csgraph.dijkstra(T, unweighted=True, indices=source)
    np.testing.assert_array_equal(np.isfinite(hops), reached)
    nearer = on_shortest_path & (hops[head] == hops[tail] + 1)
    least = np.full(S.shape[0], S.shape[0])
    np.minimum.at(least, head[nearer], tail[nearer])
    least[source] = source
    np.testing.assert_array_equal(parent[reached], least[reached])


GENERATED = {
    "R-MAT 10": lambda: sg.generators.kronecker(10, 16, seed=4),
    "R-MAT 13": lambda: sg.generators.kronecker(13, 16, seed=5),
    "grid": lambda: sg.generators.grid(60, 80),
    "thin grid": lambda: sg.generators.grid(2, 3000, remove=0.1),
    "random": lambda: sg.generators.uniform_random(5000, 4, seed=3),
}


@pytest.mark.fused
@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint64, np.float32, np.float64])
@pytest.mark.parametrize("name", GENERATED)
def test_distances_equal_scipy(name: str, kind: Any, device: str) -> None:
    S = weighted(GENERATED[name](), kind)
    A = sg.Matrix.from_scipy(S).to(device)
    source = int(np.argmax(np.diff(S.indptr)))
    found = sssp(A, source)
    distance, parent = (v.to_numpy(fill=-1) for v in found)
    assert found.distance.dtype == (kind if np.dtype(kind).kind == "f" else np.int64)
    expected = csgraph.dijkstra(S.astype(np.float64), indices=source)
    expected = np.where(np.isinf(expected), -1, expected)
    if kind == np.float32:
        np.testing.assert_allclose(distance, expected, rtol=1e-5)
    else:
        np.testing.assert_array_equal(distance, expected)
    check_tree(S, source, distance, parent)
    for delta in (3.7, 1e4):
        again = sssp(A, source, delta=delta)
        assert all(x.isequal(y) for x, y in zip(again, found, strict=True))


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_parents_where_floats_tie(kind: Any, symmetric: bool, device: str) -> None:
    """Zeros, weights that rounding absorbs, and equal ones, among floats that do not tie."""
    rng = np.random.default_rng(9)
    n, edges = 2000, 8000
    i, j = rng.integers(0, n, (2, edges))
    w = rng.choice(np.r_[0.0, 1e-9, 0.25, 0.5, rng.random(40)], edges).astype(kind)
    if symmetric:
        i, j, w = np.r_[i, j], np.r_[j, i], np.r_[w, w]
    A = sg.Matrix.from_coo(i, j, w, nrows=n, ncols=n, dup_op="min").to(device)
    A.symmetric = symmetric
    source = int(np.argmax(A.row_degrees().to_numpy()))
    distance, parent = (v.to_numpy(fill=-1) for v in sssp(A, source))
    check_tree(A.to("cpu").to_scipy(), source, distance, parent)


@pytest.mark.parametrize(
    "name", ["usa-road-NY.gr.xz", "usa-road-BAY.mtx.gz", "soc-Epinions1.txt.gz"]
)
def test_real_graphs(name: str, device: str, shared_data: Path) -> None:
    pattern = sg.read(shared_data / name)
    if "Epinions" in name:  # directed
        S = pattern.to_scipy().astype(np.int64)
        S.data = np.random.default_rng(7).integers(0, 65, S.nnz)
    else:
        S = weighted(pattern, np.int64)
    A = sg.Matrix.from_scipy(S).to(device)
    # SciPy takes a stored zero for an edge
    for source in (0, 70_000):
        found = sssp(A, source)
        distance, parent = (v.to_numpy(fill=-1) for v in found)
        expected = csgraph.dijkstra(S.astype(np.float64), indices=source)
        np.testing.assert_array_equal(distance, np.where(np.isinf(expected), -1, expected))
        check_tree(S, source, distance, parent)


def test_inputs_that_become_matrices(device: str) -> None:
    dense = np.array([[0, 2, 9], [0, 0, 3], [0, 0, 0]])
    G = networkx.DiGraph()
    G.add_weighted_edges_from([(0, 1, 2), (0, 2, 9), (1, 2, 3)])
    for A in (dense, scipy.sparse.coo_array(dense), G):
        assert sssp(A, 0, parents=False).distance.to_numpy().tolist() == [0, 2, 5]
    pattern = sg.Matrix.from_dense(dense).pattern().to(device)
    hops = sssp(pattern, 0, parents=False).distance
    assert hops.dtype == np.int64 and hops.to_numpy().tolist() == [0, 1, 1]


def test_huge_weights(device: str) -> None:
    def path(weights: Any) -> sg.Matrix:
        n = len(weights) + 1
        return sg.Matrix.from_coo(np.arange(n - 1), np.arange(1, n), weights, nrows=n, ncols=n)

    top = 2**63 - 1
    fits = sssp(path(np.array([top - 9, 7])).to(device), 0)
    assert fits.distance.to_numpy().tolist() == [0, top - 9, top - 2]
    assert fits.parent.to_numpy().tolist() == [0, 0, 1]
    for weights in (np.array([top - 9, 10]), np.array([2**62, 2**62, 0]), np.array([top, 1])):
        with pytest.raises(
            OverflowError, match=r"^sssp: A: expected .* take values of type float64$"
        ):
            sssp(path(weights).to(device), 0)
    with pytest.raises(OverflowError, match="sssp: A: expected distances that int64 holds"):
        sssp(path(np.array([2**63], np.uint64)).to(device), 0)
    for weights in ([top], [top - 9, 9], [top, 0], [0, top, 0]):
        found = sssp(path(np.array(weights)).to(device), 0)
        assert found.distance.to_numpy().tolist() == [0, *np.cumsum(weights).tolist()]
        assert found.parent.to_numpy().tolist() == [0, *range(len(weights))]
    small = path(np.array([100, 100, 127], np.uint8)).to(device)
    assert sssp(small, 0).distance.to_numpy().tolist() == [0, 100, 200, 327]
    big = np.finfo(np.float32).max
    found = sssp(path(np.array([big, big, 1], np.float32)).to(device), 0)
    assert found.distance.to_numpy().tolist() == [0, big, np.inf, np.inf]
    assert found.parent.to_numpy().tolist() == [0, 0, 1, 2]


# edges beside those that a path from 0 takes: loops, ways back and detours
AROUND: dict[str, list[tuple[int, int, int]]] = {
    "a way back": [(0, 1, 2**62), (1, 0, 2**62)],
    "a loop": [(0, 0, 2**63 - 1), (0, 1, 5), (1, 1, 2**63 - 6)],
    "a way back, counted": [(0, 1, 2**46), (1, 0, 2**46)],
    "a loop, counted": [(0, 1, 2**46), (1, 1, 2**46)],
    "a detour": [(0, 1, 2**62), (1, 2, 2**62), (0, 2, 2**62 + 7), (2, 0, 2**62)],
    "zeros": [(0, 1, 2**63 - 1), (1, 2, 0), (2, 1, 0), (2, 3, 0)],
    "unsigned": [(0, 1, 3), (1, 2, 4), (0, 2, 2**64 - 1), (2, 0, 2**63)],
}


@pytest.mark.parametrize("shards", [None, 2])
@pytest.mark.parametrize("name", AROUND)
def test_a_sum_that_overflows_improves_nothing(name: str, shards: int | None, device: str) -> None:
    edges = AROUND[name]
    rows, columns, weights = zip(*edges, strict=True)
    kind = np.uint64 if name == "unsigned" else np.int64
    n = 1 + max(rows + columns)
    A = sg.Matrix.from_coo(rows, columns, np.array(weights, kind), nrows=n, ncols=n).to(device)
    if shards:
        A = A.distribute(shards, devices=[f"{device}:0" if device == "cuda" else device] * 2)
    least = {0: 0}
    for _ in edges:
        for i, j, w in edges:
            if i in least:
                least[j] = min(least[i] + w, least.get(j, 2**70))
    for parents in (True, False):
        found = sssp(A, 0, parents=parents)
        distance = found.distance.gather() if shards else found.distance
        ids, values = distance.to("cpu").to_coo()
        assert dict(zip(ids.tolist(), values.tolist(), strict=True)) == least
    ids, values = (found_parents(A)).to_coo()
    for v, u in zip(ids.tolist(), values.tolist(), strict=True):
        assert v == u == 0 or any(
            (i, j) == (u, v) and least[i] + w == least[j] for i, j, w in edges
        )
    assert ids.tolist() == sorted(least)


def found_parents(A: Any) -> sg.Vector:
    parent = sssp(A, 0).parent
    assert parent is not None
    return parent.gather() if hasattr(parent, "gather") else parent.to("cpu")


def test_absorbed_weights_make_no_cycle(device: str) -> None:
    """All vertices of a cycle at one distance, for its weights vanish beside the first."""
    n = 30
    rows, columns = np.r_[0, np.arange(1, n)], np.r_[5, 1 + np.arange(1, n) % (n - 1)]
    weights = np.r_[np.float32(2**26), np.ones(n - 1, np.float32)]
    A = sg.Matrix.from_coo(rows, columns, weights, nrows=n, ncols=n).to(device)
    distance, parent = sssp(A, 0)
    assert set(distance.to_numpy().tolist()) == {0.0, 2.0**26}
    parents = parent.to_numpy()
    assert parents[5] == 0 and parents[6] == 5 and parents[1] == n - 1 and parents[4] == 3


@given(st.data())
def test_small_graphs_with_many_ties(data: Any) -> None:
    check_random_paths(data, sssp, 0, min, plus)


# --- bad input ------------------------------------------------------------------------------------

A4 = sg.Matrix.from_coo([0, 1, 2], [1, 2, 3], [4.0, 2.0, 3.0], nrows=4, ncols=4)


def edited(value: float) -> sg.Matrix:
    values = A4.values.copy()
    values[1] = value
    return sg.Matrix._of(4, 4, A4.indptr, A4.indices, values)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sssp(A4, 4), "IndexOutOfBound: sssp: source: expected 0 <= source < 4, got 4"),
        (lambda: sssp(A4, -1), "IndexError: .* got -1"),
        (lambda: sssp(A4, 1.0), "TypeError: sssp: source: expected an integer, got 1.0"),
        (lambda: sssp(A4, True), "DomainMismatch: .* got True"),
        (lambda: sssp(np.ones((2, 3)), 0), "DimensionMismatch: sssp: A: .* got 2 x 3"),
        (lambda: sssp("graph", 0), "TypeError: A: expected a Matrix"),
        (lambda: sssp(edited(-1.0), 0), "NegativeWeight: sssp: A: .* >= 0, got A\\[1, 2\\] = -1.0"),
        (lambda: sssp(edited(np.nan), 0), "ValueError: A: .* A\\[1, 2\\] = nan"),
        (lambda: sssp(A4, 0, delta=-1), "ValueError: delta: .* got -1"),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    kind, _, text = message.partition(": ")
    with pytest.raises(Exception, match=text) as caught:
        call()
    assert kind in {parent.__name__ for parent in type(caught.value).__mro__}
    assert sssp(A4, 0).distance.nvals == 4  # everything is still usable


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["float32", "int32"])
def test_vertices_behind_a_threshold(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that set thresholds on a small graph: the vertices behind one pull, and, where they
    have a quarter of the edges or less, then from each other. The CPU has no threshold.
    """
    kernels = importlib.import_module("spgraph.backends.cuda.closure.closure")
    program = kernels.program
    chosen = "#define THRESHOLD_EDGES 1024\n#define LOCAL_EDGES 4096\n"
    monkeypatch.setattr(kernels, "program", lambda *a, **named: chosen + program(*a, **named))
    low, high = (0, 1) if kind == "float32" else (1, 255)
    made = weighted(sg.generators.kronecker(12, 16), kind, low, high)
    A = sg.Matrix.from_scipy(made, symmetric=True)
    there = A.to("cuda")
    for source in np.flatnonzero(np.diff(A.indptr) > 1)[[0, 500]].tolist():
        expected = sssp(A, source)
        for width in (None, 0.02, 0.3):
            delta = None if width is None else width * high
            found = sssp(there, source, delta=delta)
            for one, other in zip(expected, found, strict=True):
                assert one.isequal(other.to("cpu"))


@pytest.mark.gpu
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("few", [(), (0.0, 0.5, 1.0, np.inf), (1.0,)], ids=["none", "some", "all"])
def test_parents_of_equal_distances(few: tuple[float, ...], symmetric: bool) -> None:
    """Of weights of which none, some or all are one of a few: ties are none, some, or too many for
    the loop that finds distances; edges of weight 0 lead both ways. Ten times, since what goes
    wrong between blocks does not go wrong always.
    """
    i, j = sg.generators.kronecker(13, 16).to_coo()[:2]
    if symmetric:
        i, j = i[i < j], j[i < j]
    rng = np.random.default_rng(9)
    a = rng.random(i.size).astype("float32")
    if few:
        some = rng.random(i.size) < (1 if few == (1.0,) else 0.002)
        a[some] = rng.choice(np.array(few, "float32"), some.sum())
    if symmetric:
        i, j, a = np.append(i, j), np.append(j, i), np.append(a, a)
    A = sg.Matrix.from_coo(i, j, a, nrows=1 << 13, ncols=1 << 13)
    A.symmetric = symmetric
    there = A.to("cuda")
    for source in np.flatnonzero(np.diff(A.indptr) > 1)[[0, 500]].tolist():
        expected = sssp(A, source)
        for _ in range(10):
            for one, other in zip(expected, sssp(there, source), strict=True):
                assert one.isequal(other.to("cpu"))
