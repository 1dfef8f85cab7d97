"""Cases of operations: what is called with which operands and options, drawn from a pool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from soak import rules
from soak.entries import Entries, draw_form
from soak.pools import MONOIDS, PLACES, Pool

Rng = np.random.Generator


@dataclass
class Case:
    """One call. `operands` and `forms` go together; `op` is a name, or (monoid, operator)."""

    what: str
    op: Any = None
    operands: list[Entries] = field(default_factory=list)
    forms: list[tuple[str, ...]] = field(default_factory=list)
    shape: tuple[int, ...] = ()
    result: np.dtype = rules.BOOL  # the type of what is written, or returned without `out`
    options: dict[str, Any] = field(default_factory=dict)
    mask: Entries | None = None
    mask_form: tuple[str, ...] = ()
    structure: bool = True
    complement: bool = False
    accum: str | None = None
    replace: bool = False
    out: Entries | None = None
    out_form: tuple[str, ...] = ()
    threads: int = 1
    rules: set[str] = field(default_factory=set)
    sign: str | None = None  # Python's operator for it
    alias: int | None = None  # the operand that is `out`, too
    own_mask: bool = False  # the mask is that of `out`

    @property
    def close(self) -> bool:
        """Whether results may differ in the last bits: sums, whose order is free."""
        names = self.op if isinstance(self.op, tuple) else (self.op,)
        return self.what in SUMMED and bool({"plus", "times"} & set(names))

    def text(self) -> str:
        """The case in words and numbers."""
        lines = [f"{self.what} {self.op} {self.options}  threads {self.threads}"]
        for name, entries, form in self._containers():
            if entries is not None:
                ids = [part.tolist() for part in entries.at()]
                lines.append(f"{name}: {entries.dtype} {entries.shape} {form}")
                lines.append(f"  {ids} {entries.values.tolist()}")
        kind = ("~" if self.complement else "") + ("S" if self.structure else "V")
        lines.append(f"mask kind {kind}, accum {self.accum}, replace {self.replace}")
        lines.append(f"sign {self.sign}, operand that is out {self.alias}, mask {self.own_mask}")
        return "\n".join([*lines, f"type by the rules: {self.result}"])

    def _containers(self) -> list[tuple[str, Any, Any]]:
        named = [(f"operand {k}", *pair) for k, pair in enumerate(self._pairs())]
        return [*named, ("mask", self.mask, self.mask_form), ("out", self.out, self.out_form)]

    def _pairs(self) -> Any:
        return zip(self.operands, self.forms, strict=True)


# Python's signs: a union of containers, an intersection, beside a scalar
UNION = {"plus": "+", "lor": "|"}
BOTH = {"times": "*", "truediv": "/", "land": "&"}
BOTH |= {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
ANY = {"plus": "+", "minus": "-", **{op: sign for op, sign in BOTH.items() if op != "land"}}

SUMMED = ("mxv", "vxm", "mxm", "reduce", "reduce_rowwise", "reduce_columnwise", "build")


def draw(pool: Pool, number: int) -> Case:
    """Case `number` of a pool."""
    rng = np.random.default_rng([2027, pool.number, number])
    names = list(DRAWN)
    case = Case(names[int(rng.integers(len(names)))], threads=pool.threads)
    DRAWN[case.what](case, pool, rng)
    signs = {"ewise_add": UNION, "ewise_mult": BOTH, "apply left": ANY, "apply right": ANY}
    sign = signs.get(case.what, {}).get(str(case.op))
    if sign is not None and rng.random() < 0.3:
        case.sign = sign
    elif case.what not in ("reduce", "build"):
        _draw_writing(case, pool, rng)
    if case.what == "assign" and case.accum and _lossy(case):
        case.accum = None
    return case


def _add(case: Case, pool: Pool, rng: Rng, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """One more operand."""
    manner = pool.manner
    if case.what in SUMMED or case.what == "assign":  # wild values have no exact sums
        manner = "special" if manner == "wild" else manner
    case.operands.append(pool.operand(shape, dtype, manner, int(rng.integers(6))))
    case.forms.append(draw_form(rng, shape, pool.index))


def _size(pool: Pool, rng: Rng) -> int:
    return pool.sizes[int(rng.integers(len(pool.sizes)))]


def _shape(pool: Pool, rng: Rng, dimensions: int | None = None) -> tuple[int, ...]:
    dimensions = dimensions or int(rng.integers(1, 3))
    return tuple(_size(pool, rng) for _ in range(dimensions))


def _pick(rng: Rng, items: Any) -> Any:
    return items[int(rng.integers(len(items)))]


# --- operations -------------------------------------------------------------------------------


def _product(case: Case, pool: Pool, rng: Rng) -> None:
    n, m, p = (_size(pool, rng) for _ in range(3))
    case.op = _pick(rng, pool.semirings)
    x, y = pool.x, pool.y
    if case.what == "mxm":
        _add(case, pool, rng, (n, m), x)
        _add(case, pool, rng, (m, p), y)
        case.shape = (n, p)
    else:
        matrix, vector = ((n, m), (m,)) if case.what == "mxv" else ((m, n), (m,))
        first, second = (matrix, vector) if case.what == "mxv" else (vector, matrix)
        _add(case, pool, rng, first, x)
        _add(case, pool, rng, second, y)
        case.shape = (n,)
        case.options["direction"] = str(rng.choice(["push", "pull", "auto"]))
    add, multiply = case.op
    if multiply in PLACES:
        case.result = rules.INT64
        return
    case.result = rules.semiring_types(add, multiply, x, y)[2]


def _ewise(case: Case, pool: Pool, rng: Rng) -> None:
    case.shape = _shape(pool, rng)
    case.op = _pick(rng, pool.binary)
    x, y = pool.x, pool.y
    _add(case, pool, rng, case.shape, x)
    _add(case, pool, rng, case.shape, y)
    if case.what == "ewise_union":
        left, right = (_scalar(rng, kind) for kind in (x, y))
        case.options |= {"left": left, "right": right}
        x, y = (
            np.promote_types(kind, made.dtype) if isinstance(made, np.generic) else kind
            for kind, made in ((k, rules.scalar_beside(s, k)) for k, s in ((x, left), (y, right)))
        )
    case.result = rules.binary_types(case.op, x, y)[2]


def _apply(case: Case, pool: Pool, rng: Rng) -> None:
    case.shape = _shape(pool, rng)
    _add(case, pool, rng, case.shape, pool.x)
    if case.what == "apply unary":
        case.op = _pick(rng, pool.unary)
        case.result = rules.unary_types(case.op, pool.x)[1]
    elif case.what == "apply index":
        case.op = pool.index_unary
        case.op = "rowindex" if len(case.shape) == 1 else case.op
        case.options["right"] = int(rng.integers(-3, 4))
        case.result = rules.INT64
    else:
        case.op = _pick(rng, pool.binary)
        side = case.what.split()[1]
        value = _scalar(rng, pool.x)
        case.options[side] = value
        kind = value.dtype if isinstance(value, np.generic) else np.result_type(pool.x, value)
        x, y = (kind, pool.x) if side == "left" else (pool.x, kind)
        case.result = rules.binary_types(case.op, x, y)[2]


def _scalar(rng: Rng, dtype: np.dtype) -> Any:
    """A number of Python's or NumPy's for an operator beside values of a type."""
    turn = rng.random()
    if turn < 0.25:
        return dtype.type(_pick(rng, [0, 1, 2, 3]))
    if turn < 0.35:
        return _pick(rng, [np.int64(2), np.float64(1.5), np.int8(-1), np.bool_(True)])
    return _pick(rng, [0, 1, 2, 3, True, 0.5, -1, 300, 2**40, 1.5, float("inf")])


def _select(case: Case, pool: Pool, rng: Rng) -> None:
    case.shape = _shape(pool, rng)
    case.op = _pick(rng, pool.select)
    if len(case.shape) == 1 and not case.op.startswith("value"):
        case.op = _pick(rng, ["rowle", "rowgt"])
    _add(case, pool, rng, case.shape, pool.x)
    case.result = pool.x
    case.options["thunk"] = int(rng.integers(-3, 6))
    if case.op.startswith("value"):
        case.options["thunk"] = _pick(rng, [0, 1, 2, -1, 300, 0.5, 2**40, 2**63 - 1, 2.0**63])


def _reduce(case: Case, pool: Pool, rng: Rng) -> None:
    case.op = _pick(rng, pool.monoids)
    case.result = rules.reduced_type(case.op, pool.x)
    shape = _shape(pool, rng, None if case.what == "reduce" else 2)
    _add(case, pool, rng, shape, pool.x)
    case.shape = {"reduce_rowwise": shape[:1], "reduce_columnwise": shape[1:]}.get(case.what, (1,))


def _indices(rng: Rng, size: int, *, repeats: bool) -> Any:
    """None, a slice, or an array of ids."""
    turn = rng.random()
    if turn < 0.2 or size == 0:
        return None
    if turn < 0.4:
        start, stop = (int(k) for k in rng.integers(0, size + 1, 2))
        return slice(start, stop, int(rng.choice([1, 2, 3, -1, -2])))
    if repeats and rng.random() < 0.5:
        return rng.integers(0, size, int(rng.integers(0, size + 3)))
    return rng.permutation(size)[: int(rng.integers(0, size + 1))]


def listed(indices: Any, size: int) -> np.ndarray:
    """What `_indices` gives, as an array of ids."""
    if indices is None:
        return np.arange(size)
    if isinstance(indices, slice):
        return np.arange(size)[indices]
    return np.atleast_1d(np.asarray(indices, np.int64))


def _extract(case: Case, pool: Pool, rng: Rng) -> None:
    shape = _shape(pool, rng)
    _add(case, pool, rng, shape, pool.x)
    case.result = pool.x
    parts = [_indices(rng, size, repeats=True) for size in shape]
    case.shape = tuple(listed(part, size).size for part, size in zip(parts, shape, strict=True))
    if len(shape) == 2 and min(shape) and rng.random() < 0.4:
        axis = int(rng.integers(2))
        parts[axis] = int(rng.integers(shape[axis]))
        case.shape = (case.shape[1 - axis],)
    case.options["indices"] = parts[0]
    if len(shape) == 2:
        case.options["columns"] = parts[1]


def _assign(case: Case, pool: Pool, rng: Rng) -> None:
    case.shape = shape = _shape(pool, rng)
    repeats = rng.random() < 0.3
    parts = [_indices(rng, size, repeats=repeats) for size in shape]
    region = tuple(listed(part, size).size for part, size in zip(parts, shape, strict=True))
    if len(shape) == 2 and min(shape) and rng.random() < 0.3:
        axis = int(rng.integers(2))
        parts[axis] = int(rng.integers(shape[axis]))
        region = (region[1 - axis],)
    case.options["indices"] = parts[0]
    if len(shape) == 2:
        case.options["columns"] = parts[1]
    case.out = pool.operand(shape, pool.x, "small", int(rng.integers(6)))
    if rng.random() < 0.4:
        value = _pick(rng, [0, 1, 2, True, 0.5, -1, 300, pool.x.type(3), np.int16(7)])
        case.options["value"] = value
        case.result = value.dtype if isinstance(value, np.generic) else pool.x
    else:
        kind = pool.x if rng.random() < 0.6 else pool.y
        _add(case, pool, rng, region, kind)
        case.result = kind
    if len(shape) == 2 and region == (0,):
        case.rules.add("empty line")
    case.options["repeated"] = any(
        np.unique(listed(part, size)).size != listed(part, size).size
        for part, size in zip(parts, shape, strict=True)
    )


def _transpose(case: Case, pool: Pool, rng: Rng) -> None:
    shape = _shape(pool, rng, 2)
    _add(case, pool, rng, shape, pool.x)
    case.shape, case.result = shape[::-1], pool.x


def _kronecker(case: Case, pool: Pool, rng: Rng) -> None:
    a, b = ((int(rng.integers(0, 5)), int(rng.integers(1, 5))) for _ in range(2))
    case.op = _pick(rng, pool.binary)
    _add(case, pool, rng, a, pool.x)
    _add(case, pool, rng, b, pool.y)
    case.shape = (a[0] * b[0], a[1] * b[1])
    case.result = rules.binary_types(case.op, pool.x, pool.y)[2]


def _diag(case: Case, pool: Pool, rng: Rng) -> None:
    shape = _shape(pool, rng)
    _add(case, pool, rng, shape, pool.x)
    case.options["k"] = k = int(rng.integers(-4, 5))
    case.result = pool.x
    if len(shape) == 1:
        case.shape = (shape[0] + abs(k),) * 2
    else:
        case.shape = (max(0, min(shape[0] - max(-k, 0), shape[1] - max(k, 0))),)


def _build(case: Case, pool: Pool, rng: Rng) -> None:
    case.shape = _shape(pool, rng)
    case.op = _pick(rng, [*MONOIDS[:1], *MONOIDS[2:], "first", "second", None])
    case.result = pool.x
    count = int(rng.integers(0, 12)) if min(case.shape) else 0
    at = tuple(rng.integers(0, max(size, 1), count) for size in case.shape)
    if pool.x.kind == "b":
        values = rng.random(count) < 0.5
    else:
        values = rng.integers(0, 6, count).astype(pool.x)
    case.options |= {"at": at, "values": values}


DRAWN: dict[str, Callable[[Case, Pool, Rng], None]] = {
    **dict.fromkeys(("mxv", "vxm", "mxm"), _product),
    **dict.fromkeys(("ewise_add", "ewise_mult", "ewise_union"), _ewise),
    **dict.fromkeys(("apply unary", "apply left", "apply right", "apply index"), _apply),
    "select": _select,
    **dict.fromkeys(("reduce", "reduce_rowwise", "reduce_columnwise"), _reduce),
    "extract": _extract,
    "assign": _assign,
    "transpose": _transpose,
    "kronecker": _kronecker,
    "diag": _diag,
    "build": _build,
}


# --- the write --------------------------------------------------------------------------------


def _draw_writing(case: Case, pool: Pool, rng: Rng) -> None:
    """Mask, out, accumulation and replace."""
    turn = int(rng.integers(6))
    if turn:
        kind = rules.BOOL if rng.random() < 0.7 else np.dtype("int64")
        case.mask = pool.operand(case.shape, kind, "small", int(rng.integers(6)))
        case.mask_form = draw_form(rng, case.shape, pool.index)
        case.structure, case.complement = turn in (1, 2, 5), turn in (2, 4)
    if case.what != "assign" and rng.random() < 0.6:
        kind = pool.z if rng.random() < 0.3 else case.result
        case.out = pool.operand(case.shape, kind, "small", int(rng.integers(6)))
    if case.out is None:
        return
    _draw_aliases(case, rng)
    case.out_form = draw_form(rng, case.shape, pool.index)
    if case.out_form[0] == "view":  # which is only read
        case.out_form = ("plain", *case.out_form[1:])
    case.accum = pool.accum if rng.random() < 0.4 else None
    if case.options.get("repeated"):
        case.accum = pool.accum
    case.replace = bool(rng.random() < 0.4)


def _draw_aliases(case: Case, rng: Rng) -> None:
    """`out` that is an operand, or whose own mask it is written under."""
    assert case.out is not None
    fits = [k for k, e in enumerate(case.operands) if e.shape == case.shape]
    if fits and rng.random() < 0.15:
        case.alias = _pick(rng, fits)
        if case.what == "assign":
            case.operands[case.alias] = case.out
            case.result = case.out.dtype
        case.out = case.operands[case.alias]
    if case.mask is not None and rng.random() < 0.1:
        case.mask, case.own_mask = case.out, True


def _lossy(case: Case) -> bool:
    """Whether `out` or the value changes in the type that they have in common."""
    assert case.out is not None
    common = np.promote_types(case.out.dtype, case.result)
    pairs = [(e, e.cast(common).cast(e.dtype)) for e in (case.out, *case.operands)]
    return not all(
        np.array_equal(e.values, back.values, equal_nan=e.dtype.kind == "f") for e, back in pairs
    )
