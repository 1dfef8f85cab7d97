"""The CUDA search in rounds without a GPU, beside what test_search_shim.py looks at: what shards
send, keep and leave behind.
"""

from __future__ import annotations

import collections
import threading
from typing import Any

import cuda_host_shim
import numpy as np
import pytest
import shim_exchanges
from search_cases import CASES, gathered, graph, levels_and_values
from shim_exchanges import EXCHANGES

import spgraph as sg
from benchmarks.seeds import leading_neighbours
from spgraph.backends.cuda.search import search_rounds
from spgraph.distributed import LocalCommunicator
from spgraph.distributed.exchange import lockstep
from spgraph.distributed.loops.sharded_graph import sharded_graph
from spgraph.iterations import search
from spgraph.semirings import min_secondi
from tests.backends.cuda.search.test_search_shim import (  # noqa: F401
    DIRECTIONS,
    FORMS,
    check,
    placed,
    small,
)

pytestmark = pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")


@pytest.mark.parametrize("name", ["skewed both", "dense directed"])
def test_union_by_two_exchanges(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_rounds, "GATHER_BYTES", 0)
    check(monkeypatch, name, "levels", "rounds, 3 shards", directions=("push",))


def test_counts_of_several_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """They travel by the communicator: here it says that there are others."""
    A = EXCHANGES["rounds, 3 shards"].place(graph("skewed both", "least parent").A)
    start = graph("skewed both", "least parent").start().to(A.device)
    monkeypatch.setattr(LocalCommunicator, "processes", 2)
    monkeypatch.setattr(lockstep, "wait_for_counts", None)
    shim_exchanges.install(monkeypatch)
    level, value = levels_and_values("skewed both", "least parent")
    for direction in DIRECTIONS:
        found: Any = search(A, start, min_secondi, direction=direction)
        np.testing.assert_array_equal(gathered(found.level).to_numpy(fill=-1), level)
        got = gathered(found.value).to_coo()
        np.testing.assert_array_equal(got[1], value[got[0]])


@pytest.mark.parametrize("case", ["levels", "paths"])
@pytest.mark.parametrize("pulled", [0, 3])
def test_a_pull_that_is_expected_may_not_come(
    case: str, pulled: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pull is expected after every level; there is none, or one in three."""
    asked: collections.Counter[Any] = collections.Counter()

    def pulls(shard: Any, *_: Any) -> bool:
        asked[shard] += 1  # odd: for this level, even: whether one is expected after it
        return asked[shard] % 2 == 0 or bool(pulled and asked[shard] // 2 % pulled == 1)

    monkeypatch.setattr(search_rounds.Shard, "pulls", pulls)
    check(monkeypatch, "skewed both", case, "rounds, 3 shards", directions=("auto",))
    assert min(asked.values()) > 6


def test_semirings_in_turn_are_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They share the memory of the shards, where each finds its own identities."""
    monkeypatch.setattr(search_rounds, "LIST_EDGES", 0)
    made: list[Any] = []
    init = search_rounds.Shard.__init__
    monkeypatch.setattr(
        search_rounds.Shard,
        "__init__",
        lambda *given: (made.append(given[-2].semiring), init(*given))[1],
    )
    A = EXCHANGES["rounds, 3 shards"].place(graph("skewed both", "paths").A)
    cases = ("paths", "levels", "greatest label")
    for case in (*cases, *cases):
        check(monkeypatch, "skewed both", case, "rounds, 3 shards", A, directions=("push",))
    assert len(made) == 3 * len(cases)  # one a shard
    kept = sharded_graph(A, None).derived
    assert sum(isinstance(each, search_rounds.Memory) for each in kept.values()) == 3


@pytest.mark.parametrize("exchange", ["rounds, 1 shard", "rounds, relabelled", "rounds, one empty"])
def test_shards_receive_their_own_vertices_only(
    exchange: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a long push reaches of another shard's vertices goes to that shard alone, once."""
    monkeypatch.setattr(search_rounds, "LIST_EDGES", 0)
    settle, came = search_rounds.Shard.settle, []

    def noted(shard: Any, array: Any, lists: int, stride: int, length: int, depth: int) -> None:
        if length > 0:  # 32 bits of a vertex, as many unused, a path count
            came.append((shard.number, array.view(np.int32)[::4].copy()))
        settle(shard, array, lists, stride, length, depth)

    monkeypatch.setattr(search_rounds.Shard, "settle", noted)
    check(monkeypatch, "skewed both", "paths", exchange, directions=("push",))
    A = placed("skewed both", "paths", exchange)
    offsets = sharded_graph(A, None).offsets
    for number, ids in came:
        assert offsets[number] <= ids.min() and ids.max() < offsets[number + 1]
        assert np.unique(ids, return_counts=True)[1].max() <= len(offsets) - 1
    assert len(came) >= (1 if "1 shard" in exchange else 3)


def test_few_semirings_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spgraph.backends.shards.graph.MOST_PLANS", 2)
    A = EXCHANGES["rounds, 3 shards"].place(graph("skewed both", "paths").A)
    for case in ("paths", "levels", "greatest label", "paths"):
        check(monkeypatch, "skewed both", case, "rounds, 3 shards", A, directions=("auto",))
    kept = sharded_graph(A, A.T).plans("search in rounds", None)
    assert len(kept) == 1, "there is space for one more"


@pytest.mark.parametrize(("case", "fails"), [("least parent", "begin"), ("paths", "compact")])
def test_a_search_that_failed_leaves_nothing_behind(
    case: str, fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even partial sums, of the shard that has the source; and shards count on, each for
    itself.
    """
    monkeypatch.setattr(search_rounds, "LIST_EDGES", 0)
    A = EXCHANGES["rounds, 3 shards"].place(graph("skewed both", case).A)
    run = search_rounds.Shard.run

    def first_fails(shard: Any, name: str, *given: Any, **more: Any) -> None:
        if name == fails and shard.number == 0:
            raise ZeroDivisionError
        run(shard, name, *given, **more)

    with monkeypatch.context() as patch:
        patch.setattr(search_rounds.Shard, "run", first_fails)
        with pytest.raises(ZeroDivisionError):
            check(patch, "skewed both", case, "rounds, 3 shards", A, directions=("push",))
    check(monkeypatch, "skewed both", case, "rounds, 3 shards", A, directions=("push",))


@pytest.mark.parametrize("case", ["paths", "greatest label"])
def test_a_search_that_waited_for_one_that_failed(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not go on in what that has left, over the same semiring or another."""
    monkeypatch.setattr(search_rounds, "LIST_EDGES", 0)
    A = EXCHANGES["rounds, 3 shards"].place(graph("skewed both", "paths").A)
    level, value = levels_and_values("skewed both", case)
    start = graph("skewed both", case).start().to(A.device)
    first = graph("skewed both", "paths").start().to(A.device)
    shim_exchanges.install(monkeypatch)
    run_rounds, run = lockstep.Rounds.run, search_rounds.Shard.run
    waits, found = threading.Event(), []

    def other() -> None:
        found.append(search(A, start, CASES[case].semiring, direction="push"))

    second = threading.Thread(target=other)

    def waited(*given: Any) -> Any:
        if threading.current_thread() is second:
            waits.set()
        return run_rounds(*given)

    def compact_or_fail(shard: Any, name: str, *given: Any, **more: Any) -> None:
        if name == "compact" and threading.current_thread() is not second:
            second.start()
            assert waits.wait(60)
            raise ZeroDivisionError
        run(shard, name, *given, **more)

    monkeypatch.setattr(lockstep.Rounds, "run", waited)
    monkeypatch.setattr(search_rounds.Shard, "run", compact_or_fail)
    with pytest.raises(ZeroDivisionError):
        search(A, first, CASES["paths"].semiring, direction="push")
    second.join()
    np.testing.assert_array_equal(gathered(found[0].level).to_numpy(fill=-1), level)
    at, got = gathered(found[0].value).to_coo()
    np.testing.assert_array_equal(got, value[at])


@pytest.mark.parametrize("exchange", FORMS)
@pytest.mark.parametrize("one", [True, False])
def test_values_of_sources_that_are_wider_than_ids(
    exchange: str, one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids of 64 bits ask for values of 64 bits, of which sources may have any."""
    made = graph("directed path", "least parent")
    ids = made.A.indices.astype("int64")
    wide = sg.Matrix._of(64, 64, made.A.indptr.astype("int64"), ids, made.A.values, iso=True)
    A = EXCHANGES[exchange].place(wide)
    shim_exchanges.install(monkeypatch)
    new = sg.Vector if exchange == "one device" else A.device
    start = new.unit(10, 2**40, size=64, dtype="int64")
    if not one:
        start = sg.Vector.from_coo([3, 10], [-(2**50), 2**40], size=64).to(A.device)
    found: Any = search(A, start, min_secondi)
    got = gathered(found.value)
    assert got.dtype == np.int64 and got[10] == 2**40 and got[11] == 10
    assert one or (got[3] == -(2**50) and got[4] == 3)


@pytest.mark.parametrize("name", ["skewed both", "funnel"])
def test_without_leading_neighbours(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The switch of `python -m benchmarks seeds --ablate`: the same levels, other edges looked at.
    What was kept before is kept again.
    """
    # other tests share the graph, with which neighbours are kept
    A = EXCHANGES["one device"].place(graph(name, "levels").A.dup())

    def found() -> tuple[list[int], list[int]]:
        made = sg.bfs(A, 0, parents=False, direction="pull", trace=True)
        return gathered(made.level).to_numpy(fill=-1).tolist(), [row.edges for row in made.trace]

    with monkeypatch.context() as patch:
        shim_exchanges.install(patch)
        with leading_neighbours(A, False):
            without = found()
        assert "hubs" not in A._T._derived
        before = found()
        kept = A._T._derived["hubs"]
        with leading_neighbours(A, False):
            assert found() == without
        assert A._T._derived["hubs"] is kept
        with leading_neighbours(A, True):
            assert found() == before
    assert before[0] == without[0] and before[1] != without[1]
