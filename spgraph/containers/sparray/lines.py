"""What is stored in a container, and in each row or column of a Matrix, as dense arrays.

On the CPU these are NumPy's own loops, which compile nothing; elsewhere the operations of the
backend.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from spgraph.containers.storage.arrays import Array, array_module

Extreme = Literal["max", "min"]


def plain(u: Any) -> Any:
    """A container on one device: itself, or gathered on the CPU."""
    return u if isinstance(u.device, str) else u.gather()


def stored(u: Any) -> Array:
    """The values of the entries of a plain container, one each, not to be written."""
    if len(u.shape) == 1:
        return u._values if u.storage != "bitmap" else u.to_sparse()._values
    if not u.iso:
        return u._values
    return array_module(u._values).broadcast_to(u._values[:1], (u.nvals,))


def sums(A: Any, axis: int) -> Array:
    """The sum of each column (axis 0) or row (1) in the type of numpy.sum; of NumPy, for a Matrix
    on a GPU of CuPy.
    """
    if not A._has_arrays:
        return sums(A.T, 1 - axis)
    if A.device == "cpu":
        kind = np.add.reduce(np.empty(0, A.dtype)).dtype
        return _folded(A, axis, np.add, kind.type(0))
    return _fold(axis)(A)._dense(0)


def extremes(A: Any, axis: int, name: Extreme) -> tuple[Array, Array]:
    """(the greatest or least stored value of each column (axis 0) or row (1), 0 where there is
    none; how many are stored). NaN where one is NaN.
    """
    from spgraph.semirings import monoid

    if not A._has_arrays:
        return extremes(A.T, 1 - axis, name)
    counts = (A if axis == 1 else A.T).row_degrees()._dense(0)
    over = getattr(monoid, name)
    if A.device == "cpu":
        ufunc = np.maximum if name == "max" else np.minimum
        found = _folded(A, axis, ufunc, over.resolve(A.dtype).identity)
        found[counts == 0] = 0
        return found, counts
    fold = _fold(axis)
    found = fold(A, over)._dense(0)  # without NaN, as GraphBLAS's monoids are
    least = A._value_range()[0]
    if least != least:
        found[fold(A._with_values(lambda x: x != x), monoid.lor)._dense(False)] = np.nan
    return found, counts


def _fold(axis: int) -> Any:
    from spgraph import operations

    return operations.reduce_rowwise if axis == 1 else operations.reduce_columnwise


def _folded(A: Any, axis: int, ufunc: np.ufunc, start: np.generic) -> np.ndarray:
    """`ufunc` over each column or row of a Matrix on the CPU, in the type of `start`, which stands
    where nothing is stored.
    """
    made = np.full(A.shape[1 - axis], start)
    values = stored(A)
    with np.errstate(invalid="ignore"):  # as SciPy and the backends, of NaN and inf - inf
        if axis == 0:
            ufunc.at(made, A._indices, values.astype(made.dtype, copy=False))
        else:
            rows = np.flatnonzero(A._indptr[1:] != A._indptr[:-1])
            made[rows] = ufunc.reduceat(values, A._indptr[rows], dtype=made.dtype)
    return made
