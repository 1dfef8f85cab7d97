"""Memory of devices: small arrays copied there and back, addresses, arrays at addresses, and the
wait before an array is kept for other threads.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from ctypes import addressof, c_char
from types import ModuleType
from typing import Any

import numpy as np

from spgraph.containers.annotations import Device
from spgraph.containers.storage.arrays import Array, import_cupy, is_cuda, on_device

ALIGN = 256  # bytes


def to_host(array: Array) -> Callable[[], np.ndarray]:
    """Start the copy of a small array to the host; a call of the result waits for it."""
    if not is_cuda(array):
        return lambda: array
    cupy = import_cupy()
    host = np.frombuffer(cupy.cuda.alloc_pinned_memory(array.nbytes), array.dtype, array.size)
    array.get(out=host, blocking=False)
    came = cupy.cuda.Event(disable_timing=True)
    came.record()

    def wait() -> np.ndarray:
        came.synchronize()
        return host

    return wait


def sent(array: np.ndarray, xp: ModuleType, to: Array | None = None) -> Array:
    """A small contiguous `array`, of at most 64 KB, as one of `xp`, CuPy's on the current device;
    or `to`, of the same type, which then begins with its elements.

    One call of the driver: `cupy.asarray` copies to pinned memory and records an event, in three
    times as long. The driver has staged the bytes when it returns, as CUDA's description ("API
    synchronization behavior") allows, not promises: a test overwrites what a busy GPU was sent.
    """
    to = xp.empty(array.shape, array.dtype) if to is None else to
    if xp is np:
        to[: array.size] = array
    elif array.nbytes:
        at = addressof(c_char.from_buffer(array.data)) if array.flags.writeable else address(array)
        to.data.copy_from_host_async(at, array.nbytes)
    return to


@functools.lru_cache(maxsize=1024)
def places(*sizes: int) -> tuple[int, ...]:
    """Where parts of so many bytes begin that lie one after another, and where the last one ends;
    aligned as CuPy's pieces of memory are.
    """
    ends = itertools.accumulate(-(-size // ALIGN) * ALIGN for size in sizes)
    return (0, *ends)


def copied(array: Array) -> Array:
    """A copy of a contiguous array on the current device, made by the driver: CuPy's own would
    compile a program for its type.
    """
    if not is_cuda(array):
        return array.copy()
    to = import_cupy().empty_like(array)
    to.data.copy_from_device_async(array.data, array.nbytes)
    return to


def address(array: Array | None) -> int:
    """Where an array lies in its device's memory, for structs that hold pointers; 0 for None."""
    if array is None:
        return 0
    return int(array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr)


def array_at(address: int, size: int, dtype: np.dtype, owner: Any) -> Array:
    """The array of `size` elements at an address of the current GPU, in memory that `owner` keeps.
    CuPy's arrays refer to what keeps their memory.
    """
    cupy = import_cupy()
    memory = cupy.cuda.UnownedMemory(address, size * dtype.itemsize, owner)
    return cupy.ndarray(size, dtype, cupy.cuda.MemoryPointer(memory, 0))


def synchronize(device: Device) -> None:
    """Wait until a GPU (a full name) has completed the work of its current stream; nothing for the
    CPU or a Placement.

    An array that is kept for later calls must be complete: another thread, which works in another
    stream, may find it. Later work of the same stream needs no wait.
    """
    if isinstance(device, str) and device != "cpu":
        with on_device(device) as cupy:
            cupy.cuda.get_current_stream().synchronize()
