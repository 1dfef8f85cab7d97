"""Calls with a time limit, calls in the background, the end of a process that has lost others."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

from spgraph.errors import CommunicationError

R = TypeVar("R")

LOST_PEER = 70  # the exit status of a process that is ended because another one is lost
GRACE = 3.0  # seconds in which such a process may end by itself, with its own error


def launched() -> bool:
    """True in a process that the command `spgraph` started under mpirun: that is not interactive,
    so that it may be ended where a user's own process gets an exception.
    """
    return bool(os.environ.get("SPGRAPH_LAUNCHED"))


def in_time(
    what: str,
    seconds: float,
    function: Callable[[], R],
    lost: Callable[[], str | None] = lambda: None,
) -> R:
    """function(), for calls of libraries that have no time limit and cannot be interrupted.

    It runs in a thread, which is abandoned after `seconds`, or when `lost()` gives a reason: then
    this raises CommunicationError that names `what`. Errors of the function are raised, too.
    """
    result: Future[R] = Future()

    def run() -> None:
        try:
            result.set_result(function())
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=run, daemon=True, name=what).start()
    deadline = time.monotonic() + seconds
    while not wait([result], 0.1).done:
        if (reason := lost()) is not None:
            raise CommunicationError(f"{what}: {reason}")
        if time.monotonic() > deadline:
            raise CommunicationError(f"{what}: not done after {seconds:g} s")
    return result.result()


def in_background(function: Callable[[], object]) -> None:
    """function() in a thread of its own, where it may hang or fail. The process waits for it at its
    end, at most GRACE seconds, because a driver crashes if Python ends during one of its calls.
    """

    def run() -> None:
        with contextlib.suppress(Exception):
            function()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    atexit.register(thread.join, GRACE)


def end_process(message: str, grace: float = GRACE) -> None:
    """End this process after `grace` seconds with status 70 and one line on stderr, unless it ends
    by itself before.

    This is done by a thread, without clean-up: the main thread may be inside a driver that waits
    for the lost process for ever. An alarm ends a process that hangs while Python shuts down, when
    threads no longer run.
    """
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, grace + 5)

    def run() -> None:
        time.sleep(grace)
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"spgraph: {message}\n")
            sys.stderr.flush()
        os._exit(LOST_PEER)

    threading.Thread(target=run, daemon=True, name="end_process").start()
