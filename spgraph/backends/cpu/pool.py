"""Run a kernel on all cores.

A CPU kernel is a *single program for many threads*, as a CUDA kernel is: `def kernel(thread,
threads, ...)` is a nogil Numba function that every thread runs on its own share, meeting the others
at `atomics.barrier` where it has to. It is launched on Python's own threads. Numba's
`parallel=True` is not used: it takes several seconds to compile, its OpenMP layer kills a forked
child and its workqueue layer aborts under Python threads.
"""

from __future__ import annotations

import functools
import gc
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from spgraph.backends.cpu import atomics


@functools.cache
def processors() -> int:
    """How many threads a large kernel runs on: $SPGRAPH_NUM_THREADS, else the processors this
    process may use.
    """
    asked = os.environ.get("SPGRAPH_NUM_THREADS")
    if asked is not None:
        if not asked.isdigit() or int(asked) < 1:
            raise ValueError(f"SPGRAPH_NUM_THREADS: expected an integer >= 1, got {asked!r}")
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads_for(work: int) -> int:
    """Threads worth waking for `work` elementary steps: waking one costs about as much as 50 000 of
    them.
    """
    return int(max(1, min(processors(), work // 50_000)))


def new_sync() -> np.ndarray:
    """The words that the threads of one launch meet at."""
    return np.zeros(atomics.SYNC_WORDS, np.int64)


@functools.cache
def _workers() -> tuple[threading.Lock, ThreadPoolExecutor, int]:
    """The workers, all of them started: a kernel waits until every one of its threads has come."""
    count = max(1, processors() - 1)
    pool = ThreadPoolExecutor(count, thread_name_prefix="spgraph")
    started = threading.Barrier(count)
    for task in [pool.submit(started.wait) for _ in range(count)]:
        task.result()
    return threading.Lock(), pool, count


# the threads of the parent do not exist in a forked child, and its lock may be held for ever
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_workers.cache_clear)


def launch(kernel: Callable[..., Any], threads: int, *arguments: Any) -> None:
    """Run kernel(thread, threads, *arguments) once on each of `threads` threads, and return when
    all have.
    """
    if getattr(kernel, "overloads", True) or not gc.isenabled():
        _run(kernel, threads, *arguments)
        return
    # compiled now: an eighth of the time would go into the search for garbage
    gc.disable()
    try:
        _run(kernel, threads, *arguments)
    finally:
        gc.enable()


def _run(kernel: Callable[..., Any], threads: int, *arguments: Any) -> None:
    if threads == 1:
        kernel(0, 1, *arguments)
        return
    lock, pool, count = _workers()
    if threads > count + 1:  # those that came would wait for ever
        raise RuntimeError(f"launch: expected at most {count + 1} threads, got {threads}")
    # kernels wait for each other: two launches that share the workers could wait for ever
    with lock:
        others: list[Future[None]] = []
        try:
            for thread in range(1, threads):
                others.append(pool.submit(kernel, thread, threads, *arguments))
        finally:  # an interrupt in between must not leave some of them waiting for the rest
            for thread in range(len(others) + 1, threads):
                others.append(pool.submit(kernel, thread, threads, *arguments))
            try:
                kernel(0, threads, *arguments)
            finally:
                for other in others:
                    other.result()
