"""MpiCommunicator: processes on any number of hosts through MPI, with NumPy arrays."""

from __future__ import annotations

import contextlib
import functools
import itertools
import zlib
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from spgraph.containers.storage.arrays import Array
from spgraph.containers.storage.numbers import is_integer
from spgraph.distributed.communicators.checks import (
    Op,
    Pieces,
    Table,
    check_comm,
    check_most,
    check_timeout,
)
from spgraph.distributed.communicators.communicator import Communicator, fold, split
from spgraph.distributed.communicators.messages import INLINE, Messages, complete
from spgraph.errors import BackendUnavailable, CommunicationError

if TYPE_CHECKING:
    from mpi4py import MPI

SMALL = 4096  # bytes: below, an all_reduce gathers everything in one step


class MpiCommunicator(Communicator):
    """A `Communicator` of the processes of an mpi4py communicator `comm` (default: of all of them).

    `shards` (default: one a process) are dealt out evenly, in order: process r of P has the shards
    r * shards / P and following. Arrays are NumPy's. Data is sent as bytes, of any size; more than
    2^31 bytes need a library of MPI 4. Sums are added up in the order of the shards.

    If a process is killed, MPI's launcher ends all others. If its program ends before `close`, with
    or without an error, the next call of the others raises CommunicationError; if it ends with an
    uncaught error, or has left the context by one, it ends all processes after 3 s, unless they end
    by themselves (exit status 70; 130 after Ctrl-C).

    Processes that do not make the same calls in the same order, or call on different graphs, get
    CommunicationError from the first call that differs, all of them. A process that waits for
    another for 30 s logs a warning to "spgraph.distributed"; after `timeout` seconds (default: no
    limit) it raises CommunicationError, here, too, where all have to come. A program that goes on
    after an error ends the others if they have not left within `timeout` seconds of its end.

    Errors: BackendUnavailable without mpi4py or an MPI library; ValueError where shards are not a
    multiple of the processes, or more than 1,024 for each, or `timeout` is not a positive number;
    DomainMismatch for what is no communicator of one group of processes.
    """

    name = "mpi"
    compares_sizes = True  # every call begins with a message anyway

    def __init__(
        self,
        comm: MPI.Comm | None = None,
        *,
        shards: int | None = None,
        timeout: float | None = None,
    ) -> None:
        if timeout is not None:
            check_timeout("MpiCommunicator", timeout)
        mpi = _mpi()
        comm = mpi.COMM_WORLD if comm is None else comm
        check_comm("MpiCommunicator", comm)
        self.rank, self.processes = comm.Get_rank(), comm.Get_size()
        num_shards = self.processes if shards is None else shards
        if not is_integer(num_shards) or num_shards < 1 or num_shards % self.processes:
            raise ValueError(
                f"MpiCommunicator: shards: expected a multiple of the {self.processes} processes, "
                f"got {shards!r}"
            )
        num_shards = int(num_shards)
        check_most("MpiCommunicator: shards", num_shards, self.processes)
        each = num_shards // self.processes
        local = range(self.rank * each, (self.rank + 1) * each)
        super().__init__(num_shards, local, ["cpu"] * each)
        # a duplicate, so that messages of the caller's program are not received here
        own, request = comm.Idup()
        complete(comm, request, own, "the beginning", timeout)
        self._messages = Messages(mpi, own, timeout)
        self._closed = False

    # --- a call, and its end ----------------------------------------------------------------------

    def _check_usable(self) -> None:
        self._messages.raise_if_broken()

    @contextlib.contextmanager
    def _call(self, name: str, sent: int, *facts: object) -> Iterator[None]:
        """Errors of the context end the communicator. What all processes have to agree on travels
        with the first message.
        """
        self._check_usable()
        self.calls += 1
        self.bytes_sent += sent
        self._text, self._begun = _text(name, *facts), False
        mpi = _mpi()
        try:
            yield
        except (mpi.Exception, OverflowError) as error:
            where = mpi.Get_processor_name()
            raise self.failure(f"on {where}: {name}: {error}") from error
        except MemoryError as error:  # the others must not wait for this process
            self._messages.leave(f"{name}: process {self.rank} has no memory: {error}", None)
            raise

    def _begin(self, given: bytes = b"") -> list[bytes]:
        """Wait until all processes have come to this call; what each of them has `given`, of equal
        size.
        """
        self._begun = True
        tags = self._graph_tag, self.noted
        return self._messages.open(self._text, given, tags, self.last_noted)

    def failure(self, reason: str) -> CommunicationError:
        """See `Communicator`."""
        return self._messages.failure(reason)

    def close(self) -> None:
        """Free the communicator, together with all other processes: it waits for them."""
        if not self._closed:
            self._closed = True
            if self._messages.broken is None:
                with self._call("close", 0):
                    self._begin()
                    self._messages.close()

    def leave(self, reason: str, error: BaseException | None = None) -> None:
        """See `Communicator`."""
        self._closed = True
        words = reason if error is None else f"process {self.rank} has left after {reason}"
        regular = isinstance(error, SystemExit) and error.code in (None, 0)
        self._messages.leave(words, None if error is None or regular else type(error))

    # --- collectives ------------------------------------------------------------------------------

    def _rows(self, row: np.ndarray) -> np.ndarray:
        none = len(self.local) - 1  # the first shard of each process has the row
        sizes = [row.size, *[0] * none] * self.processes
        return self._all_gather([row, *[row[:0]] * none], sizes)[0].reshape(self.processes, -1)

    def _all_gather(self, parts: Sequence[Array], sizes: Sequence[int]) -> list[Array]:
        dtype = parts[0].dtype
        by_process = [sum(sizes[p] for p in shards) for shards in self._by_process()]
        largest = max(by_process) * dtype.itemsize
        if not self._begun and largest <= INLINE:  # sent with the first message
            own = b"".join(part.tobytes() for part in parts).ljust(largest, b"\0")
            rows = zip(self._begin(own), by_process, strict=True)
            octets = bytearray().join(row[: size * dtype.itemsize] for row, size in rows)
            return [np.frombuffer(octets, dtype)] * len(parts)
        if not self._begun:
            self._begin()
        sent, received = np.concatenate(parts), np.empty(sum(sizes), dtype)
        pieces = split(received, by_process)
        pieces[self.rank][:] = sent
        # messages between all pairs: Allgatherv took 20 times as long with few processes
        self._messages.swap(
            [sent.view(np.uint8)] * self.processes, [piece.view(np.uint8) for piece in pieces]
        )
        return [received] * len(parts)

    def _all_to_all(self, parts: Pieces, sizes: Table, wholes: Sequence[Array]) -> None:
        """What one process sends to another is ordered by the receiver's shards, then by the
        sender's.
        """
        if not self._begun:
            self._begin()
        k, by_process = len(self.local), self._by_process()
        sent = np.concatenate([row[q] for q in range(self.num_shards) for row in parts])
        leaving = [sum(row[q].size for q in shards for row in parts) for shards in by_process]
        coming = [sum(row[p] for row in sizes for p in shards) for shards in by_process]
        received = wholes[0] if k == 1 else np.empty(sum(coming), sent.dtype)
        to, of = split(sent, leaving), split(received, coming)
        of[self.rank][:] = to[self.rank]
        self._messages.swap([x.view(np.uint8) for x in to], [x.view(np.uint8) for x in of])
        if k == 1:
            return
        targets = [split(*pair) for pair in zip(wholes, sizes, strict=True)]
        order = [targets[a][p] for shards in by_process for a in range(k) for p in shards]
        for target, piece in zip(order, split(received, [x.size for x in order]), strict=True):
            target[:] = piece

    def _all_reduce(self, parts: Sequence[Array], op: Op) -> list[Array]:
        size = parts[0].size
        if parts[0].nbytes <= SMALL:
            sizes = [size] * self.num_shards
            return [fold(split(self._all_gather(parts, sizes)[0], sizes), op)] * len(parts)
        # each shard reduces a slice, so that no process needs the parts of all shards
        bounds = [size * q // self.num_shards for q in range(self.num_shards + 1)]
        sizes = [hi - lo for lo, hi in itertools.pairwise(bounds)]
        return self._all_gather(self._reduce_scatter(parts, sizes, op), sizes)

    def _by_process(self) -> list[range]:
        """The shards of each process."""
        k = len(self.local)
        return [range(p * k, (p + 1) * k) for p in range(self.processes)]


def _mpi() -> ModuleType:
    """mpi4py.MPI; importing it initialises MPI."""
    try:
        from mpi4py import MPI
    except ImportError as error:  # no mpi4py, or no library of MPI for it
        raise BackendUnavailable(
            f"MpiCommunicator needs mpi4py and a library of MPI ({error}): "
            "pip install 'spgraph[mpi]'"
        ) from error
    return MPI


@functools.lru_cache(maxsize=4096)  # what NumPy says of a type takes longer than a message
def _text(name: str, *facts: object) -> str:
    """What the message of a call says of it: short, and different for different facts."""

    def brief(fact: object) -> str:
        if isinstance(fact, tuple) and len(fact) > 3:  # sizes
            return f"{len(fact)} sizes #{zlib.crc32(repr(fact).encode()):08x}"
        return str(fact)

    return f"{name}, {' '.join(map(brief, facts))}" if facts else name
