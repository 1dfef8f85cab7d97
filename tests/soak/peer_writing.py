"""The masked write and assign, by python-graphblas; what both halves of that side share."""

from __future__ import annotations

from typing import Any

import graphblas as gb
import numpy as np

from soak import rules
from soak.entries import Entries, Refusal, from_coo
from soak.operations import Case, listed

NAMES = {"div": "cdiv"}


def holder(entries: Entries) -> Any:
    """A Vector or Matrix of python-graphblas; kept with the entries, not to be changed."""
    if "graphblas" not in entries.kept:
        make = gb.Vector if len(entries.shape) == 1 else gb.Matrix
        names = ("size",) if make is gb.Vector else ("nrows", "ncols")
        size = dict(zip(names, entries.shape, strict=True))
        at = entries.at()
        entries.kept["graphblas"] = make.from_coo(*at, entries.values, dtype=entries.dtype, **size)
    return entries.kept["graphblas"]


def entries_of(made: Any) -> Entries:
    """The entries of a container of python-graphblas."""
    *at, values = made.to_coo()
    return from_coo(made.shape, tuple(part.astype(np.int64) for part in at), values)


def operator(name: str, dtype: np.dtype) -> Any:
    return getattr(gb.binary, NAMES.get(name, name))[dtype.name]


def union(*parts: Entries) -> Entries:
    """The entries of all parts; where several have one, the first's."""
    keys = np.concatenate([part.keys for part in parts])
    values = np.concatenate([part.values for part in parts])
    unique, where = np.unique(keys, return_index=True)
    return Entries(parts[0].shape, unique, values[where])


def ranks_of(keys: np.ndarray) -> np.ndarray:
    """How often each key came before."""
    seen: dict[int, int] = {}
    ranks = np.zeros(keys.size, np.int64)
    for place, key in enumerate(keys.tolist()):
        ranks[place] = seen.get(key, 0)
        seen[key] = ranks[place] + 1
    return ranks


def combined(x: Entries, y: Entries, op: str) -> Entries:
    """op(x, y) where both have entries, in the type by the rules."""
    x, y = x.taken(np.isin(x.keys, y.keys)), y.taken(np.isin(y.keys, x.keys))
    if op in ("first", "second"):
        return x if op == "first" else y
    kind, _, result = rules.binary_types(op, x.dtype, y.dtype)
    if not x.keys.size:
        return x.cast(result)
    u, v = holder(x.cast(kind)), holder(y.cast(kind))
    return entries_of(u.ewise_mult(v, operator(op, kind)).new()).cast(result)


def _mask(case: Case) -> Any:
    if case.mask is None:
        return None
    holds = holder(case.mask)
    mask = holds.S if case.structure else holds.V
    return ~mask if case.complement else mask


def write(case: Case, t: Entries) -> Entries | Refusal:
    """The masked write of t."""
    mask = _mask(case)
    if case.out is None:
        if mask is None:
            return t
        return entries_of(holder(t).dup(mask=mask))
    out = case.out
    z: Entries | Refusal = rules.written(t, out.dtype)
    if case.accum is not None:  # SuiteSparse 9.4.5 crashes in some of its own accumulations
        both = rules.written(combined(out, t, case.accum), out.dtype)
        if isinstance(both, Refusal) or isinstance(z, Refusal):
            return both if isinstance(both, Refusal) else z
        z = union(both, out, z)
    if isinstance(z, Refusal):
        return z
    return _masked(case, out, z)


def _masked(case: Case, out: Entries, z: Entries) -> Entries:
    """out<mask, replace> = z."""
    mask = _mask(case)
    into = holder(out).dup()
    into(mask=mask, replace=case.replace and mask is not None) << holder(z)
    return entries_of(into)


def assigned(case: Case) -> Entries | Refusal:
    """What assign leaves in `out`."""
    out = case.out
    assert out is not None
    if case.accum is None and case.options["repeated"]:
        return Refusal("an index twice")
    kind = out.dtype if case.accum is None else np.promote_types(out.dtype, case.result)
    value: Any
    if "value" in case.options:
        value = rules.scalar_written(case.options["value"], out.dtype)
        if isinstance(value, Refusal):
            return value
        value = gb.Scalar.from_value(value.astype(kind), dtype=kind.name)
    else:
        value = rules.written(case.operands[0], out.dtype)
        if isinstance(value, Refusal):
            return value
        value = holder(value.cast(kind))
    z = holder(out.cast(kind)).dup()
    _assign_in_rounds(case, z, value, kind)
    made = rules.written(entries_of(z), out.dtype)
    if kind != out.dtype and kind.kind == "f" and out.dtype.kind != "f":
        return Refusal(f"{kind} into {out.dtype}")
    if isinstance(made, Refusal):
        return made
    return _masked(case, out, made)


def _assign_in_rounds(case: Case, z: Any, value: Any, kind: np.dtype) -> None:
    """z(region) = or accum= value; indices that are given again take part in a later round."""
    accum = None if case.accum is None else operator(case.accum, kind)
    parts = [case.options["indices"], case.options.get("columns")][: len(z.shape)]
    ids = [listed(part, size) for part, size in zip(parts, z.shape, strict=True)]
    ranks = [ranks_of(part) for part in ids]
    lone = [isinstance(part, int) for part in parts]
    if not isinstance(value, gb.Scalar) and len(parts) == 2 and any(lone):  # a row or a column
        e = entries_of(value)
        zeros = np.zeros(e.keys.size, np.int64)
        shape = (1, e.shape[0]) if lone[0] else (e.shape[0], 1)
        value = holder(from_coo(shape, (zeros, e.keys) if lone[0] else (e.keys, zeros), e.values))
    for rounds in np.ndindex(*(int(rank.max(initial=0)) + 1 for rank in ranks)):
        chosen = [np.flatnonzero(rank == k) for rank, k in zip(ranks, rounds, strict=True)]
        to = [part[at] for part, at in zip(ids, chosen, strict=True)]
        if not all(part.size for part in to):
            continue
        given = value
        if not isinstance(value, gb.Scalar) and any(r.any() for r in ranks):
            given = value[tuple(chosen) if len(to) == 2 else chosen[0]].new()
        z(accum=accum)[tuple(to) if len(to) == 2 else to[0]] << given
