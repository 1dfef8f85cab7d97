"""Delay Ctrl-C until a block of code is complete."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """While the `with` block runs on the main thread, Ctrl-C is recorded; its handler, which raises
    KeyboardInterrupt by default, runs when the block ends.

    For code that must not stop halfway: writing a container in place, and compilers that lose
    exceptions of the Python functions they call. Signal handlers that are not Python functions are
    left alone.

    >>> with deferred():
    ...     done = True
    """
    came: list[tuple[int, FrameType | None]] = []
    handler = signal.getsignal(signal.SIGINT)
    comes = callable(handler) and threading.current_thread() is threading.main_thread()
    if comes:
        try:
            signal.signal(signal.SIGINT, lambda *given: came.append(given))
        except ValueError:  # in a sub-interpreter, as of mod_wsgi, to which no signal comes
            comes = False
    try:
        yield
    finally:
        if comes:
            signal.signal(signal.SIGINT, handler)
        if came and callable(handler):
            handler(*came[0])
