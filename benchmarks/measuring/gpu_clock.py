"""How long a call takes on a GPU: the device's time, the host's, and the wall's."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from spgraph.containers.storage.arrays import import_cupy

SPIN_US = 200  # at least; three times as long as the host takes to queue a call
SPIN_MOST_US = 2000.0  # a call that reads back takes as long to queue as it takes
SPIN = r"""
extern "C" __global__ void spin(unsigned long long nanoseconds) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    } while (now - start < nanoseconds);
}
"""


class Times(NamedTuple):
    """Of one call, warm: all its device and wall times, and how long the host takes to queue it."""

    device_ms: list[float]
    wall_ms: list[float]
    issue_us: float


def measure(call: Callable[[], Any], calls: int) -> Times:
    """`calls` times of each kind, after one call to warm up.

    Device time is that between two CUDA events around all work of a call, fills and result
    included. So that the host's launches are not part of it, a kernel that only spins goes before
    the first event, and the host queues the whole call behind it; a call that reads something back
    waits there for the host, and that is part of its time. Wall time is that of a call and a
    synchronisation, without the spinning.
    """
    cupy = import_cupy()
    call()
    issue = _issue_us(call, calls, cupy)
    return Times(_device_ms(call, calls, issue, cupy), wall_ms(call, calls, cupy), issue)


def device_ms(call: Callable[[], Any], calls: int) -> list[float]:
    """`calls` device times alone, of a call that is warm and may take seconds."""
    cupy = import_cupy()
    return _device_ms(call, calls, _issue_us(call, 1, cupy), cupy)


def _issue_us(call: Callable[[], Any], calls: int, cupy: Any) -> float:
    """How long the host takes to queue a call."""
    times = []
    for _ in range(calls):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        last = call()
        times.append((time.perf_counter() - start) * 1e6)
        cupy.cuda.Device().synchronize()
        del last
    return float(np.median(times))


def _device_ms(call: Callable[[], Any], calls: int, issue_us: float, cupy: Any) -> list[float]:
    spin_us = min(max(SPIN_US, 3 * issue_us), SPIN_MOST_US)
    spin = cupy.RawKernel(SPIN, "spin")
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    times = []
    for _ in range(calls):
        spin((1,), (1,), (np.uint64(spin_us * 1e3),))
        begin.record()
        last = call()
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(begin, end))
        del last
    return times


def wall_ms(call: Callable[[], Any], calls: int, cupy: Any) -> list[float]:
    """`calls` wall times of a call that is warm, and the synchronisation after it."""
    times = []
    for _ in range(calls):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        last = call()
        cupy.cuda.Device().synchronize()
        times.append((time.perf_counter() - start) * 1e3)
        del last
    return times
