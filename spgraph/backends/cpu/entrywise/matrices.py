"""Elementwise operations on matrices, and the masked write, in O(entries + rows)."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from spgraph.backends.cpu.entrywise import vectors
from spgraph.backends.cpu.entrywise.masked_write import kept_and_taken
from spgraph.backends.cpu.entrywise.rows import (
    as_pointer,
    copied,
    csr,
    divided,
    index_type,
    iso_value,
    keep,
    launch,
    like,
    pointer_of,
    row_sizes,
    run,
    running_sum,
)
from spgraph.backends.cpu.runtime import jit, memory
from spgraph.containers import Mask, Matrix, Vector
from spgraph.containers.annotations import Scalar
from spgraph.containers.storage.values import same_numbers
from spgraph.semirings import Function

NO_VALUES = np.empty(0, bool)
# what stands before the preamble of kernels/matrix_ewise.py; and this of patterns
VALUES = "VALUES = True\n"
PATTERN = "VALUES = False\n" + "".join(
    f"@njit\ndef {name}(x, y, i, j):\n    return x\n" for name in ("both", "only_a", "only_b")
)


def apply_matrix(A: Matrix, op: Function, kind: str, scalar: np.generic) -> Matrix:
    """op of every entry, called as in `vectors.CALLS`; iso if A is and op is not positional."""
    if not op.positional:
        z = vectors.apply(Vector._of(A._values.size, A._values), op, kind, scalar)._values
        return like(A, z, A.iso, A.symmetric or None)
    z = memory.empty(A.nvals, op.result)
    kernel = vectors.function("matrix_apply", op, kind).matrix_apply
    run(kernel, (A._indptr,), A._indptr, A._indices, A._values, keep(A), scalar, z)
    return like(A, z, False, None)


def select_matrix(A: Matrix, op: Function, thunk: np.generic) -> Matrix:
    """The entries for which op(x, i, j, thunk) is true."""
    flags, sizes = memory.empty(A.nvals, bool), row_sizes(A.nrows, A.nvals)
    kernel = vectors.function("matrix_select", op, "index").matrix_select
    run(kernel, (A._indptr,), A._indptr, A._indices, A._values, keep(A), thunk, flags, sizes)
    return _flagged(A, flags, sizes)


def ewise_matrix(
    A: Matrix,
    B: Matrix,
    op: Function,
    union: bool,
    left: Scalar | None = None,
    right: Scalar | None = None,
) -> Matrix:
    """op(A[i, j], B[i, j]) where both have an entry. `union`: also the entries of only one of them,
    cast to op.result, or op(A[i, j], right) and op(left, B[i, j]) if these are given.
    """
    if not union:
        return _intersection(A, B, op)
    text, steady = vectors.ewise_preamble(op, left is not None), not op.positional
    return _union(A, B, op.result, text, steady, *vectors.other_operands(op, left, right))


def write_matrix(
    out: Matrix, t: Matrix, mask: Mask | None, accum: Function | None, replace: bool
) -> None:
    """out<mask, replace> = Z, cast to out's type, where Z = out accum t, or t without accum.

    The result is made in new arrays, which `out` takes at the end; those of t may be reused.
    """
    kept, t = kept_and_taken(out, t, mask, accum, replace, _allowed)
    if kept is None:
        with np.errstate(over="ignore"):  # beyond the range of float32 values become infinite
            values = t._values.astype(out.dtype, copy=False)
        z = Matrix._of(
            *t.shape, t._indptr, t._indices, values, iso=t.iso, symmetric=t.symmetric or None
        )
    else:
        z = _union(kept, t, out.dtype, vectors.accum_preamble(out.dtype, accum), True)
    out._become(z)


# --- union and intersection -----------------------------------------------------------------------


def _intersection(A: Matrix, B: Matrix, op: Function) -> Matrix:
    steady = not op.positional
    iso = A.iso and B.iso and steady
    parts = divided((A._indptr, B._indptr))
    indptr = as_pointer(_common(A, B, parts, min(A.nvals, B.nvals)))
    z = None if iso else memory.empty(int(indptr[-1]), op.result)
    text = vectors.ewise_preamble(op, False)
    indices = _filled("ewise_intersection", text, A, B, parts, (), indptr, z)
    z = iso_value(A, B, op) if z is None else z
    symmetric = True if A.symmetric and B.symmetric and steady else None
    return Matrix._of(A.nrows, A.ncols, indptr, indices, z, iso=iso, symmetric=symmetric)


def _union(
    A: Matrix,
    B: Matrix,
    dtype: np.dtype,
    text: str,
    steady: bool,
    left: np.generic = vectors.NO_SCALAR,
    right: np.generic = vectors.NO_SCALAR,
) -> Matrix:
    """The union by kernels of the preamble `text`; `steady`: values do not depend on positions."""
    iso, one = False, np.empty(0, dtype)
    if A.iso and B.iso and steady:
        three = _alone_and_both(A, B, dtype, text, left, right)
        iso, one = bool(same_numbers(three, three[:1]).all()), three[:1].copy()
    parts = divided((A._indptr, B._indptr))
    common = _common(A, B, parts, A.nvals + B.nvals)
    indptr = as_pointer(A._indptr + B._indptr.astype(common.dtype, copy=False) - common)
    z = None if iso else memory.empty(int(indptr[-1]), dtype)
    indices = _filled("ewise_union", text, A, B, parts, (left, right), indptr, z)
    z = one if z is None else z
    symmetric = True if A.symmetric and B.symmetric and steady else None
    return Matrix._of(A.nrows, A.ncols, indptr, indices, z, iso=iso, symmetric=symmetric)


def _filled(
    name: str,
    text: str,
    A: Matrix,
    B: Matrix,
    parts: tuple[int, np.ndarray],
    scalars: tuple[np.generic, ...],
    indptr: np.ndarray,
    z: np.ndarray | None,
) -> np.ndarray:
    """The column ids of a result, by a kernel of kernels/matrix_ewise.py; its values go to z."""
    indices, a, b = memory.empty(int(indptr[-1]), index_type(A)), csr(A), csr(B)
    text = VALUES + text
    if z is None:  # without values, one kernel for all their types
        text, z, scalars = PATTERN, NO_VALUES, (vectors.NO_SCALAR,) * len(scalars)
        a, b = ((ptr, ids, NO_VALUES, keep_) for ptr, ids, _, keep_ in (a, b))
    if indices.size:
        kernel = getattr(_ewise_kernels(text), name)
        launch(kernel, parts, *a, *b, *scalars, indptr, indices, z)
    return indices


def _ewise_kernels(text: str) -> ModuleType:
    """The kernels of kernels/matrix_ewise.py under the preamble `text`."""
    return jit.module("matrix_ewise", jit.text_of("lower_bound") + text)


def _common(A: Matrix, B: Matrix, parts: tuple[int, np.ndarray], bound: int) -> np.ndarray:
    """The indptr of the positions where both have an entry, of a type that can hold `bound`."""
    sizes = row_sizes(A.nrows, bound)
    if A.nvals and B.nvals:
        kernel = _ewise_kernels(PATTERN).count_common
        given = (A._indptr, A._indices, B._indptr, B._indices)
        launch(kernel, parts, *given, sizes)
    return running_sum(sizes)


def _alone_and_both(
    A: Matrix, B: Matrix, dtype: np.dtype, text: str, left: np.generic, right: np.generic
) -> np.ndarray:
    """The three values in a union of iso matrices: where only A, both, and only B have an entry."""
    row = [0, 2], [0, 1], [1, 2], [0, 3]
    indptr, a_ids, b_ids, z_ptr = (np.array(part, np.int32) for part in row)
    z_ids, z = np.empty(3, np.int32), np.empty(3, dtype)
    given = (indptr, a_ids, A._values, keep(A), indptr, b_ids, B._values, keep(B))
    kernel = _ewise_kernels(VALUES + text).ewise_union
    run(kernel, (indptr,), *given, left, right, z_ptr, z_ids, z)
    return z


# --- masks and selections -------------------------------------------------------------------------


def _allowed(A: Matrix, mask: Mask) -> Matrix:
    """The entries of A that the mask allows."""
    M = mask.parent
    assert isinstance(M, Matrix)
    flags, sizes = memory.empty(A.nvals, bool), row_sizes(A.nrows, A.nvals)
    kernel = jit.module("matrix_write", jit.text_of("lower_bound")).matrix_allowed
    # a structural mask is a mask whose values are all true
    m = (np.ones(1, bool), np.uint64(0)) if mask.structure else (M._values, keep(M))
    given = (A._indptr, A._indices, M._indptr, M._indices, *m, mask.complement)
    run(kernel, (A._indptr, M._indptr), *given, flags, sizes)
    return _flagged(A, flags, sizes)


def _flagged(A: Matrix, flags: np.ndarray, sizes: np.ndarray) -> Matrix:
    """The entries of A whose flag is set; sizes[i + 1] is their number in row i."""
    indptr = pointer_of(sizes)
    nvals = int(indptr[-1])
    compress = jit.module("matrix_select", "").compress
    parts = []
    for source, dtype in ((A._indices, index_type(A)), (A._values, A.dtype)):
        if source is A._values and A.iso:
            parts.append(source.copy())
        elif nvals == A.nvals:
            parts.append(copied(source, dtype))
        else:
            target = memory.empty(nvals, dtype)
            run(compress, (A._indptr,), A._indptr, flags, indptr, source, target)
            parts.append(target)
    return Matrix._of(A.nrows, A.ncols, indptr, *parts, iso=A.iso)
