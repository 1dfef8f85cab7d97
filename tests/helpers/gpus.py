"""How many GPUs there are, and containers and buffers of several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spgraph.backends.cuda.exchange.buffers import Plan
from spgraph.backends.cuda.exchange.peers import PeerBuffers
from spgraph.containers.storage.arrays import import_cupy, on_device


def visible(least: int = 1) -> int:
    """The number of GPUs; skips the test where they are fewer than `least`."""
    count = int(import_cupy().cuda.runtime.getDeviceCount())
    if count < least:
        pytest.skip(f"gpu: needs {least} GPUs, {count} visible")
    return count


def names(count: int) -> list[str]:
    """The names of `count` GPUs; skips the test where they are fewer."""
    visible(count)
    return [f"cuda:{k}" for k in range(count)]


def buffers_of(count: int) -> PeerBuffers:
    """Buffers of `count` GPUs; skips the test where they are fewer."""
    visible(count)
    return PeerBuffers(range(count))


def place(device: int, array: np.ndarray) -> Any:
    """The array on a GPU."""
    with on_device(f"cuda:{device}") as cupy:
        return cupy.asarray(array)


def on_devices(rows: list[Any]) -> list[Any]:
    """The tuples of arrays, each on a GPU of its own; what is one array stays one."""
    found = []
    for device, arrays in enumerate(rows):
        moved = {id(array): place(device, array) for array in arrays if array is not None}
        found.append(type(arrays)(*(moved.get(id(array)) for array in arrays)))
    return found


class Absent(PeerBuffers):
    """Buffers of two GPUs; where it is `absent`, the kernel of the second does nothing."""

    absent = False

    def __init__(self) -> None:
        visible(2)
        super().__init__(range(2))

    def launch(self, plan: Plan, *rest: Any) -> None:
        if self.absent:

            def nothing(*arguments: Any, **more: Any) -> None: ...

            made: Any = [plan.kernels[0], nothing, *plan.kernels[2:]]
            plan = plan._replace(kernels=made)
        super().launch(plan, *rest)
