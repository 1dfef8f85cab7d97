"""Graphs, semirings and plain loops for closures, and an independent judge of their parents."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from hypothesis import strategies as st
from search_cases import GRAPHS as SHAPES
from search_cases import edges_of, gathered, integers, reals, smaller, stretched

import spgraph as sg
from spgraph.iterations import closure
from spgraph.semirings import (
    BinaryOp,
    Monoid,
    Semiring,
    binary,
    lor_land,
    max_min,
    max_times,
    min_first,
    min_max,
    min_plus,
    monoid,
)


class Case(NamedTuple):
    """A semiring over given types, and what it computes in Python."""

    semiring: Semiring
    add: Callable[[Any, Any], Any]
    multiply: Callable[[Any, Any], Any]
    starts: tuple[Any, ...]  # values of the sources, in turn
    weights: Callable[[np.random.Generator, int], np.ndarray]
    kind: str  # the type of start


def rounded(kind: str, f: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """f in the arithmetic of a NumPy type."""
    scalar = np.dtype(kind).type
    return lambda x, a: scalar(f(scalar(x), scalar(a)))


def plus(x: Any, a: Any) -> Any:
    return x + a


CASES = {
    "distance": Case(min_plus, min, plus, (0, 3, 40), integers(1, 64), "int64"),
    "distance, zeros": Case(min_plus, min, plus, (0, 1), integers(0, 2), "int64"),
    "distance, equal": Case(min_plus, min, plus, (0,), integers(7, 7, "uint8"), "int64"),
    "distance, float32": Case(
        min_plus, min, rounded("float32", plus), (0.0, 0.5), reals("float32"), "float32"
    ),
    "width": Case(max_min, max, min, (1 << 40, 50), integers(1, 64), "int64"),
    "width, float32": Case(
        max_min, max, min, (np.inf, 0.375), reals("float32"), "float32"
    ),
    "narrowness": Case(min_max, min, max, (0, 30), integers(1, 64, "int16"), "int16"),
    "reliability": Case(
        max_times, max, lambda x, a: x * a, (1.0, 0.25), reals("float64"), "float64"
    ),
    "least label": Case(min_first, min, lambda x, a: x, (9, 4, 7), integers(1, 2), "int32"),
    "reached": Case(
        lor_land, lambda x, y: x or y, lambda x, a: x and a, (True, False), integers(0, 1, "bool"),
        "bool",
    ),
    "a user's": Case(
        Semiring(monoid.min, BinaryOp.define(stretched)), min, stretched, (0, 5), integers(1, 9),
        "int64",
    ),
}  # fmt: skip

# Monoids that memory has an instruction for, and one that it has none for; without an order of
# values but for the last one. A kernel is compiled for each.
MONOIDS = {
    "sets of bits": Case(
        Semiring(monoid.bor, binary.band), lambda x, y: x | y, lambda x, a: x & a, (255, 6),
        integers(0, 255, "int32"), "int32",
    ),
    "sets of bits, all": Case(
        Semiring(monoid.band, binary.bor), lambda x, y: x & y, lambda x, a: x | a, (0, 6),
        integers(0, 255, "int32"), "int32",
    ),
    "a user's sum": Case(
        Semiring(Monoid(BinaryOp.define(smaller), 2**31 - 1, None, True), binary.plus), min, plus,
        (0, 30), integers(0, 60, "int32"), "int32",
    ),
    "greatest bytes": Case(max_min, max, min, (255, 6), integers(1, 200, "uint8"), "uint8"),
}  # fmt: skip

GRAPHS = (*SHAPES, "acyclic", "parallel edges", "isolated vertices")


@functools.cache
def shape(name: str) -> tuple[int, np.ndarray, list[int]]:
    """(vertices, edges as pairs, sources)."""
    rng = np.random.default_rng(len(name))
    if name == "acyclic":
        pairs = np.sort(rng.integers(0, 400, (1600, 2)), axis=1)
        return 400, pairs[pairs[:, 0] < pairs[:, 1]], [0, 3]
    if name == "parallel edges":
        pairs = rng.integers(0, 30, (120, 2))
        return 30, np.concatenate([pairs, pairs[:40]]), [1]
    if name == "isolated vertices":
        return 700, 3 * rng.integers(0, 200, (500, 2)), [0, 1, 699]
    return edges_of(name)


class Graph(NamedTuple):
    """A weighted graph and the start of a closure, as dictionaries and as containers."""

    edges: dict[tuple[int, int], Any]
    start: dict[int, Any]
    A: sg.Matrix
    v: sg.Vector


@functools.cache
def graph(name: str, case: Case) -> Graph:
    n, pairs, sources = shape(name)
    keys = np.unique(pairs[:, 0].astype(np.int64) * n + pairs[:, 1])
    rows, columns = keys // n, keys % n
    weights = case.weights(np.random.default_rng(7), keys.size)
    starts = {s: case.starts[k % len(case.starts)] for k, s in enumerate(sources)}
    A = sg.Matrix.from_coo(rows, columns, weights, nrows=n, ncols=n)
    values = np.array([starts[s] for s in sorted(starts)], case.kind)
    v = sg.Vector.from_coo(np.array(sorted(starts)), values, size=n)
    edges = dict(zip(zip(rows.tolist(), columns.tolist(), strict=True), weights, strict=True))
    return Graph({k: w.item() for k, w in edges.items()}, starts, A, v)


def fixed_point(
    edges: dict[tuple[int, int], Any], start: dict[int, Any], add: Any, multiply: Any
) -> dict[int, Any]:
    """Bellman and Ford's rounds over all edges until nothing changes."""
    x, changed = dict(start), set(start)
    out: dict[int, list[tuple[int, Any]]] = {}
    for (i, j), w in edges.items():
        out.setdefault(i, []).append((j, w))
    while changed:
        last, changed = changed, set()
        for i in sorted(last):
            for j, w in out.get(i, ()):
                z = multiply(x[i], w)
                better = add(x[j], z) if j in x else z
                if j not in x or better != x[j]:
                    x[j] = better
                    changed.add(j)
    return x


@functools.cache
def expected(name: str, case: Case) -> dict[int, Any]:
    edges, start, _, _ = graph(name, case)
    return fixed_point(edges, start, case.add, case.multiply)


# Sources and products that are NaN: edges of small graphs side by side, the sources, and what min
# leaves of products that are sums. Of max the signs are the others.
NAN_EDGES = {
    (0, 1): 1.0, (1, 3): 1.0, (3, 4): 1.0,  # nothing else arrives
    (5, 5): 1.0, (5, 6): 2.0, (6, 5): np.nan,  # NaN on a cycle
    (7, 8): np.nan, (7, 9): 2.0, (9, 10): 3.0, (8, 11): 1.0, (10, 11): 4.0, (7, 12): np.nan,
    (13, 14): 1.0, (15, 13): 2.0, (14, 16): 5.0,  # a source that a better value reaches
    (17, 18): np.inf, (18, 19): 1.0, (20, 18): np.nan,
}  # fmt: skip
NAN_STARTS = {0: np.nan, 5: np.nan, 7: 1.0, 13: np.nan, 15: -4.0, 18: np.nan, 20: 3.0}
NAN_VALUES = {
    0: np.nan, 1: np.inf, 3: np.inf, 4: np.inf,
    5: np.inf, 6: np.inf,
    7: 1.0, 8: np.inf, 9: 3.0, 10: 6.0, 11: 10.0, 12: np.inf,
    13: -2.0, 14: -1.0, 15: -4.0, 16: 4.0,
    18: np.inf, 19: np.inf, 20: 3.0,
}  # fmt: skip


def sums(x: float, a: float) -> float:
    return x + a


def check_nan(run: Callable[[sg.Matrix, sg.Vector, Semiring], Any], sign: int) -> None:
    """min (sign 1) or max (-1) omit a product that is NaN, but the vertex that it arrives at has an
    entry: the identity, if nothing better arrives. `run` gives the closure of a Matrix.
    """
    ends = np.array(list(NAN_EDGES)).T
    weights = sign * np.array(list(NAN_EDGES.values()))
    A = sg.Matrix.from_coo(*ends, weights, nrows=22, ncols=22)
    starts = sign * np.array(list(NAN_STARTS.values()))
    start = sg.Vector.from_coo(list(NAN_STARTS), starts, size=22)
    semiring = Semiring(monoid.min if sign > 0 else monoid.max, BinaryOp.define(sums))
    found = entries(gathered(run(A, start, semiring)))
    assert list(found) == list(NAN_VALUES)
    np.testing.assert_array_equal(list(found.values()), sign * np.array(list(NAN_VALUES.values())))


def check_closure(name: str, case: Case, A: Any, **options: Any) -> None:
    """One closure, compared with plain loops; A is the graph's Matrix where the closure runs."""
    found = closure(A, graph(name, case).v.to(A.device), case.semiring, **options)
    assert found.size == A.nrows and found.dtype == case.kind
    assert entries(gathered(found)) == expected(name, case)


def best_parents(
    edges: dict[tuple[int, int], Any], x: dict[int, Any], multiply: Any, source: int
) -> dict[int, int]:
    """The parents least by (value, hops, id): breadth-first over the edges that carry x."""
    carrying: dict[int, list[int]] = {}
    for (i, j), w in edges.items():
        if i in x and multiply(x[i], w) == x[j]:
            carrying.setdefault(i, []).append(j)
    parent, frontier = {source: source}, [source]
    while frontier:
        found: dict[int, int] = {}
        for i in frontier:
            for j in carrying.get(i, ()):
                if j not in parent:
                    found[j] = min(i, found.get(j, i))
        parent.update(found)
        frontier = sorted(found)
    return parent


def least_parents(
    edges: dict[tuple[int, int], Any], x: dict[int, Any], multiply: Any
) -> dict[int, int]:
    """For each vertex the least other one that brings it its value."""
    parent: dict[int, int] = {}
    for (i, j), w in edges.items():
        if i != j and i in x and j in x and multiply(x[i], w) == x[j]:
            parent[j] = min(i, parent.get(j, i))
    return parent


def entries(v: sg.Vector) -> dict[int, Any]:
    """The entries of a Vector as Python values by position."""
    indices, values = v.to("cpu").to_coo()
    return dict(zip(indices.tolist(), values.tolist(), strict=True))


def check_paths(
    algorithm: Any, name: str, case: str, first: Any, add: Any, multiply: Any, device: str
) -> None:
    """The values of an algorithm whose source has the value `first` are the fixed point; parents
    are the least by (value, hops, id), by an independent search over the best edges.
    """
    edges, start, A, _ = graph(name, CASES[case])
    source = next(iter(start))
    x = fixed_point(edges, {source: first}, add, multiply)
    values, parent = algorithm(A.to(device), source)
    assert values.device == parent.device == A.to(device).device
    assert entries(values) == x
    assert entries(parent) == best_parents(edges, x, multiply, source)
    alone = algorithm(A.to(device), source, parents=False)
    assert alone.parent is None and alone[0].isequal(values)


def weighted(A: sg.Matrix, kind: Any, low: float = 1, high: float = 64) -> scipy.sparse.csr_array:
    """Weights of one seed, the same both ways."""
    upper = scipy.sparse.triu(A.to_scipy().astype(np.float64), k=1, format="csr")
    draw = np.random.default_rng(7)
    if np.dtype(kind).kind == "f":
        upper.data = (low + (high - low) * draw.random(upper.nnz)).astype(kind)
    else:
        upper.data = draw.integers(low, high + 1, upper.nnz).astype(kind)
    return (upper + upper.T).tocsr().astype(kind)


def check_random_paths(data: Any, algorithm: Any, first: Any, add: Any, multiply: Any) -> None:
    """As `check_paths`, on a small graph with many ties that hypothesis draws."""
    n = data.draw(st.integers(1, 9))
    pairs = data.draw(
        st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), unique=True)
    )
    weights = data.draw(st.lists(st.integers(0, 2), min_size=len(pairs), max_size=len(pairs)))
    source = data.draw(st.integers(0, n - 1))
    rows, columns = np.array(pairs, int).reshape(-1, 2).T
    A = sg.Matrix.from_coo(rows, columns, np.array(weights, np.int64), nrows=n, ncols=n)
    edges = dict(zip(pairs, weights, strict=True))
    x = fixed_point(edges, {source: first}, add, multiply)
    values, parent = algorithm(A, source)
    assert entries(values) == x
    assert entries(parent) == best_parents(edges, x, multiply, source)


def path_graph(weights: Any, device: str = "cpu") -> tuple[sg.Matrix, sg.Vector]:
    """A directed path over these weights, and a start of their type at its first vertex."""
    values = np.asarray(weights)
    n = values.size + 1
    A = sg.Matrix.from_coo(np.arange(n - 1), np.arange(1, n), values, nrows=n, ncols=n)
    kind = values.dtype if values.dtype.kind == "f" else np.int64
    return A.to(device), sg.Vector.from_coo([0], np.zeros(1, kind), size=n, device=device)
