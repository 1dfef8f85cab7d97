"""Host-mapped counters: memory of the host that the kernels of a round write directly. Each 64-bit
word is a count, shifted left by 16, and in the low 16 bits the number of the round, by which the
host sees that the word has been written.

The counts of several processes are gathered into such memory, by NCCL, which takes it ("Data
pointers" in its guide) but writes single bytes: the host reads it when the collective has ended.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from spgraph.containers.storage.arrays import Array, import_cupy, is_cuda
from spgraph.containers.storage.device_memory import address, array_at
from spgraph.distributed.communicators import Communicator

POLL = 0.05  # seconds between two checks for failures


def host_mapped(shape: tuple[int, int], array: Array) -> np.ndarray:
    """Words of the host, zero: pinned, so that kernels can write them, if `array` is on a GPU."""
    if not is_cuda(array):
        return np.zeros(shape, np.int64)
    memory = import_cupy().cuda.alloc_pinned_memory(8 * shape[0] * shape[1])
    made = np.frombuffer(memory, np.int64, shape[0] * shape[1]).reshape(shape)
    made[:] = 0
    return made


def on_device_too(host: np.ndarray, array: Array) -> Array:
    """The same memory, which is from `host_mapped`, as an array of the library of `array`."""
    if not is_cuda(array):
        return host.reshape(-1)
    return array_at(address(host), host.size, host.dtype, host)


def _ended(arrays: Sequence[Array]) -> bool:
    """Whether all that the current streams of the arrays' devices were given is done; raises where
    a kernel has failed.
    """
    ended = True
    for array in filter(is_cuda, arrays):
        with array.device:
            ended = bool(import_cupy().cuda.get_current_stream().done) and ended
    return ended


def wait_for_counts(
    host_counters: np.ndarray,
    rounds: Sequence[int],
    arrays: Sequence[Array],
    communicator: Communicator,
) -> np.ndarray:
    """The counts of the local shards, as soon as their kernels have written all of them, each with
    the number of its round. There is an array on the device of each. CommunicationError where
    kernels end without them.
    """
    marks, looked = np.array([[number & 0xFFFF] for number in rounds]), time.monotonic()
    while ((host_counters & 0xFFFF) != marks).any():
        if time.monotonic() - looked > POLL:
            communicator.check()
            if _ended(arrays) and ((host_counters & 0xFFFF) != marks).any():
                found = (host_counters & 0xFFFF).tolist()
                raise communicator.failure(
                    f"kernels have ended without the counts of the rounds {list(rounds)}: "
                    f"host_counters has marks {found}"
                )
            looked = time.monotonic()
    # the counts are valid only if no collective was aborted whose result the kernels have read
    communicator.check()
    return host_counters >> 16
