"""How many threads a call wakes, and what kernels are given."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spgraph as sg
from spgraph.backends.cpu.entrywise.rows import FEW, shares
from spgraph.backends.cpu.runtime import pool
from spgraph.backends.cpu.search.search import Arguments, search


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The numbers of threads of all launches from now on, in calls that ask for two."""
    found: list[int] = []

    def launch(kernel: Any, threads: int, *given: Any) -> None:
        found.append(threads)
        original(kernel, threads, *given)

    original = pool.launch
    monkeypatch.setattr(pool, "threads_for", lambda work, *share: 2)
    monkeypatch.setattr(pool, "processors", lambda: 2)
    monkeypatch.setattr(pool, "launch", launch)
    pool.close()
    yield found
    pool.close()


def path(n: int) -> sg.Matrix:
    i = np.arange(n - 1)
    return sg.Matrix.from_coo(i, i + 1, 2, nrows=n, ncols=n)


@pytest.mark.parametrize("call", [sg.bfs, sg.sssp])
def test_no_thread_is_woken_for_levels_that_one_runs_alone(call: Any, launches: list[int]) -> None:
    A = path(50)
    assert A.T.indptr.size == 51  # makes the transpose, which is no part of the call
    launches.clear()
    found = call(A, 0, parents=False)
    assert set(launches) == {1}
    assert found[0].to_numpy().tolist() == [i * (1 if call is sg.bfs else 2) for i in range(50)]


def test_all_threads_go_on_where_one_has_left_off(launches: list[int]) -> None:
    """A path leads to a hub with edges to all others, whose level is shared."""
    n, steps = 70_000, 5
    leaves = np.arange(steps + 1, n)
    rows = np.concatenate([np.arange(steps), np.full(leaves.size, steps)])
    A = sg.Matrix.from_coo(
        rows, np.concatenate([np.arange(1, steps + 1), leaves]), 2, nrows=n, ncols=n
    )
    expected = np.concatenate([np.arange(steps + 1), np.full(leaves.size, steps + 1)])
    assert (sg.bfs(A, 0, parents=False, direction="push").level.to_numpy() == expected).all()
    assert launches == [1, 2]
    assert (sg.sssp(A, 0, parents=False).distance.to_numpy() == 2 * expected).all()
    assert launches[:4] == [1, 2, 1, 2] and set(launches[4:]) <= {2}


@pytest.mark.parametrize("parents", [False, True])
def test_a_pull_that_finds_all_at_once_wakes_no_thread(parents: bool, launches: list[int]) -> None:
    """In a complete bipartite graph a level of a million edges takes one thread two probes for each
    of a thousand vertices.
    """
    n = 1000
    A = np.zeros((2 * n, 2 * n), bool)
    A[:n, n:] = A[n:, :n] = True
    A = sg.Matrix.from_dense(A)
    assert A.is_symmetric()
    launches.clear()
    found = sg.bfs(A, 0, parents=parents)
    assert launches == [1]
    assert found.level.to_numpy().tolist() == [0] + [2] * (n - 1) + [1] * n
    if parents:
        assert found.parent.to_numpy().tolist() == [0] + [n] * (n - 1) + [0] * n


@pytest.mark.parametrize("work, threads", [(0, 1), (399_999, 1), (400_000, 2), (10**12, 8)])
def test_threads_for_work(work: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "processors", lambda: 8)
    assert pool.threads_for(work) == threads
    assert type(pool.threads_for(np.int64(work))) is int


@pytest.mark.parametrize("large", [False, True])
def test_one_source_whose_levels_are_small_takes_one_thread(
    large: bool, launches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on roads; large ones are shared, with the same result."""
    host = importlib.import_module("spgraph.backends.cpu.dependencies.dependencies")
    monkeypatch.setattr(host, "ALONE", 4096 if not large else 1)
    i = np.arange(49)
    A = sg.Matrix.from_coo(np.append(i, i + 1), np.append(i + 1, i), nrows=50, ncols=50)
    assert A.is_symmetric()
    launches.clear()
    found = sg.betweenness_centrality(A, sources=[0], normalized=False).to_numpy()
    assert max(launches) == (2 if large else 1)
    # directed: every path from 0 to a vertex behind
    assert np.allclose(found[1:], 48 - i), found


@pytest.mark.parametrize("count", [1, FEW, FEW + 1, 300])
def test_shares_are_of_equal_work(count: int) -> None:
    rng = np.random.default_rng(count)
    sizes = rng.integers(0, 9, (2, 100)) * (rng.random((2, 100)) < 0.5)
    sizes[0, 40] = 500
    pointers = tuple(np.concatenate(([0], np.cumsum(row))).astype(np.int32) for row in sizes)
    before = np.arange(101) + sum(pointers)
    wanted = [before[-1] * c // count for c in range(1, count)]
    expected = [0, *(int((before < work).sum()) for work in wanted), 100]
    for given, bounds in ((pointers, expected), ((pointers[0][:1],), (count + 1) * [0])):
        found = shares(count, given)
        assert found.tolist() == bounds and found.dtype == np.int64


def test_arguments_of_the_search_have_the_names_and_the_order_of_its_kernel() -> None:
    text = Path(inspect.getfile(search)).parent.joinpath("kernels", "search.py").read_text("utf-8")
    functions = {node.name: node for node in ast.parse(text).body if hasattr(node, "args")}
    names = [argument.arg for argument in functions["search"].args.args]
    assert names == ["thread", "threads", "sync", *Arguments._fields, "trace"]
