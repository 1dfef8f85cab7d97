"""NcclCommunicator: GPUs through NCCL, several of one process, or one a process on many hosts."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np

from spgraph.containers.storage import arrays
from spgraph.containers.storage.arrays import Array, check_device, on_device
from spgraph.distributed.communicators import watchdog
from spgraph.distributed.communicators.links import Links
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
    flat,
    fold,
    split,
    type_code,
)
from spgraph.distributed.communicators.readback import Readback
from spgraph.distributed.communicators.store import TcpStore
from spgraph.errors import CommunicationError

HEADER = 12  # 64-bit words that describe the array of a broadcast
NAMES = ("all_gather", "all_to_all", "all_reduce", "reduce_scatter", "broadcast", "all_reduce_host")


class Mapped(Protocol):
    """What is asked at the end of memory of several processes, as `MappedMemory` of a backend."""

    def unmap(self) -> None: ...
    def free(self) -> None: ...


class NcclCommunicator:
    """A `Communicator` of GPUs, one shard each, made by `for_devices` or `for_process`.

    Data is sent as bytes, so that every type can be sent. Reductions that NCCL lacks are done here:
    bool is reduced as uint8, 16-bit integers as 32-bit ones; `or` of integers is an all_gather and
    a local reduction. There is no all-to-all in NCCL: it is a group of sends and receives, and so
    is an all_gather of unequal sizes. Temporary arrays come from CuPy's pool, which reuses them;
    `peak_bytes` is the most that one call needed on a device.

    The end of a process is noticed by its connection to the `TcpStore`, whatever NCCL does.
    Every other process then raises CommunicationError, from the call that waits or else from the
    next, and aborts NCCL once all have acknowledged it; one that the command `spgraph` launched
    ends with status 70.
    Several processes that have not made the same calls, or on different graphs, find out
    at the next call that exchanges sizes or numbers of the host.
    """

    name = "nccl"

    def __init__(self, links: Links) -> None:
        self._links = links
        store = links.store
        self.num_shards = links.num_shards
        self.local = range(links.links[0].shard, links.links[-1].shard + 1)
        self.devices = tuple(link.device for link in links.links)
        self.processes = 1 if store is None else store.processes
        self.rank = 0 if store is None else store.rank
        self.bytes_sent = self.calls = self.peak_bytes = 0
        self._readback = Readback(self.devices)
        # what these processes have mapped of each other's memory, None if they cannot
        self.mapped: Mapped | None = None
        self.mapping_tried = False
        self._closed = False
        self._graph_tag = self._history = 0

    @classmethod
    def for_devices(cls, devices: Sequence[str]) -> NcclCommunicator:
        """A communicator of this process alone, which drives all `devices`.

        Errors: ValueError for a CPU or a GPU named twice; BackendUnavailable without NCCL;
        CommunicationError when NCCL cannot connect them.
        """
        names = [check_device(device) for device in devices]
        if not names or "cpu" in names or len(set(names)) < len(names):
            raise ValueError(
                f"NcclCommunicator: devices: expected different GPUs, got {list(devices)}; "
                "LocalCommunicator takes several shards on one device"
            )
        return cls(Links.of_devices(names))

    @classmethod
    def for_process(
        cls, device: str, store: TcpStore, *, timeout: float | None = None
    ) -> NcclCommunicator:
        """A communicator of the processes that share `store` and drive one GPU each: shard r is
        on the `device` of process r. From then on the store is the communicator's, which closes it.

        A process that waits for 30 s in a call logs a warning to "spgraph.distributed", with the
        processes that have not come; after `timeout` seconds (default: no limit) it raises
        CommunicationError.

        Errors: those of `for_devices`; CommunicationError also when a process does not come.
        """
        if timeout is not None and not timeout > 0:
            raise ValueError(f"NcclCommunicator: timeout: expected seconds > 0, got {timeout}")
        name = check_device(device)
        if name == "cpu":
            raise ValueError("NcclCommunicator: device: expected a GPU, got 'cpu'")
        return cls(Links.of_process(name, store, timeout))

    # --- collectives ------------------------------------------------------------------------------

    def all_gather(
        self, parts: Sequence[Array], *, sizes: Sequence[int] | None = None
    ) -> list[Array]:
        """All parts joined. See `Communicator`."""
        dtype = check_parts("all_gather", parts, self.devices)
        self._begin("all_gather", (self.num_shards - 1) * sum(part.nbytes for part in parts))
        if sizes is None:
            rows = self._host_rows([[part.size, type_code(dtype)] for part in parts])
            check_one_type("all_gather", rows[:, 1])
            found = rows[:, 0].tolist()
        else:
            found = check_sizes("all_gather", sizes, self.num_shards)
            check_own_sizes("all_gather", parts, found, self.local)
        return self._links.all_gather([flat(part) for part in parts], found)

    def all_to_all(
        self, parts: Sequence[Sequence[Array]], *, sizes: Sequence[Sequence[int]] | None = None
    ) -> list[list[Array]]:
        """result[k][p] is what shard p sent to local shard k. See `Communicator`."""
        dtype = check_matrix("all_to_all", parts, self.devices, self.num_shards)
        own = sum(row[shard].nbytes for shard, row in zip(self.local, parts, strict=True))
        self._begin("all_to_all", sum(part.nbytes for row in parts for part in row) - own)
        if sizes is None:
            rows = self._host_rows(
                [[*(part.size for part in row), type_code(dtype)] for row in parts]
            )
            check_one_type("all_to_all", rows[:, -1])
            found = [rows[:, shard].tolist() for shard in self.local]
        else:
            found = check_sources("all_to_all", parts, sizes, self.num_shards, self.local)
        return self._links.all_to_all([[flat(part) for part in row] for row in parts], found)

    def all_reduce(self, parts: Sequence[Array], op: Op) -> list[Array]:
        """The reduction. See `Communicator`."""
        dtype = check_parts("all_reduce", parts, self.devices, dimensions=None)
        check_op("all_reduce", op, dtype)
        shape = parts[0].shape
        if any(part.shape != shape for part in parts):
            raise ValueError(f"all_reduce: expected parts of one shape, got {shape} and others")
        self._begin("all_reduce", (self.num_shards - 1) * sum(part.nbytes for part in parts))
        parts = [flat(part) for part in parts]
        if _has_no_reduction(op, dtype):
            sizes = [parts[0].size] * self.num_shards
            self._note_peak(self.num_shards * parts[0].nbytes)
            wholes = self._links.all_gather(parts, sizes)
            received = self._map(lambda whole: fold(split(whole, sizes), op), wholes)
        else:
            sent = self._map(_widened, parts)
            self._note_peak(2 * sent[0].nbytes if sent[0].itemsize > dtype.itemsize else 0)
            received = self._map(lambda x: _narrowed(x, dtype), self._links.all_reduce(sent, op))
        return [array.reshape(shape) for array in received]

    def reduce_scatter(self, parts: Sequence[Array], sizes: Sequence[int], op: Op) -> list[Array]:
        """Slice q of the reduction for shard q. See `Communicator`."""
        dtype = check_parts("reduce_scatter", parts, self.devices)
        check_op("reduce_scatter", op, dtype)
        found = check_slices("reduce_scatter", parts, sizes, self.num_shards)
        own = [found[shard] for shard in self.local]
        self._begin("reduce_scatter", sum((sum(found) - n) * dtype.itemsize for n in own))
        parts = [flat(part) for part in parts]
        if _has_no_reduction(op, dtype):
            self._note_peak(max(own) * self.num_shards * dtype.itemsize)
            pieces = [split(part, found) for part in parts]
            rows = self._links.all_to_all(pieces, [[n] * self.num_shards for n in own])
            return self._map(lambda row: fold(row, op), rows)
        sent = self._map(_widened, parts)
        self._note_peak(2 * sent[0].nbytes if sent[0].itemsize > dtype.itemsize else 0)
        received = self._links.reduce_scatter(sent, found, op)
        return self._map(lambda x: _narrowed(x, dtype), received)

    def broadcast(self, array: Array | None, root: int) -> list[Array]:
        """Copies of `array`. See `Communicator`."""
        check_root("broadcast", array, root, self.num_shards, self.local)
        if array is not None:
            device = self.devices[root - self.local.start]
            check_parts("broadcast", [array], [device], dimensions=None)
        self._begin("broadcast", 0 if array is None else (self.num_shards - 1) * array.nbytes)
        shape, dtype = self._described(array, root)
        size = int(np.prod(shape, dtype=np.int64))
        sent = None if array is None else flat(array)
        received = self._links.broadcast(sent, size, dtype, root)
        return [target.reshape(shape) for target in received]

    def together(self, name: str, sent: int) -> contextlib.AbstractContextManager[Links]:
        """The collectives inside as one launch. See `Communicator`."""
        self._begin(name, sent)
        return self._links

    # --- numbers on the host ----------------------------------------------------------------------

    def all_reduce_host(self, values: np.ndarray, op: Op) -> np.ndarray:
        """`values` of all processes reduced. See `Communicator`."""
        check_values("all_reduce_host", values, op)
        self._begin("all_reduce_host", 0)
        if self.processes == 1:
            self.check()  # `values` may depend on results of collectives
            return values.copy()
        rows = self._host_rows([np.ascontiguousarray(values).view(np.int64)])
        return fold(list(rows.view(values.dtype)), op)

    def fetch(self, arrays: Sequence[Array]) -> list[np.ndarray]:
        """Host copies, waited for together. See `Communicator`."""
        check_parts("fetch", arrays, self.devices, dimensions=None)
        self._links.raise_if_broken()
        return self._readback.fetch(arrays, self.wait)

    def wait(self, event: Any, device: str) -> None:
        """Wait on the host until a CUDA event of `device` has happened.

        CommunicationError when it cannot happen: NCCL or the device has failed, a process is lost.
        """
        self._links.wait(event, device)

    def tag_graph(self, fingerprint: int) -> None:
        """See `Communicator`."""
        self._graph_tag = fingerprint

    def when_lost(self, callback: Callable[[], object]) -> None:
        """Have `callback` called once another process is lost, from a thread of its own."""
        if self._links.store is not None:
            self._links.store.when_lost(lambda reason: watchdog.in_background(callback))

    def failure(self, reason: str) -> CommunicationError:
        """The error to raise where this process cannot go on. The communicator cannot be used any
        more; the other processes get CommunicationError with `reason`.
        """
        return self._links.failure(reason)

    def synchronize(self) -> None:
        """See `Communicator`. With one process there is nothing to wait for."""
        if self.processes > 1:
            self._links.finish()
        else:
            self._links.check()

    def check(self) -> None:
        """Raise an error of NCCL, or the loss of a process. See `Communicator`."""
        self._links.check()

    # --- the end ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Wait for earlier collectives, then leave together with the other processes."""
        if self._closed:
            return
        self._closed = True
        links, store = self._links, self._links.store
        if links.broken is None:
            links.finish()
            if self.mapped is not None:
                self.mapped.unmap()
            if store is not None:  # a process that comes too late finds a closed store
                with contextlib.suppress(CommunicationError):
                    store.barrier("nccl/end")
        if links.broken is None:
            if self.mapped is not None:  # the other processes have unmapped it
                self.mapped.free()
            links.destroy()
            links.broken = "NcclCommunicator: it is closed"
        if store is not None:
            store.close()

    def leave(self, reason: str) -> None:
        """Make no more calls; does not wait. The others get CommunicationError with `reason`
        instead of waiting for this process.
        """
        self._closed = True
        if self._links.store is not None:
            self._links.store.fail(reason)
        if self._links.broken is None:
            self._links.abandon(f"NcclCommunicator: it ended with {reason}")

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
        else:  # the others must not wait for a process that has left
            self.leave(f"{type(error).__name__}: {error}")

    # --- steps ------------------------------------------------------------------------------------

    def _begin(self, name: str, sent: int) -> None:
        self._links.raise_if_broken()
        self.calls += 1
        self._links.collective, self._links.number = name, self.calls
        if self.processes > 1:
            self._history = zlib.crc32(f"{name} {self._graph_tag}".encode(), self._history)
        self.bytes_sent += sent

    def _note_peak(self, temporary: int) -> None:
        self.peak_bytes = max(self.peak_bytes, temporary)

    def _map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """function(item) of each local shard, on its device."""
        found = []
        for device, item in zip(self.devices, items, strict=True):
            with on_device(device):
                found.append(function(item))
        return found

    def _host_rows(self, rows: Sequence[Any]) -> np.ndarray:
        """A row of 64-bit integers of every shard, on the host: one small all_gather."""
        own = [np.asarray(row, np.int64) for row in rows]
        if self.processes == 1:
            return np.stack(own)
        # of one size in all calls, so that processes at different calls still understand each other
        size, space = own[0].size, max(HEADER, self.num_shards + 1)
        first = np.zeros((len(own), 3 + space), np.int64)
        first[:, :3] = self.calls, self._history, NAMES.index(self._links.collective)
        if size <= space:
            first[:, 3 : 3 + size] = own
        received = self._gathered_rows(list(first))
        self._compare(received[:, :3])
        return received[:, 3 : 3 + size] if size <= space else self._gathered_rows(own)

    def _gathered_rows(self, rows: Sequence[np.ndarray]) -> np.ndarray:
        given = self._map(lambda row: arrays.sent(row, arrays.import_cupy()), rows)
        received = self._links.all_gather(given, [rows[0].size] * self.num_shards)
        return self._readback.fetch(received, self.wait)[0].reshape(self.num_shards, -1)

    def _compare(self, rows: np.ndarray) -> None:
        """Check that all shards are at the same call, after the same earlier ones: rows are
        (number of the call, hash of the earlier ones, name).
        """
        own = rows[self.local.start].tolist()
        for shard, row in enumerate(rows.tolist()):
            if row[0] == own[0] and row[2] == own[2] and row != own:
                raise self._links.failure(
                    f"{NAMES[own[2]]}, call {own[0]}: process {shard} is at the same call, but has "
                    "made other ones before, or with another graph"
                )
            if row != own:
                raise self._links.failure(
                    f"{NAMES[own[2]]}, call {own[0]}, but process {shard} is at {NAMES[row[2]]}, "
                    f"call {row[0]}: all processes have to make the same calls in the same order, "
                    "on the same graph"
                )

    def _described(self, array: Array | None, root: int) -> tuple[tuple[int, ...], np.dtype]:
        """The shape and type of the array of a broadcast, in every process."""
        if array is not None and self.processes == 1:
            return array.shape, array.dtype
        row = np.zeros(HEADER, np.int64)
        if array is not None:
            if array.ndim > HEADER - 2:
                raise ValueError(f"broadcast: at most {HEADER - 2} dimensions, got {array.ndim}")
            row[:2] = ord(array.dtype.char), array.ndim
            row[2 : 2 + array.ndim] = array.shape
        char, ndim, *shape = self._host_rows([row] * len(self.local))[root].tolist()
        return tuple(shape[:ndim]), np.dtype(chr(char))


def _widened(array: Array) -> Array:
    """`array` in a type that NCCL reduces."""
    if array.dtype == np.bool_:
        return array.view(np.uint8)
    narrow = array.dtype.kind in "iu" and array.dtype.itemsize == 2
    return array.astype(np.int32) if narrow else array


def _narrowed(array: Array, dtype: np.dtype) -> Array:
    """The inverse of `_widened`: of sums the lower half is kept."""
    return array.view(dtype) if dtype == np.bool_ else array.astype(dtype, copy=False)


def _has_no_reduction(op: Op, dtype: np.dtype) -> bool:
    """Whether NCCL lacks the reduction: `or` of integers."""
    return op == "or" and dtype.kind != "b"
