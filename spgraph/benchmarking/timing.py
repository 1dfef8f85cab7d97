"""The time of a call, until all devices and processes have its result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np

from spgraph.containers.storage.arrays import on_device
from spgraph.distributed import Communicator

R = TypeVar("R")


def timed(
    devices: Iterable[str], run: Callable[[], R], communicator: Communicator | None = None
) -> tuple[R, float]:
    """(run(), the seconds until these devices, and all processes, are done), begun together."""
    wait(devices, communicator)
    begin = time.perf_counter()
    found = run()
    wait(devices, communicator)
    return found, time.perf_counter() - begin


def wait(devices: Iterable[str], communicator: Communicator | None = None) -> None:
    """Wait for the devices of this process, and for the other processes."""
    for device in set(devices) - {"cpu"}:
        with on_device(device) as cupy:
            cupy.cuda.Device().synchronize()
    if communicator is not None and communicator.processes > 1:
        communicator.all_reduce_host(np.zeros(1, np.int64), "sum")
