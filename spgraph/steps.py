"""The steps that all operations share: choosing backend and direction, and the masked write."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any, TypeAlias, TypeVar

import numpy as np

from spgraph import backends, checks
from spgraph import direction as directions
from spgraph.containers import Mask, Matrix, Vector
from spgraph.containers.annotations import Device
from spgraph.containers.storage.casting import in_range, storing
from spgraph.containers.storage.host_matrix import StreamedTo
from spgraph.process import lazy_imports
from spgraph.semirings import Function, TypedSemiring

Either: TypeAlias = Vector | Matrix
C = TypeVar("C", Vector, Matrix)


def is_distributed(container: Either) -> bool:
    """Whether its entries are divided among shards, so that it has no arrays of its own."""
    return not isinstance(container.device, str)


def is_streamed(A: Matrix) -> bool:
    """Whether its entries are in host memory, and its vectors on a GPU."""
    return type(A.device) is StreamedTo


def backend(device: Device) -> ModuleType:
    """The backend, a module, for `device`: a name, or the Placement of distributed containers. Of a
    Matrix in host memory that is the part of the GPU's backend that streams.
    """
    if type(device) is str:
        return backends.module_of(device)
    if type(device) is StreamedTo:
        return backends.module_of(f"{device.partition(':')[0]}.streamed")
    return _distributed()


@functools.cache
def _distributed() -> ModuleType:
    with lazy_imports.whole():
        from spgraph import distributed
    return distributed


def push_or_pull(
    name: str,
    direction: str,
    A: Matrix,
    u: Vector,
    typed: TypedSemiring,
    mask: Mask | None,
    over_transpose: str,
) -> str:
    """'push' or 'pull', as `direction` says or, for 'auto', by estimated cost. `over_transpose` is
    the direction that needs the transpose of A: "push" for A u, "pull" for u A.
    """
    checks.direction(name, direction)
    if direction != "auto":
        return direction
    if A._transient and not A.has_transpose:
        return "pull" if over_transpose == "push" else "push"
    allowed = rows = A.nrows if over_transpose == "push" else A.ncols
    if mask is not None:
        allowed = rows - mask.parent.nvals if mask.complement else mask.parent.nvals
    first_hit = typed.add.any or (typed.add.terminal is not None and typed.dtype == np.bool_)
    return directions.choose(u.nvals, u.size, A.nvals, rows, allowed, first_hit)


def finish(
    name: str,
    t: Any,
    mask: Mask | None,
    accum: Function | None,
    replace: bool,
    out: Any,
    *,
    masked: bool = False,
) -> Any:
    """The result of operation `name`: t, which it computed, accumulated into `out` and written
    under the mask; a new container if `out` is None. Vectors or Matrices.

    `masked`: t has no entries outside of the mask.
    """
    if out is None:
        if mask is None or masked:
            return t
        out, replace = type(t).empty(*t.shape, t.dtype, device=t.device), True
    elif masked and replace and accum is None:
        mask = None
    write(name, out, t, mask, accum, replace)
    return out


def write(
    name: str, out: Either, t: Either, mask: Mask | None, accum: Function | None, replace: bool
) -> None:
    """out<mask, replace> = out accum t, or t without an accum.

    OverflowError, and nothing is written, if an integer is out of range of out's type.
    """
    target = out.dtype
    if t.dtype is not target or (accum is not None and accum.result is not target):
        _check_range(name, out, t, mask, accum)
    on = backend(t.device)
    (on.write if isinstance(t, Vector) else on.write_matrix)(out, t, mask, accum, replace)


def fitted(name: str, t: C, dtype: np.dtype, mask: Mask | None = None) -> C:
    """t converted to type `dtype`, after a check as in `check_stored`. Entries that the mask does
    not allow are not checked, and their values become unspecified.
    """
    if t.dtype == dtype:
        return t
    check_stored(name, t, dtype, mask)
    return t.astype(dtype)


def check_stored(name: str, t: Either, dtype: np.dtype, mask: Mask | None = None) -> None:
    """Raise DomainMismatch or OverflowError if the entries of t that the mask allows cannot be
    written into a container of `dtype`.
    """
    checks.storable(name, t.dtype, dtype)
    if storing(t.dtype, dtype) == "in range":
        _require(name, t, dtype, mask)


def _check_range(
    name: str, out: Either, t: Either, mask: Mask | None, accum: Function | None
) -> None:
    """Raise OverflowError if `write` would write an integer out of range of out's type."""
    if accum is not None and storing(accum.result, out.dtype) == "in range":
        on = backend(t.device)
        ewise = on.ewise if isinstance(t, Vector) else on.ewise_matrix
        _require(name, ewise(out, t, accum, False), out.dtype, mask)
    if storing(t.dtype, out.dtype) == "in range":
        # with an accumulator, t is written unchanged only where `out` has no entry
        _require(name, t, out.dtype, mask, None if accum is None else ~out.S)


def _require(name: str, t: Either, dtype: np.dtype, *masks: Mask | None) -> None:
    """Raise OverflowError if an entry of t that all masks allow is out of range of `dtype`."""
    if all_in_range(t, dtype):  # the common case, without the cost of applying masks
        return
    for mask in masks:
        if mask is not None:
            t = under(t, mask)
    if not all_in_range(t, dtype):
        low, high = t._value_range()
        bounds = np.iinfo(dtype)
        raise OverflowError(
            f"{name}: expected values from {bounds.min} to {bounds.max}, to write them into "
            f"{dtype}, got {low} to {high}; write into a container of {t.dtype}, or convert "
            f"without a check, .astype({dtype.name!r})"
        )


def all_in_range(t: Any, dtype: np.dtype) -> bool:
    """Whether all entries, integers, are in range of the integer type `dtype`. For shards this is a
    collective operation, so that all processes get the same answer.
    """
    if not is_distributed(t):
        return in_range(t, dtype)
    inside = t.device.map(lambda k, shard: in_range(shard, dtype), t.shards)
    return t.device.total([not each for each in inside]) == 0


def under(t: Any, mask: Mask) -> Any:
    """The entries of t that the mask allows."""
    made = type(t).empty(*t.shape, t.dtype, device=t.device)
    on = backend(t.device)
    (on.write if isinstance(t, Vector) else on.write_matrix)(made, t, mask, None, True)
    return made
