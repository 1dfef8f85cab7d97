"""Small arrays from several GPUs to the host at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spgraph.containers.storage.arrays import Array, on_device


class Readback:
    """Pinned memory and an event for each local shard: the copies of all devices run concurrently,
    with one wait for all instead of one for each. Buffers grow by doubling and are reused.
    """

    def __init__(self, devices: Sequence[str]) -> None:
        self.devices = tuple(devices)
        self._pinned: list[Any] = [None] * len(devices)
        self._events: list[Any] = [None] * len(devices)

    def fetch(self, arrays: Sequence[Array], wait: Callable[[Any, str], None]) -> list[np.ndarray]:
        """Host copies of `arrays`; `wait(event, device)` returns when the event has happened."""
        hosts = []
        for k, (array, device) in enumerate(zip(arrays, self.devices, strict=True)):
            with on_device(device) as cupy:
                if self._pinned[k] is None or self._pinned[k].nbytes < array.nbytes:
                    size = max(4096, 1 << (array.nbytes - 1).bit_length())
                    memory = cupy.cuda.alloc_pinned_memory(size)
                    self._pinned[k] = np.frombuffer(memory, np.uint8, size)
                    self._events[k] = self._events[k] or cupy.cuda.Event(disable_timing=True)
                host = self._pinned[k][: array.nbytes].view(array.dtype).reshape(array.shape)
                array.get(out=host, blocking=False)
                self._events[k].record(cupy.cuda.get_current_stream())
                hosts.append(host)
        for event, device in zip(self._events, self.devices, strict=True):
            wait(event, device)
        return [host.copy() for host in hosts]
