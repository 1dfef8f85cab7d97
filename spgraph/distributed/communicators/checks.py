"""Checks of the arguments of communicators and their collectives."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from spgraph.containers.storage.arrays import Array, check_device, device_of, is_cuda
from spgraph.containers.storage.masked import refuse_masked
from spgraph.containers.storage.numbers import is_integer, is_real
from spgraph.errors import DomainMismatch

Op = Literal["sum", "min", "max", "or"]
Pieces: TypeAlias = Sequence[Sequence[Array]]  # [k][q]: from local shard k to shard q
Table: TypeAlias = Sequence[Sequence[int]]  # [k][p]: how many come to local shard k from shard p

# of a process: its shards take turns in every operation, and each sends an array to each other
MOST_SHARDS = 1024


def check_most(name: str, shards: int, processes: int = 1) -> None:
    """ValueError for more shards than so many processes can drive; `name` is that of the argument,
    after that of the function that the user has called.
    """
    most = MOST_SHARDS * processes
    if shards > most:
        of = "a process" if processes == 1 else f"{processes} processes"
        raise ValueError(f"{name}: expected at most {most} shards in {of}, got {shards}")


def check_devices(name: str, devices: object) -> list[str]:
    """The full names of a list of devices."""
    if isinstance(devices, str) or not isinstance(devices, Iterable):
        raise DomainMismatch(
            f"{name}: devices: expected a list of devices, one a shard, got {devices!r}"
        )
    return [check_device(device) for device in devices]


def check_timeout(name: str, timeout: object) -> None:
    """ValueError for what is no number of seconds."""
    if not is_real(timeout) or not timeout > 0:
        raise ValueError(f"{name}: timeout: expected seconds > 0, got {timeout!r}")


def check_comm(name: str, comm: object) -> None:
    """DomainMismatch for what is no communicator of MPI, or one between two groups or none."""
    if not hasattr(comm, "Get_rank") or not comm or comm.Is_inter():  # type: ignore[attr-defined]
        remedy = f"; MpiCommunicator(shards={comm}) has so many shards" if is_integer(comm) else ""
        raise DomainMismatch(
            f"{name}: comm: expected an intracommunicator of mpi4py, got {comm!r}{remedy}"
        )


def check_meeting(
    address: object, rank: Any, processes: Any, token: object, timeout: object
) -> tuple[str, int]:
    """Host and port of the `address` of a TcpStore, whose other arguments are checked, too."""
    host, _, port = address.rpartition(":") if isinstance(address, str) else ("", "", "")
    if not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"TcpStore: address: expected 'host:port', got {address!r}")
    for argument, value in (("rank", rank), ("processes", processes)):
        if not is_integer(value):
            raise DomainMismatch(f"TcpStore: {argument}: expected an integer, got {value!r}")
    if not 0 <= rank < processes:
        raise ValueError(f"TcpStore: rank: expected 0..{processes - 1}, got {rank}")
    if token is not None and not isinstance(token, str):
        raise DomainMismatch(f"TcpStore: token: expected text, got {type(token).__name__}")
    check_timeout("TcpStore", timeout)
    return host, int(port)


def check_parts(
    name: str, parts: Sequence[Array], devices: Sequence[str], *, dimensions: int | None = 1
) -> np.dtype:
    """The element type of `parts`, one for each local shard and on its device."""
    check_list(name, "parts", "arrays", parts)
    if len(parts) != len(devices):
        raise ValueError(
            f"{name}: parts: expected one array for each local shard, {len(devices)}, "
            f"got {len(parts)}"
        )
    dtype: np.dtype | None = None
    for part, device in zip(parts, devices, strict=True):
        if type(part) is not np.ndarray:  # the common case, without a call
            check_array(name, part)
        if dtype is None:
            dtype = part.dtype
            if dtype.kind not in "biuf" or dtype.itemsize > 8:
                raise TypeError(f"{name}: expected bool, integers or floats, got {dtype}")
            if not dtype.isnative:  # data is sent as bytes
                raise TypeError(
                    f"{name}: expected this machine's byte order, got {dtype}; give "
                    f"array.astype({dtype.name!r})"
                )
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


def check_array(name: str, given: Any) -> None:
    """TypeError for what is no array of NumPy or CuPy, DomainMismatch for a masked one."""
    if not isinstance(given, np.ndarray) and not is_cuda(given):
        raise TypeError(
            f"{name}: expected arrays of NumPy or CuPy, got {type(given).__name__}; "
            "numpy.asarray makes one"
        )
    refuse_masked(name, given)


def check_list(name: str, argument: str, of: str, given: Any) -> None:
    """TypeError for what has no length, such as a number."""
    if not hasattr(given, "__len__"):
        raise TypeError(
            f"{name}: {argument}: expected a list of {of}, one for each shard, "
            f"got {type(given).__name__}"
        )


def check_matrix(name: str, parts: Pieces, devices: Sequence[str], shards: int) -> np.dtype:
    """The element type of parts[k][q], which local shard k sends to shard q."""
    check_list(name, "parts", "lists of arrays", parts)
    for row in parts:
        check_list(name, "parts", "lists of arrays", row)
    if len(parts) != len(devices) or any(len(row) != shards for row in parts):
        raise ValueError(
            f"{name}: parts: expected {shards} arrays for each of {len(devices)} local shards, "
            f"got {[len(row) for row in parts]}"
        )
    flat = [part for row in parts for part in row]
    return check_parts(name, flat, [device for device in devices for _ in range(shards)])


def check_sizes(name: str, sizes: Sequence[int], shards: int) -> list[int]:
    """`sizes` as a list of integers, one a shard."""
    check_list(name, "sizes", "integers", sizes)
    try:
        found = [operator.index(size) for size in sizes]
    except TypeError as error:
        raise TypeError(f"{name}: sizes: expected integers, got {sizes!r}") from error
    if len(found) != shards or min(found) < 0:
        raise ValueError(f"{name}: sizes: expected {shards} sizes, one a shard, got {found}")
    return found


def check_known_sizes(
    name: str, parts: Sequence[Array], sizes: Sequence[int], shards: int, local: range
) -> list[int]:
    """`sizes` as integers, one a shard, which are those of the local parts."""
    found = check_sizes(name, sizes, shards)
    for shard, part in zip(local, parts, strict=True):
        if part.size != found[shard]:
            raise ValueError(
                f"{name}: sizes[{shard}] is {found[shard]}, but the part has {part.size} elements"
            )
    return found


def check_sources(
    name: str,
    parts: Pieces,
    sizes: Table,
    shards: int,
    local: range,
) -> list[list[int]]:
    """`sizes` as integers, checked: sizes[k][p] come to local shard k from shard p."""
    check_list(name, "sizes", "lists of integers", sizes)
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


def check_root(name: str, array: Array | None, root: int, shards: int, local: range) -> int:
    """`root` as an int, checked: it is a shard, and only its process gives the array."""
    if not is_integer(root):
        raise TypeError(f"{name}: root: expected the number of a shard, got {root!r}")
    if not 0 <= root < shards:
        raise ValueError(f"{name}: root: expected a shard of 0..{shards - 1}, got {root}")
    if (array is not None) != (int(root) in local):
        raise ValueError(
            f"{name}: the process that drives shard {root} gives the array, the others give None"
        )
    return int(root)


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
    check_array(name, values)
    if values.ndim != 1 or values.dtype not in (np.dtype(np.int64), np.dtype(np.float64)):
        raise TypeError(
            f"{name}: values: expected a 1-D NumPy array of int64 or float64, got "
            f"{values.ndim}-D {values.dtype}"
        )
    check_op(name, op, values.dtype)
    return values


def starts_of(sizes: Sequence[int]) -> list[int]:
    """The offsets of consecutive slices of these sizes, with the end of the last."""
    return list(itertools.accumulate(sizes, initial=0))
