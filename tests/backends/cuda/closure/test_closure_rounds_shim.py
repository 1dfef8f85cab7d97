"""The CUDA closure in rounds without a GPU, beside what test_closure_shim.py looks at."""

from __future__ import annotations

from typing import Any

import cuda_host_shim
import pytest
from closure_cases import CASES, entries, expected, graph

from spgraph.backends.cuda.closure import closure_rounds as closure_shard
from spgraph.benchmarking.exchange import in_rounds
from spgraph.distributed import LocalCommunicator
from spgraph.distributed.exchange import lockstep
from spgraph.distributed.loops import closure as closures
from spgraph.distributed.loops.sharded_graph import closure_graph, sparse_entries
from spgraph.semirings import max_min
from tests.backends.cuda.closure.test_closure_shim import (  # noqa: F401
    DISTANCES,
    fused,
    place,
    placed,
    small,
    start_on_the_shim,
)

pytestmark = pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")


@pytest.mark.parametrize("name", ["grid", "skewed both"])
def test_relaxations_stay_few(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three shards look at no more than half again as many edges as one."""
    made, counts = graph(name, CASES["distance"]), []
    for exchange in ("rounds, 1 shard", "rounds, 3 shards"):
        A = placed(name, "distance", exchange)
        with monkeypatch.context() as patch:
            start_on_the_shim(patch)
            start = sparse_entries(made.v.to(A.device))
            parts = closures.in_rounds(A, *start, DISTANCES, 20)
            watched, seen = in_rounds(A)
            start = sparse_entries(made.v.to(watched.device))
            again = closures.in_rounds(watched, *start, DISTANCES, 20)
        counts.append(sum(part.relaxations for part in parts))
        # what a benchmark reports of such a closure
        cost = seen.cost(None, None, 1.0)
        assert cost.edges == sum(part.relaxations for part in again) and cost.rounds > 2
        assert all(
            (one.values == other.values).all() for one, other in zip(parts, again, strict=True)
        )
    assert made.A.nvals <= 2 * counts[0] and counts[1] <= 1.5 * counts[0]


def test_counts_of_several_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """They travel by the communicator: here it says that there are others."""
    made = graph("skewed both", CASES["distance"])
    A = place(made.A, "rounds, 3 shards")
    start = made.v.to(A.device)
    start_on_the_shim(monkeypatch)
    monkeypatch.setattr(LocalCommunicator, "processes", 2)
    monkeypatch.setattr(lockstep, "wait_for_counts", None)
    assert entries(fused(A, start, DISTANCES, 9)) == expected("skewed both", CASES["distance"])


def test_all_processes_gather_together() -> None:
    """Pairs that wait in another process hold the gather up in this one too."""
    sums, flags = [0] * (closure_shard.COUNTS + 2), closure_shard.ENDS_THRESHOLD
    assert closure_shard.following(sums, flags, True) == closure_shard.RELAX
    assert closure_shard.following(sums, flags, False) == closure_shard.BUCKETS


def test_semirings_in_turn_are_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They share the memory of the shards."""
    made: list[Any] = []
    init = closure_shard.Shard.__init__
    monkeypatch.setattr(
        closure_shard.Shard, "__init__", lambda *given: (made.append(given[-3]), init(*given))[1]
    )
    A = place(graph("skewed both", CASES["distance"]).A, "rounds, 3 shards")
    start = graph("skewed both", CASES["distance"]).v
    semirings = (DISTANCES, max_min.resolve("int64", "int64"))
    start_on_the_shim(monkeypatch)
    found = [entries(fused(A, start, semiring, None)) for semiring in (*semirings, *semirings)]
    assert found[0] == expected("skewed both", CASES["distance"])
    assert found[:2] == found[2:] and found[0] != found[1]
    assert made == [semiring for semiring in semirings for _ in range(3)]  # one a shard
    kept = closure_graph(A).derived
    assert sum("memory of closures in rounds" in key for key in kept if isinstance(key, tuple)) == 3


@pytest.mark.parametrize("round_", [1, 2])
def test_a_closure_that_failed_leaves_nothing_behind(
    round_: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shards count rounds for themselves: the one that failed has counted one that others have
    not begun.
    """
    made = graph("skewed both", CASES["distance"])
    A, start = place(made.A, "rounds, 3 shards"), made.v
    start_on_the_shim(monkeypatch)
    launch = closure_shard.Shard.launch

    def fails(shard: Any, *given: Any) -> None:
        launch(shard, *given)
        if shard.number == 1 and shard.round == round_:
            raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(closure_shard.Shard, "launch", fails)
        with pytest.raises(ZeroDivisionError):
            fused(A, start, DISTANCES, 9)
    assert entries(fused(A, start, DISTANCES, 9)) == expected("skewed both", CASES["distance"])
