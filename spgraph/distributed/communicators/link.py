"""NCCL, and its communicator of one GPU."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from spgraph.containers.storage.arrays import import_cupy
from spgraph.errors import BackendUnavailable


def load_nccl() -> ModuleType:
    """CuPy's module for NCCL."""
    import_cupy()
    from cupy.cuda import nccl

    if not nccl.available:
        raise BackendUnavailable(
            "NcclCommunicator: CuPy finds no NCCL: pip install 'spgraph[cuda13]' (or [cuda12])"
        )
    return nccl


@functools.cache
def number_of(device: str) -> int:
    """The N of 'cuda:N'."""
    return int(device.partition(":")[2])


@dataclass(frozen=True)
class Link:
    """The NCCL communicator of a local shard."""

    shard: int
    device: str
    comm: Any

    def stream(self) -> int:
        """The device's current stream."""
        return import_cupy().cuda.get_current_stream(number_of(self.device)).ptr
