"""Operations on vectors, in O(entries) for sparse ones, else in O(size)."""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from spgraph.backends.cpu.entrywise.masks import NO_BITS, bits_of
from spgraph.backends.cpu.runtime import jit, memory, pool, preamble
from spgraph.containers import Vector
from spgraph.containers.annotations import Scalar
from spgraph.containers.storage.arrays import index_dtype, pack_bits, words
from spgraph.semirings import Function, TypedMonoid

NO_IDS = np.empty(0, np.int32)
NO_SCALAR = np.False_
# positions per partial sum of a reduction
WIDTH = 1 << 15

# how apply and select call operators of each kind, given a value, its row and column and a scalar;
# in vectors the column is 0
CALLS = {
    "unary": "op(value)",
    "left": "op(scalar, value, i, j, i, j)",
    "right": "op(value, scalar, i, j, i, j)",
    "index": "op(value, i, j, scalar)",
}
# functions that NumPy vectorises and Numba does not
UFUNCS = {
    f"math.{name}(x)": getattr(np, name)
    for name in "exp expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh".split()
}


def ewise(
    u: Vector,
    v: Vector,
    op: Function,
    union: bool,
    left: Scalar | None = None,
    right: Scalar | None = None,
) -> Vector:
    """op(u[i], v[i]) where both have an entry. `union`: also the entries of only one of them, cast
    to op.result, or op(u[i], right) and op(left, v[i]) if these are given.
    """
    text, scalars = ewise_preamble(op, left is not None), other_operands(op, left, right)
    size = u.size
    if not union and u._indices is not None and v._indices is None:
        v = _at(v, u._indices)
    elif not union and v._indices is not None and u._indices is None:
        u = _at(u, v._indices)
    if u._indices is not None and v._indices is not None:
        return merged(u, v, text, union, op.result, scalars)
    u, v = u.to_bitmap(), v.to_bitmap()
    full = (u._bits is None and v._bits is None) or (union and (u._bits is None or v._bits is None))
    z_bits = NO_BITS if full else memory.empty(words(size), np.uint32)
    z = memory.empty(size, op.result) if full else memory.zeros(size, op.result)
    given = (bits_of(u), u._values, bits_of(v), v._values, *scalars)
    kernel = jit.module("ewise", text + preamble.constants(UNION=union)).ewise
    pool.launch(kernel, pool.threads_for(size), *given, z_bits, z)
    return Vector._of(size, z) if full else Vector._of(size, z, bits=z_bits)._conform()


def merged(
    u: Vector,
    v: Vector,
    text: str,
    union: bool,
    dtype: np.dtype,
    scalars: tuple[np.generic, np.generic] = (NO_SCALAR, NO_SCALAR),
) -> Vector:
    """The union or intersection of two sparse vectors, under the preamble `text`."""
    longest = u.nvals + v.nvals if union else min(u.nvals, v.nvals)
    indices, z = np.empty(longest, index_dtype(u.size)), np.empty(longest, dtype)
    counts = np.zeros(1, np.int64)
    kernel = jit.module("ewise", text + preamble.constants(UNION=union)).ewise_sparse
    given = (u._indices, u._values, v._indices, v._values, *scalars)
    pool.launch(kernel, 1, *given, indices, z, counts)
    nvals = int(counts[0])
    return Vector._of(u.size, z[:nvals].copy(), indices=indices[:nvals].copy())._conform()


def apply(u: Vector, op: Function, kind: str, scalar: np.generic) -> Vector:
    """op of every entry, called as `CALLS[kind]` says."""
    z = (memory.empty if u._bits is None else memory.zeros)(u._values.size, op.result)
    ufunc = UFUNCS.get(op.python.value) if u._bits is None else None
    if ufunc is not None:
        pool.call_parts(_part_of_ufunc, pool.threads_for(z.size), ufunc, u._values, z)
    else:
        _apply_into(z, u, op, kind, scalar)
    if u._indices is not None:
        return Vector._of(u.size, z, indices=u._indices.copy())
    return (
        Vector._of(u.size, z)
        if u._bits is None
        else Vector._of(u.size, z, bits=u._bits.copy(), nvals=u.nvals)
    )


def _apply_into(z: np.ndarray, u: Vector, op: Function, kind: str, scalar: np.generic) -> None:
    """Write op of every entry to z, where u stores its value."""
    ids = NO_IDS if u._indices is None else u._indices
    kernel = function("apply", op, kind).apply
    pool.launch(kernel, pool.threads_for(z.size), ids, bits_of(u), u._values, scalar, z)


def select(u: Vector, op: Function, thunk: np.generic) -> Vector:
    """The entries for which op(x, i, 0, thunk) is true."""
    if u._indices is not None:
        kept = np.empty(u.nvals, bool)
        _apply_into(kept, u, op, "index", thunk)
        return flagged(u, kept)._conform()
    kernel = function("select", op, "index").select
    z_bits, z = memory.empty(words(u.size), np.uint32), memory.zeros(u.size, u.dtype)
    pool.launch(kernel, pool.threads_for(u.size), bits_of(u), u._values, thunk, z_bits, z)
    return Vector._of(u.size, z, bits=z_bits)._conform()


def reduce(u: Vector, monoid: TypedMonoid) -> np.generic:
    """The reduction of all entries, a NumPy scalar of monoid.dtype; of none, the identity."""
    if u.nvals == 0:
        return monoid.identity
    if monoid.any:
        v = u if u._bits is None else _first(u)
        return v._values[0].astype(monoid.dtype)
    text = preamble.monoid(monoid) + preamble.cast("cast", monoid.dtype)
    kernel = jit.module("reduce", text).reduce
    partial = np.empty(-(-u._values.size // WIDTH), monoid.dtype)
    pool.launch(kernel, pool.threads_for(u._values.size), bits_of(u), u._values, WIDTH, partial)
    while partial.size > 1:
        values, partial = partial, np.empty(-(-partial.size // WIDTH), monoid.dtype)
        pool.launch(kernel, 1, NO_BITS, values, WIDTH, partial)
    return partial[0]


def extract(u: Vector, indices: np.ndarray) -> Vector:
    """t[k] = u[indices[k]] where u has that entry."""
    if u._indices is None:
        z = u._values[indices]
        if u._bits is None:
            return Vector._of(indices.size, z)
        there = present(u._bits, indices)
        z[~there] = 0
        return Vector._of(indices.size, z, bits=pack_bits(there))._conform()
    if u.nvals == 0:
        return Vector.empty(indices.size, u.dtype)
    at = np.searchsorted(u._indices, indices.astype(u._indices.dtype, copy=False))
    at[at == u._indices.size] = 0
    found = np.flatnonzero(u._indices[at] == indices)
    return Vector._of(
        indices.size, u._values[at[found]], indices=found.astype(index_dtype(indices.size))
    )._conform()


def reduce_segments(
    values: np.ndarray,
    starts: np.ndarray,
    op: Function,
    dtype: np.dtype,
    first: tuple[np.ndarray, np.ndarray] | None = None,
) -> np.ndarray:
    """The left fold of each group of values by op, cast to `dtype` at each step; group g begins at
    starts[g].

    `first`, (flags, values): where its flag is set, a value is put before the group.
    """
    text = _segments_program(op, dtype)
    has_first, firsts = (np.empty(0, bool), np.empty(0, dtype)) if first is None else first
    z = np.empty(starts.size, dtype)
    pool.launch(
        jit.module("segments", text).fold,
        pool.threads_for(values.size),
        starts,
        values,
        has_first,
        firsts,
        z,
    )
    return z


@lru_cache(maxsize=1024)
def _segments_program(op: Function, dtype: np.dtype) -> str:
    return preamble.function(op) + preamble.cast("cast", dtype)


def scatter(w: Vector, ids: np.ndarray, values: np.ndarray, accum: Function) -> Vector:
    """A new bitmap or full Vector: w with values[k] accumulated at ids[k], in ascending k. Each
    step is accum(entry, value), or the value if there is no entry yet, cast to w's type.
    """
    v = w.dup() if w._indices is None else w.to_bitmap()
    text = accum.define_python("op") + "\n" + preamble.cast("cast", w.dtype)
    pool.launch(jit.module("scatter", text).scatter, 1, ids, values, bits_of(v), v._values)
    z = Vector._of(w.size, v._values, bits=v._bits)
    return Vector._of(w.size, v._values) if z.nvals == z.size else z


def other_operands(
    op: Function, left: Scalar | None, right: Scalar | None
) -> tuple[np.generic, np.generic]:
    """left and right, the operands for missing entries in a union, in the operator's types."""
    if left is None:
        return NO_SCALAR, NO_SCALAR
    given = zip((left, right), op.arguments[:2], strict=True)
    made: list[Any] = [np.asarray(scalar).astype(dtype)[()] for scalar, dtype in given]
    return made[0], made[1]


@lru_cache(maxsize=1024)
def ewise_preamble(op: Function, scalars: bool) -> str:
    """`both`, `only_a`, `only_b`: of one alone, the value cast or, with `scalars`, op with one."""
    alone = ("op(x, y, i, j, i, j)", "op(y, x, i, j, i, j)") if scalars else ("cast(x)", "cast(x)")
    return preamble.function(op) + _calls("op(x, y, i, j, i, j)", *alone)


@lru_cache(maxsize=1024)
def accum_preamble(dtype: np.dtype, accum: Function | None) -> str:
    """The union in which an accumulated result is written, in the type of the output."""
    define = preamble.cast("cast", dtype)
    if accum is None:
        return define + _calls("cast(y)", "x", "cast(x)")
    return accum.define_python("op") + define + _calls("cast(op(x, y, i, j, i, j))", "x", "cast(x)")


def _calls(both: str, only_a: str, only_b: str) -> str:
    calls = {"both": both, "only_a": only_a, "only_b": only_b}
    return "".join(
        f"@njit(error_model='numpy')\ndef {name}(x, y, i, j):\n    return {call}\n"
        for name, call in calls.items()
    )


@lru_cache(maxsize=1024)
def function(stem: str, op: Function, kind: str) -> ModuleType:
    """The kernels of kernels/`stem`.py around op, called as CALLS says."""
    call = f"@njit(error_model='numpy')\ndef f(value, i, j, scalar):\n    return {CALLS[kind]}\n"
    return jit.module(stem, op.define_python("op") + "\n" + call)


def _part_of_ufunc(part: int, parts: int, ufunc: np.ufunc, u: np.ndarray, z: np.ndarray) -> None:
    share = slice(u.size * part // parts, u.size * (part + 1) // parts)
    with np.errstate(all="ignore"):  # no warnings of inf and NaN, as in kernels
        ufunc(u[share], out=z[share], dtype=z.dtype, casting="unsafe")


def present(bits: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Whether the bit of each index is set."""
    return (bits[indices >> 5] >> (indices & 31).astype(np.uint32)) & np.uint32(1) != 0


def _at(v: Vector, indices: np.ndarray) -> Vector:
    """The entries of a bitmap or full vector at `indices`, sparse."""
    kept = indices if v._bits is None else indices[present(v._bits, indices)]
    return Vector._of(v.size, v._values[kept], indices=kept)


def _first(v: Vector) -> Vector:
    """The first word of a bitmap that has an entry, as a sparse vector."""
    assert v._bits is not None
    word = int(np.flatnonzero(v._bits)[0])
    part = slice(32 * word, 32 * word + 32)
    values = v._values[part]
    return Vector._of(values.size, values, bits=v._bits[word : word + 1]).to_sparse()


def flagged(v: Vector, flags: np.ndarray) -> Vector:
    """The entries of a sparse vector whose flag is set."""
    assert v._indices is not None
    at = np.flatnonzero(flags)
    return Vector._of(v.size, v._values[at], indices=v._indices[at])
