"""What the kernels of a round tell the host: words of its memory that they write, each above 16
bits of the round's number.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from spgraph.containers.arrays import import_cupy, is_cuda
from spgraph.distributed.communicators import Communicator

POLL = 0.05  # seconds between two looks for failures


def host_mapped(shape: tuple[int, int], array: Any) -> np.ndarray:
    """Words of the host, zero, which kernels on every device may write if `array` is on one."""
    if not is_cuda(array):
        return np.zeros(shape, np.int64)
    memory = import_cupy().cuda.alloc_pinned_memory(8 * shape[0] * shape[1])
    made = np.frombuffer(memory, np.int64, shape[0] * shape[1]).reshape(shape)
    made[:] = 0
    return made


def counts_of_round(
    host_counters: np.ndarray, round_: int, shards: Sequence[Any], communicator: Communicator
) -> np.ndarray:
    """What the kernels of a round have counted, a row for each of all shards: those of one process
    from `host_counters`, a row a shard; those of several from the arrays `counts` of the local
    `shards`.
    """
    if communicator.processes == 1:
        return wait_for_counts(host_counters, round_, shards, communicator)
    number = host_counters.shape[1]
    every = communicator.all_gather(
        [shard.counts for shard in shards], sizes=[number] * communicator.num_shards
    )
    return communicator.fetch(every)[0].reshape(-1, number)


def wait_for_counts(
    host_counters: np.ndarray, round_: int, shards: Sequence[Any], communicator: Communicator
) -> np.ndarray:
    """The counts of the local shards, when their kernels have written them to the host."""
    mark, looked = round_ & 0xFFFF, time.monotonic()
    while ((host_counters & 0xFFFF) != mark).any():
        if time.monotonic() - looked > POLL:
            check(shards, communicator)
            looked = time.monotonic()
    # what kernels counted is good only if nothing that they read was broken off
    communicator.check()
    return host_counters >> 16


def check(shards: Sequence[Any], communicator: Communicator) -> None:
    """Raise where the counts will not come."""
    communicator.check()
    for shard in shards:
        if is_cuda(shard.given):
            with shard.given.device:
                _ = import_cupy().cuda.get_current_stream().done  # or what a kernel has met
