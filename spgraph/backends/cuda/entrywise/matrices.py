"""Operations on the entries of matrices, balanced over entries whatever the lengths of rows.

A result keeps one value for all its entries (is iso) where the operands do and the operator cannot
tell entries apart. Its offsets and columns are of the smallest types that hold them.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from spgraph.backends.cuda.entrywise.edge_parallel import (
    Kept,
    empty_pattern,
    keep,
    result_types,
    sized_kernel,
    sweep,
    tiles_of,
)
from spgraph.backends.cuda.entrywise.masked_write import write_preamble
from spgraph.backends.cuda.entrywise.vectors import call, ewise_preamble, other_operands
from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.containers import Mask, Matrix
from spgraph.containers.storage.arrays import Array, array_module, words
from spgraph.semirings import Function


@jit.on_device
def apply_matrix(A: Matrix, op: Function, kind: str, scalar: Any) -> Matrix:
    """op of every entry a at (i, j): op(a) ('unary'), op(scalar, a) ('left'), op(a, scalar)
    ('right') or op(a, i, j, scalar) ('index').

    Columns and values are read and written once. One launch, two copies; A's tiles where op looks
    at positions.
    """
    scalar = np.asarray(0 if scalar is None else scalar)[()]
    at = op.positional
    count = A.nvals if at else A._values.size
    types = preamble.types(O=A._indptr.dtype, I=A._indices.dtype, U=A.dtype, S=scalar.dtype)
    text = types + preamble.types(Z=op.result) + preamble.constants(PLACED=at)
    kernel = jit.kernel("matrix_apply", "matrix_apply", text + call(op, kind, op.result))
    z = array_module(A._values).empty(count, op.result)
    if count:
        tiles = tiles_of(A) if at else jit.NULL
        given = A._indptr, A._indices, tiles, A._values, keep(A) if at else -1, scalar
        sweep(kernel, count, *given, count, z)
    kinds = result_types(*A.shape, A.nvals)
    pattern = A._indptr.astype(kinds["Q"], copy=True), A._indices.astype(kinds["N"], copy=True)
    # other values may be symmetric where A's are not
    symmetric = True if A.symmetric and not at else None
    return Matrix._of(A.nrows, A.ncols, *pattern, z, iso=A.iso and not at, symmetric=symmetric)


@jit.on_device
def select_matrix(A: Matrix, op: Function, thunk: Any) -> Matrix:
    """The entries a at (i, j) for which op(a, i, j, thunk) is true.

    The columns, and the values where op looks at them, are read once; what is kept is then read and
    written. Two launches, a running sum and one read back; A's tiles.
    """
    thunk = np.asarray(thunk)[()]
    xp, count = array_module(A._values), A.nvals
    types = preamble.types(O=A._indptr.dtype, I=A._indices.dtype, U=A.dtype, S=thunk.dtype)
    types += call(op, "index", np.dtype(bool))

    kernel = functools.partial(sized_kernel, "matrix_select", types, A.shape)
    kept, nvals = Kept.empty(xp, count), 0
    if count:
        given = A._indptr, A._indices, tiles_of(A), A._values, keep(A), thunk
        sweep(kernel("matrix_select", count), count, *given, count, *kept)
        kept, nvals = kept.counted()
    z_indptr, z_indices = empty_pattern(xp, *A.shape, nvals)
    z = A._values.copy() if A.iso else xp.empty(nvals, A.dtype)
    sweep(
        kernel("compress", nvals),
        max(count, A.nrows),
        *(A._indptr, A._indices, A._values, A.nrows, count, *kept),
        *(z_indptr, z_indices, jit.NULL if A.iso else z),
    )
    return Matrix._of(*A.shape, z_indptr, z_indices, z, iso=A.iso)


@jit.on_device
def ewise_matrix(
    A: Matrix, B: Matrix, op: Function, union: bool, left: Any = None, right: Any = None
) -> Matrix:
    """op(a, b, i, j, i, j) where both hold an entry at (i, j). With `union` also the entries of one
    alone: cast to op.result or, with the scalars left and right, op(a, right) and op(left, b).

    Each entry of A is looked for in its row of B; in a union, so is each of B in A. Columns are
    read twice (those of A) or once, values once, the result written once. An intersection runs over
    the smaller operand. Two launches, a running sum and one read back; tiles of A and B; one launch
    and read back more for the union of two iso matrices.
    """
    xp = array_module(A._values)
    flip = not union and B.nvals < A.nvals
    x, y = other_operands(op, left, right)
    if flip:
        A, B = B, A
    types = preamble.types(O=A._indptr.dtype, I=A._indices.dtype, U=A.dtype)
    types += preamble.types(P=B._indptr.dtype, J=B._indices.dtype, V=B.dtype)
    types += ewise_preamble(op, union, left is not None) + preamble.constants(FLIP=flip)

    kernel = functools.partial(sized_kernel, "matrix_ewise", types, A.shape)
    most = A.nvals + B.nvals if union else A.nvals
    kept, both = Kept.empty(xp, A.nvals), 0
    if A.nvals:
        given = A._indptr, A._indices, tiles_of(A), A.nvals, B._indptr, B._indices
        sweep(kernel("count_common", most), A.nvals, *given, *kept)
        kept, both = kept.counted()
    nvals = most - both if union else both
    single = None
    if A.iso and B.iso and not op.positional:
        values = xp.empty(3, op.result)
        jit.launch(kernel("ewise_values", most), 1, A._values, B._values, x, y, values)
        single = _single(values, True, True, True) if union else values[:1]
    z_indptr, z_indices = empty_pattern(xp, *A.shape, nvals)
    z = xp.empty(nvals, op.result) if single is None else single
    jit.sweep(
        kernel("ewise_matrix", nvals),
        max(most, A.nrows),
        *(A._indptr, A._indices, tiles_of(A), A._values, keep(A), A.nvals),
        *(B._indptr, B._indices, tiles_of(B), B._values, keep(B), B.nvals),
        *(x, y, A.nrows, *kept, z_indptr, z_indices, z if single is None else jit.NULL),
    )
    symmetric = True if A.symmetric and B.symmetric and not op.positional else None
    iso = single is not None
    return Matrix._of(*A.shape, z_indptr, z_indices, z, iso=iso, symmetric=symmetric)


@jit.on_device
def write_matrix(
    out: Matrix, t: Matrix, mask: Mask | None, accum: Function | None, replace: bool
) -> None:
    """With Z = out accum t (t where there is no accum): out<mask, replace> = Z, cast to out's type.

    Without mask and accum `out` takes over t's arrays. Else it gets new ones: columns of out and t
    are read twice, each entry is looked for in the mask's row and in the other's, the values are
    read and the result is written once. Two launches, a running sum and one read back; tiles of
    both; one launch and read back more where both are iso. `out` changes in the last step.
    """
    if mask is None and accum is None:
        values = t._values if t.dtype == out.dtype else t._values.astype(out.dtype)
        symmetric = t.symmetric or None  # values that differ may be equal in out's type
        arrays = t._indptr, t._indices, values
        out._become(Matrix._of(*t.shape, *arrays, iso=t.iso, symmetric=symmetric))
        return
    xp = array_module(out._values)
    replace = replace and mask is not None
    M: Any = out if mask is None else mask.parent
    complement = mask is not None and mask.complement
    types = _write_types(out, t, M, accum)
    types += preamble.constants(MASKED=mask is not None, STRUCTURE=mask is None or mask.structure)

    kernel = functools.partial(sized_kernel, "matrix_write", types, out.shape)
    both = out.nvals + t.nvals
    of_out, of_t = 32 * words(out.nvals), 32 * words(t.nvals)
    kept, nvals = Kept.empty(xp, of_out + of_t), 0
    masked = M._indptr, M._indices, M._values, keep(M), complement
    if both:
        ours = out._indptr, out._indices, tiles_of(out), out.nvals
        theirs = t._indptr, t._indices, tiles_of(t), t.nvals
        jit.sweep(
            kernel("matrix_allowed", both), of_out + of_t, *ours, *theirs, *masked, replace, *kept
        )
        kept, nvals = kept.counted()
    single = None
    if out.iso and t.iso:
        values = xp.empty(3, out.dtype)
        jit.launch(kernel("write_values", both), 1, out._values, t._values, values)
        single = _single(values, accum is not None or not replace, True, True)
    z_indptr, z_indices = empty_pattern(xp, *out.shape, nvals)
    z = xp.empty(nvals, out.dtype) if single is None else single
    if both:
        jit.sweep(
            kernel("write_matrix", nvals),
            max(both, out.nrows),
            *(out._indptr, out._indices, tiles_of(out), out._values, keep(out), out.nvals),
            *(t._indptr, t._indices, tiles_of(t), t._values, keep(t), t.nvals, *masked, out.nrows),
            *(*kept, z_indptr, z_indices, z if single is None else jit.NULL),
        )
    else:
        z_indptr.fill(0)
    out._become(Matrix._of(*out.shape, z_indptr, z_indices, z, iso=single is not None))


def _write_types(out: Matrix, t: Matrix, M: Matrix, accum: Function | None) -> str:
    """The types of all arrays that a write reads, where M is the mask's matrix."""
    text = write_preamble(out.dtype, t.dtype, accum)
    text += preamble.types(O=out._indptr.dtype, I=out._indices.dtype)
    text += preamble.types(P=t._indptr.dtype, J=t._indices.dtype)
    return text + preamble.types(X=M._indptr.dtype, Y=M._indices.dtype, M=M.dtype)


def _single(values: Array, *used: bool) -> Array | None:
    """Those of a few values that are used, as one, where they are all equal (0.0 and -0.0 are two):
    one read back. Which are used may not depend on the entries: all shards have one value or none.
    """
    host = [(value, math.copysign(1, value)) for value in values.tolist()]
    those = [k for k, use in enumerate(used) if use]
    first = those[0] if those else 0
    return values[first : first + 1] if all(host[k] == host[first] for k in those) else None
