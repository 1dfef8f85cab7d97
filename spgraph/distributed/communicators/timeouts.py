"""Timeouts of collectives: a warning in the log after some time, an error after the user's limit,
both with the processes that have not come.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

logger = logging.getLogger("spgraph.distributed")

WARN_AFTER = 30.0  # seconds of waiting after which a warning is logged


class Timeouts:
    """The waiting of this process, such as "NCCL: process 0 of 2", for others in calls."""

    def __init__(self, who: str, timeout: float | None) -> None:
        self._who, self._timeout = who, timeout
        self._logged = 0  # the number of the last such call

    def poll(
        self, seconds: float, number: int, call: str, missing: Callable[[], Sequence[int] | None]
    ) -> str | None:
        """Called from time to time while this process waits, so far `seconds`, in a call, for the
        processes `missing()` (none: for a device; None: it is not known for which): the reason to
        give up, or None.
        """
        if self._timeout is not None and seconds > self._timeout:
            return f"{_named(missing())} not come within timeout={self._timeout:g} s"
        if seconds > WARN_AFTER and self._logged != number:
            self._logged = number
            logger.warning(
                "%s has waited %.0f s in %s: %s not come",
                *(self._who, seconds, call, _named(missing())),
            )
        return None


def _named(processes: Sequence[int] | None) -> str:
    """'process 1 has', 'processes 1, 2 have', 'a device has', 'another process has'."""
    if processes is None:
        return "another process has"
    if len(processes) > 1:
        return f"processes {', '.join(map(str, processes))} have"
    return f"process {processes[0]} has" if processes else "a device has"
