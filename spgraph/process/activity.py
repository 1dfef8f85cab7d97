"""What this process is doing, for those who wait: the time that first calls spend on imports and on
compiling, and the progress of long loops.

The command line subtracts that time from those that it prints, and shows the progress. Code reports
at rare points (a kernel, a block of a file, one source of many); no result depends on it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
from collections.abc import Iterator


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
