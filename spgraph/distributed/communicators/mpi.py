"""MpiCommunicator: processes on any number of hosts through MPI, with NumPy arrays."""

from __future__ import annotations

import contextlib
import functools
import itertools
import zlib
from collections.abc import Iterator, Sequence
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from spgraph.containers.storage.arrays import Array
from spgraph.distributed.communicators.messages import INLINE, Messages
from spgraph.distributed.communicators.protocol import (
    Op,
    check_matrix,
    check_one_type,
    check_op,
    check_own_sizes,
    check_parts,
    check_root,
    check_sizes,
    check_slices,
    check_sources,
    check_values,
    fold,
    split,
    type_code,
)
from spgraph.errors import BackendUnavailable

if TYPE_CHECKING:
    from mpi4py import MPI

SMALL = 4096  # bytes: below, an all_reduce gathers everything in one step
DIMENSIONS = 14  # of the array of a broadcast, at most


class MpiCommunicator:
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
    limit) it raises CommunicationError.

    Errors: BackendUnavailable without mpi4py or an MPI library; ValueError where shards are not a
    multiple of the processes, or `timeout` is not a positive number.
    """

    name = "mpi"

    def __init__(
        self,
        comm: MPI.Comm | None = None,
        *,
        shards: int | None = None,
        timeout: float | None = None,
    ) -> None:
        if timeout is not None and not timeout > 0:
            raise ValueError(f"MpiCommunicator: timeout: expected seconds > 0, got {timeout}")
        mpi = _mpi()
        comm = mpi.COMM_WORLD if comm is None else comm
        self.rank, self.processes = comm.Get_rank(), comm.Get_size()
        self.num_shards = self.processes if shards is None else shards
        if self.num_shards < 1 or self.num_shards % self.processes:
            raise ValueError(
                f"MpiCommunicator: shards: expected a multiple of the {self.processes} processes, "
                f"got {shards}"
            )
        # a duplicate, so that messages of the caller's program are not received here
        self._messages = Messages(mpi, comm.Dup(), timeout)
        each = self.num_shards // self.processes
        self.local = range(self.rank * each, (self.rank + 1) * each)
        self.devices = ("cpu",) * each
        self.bytes_sent = self.calls = self.peak_bytes = 0
        self._closed = False

    # --- collectives ------------------------------------------------------------------------------

    def all_gather(
        self, parts: Sequence[Array], *, sizes: Sequence[int] | None = None
    ) -> list[Array]:
        """All parts joined; local shards get the same array. See `Communicator`."""
        dtype = check_parts("all_gather", parts, self.devices)
        if sizes is not None:
            found = check_sizes("all_gather", sizes, self.num_shards)
            check_own_sizes("all_gather", parts, found, self.local)
            call = f"all_gather of {_name(dtype)}, {_brief(found)}"
        self._count((self.num_shards - 1) * sum(part.nbytes for part in parts))
        with self._errors_of("all_gather"):
            if sizes is None:
                own = np.array([type_code(dtype), *(part.size for part in parts)])
                rows = self._open("all_gather", [own] * self.processes)
                check_one_type("all_gather", rows[:, 0])
                whole = self._gather(parts, rows[:, 1:].ravel().tolist())
            else:
                whole = self._first_gather(call, parts, found)
            return [whole] * len(parts)

    def all_to_all(
        self, parts: Sequence[Sequence[Array]], *, sizes: Sequence[Sequence[int]] | None = None
    ) -> list[list[Array]]:
        """result[k][p] is what shard p sent to local shard k. See `Communicator`."""
        dtype = check_matrix("all_to_all", parts, self.devices, self.num_shards)
        own = sum(row[shard].nbytes for shard, row in zip(self.local, parts, strict=True))
        if sizes is not None:
            found = check_sources("all_to_all", parts, sizes, self.num_shards, self.local)
        self._count(sum(part.nbytes for row in parts for part in row) - own)
        with self._errors_of("all_to_all"):
            # for each receiving process: the sizes by shard of its own, and by shard of this one
            code, k = type_code(dtype), len(self.local)
            rows = self._open(
                "all_to_all",
                [
                    np.array([code, *(row[q].size for q in shards for row in parts)])
                    for shards in self._by_process()
                ],
            )
            check_one_type("all_to_all", rows[:, 0])
            received = rows[:, 1:].reshape(self.processes, k, k).transpose(1, 0, 2).reshape(k, -1)
            if sizes is not None and received.tolist() != found:
                raise self._messages.failure(
                    f"all_to_all: sizes: expected {_brief(found)}, but the others send "
                    f"{_brief(received.tolist())}"
                )
            return self._all_to_all(parts, received.tolist())

    def all_reduce(self, parts: Sequence[Array], op: Op) -> list[Array]:
        """The reduction; local shards get the same array. See `Communicator`."""
        dtype = check_parts("all_reduce", parts, self.devices, dimensions=None)
        check_op("all_reduce", op, dtype)
        shape, size = parts[0].shape, parts[0].size
        if any(part.shape != shape for part in parts):
            raise ValueError(f"all_reduce: expected parts of one shape, got {shape} and others")
        self._count((self.num_shards - 1) * sum(part.nbytes for part in parts))
        flat = [part.reshape(-1) for part in parts]
        with self._errors_of("all_reduce"):
            call = f"all_reduce, {op} of {_name(dtype)} {shape}"
            if parts[0].nbytes <= SMALL:
                sizes = [size] * self.num_shards
                whole = fold(split(self._first_gather(call, flat, sizes), sizes), op)
            else:
                self._open(call)
                # each shard reduces a slice, so that no process needs the parts of all shards
                bounds = [size * q // self.num_shards for q in range(self.num_shards + 1)]
                sizes = [hi - lo for lo, hi in itertools.pairwise(bounds)]
                whole = self._gather(self._reduce_scatter(flat, sizes, op), sizes)
        return [whole.reshape(shape)] * len(parts)

    def reduce_scatter(self, parts: Sequence[Array], sizes: Sequence[int], op: Op) -> list[Array]:
        """Slice q of the reduction for shard q. See `Communicator`."""
        dtype = check_parts("reduce_scatter", parts, self.devices)
        check_op("reduce_scatter", op, dtype)
        found = check_slices("reduce_scatter", parts, sizes, self.num_shards)
        self._count(sum((sum(found) - found[q]) * dtype.itemsize for q in self.local))
        with self._errors_of("reduce_scatter"):
            self._open(f"reduce_scatter, {op} of {_name(dtype)}, {_brief(found)}")
            return self._reduce_scatter(parts, found, op)

    def broadcast(self, array: Array | None, root: int) -> list[Array]:
        """A copy of `array`, which local shards share. See `Communicator`."""
        check_root("broadcast", array, root, self.num_shards, self.local)
        described = np.zeros(DIMENSIONS + 2, np.int64)
        if array is not None:
            check_parts("broadcast", [array], ["cpu"], dimensions=None)
            if array.ndim > DIMENSIONS:
                raise ValueError(f"broadcast: at most {DIMENSIONS} dimensions, got {array.ndim}")
            described[:2] = ord(array.dtype.char), array.ndim
            described[2 : 2 + array.ndim] = array.shape
        self._count(0 if array is None else (self.num_shards - 1) * array.nbytes)
        owner = root // len(self.local)
        with self._errors_of("broadcast"):
            rows = self._open(f"broadcast from shard {root}", [described] * self.processes)
            char, ndim, *shape = rows[owner].tolist()
            if array is None:
                copy = np.empty(shape[:ndim], np.dtype(chr(char)))
            else:
                copy = array.copy(order="C")
            octets, none = copy.reshape(-1).view(np.uint8), b""
            received: list[Any] = [none] * self.processes
            received[owner] = octets
            mine = self.rank == owner
            self._messages.swap([octets if mine else none] * self.processes, received)
        return [copy] * len(self.local)

    # --- numbers on the host ----------------------------------------------------------------------

    def together(self, name: str, sent: int) -> contextlib.AbstractContextManager[Self]:
        """One after the other: messages have no launch to share. See `Communicator`."""
        return contextlib.nullcontext(self)

    def all_reduce_host(self, values: np.ndarray, op: Op) -> np.ndarray:
        """`values` of all processes reduced. See `Communicator`."""
        check_values("all_reduce_host", values, op)
        self._count(0)
        if self.processes == 1:
            return values.copy()
        with self._errors_of("all_reduce_host"):
            given = np.ascontiguousarray(values)
            rows = self._open(
                f"all_reduce_host, {op} of {values.size} {_name(values.dtype)}",
                [given] * self.processes,
            )
        return fold(list(rows), op)

    def fetch(self, arrays: Sequence[Array]) -> list[np.ndarray]:
        """Copies: the arrays are on the host already. See `Communicator`."""
        check_parts("fetch", arrays, self.devices, dimensions=None)
        return [array.copy() for array in arrays]

    def synchronize(self) -> None:
        """Nothing to wait for: messages have arrived when a call returns."""
        self.check()

    def check(self) -> None:
        """Raise the error of an earlier call, or of another process. Does not wait."""
        self._messages.raise_if_broken()

    def tag_graph(self, fingerprint: int) -> None:
        """See `Communicator`."""
        self._messages.graph_tag = fingerprint

    # --- the end ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Free the communicator, together with all other processes: it waits for them."""
        if not self._closed:
            self._closed = True
            if self._messages.broken is None:
                with self._errors_of("close"):
                    self._open("close")
                    self._messages.close()

    def leave(self, reason: str) -> None:
        """Make no more calls; does not wait. The others get CommunicationError with `reason`
        instead of waiting for this process.
        """
        self._closed = True
        self._messages.leave(reason, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
            return
        self._closed = True
        regular = isinstance(error, SystemExit) and error.code in (None, 0)
        words = f"process {self.rank} has left after {type(error).__name__}: {error}"
        self._messages.leave(words, None if regular else type(error))

    # --- steps ------------------------------------------------------------------------------------

    def _count(self, sent: int) -> None:
        self._messages.raise_if_broken()
        self.calls += 1
        self.bytes_sent += sent

    @contextlib.contextmanager
    def _errors_of(self, name: str) -> Iterator[None]:
        mpi = _mpi()
        try:
            yield
        except (mpi.Exception, OverflowError) as error:
            where = mpi.Get_processor_name()
            raise self._messages.failure(f"on {where}: {name}: {error}") from error
        except MemoryError as error:  # the others must not wait for this process
            self._messages.leave(f"{name}: process {self.rank} has no memory: {error}", None)
            raise

    def _open(self, call: str, given: Sequence[np.ndarray] | None = None) -> np.ndarray:
        """Begin a call: wait until all processes have come to the same `call`. given[p] are numbers
        of 64 bits for process p; the result is a row for each process, its numbers for this one.
        """
        rows = [b""] * self.processes if given is None else [row.tobytes() for row in given]
        received = b"".join(self._messages.open(call, rows))
        dtype = np.int64 if given is None else given[0].dtype
        return np.frombuffer(received, dtype).reshape(self.processes, len(rows[0]) // 8)

    def _first_gather(self, call: str, parts: Sequence[Array], sizes: Sequence[int]) -> Array:
        """`_open` and `_gather` in one; small parts are sent with the first messages."""
        each = parts[0].itemsize
        by_process = [each * sum(sizes[p] for p in shards) for shards in self._by_process()]
        most = max(by_process)
        if most > INLINE:
            self._open(call)
            return self._gather(parts, sizes)
        own = b"".join(part.tobytes() for part in parts).ljust(most, b"\0")
        rows = self._messages.open(call, [own] * self.processes)
        received = (row[:size] for row, size in zip(rows, by_process, strict=True))
        return np.frombuffer(bytearray().join(received), parts[0].dtype)

    def _by_process(self) -> list[range]:
        """The shards of each process."""
        k = len(self.local)
        return [range(p * k, (p + 1) * k) for p in range(self.processes)]

    def _gather(self, parts: Sequence[Array], sizes: Sequence[int]) -> Array:
        sent = np.concatenate(parts)
        received = np.empty(sum(sizes), parts[0].dtype)
        self._note_peak(sent.nbytes)
        by_process = [sum(sizes[p] for p in shards) for shards in self._by_process()]
        pieces = split(received, by_process)
        pieces[self.rank][:] = sent
        # messages between all pairs: Allgatherv took 20 times as long with few processes
        octets = [piece.view(np.uint8) for piece in pieces]
        self._messages.swap([sent.view(np.uint8)] * self.processes, octets)
        return received

    def _all_to_all(
        self, parts: Sequence[Sequence[Array]], sizes: Sequence[Sequence[int]]
    ) -> list[list[Array]]:
        """all_to_all; sizes[k][p] elements come to local shard k from shard p.

        What one process sends to another is ordered by the receiver's shards, then by the sender's.
        """
        dtype, k, by_process = parts[0][0].dtype, len(self.local), self._by_process()
        sent = np.concatenate([row[q] for q in range(self.num_shards) for row in parts])
        leaving = [sum(row[q].size for q in shards for row in parts) for shards in by_process]
        coming = [sum(row[p] for row in sizes for p in shards) for shards in by_process]
        received = np.empty(sum(coming), dtype)
        self._note_peak(sent.nbytes)
        to, of = split(sent, leaving), split(received, coming)
        of[self.rank][:] = to[self.rank]
        self._messages.swap([x.view(np.uint8) for x in to], [x.view(np.uint8) for x in of])
        order = [(a, p) for shards in by_process for a in range(k) for p in shards]
        pieces = split(received, [sizes[a][p] for a, p in order])
        found = dict(zip(order, pieces, strict=True))
        return [[found[a, p] for p in range(self.num_shards)] for a in range(k)]

    def _reduce_scatter(self, parts: Sequence[Array], sizes: Sequence[int], op: Op) -> list[Array]:
        own = [sizes[q] for q in self.local]
        rows = self._all_to_all(
            [split(part, sizes) for part in parts], [[size] * self.num_shards for size in own]
        )
        return [fold(row, op) for row in rows]

    def _note_peak(self, temporary: int) -> None:
        self.peak_bytes = max(self.peak_bytes, temporary)


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


@functools.cache
def _name(dtype: np.dtype) -> str:
    """'float64'. Cached, because str(dtype) takes longer than a message."""
    return str(dtype)


def _brief(sizes: Sequence[object]) -> str:
    """The number of sizes and a hash of them: short, and different for different sizes."""
    return f"{len(sizes)} sizes #{zlib.crc32(repr(sizes).encode()):08x}"
