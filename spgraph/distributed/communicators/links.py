"""The calls of NCCL: its communicators of the GPUs of this process, groups of calls, failures.

Arrays are 1-D and contiguous here, one for each GPU of this process.
"""

from __future__ import annotations

import functools
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Self

import numpy as np

from spgraph.containers.storage.arrays import Array, import_cupy, on_device
from spgraph.distributed.communicators import watchdog
from spgraph.distributed.communicators.checks import Op, Pieces, Table, starts_of
from spgraph.distributed.communicators.store import TcpStore
from spgraph.distributed.communicators.timeouts import Timeouts
from spgraph.errors import BackendUnavailable, CommunicationError

NOT_READY = 600  # cudaErrorNotReady, of an event
SPIN, NAP, POLL = 0.002, 0.00005, 0.05  # seconds: of busy waiting, of each sleep, between checks
INIT, DESTROY = 60.0, 10.0  # seconds for calls of NCCL that wait for the other processes
# seconds in which the store learns of the loss of a process, and all others have acknowledged it
LOSS_NEWS, LOSS_ACKNOWLEDGED = 1.0, 10.0
PUBLISH_AFTER = 1.0  # seconds after which a process publishes in the store that it waits
CALL_LIMIT = 3.0  # after a loss, seconds that a call of NCCL in another thread may take


def load_nccl() -> ModuleType:
    """CuPy's module for NCCL."""
    import_cupy()
    from cupy.cuda import nccl

    if not nccl.available:
        raise BackendUnavailable(
            "NcclCommunicator: CuPy finds no NCCL: pip install 'spgraph[cuda13]' (or [cuda12])"
        )
    return nccl


@functools.cache
def number_of(device: str) -> int:
    """The N of 'cuda:N'."""
    return int(device.partition(":")[2])


@dataclass(frozen=True)
class Link:
    """The NCCL communicator of a local shard."""

    shard: int
    device: str
    comm: Any

    def stream(self) -> int:
        """The device's current stream."""
        return import_cupy().cuda.get_current_stream(number_of(self.device)).ptr


class Links:
    """The links of this process, calls of all of them in one group, and what happens after
    failures: every later call raises CommunicationError, as NCCL cannot be used any further.
    """

    def __init__(
        self,
        links: Sequence[Link],
        shards: int,
        store: TcpStore | None,
        timeout: float | None = None,
    ) -> None:
        self.links = tuple(links)
        self._devices = ", ".join(link.device for link in links)
        self.num_shards = shards
        self.store = store
        self.nccl = load_nccl()
        self.collective, self.number = "the beginning", 0  # the latest call, for messages
        who = "the process" if store is None else f"process {store.rank} of {store.processes}"
        self._timeouts = Timeouts(f"NCCL: {who}", timeout)
        self._published = 0  # the number of the last call in which this process published its wait
        self.broken: str | None = None
        self._current: Link | None = None  # the link whose call is under way
        self._calling = threading.RLock()  # held during calls of NCCL: `abort` frees what they use
        self._done: list[Any] = []  # for each link an event, which `finish` records
        for link in links:
            with on_device(link.device) as cupy:
                self._done.append(cupy.cuda.Event(disable_timing=True))
        if store is not None:
            store.when_lost(self._on_loss)

    @classmethod
    def of_devices(cls, devices: Sequence[str]) -> Links:
        """Links between GPUs of this process."""
        nccl = load_nccl()
        try:
            comms = nccl.NcclCommunicator.initAll([number_of(device) for device in devices])
        except nccl.NcclError as error:
            raise CommunicationError(
                f"NCCL cannot connect {', '.join(devices)}: {error}; NCCL_DEBUG=INFO tells more"
            ) from error
        links = [Link(k, *pair) for k, pair in enumerate(zip(devices, comms, strict=True))]
        return cls(links, len(links), None)

    @classmethod
    def of_process(cls, device: str, store: TcpStore, timeout: float | None) -> Links:
        """The link of this process's only GPU to the GPUs of the other processes."""
        nccl = load_nccl()
        if store.rank == 0:
            store.set("nccl", nccl.get_unique_id())
        key = store.get("nccl")
        store.barrier("nccl/start")  # a process that never came is named here

        def connect() -> Any:
            with on_device(device):  # the current device is per thread
                return nccl.NcclCommunicator(store.processes, key, store.rank)

        what = f"NCCL: process {store.rank} of {store.processes} connecting {device}"
        try:
            comm = watchdog.in_time(what, INIT, connect, lambda: store.lost)
        except nccl.NcclError as error:
            raise CommunicationError(f"{what}: {error}; NCCL_DEBUG=INFO tells more") from error
        return cls([Link(store.rank, device, comm)], store.processes, store, timeout)

    # --- calls ------------------------------------------------------------------------------------

    def all_gather(self, parts: Sequence[Array], sizes: Sequence[int]) -> list[Array]:
        """The parts of all shards joined, in new arrays; sizes[q] elements come from shard q."""
        received = self.empty([sum(sizes)] * len(parts), parts[0].dtype)
        if len(set(sizes)) == 1:
            if sizes[0]:
                self.gathering([(parts, received)])()
            return received
        starts, each, byte = starts_of(sizes), parts[0].dtype.itemsize, self.nccl.NCCL_UINT8
        with self:  # NCCL runs the broadcasts of a group concurrently
            for link, part, target in self._each(parts, received):
                for q, size in enumerate(sizes):
                    if size:
                        place = target.data.ptr + starts[q] * each
                        ends = part.data.ptr if q == link.shard else place, place
                        link.comm.broadcast(*ends, size * each, byte, q, link.stream())
        return received

    def gathering(
        self, pairs: Sequence[tuple[Sequence[Array], Sequence[Array]]]
    ) -> Callable[[], None]:
        """A call that joins parts of all shards, equally many elements, in arrays; prepared."""
        calls = [
            (link, link.comm.allGather, part.data.ptr, whole.data.ptr, part.nbytes)
            for both in pairs
            for link, part, whole in zip(self.links, *both, strict=True)
        ]
        byte = self.nccl.NCCL_UINT8

        def start(held: object = pairs) -> None:  # the arrays live as long as the call
            with self:
                for link, gather, *ends_and_size in calls:
                    self._current = link
                    gather(*ends_and_size, byte, link.stream())

        return start

    def all_to_all_into(self, parts: Pieces, sizes: Table, wholes: Sequence[Array]) -> None:
        """parts[k][q] to shard q; what comes to local shard k, sizes[k][p] elements from shard p,
        is joined in wholes[k].
        """
        byte = self.nccl.NCCL_UINT8
        with self:
            for link, row, numbers, whole in self._each(parts, sizes, wholes):
                place, stream = whole.data.ptr, link.stream()
                for q, (part, number) in enumerate(zip(row, numbers, strict=True)):
                    coming = number * whole.dtype.itemsize
                    if q == link.shard and coming:
                        first = sum(numbers[:q])
                        with on_device(link.device):
                            target = whole[first : first + number].data
                            target.copy_from_device_async(part.data, coming)
                    elif q != link.shard:
                        if part.nbytes:
                            link.comm.send(part.data.ptr, part.nbytes, byte, q, stream)
                        if coming:
                            link.comm.recv(place, coming, byte, q, stream)
                    place += coming

    def all_reduce(self, parts: Sequence[Array], op: Op) -> list[Array]:
        """New arrays of the reduction of all parts."""
        received = self.empty([part.size for part in parts], parts[0].dtype)
        how = self._numbers(parts[0].dtype, op)
        if parts[0].size:
            with self:
                for link, part, target in self._each(parts, received):
                    ends = part.data.ptr, target.data.ptr
                    link.comm.allReduce(*ends, part.size, *how, link.stream())
        return received

    def reduce_scatter(self, parts: Sequence[Array], sizes: Sequence[int], op: Op) -> list[Array]:
        """New arrays: for each local shard its slice of the reduction of all parts."""
        received = self.empty([sizes[link.shard] for link in self.links], parts[0].dtype)
        each, how = parts[0].dtype.itemsize, self._numbers(parts[0].dtype, op)
        if sum(sizes) == 0:
            return received
        with self:
            for link, part, target in self._each(parts, received):
                stream, source, here = link.stream(), part.data.ptr, target.data.ptr
                if len(set(sizes)) == 1:
                    link.comm.reduceScatter(source, here, sizes[0], *how, stream)
                    continue
                for q, (first, size) in enumerate(zip(starts_of(sizes), sizes, strict=False)):
                    if size:
                        ends = source + first * each, here if q == link.shard else 0
                        link.comm.reduce(*ends, size, *how, q, stream)
        return received

    def empty(self, counts: Sequence[int], dtype: np.dtype) -> list[Array]:
        """New arrays, one on each device."""
        arrays = []
        for link, count in zip(self.links, counts, strict=True):
            with on_device(link.device) as cupy:
                arrays.append(cupy.empty(count, dtype))
        return arrays

    def __enter__(self) -> Self:
        """Begin a group of NCCL: the calls inside start together, at its end."""
        self._calling.acquire()
        try:
            self.raise_if_broken()
            self._current = None
            self.nccl.groupStart()
        except BaseException as error:
            self._calling.release()
            self._raise(error)
            raise
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                self._current = None
            self.nccl.groupEnd()  # after an error too: in an open group no later call would start
        except RuntimeError as late:
            error = error or late
        finally:
            self._calling.release()
        self._raise(error)

    def _raise(self, error: BaseException | None) -> None:
        """Raise CommunicationError where a call of NCCL or of the device has failed."""
        if isinstance(error, RuntimeError) and not isinstance(error, CommunicationError):
            raise self.failed(self._failed_devices(), error) from error

    def _each(self, *lists: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """(link, its item of each list) for each link."""
        for link, *items in zip(self.links, *lists, strict=True):
            self._current = link
            yield (link, *items)

    def _numbers(self, dtype: np.dtype, op: Op) -> list[int]:
        """NCCL's for a type and a reduction. The `or` of bytes that are 0 or 1 is their maximum."""
        names = dtype.name, "max" if op == "or" else op
        return [getattr(self.nccl, f"NCCL_{name.upper()}") for name in names]

    # --- waiting, and failures --------------------------------------------------------------------

    def raise_if_broken(self) -> None:
        """Raise CommunicationError if a call has failed before."""
        if self.broken is not None:
            raise CommunicationError(self.broken)

    def check(self) -> None:
        """Raise an asynchronous error of NCCL, or the loss of a process."""
        for link in self.links:
            try:
                with self._calling:
                    self.raise_if_broken()
                    link.comm.check_async_error()
            except CommunicationError:
                raise
            except RuntimeError as error:
                raise self.failed(link.device, error) from error

    def wait(self, event: Any, device: str) -> None:
        """Wait on the host until a CUDA event of `device` has happened, or can no longer happen.

        Kernels of NCCL that are aborted end, too, with arbitrary results: these are valid only if
        nothing has failed when the event has happened.
        """
        runtime = import_cupy().cuda.runtime
        started = looked = time.monotonic()
        while (status := runtime.eventQuery(event.ptr)) == NOT_READY:
            now = time.monotonic()
            if now - started > SPIN:
                time.sleep(NAP)
            if now - looked > POLL:
                looked = now
                self.check()
                self._publish_wait(now - started)
                call = self.number, self.collective, self._missing
                if (reason := self._timeouts.poll(now - started, *call)) is not None:
                    raise self.failed(device, TimeoutError(reason))
        if status:
            raise self.failed(device, runtime.CUDARuntimeError(status))
        self.check()

    def _publish_wait(self, seconds: float) -> None:
        """NCCL does not say which process has not come, so every process that has waited for some
        `seconds` in a call publishes that in the store.
        """
        if self.store is None or seconds < PUBLISH_AFTER or self._published == self.number:
            return
        self._published = self.number
        self.store.set(f"waits/{self.store.rank}", struct.pack("!q", self.number))

    def _missing(self) -> list[int]:
        """The processes that have not published that they wait in this call."""
        if (store := self.store) is None:
            return []
        others, here = set(range(store.processes)) - {store.rank}, struct.pack("!q", self.number)
        return [rank for rank in sorted(others) if store.peek(f"waits/{rank}") != here]

    def finish(self) -> None:
        """Wait for all calls, on all devices."""
        for link, event in zip(self.links, self._done, strict=True):
            with on_device(link.device) as cupy:  # default streams of all devices are number 0
                event.record(cupy.cuda.get_current_stream())
            self.wait(event, link.device)

    def destroy(self) -> None:
        """Destroy the communicators of NCCL; all processes do so at about the same time."""

        def run() -> None:
            for link in self.links:
                link.comm.destroy()

        watchdog.in_time(f"NCCL: closing {self._devices}", DESTROY, run)

    def abandon(self, reason: str) -> None:
        """Make no more calls. `abort` ends kernels of NCCL that wait for other processes; as it may
        hang, it runs in the background.

        An aborted kernel may still send wrong data, which kernels of other processes accept: so
        it is aborted only when the other processes know that their results are invalid.
        """
        self.broken = reason

        def abort(link: Link) -> None:
            if self.store is not None:
                self.store.all_acknowledged(LOSS_ACKNOWLEDGED)
            # let a call in another thread end first, unless it waits for a lost process
            if self._calling.acquire(timeout=CALL_LIMIT):
                self._calling.release()
            link.comm.abort()

        for link in self.links:
            watchdog.in_background(functools.partial(abort, link))

    def _failed_devices(self) -> str:
        """The device whose call has failed, or the devices with an error of NCCL, or all."""
        if self._current is not None:
            return self._current.device
        guilty: list[str] = []
        for link in self.links if self.broken is None else ():
            try:
                link.comm.check_async_error()
            except RuntimeError:
                guilty.append(link.device)
        return ", ".join(guilty) or self._devices

    def _message(self, devices: str, reason: object) -> str:
        who = f", process {self.store.rank} of {self.store.processes}" if self.store else ""
        return f"NCCL: {devices}{who}, in or after {self.collective}: {reason}"

    def failure(self, reason: str) -> CommunicationError:
        """The error to raise where processes have made different calls."""
        return self.failed(self._devices, RuntimeError(reason))

    def failed(self, devices: str, error: BaseException) -> CommunicationError:
        """The error to raise, after the links are abandoned and the other processes notified.

        NCCL may notice the loss of a process before the store does, but the store knows which one.
        """
        if self.store is not None and self.store.lost_within(LOSS_NEWS):
            self._on_loss(str(self.store.lost))
        if self.broken is None:
            self.abandon(self._message(devices, error))
            if self.store is not None:
                self.store.fail(str(error))
        return CommunicationError(self.broken)

    def _on_loss(self, reason: str) -> None:
        """Callback of the store, in its thread: another process is lost."""
        if self.broken is None:
            self.abandon(self._message(self._devices, reason))
            if watchdog.launched():
                watchdog.end_process(str(self.broken))
