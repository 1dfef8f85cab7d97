"""What python-graphblas (SuiteSparse) answers to a case.

Operands are cast beforehand to the types that the rules name, so that no rule of its own for types
takes part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphblas as gb
import numpy as np
from soak import rules
from soak.entries import Entries, Refusal, from_coo
from soak.operations import Case, listed
from soak.peer_writing import (
    assigned,
    combined,
    entries_of,
    holder,
    operator,
    ranks_of,
    union,
    write,
)
from soak.pools import BITS, PLACES

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
}


def answer(case: Case) -> Entries | Refusal:
    """The entries that the case has to give."""
    if case.what == "assign":
        return assigned(case)
    t = COMPUTED[case.what](case)
    if isinstance(t, Refusal) or case.what in ("reduce", "build"):
        return t
    return write(case, t)


# --- the operation ----------------------------------------------------------------------------


def _product(case: Case) -> Entries | Refusal:
    a, b = case.operands
    add, multiply = case.op
    if multiply in PLACES:
        semiring = getattr(gb.semiring, f"{add}_{multiply}")
        a, b = (e.with_values(np.ones(e.keys.size, np.int64)) for e in (a, b))
        return entries_of(getattr(holder(a), case.what)(holder(b), semiring).new())
    x, y, _ = rules.semiring_types(add, multiply, a.dtype, b.dtype)
    if multiply == "first" or multiply == "second":  # the other's values are not looked at
        a, b = (
            (a.cast(x), b.with_values(np.ones(b.keys.size, x)))
            if multiply == "first"
            else (a.with_values(np.ones(a.keys.size, y)), b.cast(y))
        )
        x = y = x if multiply == "first" else y
    if multiply == "pair":
        a, b = (e.with_values(np.ones(e.keys.size, x)) for e in (a, b))
    semiring = _semiring(add, multiply, x)
    made = getattr(holder(a.cast(x)), case.what)(holder(b.cast(y)), semiring).new()
    return _without_nan(entries_of(made).cast(case.result), add)


def _without_nan(sums: Entries, monoid: str) -> Entries:
    """min and max leave NaN out: of nothing but NaN they give the identity, there NaN."""
    if monoid not in ("min", "max") or sums.dtype.kind != "f":
        return sums
    nothing = rules.identity(monoid, sums.dtype)
    return sums.with_values(np.where(sums.values != sums.values, nothing, sums.values))


# over bool these are the same as operators of logic
LOGIC = {"plus": "lor", "times": "land", "min": "land", "max": "lor", "minus": "lxor"}
LOGIC |= {"rminus": "lxor"}


def _semiring(add: str, multiply: str, dtype: np.dtype) -> Any:
    if dtype.kind == "b":
        add, multiply = LOGIC.get(add, add), LOGIC.get(multiply, multiply)
    return getattr(gb.semiring, f"{add}_{multiply}")[dtype.name]


def _ewise(case: Case) -> Entries | Refusal:
    a, b = case.operands
    kinds = [a.dtype, b.dtype]
    fills: list[Any] = []
    if case.what == "ewise_union":
        fills = [
            rules.scalar_beside(case.options[side], kind)
            for side, kind in zip(("left", "right"), kinds, strict=True)
        ]
        refused = [fill for fill in fills if isinstance(fill, Refusal)]
        if refused:
            return refused[0]
        kinds = [
            np.promote_types(kind, fill.dtype) for kind, fill in zip(kinds, fills, strict=True)
        ]
    *computed, result = rules.binary_types(case.op, *kinds)
    if case.op in BITS and result.kind not in "iu":
        return Refusal(f"{case.op} of {result}")
    if case.op in ("first", "second"):
        return _first_or_second(case, kinds, fills)
    x = computed[0]
    op, u, v = operator(case.op, x), holder(a.cast(x)), holder(b.cast(x))
    if case.what == "ewise_mult":
        return entries_of(u.ewise_mult(v, op).new()).cast(result)
    if case.what == "ewise_union":
        left, right = (gb.Scalar.from_value(fill.astype(x), dtype=x.name) for fill in fills)
        return entries_of(u.ewise_union(v, op, left, right).new()).cast(result)
    both = entries_of(u.ewise_mult(v, op).new()).cast(result)
    return union(both, _cast_alone(a, result), _cast_alone(b, result))


def _cast_alone(entries: Entries, result: np.dtype) -> Entries:
    return entries.cast(result)


def _first_or_second(case: Case, kinds: list[np.dtype], fills: list[Any]) -> Entries | Refusal:
    """Operators that keep the values of one side as they are."""
    a, b = case.operands if case.op == "first" else case.operands[::-1]
    kind = kinds[0] if case.op == "first" else kinds[1]
    both = a.cast(kind).taken(np.isin(a.keys, b.keys))
    if case.what == "ewise_mult":
        return both
    if case.what == "ewise_add" and kind.kind != "b" and b.dtype != kind:
        if not rules.may_be_written(b.dtype, kind):  # what stands alone is stored as it is
            return Refusal(f"{b.dtype} into {kind}")
        stored = rules.written(b.taken(~np.isin(b.keys, a.keys)), kind)
        if isinstance(stored, Refusal):
            return stored
    other = b.cast(kind)
    if case.what == "ewise_union":
        fill = fills[0] if case.op == "first" else fills[1]
        other = b.with_values(np.full(b.keys.size, fill.astype(kind)))
    return union(both, a.cast(kind), other)


def _apply(case: Case) -> Entries | Refusal:
    (a,) = case.operands
    side = case.what.split()[1]
    if side == "unary":
        x, result = rules.unary_types(case.op, a.dtype)
        op = getattr(gb.unary, case.op)[x.name]
        return entries_of(holder(a.cast(x)).apply(op).new()).cast(result)
    value = case.options.get(side, case.options.get("right"))
    if side == "index":
        at = [part.astype(np.int64) for part in a.at()] + [np.zeros(a.keys.size, np.int64)]
        place = {"rowindex": at[0], "colindex": at[1], "diagindex": at[1] - at[0]}[case.op]
        return a.with_values(place + value)
    if case.op in rules.TESTS:
        compare, number = COMPARE[case.op.removeprefix("is")], value
        if isinstance(value, np.generic):
            number = value.item()
        pairs = [(number, x) if side == "left" else (x, number) for x in a.values.tolist()]
        return a.with_values(np.array([compare(x, y) for x, y in pairs], bool)).cast(case.result)
    made = rules.scalar_beside(value, a.dtype)
    if isinstance(made, Refusal):
        return made
    kinds = (made.dtype, a.dtype) if side == "left" else (a.dtype, made.dtype)
    x, _, result = rules.binary_types(case.op, *kinds)
    if case.op in BITS and result.kind not in "iu":
        return Refusal(f"{case.op} of {result}")
    if case.op in ("first", "second"):
        own = (case.op == "first") == (side == "right")
        return a if own else a.with_values(np.full(a.keys.size, made))
    full = np.full(a.keys.size, made)
    other = a.with_values(full)
    pair = (other, a) if side == "left" else (a, other)
    u, v = (holder(e.cast(x)) for e in pair)
    return entries_of(u.ewise_mult(v, operator(case.op, x)).new()).cast(result)


def _select(case: Case) -> Entries:
    (a,) = case.operands
    thunk = case.options["thunk"]
    if case.op.startswith("value"):
        compare = COMPARE[case.op.removeprefix("value")]
        kept = [compare(x, thunk) for x in a.values.tolist()]
        return a.taken(np.array(kept, bool))
    i, j = a.at() if len(a.shape) == 2 else (a.keys, 0)
    return a.taken(
        {
            "tril": j - i <= thunk,
            "triu": j - i >= thunk,
            "diag": j - i == thunk,
            "offdiag": j - i != thunk,
            "colle": j <= thunk,
            "colgt": j > thunk,
            "rowle": i <= thunk,
            "rowgt": i > thunk,
        }[case.op]
    )


def _reduce(case: Case) -> Entries:
    (a,) = case.operands
    a = a.cast(case.result)
    logic = case.result.kind == "b"
    monoid = getattr(gb.monoid, LOGIC.get(case.op, case.op) if logic else case.op)
    monoid = monoid[case.result.name]
    if case.what != "reduce":
        made = getattr(holder(a), case.what)(monoid).new()
        return _without_nan(entries_of(made), case.op)
    total = rules.identity(case.op, case.result)
    if a.keys.size:
        made = holder(a).reduce(monoid) if len(a.shape) == 1 else holder(a).reduce_scalar(monoid)
        total = made.new().value
    found = Entries((1,), np.zeros(1, np.int64), np.asarray([total], case.result))
    return _without_nan(found, case.op)


def _extract(case: Case) -> Entries:
    (a,) = case.operands
    return entries_of(holder(a)[_region(case, a.shape)].new())


def _region(case: Case, shape: tuple[int, ...]) -> Any:
    parts = [case.options["indices"], case.options.get("columns")][: len(shape)]
    made = [
        part if isinstance(part, int) else listed(part, size)
        for part, size in zip(parts, shape, strict=True)
    ]
    return made[0] if len(made) == 1 else tuple(made)


def _transpose(case: Case) -> Entries:
    return entries_of(holder(case.operands[0]).T.new())


def _kronecker(case: Case) -> Entries:
    a, b = case.operands
    if case.op in ("first", "second"):
        ones = (e.with_values(np.ones(e.keys.size, case.result)) for e in (a, b))
        a, b = (a, next(ones)) if case.op == "second" else (a, b)
        x = case.result
        pair = (a, b.with_values(np.ones(b.keys.size, x)))
        if case.op == "second":
            pair = (case.operands[0].with_values(np.ones(a.keys.size, x)), case.operands[1])
        made = holder(pair[0]).kronecker(holder(pair[1]), operator(case.op, x))
        return entries_of(made.new())
    x, _, result = rules.binary_types(case.op, a.dtype, b.dtype)
    op = operator(case.op, x)
    return entries_of(holder(a.cast(x)).kronecker(holder(b.cast(x)), op).new()).cast(result)


def _diag(case: Case) -> Entries:
    (a,) = case.operands
    return entries_of(holder(a).diag(case.options["k"]))


def _build(case: Case) -> Entries | Refusal:
    at, values = case.options["at"], case.options["values"]
    keys = at[0] if len(at) == 1 else at[0] * max(case.shape[1], 1) + at[1]
    if case.op is None:
        if np.unique(keys).size != keys.size:
            return Refusal("a position twice")
        return from_coo(case.shape, at, values)
    if case.op in ("plus", "times") and values.dtype.kind in "iu" and _wraps(case.op, keys, values):
        return Refusal(f"a {case.op} that {values.dtype} does not hold")
    rank = ranks_of(keys)
    found = Entries(case.shape, np.zeros(0, np.int64), np.zeros(0, values.dtype))
    for k in range(int(rank.max(initial=-1)) + 1):  # the k-th values of each position
        now = from_coo(case.shape, tuple(part[rank == k] for part in at), values[rank == k])
        both = combined(found, now, case.op)
        found = union(both, found, now)
    return found


def _wraps(op: str, keys: np.ndarray, values: np.ndarray) -> bool:
    """Whether the sum or product of the integers of a position is out of their type's range."""
    found: dict[int, int] = {}
    for key, value in zip(keys.tolist(), values.tolist(), strict=True):
        before = found.get(key, 0 if op == "plus" else 1)
        found[key] = before + value if op == "plus" else before * value
    limit = np.iinfo(values.dtype)
    return any(not limit.min <= each <= limit.max for each in found.values())


COMPUTED: dict[str, Callable[[Case], Entries | Refusal]] = {
    **dict.fromkeys(("mxv", "vxm", "mxm"), _product),
    **dict.fromkeys(("ewise_add", "ewise_mult", "ewise_union"), _ewise),
    **dict.fromkeys(("apply unary", "apply left", "apply right", "apply index"), _apply),
    "select": _select,
    **dict.fromkeys(("reduce", "reduce_rowwise", "reduce_columnwise"), _reduce),
    "extract": _extract,
    "transpose": _transpose,
    "kronecker": _kronecker,
    "diag": _diag,
    "build": _build,
}
