"""The CUDA search without a GPU, by every exchange: its host code on NumPy arrays, its kernels
under the shim, a launch for each shard; on peers all of them at the same time.
"""

from __future__ import annotations

import functools
import importlib
import subprocess
from collections.abc import Iterator
from typing import Any

import cuda_host_shim
import numpy as np
import pytest
import shim_exchanges
from search_cases import CASES, GRAPHS, check_search, gathered, graph, levels_and_values
from shim_exchanges import EXCHANGES, form_of

import spgraph as sg
from spgraph import direction as directions
from spgraph.backends.cuda.exchange import plan
from spgraph.backends.cuda.runtime.sources import source
from spgraph.backends.cuda.search import search_peers, search_rounds
from spgraph.distributed.loops import search as searches
from spgraph.iterations import search
from spgraph.semirings import (
    BinaryOp,
    Monoid,
    Semiring,
    any_pair,
    binary,
    min_secondi,
    monoid,
    plus_first,
)

pytestmark = pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")

one_device = importlib.import_module("spgraph.backends.cuda.search.search")

# On one device each case is a program of its own, and so is one of shards that finds no parents;
# these add as others do, over the same type.
ALIKE = (
    "own id", "any weight", "any product", "distance", "signed paths", "least one", "greatest one",
    "all true", "parity", "reliability", "number of parents", "least product", "weighted paths",
)  # fmt: skip
PARENTS = ("any parent, column", "least parent, column")
# what shards find in every form of a level, beyond test_search
FORMS_OF_LEVELS = ("paths, float64", "greatest label", "any label", "truth")
# each stands for the exchanges of its form
FORMS = ("one device", "3 peers", "rounds, 3 shards")
SHARDS = tuple(name for name in EXCHANGES if name != "one device")
# graphs for what has not all: hubs, a direction, many that push to one, many levels, ...
COVER = (
    "skewed both", "sparse directed", "funnel", "broom", "one", "star in", "many sources",
)  # fmt: skip
FULL = pytest.mark.full
DIRECTIONS = ("auto", "push", "pull")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Few threads and small frontiers, so that graphs of a few hundred vertices see every form of a
    level.
    """
    for module in (search_peers, search_rounds):
        monkeypatch.setattr(module, "THREADS", 64)
    for module in (one_device, search_peers, search_rounds):
        monkeypatch.setattr(module, "LONG_ROW", 128)
    for module in (one_device, search_peers):
        monkeypatch.setattr(module, "small_frontier", lambda ids, offsets: 32)
    monkeypatch.setattr(search_rounds, "AHEAD_VERTICES", 4)
    monkeypatch.setattr(search_rounds, "AHEAD", 6)
    monkeypatch.setattr(search_rounds, "LIST_EDGES", 16)
    pulls = directions.search_pulls  # as if a frontier were a queue for nothing
    monkeypatch.setattr(
        directions, "search_pulls", lambda edges, _, *rest: pulls(edges, True, *rest)
    )
    kept = (one_device.program, one_device.work_bytes, one_device.kernel_of, plan._loaded)
    for cache in kept:
        cache.cache_clear()
    yield
    for cache in kept:
        cache.cache_clear()


@functools.cache
def placed(name: str, case: str, exchange: str) -> Any:
    """The Matrix of a graph, kept with all that searches have made for it."""
    return EXCHANGES[exchange].place(graph(name, case).A)


def check(
    patch: pytest.MonkeyPatch,
    name: str,
    case: str,
    exchange: str,
    A: Any = None,
    *,
    directions: Any = DIRECTIONS,
    depths: Any = (None,),
) -> None:
    """Searches equal plain loops, and are of the form that they should be."""
    A = placed(name, case, exchange) if A is None else A
    with patch.context() as patch:
        shim_exchanges.install(patch)
        form = EXCHANGES[exchange].form
        for depth in depths:
            for direction in directions:
                stems = shim_exchanges.launched(patch)
                check_search(name, case, lambda _: A, direction, depth)
                assert form_of("search", stems) == form


def names_of(exchange: str, case: str) -> tuple[str, ...]:
    """The graphs of a case; the others say nothing new, and are tested where time is no matter."""
    if case in ("levels", "least parent"):
        if "8" in exchange:
            return "one", "two components"
        return GRAPHS if exchange in FORMS[1:] else COVER if exchange in FORMS else COVER[:1]
    if case in ALIKE or (exchange == "one device" and case in PARENTS):
        return ()
    if exchange == "one device":
        # whose vertices have many products, and whose rows one warp leaves to the grid
        return "dense directed", "funnel"
    if case in FORMS_OF_LEVELS or case == "distance, float32":
        return ()
    return COVER[:1] if exchange in FORMS else ()


EVERY = [
    *((exchange, case, name) for exchange in EXCHANGES for case in CASES
      for name in names_of(exchange, case)),
    *(pytest.param(exchange, case, "all others", marks=pytest.mark.full)
      for exchange in EXCHANGES for case in CASES),
]  # fmt: skip


@pytest.mark.parametrize(("exchange", "case", "name"), EVERY)
def test_search(exchange: str, case: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    others = [each for each in GRAPHS if each not in names_of(exchange, case)]
    cover = case in ("levels", "least parent") or name == "all others"
    for each in others if name == "all others" else [name]:
        check(monkeypatch, each, case, exchange, directions=DIRECTIONS if cover else DIRECTIONS[1:])


@pytest.mark.parametrize("exchange", FORMS)
def test_depths(exchange: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for case in ("levels", "least parent"):
        check(monkeypatch, "skewed both", case, exchange, depths=(0, 1, 2))


@pytest.mark.parametrize("exchange", FORMS[1:])
@pytest.mark.parametrize("case", FORMS_OF_LEVELS)
def test_values_in_every_form_of_a_level(
    exchange: str, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small levels, pushes and pulls follow each other in any order, and end where they should; in
    the funnel a small level is done again by all, and one pulls rows that are left to all.
    """
    for name in ("broom", "funnel", "many sources"):
        directions = ("push", *DIRECTIONS)  # twice, in what the first one leaves
        check(monkeypatch, name, case, exchange, directions=directions)
        check(monkeypatch, name, case, exchange, directions=("auto",), depths=(2,))
    other = "3 peers, relabelled" if exchange == "3 peers" else "rounds, relabelled"
    check(monkeypatch, "sparse directed", case, other)


def test_buffers_serve_one_semiring_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each finds its own identities where sums begin, whatever was there before."""
    A = EXCHANGES["3 peers"].place(graph("skewed both", "levels").A)
    for case in ("greatest label", "levels", "paths", "greatest label", "least label", "paths"):
        check(monkeypatch, "skewed both", case, "3 peers", A, directions=("push", *DIRECTIONS))


@pytest.mark.parametrize("exchange", FORMS[1:])
def test_operators_that_are_named_as_others(exchange: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's `secondi` or `min` is not the one that finds parents."""
    A = placed("skewed both", "least parent", exchange)
    start = graph("skewed both", "least parent").start().to(A.device)
    further = BinaryOp.define(lambda x, y: x + 1, "secondi")
    greater = Monoid(BinaryOp.define(lambda x, y: x if x > y else y, "min"), -(2**31), None, True)
    shim_exchanges.install(monkeypatch)
    level, parent = levels_and_values("skewed both", "greatest parent")
    found: Any = search(A, start, Semiring(monoid.min, further), direction="push")
    assert (
        gathered(found.value).to_numpy(fill=-1).tolist()
        == np.where(level < 0, -1, level + 9).tolist()
    )
    found = search(A, start, Semiring(greater, binary.secondi), direction="push")
    np.testing.assert_array_equal(
        gathered(found.value).to_numpy(fill=-1), np.where(level < 0, -1, parent)
    )


@pytest.mark.parametrize("kind", ["bool", "int8", "int64", "uint64", "float32", "float64"])
@pytest.mark.parametrize("name", ["secondi", "firstj"])
def test_values_that_are_no_ids_are_no_parents(name: str, kind: str) -> None:
    """A user's operator that is named as one that gives ids may give values of any type."""
    lesser = BinaryOp.define(lambda x, y: x if x < y else y, name)
    for add in (monoid.min, monoid.any):
        assert not searches.finds_parents(Semiring(add, lesser).resolve(kind, kind))
        for index in ("int32", "int64"):
            ids = Semiring(add, getattr(binary, name)).resolve(kind, kind, index=index)
            assert searches.finds_parents(ids)


@pytest.mark.parametrize(
    ("exchange", "case"),
    [*((exchange, case) for exchange in FORMS for case in ("levels", "least parent")),
     ("3 peers", "paths, float64"), ("3 peers", "greatest label"), ("3 peers", "truth")],
)  # fmt: skip
def test_a_start_of_one_entry(exchange: str, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards get it as numbers instead of arrays: 3 is the source of the graph."""
    A, semiring = placed("skewed both", case, exchange), CASES[case].semiring
    level, value = levels_and_values("skewed both", case)
    shim_exchanges.install(monkeypatch)
    kind, one = CASES[case].kind, CASES[case].starts[0]
    new = sg.Vector if exchange == "one device" else A.device
    start = new.unit(3, one, size=A.nrows, dtype=kind)
    for direction in DIRECTIONS:
        found = search(A, start, semiring, direction=direction)
        np.testing.assert_array_equal(gathered(found.level).to_numpy(fill=-1), level)
        if found.value is not None:
            at, got = gathered(found.value).to_coo()
            np.testing.assert_array_equal(at, np.flatnonzero(level >= 0))
            np.testing.assert_array_equal(got, value[at])


@pytest.mark.parametrize("exchange", FORMS)
@pytest.mark.parametrize(
    ("ids", "offsets"), [pytest.param(ids, "int64", marks=FULL) for ids in ("int32", "int64")]
)
def test_types_of_indices(
    exchange: str, ids: str, offsets: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Transposes have the smallest types that will do; kernels know one of each kind."""
    A = graph("sparse directed", "least parent").A
    wide = sg.Matrix._of(
        *A.shape, A.indptr.astype(offsets), A.indices.astype(ids), A.values, iso=True
    )
    # values are of the type of ids
    case = "least parent" if ids == "int32" else "levels"
    check(monkeypatch, "sparse directed", case, exchange, EXCHANGES[exchange].place(wide))


@pytest.mark.parametrize(("exchange", "module"), [("one device", one_device), ("3 peers", plan)])
@pytest.mark.parametrize("type_of_ids", ["int32", "int64"])
def test_launches_ask_for_the_shared_memory_that_kernels_lay_out(
    exchange: str, module: Any, type_of_ids: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shim gives blocks more, so that it would not notice too little."""
    asked: list[tuple[str, str, int, int]] = []
    make = module.kernel_of
    monkeypatch.setattr(module, "kernel_of", lambda *given: asked.append(given) or make(*given))
    A = graph("sparse directed", "levels").A
    arrays = (A.indptr.astype(type_of_ids), A.indices.astype(type_of_ids), A.values)
    A = EXCHANGES[exchange].place(sg.Matrix._of(*A.shape, *arrays, iso=True))
    check(monkeypatch, "sparse directed", "levels", exchange, A, directions=("push",))
    stem, text, _, shared = asked[-1]
    fits = f'static_assert(sizeof(Work) <= {shared}, "the launch asks for too little");\n'
    program = f'#include "{cuda_host_shim.header()}"\n{source(stem, text)}{fits}'
    command = [cuda_host_shim.COMPILER, *cuda_host_shim.FLAGS, "-fsyntax-only", "-xc++", "-"]
    done = subprocess.run(command, input=program, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]


@pytest.mark.parametrize("exchange", ["3 peers", "rounds, 3 shards"])
@pytest.mark.parametrize("case", ["levels", "least parent"])
def test_trace(exchange: str, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "skewed both"
    A, made = placed(name, case, exchange), graph(name, case)
    level, degrees = levels_and_values(name, case)[0], np.diff(made.A.indptr)
    shim_exchanges.install(monkeypatch)
    for direction in DIRECTIONS:
        start = made.start().to(A.device)
        trace = search(A, start, CASES[case].semiring, direction=direction, trace=True).trace  # type: ignore[arg-type]
        assert [row.frontier for row in trace] == np.bincount(level[level >= 0]).tolist()
        for row in trace[:-1]:
            assert direction in ("auto", row.direction) and row.seconds > 0
            if row.direction == "push" or "rounds" in exchange:
                assert row.edges == degrees[level == row.depth].sum()
            assert row.edges > 0


# --- one device -----------------------------------------------------------------------------------


def test_trace_counts_what_was_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    A = sg.generators.grid(9, 11)
    start = sg.Vector.unit(0, True, size=99, dtype=bool)
    shim_exchanges.install(monkeypatch)
    found: Any = search(A, start, any_pair, trace=True)
    assert [level.frontier for level in found.trace][:3] == [1, 2, 3]
    assert sum(level.frontier for level in found.trace) == 99


@pytest.mark.parametrize("semiring", [any_pair, min_secondi, plus_first], ids=repr)
def test_graphs_of_all_types_of_values_share_a_program(
    semiring: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, place = graph("two components", "least parent"), EXCHANGES["one device"].place
    pattern = place(made.A.pattern())
    matrices = [
        place(sg.Matrix.from_coo(made.rows, made.columns, values, nrows=96, ncols=96))
        for values in (np.arange(pattern.nvals), np.arange(pattern.nvals) / 2)
    ]
    compile_, texts = one_device.kernel_of, []
    monkeypatch.setattr(
        one_device, "kernel_of", lambda *given: texts.append(given[1]) or compile_(*given)
    )
    shim_exchanges.install(monkeypatch)
    start = sg.Vector.unit(5, 1, size=96, dtype=pattern.index_dtype)
    expected: Any = search(pattern, start, semiring)
    for A in matrices:
        for direction in ("auto", "pull"):
            found: Any = search(A, start, semiring, direction=direction)  # type: ignore[arg-type]
            assert found.level.isequal(expected.level)
            assert semiring == any_pair or found.value.isequal(expected.value)
    assert len(texts) == 3 and len(set(texts)) == 1  # once for each Matrix


@pytest.mark.parametrize("case", ["least parent", "least parent, column"])
def test_levels_that_are_pushed_in_parts(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part finds what those before have not, and the next level pushes or pulls from all."""
    monkeypatch.setattr(directions, "PARTS_EDGES", 0)
    A = {name: EXCHANGES["one device"].place(graph(name, case).A) for name in COVER}
    for name, placed_now in A.items():
        check(monkeypatch, name, case, "one device", placed_now, depths=(None, 2))
