"""The standard streams of the command: some are closed, full, or read by nobody any more."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from typing import Any

# what writing to a full, broken or closed stream raises
UNWRITTEN = (errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EBADF, errno.EDQUOT)


def open_closed() -> None:
    """Open what whoever started the process has closed (`>&-`), so that everything may print.

    A number that is free would be that of the next file opened, and what is printed would go into
    that file. What goes to a closed standard output is kept, for `lost` to say that there was some.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    if sys.stdout is None:
        sys.stdout = io.StringIO()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (for the life of the process)


def lost() -> bool:
    """Whether something was printed to an output that was closed."""
    return type(sys.stdout) is io.StringIO and bool(sys.stdout.getvalue())


def give_up(stream: Any) -> None:
    """Keep the interpreter from complaining of a stream as it flushes it at its exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
