"""Graphs, semirings and plain loops for searches: levels, and the values that the edges bring."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

import spgraph as sg
from spgraph.iterations import search
from spgraph.semirings import BinaryOp, Monoid, Semiring, binary, by_name, monoid
from spgraph.steps import is_distributed


def edges_of(name: str) -> tuple[int, np.ndarray, list[int]]:
    """(vertices, edges as pairs, sources)."""
    rng = np.random.default_rng(sum(map(ord, name)))

    def random(n: int, m: int) -> np.ndarray:
        return rng.integers(0, n, (m, 2))

    def both(pairs: np.ndarray) -> np.ndarray:
        return np.concatenate([pairs, pairs[:, ::-1]])

    star = np.stack([np.zeros(199, int), np.arange(1, 200)], axis=1)
    path = np.stack([np.arange(63), np.arange(1, 64)], axis=1)
    middle = np.arange(1, 401)  # from 0 through 400 vertices to 401, 402 and 403, and on to 404
    layers = [(0 * middle, middle), *((middle, 0 * middle + hub) for hub in (401, 402, 403))]
    layers += [(np.array([401, 402, 403]), np.array([404, 404, 404]))]
    funnel = np.concatenate([np.stack(layer, axis=1) for layer in layers])
    ids = np.arange(12 * 17).reshape(12, 17)
    right = np.stack([ids[:, :-1].ravel(), ids[:, 1:].ravel()], axis=1)
    down = np.stack([ids[:-1].ravel(), ids[1:].ravel()], axis=1)
    # layers of few vertices, each joined to one of the layer before and perhaps to a second one, a
    # hub at the end of the 40th, and then 80 layers of a ladder
    chance = np.random.default_rng(5)
    first = np.cumsum([0, *chance.choice([1, 1, 2, 3, 12, 30], 80)])
    layer = np.repeat(np.arange(80), np.diff(first))[1:]
    widths = first[layer] - first[layer - 1]
    before = first[layer - 1] + chance.integers(0, 99, (2, layer.size)) % widths
    parts = [np.stack([np.arange(1, first[80]), ends], axis=1) for ends in before]
    end = first[80]
    parts += [np.stack([np.full(90, first[40]), np.arange(end, end + 90)], axis=1)]
    rungs = np.arange(end + 90, end + 250, 2)
    parts += [np.stack(pair, axis=1) for pair in ((rungs, rungs + 1), (rungs, rungs - 2))]
    thin = np.concatenate([*parts, np.stack([rungs + 1, rungs - 1], axis=1)])
    table = {
        "one": (1, np.empty((0, 2), int), [0]),
        "loop": (1, np.array([[0, 0]]), [0]),
        "no edges": (33, np.empty((0, 2), int), [32]),
        "path": (64, both(path), [0]),
        "directed path": (64, path, [10]),
        "star out": (200, star, [0]),
        "star in": (200, star[:, ::-1], [7]),
        "star both": (200, both(star), [7]),
        "cycle": (65, np.stack([np.arange(65), (np.arange(65) + 1) % 65], axis=1), [64]),
        "complete": (40, np.array([(i, j) for i in range(40) for j in range(40)]), [3]),
        "two components": (96, both(np.concatenate([random(48, 90), 48 + random(48, 90)])), [5]),
        "sparse directed": (1000, random(1000, 1500), [1, 2, 500]),
        "dense directed": (300, random(300, 9000), [0]),
        "sparse both": (1000, both(random(1000, 1600)), [999]),
        "skewed both": (
            1500,
            both((random(1500, 12000) * rng.random((12000, 2)) ** 2).astype(int)),
            [3],
        ),
        "many sources": (1200, both(random(1200, 3000)), list(range(0, 1200, 7))),
        "broom": (240, np.concatenate([both(star), both(path[:40] + 199)]), [238]),
        "funnel": (420, both(funnel), [0]),
        "grid": (ids.size, both(np.concatenate([right, down])), [20]),
        "thin": (int(end) + 250, both(thin), [0]),
    }
    return table[name]


GRAPHS = (
    "one", "loop", "no edges", "path", "directed path", "star out", "star in", "star both",
    "cycle", "complete", "two components", "sparse directed", "dense directed", "sparse both",
    "skewed both", "many sources", "broom", "funnel", "grid", "thin",
)  # fmt: skip


@functools.cache
def matrix(name: str) -> sg.Matrix:
    n, pairs, _ = edges_of(name)
    return sg.Matrix.from_coo(pairs[:, 0], pairs[:, 1], 2, nrows=n, ncols=n)


# --- semirings ------------------------------------------------------------------------------------


class Case(NamedTuple):
    """A semiring over given types, and what it computes in NumPy. `add` None is any of the products
    that (+) may take.
    """

    semiring: Semiring
    add: np.ufunc | None
    multiply: Callable[[Any, Any, Any, Any], Any]  # of x[u], A[u, v], u, v
    starts: tuple[Any, ...]  # values of the sources, in turn
    weights: Callable[[np.random.Generator, int], np.ndarray] | None  # None: an iso Matrix
    kind: str  # the type of the values
    rounding: float = 0  # how far apart sums in different orders may be, relatively


def integers(low: int, high: int, kind: str = "int64") -> Callable[..., np.ndarray]:
    return lambda rng, count: rng.integers(low, high + 1, count).astype(kind)


def reals(kind: str) -> Callable[..., np.ndarray]:
    return lambda rng, count: rng.random(count).astype(kind)


def signs(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.choice(np.array([-1, 1]), count)


def stretched(x, y):  # type: ignore[no-untyped-def]
    """A product of a user's own: every second edge weighs double."""
    return x + 2 * y if y % 2 == 0 else x + y


def smaller(x, y):  # type: ignore[no-untyped-def]
    """A sum of a user's own, which memory has no instruction for."""
    return x if x < y else y


def _first(x: Any, a: Any, u: Any, v: Any) -> Any:
    return x


def _second(x: Any, a: Any, u: Any, v: Any) -> Any:
    return a


def _plus(x: Any, a: Any, u: Any, v: Any) -> Any:
    return x + a


def _times(x: Any, a: Any, u: Any, v: Any) -> Any:
    return x * a


def _u(x: Any, a: Any, u: Any, v: Any) -> Any:
    return u


def _u1(x: Any, a: Any, u: Any, v: Any) -> Any:
    return u + 1


def _v(x: Any, a: Any, u: Any, v: Any) -> Any:
    return v


def _one(x: Any, a: Any, u: Any, v: Any) -> Any:
    return np.ones_like(u)


def _both(x: Any, a: Any, u: Any, v: Any) -> Any:
    return x & a


LABELS = (9, -4, 7, 30)


def _case(name: str, add: np.ufunc | None, multiply: Any, *more: Any) -> Case:
    return Case(by_name(name), add, multiply, *more)


CASES = {
    # name in tests: semiring, its sum and product, start values, weights, type of values
    "levels": _case("any_pair", None, _one, (True,), None, "bool"),
    "least parent": _case("min_secondi", np.minimum, _u, LABELS, None, "int32"),
    "any parent": _case("any_secondi", None, _u, LABELS, None, "int32"),
    "least parent, column": _case("min_firstj", np.minimum, _u, (8, 2), None, "int32"),
    "any parent, column": _case("any_firstj", None, _u, (8, 2), None, "int32"),
    "greatest parent": _case("max_secondi", np.maximum, _u, LABELS, None, "int32"),
    "sum of parents": _case("plus_secondi", np.add, _u, LABELS, None, "int64"),
    "own id": _case("max_secondj", np.maximum, _v, LABELS, None, "int32"),
    "least parent, from one": _case("min_secondi1", np.minimum, _u1, LABELS, None, "int32"),
    "least label": _case("min_first", np.minimum, _first, LABELS, None, "int32"),
    "greatest label": _case("max_first", np.maximum, _first, LABELS, None, "int16"),
    "any label": _case("any_first", None, _first, (0.5, -2.0, 3.0), None, "float32"),
    "paths": _case("plus_first", np.add, _first, (1, 2), None, "int64"),
    "paths, float64": _case("plus_first", np.add, _first, (1.0,), None, "float64", 1e-12),
    "lightest edge": _case("min_second", np.minimum, _second, (9.0,), reals("float32"), "float32"),
    "heaviest edge": _case(
        "max_second", np.maximum, _second, (1,), integers(-90, 90, "int8"), "int8"
    ),
    "weights": _case("plus_second", np.add, _second, (1.0,), reals("float32"), "float32", 1e-5),
    "any weight": _case("any_second", None, _second, (3,), integers(0, 60000, "uint16"), "uint16"),
    "weighted paths": _case(
        "plus_times", np.add, _times, (1.0, 0.5), reals("float64"), "float64", 1e-12
    ),
    "signed paths": _case("plus_times", np.add, _times, (1, -3), signs, "int64"),
    "least product": _case("min_times", np.minimum, _times, (1, -3), signs, "int64"),
    "any product": _case("any_times", None, _times, (1.0, 0.5), reals("float64"), "float64"),
    "reliability": _case(
        "max_times", np.maximum, _times, (1.0, 0.5), reals("float32"), "float32"
    ),
    "distance": _case("min_plus", np.minimum, _plus, (0, 40), integers(-5, 60), "int64"),
    "distance, float32": _case(
        "min_plus", np.minimum, _plus, (0.0, 0.5), reals("float32"), "float32"
    ),
    "number of parents": _case("plus_pair", np.add, _one, (1,), None, "int64"),
    "least one": _case("min_pair", np.minimum, _one, (5,), None, "int64"),
    "greatest one": _case("max_pair", np.maximum, _one, (0,), None, "int64"),
    "truth": _case("lor_land", np.logical_or, _both, (True, False), integers(0, 1, "bool"), "bool"),
    "all true": _case(
        "land_lor", np.logical_and, lambda x, a, u, v: x | a, (False, True),
        integers(0, 1, "bool"), "bool",
    ),
    "parity": _case("lxor_land", np.logical_xor, _both, (True,), integers(0, 1, "bool"), "bool"),
    "sets of bits": _case(
        "bor_band", np.bitwise_or, _both, (255, 6), integers(0, 255, "uint8"), "uint8"
    ),
    "a user's product": Case(
        Semiring(monoid.max, BinaryOp.define(stretched)), np.maximum,
        lambda x, a, u, v: x + a * (2 - a % 2), (0, 5), integers(1, 9), "int64",
    ),
    "a user's sum": Case(
        Semiring(Monoid(BinaryOp.define(smaller), 2**31 - 1, None, True), binary.plus),
        np.minimum, _plus, (0, 40), integers(0, 60, "int32"), "int32",
    ),
}  # fmt: skip


class Graph(NamedTuple):
    """A graph with the weights of a case, and the start of a search."""

    rows: np.ndarray
    columns: np.ndarray
    weights: np.ndarray  # 2 for all edges of an iso Matrix
    sources: np.ndarray
    values: np.ndarray  # of the sources
    A: sg.Matrix

    def start(self) -> sg.Vector:
        return sg.Vector.from_coo(self.sources, self.values, size=self.A.nrows)


@functools.cache
def graph(name: str, case: str) -> Graph:
    """The graph; a Matrix without weights says whether it is symmetric."""
    given = CASES[case]
    n, pairs, sources = edges_of(name)
    keys = np.unique(pairs[:, 0].astype(np.int64) * n + pairs[:, 1])
    rows, columns = keys // n, keys % n
    if given.weights is None:
        weights: Any = np.full(keys.size, 2)
    else:
        weights = given.weights(np.random.default_rng(7), keys.size)
    entries = 2 if given.weights is None else weights
    A = sg.Matrix.from_coo(rows, columns, entries, nrows=n, ncols=n)
    if given.weights is None:
        A.symmetric = bool(np.array_equal(np.sort(columns * n + rows), keys))
    starts = [given.starts[k % len(given.starts)] for k in range(len(sources))]
    return Graph(rows, columns, weights, np.array(sources), np.array(starts, given.kind), A)


@functools.cache
def levels_and_values(
    name: str, case: str, max_depth: int = 10**6
) -> tuple[np.ndarray, np.ndarray]:
    """(levels, values), -1 and anything where not reached: all edges are looked at in each level.
    Where (+) is any, the value is the sum of least.
    """
    made, given = graph(name, case), CASES[case]
    n = made.A.nrows
    level, value = np.full(n, -1), np.zeros(n, given.kind)
    level[made.sources], value[made.sources] = 0, made.values
    add = given.add or (np.logical_or if given.kind == "bool" else np.minimum)
    for depth in range(max_depth):
        on = (level[made.rows] == depth) & (level[made.columns] < 0)
        if not on.any():
            break
        u, v = made.rows[on], made.columns[on]
        products = given.multiply(value[u], made.weights[on], u, v).astype(given.kind)
        order = np.argsort(v, kind="stable")
        found, first = np.unique(v[order], return_index=True)
        level[found], value[found] = depth + 1, add.reduceat(products[order], first)
    return level, value


def check_search(
    name: str,
    case: str,
    place: Callable[[Any], Any] = lambda container: container,
    direction: Any = "auto",
    max_depth: int | None = None,
) -> None:
    """One search, compared with plain loops; `place` moves Matrix and start to where it runs."""
    made, given = graph(name, case), CASES[case]
    A = place(made.A)
    found: Any = search(
        A, made.start().to(A.device), given.semiring, direction=direction, max_depth=max_depth
    )
    level, value = levels_and_values(name, case, 10**6 if max_depth is None else max_depth)
    reached = level >= 0
    got = gathered(found.level)
    assert found.level.nvals == got.nvals == reached.sum()
    np.testing.assert_array_equal(got.to_numpy(fill=-1), level)
    if case == "levels":
        assert found.value is None
        return
    got = gathered(found.value)
    assert found.value.nvals == reached.sum() and got.dtype == given.kind
    np.testing.assert_array_equal(got.to_coo()[0], np.flatnonzero(reached))
    values = np.zeros_like(value)
    values[reached] = got.to_coo()[1]
    if given.add is None:
        check_any(made, given, level, values)
    elif given.rounding:
        np.testing.assert_allclose(values[reached], value[reached], rtol=given.rounding)
    else:
        np.testing.assert_array_equal(values[reached], value[reached])


def check_any(made: Graph, given: Case, level: np.ndarray, value: np.ndarray) -> None:
    """Sources keep their values; that of another vertex is the product of an edge from the level
    before.
    """
    np.testing.assert_array_equal(value[made.sources], made.values)
    u, v = made.rows, made.columns
    products = given.multiply(value[u], made.weights, u, v).astype(given.kind)
    brings = (level[u] >= 0) & (level[u] + 1 == level[v]) & (products == value[v])
    np.testing.assert_array_equal(np.unique(v[brings]), np.flatnonzero(level > 0))


def gathered(v: Any) -> sg.Vector:
    """The whole of a Vector on the CPU."""
    return v.gather() if is_distributed(v) else v.to("cpu")


def check_index_types(ids: Any, offsets: Any, parents: bool, device: str) -> None:
    """A directed graph with index arrays of these types, its transpose with narrow ones: searches
    of every direction find what they find over narrow ones alone.
    """
    chance = np.random.default_rng(3)
    S = scipy.sparse.random_array((200, 200), density=0.05, rng=chance, format="csr")
    A = sg.Matrix.from_scipy(S)
    arrays = A._indptr.astype(offsets), A._indices.astype(ids), A._values
    B = sg.Matrix._of(200, 200, *arrays).to(device)
    for direction in ("auto", "push", "pull"):
        found: Any = sg.bfs(B, 7, parents=parents, direction=direction)
        expected: Any = sg.bfs(A, 7, parents=parents)
        for k in range(1 + parents):
            assert found[k].to("cpu").isequal(expected[k])


def weighted_graph(n: int, m: int, seed: int = 0) -> sg.Matrix:
    """A directed graph with hubs, loops, values and vertices without out-edges."""
    rng = np.random.default_rng(seed)
    rows, columns = (rng.random(m) ** 3 * n).astype(int), (rng.random(m) ** 2 * n).astype(int)
    rows = rng.permutation(n)[rows]
    keep = rows % 7 != 3
    keys = np.unique(rows[keep] * n + columns[keep])
    values = rng.random(keys.size) + 0.1
    return sg.Matrix.from_coo(keys // n, keys % n, values, nrows=n, ncols=n)
