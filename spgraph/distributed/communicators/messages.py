"""Messages of MPI between all processes: the header of each call, its data, and a farewell.

Every process sends to every other one, so that it is known which one has not come.
"""

from __future__ import annotations

import atexit
import os
import struct
import sys
import time
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from spgraph.distributed.communicators.timeouts import Timeouts
from spgraph.distributed.communicators.watchdog import GRACE, LOST_PEER
from spgraph.errors import CommunicationError

if TYPE_CHECKING:
    from mpi4py import MPI

Data: TypeAlias = bytes | bytearray | np.ndarray  # what MPI sends or fills

# number of the call, tag of the graph, hash of what was called without messages, text of the call
HEADER = struct.Struct("<qQI96s")
INLINE = 1024  # up to so many bytes of data are sent with the header
FAREWELL_BYTES = 512  # of the last message of a process, with its reason
CALL, DATA, LEFT = 1, 2, 3  # tags
TESTS = 100  # busy tests of a wait, before it yields the processor: some 50 microseconds
# seconds of waiting after which a process sleeps between two tests, and for how long: collectives
# end earlier if no process is late; then the processor is left to the late one
YIELDING, PAUSE = 0.1, 0.0005
LOOK, NAP = 0.01, 0.01  # seconds between checks for farewells; of sleeps at the end of the program
# seconds after a farewell in which earlier messages of that process may still arrive
TRAILING = 1.0
# lets other processes of a busy machine run; or, where there is no such call, sleeps 0 s
yield_processor = getattr(os, "sched_yield", lambda: time.sleep(0))
INTERRUPTED = 130  # the exit status of a process that Ctrl-C has ended


# of collective calls that were given up: MPI writes into these when the others come after all
_given_up: list[tuple[MPI.Request, object]] = []


def complete(
    comm: MPI.Comm, request: MPI.Request, into: object, what: str, timeout: float | None
) -> None:
    """Wait for a collective call of `comm`, which Ctrl-C interrupts and whose result comes `into`
    something. After `timeout` seconds CommunicationError; then this process ends the others at the
    end of its program.
    """
    who = f"MPI: process {comm.Get_rank()} of {comm.Get_size()}"
    timeouts, started = Timeouts(who, timeout), time.monotonic()
    try:
        while not request.Test():
            seconds = time.monotonic() - started
            if (reason := timeouts.poll(seconds, 1, what, lambda: None)) is not None:
                atexit.register(end_all, comm, f"has left, {reason}")
                raise CommunicationError(f"{who}: {what}: {reason}")
            if seconds < YIELDING:
                yield_processor()
            else:
                time.sleep(PAUSE)
    except BaseException:
        _given_up.append((request, into))
        raise


def end_all(comm: MPI.Comm, why: str, status: int = LOST_PEER) -> None:
    """End all processes: MPI would wait at its end for those that do not come."""
    sys.stdout.flush()
    sys.stderr.write(
        f"spgraph: MPI: process {comm.Get_rank()} of {comm.Get_size()} {why}; ending the others\n"
    )
    sys.stderr.flush()
    comm.Abort(status)


class Messages:
    """The messages of an mpi4py communicator `comm`, which nothing else uses.

    Every call begins with a message of each process to each other one, with the number of the call,
    its text, and the tag of the graph: if processes are at different calls, all raise
    CommunicationError. A process that makes no more calls sends a farewell to the others, which
    then no longer wait for it.
    """

    def __init__(self, mpi: ModuleType, comm: MPI.Comm, timeout: float | None) -> None:
        self.comm, self.rank, self.processes = comm, comm.Get_rank(), comm.Get_size()
        self.timeouts = Timeouts(f"MPI: process {self.rank} of {self.processes}", timeout)
        self.others = [p for p in range(self.processes) if p != self.rank]
        self.broken: str | None = None  # why there are no further calls
        self.number = 0  # of calls
        self._call, self._tags, self._before = "the beginning", (0, 0), ""
        self._byte, self._testall = mpi.BYTE, mpi.Request.Testall
        self._headers = {p: bytearray(HEADER.size + INLINE) for p in self.others}
        # farewells of the others, received while this process waits
        self._farewells = {p: bytearray(FAREWELL_BYTES) for p in self.others}
        self._farewell_requests = {
            p: self._receive(self._farewells[p], p, LEFT) for p in self.others
        }
        self._left: dict[int, float] = {}  # when the farewell of a process came
        self._sent_farewells: list[MPI.Request] = []  # of own farewells
        self._error: type[BaseException] | None = None  # by which this process ends
        if self.others:
            atexit.register(self._end)

    def open(self, call: str, given: bytes, tags: tuple[int, int], before: str) -> list[bytes]:
        """Begin a call on the graph of the first of these tags, after calls without messages whose
        hash is the second one, the last of them `before`: wait until all processes have come to
        it, and exchange up to INLINE bytes. The result is what each process has `given`, of equal
        size.
        """
        self.raise_if_broken()
        self.number += 1
        self._call, self._tags, self._before = call, tags, before
        head = HEADER.pack(self.number, *tags, call.encode())
        message, receive, send = head + given, self.comm.Irecv, self.comm.Isend
        requests = [receive([self._headers[p], self._byte], p, CALL) for p in self.others]
        requests += [send([message, self._byte], p, CALL) for p in self.others]
        self._finish(requests)
        wrong = [p for p in self.others if self._headers[p][: HEADER.size] != head]
        if wrong:
            raise self.failure(self._difference(wrong[0]))
        received = [given] * self.processes
        for p in self.others:
            received[p] = bytes(self._headers[p][HEADER.size : len(message)])
        return received

    def swap(self, sent: Sequence[Data], received: Sequence[Data]) -> None:
        """Send sent[p] to each other process p, and receive its bytes into received[p]. Both know
        the sizes.
        """
        requests, peers = [], []
        for p in self.others:
            if len(received[p]):
                requests.append(self._receive(received[p], p, DATA))
                peers.append(p)
        for p in self.others:
            if len(sent[p]):
                requests.append(self._send(sent[p], p, DATA))
                peers.append(p)
        self._finish(requests, peers)

    # --- the end ----------------------------------------------------------------------------------

    def raise_if_broken(self) -> None:
        """Raise CommunicationError if calls have ended."""
        if self.broken is not None:
            raise CommunicationError(self.broken)

    def failure(self, reason: str) -> CommunicationError:
        """The error to raise, after calls have ended and a farewell is sent."""
        message = f"MPI: process {self.rank} of {self.processes}: {reason}"
        self.leave(message, None)
        return CommunicationError(message)

    def leave(self, reason: str, error: type[BaseException] | None) -> None:
        """Make no more calls; send a farewell with the reason. A process that leaves by an `error`
        ends the others at the end of its program, unless they have left by then.
        """
        self._error = error
        if self.broken is not None:
            return
        self.broken = reason
        words = reason.encode()[:FAREWELL_BYTES]
        self._sent_farewells = [self._send(words, p, LEFT) for p in self.others]

    def close(self) -> None:
        """Free the communicator, as all processes do after the same call."""
        atexit.unregister(self._end)
        self.broken = "MpiCommunicator: it is closed"
        for request in self._farewell_requests.values():
            request.Cancel()
            request.Wait()
        self.comm.Free()

    def _end(self) -> None:
        """At the end of a program without `close`: wait until the others have left, too. After an
        error they are ended GRACE seconds later; where calls have ended, and the program went on,
        after the timeout.
        """
        gave_up = self.broken is not None
        uncaught: type[BaseException] | None = getattr(sys, "last_type", None)
        error = uncaught or self._error
        name = None if error is None else error.__name__
        self.leave(
            f"process {self.rank} has ended its program" + (f" after {name}" if name else ""), error
        )
        # no wait after Ctrl-C: Python would end by the signal, and mpiexec with another status
        interrupted = uncaught is not None and issubclass(uncaught, KeyboardInterrupt)
        started, what, number = time.monotonic(), "the end of its program", self.number + 1
        while missing := [p for p in self.others if not self._has_left(p)]:
            seconds = time.monotonic() - started
            if error is not None and seconds > (0 if interrupted else GRACE):
                end_all(
                    self.comm, f"has left after {name}", INTERRUPTED if interrupted else LOST_PEER
                )
            if error is None and gave_up:  # MPI itself would wait for them without a limit
                given = seconds, number, what, lambda who=missing: who
                if (reason := self.timeouts.poll(*given)) is not None:
                    end_all(self.comm, f"has left, {reason}")
            time.sleep(NAP)
        self._testall(self._sent_farewells)

    # --- steps ------------------------------------------------------------------------------------

    def _send(self, data: Data, process: int, tag: int) -> MPI.Request:
        return self.comm.Isend([data, self._byte], dest=process, tag=tag)

    def _receive(self, buffer: Data, process: int, tag: int) -> MPI.Request:
        return self.comm.Irecv([buffer, self._byte], source=process, tag=tag)

    def _has_left(self, process: int) -> bool:
        """Whether the farewell of that process has come."""
        if process not in self._left and self._farewell_requests[process].Test():
            self._left[process] = time.monotonic()
        return process in self._left

    def _finish(self, requests: list[MPI.Request], peers: Sequence[int] | None = None) -> None:
        """Wait for all `requests`; `peers` are the processes of each, by default all others, twice.

        It tests instead of blocking, to notice farewells and Ctrl-C.
        """
        test = self._testall
        try:
            for _ in range(TESTS):
                if test(requests):
                    return
            self._wait(requests, peers or self.others * 2)
        except CommunicationError:
            raise
        except BaseException as error:
            self.leave(f"{self._call} was broken off by {type(error).__name__}", type(error))
            raise

    def _wait(self, requests: list[MPI.Request], peers: Sequence[int]) -> None:
        started = looked = time.monotonic()
        while not self._testall(requests):
            now = time.monotonic()
            if now - started < YIELDING:
                yield_processor()
            else:
                time.sleep(PAUSE)
            if now - looked < LOOK:
                continue
            looked = now
            missing = sorted(
                {p for p, request in zip(peers, requests, strict=True) if not request.Get_status()}
            )
            for p in missing:
                if self._has_left(p) and now - self._left[p] > TRAILING:
                    words = self._farewells[p].rstrip(b"\0").decode(errors="replace")
                    raise self.failure(f"{self._call} waits for process {p} in vain: {words}")
            if missing:
                given = now - started, self.number, self._call, lambda who=missing: who
                if (reason := self.timeouts.poll(*given)) is not None:
                    raise self.failure(f"{self._call}: {reason}")

    def _difference(self, process: int) -> str:
        number, tag, noted, text = HEADER.unpack_from(self._headers[process])
        its = text.rstrip(b"\0").decode(errors="replace")
        if (number, its) == (self.number, self._call[:96]):
            other = []
            if tag != self._tags[0]:
                other.append(
                    "makes it with another graph, or one that is divided in another way, or from "
                    "another vertex, file or seed, or over another semiring"
                )
            if noted != self._tags[1]:
                other.append(
                    f"has not called what this one has before it, up to {self._before}: it was "
                    "another function, or with other containers, operators, numbers, masks or "
                    "arrays"
                )
            return (
                f"{self._call}, call {self.number}: process {process} {', or '.join(other)}; all "
                "processes have to call the same functions with the same arguments"
            )
        return (
            f"it is at {self._call}, call {self.number}, but process {process} at {its}, call "
            f"{number}: all processes have to make the same calls in the same order"
        )
