"""What the console script `spgraph` and `python -m spgraph` call: it is here before the package is
imported, which takes half a second, so that Ctrl-C in this time ends the command quietly.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

INTERRUPTED = 130
INTERRUPTED_AS_JSON = (
    b'{"error": {"kind": "KeyboardInterrupt", "message": "interrupted", "exit_code": 130}}\n'
)


def main() -> int:
    """Import and run the command of this process; its exit code."""
    ours = leave_at_ctrl_c()
    from spgraph.cli import main as run

    try:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return run()
    except KeyboardInterrupt:  # before the command looks out for it, or after
        _tell()
        return INTERRUPTED


def leave_at_ctrl_c() -> bool:
    """Let Ctrl-C end the process until `main` runs the command; False if somebody handles it or
    has asked for it to be ignored.
    """
    # KeyboardInterrupt would not do: extension modules print it, or report another error for it
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    return signal.getsignal(signal.SIGINT) is _leave


def wants_json(words: Sequence[str]) -> bool:
    """Whether the words of a command line ask for JSON, even where they are wrong otherwise."""
    wanted = False
    for word, following in zip(words, [*words[1:], ""], strict=False):
        if word == "--":
            break
        if word == "--format":
            wanted = following == "json"
        elif word.startswith("--format="):
            wanted = word == "--format=json"
    return wanted


def _tell() -> None:
    """Say that the command was interrupted, if programs listen."""
    if wants_json(sys.argv[1:]):
        with contextlib.suppress(OSError):  # standard error may be closed
            os.write(2, INTERRUPTED_AS_JSON)


def _leave(number: int, frame: FrameType | None) -> None:
    _tell()
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
