"""The peer form of closure without GPUs, beside what test_closure_shim.py looks at: full inboxes,
buffers that several graphs use, devices that do not come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import cuda_host_shim
import numpy as np
import pytest
from closure_cases import CASES, expected, graph
from peer_closures import run, shards_of
from shim_exchanges import HostBuffers

from spgraph.backends.cuda.closure import closure_peers
from spgraph.backends.cuda.exchange import plan
from spgraph.backends.cuda.exchange.buffers import Plan
from spgraph.backends.cuda.runtime import jit
from spgraph.backends.shards import graph as shards
from spgraph.containers import Vector
from spgraph.errors import CommunicationError
from spgraph.semirings import min_plus, monoid

pytestmark = pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")

# thresholds with which small graphs take every path of the kernel
THRESHOLDS = {
    "closure_peers": ("LOCAL_EDGES", "THRESHOLD_EDGES", "STEPS", "SATURATED_EDGES", "ALONE")
}
PATHS = {
    "as shipped": {},
    "in step": {"SATURATED_EDGES": 0, "LOCAL_EDGES": 0},
    "threshold": {"THRESHOLD_EDGES": 1, "SATURATED_EDGES": 10, "LOCAL_EDGES": 40},
}
THIRDS = (0.3, 0.71)


@pytest.fixture(autouse=True)
def on_the_shim(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    cuda_host_shim.install(monkeypatch)
    monkeypatch.setattr(jit, "current_device", lambda: 0)
    monkeypatch.setattr(closure_peers, "THREADS", 64)
    take(monkeypatch, "as shipped")
    yield
    plan._loaded.cache_clear()


def take(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """Let the kernel decide by other thresholds."""
    cuda_host_shim.with_thresholds(monkeypatch, THRESHOLDS, **PATHS[path])
    plan._loaded.cache_clear()


def check(name: str, case: str, cuts: Sequence[float] = THIRDS, **more: Any) -> int:
    """The closure of a graph in shards equals that of plain loops; how many edges it looked at."""
    made, kind = graph(name, CASES[case]), CASES[case]
    typed = kind.semiring.resolve(made.v.dtype, made.A.dtype)
    n = made.A.nrows
    offsets = [int(x * n) for x in (0, *cuts, 1)]
    buffers = HostBuffers(len(offsets) - 1)
    shards = shards_of(made.A, offsets)
    for delta in more.get("deltas", (3,)):
        ordered = kind.semiring.monoid in (monoid.min, monoid.max)
        found, parts = run(shards, buffers, made.v, typed, delta if ordered else None)
        assert found == expected(name, kind)
    return sum(part.relaxations for part in parts)


def test_a_full_inbox_is_sent_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closure_peers, "INBOX", 5)
    for path in ("as shipped", "in step"):
        take(monkeypatch, path)
        check("skewed both", "distance, zeros")
        check("grid", "distance, zeros", deltas=(1000,))


def test_relaxations_stay_few() -> None:
    """Three shards look at no more than half again as many edges as one."""
    for name in ("grid", "skewed both"):
        alone = check(name, "distance", (), deltas=(20,))
        apart = check(name, "distance", deltas=(20,))
        m = graph(name, CASES["distance"]).A.nvals
        assert m <= 2 * alone and apart <= 1.5 * alone


def test_buffers_serve_one_graph_after_another() -> None:
    buffers = HostBuffers(2)
    for name in ("skewed both", "grid", "skewed both"):
        made = graph(name, CASES["distance"])
        n = made.A.nrows
        shards, typed = shards_of(made.A, (0, n // 3, n)), min_plus.resolve("int64", "int64")
        for _ in range(2):
            found, _ = run(shards, buffers, made.v, typed, 9)
            assert found == expected(name, CASES["distance"])


def test_a_start_without_entries() -> None:
    made = graph("grid", CASES["distance"])
    n, typed = made.A.nrows, min_plus.resolve("int64", "int64")
    start = Vector.empty(n, np.int64)
    assert run(shards_of(made.A, (0, 50, n)), HostBuffers(2), start, typed, 9)[0] == {}


def test_a_device_that_does_not_come_is_named() -> None:
    made = graph("grid", CASES["distance"])
    n, typed = made.A.nrows, min_plus.resolve("int64", "int64")
    shards, buffers = shards_of(made.A, (0, 50, 90, n)), HostBuffers(3)
    for _ in range(2):
        buffers.absent, buffers.deadline = 1, 0.2
        with pytest.raises(CommunicationError, match=r"device 1 \(shard 1\) did not come.*0.2 s"):
            run(shards, buffers, made.v, typed, 9)
        buffers.absent, buffers.deadline = None, 60
        found, _ = run(shards, buffers, made.v, typed, 9)
        assert found == expected("grid", CASES["distance"])


def test_a_launch_that_fails_leaves_nothing_behind() -> None:
    """Ctrl-C between two devices: the first one waits for the second in vain."""

    class Interrupted(HostBuffers):
        def launch(self, *arguments: Any, **more: Any) -> None:
            super().launch(*arguments, **more)
            if self.absent is not None:
                raise KeyboardInterrupt

    made = graph("grid", CASES["distance"])
    n, typed = made.A.nrows, min_plus.resolve("int64", "int64")
    shards, buffers = shards_of(made.A, (0, 50, n)), Interrupted(2)
    run(shards, buffers, made.v, typed, 9)
    buffers.absent, buffers.deadline = 1, 0.2
    with pytest.raises(KeyboardInterrupt):
        run(shards, buffers, made.v, typed, 9)
    buffers.absent, buffers.deadline = None, 60
    assert run(shards, buffers, made.v, typed, 9)[0] == expected("grid", CASES["distance"])


def test_what_cannot_run_is_refused() -> None:
    made = graph("one", CASES["distance"])
    typed = min_plus.resolve("int64", "int64")
    with pytest.raises(ValueError, match="a device for each of 1 shards, got 2 devices"):
        run(shards_of(made.A, (0, 1)), HostBuffers(2), made.v, typed, 9)
    with pytest.raises(ValueError, match="expected 1 to 8 shards, got 9"):
        run(shards_of(made.A, (0,) * 9 + (1,)), HostBuffers(9), made.v, typed, 9)


def test_few_plans_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the last semirings: each holds arrays on all devices."""
    made: list[Any] = []
    buffers: Any = HostBuffers(1)
    one = Plan(None, [], buffers.addresses, [], [], 64, 0, [])
    new = lambda *given: made.append(given[2]) or one  # noqa: E731
    monkeypatch.setattr(shards, "MOST_PLANS", 2)
    G = shards_of(graph("one", CASES["distance"]).A, [0, 1])
    for times in (1, 2):  # the second time each is forgotten before it is asked for again
        for kind in ("int16", "int32", "int64"):
            typed = min_plus.resolve(kind, kind)
            for _ in range(2):
                assert plan.planned("closure", G, buffers, typed, new) is one
        assert len(made) == 3 * times
    assert len(G.plans("closure", typed)) <= 2
    assert not G.plans("search", None)  # which has as many of its own
    # as threads leave it that have added theirs at the same time
    G.derived["plans of search"] = dict.fromkeys("abcd")
    assert list(G.plans("search", "d")) == list("abcd") and list(G.plans("search", "e")) == ["d"]
