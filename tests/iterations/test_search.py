"""The search loop on every device, against dense loops and the composed form."""

from __future__ import annotations

import itertools
import pathlib
from typing import Any

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401
from search_cases import CASES, GRAPHS, check_index_types, check_search, graph, matrix

import spgraph as sg
from spgraph.backends.loops import LevelSearch
from spgraph.iterations.level_search import (
    TRANSPOSE_FROM,
    composed_search,
    search,
    typed_for_rounds,
)
from spgraph.semirings import any_pair, min_plus, min_secondi, plus_first

DIRECTIONS = ("auto", "push", "pull")
# each is compiled; the others have two graphs
COVER = ("levels", "least parent", "any parent", "paths", "distance")


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("case", COVER)
@pytest.mark.parametrize("name", GRAPHS)
def test_search_equals_plain_loops(name: str, case: str, direction: str, device: str) -> None:
    check_search(name, case, lambda container: container.to(device), direction)


@pytest.mark.full
@pytest.mark.parametrize("case", [case for case in CASES if case not in COVER])
@pytest.mark.parametrize("name", ["skewed both", "sparse directed"])
def test_all_semirings(name: str, case: str, device: str) -> None:
    for direction in DIRECTIONS:
        check_search(name, case, lambda container: container.to(device), direction)


@pytest.mark.parametrize("max_depth", [0, 1, 2, 5])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_max_depth(direction: str, max_depth: int, device: str) -> None:
    for name in ("path", "skewed both", "many sources"):
        check_search(name, "least parent", lambda x: x.to(device), direction, max_depth)


# for searches by marks after the first level
MARKING = {"LONG": 1, "SEEN": 0, "WORTH_LEAVING": 0, "WORTH_COMPILING": 0, "THIN_LEVEL": 0}
MARKING |= {"ODD_LEVELS": 1 << 20, "ODD_PARENTS": 1 << 20}
# for searches of thin levels after the first level
THINNING = {**MARKING, "THIN_LEVEL": 1 << 20, "ODD_LEVELS": 0, "ODD_PARENTS": 0}


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_thread_counts_agree(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small graphs run on one thread; here they are made to share."""
    from spgraph.backends.cpu.runtime import pool
    from spgraph.backends.cpu.search import search as module

    monkeypatch.setattr(pool, "processors", lambda: 3)
    monkeypatch.setattr(pool, "threads_for", lambda work, *share: threads)
    for name, value in {"ALONE": 8, "SHARED": 2, "VERTICES": 4, "HEAVY": 20, **MARKING}.items():
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(module, "_kernels", module._kernels.__wrapped__)  # without its cache
    pool.close()
    try:
        for name in GRAPHS:
            for case in ("levels", "least parent", "paths"):
                for direction in DIRECTIONS:
                    check_search(name, case, direction=direction)
    finally:
        pool.close()


@pytest.mark.parametrize("few", [8, 1 << 20])
@pytest.mark.parametrize("case", ["levels", "paths"])
def test_thin_levels_need_not_be_told_apart(
    case: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here all are thin, up to a vertex of many edges, to many that wait or to the last level."""
    from spgraph.backends.cpu.search import search as module

    runs, run_thin = [], module._run_thin

    def counted(*given: Any) -> None:
        runs.append(given)
        run_thin(*given)

    for name, value in {**THINNING, "FEW": few}.items():
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(module, "_run_thin", counted)
    monkeypatch.setattr(module, "_kernels", module._kernels.__wrapped__)  # without its cache
    for name in GRAPHS:
        for max_depth in (2, 3, 42, None):
            check_search(name, case, max_depth=max_depth)
    assert len(runs) > 10


@pytest.mark.parametrize("case", ["levels", "least parent"])
def test_long_searches_mark_vertices(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread marks what it visits after some levels; here after the first."""
    from spgraph.backends.cpu.search import search as module

    runs, run_marked = [], module._run_marked

    def counted(*given: Any) -> None:
        runs.append(given)
        run_marked(*given)

    for name, value in MARKING.items():
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(module, "_run_marked", counted)
    monkeypatch.setattr(module, "_kernels", module._kernels.__wrapped__)  # without its cache
    for name in GRAPHS:
        for max_depth in (2, 3, 4, None):
            check_search(name, case, max_depth=max_depth)
    assert len(runs) > 10


def test_a_first_long_search_does_not_wait_for_the_kernel_of_marks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Levels and parents are the same without marks; the next search of the matrix compiles it."""
    from spgraph.backends.cpu.search import search as module

    runs, run_marked = [], module._run_marked

    def counted(*given: Any) -> None:
        runs.append(given)
        run_marked(*given)

    monkeypatch.setattr(module, "_run_marked", counted)
    for name, value in {**MARKING, "WORTH_COMPILING": 1 << 60, "LONG": 3}.items():
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(module, "_kernels", module._kernels.__wrapped__)  # without its cache
    path = sg.generators.grid(1, 50)
    found = [sg.bfs(path, 20) for _ in range(3)]
    assert len(runs) == 2
    for levels, parents in found:
        assert levels.to_numpy().tolist() == [abs(v - 20) for v in range(50)]
        assert parents.to_numpy().tolist() == [v + (v < 20) - (v > 20) for v in range(50)]


def test_one_thread_leaves_out_the_edges_of_the_last_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """With marks as without: all vertices are found before that."""
    from spgraph.backends.cpu.search import search as module

    path = sg.generators.grid(1, 50)
    expected = sg.bfs(path, 20, parents=False, direction="push", trace=True).trace
    for name, value in MARKING.items():
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(module, "_kernels", module._kernels.__wrapped__)  # without its cache
    found = sg.bfs(path, 20, parents=False, direction="push", trace=True).trace
    assert [level[:4] for level in found] == [level[:4] for level in expected]
    assert found[-1].edges == 0


SETTLING = """
@kernel
def settling(
    thread, threads, sync, indptr, indices, level, value, visited, marks, depth, queues, turn, team,
    queue, found
):
    found[:] = settle_marked(
        indptr, indices, level, value, visited, marks, depth, queues, turn, team, queue
    )
"""


def test_a_vertex_that_two_threads_found_is_settled_once(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queues of two threads have more vertices than there are in all."""
    from spgraph.backends.cpu.runtime import jit, pool
    from spgraph.backends.cpu.search import search as module

    typed = min_secondi.resolve(np.dtype(np.int32), np.dtype(bool))
    text = module.program("search_marked", typed, True, True, False)
    text += jit.text_of("search_marked")
    (tmp_path / "room" / "kernels").mkdir(parents=True)
    (tmp_path / "room" / "kernels" / "given.py").write_text(SETTLING)
    monkeypatch.setattr(jit, "BACKEND", tmp_path)
    kernel = jit.module("given", text).settling
    star = sg.Matrix.from_coo([0] * 4 + [1, 2, 3, 4], [1, 2, 3, 4] + [0] * 4)
    level, value, found = np.zeros(5, np.int32), np.zeros(5, np.int32), np.zeros(2, np.int64)
    visited, marks = np.zeros(1, np.uint32), np.zeros(32, np.uint8)
    marks[:5] = 1, 2, 2, 2, 2  # of the levels 0 and 1
    queues, team = np.zeros((2, 6), np.int32), np.zeros(80 + 2 * 16, np.int64)
    queues[0, :4], queues[1, :4], team[[80 + 8, 96 + 8]] = [1, 2, 3, 4], [4, 3, 2, 1], 4
    queue = np.full(8, 7, np.int32)
    given = (star._indptr, star._indices, level, value, visited, marks, 1, queues, 0, team, queue)
    pool.launch(kernel, 1, *given, found)
    assert found.tolist() == [4, 5]
    assert queue.tolist() == [1, 2, 3, 4, 7, 7, 7, 7]
    assert level.tolist() == [0, 1, 1, 1, 1] and value.tolist() == [0] * 5
    assert visited.tolist() == [31]


# what a graph of very many edges has; each case is two searches to compile
WIDE = [(np.int32, np.int64, True)]


@pytest.mark.parametrize(
    ("ids", "offsets", "parents"),
    [
        pytest.param(*case, marks=() if case in WIDE else pytest.mark.full)
        for case in itertools.product((np.int32, np.int64), (np.int32, np.int64), (True, False))
    ],
)
def test_index_types_of_a_directed_graph(
    ids: Any, offsets: Any, parents: bool, device: str
) -> None:
    """Those of the transpose are the smallest, whatever the matrix has."""
    check_index_types(ids, offsets, parents, device)


# compiled in both forms; each form of the others is compared with dense loops above, the composed
# one on the minimal backend
OTHERS = ("levels", "truth", "paths", "distance")
FUSED = ["least parent", *(pytest.param(case, marks=pytest.mark.full) for case in OTHERS)]


@pytest.mark.fused
@pytest.mark.parametrize("case", FUSED)
@pytest.mark.parametrize(
    "name", ["skewed both", "sparse directed", "two components", "many sources"]
)
def test_fused_equals_composed(name: str, case: str, device: str) -> None:
    made, semiring = graph(name, case), CASES[case].semiring
    A, start = made.A.to(device), made.start().to(device)
    typed = typed_for_rounds("search", semiring, start.dtype, A.dtype, A.index_dtype)
    level, value, _ = composed_search(A, A.T, start, LevelSearch(A.nrows, typed, first_hit=False))
    for direction in DIRECTIONS:
        fast = search(A, start, semiring, direction=direction)
        assert fast.level.isequal(level)
        if fast.value is not None:
            assert fast.value.isequal(value, check_dtype=True)


@pytest.mark.parametrize("semiring", [any_pair, min_secondi], ids=repr)
def test_graphs_of_all_types_of_values_share_a_compiled_kernel(
    semiring: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spgraph.backends.cpu.search import search as module

    found = []

    def kernels(*meant: Any) -> Any:
        found.append(original(*meant))
        return found[-1]

    original = module._kernels
    monkeypatch.setattr(module, "_kernels", kernels)
    A = matrix("sparse directed")
    start = sg.Vector.unit(1, 1, size=A.nrows, dtype=A.index_dtype)
    first = search(A, start, semiring)
    compiled = list(found[-1].search.signatures)
    for values in (True, 0.5, np.arange(A.nvals, dtype=np.float32)):
        rows, columns, _ = A.to_coo()
        B = sg.Matrix.from_coo(rows, columns, values, nrows=A.nrows, ncols=A.ncols)
        assert search(B, start, semiring).level.isequal(first.level)
    searches = {id(each) for each in found if hasattr(each, "search")}
    assert len(searches) == 1 and list(found[-1].search.signatures) == compiled


def test_values_of_the_matrix_count(device: str) -> None:
    """min_plus in levels: the least sum over the shortest paths in edges, not the shortest
    distance.
    """
    rows, columns, weights = [0, 0, 1, 2, 0], [1, 2, 3, 3, 3], [5, 1, 1, 1, 100]
    A = sg.Matrix.from_coo(rows, columns, weights, nrows=4, ncols=4).to(device)
    start = sg.Vector.from_coo([0], [0], size=4, device=device)
    for direction in DIRECTIONS:
        assert search(A, start, min_plus, direction=direction).value.to_numpy().tolist() == [
            0,
            5,
            1,
            100,
        ]
    B = sg.Matrix.from_coo([0, 0, 1, 2], [1, 2, 3, 3], [5, 1, 1, 9], nrows=4, ncols=4).to(device)
    for direction in DIRECTIONS:
        assert search(B, start, min_plus, direction=direction).value.to_numpy().tolist() == [
            0,
            5,
            1,
            6,
        ]


def test_trace_rows(device: str) -> None:
    A = sg.generators.kronecker(12, 16).to(device)
    source = 17
    start = sg.Vector.unit(source, True, size=A.nrows, dtype=bool, device=device)
    found = search(A, start, any_pair, trace=True)
    plain = search(A, start, any_pair)
    assert plain.trace is None and plain.level.isequal(found.level)
    levels = found.level.to_numpy(fill=-1)
    sizes = np.bincount(levels[levels >= 0])
    assert [row.frontier for row in found.trace] == sizes.tolist()
    assert [row.depth for row in found.trace] == list(range(len(found.trace)))
    degrees = np.diff(A.to("cpu").indptr)
    for row in found.trace:
        if row.direction == "push" and row.depth < len(sizes) - 1:
            assert row.edges == degrees[levels == row.depth].sum()
        assert row.edges >= 0 and 0 <= row.seconds < 10
    assert "pull" in {row.direction for row in found.trace}
    for forced in ("push", "pull"):
        rows = search(A, start, any_pair, direction=forced, trace=True).trace
        assert {row.direction for row in rows} == {forced}
    traced = search(A, start, any_pair, trace=np.True_)  # the kernel's text must not hold it
    assert [row.frontier for row in traced.trace] == sizes.tolist()
    for given in (1, "False", object(), np.float64(2)):
        with pytest.raises(TypeError, match="search: trace: expected True or False"):
            search(A, start, any_pair, trace=given)
    assert search(A, start, any_pair, trace=np.False_).trace is None


def test_start_without_entries(device: str) -> None:
    A = matrix("path").to(device)
    found = search(A, sg.Vector.empty(64, np.int32, device=device), min_secondi, trace=True)
    assert found.level.nvals == 0 and found.value.nvals == 0 and found.trace == []


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda A: search(A, sg.Vector.empty(5), any_pair),
            ValueError,
            "search: start.size 5 != A.nrows 64",
        ),
        (
            lambda A: search(A, sg.Vector.empty(64), 3),
            TypeError,
            "semiring: expected a Semiring",
        ),
    ],
)
def test_bad_input(call: Any, error: type[Exception], message: str) -> None:
    A = matrix("path")
    with pytest.raises(error, match=message.replace("(", r"\(").replace(")", r"\)")):
        call(A)


@pytest.mark.gpu
def test_start_on_another_device() -> None:
    with pytest.raises(RuntimeError, match=r"start is on cpu, A on cuda:0"):
        search(matrix("path").to("cuda"), sg.Vector.empty(64), any_pair)


@pytest.mark.gpu
@pytest.mark.parametrize("semiring", [any_pair, min_secondi, plus_first], ids=repr)
def test_large_graph_equals_cpu(semiring: Any) -> None:
    A = sg.generators.kronecker(18, 16)
    G = A.to("cuda")
    for source in np.flatnonzero(np.diff(A.indptr))[[3, 1000, -5]].tolist():
        one = 1.0 if semiring == plus_first else source
        start = sg.Vector.from_coo([source], [one], size=A.nrows)
        expected = search(A, start, semiring)
        for direction in DIRECTIONS:
            found = search(G, start.to("cuda"), semiring, direction=direction)
            assert found.level.to("cpu").isequal(expected.level)
            if found.value is not None:
                assert found.value.to("cpu").isequal(expected.value)


@pytest.mark.fused
def test_few_edges_are_pushed_without_a_transpose() -> None:
    # of a ring and its chords, which nobody has asked whether it is symmetric
    for n, made in ((100, False), (TRANSPOSE_FROM, True)):
        ids = np.arange(n)
        A = sg.Matrix.from_coo(ids, (ids + 1) % n, nrows=n, ncols=n)
        start = sg.Vector.from_coo([0], [0], size=n, dtype=A.index_dtype)
        assert search(A, start, min_secondi).level.to_numpy().tolist() == list(range(n))
        assert A.has_transpose == made
