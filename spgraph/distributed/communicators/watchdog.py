"""Calls that must not hang, and the end of a process whose peers are gone."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from spgraph.errors import CommunicationError

LOST_PEER = 70  # the exit status of a process that a lost peer has ended
GRACE = 3.0  # seconds in which such a process may end by itself, with its own words


def launched() -> bool:
    """True in a process that the command `spgraph` started under mpirun: nobody types there, so
    that it may be ended where a user's own process gets an exception.
    """
    return bool(os.environ.get("SPGRAPH_LAUNCHED"))


def in_time(
    what: str,
    seconds: float,
    function: Callable[[], Any],
    lost: Callable[[], str | None] = lambda: None,
) -> Any:
    """function(), in a thread that is left behind if it takes longer than `seconds`, or when
    `lost()` gives a reason.

    For calls of libraries that neither take a time limit nor can be interrupted. Raises
    CommunicationError with `what` when it is left behind, and what the function raises.
    """
    found: list[Any] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(function())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True, name=what)
    thread.start()
    deadline = time.monotonic() + seconds
    while thread.is_alive():
        thread.join(0.1)
        if (reason := lost()) is not None:
            raise CommunicationError(f"{what}: {reason}")
        if time.monotonic() > deadline:
            raise CommunicationError(f"{what}: not done after {seconds:g} s")
    if failed:
        raise failed[0]
    return found[0]


def in_background(function: Callable[[], Any]) -> None:
    """function() in a thread of its own, whatever comes of it: it may hang or fail. The end of the
    process waits a little for it, for a driver crashes where Python ends under its feet.
    """

    def run() -> None:
        with contextlib.suppress(Exception):
            function()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    atexit.register(thread.join, GRACE)


def end_process(message: str, grace: float = GRACE) -> None:
    """End this process with status 70 and one line on stderr, unless it ends before by itself.

    From a thread, and without any clean-up: the main thread may be inside a driver that waits for
    the lost peer for ever. An alarm stands behind it, for a process that hangs while Python ends,
    when threads do not run any more.
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
