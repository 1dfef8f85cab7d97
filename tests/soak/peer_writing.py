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
    # a minus zero is true there
    holds = holder(case.mask.cast(np.bool_) if case.mask.dtype.kind == "f" else case.mask)
    mask = holds.S if case.structure else holds.V
    return ~mask if case.complement else mask


def write(case: Case, t: Entries) -> Entries | Refusal:
    """The masked write of t, accumulated into `out`."""
    out = case.out
    if out is None:
        mask = _mask(case)
        return t if mask is None else entries_of(holder(t).dup(mask=mask))
    kinds = [t.dtype]
    if case.accum is not None:
        kinds.append(rules.binary_types(case.accum, out.dtype, t.dtype)[2])
    if not all(rules.may_be_written(kind, out.dtype) for kind in kinds):
        return Refusal(f"{kinds} into {out.dtype}")
    if case.accum is None:
        z = _fitted(case, t)
    else:  # SuiteSparse 9.4.5 crashes in some of its own accumulations
        both = _fitted(case, combined(out, t, case.accum))
        alone = _fitted(case, t.taken(~np.isin(t.keys, out.keys)))
        if isinstance(both, Refusal) or isinstance(alone, Refusal):
            return both if isinstance(both, Refusal) else alone
        z = union(both, alone, out)
    return z if isinstance(z, Refusal) else _masked(case, out, z)


def _fitted(case: Case, t: Entries) -> Entries | Refusal:
    """t in the type of `out`; what the mask does not allow does not have to fit."""
    assert case.out is not None
    mask = _mask(case)
    written = t
    if mask is not None:
        written = t.taken(np.isin(t.keys, entries_of(holder(t).dup(mask=mask)).keys))
    fits = rules.written(written, case.out.dtype)
    return fits if isinstance(fits, Refusal) else t.cast(case.out.dtype)


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
    value = _value(case)
    if isinstance(value, Refusal):
        return value
    if not rules.may_be_written(value.dtype, out.dtype):
        return Refusal(f"{value.dtype} into {out.dtype}")
    if not case.options["repeated"]:
        nothing = Entries(out.shape, np.zeros(0, np.int64), np.zeros(0, value.dtype))
        t = _in_rounds(case, nothing, value, None)
        if case.accum is not None:
            return write(case, t)
        fits = _fitted(case, t)
        if isinstance(fits, Refusal):
            return fits
        made = _in_rounds(case, out, value.cast(out.dtype), None)
        return _masked(case, out, made)
    assert case.accum is not None
    if not rules.may_be_written(
        rules.binary_types(case.accum, out.dtype, value.dtype)[2], out.dtype
    ):
        return Refusal(f"{case.accum} of {value.dtype} into {out.dtype}")
    kind = np.promote_types(out.dtype, value.dtype)
    folded = _fitted(case, _in_rounds(case, out.cast(kind), value.cast(kind), case.accum))
    return folded if isinstance(folded, Refusal) else _masked(case, out, folded)


def _value(case: Case) -> Entries | Refusal:
    """What is assigned; a scalar as entries without a shape."""
    if "value" not in case.options:
        return case.operands[0]
    assert case.out is not None
    value, kind = case.options["value"], case.out.dtype
    if case.accum is None or not isinstance(value, np.generic):
        value = rules.scalar_written(value, kind)
    if isinstance(value, Refusal):
        return value
    return Entries((), np.zeros(1, np.int64), np.asarray([value]))


def _in_rounds(case: Case, w: Entries, value: Entries, accum: str | None) -> Entries:
    """w(region) = or accum= value; indices that are given again take part in a later round."""
    z, op = holder(w).dup(), None if accum is None else operator(accum, w.dtype)
    parts = [case.options["indices"], case.options.get("columns")][: len(w.shape)]
    ids = [listed(part, size) for part, size in zip(parts, w.shape, strict=True)]
    ranks = [ranks_of(part) for part in ids]
    lone = [isinstance(part, int) for part in parts]
    scalar = not value.shape
    if not scalar and len(parts) == 2 and any(lone):  # a row or a column
        zeros = np.zeros(value.keys.size, np.int64)
        shape = (1, value.shape[0]) if lone[0] else (value.shape[0], 1)
        at = (zeros, value.keys) if lone[0] else (value.keys, zeros)
        value = from_coo(shape, at, value.values)
    for rounds in np.ndindex(*(int(rank.max(initial=0)) + 1 for rank in ranks)):
        chosen = [np.flatnonzero(rank == k) for rank, k in zip(ranks, rounds, strict=True)]
        to = [part[at] for part, at in zip(ids, chosen, strict=True)]
        if not all(part.size for part in to):
            continue
        given = value.values[0] if scalar else holder(value)
        if not scalar and any(rank.any() for rank in ranks):
            given = given[tuple(chosen) if len(to) == 2 else chosen[0]].new()
        if scalar:
            given = gb.Scalar.from_value(given, dtype=w.dtype.name)
        z(accum=op)[tuple(to) if len(to) == 2 else to[0]] << given
    return entries_of(z)
