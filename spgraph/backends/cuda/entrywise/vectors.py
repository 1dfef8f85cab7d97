"""Operations on vectors alone. Sparse ones cost their entries, others their size."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from spgraph.backends.cuda.entrywise.masked_write import write
from spgraph.backends.cuda.entrywise.masks import bits_of, id_type
from spgraph.backends.cuda.entrywise.storage import conform
from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.containers import Vector
from spgraph.containers.storage.arrays import Array, array_module, index_dtype, unpack_bits, words
from spgraph.containers.storage.selection import is_first
from spgraph.semirings import Function, TypedMonoid, binary, cuda_literal
from spgraph.semirings import monoid as monoids

# the most partial sums of a reduction; the same on every device, so that the order of additions is
# the same too
PARTIALS = 1024

# the operators that apply and select take, as calls of a value, its row and column and a scalar; in
# vectors the column is 0
CALLS = {
    "unary": "op(value)",
    "left": "op(scalar, value, i, j, i, j)",
    "right": "op(value, scalar, i, j, i, j)",
    "index": "op(value, i, j, scalar)",
}


@jit.on_device
def ewise(
    u: Vector, v: Vector, op: Function, union: bool, left: Any = None, right: Any = None
) -> Vector:
    """op(u[i], v[i]) where both hold an entry. With `union` also the entries of one alone: cast to
    op.result or, with the scalars left and right, op(u[i], right) and op(left, v[i]).
    """
    xp, size = array_module(u._values), u.size
    if not union and u._indices is not None and v._indices is None:
        v = _at(v, u._indices)
    elif not union and v._indices is not None and u._indices is None:
        u = _at(u, v._indices)
    ids = id_type(u)
    text = preamble.types(U=u.dtype, V=v.dtype, N=ids)
    text += ewise_preamble(op, union, left is not None)
    scalars = other_operands(op, left, right)
    if u._indices is not None and v._indices is not None:
        match, merge = jit.kernels("ewise", text, "ewise_match", "ewise_sparse")
        through, both = xp.zeros(u.nvals, np.int64), 0
        if u.nvals and v.nvals:
            matched = xp.empty(u.nvals, np.int64)
            jit.sweep(match, u.nvals, u._indices, u.nvals, v._indices, v.nvals, matched)
            through = xp.cumsum(matched)
            both = int(through[-1])
        nvals = u.nvals + v.nvals - both if union else both
        indices, z = xp.empty(nvals, ids), xp.empty(nvals, op.result)
        if nvals:
            threads = u.nvals + v.nvals if union else u.nvals
            given = u._indices, u._values, u.nvals, v._indices, v._values, v.nvals
            jit.sweep(merge, threads, *given, *scalars, through, indices, z)
        return Vector._of(size, z, indices=indices)._conform()
    kernel = jit.kernel("ewise", "ewise", text)
    u, v = u.to_bitmap(), v.to_bitmap()
    full = (u._bits is None and v._bits is None) or (union and (u._bits is None or v._bits is None))
    z_bits = jit.NULL if full else xp.empty(words(size), np.uint32)
    z = xp.empty(size, op.result)
    jit.sweep(kernel, size, bits_of(u), u._values, bits_of(v), v._values, *scalars, size, z_bits, z)
    return Vector._of(size, z) if full else conform(Vector._of(size, z, bits=z_bits))


@jit.on_device
def apply(u: Vector, op: Function, kind: str, scalar: Any) -> Vector:
    """op of every entry: op(x) ('unary'), op(scalar, x) ('left'), op(x, scalar) ('right') or op(x,
    i, 0, scalar) ('index').
    """
    z = _applied(u, op, kind, scalar, op.result)
    if u._indices is not None:
        return Vector._of(u.size, z, indices=u._indices.copy())
    bits = None if u._bits is None else u._bits.copy()
    return Vector._of(u.size, z, bits=bits, nvals=u._nvals)


def _applied(u: Vector, op: Function, kind: str, scalar: Any, result: np.dtype) -> Array:
    """op of every value that u stores, as `result`; 0 under an absent bit."""
    scalar, count = _scalar(scalar), u._values.size
    text = preamble.types(U=u.dtype, S=scalar.dtype, Z=result, N=id_type(u))
    kernel = jit.kernel("apply", "apply", text + call(op, kind, result))
    z = array_module(u._values).empty(count, result)
    if count:
        given = jit.NULL if u._indices is None else u._indices
        jit.sweep(kernel, count, given, bits_of(u), u._values, scalar, count, z)
    return z


@jit.on_device
def select(u: Vector, op: Function, thunk: Any) -> Vector:
    """The entries for which op(x, i, 0, thunk) is true."""
    xp = array_module(u._values)
    if u._indices is not None:
        found = xp.flatnonzero(_applied(u, op, "index", thunk, np.dtype(bool)))
        return Vector._of(u.size, u._values[found], indices=u._indices[found])._conform()
    thunk = _scalar(thunk)
    text = preamble.types(U=u.dtype, S=thunk.dtype) + call(op, "index", np.dtype(bool))
    kernel = jit.kernel("select", "select", text)
    z_bits, z = xp.empty(words(u.size), np.uint32), xp.empty(u.size, u.dtype)
    jit.sweep(kernel, u.size, bits_of(u), u._values, thunk, u.size, z_bits, z)
    return conform(Vector._of(u.size, z, bits=z_bits))


@jit.on_device
def reduce(u: Vector, monoid: TypedMonoid) -> Any:
    """The sum of all entries, a NumPy scalar of monoid.dtype; the identity where there is none."""
    xp = array_module(u._values)
    if u._values.size == 0:
        return monoid.identity
    if monoid.any:
        v = u.to_sparse() if u._bits is not None else u
        return monoid.dtype.type(v._values[:1].tolist()[0]) if v._values.size else monoid.identity
    text = preamble.monoid(monoid)
    types = [preamble.types(U=dtype, Z=monoid.dtype) for dtype in (u.dtype, monoid.dtype)]
    first, second = (jit.kernel("reduce", "reduce", given + text) for given in types)
    count = u._values.size
    partial = xp.empty(min(PARTIALS, -(-count // jit.BLOCK)), monoid.dtype)
    total = xp.empty(1, monoid.dtype)
    jit.launch(first, partial.size * jit.BLOCK, bits_of(u), u._values, count, partial)
    jit.launch(second, jit.BLOCK, jit.NULL, partial, partial.size, total)
    return monoid.dtype.type(total.tolist()[0])


@jit.on_device
def extract(u: Vector, indices: Array) -> Vector:
    """t[k] = u[indices[k]] where that holds an entry."""
    xp, count = array_module(u._values), indices.size
    indices = xp.ascontiguousarray(indices)
    ids = id_type(u)
    text = preamble.types(U=u.dtype, N=ids, J=indices.dtype)
    if u._indices is None:
        kernel = jit.kernel("extract", "extract", text)
        z_bits = jit.NULL if u._bits is None else xp.empty(words(count), np.uint32)
        z = xp.empty(count, u.dtype)
        if count:
            jit.sweep(kernel, count, bits_of(u), u._values, indices, count, z_bits, z)
        t = Vector._of(count, z, bits=None if u._bits is None else z_bits)
        return conform(t)
    kernel = jit.kernel("extract", "extract_sparse", text)
    if count == 0 or u.nvals == 0:
        return Vector._of(count, xp.empty(0, u.dtype), indices=xp.empty(0, index_dtype(count)))
    at = xp.empty(count, np.int64)
    jit.sweep(kernel, count, u._indices, u.nvals, indices, count, at)
    found = xp.flatnonzero(at >= 0)
    ids = found.astype(index_dtype(count), copy=False)
    return Vector._of(count, u._values[at[found]], indices=ids)._conform()


@jit.on_device
def reduce_segments(
    values: Array,
    starts: Array,
    op: Function,
    dtype: np.dtype,
    first: tuple[Array, Array] | None = None,
) -> Array:
    """For each group of values, from one start to the next, its fold from the left by op, cast to
    `dtype` at each step.

    `first`, as (flags, values), puts a value before the group where its flag is set.
    """
    kernel = jit.kernel("segments", "fold", fold_preamble(op, values.dtype, starts.dtype, dtype))
    has_first = firsts = jit.NULL
    if first is not None:
        has_first, firsts = first[0], first[1].astype(dtype, copy=False)
    z, groups = array_module(values).empty(starts.size, dtype), starts.size
    if groups:
        jit.sweep(kernel, groups, starts, groups, values, values.size, has_first, firsts, z)
    return z


@jit.on_device
def scatter(w: Vector, ids: Array, values: Array, accum: Function) -> Vector:
    """A new Vector: w with values[k] folded in at ids[k] by accum, k ascending; the first value
    itself, cast to w's type, where w has no entry.

    Where the order of the values cannot matter (built-in associative and commutative operators
    whose result over both types is w's: plus, times and bitwise ones over integers, the logical
    ones over bool, min, max and any over all types) they are added with atomics, at the cost of w's
    size and of the values: two or three launches, and the count of the entries, which is read back.
    With any other operator (a sum of floats, minus, first, second, a user's) they are sorted by
    position first, keeping their order, and then folded one after the other.
    """
    add = unordered(accum, w.dtype, values.dtype)
    if add is None:
        return _scatter_in_order(w, ids, values, accum)
    xp = array_module(values)
    ids, values = xp.ascontiguousarray(ids), xp.ascontiguousarray(values)
    text = scatter_preamble(add, values.dtype, ids.dtype)
    names = "scatter_start", "scatter", "scatter_end"
    start, scatter, end = jit.kernels("scatter", text, *names)
    v = w.to_bitmap()
    z = xp.empty(w.size, w.dtype)
    bits = jit.NULL if v._bits is None else v._bits.copy()
    if w.size:
        jit.sweep(start, w.size, bits, v._values, w.size, z)
    if ids.size:
        jit.sweep(scatter, ids.size, ids, values, ids.size, bits, z)
    if v._bits is None:
        return Vector._of(w.size, z)
    if w.size:
        jit.sweep(end, w.size, bits, w.size, z)
    return conform(Vector._of(w.size, z, bits=bits))


def _scatter_in_order(w: Vector, ids: Array, values: Array, accum: Function) -> Vector:
    """`scatter` for operators over which the order of the values matters."""
    xp, z = array_module(values), w.dup()
    if ids.size == 0:
        return z
    order = xp.argsort(ids, kind="stable")
    ids, values = ids[order], values[order]
    starts = xp.flatnonzero(is_first(ids))
    unique = ids[starts]
    there = extract(w, unique).to_bitmap()
    present = xp.ones(unique.size, bool)
    if there._bits is not None:
        present = unpack_bits(there._bits, unique.size)
    folds = reduce_segments(values, starts, accum, w.dtype, (present, there._values))
    t = Vector._of(w.size, folds, indices=unique.astype(index_dtype(w.size), copy=False))
    write(z, t, None, binary.second.resolve(w.dtype, w.dtype), False)
    return z


@functools.lru_cache(maxsize=1024)
def unordered(accum: Function, w: np.dtype, values: np.dtype) -> TypedMonoid | None:
    """The monoid over w that folds values of another type into w as accum does, in any order; None
    where there is none.
    """
    name = accum.name
    if name not in monoids or np.result_type(w, values) != w:
        return None
    # a user's operator may carry any name
    if getattr(binary, name).resolve(w, values) != accum or accum.result != w:
        return None
    if w.kind == "f" and name not in ("min", "max", "any"):
        return None
    return getattr(monoids, name).resolve(w)


@functools.lru_cache(maxsize=1024)
def scatter_preamble(add: TypedMonoid, values: np.dtype, ids: np.dtype) -> str:
    text = preamble.types(Z=add.dtype, V=values, J=ids) + preamble.monoid(add)
    start = add.identity
    if add.dtype.kind == "f":
        # a NaN stays where nothing else comes: it is what min and max start from, and they have to
        # look at it by themselves
        start = add.dtype.type(np.nan)
        text += "#undef ADD_KIND\n#define ADD_KIND ADD_OTHER\n" if not add.any else ""
    head = f"__device__ __forceinline__ {preamble.C_TYPES[add.dtype.name]} start()"
    return text + f"{head} {{ return {cuda_literal(start)}; }}\n"


@functools.lru_cache(maxsize=1024)
def ewise_preamble(op: Function, union: bool, fill: bool) -> str:
    """The operator, its result Z and the types L and R of the scalars; `fill` says whether these
    stand for what one of the operands lacks.
    """
    left, right = op.arguments[:2]
    types = preamble.types(Z=op.result, L=left, R=right)
    return types + preamble.function(op, UNION=union, FILL=union and fill)


def other_operands(op: Function, left: Any, right: Any) -> tuple[Any, Any]:
    """The scalars that stand for a missing operand in a union, in the operator's types."""
    given = zip((left, right), op.arguments[:2], strict=True)
    left, right = (np.asarray(0 if x is None else x).astype(dtype)[()] for x, dtype in given)
    return left, right


@functools.lru_cache(maxsize=1024)
def call(op: Function, kind: str, result: np.dtype) -> str:
    """The operator and its call f(value, i, j, scalar); the types U and S stand before it."""
    returned = preamble.C_TYPES[result.name]
    head = f"__device__ __forceinline__ {returned} f(U value, long long i, long long j, S scalar)"
    return f"{op.define_cuda('op')}{head} {{ return {CALLS[kind]}; }}\n"


@functools.lru_cache(maxsize=1024)
def fold_preamble(op: Function, values: np.dtype, starts: np.dtype, dtype: np.dtype) -> str:
    return (
        preamble.types(V=values, Z=dtype, T=starts)
        + op.define_cuda("op")
        + preamble.cast("cast", dtype)
    )


def _scalar(value: Any) -> Any:
    """A NumPy scalar, which CuPy passes to a kernel as its type; 0 where there is none."""
    return np.asarray(0 if value is None else value)[()]


def _at(v: Vector, indices: Array) -> Vector:
    """The entries of a bitmap or full vector at `indices`, sparse."""
    found = extract(v, indices).to_sparse()
    return Vector._of(v.size, found._values, indices=indices[found._indices])
