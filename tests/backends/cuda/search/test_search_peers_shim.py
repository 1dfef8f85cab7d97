"""The peer form of search without GPUs, beside what test_search_shim.py looks at: shards whose rows
begin anywhere, buffers that several graphs use, devices that do not come.
"""

from __future__ import annotations

from collections.abc import Iterator

import cuda_host_shim
import numpy as np
import pytest
from peer_shards import breadth_first, graph, run, shards_of
from shim_exchanges import HostBuffers

from spgraph.backends.cuda.exchange import plan
from spgraph.backends.cuda.runtime import jit
from spgraph.backends.cuda.search import search_peers
from spgraph.backends.shards.graph import ShardedGraph
from spgraph.errors import CommunicationError

pytestmark = pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")


@pytest.fixture(autouse=True)
def on_the_shim(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    cuda_host_shim.install(monkeypatch)
    monkeypatch.setattr(jit, "current_device", lambda: 0)
    # few and small, so that graphs of a few hundred vertices see every form of a level
    monkeypatch.setattr(search_peers, "THREADS", 64)
    monkeypatch.setattr(search_peers, "LONG_ROW", 128)
    monkeypatch.setattr(search_peers, "small_frontier", lambda ids, offsets: 32)
    plan._loaded.cache_clear()
    yield
    plan._loaded.cache_clear()


@pytest.mark.parametrize("begin", [0, 1, 3])
def test_in_edges_that_begin_and_end_anywhere(begin: int) -> None:
    """Pulls load 16 aligned bytes at a time, and nothing beside the caller's array."""
    S, symmetric, sources = graph("directed path")
    user = np.random.default_rng(3).permutation(64)
    made = shards_of(S, symmetric, (0, 64), user)
    assert made.shards[0].t_indices is not None and made.shards[0].t_indices.size == 63
    larger = np.concatenate([np.zeros(begin, np.int32), made.shards[0].t_indices])
    shard = made.shards[0]._replace(t_indices=larger[begin:])
    made = ShardedGraph(made.offsets, [shard])
    level, parent = breadth_first(S, sources, user, 64)
    got, given, _ = run(made, HostBuffers(1), sources, True, "pull", 64, user)
    np.testing.assert_array_equal(got, level)
    np.testing.assert_array_equal(given, parent)


def test_push_needs_no_transpose() -> None:
    S, _, sources = graph("sparse directed")
    whole = shards_of(S, False, (0, 448, 1000))
    shards = [shard._replace(t_indptr=None, t_indices=None) for shard in whole.shards]
    user, made = np.arange(1000), ShardedGraph(whole.offsets, shards)
    level, parent, _ = run(made, HostBuffers(2), sources, True, "push", 10**6, user)
    expected = breadth_first(S, sources, user, 500)
    np.testing.assert_array_equal(level, expected[0])
    np.testing.assert_array_equal(parent, expected[1])


def test_buffers_serve_one_graph_after_another() -> None:
    buffers = HostBuffers(3)
    for name in ("skewed both", "grid", "skewed both"):
        S, symmetric, sources = graph(name)
        n = S.shape[0]
        user = np.arange(n)
        made = shards_of(S, symmetric, (0, n // 3, n // 2, n))
        level, parent = breadth_first(S, sources, user, n)
        got, given, _ = run(made, buffers, sources, True, "auto", n, user)
        np.testing.assert_array_equal(got, level)
        np.testing.assert_array_equal(given, parent)


def test_a_device_that_does_not_come_is_named() -> None:
    S, _, sources = graph("grid")
    made, user, buffers = shards_of(S, True, (0, 50, 100, 204)), np.arange(204), HostBuffers(3)
    buffers.deadline = 60
    for direction in ("push", "pull"):
        run(made, buffers, sources, True, direction, 10, user)
        buffers.absent, buffers.deadline = 1, 0.2
        with pytest.raises(CommunicationError, match=r"device 1 \(shard 1\) did not come.*0.2 s"):
            run(made, buffers, sources, True, direction, 10, user)
        buffers.absent, buffers.deadline = None, 60
        level, _, _ = run(made, buffers, sources, True, direction, 10, user)
        np.testing.assert_array_equal(level, breadth_first(S, sources, user, 10)[0])


def test_what_cannot_run_is_refused() -> None:
    S, _, sources = graph("one")
    made, user = shards_of(S, True, (0, 1)), np.arange(1)
    with pytest.raises(ValueError, match="a device for each of 1 shards, got 2 devices"):
        run(made, HostBuffers(2), sources, True, "auto", 1, user)
    many = shards_of(S, True, (0,) * 9 + (1,))
    with pytest.raises(ValueError, match="expected 1 to 8 shards, got 9"):
        run(many, HostBuffers(9), sources, True, "auto", 1, user)
