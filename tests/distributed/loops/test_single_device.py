"""Loops over shards that run on one device: the same answers, and when that is chosen."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import distributed_cases as cases
import numpy as np
import pytest

import spgraph as sg
from spgraph.direction import one_device_pays
from spgraph.distributed.loops import closure as closures
from spgraph.distributed.loops import search as searches
from spgraph.distributed.loops import single_device
from spgraph.errors import ConvergenceError
from spgraph.iterations import closure, search
from spgraph.semirings import indexunary, min_plus, min_secondi

# ranges, ranges that begin where words of bitmaps do, any vertices
PARTITIONS = {"edges": "edges", "aligned": np.arange(70) // 32, "random": "random"}


@pytest.fixture
def on_one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops over shards of the CPU run in one piece, and in no other way."""
    monkeypatch.setattr(single_device, "device_for", lambda A: "cpu")
    monkeypatch.setattr(closures, "composed_closure", None)
    monkeypatch.setattr(searches, "composed_search", None)


@pytest.mark.parametrize("how", PARTITIONS)
def test_searches_and_closures(how: str, on_one_device: None) -> None:
    A = cases.graph()
    G = A.distribute(3, partition=PARTITIONS[how])
    many = sg.Vector.from_coo([3, 40, 7], [0, 2, 1], size=A.nrows)
    full = sg.Vector.arange(A.nrows)
    for start in (many, full):
        spread = start.to(G.device)
        cases.same(closure(G, spread, min_plus), closure(A, start, min_plus))
        found, expected = search(G, spread, min_secondi), search(A, start, min_secondi)
        cases.same(found.level, expected.level)
        cases.same(found.value, expected.value)
    traced = search(G, many.to(G.device), min_secondi, trace=True).trace
    depth = search(A, many, min_secondi).level._value_range()[1]
    assert traced is not None and len(traced) == depth + 1
    for plain in (A, A.dup(np.float64)):
        paths = sg.sssp(plain.distribute(3, partition=PARTITIONS[how]), 5)
        for got, right in zip(paths, sg.sssp(plain, 5), strict=True):
            cases.same(got, right)


def test_what_is_kept_and_said(on_one_device: None, caplog: pytest.LogCaptureFixture) -> None:
    """One piece a graph, one message; a Matrix that changes has another."""
    A = cases.graph()
    G = A.distribute(3)
    with caplog.at_level(logging.INFO, "spgraph.distributed"):
        sg.bfs(G, 5)
        whole = G._derived["single_device"].whole
        sg.sssp(G, 5)
    assert whole.isequal(A)
    assert G._derived["single_device"].whole is whole
    assert [record.levelname for record in caplog.records] == ["INFO"]
    assert f"{A.nvals} edges in 3 shards run on cpu alone" in caplog.text
    for M in (A, G):
        M._become(sg.select(M, indexunary.valuegt, 5))
    cases.same(sg.bfs(G, 5).level, sg.bfs(A, 5).level)


def test_a_failure_brings_the_last_iterate_back(on_one_device: None) -> None:
    A = sg.Matrix.from_coo([0, 1, 2], [1, 2, 0], [4, 3, -8], nrows=4, ncols=4).distribute(2)
    start = sg.Vector.unit(0, 0, size=4, dtype=np.int64, device=A.device)
    with pytest.raises(ConvergenceError) as caught:
        closures.closure(A, start, min_plus.resolve("int64", "int64"), 3)
    last: Any = caught.value.result
    assert last.device is A.device and last.nvals == 3


def test_rule() -> None:
    """Rounds against edges: of roads, grids, and Kronecker graphs, by size."""
    roads = {"NY": (264346, 730100), "BAY": (321270, 794830), "USA": (23947347, 57708624)}
    grids = {(side, d): (side**d, 2 * d * side**d) for side, d in ((1000, 2), (5000, 2), (200, 3))}
    for vertices, edges in (*roads.values(), *grids.values()):
        for shards in (2, 4, 8):
            assert one_device_pays(vertices, edges, shards, True)
            assert one_device_pays(vertices, edges, shards, False)
    kronecker = {s: one_device_pays(1 << s, 31 << s, 2, False) for s in range(10, 30)}
    assert [s for s, pays in kronecker.items() if pays] == list(range(10, 25))
    assert not any(one_device_pays(1 << s, 31 << s, 2, True) for s in kronecker)
    assert not one_device_pays(1000**3, 6 * 1000**3, 2, True), "edges count even on a grid"
    assert not one_device_pays(0, 0, 2, True)


def test_what_is_asked_before_a_graph_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """GPUs of one process, one a shard, no form of exchange asked for, and room."""
    monkeypatch.setattr(single_device, "free_memory", lambda device: 1000)
    monkeypatch.setattr(single_device.directions, "one_device_pays", lambda *counts: True)
    shard = SimpleNamespace(nbytes=60)
    comm = SimpleNamespace(processes=1)
    right: dict[str, Any] = {
        "devices": ("cuda:0", "cuda:1"), "num_shards": 2, "communicator": comm,
        "exchange_given": False, "peers": None,
    }  # fmt: skip

    def device(shards: Any = (shard, shard), transient: bool = False, **changed: Any) -> str | None:
        placement = SimpleNamespace(**(right | changed))
        A = SimpleNamespace(nrows=10, nvals=40, shards=shards, _transient=transient)
        A.device = placement
        return single_device.device_for(A)

    assert device() == "cuda:0"
    assert device(exchange_given=True) is None
    assert device(transient=True) is None
    assert device(devices=("cuda:0", "cuda:0")) is None
    assert device(devices=("cuda:0",), num_shards=1) is None
    assert device(communicator=SimpleNamespace(processes=2)) is None
    assert device(shards=(shard, SimpleNamespace(nbytes=66))) is None
    assert device(devices=("cpu", "cpu")) is None
    monkeypatch.setattr(single_device.directions, "one_device_pays", lambda *counts: False)
    assert device() is None
