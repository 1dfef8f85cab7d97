"""Graphs with many small rounds over several GPUs: their loops run on the first one, and say so."""

from __future__ import annotations

import logging

import distributed_cases as cases
import numpy as np
import pytest
from gpus import visible

import spgraph as sg
from spgraph import direction
from spgraph.distributed.loops.single_device import single_device_of

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("how", ["edges", "random"])
@pytest.mark.parametrize("shards", [2, 4])
def test_loops_on_one_device(shards: int, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    visible(shards)
    monkeypatch.setattr(direction, "one_device_pays", lambda *_: True)  # of a small graph, too
    A = cases.graph()
    G = A.distribute(shards, devices="cuda", partition=how)
    cases.check_loops(A, G, lambda container: container.to(G.device))
    one = single_device_of(G)
    assert one is not None and one.whole.device == "cuda:0"
    for exchange in ("nccl", "peer"):
        asked = A.distribute(shards, devices="cuda", partition=how, exchange=exchange)
        assert single_device_of(asked) is None


@pytest.mark.parametrize("shards", [2, 4])
def test_a_grid(shards: int, caplog: pytest.LogCaptureFixture) -> None:
    visible(shards)
    A = sg.generators.grid(120, 120)
    weights = np.random.default_rng(1).integers(1, 9, A.nvals)
    W = sg.Matrix._of(A.nrows, A.ncols, A.indptr, A.indices, weights)
    with caplog.at_level(logging.INFO, "spgraph.distributed"):
        G, H = (X.distribute(shards, devices="cuda") for X in (A, W))
        for found, right in zip(sg.bfs(G, 7), sg.bfs(A, 7), strict=True):
            cases.same(found, right)
        for found, right in zip(sg.sssp(H, 7), sg.sssp(W, 7), strict=True):
            cases.same(found, right)
        cases.same(sg.connected_components(G), sg.connected_components(A))
        ids = [7, 5000]
        cases.same(
            sg.betweenness_centrality(G, sources=ids),
            sg.betweenness_centrality(A, sources=ids),
            close=1e-9,
        )
    assert len(caplog.records) == 2  # once a graph
    assert f"in {shards} shards run on cuda:0 alone" in caplog.text
