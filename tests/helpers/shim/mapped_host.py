"""Stands for MappableMemory where there is no GPU: files in memory that several processes map."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import threading
from typing import Any

import numpy as np


class NoOrder:
    """Stands for the PeerBuffers that order launches: here a launch ends before the next begins."""

    lock = threading.RLock()

    def barrier(self) -> None: ...

    def hand_over(self) -> None: ...


class HostMemory:
    """Allocations of this process and of others, each a file in the current folder.
    `refused` names a call that fails; `live` counts what this process has allocated and mapped.
    """

    def __init__(self, host: int = 1, gpu: int = 0, refused: str = "") -> None:
        self.order: Any = NoOrder()
        self.host, self.gpu, self.refused = host, gpu, refused
        self._open: dict[int, tuple[mmap.mmap, Any, str]] = {}
        self._made = 0

    @property
    def live(self) -> int:
        return len(self._open)

    def _may(self, call: str) -> None:
        if call == self.refused:
            raise RuntimeError(f"{call} is refused")

    def _mapped(self, path: str) -> int:
        with open(path, "r+b") as file:
            held = mmap.mmap(file.fileno(), 0)
        view = (ctypes.c_char * len(held)).from_buffer(held)
        address = ctypes.addressof(view)
        self._open[address] = held, view, path
        return address

    def identity(self) -> np.ndarray:
        return np.array([self.host, self.host, self.gpu, 1], np.int64)

    def reaches(self, identity: np.ndarray) -> bool:
        return self.refused != "reaches"

    def array(self, values: np.ndarray) -> np.ndarray:
        return values.copy()

    def context(self) -> Any:
        return contextlib.nullcontext()

    def allocate(self, size: int) -> int:
        self._may("allocate")
        self._made += 1
        path = f"{os.getpid()}_{self._made}"
        with open(path, "wb") as file:
            file.truncate(max(size, 8))
        return self._mapped(path)

    def handle(self, address: int) -> np.ndarray:
        words = self._open[address][2].encode().ljust(64, b"\0")
        assert len(words) == 64
        return np.frombuffer(words, np.int64)

    def map(self, handle: np.ndarray) -> int:
        self._may("map")
        return self._mapped(handle.tobytes().rstrip(b"\0").decode())

    def free(self, address: int) -> None:
        path = self._open[address][2]
        self.unmap(address)
        os.unlink(path)

    def unmap(self, address: int) -> None:
        held, view, _ = self._open.pop(address)
        del view
        held.close()

    def clear(self, address: int, size: int) -> None:
        ctypes.memset(address, 0, size)

    def synchronize(self) -> None: ...

    def mark(self, address: int) -> None:
        ctypes.c_int64.from_address(address).value = -1

    def word(self, address: int) -> np.ndarray:
        return np.frombuffer((ctypes.c_char * 8).from_address(address), np.int64)
