"""What the console script `spgraph` calls: it is here before the package is imported, which takes
half a second, so that Ctrl-C in this time ends the command quietly.
"""

from __future__ import annotations

import os
import signal
import sys

INTERRUPTED = 130


def main() -> int:
    """Import and run the command of this process; its exit code."""
    # KeyboardInterrupt would not do: extension modules print it, or report another error for it
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:  # else somebody has asked for it to be ignored
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    from spgraph.cli import main as run

    try:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return run()
    except KeyboardInterrupt:  # before the command looks out for it, or after
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
