"""Processes on any number of hosts through MPI, with arrays in the memory of the hosts."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np

from spgraph.containers.arrays import Array
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
    starts_of,
    type_code,
)
from spgraph.distributed.communicators.watchdog import GRACE, LOST_PEER
from spgraph.errors import BackendUnavailable, CommunicationError

SMALL = 4096  # bytes: below, an all_reduce gathers everything in one step


class MpiCommunicator:
    """A `Communicator` of the processes of an mpi4py communicator `comm` (default: of all of them).

    `blocks` (default: one a process) are dealt out evenly, in order: process r of P has the blocks
    r * blocks / P and following. Arrays are NumPy's. Messages go as bytes and may be of any size;
    beyond 2^31 bytes that takes a library of MPI 4. Sums are added up in the order of the blocks.

    A process that is killed ends all others: the launcher of MPI sees to that. One that leaves the
    context for an error does so too when its program ends, if the others still wait for it.

    Errors: BackendUnavailable without mpi4py or an MPI library; ValueError where blocks are not a
    multiple of the processes.
    """

    name = "mpi"

    def __init__(self, comm: Any = None, *, blocks: int | None = None) -> None:
        mpi = _mpi()
        # duplicates: messages of the caller do not get in between
        self._comm = (mpi.COMM_WORLD if comm is None else comm).Dup()
        self._farewell = self._comm.Dup()
        self._byte = mpi.BYTE
        self.rank, self.processes = self._comm.Get_rank(), self._comm.Get_size()
        self.blocks = self.processes if blocks is None else blocks
        if self.blocks < 1 or self.blocks % self.processes:
            raise ValueError(
                f"MpiCommunicator: blocks: expected a multiple of the {self.processes} processes, "
                f"got {blocks}"
            )
        each = self.blocks // self.processes
        self.local = range(self.rank * each, (self.rank + 1) * each)
        self.devices = ("cpu",) * each
        self.bytes_sent = self.calls = self.peak_bytes = 0
        self._closed = False

    # --- collectives ------------------------------------------------------------------------------

    def all_gather(
        self, parts: Sequence[Array], *, sizes: Sequence[int] | None = None
    ) -> list[Array]:
        """All parts joined; local blocks get the same array. See `Communicator`."""
        dtype = check_parts("all_gather", parts, self.devices)
        self._begin((self.blocks - 1) * sum(part.nbytes for part in parts))
        with self._reported("all_gather"):
            if sizes is None:
                rows = self._rows(np.array([[part.size, type_code(dtype)] for part in parts]))
                check_one_type("all_gather", rows[:, 1])
                found = rows[:, 0].tolist()
            else:
                found = check_sizes("all_gather", sizes, self.blocks)
                check_own_sizes("all_gather", parts, found, self.local)
            return [self._gather(parts, found)] * len(parts)

    def all_to_all(
        self, parts: Sequence[Sequence[Array]], *, sizes: Sequence[Sequence[int]] | None = None
    ) -> list[list[Array]]:
        """result[k][p] is what block p sent to local block k. See `Communicator`."""
        dtype = check_matrix("all_to_all", parts, self.devices, self.blocks)
        own = sum(row[block].nbytes for block, row in zip(self.local, parts, strict=True))
        self._begin(sum(part.nbytes for row in parts for part in row) - own)
        with self._reported("all_to_all"):
            if sizes is None:
                rows = self._rows(
                    np.array([[*(part.size for part in row), type_code(dtype)] for row in parts])
                )
                check_one_type("all_to_all", rows[:, -1])
                found = [rows[:, block].tolist() for block in self.local]
            else:
                found = check_sources("all_to_all", parts, sizes, self.blocks, self.local)
            return self._exchange(parts, found)

    def all_reduce(self, parts: Sequence[Array], op: Op) -> list[Array]:
        """The reduction; local blocks get the same array. See `Communicator`."""
        dtype = check_parts("all_reduce", parts, self.devices, dimensions=None)
        check_op("all_reduce", op, dtype)
        shape, size = parts[0].shape, parts[0].size
        if any(part.shape != shape for part in parts):
            raise ValueError(f"all_reduce: expected parts of one shape, got {shape} and others")
        self._begin((self.blocks - 1) * sum(part.nbytes for part in parts))
        flat = [part.reshape(-1) for part in parts]
        with self._reported("all_reduce"):
            if parts[0].nbytes <= SMALL:
                sizes = [size] * self.blocks
                whole = fold(split(self._gather(flat, sizes), sizes), op)
            else:
                # each block reduces a slice, so that nobody holds the parts of all blocks
                bounds = [size * q // self.blocks for q in range(self.blocks + 1)]
                sizes = [hi - lo for lo, hi in itertools.pairwise(bounds)]
                whole = self._gather(self._reduce_slices(flat, sizes, op), sizes)
        return [whole.reshape(shape)] * len(parts)

    def reduce_scatter(self, parts: Sequence[Array], sizes: Sequence[int], op: Op) -> list[Array]:
        """Slice q of the reduction for block q. See `Communicator`."""
        dtype = check_parts("reduce_scatter", parts, self.devices)
        check_op("reduce_scatter", op, dtype)
        found = check_slices("reduce_scatter", parts, sizes, self.blocks)
        self._begin(sum((sum(found) - found[q]) * dtype.itemsize for q in self.local))
        with self._reported("reduce_scatter"):
            return self._reduce_slices(parts, found, op)

    def broadcast(self, array: Array | None, root: int) -> list[Array]:
        """A copy of `array`, which local blocks share. See `Communicator`."""
        check_root("broadcast", array, root, self.blocks, self.local)
        if array is not None:
            check_parts("broadcast", [array], ["cpu"], dimensions=None)
        self._begin(0 if array is None else (self.blocks - 1) * array.nbytes)
        owner = root // len(self.local)
        with self._reported("broadcast"):
            known = None if array is None else (array.shape, array.dtype.str)
            shape, dtype = self._comm.bcast(known, root=owner)
            copy = np.empty(shape, dtype) if array is None else array.copy(order="C")
            self._comm.Bcast([copy.reshape(-1).view(np.uint8), self._byte], root=owner)
        return [copy] * len(self.local)

    # --- numbers on the host ----------------------------------------------------------------------

    def agree(self, values: np.ndarray, op: Op) -> np.ndarray:
        """`values` of all processes reduced. See `Communicator`."""
        check_values("agree", values, op)
        self._begin(0)
        if self.processes == 1:
            return values.copy()
        with self._reported("agree"):
            came = np.empty((self.processes, values.size), values.dtype)
            self._comm.Allgather(np.ascontiguousarray(values), came)
        return fold(list(came), op)

    def fetch(self, arrays: Sequence[Array]) -> list[np.ndarray]:
        """Copies: the arrays are on the host already. See `Communicator`."""
        check_parts("fetch", arrays, self.devices, dimensions=None)
        return [array.copy() for array in arrays]

    def check(self) -> None:
        """Nothing to poll: MPI's collectives have ended when they return."""

    # --- the end ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Free the duplicates of the communicator, as all processes do."""
        if not self._closed:
            self._closed = True
            with self._reported("close"):
                self._farewell.Free()
                self._comm.Free()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None:
            self.close()
        elif self.processes > 1:
            self._closed = True
            # at the very end of the program, so that whoever handles the error has the first word
            atexit.register(_leave, self._farewell, type(error).__name__)

    # --- steps ------------------------------------------------------------------------------------

    def _begin(self, sent: int) -> None:
        if self._closed:
            raise CommunicationError("MpiCommunicator: it is closed")
        self.calls += 1
        self.bytes_sent += sent

    @contextlib.contextmanager
    def _reported(self, name: str) -> Iterator[None]:
        mpi = _mpi()
        try:
            yield
        except (mpi.Exception, OverflowError) as error:
            raise CommunicationError(
                f"MPI: {name}, process {self.rank} of {self.processes} on "
                f"{mpi.Get_processor_name()}: {error}"
            ) from error

    def _rows(self, own: np.ndarray) -> np.ndarray:
        """A row of integers of every block."""
        came = np.empty((self.blocks, own.shape[1]), np.int64)
        self._comm.Allgather(own, came)
        return came

    def _gather(self, parts: Sequence[Array], sizes: Sequence[int]) -> Array:
        each, k = parts[0].itemsize, len(self.local)
        sent = np.concatenate(parts)
        came = np.empty(sum(sizes), parts[0].dtype)
        counts = [each * sum(sizes[p * k : (p + 1) * k]) for p in range(self.processes)]
        self._needed(sent.nbytes)
        # everything to everybody: Allgatherv, made for many processes, took 20 times as long on few
        self._comm.Alltoallv(
            [sent.view(np.uint8), [sent.nbytes] * self.processes, [0] * self.processes, self._byte],
            [came.view(np.uint8), counts, starts_of(counts)[:-1], self._byte],
        )
        return came

    def _exchange(
        self, parts: Sequence[Sequence[Array]], sizes: Sequence[Sequence[int]]
    ) -> list[list[Array]]:
        """all_to_all; sizes[k][p] elements come to local block k from block p.

        What goes from one process to another stands block by block of the receiver, and for each
        by block of the sender.
        """
        dtype, k = parts[0][0].dtype, len(self.local)
        by_process = [range(p * k, (p + 1) * k) for p in range(self.processes)]
        sent = np.concatenate([row[q] for q in range(self.blocks) for row in parts])
        leaving = [
            dtype.itemsize * sum(row[q].size for q in blocks for row in parts)
            for blocks in by_process
        ]
        coming = [
            dtype.itemsize * sum(row[p] for row in sizes for p in blocks) for blocks in by_process
        ]
        came = np.empty(sum(coming) // dtype.itemsize, dtype)
        self._needed(sent.nbytes)
        self._comm.Alltoallv(
            [sent.view(np.uint8), leaving, starts_of(leaving)[:-1], self._byte],
            [came.view(np.uint8), coming, starts_of(coming)[:-1], self._byte],
        )
        order = [(a, p) for blocks in by_process for a in range(k) for p in blocks]
        pieces = split(came, [sizes[a][p] for a, p in order])
        found = dict(zip(order, pieces, strict=True))
        return [[found[a, p] for p in range(self.blocks)] for a in range(k)]

    def _reduce_slices(self, parts: Sequence[Array], sizes: Sequence[int], op: Op) -> list[Array]:
        own = [sizes[q] for q in self.local]
        rows = self._exchange(
            [split(part, sizes) for part in parts], [[size] * self.blocks for size in own]
        )
        return [fold(row, op) for row in rows]

    def _needed(self, temporary: int) -> None:
        self.peak_bytes = max(self.peak_bytes, temporary)


def _mpi() -> Any:
    """mpi4py's module, with MPI begun."""
    try:
        from mpi4py import MPI
    except ImportError as error:  # no mpi4py, or no library of MPI for it
        raise BackendUnavailable(
            f"MpiCommunicator needs mpi4py and a library of MPI ({error}): "
            "pip install 'spgraph[mpi]'"
        ) from error
    return MPI


def _leave(farewell: Any, error: str) -> None:
    """End all processes, unless all of them come here within moments: the others wait for a
    collective that this process will never call.
    """
    request, deadline = farewell.Ibarrier(), time.monotonic() + GRACE
    while not request.Test():
        if time.monotonic() > deadline:
            sys.stderr.write(
                f"spgraph: MPI: process {farewell.Get_rank()} of {farewell.Get_size()} has left "
                f"after {error}; ending the others\n"
            )
            sys.stderr.flush()
            farewell.Abort(LOST_PEER)
        time.sleep(0.01)
