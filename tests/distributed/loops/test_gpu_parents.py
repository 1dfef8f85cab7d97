"""Parents of shortest paths in shards on GPUs: those of one device, of floats and of integers."""

from __future__ import annotations

import itertools

import distributed_cases as cases
import numpy as np
import pytest
from gpus import names

import spgraph as sg

pytestmark = pytest.mark.gpu

PLACEMENTS = [(3, "auto", "edges"), (3, "auto", "random")]
PLACEMENTS += itertools.product((2, 4), ("nccl", "peer"), ("edges", "random"))


@pytest.mark.parametrize("kind", ["float32", "float64", "int64"])
@pytest.mark.parametrize(("shards", "exchange", "how"), PLACEMENTS)
def test_kronecker(shards: int, exchange: str, how: str, kind: str) -> None:
    """Weights of few values tie, so that vertices have several parents; others hardly do."""
    devices = ["cuda:0"] * shards if exchange == "auto" else names(shards)
    A = sg.generators.kronecker(13, 8, seed=2, device="cpu")
    rows, columns = (ids.astype(np.int64) for ids in A.to_coo()[:2])
    low, high = np.minimum(rows, columns), np.maximum(rows, columns)
    for values in (64, 1 << 20):
        weights = ((low * 7919 + high * 104729) % values + 1).astype(kind)
        own = A.indptr, A.indices, weights
        W = sg.Matrix._of(A.nrows, A.ncols, *own, symmetric=True)
        G = W.distribute(shards, devices=devices, partition=how, exchange=exchange)
        for source in (int(rows[0]), int(rows[-1])):
            for found, right in zip(sg.sssp(G, source), sg.sssp(W, source), strict=True):
                cases.same(found, right)
