"""Libraries that are imported at their first use; forks, which wait for that and for compilers."""

from __future__ import annotations

import contextlib
import logging  # noqa: F401 (before forks, locks are taken in reverse: its own has to be after ours)
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

from spgraph.process.activity import preparing
from spgraph.process.interrupts import deferred

# A fork by another thread waits for the end of a block `with forks_wait:`. It is for calls of C++
# libraries that release the GIL: a child that is forked during the first of them would find
# variables locked that another thread was initialising, and wait for that thread forever.
forks_wait = threading.RLock()


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
