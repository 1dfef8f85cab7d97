"""Communicators of GPUs: the contract, the order of streams, processes that are lost."""

from __future__ import annotations

import re
from typing import Any

import communicator_cases as cases
import numpy as np
import pytest
from gpus import names, visible
from processes import met

from spgraph.containers.storage.arrays import on_device
from spgraph.distributed.communicators import (
    Communicator,
    LocalCommunicator,
    NcclCommunicator,
)
from spgraph.errors import BackendUnavailable

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("shards", [1, 3])
def test_local_on_one_gpu(shards: int) -> None:
    with LocalCommunicator(shards, ["cuda:0"] * shards) as comm:
        cases.contract(comm)


@pytest.mark.parametrize("count", [2, 4])
def test_local_between_names(count: int) -> None:
    with LocalCommunicator(count, names(count)) as comm:
        cases.contract(comm)


def test_local_with_two_shards_on_one_of_two_names() -> None:
    a, b = names(2)
    with LocalCommunicator(3, [b, a, b]) as comm:
        cases.contract(comm)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_nccl_of_one_process(count: int) -> None:
    with NcclCommunicator.for_devices(names(count)[::-1]) as comm:
        cases.contract(comm)


def make(kind: str, count: int) -> Communicator:
    if kind == "nccl":
        return NcclCommunicator.for_devices(names(count))
    return LocalCommunicator(count, names(count))


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("kind", ["local", "nccl"])
def test_collectives_keep_the_order_of_streams(kind: str, count: int) -> None:
    """On streams that wait for no other: what is late when the call is made, and overwritten at
    once after it.
    """
    n = 1 << 20
    with make(kind, count) as comm:
        streams = []
        for device in comm.devices:
            with on_device(device) as cupy:
                streams.append(cupy.cuda.Stream(non_blocking=True))
        for turn in range(5):
            parts: list[Any] = []
            for shard, (device, stream) in enumerate(zip(comm.devices, streams, strict=True)):
                with on_device(device) as cupy:
                    stream.use()
                    part = cupy.zeros(n, np.int32)
                    if shard % 2 == 0:
                        work = cupy.ones((3000, 3000), np.float32)
                        for _ in range(5):
                            work = work @ work * 0
                    part += turn + shard
                    parts.append(part)
            gathered = comm.all_gather(parts, sizes=[n] * count)
            joined = comm.all_gather([part[: n - k] for k, part in enumerate(parts)])
            moved = comm.all_to_all([[part] * count for part in parts])
            summed = comm.all_reduce(parts, "sum")
            for device, part in zip(comm.devices, parts, strict=True):
                with on_device(device):
                    part.fill(-1)
            total = count * turn + sum(range(count))
            whole = np.repeat(np.arange(count) + turn, n)
            for found in comm.fetch(gathered):
                assert np.array_equal(found, whole)
            for found in comm.fetch(joined):
                sizes = [n - k for k in range(count)]
                assert np.array_equal(found, np.repeat(np.arange(count) + turn, sizes))
            for p in range(count):
                for found in comm.fetch([row[p] for row in moved]):
                    assert (found == turn + p).all()
            for found in comm.fetch(summed):
                assert (found == total).all()
        for device in comm.devices:
            with on_device(device) as cupy:
                cupy.cuda.Stream.null.use()


def test_nccl_refuses() -> None:
    count = visible()
    with pytest.raises(BackendUnavailable, match=f"'cuda:{count}' was asked for"):
        NcclCommunicator.for_devices([f"cuda:{count}"])
    with pytest.raises(ValueError, match="different GPUs"):
        NcclCommunicator.for_devices(["cuda:0", "cuda:0"])


# --- a process each -------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 4])
def test_nccl_of_a_process_each(count: int) -> None:
    names(count)
    for status, words, _ in met(count, cases.__file__, "contract"):
        assert status == 0 and "is done" in words, words


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("launched", [False, True])
@pytest.mark.parametrize("what", ["rounds", "unequal"])
def test_nccl_a_process_that_ends_takes_the_others_along(
    what: str, launched: bool, count: int
) -> None:
    names(count)
    environment = {"SPGRAPH_LAUNCHED": "1"} if launched else {}
    *others, last = met(count, cases.__file__, what, **environment)
    assert last[0] == (-9 if what == "rounds" else 1)
    for status, words, _ in others:
        assert status == 1 or (launched and status == 70), (status, words)
        assert "AssertionError" not in words, words  # no wrong value came out of it
        assert "NCCL: cuda:" in words and re.search("all_(reduce|gather)", words), words
        reason = "was lost" if what == "rounds" else "something of this process alone"
        assert f"process {count - 1}" in words and reason in words, words
    assert max(seconds for *_, seconds in others) - last[2] < 30
