"""Who waits for whom: what the log says after a while, and when waiting is an error."""

from __future__ import annotations

import logging
import struct
from collections.abc import Sequence

from spgraph.distributed.communicators.store import TcpStore

logger = logging.getLogger("spgraph.distributed")

WARN_AFTER = 30.0  # seconds after which the log tells who is waited for
PUBLISH_AFTER = 1.0  # seconds after which a process tells the store that it waits


class Timeouts:
    """How long this process waits in calls of NCCL, which do not tell who has not come: processes
    that wait say so in their `store`, and the others are those that are waited for.
    """

    def __init__(self, store: TcpStore | None, timeout: float | None) -> None:
        self._store, self._timeout = store, timeout
        self._published = self._logged = 0  # the call of which that was said

    def poll(self, seconds: float, number: int, call: str) -> str | None:
        """Once in a while of waiting in a call, for so long: why there is no more waiting."""
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
        """Those that do not wait in that call."""
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
