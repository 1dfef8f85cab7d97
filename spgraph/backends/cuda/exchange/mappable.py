"""Memory of a GPU that other processes of the host can map: CUDA's interprocess communication."""

from __future__ import annotations

import hashlib
import pathlib
from typing import Any

import numpy as np

from spgraph.backends.cuda.exchange.peers import PeerBuffers
from spgraph.containers.storage.arrays import Array, import_cupy
from spgraph.containers.storage.device_memory import array_at

# the driver puts smaller allocations into one block, of which a handle would give away the whole
GRANULE = 1 << 21
HANDLE_WORDS, IDENTITY_WORDS = 8, 4
BOOT_ID = pathlib.Path("/proc/sys/kernel/random/boot_id")
ANY_WAY = 4  # cudaMemcpyDefault


class MappableMemory:
    """Allocations on one GPU of this process, and those of others that this process has mapped.
    Addresses are numbers. Errors are CUDA's, RuntimeError.
    """

    def __init__(self, device: int) -> None:
        cupy = import_cupy()
        self.device, self._cupy, self._runtime = device, cupy, cupy.cuda.runtime
        self.order = PeerBuffers([device])  # of the launches of this process
        with cupy.cuda.Device(device):
            self._stream = cupy.cuda.Stream(non_blocking=True)
            self._mark: Any = cupy.asarray(np.array([-1]))

    def identity(self) -> np.ndarray:
        """Which host this is, which GPU: words, equal for the same; the first two are 0 where
        memory cannot be mapped.
        """
        words = np.zeros(IDENTITY_WORDS, np.int64)
        if BOOT_ID.exists():
            words[:2] = np.frombuffer(hashlib.sha256(BOOT_ID.read_bytes()).digest()[:16], np.int64)
        bus = self._cupy.cuda.Device(self.device).pci_bus_id
        words[2:] = np.frombuffer(bus.encode().ljust(16, b"\0")[:16], np.int64)
        return words

    def reaches(self, identity: np.ndarray) -> bool:
        """Whether this GPU can access the memory of another one of the host. True also for one that
        this process cannot see: `map` will find out.
        """
        runtime = self._runtime
        try:
            peer = runtime.deviceGetByPCIBusId(identity[2:].tobytes().rstrip(b"\0").decode())
        except runtime.CUDARuntimeError:
            return True
        return bool(runtime.deviceCanAccessPeer(self.device, peer))

    def array(self, values: np.ndarray) -> Array:
        """A copy on the GPU."""
        with self.context():
            return self._cupy.asarray(values)

    def context(self) -> Any:
        """The GPU, as a context to work in."""
        return self._cupy.cuda.Device(self.device)

    def allocate(self, size: int) -> int:
        """The address of new memory. CuPy's pool gives back what it does not use if need be."""
        size, runtime = -(-max(1, size) // GRANULE) * GRANULE, self._runtime
        with self.context():
            try:
                return int(runtime.malloc(size))
            except runtime.CUDARuntimeError:
                self._cupy.get_default_memory_pool().free_all_blocks()
                return int(runtime.malloc(size))

    def handle(self, address: int) -> np.ndarray:
        """What another process needs to map the allocation, as words."""
        with self.context():
            return np.frombuffer(self._runtime.ipcGetMemHandle(address), np.int64)

    def free(self, address: int) -> None:
        """Free an allocation, which no process has mapped any more."""
        with self.context():
            self._runtime.free(address)

    def map(self, handle: np.ndarray) -> int:
        """The address here of another process's allocation."""
        with self.context():
            return int(self._runtime.ipcOpenMemHandle(handle.tobytes()))

    def unmap(self, address: int) -> None:
        """Undo `map`."""
        with self.context():
            self._runtime.ipcCloseMemHandle(address)

    def clear(self, address: int, size: int) -> None:
        """Fill with zeros, after all work that the GPU has by now; waits for it."""
        with self.context():
            self.synchronize()
            self._runtime.memset(address, 0, size)
            self.synchronize()

    def synchronize(self) -> None:
        """Wait for all work of the GPU."""
        with self.context():
            self._runtime.deviceSynchronize()

    def mark(self, address: int) -> None:
        """Set one word to -1, whatever kernels run, from any thread."""
        with self.context():
            source, stream = self._mark.data.ptr, self._stream.ptr
            self._runtime.memcpyAsync(address, source, 8, ANY_WAY, stream)
            self._stream.synchronize()

    def word(self, address: int) -> Array:
        """One word of an allocation on this GPU, as an array."""
        with self.context():
            return array_at(address, 1, np.dtype(np.int64), self)
