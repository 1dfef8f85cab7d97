"""The peer form of closure on one GPU, and on two and four where they are."""

from __future__ import annotations

from collections.abc import Iterator

import gpus
import numpy as np
import peer_closures as host
import pytest
from closure_cases import CASES, expected, graph

import spgraph as sg
from spgraph.backends.cuda.exchange.peers import PeerBuffers
from spgraph.backends.shards.graph import ShardedGraph
from spgraph.containers import Matrix, Vector
from spgraph.errors import CommunicationError
from spgraph.semirings import min_plus, monoid

pytestmark = pytest.mark.gpu
DISTANCES = min_plus.resolve("int64", "int64")


@pytest.fixture(params=[1, 2, 4])
def buffers(request: pytest.FixtureRequest) -> Iterator[PeerBuffers]:
    yield gpus.buffers_of(request.param)


def on_devices(made: ShardedGraph) -> ShardedGraph:
    """The same graph, each shard on a device of its own."""
    shards = gpus.on_devices(made.shards)
    return ShardedGraph(made.offsets, shards, made.iso)


def cuts(n: int, peers: int) -> list[int]:
    return [0, *(min(n, n * p // peers + 5 * p) for p in range(1, peers)), n]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ["sparse directed", "skewed both", "grid", "many sources"])
def test_small_graphs(name: str, case: str, buffers: PeerBuffers) -> None:
    kind, made = CASES[case], graph(name, CASES[case])
    typed = kind.semiring.resolve(made.v.dtype, made.A.dtype)
    there = on_devices(host.shards_of(made.A, cuts(made.A.nrows, len(buffers.devices))))
    ordered = kind.semiring.monoid in (monoid.min, monoid.max)
    for delta in (0.05, 20) if ordered else (None,):
        found, _ = host.run(there, buffers, made.v, typed, delta, gpus.place)
        assert found == expected(name, kind)


def weighted(A: Matrix, kind: str) -> Matrix:
    rows, columns = A.to_coo()[:2]
    low, high = np.minimum(rows, columns).astype(np.int64), np.maximum(rows, columns)
    weights = ((low * 7919 + high * 104729) % 64 + 1).astype(kind)
    return Matrix._of(A.nrows, A.ncols, A.indptr, A.indices, weights, symmetric=True)


@pytest.mark.parametrize("kind", ["int32", "float32"])
@pytest.mark.parametrize("name", ["kronecker", "grid"])
def test_large_graphs(name: str, kind: str, buffers: PeerBuffers) -> None:
    """As on the CPU; ten times, since what goes wrong between devices does not go wrong always."""
    generators = sg.generators
    A = generators.kronecker(17, 32, seed=1) if name == "kronecker" else generators.grid(300, 500)
    W = weighted(A, kind)
    there = on_devices(host.shards_of(W, cuts(A.nrows, len(buffers.devices))))
    dtype = np.dtype(np.int64 if kind == "int32" else kind)
    typed = min_plus.resolve(dtype, W.dtype)
    source = int(np.flatnonzero(np.diff(A.indptr))[1])
    start = Vector.unit(source, 0, size=A.nrows, dtype=dtype)
    distance = sg.sssp(W, source, parents=False).distance.to_numpy(fill=-1)
    looked = []
    for delta in (1, 8, 64) if name == "kronecker" else (64, 500):
        for _ in range(10):
            found, parts = host.run(there, buffers, start, typed, delta, gpus.place)
            got = np.full(A.nrows, -1, dtype)
            got[list(found)] = list(found.values())
            np.testing.assert_array_equal(got, distance)
            looked.append(sum(part.relaxations for part in parts))
    assert min(looked) > 0 and max(looked) < 20 * W.nvals


def test_no_fixed_point(buffers: PeerBuffers) -> None:
    A = Matrix.from_coo([0, 3, 4, 5], [3, 4, 0, 0], [4, 3, -8, 1], nrows=7, ncols=7)
    there = on_devices(host.shards_of(A, sorted(min(7, c) for c in cuts(7, len(buffers.devices)))))
    start = Vector.unit(0, 0, size=7, dtype=np.int64)
    for delta in (None, 3):
        _, parts = host.run(there, buffers, start, DISTANCES, delta, gpus.place)
        assert not any(part.settled for part in parts)


def test_a_device_that_does_not_come_is_named() -> None:
    made, buffers = graph("grid", CASES["distance"]), gpus.Absent()
    there = on_devices(host.shards_of(made.A, (0, 50, made.A.nrows)))
    for absent in (False, True, False, True, False):
        buffers.absent, buffers.deadline = absent, 0.2 if absent else PeerBuffers.deadline
        if absent:
            with pytest.raises(CommunicationError, match=r"device 1 \(shard 1\) did not come"):
                host.run(there, buffers, made.v, DISTANCES, 9, gpus.place)
        else:
            found, _ = host.run(there, buffers, made.v, DISTANCES, 9, gpus.place)
            assert found == expected("grid", CASES["distance"])
