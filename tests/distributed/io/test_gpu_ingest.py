"""Graphs drawn in shards on GPUs are those that one GPU draws, and no shard needs much more memory
than it keeps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gpus import visible

from spgraph import generators
from spgraph.containers.storage.arrays import move
from spgraph.distributed.communicators import LocalCommunicator
from spgraph.distributed.containers.partition import Partition
from spgraph.distributed.containers.partitioners import partition
from spgraph.distributed.containers.report import border
from spgraph.distributed.generate import models
from spgraph.distributed.io import ingest, reading
from spgraph.io import read, write
from spgraph.io.request import Request

pytestmark = pytest.mark.gpu

GRAPHS: list[dict[str, Any]] = [
    {},
    {"symmetric": False},
    {"self_loops": True, "noise": 0.05, "permute": False},
]


def devices(shards: int) -> list[str]:
    """All GPUs there are, in turn."""
    count = visible()
    return [f"cuda:{p % count}" for p in range(shards)]


@pytest.mark.parametrize("options", GRAPHS, ids=str)
@pytest.mark.parametrize("shards", [1, 2, 4, 7])
def test_drawn(options: dict[str, Any], shards: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "SORTED_CUDA", 100_000)
    A = generators.kronecker(14, 8, **options).to_scipy()
    model = generators.kronecker_model(14, 8, **options)
    for how in ("edges", "random", Partition.even(1 << 14, shards)):
        P, rows = models.generate_shards(model, LocalCommunicator(shards, devices(shards)), how)
        for p, (row, device) in enumerate(zip(rows, devices(shards), strict=True)):
            assert row.indices.device.id == row.indptr.device.id == int(device[5:])
            own = P.shard_ids(p, "cpu")
            indptr, indices = A[own].indptr, A[own].indices
            assert row.values is None and row.indices.dtype == row.indptr.dtype == np.int32
            np.testing.assert_array_equal(row.indptr.get(), indptr)
            np.testing.assert_array_equal(row.indices.get(), indices)


def test_memory_of_shards() -> None:
    """Four on a GPU: at most 1.5 times what they keep and 1 GiB are taken from it at any time."""
    import cupy

    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    before = pool.total_bytes()
    model = generators.kronecker_model(22, 64)
    _, rows = models.generate_shards(model, LocalCommunicator(4, ["cuda:0"] * 4))
    kept = sum(row.indptr.nbytes + row.indices.nbytes for row in rows)
    assert kept > 1 << 30
    # the pool returns nothing by itself: what it has is the most that was in use at once
    assert pool.total_bytes() - before < 1.5 * kept + (1 << 30)


def test_partition_and_border() -> None:
    A = generators.kronecker(10)
    for how in ("edges", "random"):
        P = partition(A.to("cuda"), 3, how)
        assert partition(A, 3, how) == P
        ids = move(np.arange(1024), "cuda:0")
        inside = P.to_internal(ids)
        assert (P.user_ids("cuda:0")[inside] == ids).all() if P.ids is not None else inside is ids
        np.testing.assert_array_equal(P.owner(inside).get(), P.owner(inside.get()))
        columns = A.indices[: A.indptr[300]]
        np.testing.assert_array_equal(border(move(columns, "cuda:0"), P, 1), border(columns, P, 1))


def test_read(tmp_path: Any) -> None:
    """Entries travel between the shards' devices; the rows come on the CPU."""
    path = tmp_path / "g.mtx"
    write(path, generators.kronecker(8))
    found = reading.read_shards(Request.of(path), LocalCommunicator(3, devices(3)))
    assert found is not None
    A = read(path)
    np.testing.assert_array_equal(np.concatenate([r.indices for r in found.rows]), A.indices)
