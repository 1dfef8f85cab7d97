"""Memory of several GPUs of one process that all of them write, and one launch on all of them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from typing import Any, ClassVar

from spgraph.backends.cuda.exchange.buffers import Launching
from spgraph.containers.storage.arrays import import_cupy
from spgraph.errors import BackendUnavailable

ALREADY_ENABLED = 704  # cudaErrorPeerAccessAlreadyEnabled


class PeerBuffers(Launching):
    """One allocation on each of `devices` (their numbers), which kernels on all of them write.

    Made by cudaMalloc, since a pool may hand out memory that other devices cannot reach; kept, and
    replaced by more where a launch needs it. A grid on one device waits for those on the others:
    if two launches started in different orders on two devices, they would wait for ever. So each
    takes `lock`, the only one of the process, and runs after the one before on every device. Loops
    whose rounds the host launches do the same: they call `barrier` before the first round and after
    each, and `hand_over` at the end.

    Raises BackendUnavailable for a device that is named twice (two grids that wait for each other
    never run on it at the same time) or that cannot reach one of the others.
    """

    lock: ClassVar[threading.RLock] = threading.RLock()
    # events of the last launch, by device: of the whole process, for all objects of this class
    _done: ClassVar[dict[int, Any]] = {}

    def __init__(self, devices: Sequence[int]) -> None:
        self.devices = tuple(int(device) for device in devices)
        self._memory: dict[int, Any] = {}
        self._addresses: list[int] = []
        self._layout: object = None
        cupy = import_cupy()
        if len(set(self.devices)) < len(self.devices):
            raise BackendUnavailable(
                "peer exchange: expected a device of its own for each shard, "
                f"got devices {list(self.devices)}: use fewer shards or exchange='nccl'"
            )
        runtime = cupy.cuda.runtime
        for device, peer in itertools.permutations(self.devices, 2):
            if not runtime.deviceCanAccessPeer(device, peer):
                raise BackendUnavailable(
                    f"peer exchange: device {device} cannot reach the memory of device "
                    f"{peer}: use exchange='nccl'"
                )
            try:
                with cupy.cuda.Device(device):
                    runtime.deviceEnablePeerAccess(peer)
            except runtime.CUDARuntimeError as error:
                if error.status != ALREADY_ENABLED:
                    raise
        self.contexts = [cupy.cuda.Device(device) for device in self.devices]
        self._ready: list[Any] = []
        self._finished: list[Any] = []
        for device in self.contexts:
            with device:
                self._ready.append(cupy.cuda.Event(disable_timing=True))
                self._finished.append(cupy.cuda.Event(disable_timing=True))

    def another(self) -> PeerBuffers:
        return PeerBuffers(self.devices)

    def reserve(self, layout: object, sizes: Sequence[int]) -> list[int]:
        cupy = import_cupy()
        fits = all(
            device in self._memory and self._memory[device].mem.size >= size
            for device, size in zip(self.devices, sizes, strict=True)
        )
        if not fits:
            self._layout = None
        if self._layout is None:  # kernels of a launch that failed may still write there
            for context in self.contexts:
                context.synchronize()
        if not fits:
            self._memory.clear()
            for context, size in zip(self.contexts, sizes, strict=True):
                with context:
                    memory = cupy.cuda.Memory(size)
                    self._memory[context.id] = cupy.cuda.MemoryPointer(memory, 0)
            self._addresses = [int(self._memory[device].ptr) for device in self.devices]
        if layout != self._layout:
            for context in self.contexts:
                with context:
                    stream, memory = cupy.cuda.get_current_stream(), self._memory[context.id]
                    for done in self._done.values():
                        stream.wait_event(done)
                    memory.memset_async(0, memory.mem.size, stream)
            self._layout = layout
        return self._addresses

    def forget(self, reason: str = "") -> None:
        self._layout = None

    @property
    def nbytes(self) -> int:
        """How much memory is held, on all devices together."""
        return sum(int(memory.mem.size) for memory in self._memory.values())

    def barrier(self) -> None:
        current, streams = import_cupy().cuda.get_current_stream, []
        idle = all(event.done for event in self._done.values())
        for device in self.contexts:
            with device:
                streams.append(current())
                idle = idle and streams[-1].done
        if idle:  # to find that out takes the host less time than to order the streams
            return
        for ready, stream, device in zip(self._ready, streams, self.contexts, strict=True):
            with device:
                ready.record(stream)
        for p, device in enumerate(self.contexts):
            with device:
                for event in (*self._ready[:p], *self._ready[p + 1 :], *self._done.values()):
                    streams[p].wait_event(event)

    def hand_over(self) -> None:
        current = import_cupy().cuda.get_current_stream
        for finished, device in zip(self._finished, self.contexts, strict=True):
            with device:
                finished.record(current())
        self._done.update(zip(self.devices, self._finished, strict=True))
