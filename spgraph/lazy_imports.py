"""Libraries that are imported at their first use; the time that first calls spend on imports and on
compiling; forks, which wait for both; and the progress of long loops.

The command line subtracts that time from those that it prints, and shows the progress. Code reports
at rare points (a kernel, a block of a file, one source of many); no result depends on it.
"""

from __future__ import annotations

import contextlib
import functools
import logging  # noqa: F401 (before forks, locks are taken in reverse: its own has to be after ours)
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from spgraph.interrupts import deferred

# A fork by another thread waits for the end of a block `with forks_wait:`. It is for calls of C++
# libraries that release the GIL: a child that is forked during the first of them would find
# variables locked that another thread was initialising, and wait for that thread forever.
forks_wait = threading.RLock()


class Activity:
    """Of a process: `preparing` counts the threads that do what first calls need; `steps` is (how
    many are done, of how many) of a long loop, (0, 0) if nobody knows.
    """

    def __init__(self) -> None:
        self.preparing = 0
        self.steps = (0, 0)
        self._lock = threading.Lock()
        self._since = self._spent = 0.0

    def prepare_seconds(self) -> float:
        """The seconds so far in which something was prepared, by however many threads at once."""
        with self._lock:
            return self._spent + (time.perf_counter() - self._since if self.preparing else 0.0)

    def _begin(self) -> None:
        with self._lock:
            if not self.preparing:
                self._since = time.perf_counter()
            self.preparing += 1

    def _end(self) -> None:
        with self._lock:
            self.preparing -= 1
            if not self.preparing:
                self._spent += time.perf_counter() - self._since


@functools.cache
def current() -> Activity:
    """That of this process."""
    return Activity()


if hasattr(os, "register_at_fork"):
    # its lock may have been held by a thread that the child does not have
    os.register_at_fork(after_in_child=current.cache_clear)


@contextlib.contextmanager
def preparing() -> Iterator[None]:
    """In this block something is prepared that later calls find ready: a kernel is compiled or
    loaded from the disk, types are inferred by the compiler, a library is imported.

    >>> before = current().prepare_seconds()
    >>> with preparing():
    ...     current().preparing
    1
    >>> current().preparing, current().prepare_seconds() > before
    (0, True)
    """
    activity = current()
    activity._begin()
    try:
        yield
    finally:
        activity._end()


def step(done: int, total: int) -> None:
    """`done` of `total` steps of a long loop are done.

    >>> step(3, 8)
    >>> current().steps
    (3, 8)
    """
    current().steps = done, total


@contextlib.contextmanager
def whole() -> Iterator[None]:
    """What is imported in this block is imported as a whole.

    Ctrl-C raises when the block ends: many libraries cannot be imported again after half of it. A
    fork by another thread waits for the end of the block: its child would have half of a library,
    and nobody to import the rest.

    >>> with whole():
    ...     import scipy.sparse
    """
    with preparing(), forks_wait, deferred():
        yield


def _wait_before_fork() -> None:
    """Take `forks_wait` and the locks of Numba and LLVM, in the order in which a first call takes
    them.

    In a child that is forked while another thread holds them they would stay locked forever, and
    the data that they protect would be inconsistent.
    """
    forks_wait.acquire()
    if "numba" in sys.modules:
        from llvmlite.binding import ffi
        from numba.core.compiler_lock import global_compiler_lock

        global_compiler_lock.acquire()
        ffi.lib._lock.__enter__()
        _compilers.append((global_compiler_lock, ffi.lib._lock))


def _go_on_after_fork() -> None:
    while _compilers:
        compiler, llvm = _compilers.pop()
        llvm.__exit__()
        compiler.release()
    forks_wait.release()


_compilers: list[tuple[Any, Any]] = []  # the locks that the process which forks holds
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_wait_before_fork,
        after_in_parent=_go_on_after_fork,
        after_in_child=_go_on_after_fork,
    )
