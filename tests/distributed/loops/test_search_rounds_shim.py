"""Search in rounds without GPUs: its kernels under the shim, shards in plain memory, exchanged by
the communicator of one process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cuda_host_shim
import numpy as np
import pytest

import spgraph as sg
import tests.distributed.loops.test_search_peers_shim as graphs
from spgraph.backends import cuda
from spgraph.backends.cuda.runtime import jit
from spgraph.backends.cuda.search import search_rounds
from spgraph.distributed import LocalCommunicator, Placement
from spgraph.distributed.exchange import host_counters
from spgraph.distributed.loops import search_rounds as rounds
from spgraph.semirings import min_secondi

pytestmark = pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")

NEVER = 10**6


@pytest.fixture(autouse=True)
def on_the_shim(monkeypatch: pytest.MonkeyPatch) -> None:
    # few and small, so that graphs of a few hundred vertices see every form of a level
    monkeypatch.setattr(search_rounds, "THREADS", 64)
    monkeypatch.setattr(search_rounds, "LONG_ROW", 128)
    monkeypatch.setattr(search_rounds, "AHEAD_VERTICES", 4)
    monkeypatch.setattr(search_rounds, "AHEAD", 6)
    monkeypatch.setattr(rounds, "LIST_EDGES", 16)
    monkeypatch.setattr(rounds, "CONVERT_EDGES", 0)
    monkeypatch.setattr(jit, "current_device", lambda: 0)
    monkeypatch.setattr(Placement, "kernels", cuda)


def spread(
    name: str, cuts: Sequence[float], relabelled: bool = False, ids: str = "i4"
) -> tuple[Any, Any, Any]:
    """(the graph in shards that begin at these shares of its vertices, its SciPy form, sources)."""
    S, symmetric, sources = graphs.graph(name)
    S = S.copy()
    S.indptr, S.indices = S.indptr.astype(ids), S.indices.astype(ids)
    n = S.shape[0]
    owner = np.searchsorted([int(x * n) for x in cuts], np.arange(n), side="right")
    if relabelled:
        owner = np.random.default_rng(3).permutation(owner)
    A = sg.Matrix.from_scipy(S)
    A.symmetric = symmetric
    return A.distribute(len(cuts) + 1, partition=owner), S, sources


def run(
    G: Any, sources: Sequence[int], parents: bool, direction: str, depth: int, **more: Any
) -> tuple[np.ndarray, np.ndarray | None, Any]:
    """(levels, parents, trace), -1 where not reached."""
    ids = np.array(sources)
    start = sg.Vector.from_coo(ids, ids, size=G.nrows).to(G.device)
    ring = min_secondi.resolve(start.dtype, G.dtype) if parents else None
    T = more.pop("T", G.T)
    level: Any
    value: Any
    level, value, trace = rounds.search(
        G, T, start, ring, direction, depth, more.get("trace", False)
    )
    assert level.nvals == level.gather().to_coo()[0].size
    home = value.gather().to_numpy(fill=-1) if value is not None else None
    return level.gather().to_numpy(fill=-1), home, trace


def check(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    cuts: Sequence[float],
    *,
    relabelled: bool = False,
    depths: Sequence[int] = (NEVER,),
    directions: Sequence[str] = ("auto", "push", "pull"),
    T: bool = True,
    ids: str = "i4",
) -> None:
    """Levels and parents equal those of plain loops, in all directions, by the same shards."""
    with monkeypatch.context() as patch:
        G, S, sources = spread(name, cuts, relabelled, ids)
        G.T.shards  # noqa: B018 - made before kernels go to the shim
        cuda_host_shim.install(patch)
        for depth in depths:
            level, parent = graphs.breadth_first(S, sources, np.arange(S.shape[0]), depth)
            for direction in directions:
                for parents in (True, False):
                    more = {} if T else {"T": None}
                    got, given, _ = run(G, sources, parents, direction, depth, **more)
                    np.testing.assert_array_equal(got, level, f"{direction} {parents} {depth}")
                    if parents:
                        np.testing.assert_array_equal(given, parent, f"{direction} {depth}")


@pytest.mark.parametrize("name", graphs.NAMES)
def test_three_shards(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check(monkeypatch, name, (0.3, 0.71))


def test_one_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    check(monkeypatch, "skewed", (), depths=(NEVER, 2, 1, 0))


def test_a_shard_that_owns_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    check(monkeypatch, "directed", (0.0, 0.4), depths=(NEVER, 2))


def test_relabelled_vertices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parents are the least of the user's ids, whatever the order inside."""
    for name in ("skewed", "directed", "funnel"):
        check(monkeypatch, name, (0.3, 0.4), relabelled=True)


def test_wide_indices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of A alone: its transpose takes what it needs."""
    check(monkeypatch, "directed", (0.3, 0.71), ids="i8", directions=("auto",))


def test_without_a_transpose(monkeypatch: pytest.MonkeyPatch) -> None:
    check(monkeypatch, "directed", (0.3, 0.6), T=False)


def test_union_by_two_exchanges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "GATHER_BYTES", 0)
    for name in ("skewed", "dense directed"):
        check(monkeypatch, name, (0.3, 0.71), directions=("push",))


def test_counts_of_several_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """They travel by the communicator: here it says that there are others."""
    G, S, sources = spread("skewed", (0.3, 0.71))
    cuda_host_shim.install(monkeypatch)
    level, parent = graphs.breadth_first(S, sources, np.arange(S.shape[0]), NEVER)
    monkeypatch.setattr(LocalCommunicator, "processes", 2)
    monkeypatch.setattr(host_counters, "wait_for_counts", None)
    for direction in ("auto", "push", "pull"):
        got, given, _ = run(G, sources, True, direction, NEVER)
        np.testing.assert_array_equal(got, level)
        np.testing.assert_array_equal(given, parent)


def test_a_search_that_failed_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    G, S, sources = spread("grid", (0.3, 0.71))
    cuda_host_shim.install(monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(rounds.Rounds, "settle_lists", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(G, sources, True, "push", NEVER)
    level, _ = graphs.breadth_first(S, sources, np.arange(S.shape[0]), NEVER)
    np.testing.assert_array_equal(run(G, sources, True, "push", NEVER)[0], level)


def test_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    G, S, sources = spread("skewed", (0.4, 0.8))
    cuda_host_shim.install(monkeypatch)
    degrees = np.diff(S.indptr)
    for direction in ("auto", "push", "pull"):
        level, _, trace = run(G, sources, False, direction, NEVER, trace=True)
        assert len(trace) == level.max()
        for depth, (way, frontier, edges, time) in enumerate(trace.tolist()):
            assert way in {"auto": (1, 2), "push": (1,), "pull": (2,)}[direction]
            assert frontier == (level == depth).sum()
            assert edges == degrees[level == depth].sum()
            assert time > 0
