"""NcclCommunicator: GPUs through NCCL, several of one process, or one a process on many hosts."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from spgraph.containers.storage.arrays import Array, check_device
from spgraph.containers.storage.device_memory import sent
from spgraph.distributed.communicators import watchdog
from spgraph.distributed.communicators.checks import Op, Pieces, Table, check_devices, check_timeout
from spgraph.distributed.communicators.communicator import HEADER, Communicator, fold, split
from spgraph.distributed.communicators.links import Links
from spgraph.distributed.communicators.store import TcpStore
from spgraph.errors import CommunicationError, DomainMismatch

NAMES = ("all_gather", "all_to_all", "all_reduce", "reduce_scatter", "broadcast", "all_reduce_host")


class Mapped(Protocol):
    """What is asked at the end of memory of several processes, as `MappedMemory` of a backend."""

    def unmap(self) -> None: ...
    def free(self) -> None: ...


class NcclCommunicator(Communicator):
    """A `Communicator` of GPUs, one shard each, made by `for_devices` or `for_process`.

    Data is sent as bytes, so that every type can be sent. Reductions that NCCL lacks are done here:
    bool is reduced as uint8, 16-bit integers as 32-bit ones; `or` of integers is an all_gather and
    a local reduction. There is no all-to-all in NCCL: it is a group of sends and receives, and so
    is an all_gather of unequal sizes. Temporary arrays come from CuPy's pool, which reuses them.

    The end of a process is noticed by its connection to the `TcpStore`, whatever NCCL does.
    Every other process then raises CommunicationError, from the call that waits or else from the
    next, and aborts NCCL once all have acknowledged it; one that the command `spgraph` launched
    ends with status 70.
    Several processes that have not made the same calls, or on different graphs, find out
    at the next call that exchanges sizes or numbers of the host.
    """

    name = "nccl"

    def __init__(self, links: Links) -> None:
        store, local = links.store, range(links.links[0].shard, links.links[-1].shard + 1)
        super().__init__(links.num_shards, local, [link.device for link in links.links])
        self._links = links
        if store is not None:
            self.processes, self.rank = store.processes, store.rank
        # what these processes have mapped of each other's memory, None if they cannot
        self.mapped: Mapped | None = None
        self.mapping_tried = False
        self._closed = False
        self._history = 0  # a hash of the calls so far

    @classmethod
    def for_devices(cls, devices: Sequence[str]) -> NcclCommunicator:
        """A communicator of this process alone, which drives all `devices`.

        Errors: ValueError for a CPU or a GPU named twice; DomainMismatch for what is no list;
        BackendUnavailable without NCCL; CommunicationError when NCCL cannot connect them.
        """
        names = check_devices("NcclCommunicator", devices)
        if not names or "cpu" in names or len(set(names)) < len(names):
            raise ValueError(
                f"NcclCommunicator: devices: expected different GPUs, got {names}; "
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
        if timeout is not None:
            check_timeout("NcclCommunicator", timeout)
        if not isinstance(store, TcpStore):
            raise DomainMismatch(
                f"NcclCommunicator: store: expected a TcpStore, got {type(store).__name__}"
            )
        name = check_device(device)
        if name == "cpu":
            raise ValueError("NcclCommunicator: device: expected a GPU, got 'cpu'")
        return cls(Links.of_process(name, store, timeout))

    # --- collectives ------------------------------------------------------------------------------

    def _all_gather(self, parts: Sequence[Array], sizes: Sequence[int]) -> list[Array]:
        return self._links.all_gather(parts, sizes)

    def _gathering(
        self, pairs: Sequence[tuple[Sequence[Array], Sequence[Array]]]
    ) -> Callable[[], None]:
        return self._links.gathering(pairs)

    def _all_to_all(self, parts: Pieces, sizes: Table, wholes: Sequence[Array]) -> None:
        self._links.all_to_all_into(parts, sizes, wholes)

    def _all_reduce(self, parts: Sequence[Array], op: Op) -> list[Array]:
        if _has_no_reduction(op, parts[0].dtype):
            sizes = [parts[0].size] * self.num_shards
            wholes = self._links.all_gather(parts, sizes)
            return self.on_each(lambda xp, whole: fold(split(whole, sizes), op), wholes)
        return self._reduced(parts, lambda given: self._links.all_reduce(given, op))

    def _reduce_scatter(self, parts: Sequence[Array], sizes: Sequence[int], op: Op) -> list[Array]:
        if _has_no_reduction(op, parts[0].dtype):
            return super()._reduce_scatter(parts, sizes, op)
        return self._reduced(parts, lambda given: self._links.reduce_scatter(given, sizes, op))

    def _reduced(
        self, parts: Sequence[Array], reduce: Callable[[list[Array]], list[Array]]
    ) -> list[Array]:
        """What `reduce` makes of the parts in a type that NCCL reduces, in their own type."""
        dtype = parts[0].dtype
        received = reduce(self.on_each(_widened, parts))
        return self.on_each(lambda xp, x: _narrowed(x, dtype), received)

    # --- waiting, and failures --------------------------------------------------------------------

    def wait(self, event: Any, device: str) -> None:
        """See `Communicator`: NCCL or the device may have failed, or a process be lost."""
        self._links.wait(event, device)

    def when_lost(self, callback: Callable[[], object]) -> None:
        """Have `callback` called once another process is lost, from a thread of its own."""
        if self._links.store is not None:
            self._links.store.when_lost(lambda reason: watchdog.in_background(callback))

    def failure(self, reason: str) -> CommunicationError:
        """See `Communicator`."""
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

    def leave(self, reason: str, error: BaseException | None = None) -> None:
        """See `Communicator`."""
        self._closed = True
        if self._links.store is not None:
            self._links.store.fail(reason)
        if self._links.broken is None:
            self._links.abandon(f"NcclCommunicator: it ended with {reason}")

    # --- steps ------------------------------------------------------------------------------------

    def _check_usable(self) -> None:
        self._links.raise_if_broken()

    def _call(self, name: str, sent: int, *facts: object) -> AbstractContextManager[Any]:
        call = super()._call(name, sent)
        self._links.collective, self._links.number = name, self.calls
        if self.processes > 1:
            self._history = zlib.crc32(
                f"{name} {self._graph_tag} {self.noted}".encode(), self._history
            )
        return call

    def _rows(self, row: np.ndarray) -> np.ndarray:
        # of one size in all calls, so that processes at different calls still understand each other
        size, space = row.size, max(HEADER, self.num_shards + 1)
        first = np.zeros(3 + space, np.int64)
        first[:3] = self.calls, self._history, NAMES.index(self._links.collective)
        if size <= space:
            first[3 : 3 + size] = row
        received = self._gathered(first)
        self._compare(received[:, :3])
        return received[:, 3 : 3 + size] if size <= space else self._gathered(row)

    def _gathered(self, row: np.ndarray) -> np.ndarray:
        """The rows of all processes, each of which has one shard: one small all_gather."""
        given = self.on_each(lambda cupy: sent(row, cupy))
        received = self._links.all_gather(given, [row.size] * self.num_shards)
        return self._readback.fetch(received, self.wait)[0].reshape(self.num_shards, -1)

    def _compare(self, rows: np.ndarray) -> None:
        """Check that all shards are at the same call, after the same earlier ones: rows are
        (number of the call, hash of the earlier ones, name).
        """
        own = rows[self.rank].tolist()
        for shard, row in enumerate(rows.tolist()):
            if row[0] == own[0] and row[2] == own[2] and row != own:
                raise self.failure(
                    f"{NAMES[own[2]]}, call {own[0]}: process {shard} is at the same call, but has "
                    "made other ones before, or with another graph, partition, source, operator, "
                    "number, mask or array"
                )
            if row != own:
                raise self.failure(
                    f"{NAMES[own[2]]}, call {own[0]}, but process {shard} is at {NAMES[row[2]]}, "
                    f"call {row[0]}: all processes have to make the same calls in the same order, "
                    "on the same graph and partition"
                )


def _widened(xp: ModuleType, array: Array) -> Array:
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
