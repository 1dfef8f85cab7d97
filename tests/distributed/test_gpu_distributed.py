"""Containers in shards on GPUs give what plain ones on the CPU give: several shards on one GPU by
plain copies, one shard a GPU through NCCL and through peer memory.
"""

from __future__ import annotations

import itertools
import types
from typing import Any

import distributed_cases as cases
import numpy as np
import pytest
from gpus import names

import spgraph as sg

pytestmark = pytest.mark.gpu


# (shards, exchange, partition)
PLACEMENTS = [(3, "auto", "edges"), (3, "auto", "random")]
PLACEMENTS += itertools.product((2, 4), ("nccl", "peer"), ("edges", "random"))


def spread(A: sg.Matrix, shards: int, exchange: str, how: str) -> Any:
    """A in shards, for "auto" all on one GPU; skips the test where there are too few GPUs."""
    devices = ["cuda:0"] * shards if exchange == "auto" else names(shards)
    return A.distribute(shards, devices=devices, partition=how, exchange=exchange)


@pytest.mark.parametrize(("shards", "exchange", "how"), PLACEMENTS)
@pytest.mark.parametrize("case", cases.OPERATIONS)
def test_operations_and_loops(case: Any, shards: int, exchange: str, how: str) -> None:
    A = cases.graph()
    G = spread(A, shards, exchange, how)
    case(A, G, lambda container: container.to(G.device))


@pytest.mark.parametrize(("shards", "exchange", "how"), PLACEMENTS)
def test_products_with_arrays_of_a_device(shards: int, exchange: str, how: str) -> None:
    """An array of CuPy gives one on its device."""
    cupy = pytest.importorskip("cupy")
    A = cases.graph()
    G = spread(A, shards, exchange, how)
    X = np.random.default_rng(2).integers(0, 9, (A.ncols, 6)).astype(np.float64)
    for device in sorted({int(name[5:]) for name in G.device.devices}):
        with cupy.cuda.Device(device):
            there = cupy.asarray(X)
        for x, plain in ((there, A @ X), (there[:, 0], A @ X[:, 0])):
            for ours, expected in ((G @ x, plain), (x.T @ G.T, plain.T)):
                assert isinstance(ours, cupy.ndarray) and ours.device.id == device
                assert np.array_equal(ours.get(), expected)


@pytest.mark.parametrize(("shards", "exchange", "how"), PLACEMENTS)
def test_algorithms(shards: int, exchange: str, how: str) -> None:
    A, S = cases.graph(), cases.graph(symmetric=True)
    G, H = spread(A, shards, exchange, how), spread(S, shards, exchange, how)
    cases.check_algorithms(A, G, S, H)


@pytest.mark.parametrize(("shards", "exchange", "how"), PLACEMENTS)
def test_a_backend_without_kernels_for_shards(
    shards: int, exchange: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loops are then made of operations, as on a kind of device that has no more than these."""
    monkeypatch.setattr(sg.distributed.Placement, "kernels", types.SimpleNamespace())
    A = cases.graph()
    G = spread(A, shards, exchange, how)
    cases.check_loops(A, G, lambda container: container.to(G.device))
    cases.check_power(A, G, lambda container: container.to(G.device))
    sources = [5, 8]
    found = sg.betweenness_centrality(G, sources=sources)
    cases.same(found, sg.betweenness_centrality(A, sources=sources), close=1e-9)


SPIN = r"""
extern "C" __global__ void spin(long long cycles) {
    for (const long long start = clock64(); clock64() - start < cycles;) {}
}
"""


def test_what_a_stream_still_writes_is_divided_as_it_will_be() -> None:
    """Copies to other GPUs run after the stream that makes the container, and before what follows
    in it.
    """
    import cupy

    devices = names(2)
    n = 1 << 20
    A = sg.generators.grid(1 << 10, 1 << 10)
    placement = A.distribute(2, devices=devices).device
    with cupy.cuda.Device(0):
        spin = cupy.RawKernel(SPIN, "spin")
        spin((1,), (1,), (np.int64(1),))
        values = cupy.zeros(n)
        cupy.cuda.Device(0).synchronize()
        with cupy.cuda.Stream(non_blocking=True):
            spin((1,), (1,), (np.int64(200_000_000),))
            values += 1
            moved = sg.Vector.from_dense(values).to(devices[1])
            v = placement.scatter(sg.Vector.from_dense(values))
            values += 1
            cupy.cuda.get_current_stream().synchronize()
    for found in (moved, *v.shards):
        with found._values.device:
            cupy.cuda.get_current_stream().synchronize()
            assert (found._values == 1).all(), found.device
