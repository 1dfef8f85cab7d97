"""The protocol Communicator, and the checks of arguments that all communicators share."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Literal, Protocol, Self, get_args

import numpy as np

from spgraph.containers.storage.arrays import Array, array_module, device_of, on_device

Op = Literal["sum", "min", "max", "or"]


class Communicator(Protocol):
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
    """

    name: str  # "local", "nccl" or "mpi"
    num_shards: int
    local: range
    devices: tuple[str, ...]  # full names, one for each local shard
    processes: int
    rank: int  # of this process
    bytes_sent: int  # by local shards to other shards, payload only, since the beginning
    calls: int  # collectives since the beginning
    peak_bytes: int  # largest total of the buffers that the communicator has kept for itself

    def all_gather(
        self, parts: Sequence[Array], *, sizes: Sequence[int] | None = None
    ) -> list[Array]:
        """For each local shard: the 1-D parts of all shards, joined in their order.

        Sizes may differ between shards. `sizes`, one a shard, saves their exchange.
        """
        ...

    def all_to_all(
        self, parts: Sequence[Sequence[Array]], *, sizes: Sequence[Sequence[int]] | None = None
    ) -> list[list[Array]]:
        """result[k][p] is what shard p sent to local shard k.

        parts[k][q] goes from local shard k to shard q. 1-D; sizes differ freely, zero included.
        `sizes`, where sizes[k][p] elements come to local shard k from shard p, saves their
        exchange: for arrays that are sent in pairs only the first needs it.
        """
        ...

    def all_reduce(self, parts: Sequence[Array], op: Op) -> list[Array]:
        """For each local shard: the parts of all shards, of one shape, reduced by `op`."""
        ...

    def reduce_scatter(self, parts: Sequence[Array], sizes: Sequence[int], op: Op) -> list[Array]:
        """For local shard q: slice q of the reduction of all parts.

        Every part is 1-D of sum(sizes) elements; slice q has sizes[q], the slices stand in order.
        """
        ...

    def broadcast(self, array: Array | None, root: int) -> list[Array]:
        """For each local shard: a copy of the `array` of shard `root`.

        Only the process that drives shard `root` gives the array; shape and type travel with it.
        """
        ...

    def together(self, name: str, sent: int) -> AbstractContextManager[Any]:
        """Collectives that start together at the end of the context, in as few launches as the
        library can; until then their results are undefined. They are methods of what the context
        gives, `all_gather` and `all_to_all` of 1-D contiguous arrays with `sizes`, unchecked, and
        count as one call, `name`, of `sent` bytes.
        """
        ...

    def all_reduce_host(self, values: np.ndarray, op: Op) -> np.ndarray:
        """`values` of all processes reduced by `op`, on the host, such as counts by which a loop
        ends. `values`, 1-D of int64 or float64, is the contribution of all shards of this process.
        """
        ...

    def fetch(self, arrays: Sequence[Array]) -> list[np.ndarray]:
        """Host copies of small arrays, one for each local shard, with one wait for all devices.

        Unlike `array.get()` it ends with an error where a collective that the arrays depend on
        cannot complete.
        """
        ...

    def tag_graph(self, fingerprint: int) -> None:
        """Tag the calls that follow with the fingerprint of a graph, below 2^63. Processes that
        make the same call with different tags get CommunicationError where the communicator
        compares.
        """
        ...

    def synchronize(self) -> None:
        """Wait until earlier collectives are done; raise their errors. Until then their results may
        be wrong, if a process is lost: call it before a result is handed to the user.
        """
        ...

    def check(self) -> None:
        """Raise the error of an earlier collective, if there is one by now. Does not wait."""
        ...

    def close(self) -> None:
        """Free what the communicator holds, once earlier collectives are done. May be repeated."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


def check_parts(
    name: str, parts: Sequence[Array], devices: Sequence[str], *, dimensions: int | None = 1
) -> np.dtype:
    """The element type of `parts`, one for each local shard and on its device."""
    if len(parts) != len(devices):
        raise ValueError(
            f"{name}: parts: expected one array for each local shard, {len(devices)}, "
            f"got {len(parts)}"
        )
    dtype: np.dtype | None = None
    for part, device in zip(parts, devices, strict=True):
        if dtype is None:
            dtype = part.dtype
            if dtype.kind not in "biuf" or dtype.itemsize > 8:
                raise TypeError(f"{name}: expected bool, integers or floats, got {dtype}")
        if part.dtype != dtype:
            raise TypeError(
                f"{name}: expected one type in all shards, got {dtype} and {part.dtype}"
            )
        if dimensions is not None and part.ndim != dimensions:
            raise ValueError(f"{name}: expected 1-D arrays, got the shape {part.shape}")
        if device_of(part) != device:
            raise ValueError(
                f"{name}: expected an array on the shard's device {device}, got one on "
                f"{device_of(part)}; move it there first"
            )
    assert dtype is not None  # every process drives at least one shard
    return dtype


def check_matrix(
    name: str, parts: Sequence[Sequence[Array]], devices: Sequence[str], shards: int
) -> np.dtype:
    """The element type of parts[k][q], which local shard k sends to shard q."""
    if len(parts) != len(devices) or any(len(row) != shards for row in parts):
        raise ValueError(
            f"{name}: parts: expected {shards} arrays for each of {len(devices)} local shards, "
            f"got {[len(row) for row in parts]}"
        )
    flat = [part for row in parts for part in row]
    return check_parts(name, flat, [device for device in devices for _ in range(shards)])


def check_sizes(name: str, sizes: Sequence[int], shards: int) -> list[int]:
    """`sizes` as a list of integers, one a shard."""
    found = [int(size) for size in sizes]
    if len(found) != shards or min(found) < 0:
        raise ValueError(f"{name}: sizes: expected {shards} sizes, one a shard, got {found}")
    return found


def check_own_sizes(name: str, parts: Sequence[Array], sizes: Sequence[int], local: range) -> None:
    """Check that every local part has the size in `sizes`."""
    for shard, part in zip(local, parts, strict=True):
        if part.size != sizes[shard]:
            raise ValueError(
                f"{name}: sizes[{shard}] is {sizes[shard]}, but the part has {part.size} elements"
            )


def check_sources(
    name: str,
    parts: Sequence[Sequence[Array]],
    sizes: Sequence[Sequence[int]],
    shards: int,
    local: range,
) -> list[list[int]]:
    """`sizes` as integers, checked: sizes[k][p] come to local shard k from shard p."""
    found = [check_sizes(name, row, shards) for row in sizes]
    if len(found) != len(local):
        raise ValueError(f"{name}: sizes: expected a row for each local shard, got {len(found)}")
    for k, row in enumerate(found):
        for sender, given in zip(local, parts, strict=True):
            size = given[local[k]].size
            if row[sender] != size:
                raise ValueError(
                    f"{name}: sizes[{k}][{sender}] is {row[sender]}, but the part has {size} "
                    "elements"
                )
    return found


def check_slices(name: str, parts: Sequence[Array], sizes: Sequence[int], shards: int) -> list[int]:
    """`sizes` as integers that sum up to the size of every part."""
    found = check_sizes(name, sizes, shards)
    for part in parts:
        if part.size != sum(found):
            raise ValueError(
                f"{name}: expected parts of sum(sizes) = {sum(found)} elements, got {part.size}"
            )
    return found


def check_root(name: str, array: Array | None, root: int, shards: int, local: range) -> None:
    """Check that `root` is a shard, and that only its process gives the array."""
    if not 0 <= root < shards:
        raise ValueError(f"{name}: root: expected a shard of 0..{shards - 1}, got {root}")
    if (array is not None) != (root in local):
        raise ValueError(
            f"{name}: the process that drives shard {root} gives the array, the others give None"
        )


def check_op(name: str, op: str, dtype: np.dtype) -> None:
    """Check that `op` is a reduction and defined for `dtype`."""
    if op not in get_args(Op):
        raise ValueError(f"{name}: op: expected one of {get_args(Op)}, got {op!r}")
    if op == "or" and dtype.kind == "f":
        raise TypeError(f"{name}: op 'or' combines bits: expected integers or bool, got {dtype}")
    if op == "sum" and dtype.kind == "b":
        raise TypeError(f"{name}: a sum of bool: give integers to count, or op 'or'")


def check_values(name: str, values: np.ndarray, op: str) -> np.ndarray:
    """`values`, checked for `all_reduce_host`."""
    if values.ndim != 1 or values.dtype not in (np.dtype(np.int64), np.dtype(np.float64)):
        raise TypeError(
            f"{name}: values: expected a 1-D NumPy array of int64 or float64, got "
            f"{values.ndim}-D {values.dtype}"
        )
    check_op(name, op, values.dtype)
    return values


def type_code(dtype: np.dtype) -> int:
    """A number for each element type, the same in every process."""
    return ord(dtype.kind) << 8 | dtype.itemsize


def check_one_type(name: str, codes: np.ndarray) -> None:
    """Check that all shards have one type; `codes` are their `type_code`s."""
    if (codes != codes[0]).any():
        raise TypeError(f"{name}: expected one type in all shards, got different ones")


def fold(pieces: Sequence[Array], op: Op) -> Array:
    """The reduction of `pieces`, which are on one device, in their order; a new array."""
    xp = array_module(pieces[0])
    combine = {"sum": xp.add, "min": xp.fmin, "max": xp.fmax, "or": xp.bitwise_or}[op]
    result = pieces[0].copy()
    for piece in pieces[1:]:
        combine(result, piece, out=result)
    return result


def starts_of(sizes: Sequence[int]) -> list[int]:
    """The offsets of consecutive slices of these sizes, with the end of the last."""
    starts = [0]
    for size in sizes:
        starts.append(starts[-1] + size)
    return starts


def flat(array: Array) -> Array:
    """The array as 1-D and contiguous: a view if possible."""
    if array.ndim == 1 and array.flags.c_contiguous:
        return array
    with on_device(device_of(array)) as xp:
        return xp.ascontiguousarray(array).reshape(-1)


def split(array: Array, sizes: Sequence[int]) -> list[Array]:
    """Views of `array`: consecutive slices of these sizes."""
    starts = starts_of(sizes)
    return [array[lo:hi] for lo, hi in itertools.pairwise(starts)]
