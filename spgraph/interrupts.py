"""Ctrl-C at a time that does no harm."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """What Ctrl-C raises on the main thread is raised when the block ends, not inside of it.

    For steps that belong together: a container that is written in place, and compilers that lose
    exceptions of the Python functions they call. Handlers that Python does not know are left alone.

    >>> with deferred():
    ...     done = True
    """
    came: list[tuple[int, FrameType | None]] = []
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, lambda *given: came.append(given))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(*came[0])
