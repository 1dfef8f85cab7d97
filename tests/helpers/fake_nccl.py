"""A stand-in for CuPy and NCCL in the memory of the host: which bytes go where, and what is said
when something fails, without a GPU. It knows of CuPy what the communicators use.

A call of NCCL takes pointers and sizes; nothing moves before the group ends, and then only when all
ranks have come to the same point, as on GPUs. Ranks may be threads.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import sys
import threading
from collections import defaultdict, deque
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from spgraph.containers.storage import arrays

GPUS = 8
GARBAGE = 0x5A  # in all bytes of what a kernel that was broken off leaves
TYPES = "INT8 UINT8 INT32 UINT32 INT64 UINT64 FLOAT32 FLOAT64".split()
OPERATIONS = {"SUM": np.add, "MIN": np.fmin, "MAX": np.fmax}


class Memory:
    """What `array.data` is to CuPy."""

    def __init__(self, array: Array) -> None:
        self.ptr, self.device = array.ctypes.data, array.device

    def copy_from_device_async(self, source: Memory, size: int) -> None:
        assert self.device.id == here.device, "it would run on a stream of another device"
        ctypes.memmove(self.ptr, source.ptr, size)

    def copy_from_host_async(self, source: int, size: int) -> None:
        ctypes.memmove(self.ptr, source, size)


class Array(np.ndarray):
    """An array of a GPU: the one that is current when it is made, or that of its base."""

    def __array_finalize__(self, base: Any) -> None:
        self._number = getattr(base, "_number", here.device)

    @property
    def device(self) -> Any:  # type: ignore[override]
        return SimpleNamespace(id=self._number)

    @property
    def data(self) -> Memory:  # type: ignore[override]
        assert self.flags.c_contiguous, "only what is contiguous has a pointer to give away"
        return Memory(self)

    def get(self, out: np.ndarray | None = None, blocking: bool = True) -> np.ndarray:
        if out is None:
            return np.array(self, subok=False)
        if Comm.late and not blocking:
            here.copies.append((self, out))  # until the event that follows has come
        else:
            out[...] = self
        return out


class Here(threading.local):
    """What CUDA and NCCL keep for each thread."""

    device = 0
    group: list[tuple[Any, ...]] | None = None
    depth = 0  # of groups in groups: the outermost counts
    failed = False  # a call of the group: NCCL then does nothing of it
    comm: Comm | None = None  # the latest that this thread has called

    def __init__(self) -> None:
        self.copies: list[tuple[Array, np.ndarray]] = []


here = Here()


class NcclError(RuntimeError):
    pass


class Clique:
    """Ranks that talk to each other, and what each has said, group after group."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.said: dict[int, list[list[Any]]] = {rank: [] for rank in range(size)}
        self.done = 0
        self.changed = threading.Condition()
        self.dead = False

    def perform(self, calls: dict[int, list[Any]]) -> None:
        """Say the calls of some ranks; return when all ranks have said theirs and it is done."""
        with self.changed:
            for rank, said in calls.items():
                self.said[rank].append(said)
            mine = max(len(self.said[rank]) for rank in calls)
            while all(len(said) > self.done for said in self.said.values()):
                self._move([self.said[rank][self.done] for rank in range(self.size)])
                self.done += 1
                self.changed.notify_all()
            if Comm.late:  # as kernels do: the call is back before they are done
                return
            came = self.changed.wait_for(lambda: self.done >= mine or self.dead, 20)
            if not came or self.done < mine:
                raise NcclError("NCCL_ERROR_REMOTE: aborted")

    def abort(self) -> None:
        """Kernels that wait come to an end, on all ranks: who is broken off sends anything, and the
        others take it for what they wait for.
        """
        with self.changed:
            self.dead = True
            for said in self.said.values():
                for call in (call for group in said[self.done :] for call in group):
                    if call[0] in ("allGather", "allReduce"):
                        ctypes.memset(call[2], GARBAGE, call[3] * call[4].itemsize)
            self.changed.notify_all()

    def _move(self, rows: list[list[Any]]) -> None:
        boxes: dict[tuple[int, int], list[Any]] = defaultdict(list)
        for rank, row in enumerate(rows):
            for name, pointer, count, *_, peer in row:
                if name == "send":
                    boxes[rank, peer].append((pointer, count))
        for rank, row in enumerate(rows):
            for name, pointer, count, *_, peer in row:
                if name == "recv":
                    source, size = boxes[peer, rank].pop(0)
                    assert size == count, "both sides must name the same size"
                    ctypes.memmove(pointer, source, count)
        assert not any(boxes.values()), "sent, and never received"
        collective = [[call for call in row if call[0] not in ("send", "recv")] for row in rows]
        for calls in zip(*collective, strict=True):
            self._collective(calls)

    def _collective(self, calls: tuple[Any, ...]) -> None:
        name, *_ = calls[0]
        assert all(call[0] == name and call[3:] == calls[0][3:] for call in calls)
        if name == "broadcast":
            _, _, _, size, root = calls[0]
            for call in calls:
                ctypes.memmove(call[2], calls[root][1], size)
            return
        count, dtype = calls[0][3:5]
        if name == "allGather":
            whole = b"".join(ctypes.string_at(call[1], count) for call in calls)
            for call in calls:
                ctypes.memmove(call[2], whole, len(whole))
            return
        operation, root = calls[0][5:7]
        total = count * (self.size if name == "reduceScatter" else 1)
        rows = [
            np.frombuffer(ctypes.string_at(call[1], total * dtype.itemsize), dtype)
            for call in calls
        ]
        reduced = rows[0].copy()
        for row in rows[1:]:
            reduced = operation(reduced, row)
        for rank, call in enumerate(calls):
            part = reduced
            if name == "reduceScatter":
                part = reduced[rank * count : (rank + 1) * count]
            if name != "reduce" or rank == root:
                ctypes.memmove(call[2], part.ctypes.data, part.nbytes)


class Comm:
    """cupy.cuda.nccl.NcclCommunicator."""

    cliques: ClassVar[dict[bytes, Clique]] = {}
    lock = threading.Lock()
    fail: str | None = None  # the collective that fails from now on
    late = False  # events come when all ranks have come to the same point, or after an abort
    failed = False

    def __init__(self, size: int, key: bytes, rank: int) -> None:
        assert isinstance(key, bytes) and len(key) == 128
        with Comm.lock:
            self.clique = Comm.cliques.setdefault(key, Clique(size))
        self.rank = rank

    @staticmethod
    def initAll(devices: list[int]) -> list[Comm]:
        key = unique_id()
        return [Comm(len(devices), key, rank) for rank in range(len(devices))]

    def _say(self, name: str, *arguments: Any) -> None:
        if self.fail == name and self.rank == self.clique.size - 1:
            here.failed = True
            raise NcclError(f"NCCL_ERROR_INTERNAL_ERROR: {name}")
        assert here.group is not None, "several ranks of one thread need a group"
        here.comm = self
        here.group.append((self, (name, *arguments)))

    def send(self, pointer: int, count: int, kind: int, peer: int, stream: int) -> None:
        self._say("send", pointer, count * dtype_of(kind).itemsize, kind, peer)

    def recv(self, pointer: int, count: int, kind: int, peer: int, stream: int) -> None:
        self._say("recv", pointer, count * dtype_of(kind).itemsize, kind, peer)

    def broadcast(
        self, source: int, target: int, count: int, kind: int, root: int, stream: int
    ) -> None:
        self._say("broadcast", source, target, count * dtype_of(kind).itemsize, root)

    def allGather(self, source: int, target: int, count: int, kind: int, stream: int) -> None:
        self._say("allGather", source, target, count * dtype_of(kind).itemsize, dtype_of(kind))

    def allReduce(
        self, source: int, target: int, count: int, kind: int, how: int, stream: int
    ) -> None:
        self._say("allReduce", source, target, count, dtype_of(kind), operation(how), None)

    def reduceScatter(
        self, source: int, target: int, count: int, kind: int, how: int, stream: int
    ) -> None:
        self._say("reduceScatter", source, target, count, dtype_of(kind), operation(how), None)

    def reduce(
        self, source: int, target: int, count: int, kind: int, how: int, root: int, stream: int
    ) -> None:
        self._say("reduce", source, target, count, dtype_of(kind), operation(how), root)

    def check_async_error(self) -> None:
        if self.failed:
            raise NcclError("NCCL_ERROR_REMOTE: found later")

    def destroy(self) -> None:
        pass

    def abort(self) -> None:
        self.clique.abort()


def dtype_of(kind: int) -> np.dtype:
    return np.dtype(TYPES[kind].lower())


def operation(how: int) -> Any:
    return list(OPERATIONS.values())[how]


def unique_id() -> bytes:
    return next(counter).to_bytes(128, "big")


counter = itertools.count()


def group_start() -> None:
    assert (here.group is None) == (here.depth == 0)
    here.group = here.group or []
    here.depth += 1


def group_end() -> None:
    here.depth -= 1
    if here.depth:
        return
    said, here.group = here.group, None
    assert said is not None
    failed, here.failed = here.failed, False
    if failed:
        raise NcclError("NCCL_ERROR_INTERNAL_ERROR: a call of the group has failed")
    by_clique: dict[Clique, dict[int, list[Any]]] = {}
    for comm, call in said:
        by_clique.setdefault(comm.clique, {}).setdefault(comm.rank, []).append(call)
    for clique, calls in by_clique.items():
        clique.perform(calls)


class Device:
    def __init__(self, number: int) -> None:
        self.number = number

    def __enter__(self) -> None:
        self.before, here.device = here.device, self.number

    def __exit__(self, *error: Any) -> None:
        here.device = self.before


NOT_READY = 600  # cudaErrorNotReady


class Event:
    """An event that has come as soon as it is recorded, unless `status` says otherwise, or NCCL is
    late: then it comes after what this thread has called.
    """

    status = 0
    every: ClassVar[dict[int, Event]] = {}

    def __init__(self, **_: Any) -> None:
        self.device, self.ptr = here.device, next(counter)
        self.every[self.ptr] = self
        self.after = 0

    def record(self, stream: Any) -> None:
        # the number 0 of a default stream means that of the current device
        assert stream.device == self.device == here.device
        if here.comm is not None:
            self.after = len(here.comm.clique.said[here.comm.rank])

    def query(self) -> int:
        comm = here.comm
        if Comm.late and comm is not None:
            clique = comm.clique
            with clique.changed:
                if clique.done < self.after and not clique.dead:
                    return NOT_READY
                for array, host in here.copies:
                    host[...] = array
                here.copies.clear()
        return self.status

    def synchronize(self) -> None:
        pass


class Stream:
    ptr = 0

    def __init__(self, device: int) -> None:
        self.device = device

    def wait_event(self, event: Event) -> None:
        assert self.device == here.device != event.device


kept: deque[np.ndarray] = deque(maxlen=256)  # what an abort may still write to


def empty(shape: Any, dtype: Any) -> Any:
    kept.append(np.empty(shape, dtype))
    return kept[-1].view(Array)


def stream_of(device: int = -1) -> Stream:
    return Stream(here.device if device < 0 else device)


@contextlib.contextmanager
def fake_gpus() -> Iterator[ModuleType]:
    """CuPy with eight GPUs and NCCL, for the time of the context; the module of NCCL."""
    cupy, cuda, nccl = (ModuleType(name) for name in ("cupy", "cupy.cuda", "cupy.cuda.nccl"))
    ours: Any = cupy
    ours.ndarray, ours.cuda, cuda.nccl = Array, cuda, nccl  # type: ignore[attr-defined]
    ours.empty = empty
    ours.asarray = lambda array: np.array(array, subok=False).view(Array)
    ours.copyto = np.copyto
    ours.ascontiguousarray = lambda a: a if a.flags.c_contiguous else a.copy(order="C")
    for name in ("add", "fmin", "fmax", "bitwise_or"):
        setattr(cupy, name, getattr(np, name))
    runtime = SimpleNamespace(
        getDeviceCount=lambda: GPUS,
        getDevice=lambda: here.device,
        eventQuery=lambda pointer: Event.every[pointer].query(),
        CUDARuntimeError=lambda status: RuntimeError(f"cudaError {status}"),
    )
    vars(cuda).update(
        runtime=runtime,
        Device=Device,
        Event=Event,
        get_current_stream=stream_of,
        alloc_pinned_memory=bytearray,
        UnownedMemory=lambda address, size, owner: (ctypes.c_char * size).from_address(address),
        MemoryPointer=lambda memory, offset: memory,
    )
    vars(nccl).update(
        available=True,
        NcclCommunicator=Comm,
        NcclError=NcclError,
        get_unique_id=unique_id,
        groupStart=group_start,
        groupEnd=group_end,
        **{f"NCCL_{name}": i for i, name in enumerate(TYPES)},
        **{f"NCCL_{name}": i for i, name in enumerate(OPERATIONS)},
    )
    with pytest.MonkeyPatch.context() as patch:
        for module in (cupy, cuda, nccl):
            patch.setitem(sys.modules, module.__name__, module)
        arrays.import_cupy.cache_clear()
        try:
            yield nccl
        finally:
            arrays.import_cupy.cache_clear()
