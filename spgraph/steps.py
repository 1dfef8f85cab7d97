"""The steps that all operations share: the backend of a device, push or pull, and the last step."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from spgraph import checks
from spgraph import direction as directions
from spgraph.containers import Mask, Matrix, Vector
from spgraph.containers.casting import in_range, storing
from spgraph.semirings import Function, TypedSemiring


def is_distributed(container: Vector | Matrix) -> bool:
    """Whether its entries are spread over several shards, so that it has no arrays to look at."""
    return not isinstance(container.device, str)


def backend(device: Any) -> ModuleType:
    """The module that computes on `device`: a name, or the Placement of distributed containers."""
    if not isinstance(device, str):
        from spgraph import distributed

        return distributed
    if device == "cpu":
        from spgraph.backends import cpu

        return cpu
    from spgraph.backends import cuda

    return cuda


def push_or_pull(
    name: str,
    direction: str,
    A: Matrix,
    u: Vector,
    rows: int,
    typed: TypedSemiring,
    mask: Mask | None,
    over_transpose: str,
) -> str:
    """'push' or 'pull'; `over_transpose` is the one that needs the transpose of A."""
    checks.direction(name, direction)
    if direction != "auto":
        return direction
    if A._transient and not A.has_transpose:
        return "pull" if over_transpose == "push" else "push"
    allowed = rows
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
    """Accumulate the Vector or Matrix t, what operation `name` computed, into `out` and write under
    the mask.

    `masked` says that t holds nothing outside of the mask already.
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
    name: str, out: Any, t: Any, mask: Mask | None, accum: Function | None, replace: bool
) -> None:
    """out<mask, replace> = out accum t (t where there is no accum).

    OverflowError, and nothing is written, where an integer does not fit in a narrower type of out.
    """
    kind = out.dtype
    if t.dtype is not kind or (accum is not None and accum.result is not kind):
        _check_range(name, out, t, mask, accum)
    on = backend(t.device)
    (on.write if isinstance(t, Vector) else on.write_matrix)(out, t, mask, accum, replace)


def fitted(name: str, t: Any, dtype: np.dtype, mask: Mask | None = None) -> Any:
    """t with values of type `dtype`. What the mask does not allow is not checked, and may become
    anything.
    """
    if t.dtype == dtype:
        return t
    check_stored(name, t, dtype, mask)
    return t.astype(dtype)


def check_stored(name: str, t: Any, dtype: np.dtype, mask: Mask | None = None) -> None:
    """DomainMismatch or OverflowError unless a container of `dtype` takes the entries of t that the
    mask allows.
    """
    checks.storable(name, t.dtype, dtype)
    if storing(t.dtype, dtype) == "in range":
        _require(name, t, dtype, mask)


def _check_range(name: str, out: Any, t: Any, mask: Mask | None, accum: Function | None) -> None:
    """OverflowError where an integer that `write` is to write is out of range of out's type."""
    if accum is not None and storing(accum.result, out.dtype) == "in range":
        on = backend(t.device)
        ewise = on.ewise if isinstance(t, Vector) else on.ewise_matrix
        _require(name, ewise(out, t, accum, False), out.dtype, mask)
    if storing(t.dtype, out.dtype) == "in range":
        # with an accumulator, only what meets no entry is written as it is
        _require(name, t, out.dtype, mask, None if accum is None else ~out.S)


def _require(name: str, t: Any, dtype: np.dtype, *masks: Mask | None) -> None:
    """OverflowError unless the entries of t that all the masks allow are in range of `dtype`."""
    if all_in_range(t, dtype):  # most are, and then no mask is looked at
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
    """Whether all entries, integers, are in range of an integer type. Of shards it is a question to
    every process, so that all of them decide alike.
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
