"""Closures in rounds without GPUs: the kernels under the shim, shards in plain memory, exchanged by
the communicator of one process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cuda_host_shim
import numpy as np
import pytest
from closure_cases import CASES, entries, expected, fixed_point, graph

import spgraph as sg
from spgraph.backends import cuda
from spgraph.backends.cuda.closure import closure_rounds as kernels
from spgraph.backends.cuda.runtime import jit
from spgraph.backends.shards import closure as protocol
from spgraph.containers import Matrix, Vector
from spgraph.distributed import LocalCommunicator, Placement
from spgraph.distributed.exchange import host_counters
from spgraph.distributed.loops import closure_rounds
from spgraph.errors import ConvergenceError
from spgraph.semirings import min_plus, monoid

pytestmark = pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")

THIRDS = (0.3, 0.71)
THRESHOLDS = ("SATURATED_EDGES", "THRESHOLD_EDGES", "ALONE")
FULL = pytest.mark.full
# values of every width, limits that rise and fall, and none
COVER = ("distance, float32", "width", "narrowness", "reached")
DISTANCES = min_plus.resolve("int64", "int64")


@pytest.fixture(autouse=True)
def few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "THREADS", 64)
    monkeypatch.setattr(jit, "current_device", lambda: 0)
    monkeypatch.setattr(Placement, "kernels", cuda)


def to_the_shim(monkeypatch: pytest.MonkeyPatch, **chosen: int) -> None:
    """Let kernels run under the shim, and decide by other thresholds."""
    cuda_host_shim.install(monkeypatch)
    cuda_host_shim.with_thresholds(monkeypatch, ["closure_rounds"], THRESHOLDS, **chosen)


def spread(A: Matrix, cuts: Sequence[float], relabelled: bool = False) -> Any:
    """A in shards that begin at these shares of its vertices."""
    owner = np.searchsorted([int(x * A.nrows) for x in cuts], np.arange(A.nrows), side="right")
    if relabelled:
        owner = np.random.default_rng(3).permutation(owner)
    return A.distribute(len(cuts) + 1, partition=owner)


def run(G: Any, start: Vector, typed: Any, delta: Any) -> dict[int, Any]:
    """The entries of the closure."""
    return entries(closure_rounds.closure(G, start.to(G.device), typed, delta).gather())


def check(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    case: str,
    cuts: Sequence[float] = THIRDS,
    *,
    deltas: Sequence[Any] = (3,),
    transposed: bool = True,
    relabelled: bool = False,
    **chosen: int,
) -> Any:
    """The closure of a graph in shards equals that of plain loops."""
    made, kind = graph(name, CASES[case]), CASES[case]
    typed = kind.ring.resolve(made.v.dtype, made.A.dtype)
    G = spread(made.A, cuts, relabelled)
    if transposed:
        view = G.T
        view.shards  # noqa: B018 - made before kernels go to the shim
    ordered = kind.ring.monoid in (monoid.min, monoid.max)
    with monkeypatch.context() as patch:
        to_the_shim(patch, **chosen)
        for delta in deltas:
            found = run(G, made.v, typed, delta if ordered else None)
            assert found == expected(name, kind), delta
    return G


NAMES = (
    "one", "loop", "path", "star both", "two components", "sparse directed", "dense directed",
    "skewed both", "many sources", "acyclic", "grid", "isolated vertices",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_three_shards(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check(monkeypatch, name, "distance, zeros", deltas=(0.6, 20, None))


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=() if case in COVER else FULL) for case in CASES]
)
def test_semirings(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check(monkeypatch, "skewed both", case)


@pytest.mark.parametrize("edges", [0, 40])
def test_saturated_queues_and_thresholds(edges: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = {"SATURATED_EDGES": edges, "THRESHOLD_EDGES": 1}
    gathered: list[Any] = []
    gather = closure_rounds.Rounds.gather

    def noted(self: Any) -> None:
        gathered.append(self)
        gather(self)

    monkeypatch.setattr(closure_rounds.Rounds, "gather", noted)
    for name in ("dense directed", "skewed both", "grid", "many sources"):
        check(monkeypatch, name, "distance, zeros", deltas=(0.05, 2, 10**6), **chosen)
    assert gathered, "a threshold ended in a pull"


def test_one_shard_and_empty_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    for cuts in ((), (0.0, 0.4), (0.4, 0.4)):
        check(monkeypatch, "skewed both", "distance, zeros", cuts, deltas=(2,), THRESHOLD_EDGES=1)


def test_relabelled_vertices(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("skewed both", "sparse directed"):
        check(monkeypatch, name, "distance, zeros", relabelled=True)
        check(monkeypatch, name, "distance, zeros", transposed=False)


def test_relaxations_stay_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three shards look at no more than half again as many edges as one."""
    for name in ("grid", "skewed both"):
        counts = []
        for cuts in ((), THIRDS):
            G = check(monkeypatch, name, "distance", cuts, deltas=(20,))
            rounds = G._derived["closure_both"].derived["rounds"]
            counts.append(rounds.relaxations)
        assert graph(name, CASES["distance"]).A.nvals <= 2 * counts[0]
        assert counts[1] <= 1.5 * counts[0]


def test_one_value_for_all_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    A = sg.generators.kronecker(8, 8, seed=1)
    source = int(np.diff(A.indptr).argmax())
    rows, columns = A.to_coo()[:2]
    edges = dict.fromkeys(zip(rows.tolist(), columns.tolist(), strict=True), 1)
    G = spread(A, THIRDS)
    to_the_shim(monkeypatch)
    start = Vector.unit(source, 0, size=256, dtype=np.int64)
    found = run(G, start, min_plus.resolve("int64", "bool"), 1)
    assert found == fixed_point(edges, {source: 0}, min, lambda x, a: x + a)


def test_counts_of_several_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """They travel by the communicator: here it says that there are others."""
    made = graph("skewed both", CASES["distance"])
    G = spread(made.A, THIRDS)
    to_the_shim(monkeypatch)
    monkeypatch.setattr(LocalCommunicator, "processes", 2)
    monkeypatch.setattr(host_counters, "wait_for_counts", None)
    assert run(G, made.v, DISTANCES, 9) == expected("skewed both", CASES["distance"])


@pytest.mark.parametrize("delta", [pytest.param(None, marks=FULL), 3])
@pytest.mark.parametrize("cycle", [(0, 1, 2), (0, 3, 4)])
def test_no_fixed_point(
    delta: Any, cycle: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cycle of negative length, in a shard or across two, ends in an error that has the last
    iterate; the next closure is none the worse for it.
    """
    i, j, k = cycle
    A = Matrix.from_coo([i, j, k, 5], [j, k, i, 0], [4, 3, -8, 1], nrows=7, ncols=7)
    G = spread(A, (3 / 7,))
    to_the_shim(monkeypatch, ALONE=4)
    start = Vector.unit(0, 0, size=7, dtype=np.int64)
    with pytest.raises(ConvergenceError, match=r"min_plus.*7 rounds") as caught:
        run(G, start, DISTANCES, delta)
    last: Any = caught.value.result
    assert set(entries(last.gather())) == set(cycle)
    assert run(G, Vector.unit(6, 4, size=7, dtype=np.int64), DISTANCES, delta) == {6: 4}


def test_all_processes_gather_together() -> None:
    """Pairs that wait in another process hold the gather up in this one too."""
    rounds: Any = object.__new__(closure_rounds.Rounds)
    rounds.received, calls = [None], []
    rounds.gather = lambda: calls.append("gather")
    counts = np.zeros((2, protocol.counts_of(2)), np.int64)
    counts[:, protocol.FLAGS] = protocol.ENDS_THRESHOLD
    counts[0, protocol.SENT + 1] = 3  # to shard 1, which another process has
    assert rounds.following(counts) == protocol.RELAX and not calls
    counts[:, protocol.SENT :] = 0
    assert rounds.following(counts) == protocol.BUCKETS and calls == ["gather"]
