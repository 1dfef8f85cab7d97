"""The power iteration and tiles of CUDA on CPU containers: fixtures, and matrices with hubs."""

from __future__ import annotations

import importlib
from typing import Any

import cuda_host_shim
import numpy as np
import pytest
import scipy.sparse

from spgraph.backends import cuda
from spgraph.backends.cuda.products import tiles_build
from spgraph.backends.cuda.runtime import jit
from spgraph.iterations import power_iteration as powers
from spgraph.iterations import ranks

on_cuda = importlib.import_module("spgraph.backends.cuda.power.power")
shimmed = pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")


@pytest.fixture
def shim(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations on CPU containers run on the CUDA backend, in blocks of 128 threads."""
    cuda_host_shim.install(monkeypatch)
    for module in (powers, ranks):
        monkeypatch.setattr(module, "backend", lambda device: cuda)
    monkeypatch.setattr(jit, "current_device", lambda: 0)
    monkeypatch.setattr(jit, "multiprocessors", lambda device: 2)
    monkeypatch.setattr(on_cuda, "THREADS", 128)
    monkeypatch.setattr(jit, "shared_memory", lambda device: 7000)


@pytest.fixture
def tiled(shim: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small matrices are cut into tiles, with pieces of rows and with far columns."""
    small = {"ENTRIES": 1, "COLUMNS": 1, "MOST_TILES": 3, "RANGE": 400, "PIECE": 64, "PIECES": 2}
    for name, value in small.items():
        monkeypatch.setattr(tiles_build, name, value)
    monkeypatch.setattr(tiles_build, "sectors", lambda *arguments: (2.0, 1.0))


def skewed(n: int, m: int, entries: int, dtype: Any) -> scipy.sparse.csr_array:
    """An n x m matrix some rows and columns of which are long, with values 1 to 9."""
    rng = np.random.default_rng(n)
    rows, columns = (rng.random(entries) ** 3 * n, rng.random(entries) ** 3 * m)
    rows, columns = rng.permutation(n)[rows.astype(int)], rng.permutation(m)[columns.astype(int)]
    keys = np.unique(rows * m + columns)
    values = rng.integers(1, 10, keys.size).astype(dtype)
    S = scipy.sparse.coo_array((values, (keys // m, keys % m)), shape=(n, m)).tocsr()
    S.sort_indices()
    return S
