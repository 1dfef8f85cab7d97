"""The peer form of search on one GPU, and on two and four where they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import gpus
import numpy as np
import peer_shards as host
import pytest
from search_cases import GRAPHS

import spgraph as sg
from spgraph.backends.cuda.exchange.peers import PeerBuffers
from spgraph.backends.shards.graph import ShardedGraph
from spgraph.errors import BackendUnavailable, CommunicationError

pytestmark = pytest.mark.gpu


@pytest.fixture(params=[1, 2, 4])
def buffers(request: pytest.FixtureRequest) -> Iterator[PeerBuffers]:
    yield gpus.buffers_of(request.param)


def on_devices(made: ShardedGraph) -> ShardedGraph:
    """The same graph, each shard on a device of its own."""
    return ShardedGraph(made.offsets, gpus.on_devices(made.shards))


def cuts(n: int, peers: int) -> Sequence[int]:
    return [0, *(min(n, n * p // peers + 5 * p) for p in range(1, peers)), n]


@pytest.mark.parametrize("relabelled", [False, True])
@pytest.mark.parametrize("name", [name for name in GRAPHS if name not in ("one", "loop")])
def test_small_graphs(name: str, relabelled: bool, buffers: PeerBuffers) -> None:
    S, symmetric, sources = host.graph(name)
    n, peers = S.shape[0], len(buffers.devices)
    user = np.random.default_rng(3).permutation(n) if relabelled else np.arange(n)
    made = host.shards_of(S, symmetric, cuts(n, peers), user if relabelled else None)
    there = on_devices(made)
    level, parent = host.breadth_first(S, sources, user, n)
    for direction in ("auto", "push", "pull"):
        for parents in (True, False):
            got, given, _ = host.run(
                there, buffers, sources, parents, direction, n, user, gpus.place
            )
            np.testing.assert_array_equal(got, level)
            if parents:
                np.testing.assert_array_equal(given, parent)


@pytest.mark.parametrize("begin", [0, 1, 3])
def test_in_edges_that_begin_and_end_anywhere(begin: int, buffers: PeerBuffers) -> None:
    """Pulls load 16 aligned bytes at a time: memcheck sees whether beyond the caller's arrays."""
    S, symmetric, sources = host.graph("directed path")
    n, peers = S.shape[0], len(buffers.devices)
    user = np.random.default_rng(3).permutation(n)
    plain = host.shards_of(S, symmetric, cuts(n, peers), user)
    shards = []
    for p, shard in enumerate(on_devices(plain).shards):
        larger = np.concatenate([np.zeros(begin, np.int32), plain.shards[p].t_indices])
        shards.append(shard._replace(t_indices=gpus.place(p, larger)[begin:]))
    made = ShardedGraph(cuts(n, peers), shards)
    level, parent = host.breadth_first(S, sources, user, n)
    for direction in ("auto", "pull"):
        got, given, _ = host.run(made, buffers, sources, True, direction, n, user, gpus.place)
        np.testing.assert_array_equal(got, level)
        np.testing.assert_array_equal(given, parent)


@pytest.mark.parametrize("name", ["kronecker", "grid"])
def test_large_graphs(name: str, buffers: PeerBuffers) -> None:
    """As on the CPU; ten times, since what goes wrong between devices does not go wrong always."""
    generators = sg.generators
    A = generators.kronecker(17, 16, seed=1) if name == "kronecker" else generators.grid(300, 500)
    S, user = A.to_scipy().tocsr(), np.arange(A.nrows)
    made = on_devices(host.shards_of(S, True, cuts(A.nrows, len(buffers.devices))))
    sources = np.flatnonzero(np.diff(S.indptr))[::20000][:3].tolist()
    for source in sources:
        oracle = [vector.to_numpy(fill=-1) for vector in sg.bfs(A, source) if vector is not None]
        for direction in ("auto", "push", "pull") if name == "kronecker" else ("auto",):
            for _ in range(10):
                level, parent, _ = host.run(
                    made, buffers, [source], True, direction, A.nrows, user, gpus.place
                )
                np.testing.assert_array_equal(level, oracle[0])
                np.testing.assert_array_equal(parent, oracle[1])


def test_a_device_that_does_not_come_is_named() -> None:
    S, _, sources = host.graph("skewed both")
    user, buffers = np.arange(1500), gpus.Absent()
    made = on_devices(host.shards_of(S, True, (0, 400, 1500)))
    level, _ = host.breadth_first(S, sources, user, 1500)
    for absent in (True, False, True, False):
        buffers.absent, buffers.deadline = absent, 0.2 if absent else PeerBuffers.deadline
        if absent:
            with pytest.raises(CommunicationError, match=r"device 1 \(shard 1\) did not come"):
                host.run(made, buffers, sources, True, "auto", 1500, user, gpus.place)
        else:
            got, _, _ = host.run(made, buffers, sources, True, "auto", 1500, user, gpus.place)
            np.testing.assert_array_equal(got, level)


def test_two_shards_on_one_device_are_refused() -> None:
    with pytest.raises(BackendUnavailable, match=r"a device of its own.*\[0, 0\]"):
        PeerBuffers([0, 0])
