"""Timeouts of collectives: a warning in the log after some time, an error after the user's limit,
both with the processes that have not come.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Sequence

from spgraph.distributed.communicators.store import TcpStore

logger = logging.getLogger("spgraph.distributed")

WARN_AFTER = 30.0  # seconds of waiting after which a warning is logged
PUBLISH_AFTER = 1.0  # seconds after which a process publishes in the store that it waits


class Timeouts:
    """The waiting of this process in calls of NCCL. NCCL does not say which process has not come,
    so every process that waits publishes that in the `store`: the missing are all others.
    """

    def __init__(self, store: TcpStore | None, timeout: float | None) -> None:
        self._store, self._timeout = store, timeout
        self._published = self._logged = 0  # the number of the last such call

    def poll(self, seconds: float, number: int, call: str) -> str | None:
        """Called from time to time while this process waits, so far `seconds`, in a call: the
        reason to give up, or None.
        """
        store = self._store
        if seconds > PUBLISH_AFTER and self._published != number and store is not None:
            self._published = number
            store.set(f"waits/{store.rank}", struct.pack("!q", number))
        if self._timeout is not None and seconds > self._timeout:
            return f"{self._missing(number)} not come within timeout={self._timeout:g} s"
        if seconds > WARN_AFTER and self._logged != number:
            self._logged = number
            who = f"process {store.rank} of {store.processes}" if store else "the process"
            logger.warning(
                "NCCL: %s has waited %.0f s in %s: %s not come",
                *(who, seconds, call, self._missing(number)),
            )
        return None

    def _missing(self, number: int) -> str:
        """The processes that have not published that they wait in this call."""
        store, missing = self._store, []
        for rank in range(0 if store is None else store.processes):
            assert store is not None
            if store.rank != rank and store.peek(f"waits/{rank}") != struct.pack("!q", number):
                missing.append(rank)
        return named(missing) if missing else "a device has"


def named(processes: Sequence[int]) -> str:
    """'process 1 has', 'processes 1, 2 have'."""
    if len(processes) == 1:
        return f"process {processes[0]} has"
    return f"processes {', '.join(map(str, processes))} have"
