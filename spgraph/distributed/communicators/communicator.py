"""Communicator: the collectives of shards, over the few calls in which its kinds differ."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Self, TypeVar

import numpy as np

from spgraph.containers.storage.arrays import Array, array_module, device_of, on_device
from spgraph.distributed.communicators.checks import (
    Op,
    Pieces,
    Table,
    check_known_sizes,
    check_matrix,
    check_op,
    check_parts,
    check_root,
    check_slices,
    check_sources,
    check_values,
)
from spgraph.distributed.communicators.readback import Readback
from spgraph.errors import CommunicationError

R = TypeVar("R")

NOTHING = contextlib.nullcontext()
HEADER = 16  # 64-bit words that describe the array of a broadcast


class Communicator:
    """How the shards 0..num_shards - 1 exchange arrays.

    A process has the shards `local`, a contiguous range; every list of arrays has one item for each
    local shard, in order. Arguments and results are on the device of their shard.
    Every process calls the same collectives in the same order; the calls of one process come from
    one thread at a time.

    - Element types: bool, integers and floats, the same in all shards. `min` and `max` omit
      NaN, as the monoids of those names do; `or` is that of the bits, for integers and bool; `sum`
      keeps the type and is refused for bool.
    - A result never shares memory with an argument. Shards on one device may share one result of
      all_gather, all_reduce and broadcast: those are read-only by convention.
    - Sums of floats are added up in the order of the shards, so that they are the same in every run
      (NCCL adds in an order of its own, which is fixed for a number of devices and a size).
    - On CUDA devices everything is asynchronous: a collective waits for the current stream of each
      local device, and what later goes to these streams waits for the collective. Only sizes that
      have to be exchanged between processes are waited for by the host.
    - A failure of a device, of the library or of another process raises
      `spgraph.errors.CommunicationError`, after which the communicator cannot be used any more.

    The methods here check arguments, count, and agree on sizes. Each kind implements `_all_gather`,
    `_all_to_all` and `_all_reduce` of 1-D contiguous arrays of known sizes; and, for several
    processes, `_rows`, by which they agree.
    """

    name: str  # "local", "nccl" or "mpi"
    num_shards: int
    local: range
    devices: tuple[str, ...]  # full names, one for each local shard
    processes: int = 1
    rank: int = 0  # of this process
    bytes_sent: int = 0  # by local shards to other shards, payload only, since the beginning
    calls: int = 0  # collectives since the beginning

    compares_sizes = False  # whether processes compare sizes that they were given
    _graph_tag = 0
    # a hash of what was called without a message, and its last call (see exchange/notes.py)
    noted, last_noted = 0, ""

    def __init__(self, num_shards: int, local: range, devices: Sequence[str]) -> None:
        self.num_shards, self.local, self.devices = num_shards, local, tuple(devices)
        self._all_local = len(local) == num_shards
        self._readback = Readback(devices)

    # --- collectives ------------------------------------------------------------------------------

    def all_gather(
        self, parts: Sequence[Array], *, sizes: Sequence[int] | None = None
    ) -> list[Array]:
        """For each local shard: the 1-D parts of all shards, joined in their order.

        Sizes may differ between shards. `sizes`, one a shard, saves their exchange.
        """
        dtype = check_parts("all_gather", parts, self.devices)
        facts: tuple[object, ...] = ()
        if sizes is not None:
            sizes = check_known_sizes("all_gather", parts, sizes, self.num_shards, self.local)
            facts = "of", dtype, tuple(sizes)
        sent = (self.num_shards - 1) * sum(part.nbytes for part in parts)
        with self._call("all_gather", sent, *facts):
            if sizes is None:
                sizes = self._all_sizes("all_gather", [part.size for part in parts], dtype)
            return self._all_gather([flat(part) for part in parts], sizes)

    def gathering(
        self, name: str, *pairs: tuple[Sequence[Array], Sequence[Array]]
    ) -> Callable[[], None]:
        """A collective for every round of a loop, prepared: each call of it joins the parts of all
        shards, equally many elements, in the arrays `wholes`, for each of the `pairs` (parts,
        wholes), in as few launches as the library can. Parts are 1-D and contiguous, a whole may
        also lie in pinned memory of the host, and nothing is checked.
        """
        sent = (self.num_shards - 1) * sum(part.nbytes for parts, _ in pairs for part in parts)
        facts = [fact for parts, _ in pairs for fact in ("of", parts[0].dtype, parts[0].size)]
        start = self._gathering(pairs)

        def call() -> None:
            with self._call(name, sent, *facts):
                start()

        return call

    def all_to_all(self, parts: Pieces, *, sizes: Table | None = None) -> list[list[Array]]:
        """result[k][p] is what shard p sent to local shard k.

        parts[k][q] goes from local shard k to shard q. 1-D; sizes differ freely, zero included.
        `sizes`, where sizes[k][p] elements come to local shard k from shard p, saves their
        exchange: for arrays that are sent in pairs only the first needs it.
        """
        dtype = check_matrix("all_to_all", parts, self.devices, self.num_shards)
        if sizes is not None:
            sizes = check_sources("all_to_all", parts, sizes, self.num_shards, self.local)
        with self._call("all_to_all", self._leaving(parts)):
            if sizes is None or self.compares_sizes:
                leaving = [part.size for row in parts for part in row]
                every = self._all_sizes("all_to_all", leaving, dtype)
                coming = [every[shard :: self.num_shards] for shard in self.local]
                if sizes is not None and coming != sizes:
                    raise self.failure(
                        f"all_to_all: sizes: expected {sizes}, but the others send {coming}"
                    )
                sizes = coming
            return self._exchanged([[flat(part) for part in row] for row in parts], sizes)

    def all_to_all_into(
        self, parts: Pieces, sizes: Table, wholes: Sequence[Array]
    ) -> Sequence[Array]:
        """`wholes`: as `all_to_all`, but what comes to a local shard is joined in its array of
        these. For loops that communicate in every round: parts are 1-D and contiguous, and nothing
        is checked.
        """
        with self._call("all_to_all_into", self._leaving(parts)):
            self._all_to_all(parts, sizes, wholes)
        return wholes

    def all_reduce(self, parts: Sequence[Array], op: Op) -> list[Array]:
        """For each local shard: the parts of all shards, of one shape, reduced by `op`."""
        dtype = check_parts("all_reduce", parts, self.devices, dimensions=None)
        check_op("all_reduce", op, dtype)
        shape = parts[0].shape
        if any(part.shape != shape for part in parts):
            raise ValueError(f"all_reduce: expected parts of one shape, got {shape} and others")
        sent = (self.num_shards - 1) * sum(part.nbytes for part in parts)
        with self._call("all_reduce", sent, op, "of", dtype, shape):
            reduced = self._all_reduce([flat(part) for part in parts], op)
        return [array.reshape(shape) for array in reduced]

    def reduce_scatter(self, parts: Sequence[Array], sizes: Sequence[int], op: Op) -> list[Array]:
        """For local shard q: slice q of the reduction of all parts.

        Every part is 1-D of sum(sizes) elements; slice q has sizes[q], the slices stand in order.
        """
        dtype = check_parts("reduce_scatter", parts, self.devices)
        check_op("reduce_scatter", op, dtype)
        sizes = check_slices("reduce_scatter", parts, sizes, self.num_shards)
        sent = sum(sum(sizes) - sizes[q] for q in self.local) * dtype.itemsize
        with self._call("reduce_scatter", sent, op, "of", dtype, tuple(sizes)):
            return self._reduce_scatter([flat(part) for part in parts], sizes, op)

    def broadcast(self, array: Array | None, root: int) -> list[Array]:
        """For each local shard: a copy of the `array` of shard `root`.

        Only the process that drives shard `root` gives the array; shape and type travel with it.
        """
        root = check_root("broadcast", array, root, self.num_shards, self.local)
        if array is not None:
            device = self.devices[root - self.local.start]
            check_parts("broadcast", [array], [device], dimensions=None)
        with self._call(
            "broadcast", 0 if array is None else (self.num_shards - 1) * array.nbytes, root
        ):
            shape, dtype = self._described(array, root)
            parts = self.on_each(lambda xp: xp.empty(0, dtype))
            sizes = [0] * self.num_shards
            if array is not None:
                parts[root - self.local.start] = flat(array)
            sizes[root] = math.prod(shape)
            return [whole.reshape(shape) for whole in self._all_gather(parts, sizes)]

    # --- numbers on the host ----------------------------------------------------------------------

    def all_reduce_host(self, values: np.ndarray, op: Op) -> np.ndarray:
        """`values` of all processes reduced by `op`, on the host, such as counts by which a loop
        ends. `values`, 1-D of int64 or float64, is the contribution of all shards of this process.
        """
        check_values("all_reduce_host", values, op)
        with self._call("all_reduce_host", 0, op, "of", values.size, values.dtype):
            if self._all_local:
                self.check()  # `values` may depend on results of collectives
                return values.copy()
            rows = self._rows(np.ascontiguousarray(values).view(np.int64))
        return fold(list(rows.view(values.dtype)), op)

    def fetch(self, arrays: Sequence[Array]) -> list[np.ndarray]:
        """Host copies of small arrays, one for each local shard, with one wait for all devices.

        Unlike `array.get()` it ends with an error where a collective that the arrays depend on
        cannot complete.
        """
        check_parts("fetch", arrays, self.devices, dimensions=None)
        self._check_usable()
        if self.devices[0] == "cpu":
            return [array.copy() for array in arrays]
        return self._readback.fetch(arrays, self.wait)

    def on_each(self, function: Callable[..., R], *lists: Sequence[Any]) -> list[R]:
        """[function(NumPy or CuPy, an item of each list) for each local shard], each on its device,
        one after the other: `Placement.map` is for what waits for devices.
        """
        found = []
        for device, *items in zip(self.devices, *lists, strict=True):
            with on_device(device) as xp:
                found.append(function(xp, *items))
        return found

    # --- state ------------------------------------------------------------------------------------

    def tag_graph(self, fingerprint: int) -> None:
        """Tag the calls that follow with the fingerprint of a graph or of its partition, below
        2^63. Processes that make the same call with different tags get CommunicationError where the
        communicator compares.
        """
        self._graph_tag = fingerprint

    def wait(self, event: Any, device: str) -> None:
        """Wait on the host until a CUDA event of `device` has happened. CommunicationError when it
        cannot happen, as `fetch`.
        """
        event.synchronize()

    def synchronize(self) -> None:
        """Wait until earlier collectives are done; raise their errors. Until then their results may
        be wrong, if a process is lost: call it before a result is handed to the user.
        """
        self.check()

    def check(self) -> None:
        """Raise the error of an earlier collective, if there is one by now. Does not wait."""
        self._check_usable()

    def failure(self, reason: str) -> CommunicationError:
        """The error to raise where this process cannot go on. The communicator cannot be used any
        more; the other processes get CommunicationError with `reason`.
        """
        return CommunicationError(reason)

    def close(self) -> None:
        """Free what the communicator holds, once earlier collectives are done. May be repeated."""

    def leave(self, reason: str, error: BaseException | None = None) -> None:
        """Make no more calls; does not wait. The others get CommunicationError with `reason`
        instead of waiting for this process, which leaves by an `error`, if there is one.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.close()
        else:  # the others must not wait for a process that has left
            self.leave(f"{type(error).__name__}: {error}", error)

    # --- what the kinds of communicators implement ------------------------------------------------

    def _all_gather(self, parts: Sequence[Array], sizes: Sequence[int]) -> list[Array]:
        """As `all_gather`."""
        raise NotImplementedError

    def _gathering(
        self, pairs: Sequence[tuple[Sequence[Array], Sequence[Array]]]
    ) -> Callable[[], None]:
        """As `gathering`."""

        def start() -> None:
            for parts, wholes in pairs:
                came = self._all_gather(parts, [parts[0].size] * self.num_shards)
                self.on_each(lambda xp, whole, joined: xp.copyto(whole, joined), wholes, came)

        return start

    def _all_to_all(self, parts: Pieces, sizes: Table, wholes: Sequence[Array]) -> None:
        """As `all_to_all_into`."""
        raise NotImplementedError

    def _all_reduce(self, parts: Sequence[Array], op: Op) -> list[Array]:
        """As `all_reduce`."""
        raise NotImplementedError

    def _reduce_scatter(self, parts: Sequence[Array], sizes: Sequence[int], op: Op) -> list[Array]:
        """As `reduce_scatter`: slices are sent to their shards, which add them up in order."""
        pieces = [split(part, sizes) for part in parts]
        rows = self._exchanged(pieces, [[sizes[q]] * self.num_shards for q in self.local])
        return self.on_each(lambda xp, row: fold(row, op), rows)

    def _rows(self, row: np.ndarray) -> np.ndarray:
        """The `row` of 64-bit numbers of every process, of one size, on the host."""
        raise NotImplementedError

    def _check_usable(self) -> None:
        """Raise CommunicationError if a call has failed before."""

    def _call(self, name: str, sent: int, *facts: object) -> AbstractContextManager[Any]:
        """The context of a collective that sends so many bytes. `facts`, words and values, have to
        be the same in all processes.
        """
        self._check_usable()
        self.calls += 1
        self.bytes_sent += sent
        return NOTHING

    def _exchanged(self, parts: Pieces, sizes: Table) -> list[list[Array]]:
        """As `all_to_all`, of 1-D contiguous arrays of known sizes."""
        dtype = parts[0][0].dtype
        wholes = self.on_each(lambda xp, row: xp.empty(sum(row), dtype), sizes)
        self._all_to_all(parts, sizes, wholes)
        return [split(*pair) for pair in zip(wholes, sizes, strict=True)]

    def _leaving(self, parts: Pieces) -> int:
        """The bytes of parts[k][q] that local shards k send to other shards q."""
        own = sum(row[shard].nbytes for shard, row in zip(self.local, parts, strict=True))
        return sum(part.nbytes for row in parts for part in row) - own

    # --- agreement --------------------------------------------------------------------------------

    def _all_sizes(self, name: str, sizes: list[int], dtype: np.dtype) -> list[int]:
        """The sizes of all shards, in their order; `sizes` are those of the local shards, equally
        many of each. TypeError if the shards have different types.
        """
        if self._all_local:
            return sizes
        rows = self._rows(np.array([type_code(dtype), *sizes]))
        if (rows[:, 0] != rows[0, 0]).any():
            raise TypeError(
                f"{name}: expected one type in all shards, got {dtype} here and another one in "
                "another process; all have to make the same calls with arguments of the same types"
            )
        return rows[:, 1:].ravel().tolist()

    def _described(self, array: Array | None, root: int) -> tuple[tuple[int, ...], np.dtype]:
        """The shape and type of the array of a broadcast, in every process."""
        if array is not None and self._all_local:
            return array.shape, array.dtype
        row = np.zeros(HEADER, np.int64)
        if array is not None:
            if array.ndim > HEADER - 2:
                raise ValueError(f"broadcast: at most {HEADER - 2} dimensions, got {array.ndim}")
            row[:2] = ord(array.dtype.char), array.ndim
            row[2 : 2 + array.ndim] = array.shape
        char, ndim, *shape = self._rows(row)[root // len(self.local)].tolist()
        return tuple(shape[:ndim]), np.dtype(chr(char))


def type_code(dtype: np.dtype) -> int:
    """A number for each element type, the same in every process."""
    return ord(dtype.kind) << 8 | dtype.itemsize


def fold(pieces: Sequence[Array], op: Op) -> Array:
    """The reduction of `pieces`, which are on one device, in their order; a new array."""
    xp = array_module(pieces[0])
    combine = {"sum": xp.add, "min": xp.fmin, "max": xp.fmax, "or": xp.bitwise_or}[op]
    result = pieces[0].copy()
    for piece in pieces[1:]:
        combine(result, piece, out=result)
    return result


def flat(array: Array) -> Array:
    """The array as 1-D and contiguous: a view if possible."""
    if array.ndim == 1 and array.flags.c_contiguous:
        return array
    with on_device(device_of(array)) as xp:
        return xp.ascontiguousarray(array).reshape(-1)


def split(array: Array, sizes: Sequence[int]) -> list[Array]:
    """Views of `array`: consecutive slices of these sizes."""
    ends = itertools.accumulate(sizes)
    return [array[end - size : end] for size, end in zip(sizes, ends, strict=True)]
