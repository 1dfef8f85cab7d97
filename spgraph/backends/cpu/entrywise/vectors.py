"""Operations on vectors, in O(entries) for sparse ones, else in O(size)."""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from spgraph.backends.cpu.runtime import jit, memory, pool, preamble
from spgraph.containers import Vector
from spgraph.containers.annotations import Scalar
from spgraph.containers.storage.arrays import index_dtype, pack_bits, words
from spgraph.semirings import Function, TypedMonoid

NO_IDS = np.empty(0, np.int32)
NO_BITS = np.empty(0, np.uint32)
NO_SCALAR = np.False_
# positions per partial sum of a reduction
WIDTH = 1 << 15

# how apply and select call operators of each kind, given a value, its index and a scalar
CALLS = {
    "unary": "op(value)",
    "left": "op(scalar, value, index, 0, index, 0)",
    "right": "op(value, scalar, index, 0, index, 0)",
    "index": "op(value, index, 0, scalar)",
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
    alpha: Scalar | None = None,
    beta: Scalar | None = None,
) -> Vector:
    """op(u[i], v[i]) where both have an entry. `union`: also the entries of only one of them, cast
    to op.result, or op(u[i], beta) and op(alpha, v[i]) if these are given.
    """
    kernels = _ewise(op, union, alpha is not None)
    scalars = other_operands(op, alpha, beta)
    size = u.size
    if not union and u._indices is not None and v._indices is None:
        v = _at(v, u._indices)
    elif not union and v._indices is not None and u._indices is None:
        u = _at(u, v._indices)
    if u._indices is not None and v._indices is not None:
        longest = u.nvals + v.nvals if union else min(u.nvals, v.nvals)
        indices, z = np.empty(longest, index_dtype(size)), np.empty(longest, op.result)
        counts = np.zeros(1, np.int64)
        given = (u._indices, u._values, v._indices, v._values, *scalars)
        pool.launch(kernels.ewise_sparse, 1, *given, indices, z, counts)
        return _trimmed(size, indices, z, int(counts[0]))
    u, v = u.to_bitmap(), v.to_bitmap()
    full = (u._bits is None and v._bits is None) or (union and (u._bits is None or v._bits is None))
    z_bits = NO_BITS if full else memory.empty(words(size), np.uint32)
    z = memory.empty(size, op.result) if full else memory.zeros(size, op.result)
    given = (_bits(u), u._values, _bits(v), v._values, *scalars)
    pool.launch(kernels.ewise, pool.threads_for(size), *given, z_bits, z)
    return Vector._of(size, z) if full else Vector._of(size, z, bits=z_bits)._conform()


def apply(u: Vector, op: Function, kind: str, scalar: np.generic) -> Vector:
    """op of every entry, called as `CALLS[kind]` says."""
    threads = pool.threads_for(u._values.size)
    z = (memory.empty if u._bits is None else memory.zeros)(u._values.size, op.result)
    ufunc = UFUNCS.get(op.python.value) if u._bits is None else None
    if ufunc is not None:
        pool.call_parts(_part_of_ufunc, threads, ufunc, u._values, z)
    else:
        ids = NO_IDS if u._indices is None else u._indices
        kernel = _function("apply", op, kind).apply
        pool.launch(kernel, threads, ids, _bits(u), u._values, scalar, z)
    if u._indices is not None:
        return Vector._of(u.size, z, indices=u._indices.copy())
    return (
        Vector._of(u.size, z)
        if u._bits is None
        else Vector._of(u.size, z, bits=u._bits.copy(), nvals=u.nvals)
    )


def select(u: Vector, op: Function, thunk: np.generic) -> Vector:
    """The entries for which op(x, i, 0, thunk) is true."""
    kernels = _function("select", op, "index")
    if u._indices is not None:
        indices, z, counts = (
            np.empty_like(u._indices),
            np.empty_like(u._values),
            np.zeros(1, np.int64),
        )
        pool.launch(kernels.select_sparse, 1, u._indices, u._values, thunk, indices, z, counts)
        return _trimmed(u.size, indices, z, int(counts[0]))
    z_bits, z = memory.empty(words(u.size), np.uint32), memory.zeros(u.size, u.dtype)
    pool.launch(kernels.select, pool.threads_for(u.size), _bits(u), u._values, thunk, z_bits, z)
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
    pool.launch(kernel, pool.threads_for(u._values.size), _bits(u), u._values, WIDTH, partial)
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
        present = _present(u._bits, indices)
        z[~present] = 0
        return Vector._of(indices.size, z, bits=pack_bits(present))._conform()
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
    pool.launch(jit.module("scatter", text).scatter, 1, ids, values, _bits(v), v._values)
    z = Vector._of(w.size, v._values, bits=v._bits)
    return Vector._of(w.size, v._values) if z.nvals == z.size else z


def other_operands(
    op: Function, alpha: Scalar | None, beta: Scalar | None
) -> tuple[np.generic, np.generic]:
    """alpha and beta, the operands for missing entries in a union, in the operator's types."""
    if alpha is None:
        return NO_SCALAR, NO_SCALAR
    given = zip((alpha, beta), op.arguments[:2], strict=True)
    made: list[Any] = [np.asarray(scalar).astype(dtype)[()] for scalar, dtype in given]
    return made[0], made[1]


@lru_cache(maxsize=1024)
def _ewise(op: Function, union: bool, scalars: bool) -> ModuleType:
    """The kernels of kernels/ewise.py for op; `scalars`: alpha and beta replace missing entries."""
    alone = ("op(x, y, i, 0, i, 0)", "op(y, x, i, 0, i, 0)") if scalars else ("cast(x)", "cast(x)")
    calls = "".join(
        f"@njit(error_model='numpy')\ndef {name}(x, y, i):\n    return {call}\n"
        for name, call in zip(("only_u", "only_v"), alone, strict=True)
    )
    return jit.module("ewise", preamble.function(op, UNION=union) + calls)


@lru_cache(maxsize=1024)
def _function(stem: str, op: Function, kind: str) -> ModuleType:
    """The kernels of kernels/`stem`.py for op, called as in CALLS[kind]."""
    call = f"@njit(error_model='numpy')\ndef f(value, index, scalar):\n    return {CALLS[kind]}\n"
    return jit.module(stem, op.define_python("op") + "\n" + call)


def _part_of_ufunc(part: int, parts: int, ufunc: np.ufunc, u: np.ndarray, z: np.ndarray) -> None:
    share = slice(u.size * part // parts, u.size * (part + 1) // parts)
    with np.errstate(all="ignore"):  # no warnings of inf and NaN, as in kernels
        ufunc(u[share], out=z[share], dtype=z.dtype, casting="unsafe")


def _bits(v: Vector) -> np.ndarray:
    return NO_BITS if v._bits is None else v._bits


def _present(bits: np.ndarray, indices: np.ndarray) -> np.ndarray:
    return (bits[indices >> 5] >> (indices & 31).astype(np.uint32)) & np.uint32(1) != 0


def _at(v: Vector, indices: np.ndarray) -> Vector:
    """The entries of a bitmap or full vector at `indices`, sparse."""
    kept = indices if v._bits is None else indices[_present(v._bits, indices)]
    return Vector._of(v.size, v._values[kept], indices=kept)


def _first(v: Vector) -> Vector:
    """The first word of a bitmap that has an entry, as a sparse vector."""
    assert v._bits is not None
    word = int(np.flatnonzero(v._bits)[0])
    part = slice(32 * word, 32 * word + 32)
    values = v._values[part]
    return Vector._of(values.size, values, bits=v._bits[word : word + 1]).to_sparse()


def _trimmed(size: int, indices: np.ndarray, values: np.ndarray, nvals: int) -> Vector:
    """The sparse vector of the first `nvals` entries, in arrays of that size."""
    return Vector._of(size, values[:nvals].copy(), indices=indices[:nvals].copy())._conform()
