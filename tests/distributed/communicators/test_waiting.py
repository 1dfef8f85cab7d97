"""How a process waits for the messages of others."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from spgraph.distributed import LocalCommunicator
from spgraph.distributed.communicators import messages, timeouts
from spgraph.distributed.exchange.host_counters import wait_for_counts
from spgraph.errors import CommunicationError


@pytest.mark.parametrize("seconds", [0.05, 0.5])
def test_who_waits_for_long_sleeps(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock of its own, on which yielding the processor takes a microsecond."""
    now, pauses = 0.0, []

    def passes(duration: float) -> None:
        nonlocal now
        now += duration

    def sleep(duration: float) -> None:
        pauses.append(duration)
        passes(duration)

    monkeypatch.setattr(messages, "time", SimpleNamespace(monotonic=lambda: now, sleep=sleep))
    monkeypatch.setattr(messages, "yield_processor", lambda: passes(1e-6))
    waiting: Any = messages.Messages.__new__(messages.Messages)
    waiting.number, waiting._call, waiting._left = 1, "all_reduce", {}
    waiting.timeouts = timeouts.Timeouts("MPI: process 0 of 2", None)
    waiting._testall = lambda requests: now >= seconds
    waiting._has_left = lambda process: False
    waiting._wait([SimpleNamespace(Get_status=lambda: False)], [1])
    if seconds < messages.YIELDING:
        assert not pauses
    else:
        assert set(pauses) == {messages.PAUSE}
        assert sum(pauses) == pytest.approx(seconds - messages.YIELDING, abs=0.01)


@pytest.mark.parametrize("error", [CommunicationError, KeyboardInterrupt])
def test_a_call_that_is_given_up_keeps_what_mpi_writes(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """MPI ends the call when the others come, however late that is."""

    class Request:
        def Test(self) -> bool:
            if error is KeyboardInterrupt:
                raise error
            return False

    class Result:
        pass

    ended: list[int] = []
    comm: Any = SimpleNamespace(Get_rank=lambda: 0, Get_size=lambda: 2, Abort=ended.append)
    at_exit: list[Any] = []
    monkeypatch.setattr(messages, "_given_up", [])
    monkeypatch.setattr(messages.atexit, "register", lambda *given: at_exit.append(given))
    request: Any = Request()
    into = Result()
    kept = weakref.ref(request), weakref.ref(into)
    with pytest.raises(error):
        messages.complete(comm, request, into, "the beginning", 0.001)
    del request, into
    gc.collect()
    assert all(each() is not None for each in kept)
    for function, *given in at_exit:
        function(*given)
    assert ended == ([messages.LOST_PEER] if error is CommunicationError else [])


def test_kernels_that_end_without_their_counts_are_an_error() -> None:
    """Nobody waits for ever for what no kernel will write: here that of shard 1 in round 3."""
    counters, arrays = np.zeros((2, 4), np.int64), [np.zeros(1)] * 2
    counters[0] = 5 << 16 | 3
    comm = LocalCommunicator(2)
    with pytest.raises(CommunicationError, match=r"counts of the rounds \[3, 3\].*\[0, 0, 0, 0\]"):
        wait_for_counts(counters, [3, 3], arrays, comm)
    counters[1] = 7 << 16 | 3
    assert wait_for_counts(counters, [3, 3], arrays, comm).tolist() == [[5] * 4, [7] * 4]
