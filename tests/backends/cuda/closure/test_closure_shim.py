"""The CUDA closure without a GPU, by every exchange: its host code on NumPy arrays, its kernels
under the shim, a launch for each shard; on peers all of them at the same time.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from typing import Any

import cuda_host_shim
import numpy as np
import pytest
import shim_exchanges
from closure_cases import (
    CASES,
    GRAPHS,
    MONOIDS,
    check_closure,
    check_nan,
    entries,
    fixed_point,
    graph,
)
from search_cases import gathered
from shim_exchanges import EXCHANGES, form_of

import spgraph as sg
from spgraph.backends.cuda.closure import closure_peers
from spgraph.backends.cuda.closure import closure_rounds as closure_shard
from spgraph.backends.cuda.exchange import plan
from spgraph.containers import Matrix, Vector
from spgraph.distributed.exchange import lockstep
from spgraph.errors import ConvergenceError
from spgraph.iterations.integer_sums import plus_and_one, saturating_plus
from spgraph.semirings import Semiring, max_times, min_plus, monoid

pytestmark = pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")

one_device = importlib.import_module("spgraph.backends.cuda.closure.closure")

# Thresholds with which small graphs take every path of the kernels. Shards compute all semirings
# by kernels of their own but for products that are positions, which are composed of operations.
THRESHOLDS = {
    "closure": ("LOCAL_EDGES", "THRESHOLD_EDGES", "STEPS", "PULL_AGAIN_SHARE"),
    "closure_peers": ("LOCAL_EDGES", "THRESHOLD_EDGES", "STEPS", "SATURATED_EDGES", "ALONE"),
    "closure_rounds": ("LOCAL_EDGES", "THRESHOLD_EDGES", "STEPS", "SATURATED_EDGES", "ALONE"),
}
PATHS: dict[str, dict[str, int]] = {
    "pushed": {"LOCAL_EDGES": 0, "SATURATED_EDGES": 0},
    "threshold": {
        "THRESHOLD_EDGES": 1, "LOCAL_EDGES": 40, "SATURATED_EDGES": 10, "PULL_AGAIN_SHARE": 1,
    },
    "threshold, local": {"THRESHOLD_EDGES": 1, "STEPS": 2, "ALONE": 1, "SATURATED_EDGES": 10000},
}  # fmt: skip
# each stands for the exchanges of its form
FORMS = ("one device", "3 peers", "rounds, 3 shards")
# each is compiled for one device and a form of shards; the others stand for these, or are for one
# device alone
COVER = ("distance, zeros", "distance, float32", "narrowness", "reached", "sets of bits")
SEMIRINGS = CASES | MONOIDS
LEFT_OUT = ("distance, equal", "width, float32", "sets of bits, all", "least label", "width")
MANY = ("dense directed", "skewed both", "grid", "many sources")
FULL = pytest.mark.full
DISTANCES = min_plus.resolve("int64", "int64")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for module in (one_device, closure_peers, closure_shard):
        monkeypatch.setattr(module, "THREADS", 64)  # a step of 2 x 1024 fibers takes 0.1 s
    monkeypatch.setattr(one_device, "TRANSPOSE_FROM", 0)
    one_device.kernel_of.cache_clear()
    plan._loaded.cache_clear()
    yield
    one_device.kernel_of.cache_clear()
    plan._loaded.cache_clear()


def start_on_the_shim(patch: pytest.MonkeyPatch, path: str = "") -> None:
    """Let closures run on CUDA's kernels; by other thresholds than shipped ones if a path is named,
    where kernels are not kept already.
    """
    shim_exchanges.install(patch)
    cuda_host_shim.with_thresholds(patch, THRESHOLDS, **PATHS.get(path, {}))
    one_device.kernel_of.cache_clear()
    plan._loaded.cache_clear()


@functools.cache
def placed(name: str, case: str, exchange: str) -> Any:
    """The Matrix of a graph, kept with all that closures have made for it."""
    return place(graph(name, SEMIRINGS[case]).A, exchange)


def place(A: Matrix, exchange: str) -> Any:
    return EXCHANGES[exchange].place(A)


def fused(A: Any, start: Vector, typed: Any, delta: Any) -> Vector:
    """The fused form as `closure` calls it."""
    x = cuda_host_shim.backend(A.device).closure(A, start.to(A.device), typed, delta)
    return gathered(x)


def check(
    patch: pytest.MonkeyPatch,
    name: str,
    case: str,
    exchange: str,
    A: Any = None,
    *,
    path: str = "",
    deltas: Any = (None,),
) -> None:
    """Closures equal plain loops, and are of the form that they should be."""
    A = placed(name, case, exchange) if A is None else A
    kind = SEMIRINGS[case]
    ordered = kind.semiring.monoid in (monoid.min, monoid.max)
    with patch.context() as patch:
        start_on_the_shim(patch, path)
        stems = shim_exchanges.launched(patch)
        for delta in deltas if ordered else (None,):
            check_closure(name, kind, A, delta=delta)
        assert form_of("closure", stems) == EXCHANGES[exchange].form


def names_of(exchange: str, case: str) -> tuple[str, ...]:
    """The graphs of a case; the others say nothing new, and are tested where time is no matter."""
    if case == "distance, zeros":
        large = "two components" if "8" in exchange else "skewed both"
        return GRAPHS if exchange in FORMS else ("one", large)
    if exchange == "one device":
        return () if case in LEFT_OUT else ("skewed both",)
    # one text: what the exchange and the semiring mean for it, each once
    parts = {"3 peers": COVER[1::2], "rounds, 3 shards": COVER[2::2]}
    return ("skewed both",) if case in parts.get(exchange, ()) else ()


EVERY = [
    *((exchange, case, name) for exchange in EXCHANGES for case in SEMIRINGS
      for name in names_of(exchange, case)),
    *(pytest.param(exchange, case, "all others", marks=FULL)
      for exchange in EXCHANGES for case in SEMIRINGS),
]  # fmt: skip


@pytest.mark.parametrize(("exchange", "case", "name"), EVERY)
def test_closure(exchange: str, case: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    others = [each for each in GRAPHS if each not in names_of(exchange, case)]
    deltas = (0.6, 20) if case == "distance, zeros" else (None, 3)
    for each in others if name == "all others" else [name]:
        check(monkeypatch, each, case, exchange, deltas=deltas)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("exchange", FORMS)
@pytest.mark.parametrize(
    "case", ["distance, zeros", *(pytest.param(case, marks=FULL) for case in COVER[1:])]
)
def test_every_path(path: str, exchange: str, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gathers: list[Any] = []
    gather = lockstep.ByCommunicator.gather_own
    noted = lambda self, given: gathers.append(self) or gather(self, given)  # noqa: E731
    monkeypatch.setattr(lockstep.ByCommunicator, "gather_own", noted)
    for name in MANY:
        A = place(graph(name, SEMIRINGS[case]).A, exchange)
        deltas = (0.05, 2, 10**6) if name == "skewed both" else (2,)
        check(monkeypatch, name, case, exchange, A, path=path, deltas=deltas)
    if "rounds" in exchange and "threshold" in path and case == "distance, zeros":
        assert gathers, "a threshold ended in a pull"


@pytest.mark.parametrize(
    "exchange", ["1 peer", "3 peers, one empty", "rounds, 1 shard", "rounds, one empty"]
)
def test_thresholds_in_other_shards(exchange: str, monkeypatch: pytest.MonkeyPatch) -> None:
    A = place(graph("skewed both", CASES["distance, zeros"]).A, exchange)
    check(monkeypatch, "skewed both", "distance, zeros", exchange, A, path="threshold", deltas=(2,))


@pytest.mark.parametrize("exchange", FORMS)
@pytest.mark.parametrize(
    ("index", "offset"), [pytest.param("int64", "int32", marks=FULL), ("int32", "int64")]
)
def test_types_of_indices(
    exchange: str, index: str, offset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = graph("skewed both", CASES["distance"])
    wide = Matrix._of(
        *made.A.shape, made.A.indptr.astype(offset), made.A.indices.astype(index), made.A.values
    )
    A = place(wide, exchange)
    start_on_the_shim(monkeypatch, "threshold")
    values = fixed_point(made.edges, made.start, min, lambda x, a: x + a)
    assert entries(fused(A, made.v, DISTANCES, 5)) == values


@pytest.mark.parametrize("exchange", FORMS)
def test_one_value_for_all_entries(exchange: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = graph("grid", CASES["distance"]).A.pattern()
    rows, columns = pattern.to_coo()[:2]
    edges = dict.fromkeys(zip(rows.tolist(), columns.tolist(), strict=True), 1)
    A = place(pattern, exchange)
    start = Vector.unit(20, 0, size=pattern.nrows, dtype=np.int64)
    start_on_the_shim(monkeypatch)
    found = fused(A, start, min_plus.resolve("int64", "bool"), 1)
    assert entries(found) == fixed_point(edges, {20: 0}, min, lambda x, a: x + a)


@pytest.mark.parametrize("exchange", FORMS)
def test_products_that_are_better_than_their_operands(
    exchange: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative lengths without a negative cycle: values behind a threshold may improve."""
    rng = np.random.default_rng(3)
    pairs = np.unique(np.sort(rng.integers(0, 150, (1500, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    weights = rng.integers(-20, 30, len(pairs))
    A = Matrix.from_coo(pairs[:, 0], pairs[:, 1], weights, nrows=150, ncols=150)
    edges = dict(zip(map(tuple, pairs.tolist()), weights.tolist(), strict=True))
    values = fixed_point(edges, {0: 0, 7: -5}, min, lambda x, a: x + a)
    start = Vector.from_coo([0, 7], [0, -5], size=150)
    for path in PATHS:
        G = place(A, exchange)
        with monkeypatch.context() as patch:
            start_on_the_shim(patch, path)
            for delta in (1, 25):
                assert entries(fused(G, start, DISTANCES, delta)) == values


@pytest.mark.parametrize("semiring", ["min_plus", "min_second"])
def test_vertices_behind_a_threshold_pull_from_each_other(
    semiring: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a Matrix that is its own transpose: of vertices that lie behind, some improve only by each
    other, along several edges, and some are reached by infinite lengths alone. A product of
    min_second may be better than its operand.
    """
    rng = np.random.default_rng(4)
    n, hubs = 400, 12
    near = np.stack([rng.integers(0, hubs, 1500), rng.integers(0, n // 2, 1500)])
    far = rng.integers(n // 2, n, (2, 500)) // 2 * 2  # the odd ones behind have no edges
    links = np.stack([rng.integers(0, hubs, 60), rng.integers(n // 2, n, 60) // 2 * 2])
    weight: dict[tuple[int, int], float] = {}
    for ends, low, high in ((near, 0, 4), (far, 0, 3), (links, 20, 60)):
        for i, j in ends.T.tolist():
            weight[i, j] = weight[j, i] = float(rng.integers(low, high)) / 4 + (low > 0) * 10
    weight[0, n - 11] = weight[n - 11, 0] = 50.0
    for i in range(n - 9, n - 2, 2):  # a path of its own, to which infinite lengths lead
        for ends, w in (((i, n - 11), np.inf), ((i, i + 2), 1.0)):
            weight[ends] = weight[ends[::-1]] = w
    A = Matrix.from_coo(*np.array(list(weight)).T, list(weight.values()), nrows=n, ncols=n)
    A.symmetric = True
    multiply = (lambda x, a: x + a) if semiring == "min_plus" else (lambda x, a: a)
    values = fixed_point(weight, {0: 0.0}, min, multiply)
    typed = getattr(sg.semirings, semiring).resolve("float64", "float64")
    start = Vector.unit(0, 0.0, size=n, dtype=float)
    for path in PATHS:
        with monkeypatch.context() as patch:
            start_on_the_shim(patch, path)
            for delta in (0.3, 1.0, 4.0):
                assert entries(fused(A, start, typed, delta)) == values, (path, delta)


@pytest.mark.parametrize("exchange", FORMS)
@pytest.mark.parametrize("delta", [pytest.param(None, marks=FULL), 3])
@pytest.mark.parametrize("cycle", [(0, 1, 2), (0, 7, 8)])
def test_no_fixed_point(
    exchange: str, delta: Any, cycle: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cycle of negative length, in a shard or across two, ends in an error that has the last
    iterate; the next closure is none the worse for it.
    """
    i, j, k = cycle
    A = Matrix.from_coo([i, j, k, 5], [j, k, i, 0], [4, 3, -8, 1], nrows=12, ncols=12)
    G = place(A, exchange)
    start_on_the_shim(monkeypatch, "threshold, local")
    start = Vector.unit(0, 0, size=12, dtype=np.int64)
    with pytest.raises(ConvergenceError, match=r"min_plus.*12 rounds") as caught:
        fused(G, start, DISTANCES, delta)
    last: Any = caught.value.result
    assert set(entries(gathered(last))) == set(cycle)
    other = Vector.unit(6, 4, size=12, dtype=np.int64)
    assert entries(fused(G, other, DISTANCES, delta)) == {6: 4}


@pytest.mark.parametrize("exchange", FORMS)
@pytest.mark.parametrize("kind", ["int64", pytest.param("uint64", marks=FULL)])
def test_sums_that_stay_at_the_greatest_integer(
    exchange: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They reach a vertex, and improve nothing."""
    top = int(np.iinfo(kind).max)
    edges = {(0, 1): top - 3, (1, 0): 9, (1, 1): top, (1, 2): 3, (2, 3): 1, (3, 4): 0, (0, 4): top}
    rows, columns = zip(*edges, strict=True)
    A = Matrix.from_coo(rows, columns, np.array(list(edges.values()), kind), nrows=6, ncols=6)
    typed = Semiring(monoid.min, saturating_plus(np.dtype(kind))).resolve(kind, kind)
    start = Vector.unit(0, 0, size=6, dtype=np.dtype(kind))
    values = fixed_point(edges, {0: 0}, min, lambda x, a: min(x + a, top))
    for path in PATHS if exchange == "one device" else ("threshold",):
        G = place(A, exchange)
        with monkeypatch.context() as patch:
            start_on_the_shim(patch, path)
            for delta in (1, 2.0**60):
                assert entries(fused(G, start, typed, delta)) == values


@pytest.mark.parametrize("exchange", FORMS)
def test_products_of_the_value_of_nothing(exchange: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An infinite length reaches a vertex too, and what lies behind it."""
    edges = {(0, 1): np.inf, (1, 2): 1.0, (2, 3): 0.5, (0, 3): 8.0}
    rows, columns = zip(*edges, strict=True)
    A = place(Matrix.from_coo(rows, columns, list(edges.values()), nrows=5, ncols=5), exchange)
    start = Vector.unit(0, 0.0, size=5, dtype=float)
    start_on_the_shim(monkeypatch)
    typed = min_plus.resolve("float64", "float64")
    values = fixed_point(edges, {0: 0.0}, min, lambda x, a: x + a)
    for delta in (None, 0.5) if exchange == "one device" else (0.5,):
        assert entries(fused(A, start, typed, delta)) == values
    if exchange == "one device":
        typed = sg.semirings.min_second.resolve("float64", "float64")
        values = fixed_point(edges, {0: 0.0}, min, lambda x, a: a)
        assert entries(fused(A, start, typed, 0.5)) == values


@pytest.mark.parametrize(
    ("exchange", "sign"),
    [
        *((exchange, 1) for exchange in (*FORMS, "8 peers")),
        ("one device", -1),
        *(pytest.param(exchange, -1, marks=FULL) for exchange in EXCHANGES),
    ],
)
def test_nan(exchange: str, sign: int, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = ("", *PATHS) if exchange in FORMS else ("threshold, local",)
    for path in paths:
        with monkeypatch.context() as patch:
            start_on_the_shim(patch, path)
            for delta in (None, 2.5) if exchange == "one device" else (2.5,):
                check_nan(
                    lambda A, start, semiring, d=delta: fused(
                        place(A, exchange), start, semiring.resolve("float64", "float64"), d
                    ),
                    sign,
                )


@pytest.mark.parametrize("exchange", FORMS)
def test_products_of_vertices_that_are_in_no_bucket(
    exchange: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the identity and of NaN are relaxed at once: a threshold holds none of their
    products back. And a bound that is no number excludes no product.
    """
    edges = {(0, v): float(v) for v in range(1, 40)} | {(40, 41): 1.0, (42, 50): 7.0}
    rows, columns = zip(*edges, strict=True)
    G = Matrix.from_coo(rows, columns, list(edges.values()), nrows=60, ncols=60)
    start = Vector.from_coo([0, 40, 42], [np.inf, 0.0, np.nan], size=60)
    typed = sg.semirings.min_second.resolve("float64", "float64")
    values = {v: float(v) for v in range(1, 40)} | {0: np.inf, 40: 0.0, 41: 1.0, 50: 7.0}
    powers = {(0, v): 0.0 if v % 2 else 0.5**v for v in range(1, 40)} | {(1, 40): 1.0}
    P = Matrix.from_coo(*zip(*powers, strict=True), list(powers.values()), nrows=60, ncols=60)
    first = Vector.from_coo([0, 50], [1.0, np.inf], size=60)
    times = max_times.resolve("float64", "float64")
    products = fixed_point(powers, {0: 1.0, 50: np.inf}, max, lambda x, a: x * a)
    for path in PATHS:
        with monkeypatch.context() as patch:
            start_on_the_shim(patch, path)
            for delta in (None, 0.5) if exchange == "one device" else (0.5,):
                found = entries(fused(place(G, exchange), start, typed, delta))
                assert np.isnan(found.pop(42)) and found == values
                if exchange == "one device":  # decisions are one text for all forms
                    assert entries(fused(place(P, exchange), first, times, delta)) == products


@pytest.mark.parametrize("exchange", FORMS)
def test_products_that_are_positions(exchange: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The least vertex with an edge to it: an entry says nothing without its vertex."""
    made = graph("skewed both", CASES["distance"])
    reached = fixed_point(made.edges, made.start, min, lambda x, a: x + a)
    values = {3: 7} | {j: 10**6 for _, j in made.edges if j in reached}
    for i, j in made.edges:
        if i in reached:
            values[j] = min(values[j], i)
    start = Vector.unit(3, 7, size=made.A.nrows, dtype=np.int32)
    values[3] = min(values[3], 7)
    typed = sg.semirings.min_secondi.resolve("int32", "int64", index="int32")
    for path in ("", "threshold") if exchange == "one device" else ("",):
        A = place(made.A, exchange)
        with monkeypatch.context() as patch:
            start_on_the_shim(patch, path)
            stems = shim_exchanges.launched(patch)
            for delta in (None, 50):
                assert entries(fused(A, start, typed, delta)) == values
            form = "one device" if exchange == "one device" else "operations"
            assert form_of("closure", stems) == form


@pytest.mark.parametrize("exchange", FORMS)
def test_distances_that_count_their_edges(exchange: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As shortest paths with parents take them: ties are broken by hops, in one integer."""
    made = graph("skewed both", CASES["distance, zeros"])
    semiring = Semiring(monoid.min, plus_and_one(16)).resolve(np.dtype("int64"), made.A.dtype)
    start = made.v._with_values(lambda x: x << 16)
    A = place(made.A, exchange)
    start_on_the_shim(monkeypatch)
    values = fixed_point(made.edges, entries(start), min, lambda x, a: x + a * 65536 + 1)
    assert entries(fused(A, start, semiring, 2.0 * 2**16)) == values
