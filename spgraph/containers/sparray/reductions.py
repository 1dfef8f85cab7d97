"""sum, mean, max, min, argmax and argmin, over all positions or along an axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from spgraph.containers.annotations import Axis, Dense, DType
from spgraph.containers.methods.parts import Parts
from spgraph.containers.sparray.lines import Extreme, extremes, plain, stored, sums
from spgraph.containers.storage.arrays import Array, array_module, move, on_device, on_its_device
from spgraph.containers.storage.casting import converted_exactly
from spgraph.containers.storage.numbers import flags, is_integer
from spgraph.containers.storage.selection import is_first
from spgraph.errors import DomainMismatch


class Reductions(Parts):
    """Reductions over all positions, those without an entry as zeros (`sg.reduce`, `reduce_rowwise`
    and `reduce_columnwise` use stored entries only).

    `axis` is None for all positions, 0 for each column, 1 for each row; negative ones count from
    the end. Arrays are NumPy's, or CuPy's for a Matrix on a GPU; numbers, and all results of
    shards, are NumPy's.
    """

    __slots__ = ()

    @on_its_device
    def sum(self, axis: Axis = None, dtype: DType | None = None, out: Dense | None = None) -> Any:
        """The sum: a number, or with `axis` an array; in the type of numpy.sum, or `dtype`. `out`
        is an array to write it to, of a type that takes it: DomainMismatch for integers and a sum
        of floats, which SciPy cuts off, ValueError for one out of range.

        >>> import spgraph as sg
        >>> A = sg.Matrix([[1, 2, 0], [0, 0, 4]])
        >>> int(A.sum()), A.sum(axis=0).tolist(), A.sum(axis=1).tolist()
        (7, [1, 2, 4], [3, 4])
        """
        axis = checked_axis("sum", axis, len(self.shape))
        if axis is None:
            return _into("sum", _total(self, dtype), out)
        found = sums(self, axis)
        found = found if dtype is None else found.astype(dtype, copy=False)
        return _into("sum", found, out)

    @on_its_device
    def mean(self, axis: Axis = None, dtype: DType | None = None, out: Dense | None = None) -> Any:
        """The mean: a number, or with `axis` an array; of float32 in float32, else in float64, then
        converted to `dtype`. `out` is an array to write it to. ZeroDivisionError of no positions.

        >>> import spgraph as sg
        >>> A = sg.Matrix([[1, 2, 0], [0, 0, 4]])
        >>> A.mean(axis=0).tolist()
        [0.5, 1.0, 2.0]
        """
        axis = checked_axis("mean", axis, len(self.shape))
        kind = np.dtype(np.float64) if self.dtype.kind in "biu" else self.dtype
        count = math.prod(self.shape) if axis is None else self.shape[axis]
        if count == 0:
            raise ZeroDivisionError(f"mean: expected positions, got the shape {self.shape}")
        shares: Any = self._with_values(lambda x: x.astype(kind) * (1.0 / count))
        found = shares.sum(axis=axis, dtype=kind)
        return _into("mean", found if dtype is None else found.astype(dtype), out)

    def max(self, axis: Axis = None, out: None = None, *, explicit: bool = False) -> Any:
        """The greatest value: a number, or with `axis` a Vector, whose entries are those that are
        not zero; NaN where one is NaN. `explicit` looks at stored entries only. ValueError of no
        positions, and for an `out`, as in SciPy.

        >>> import spgraph as sg
        >>> A = sg.Matrix([[-1, -2, 0], [-1, -3, -4]])
        >>> int(A.max()), list(A.max(axis=1)), list(A.max(axis=1, explicit=True))
        (0, [(1, -1)], [(0, -1), (1, -1)])
        """
        return _extreme(self, "max", axis, out, explicit)

    def min(self, axis: Axis = None, out: None = None, *, explicit: bool = False) -> Any:
        """The least value; as `max`, with `axis`, `out` and `explicit` as there.

        >>> import spgraph as sg
        >>> A = sg.Matrix([[1, 2, 0], [0, 0, 4]])
        >>> int(A.min()), int(A.min(explicit=True)), A.min(axis=0).nnz
        (0, 1, 0)
        """
        return _extreme(self, "min", axis, out, explicit)

    def argmax(self, axis: Axis = None, out: None = None, *, explicit: bool = False) -> Any:
        """Where the greatest value is first: the position in the flat array, or with `axis` an
        int64 array with the place in each line. `explicit` looks at stored entries only: then it is
        the number of the entry, and 0 for a line without one. Of a distributed one every process
        gathers all entries. ValueError of no positions, and for an `out`, as in SciPy.

        >>> import spgraph as sg
        >>> A = sg.Matrix([[1, 2, 0], [0, 0, 4]])
        >>> A.argmax(), A.argmax(axis=1).tolist()
        (5, [1, 2])
        """
        return _position(self, "max", axis, out, explicit)

    def argmin(self, axis: Axis = None, out: None = None, *, explicit: bool = False) -> Any:
        """Where the least value is first; as `argmax`, with `axis`, `out` and `explicit` as there.

        >>> import spgraph as sg
        >>> A = sg.Matrix([[1, 2, 0], [0, 0, 4]])
        >>> A.argmin(), A.argmin(axis=1).tolist()
        (2, [2, 0])
        """
        return _position(self, "min", axis, out, explicit)


def checked_axis(name: str, axis: Any, ndim: int) -> int | None:
    """`axis` as an int >= 0; None where it means all axes. TypeError or ValueError for others."""
    if axis is None:
        return None
    given = axis if isinstance(axis, tuple) else (axis,)
    if not all(map(is_integer, given)):
        raise TypeError(f"{name}: axis: expected None, an integer or a tuple of them, got {axis!r}")
    found = {int(each) + ndim if each < 0 else int(each) for each in given}
    if not found or len(found) < len(given) or not found <= set(range(ndim)):
        raise ValueError(f"{name}: axis: expected axes of {ndim}, each once, got {axis}")
    return None if len(found) == ndim else found.pop()


def _here(u: Any) -> Any:
    """The device of arrays beside u."""
    return on_device(u.device if isinstance(u.device, str) else "cpu")


def _into(name: str, found: Any, out: Any) -> Any:
    if out is None:
        return found
    if out.shape != found.shape:
        raise ValueError(f"{name}: out: expected the shape {found.shape}, got {out.shape}")
    if not np.can_cast(found.dtype, out.dtype, "same_kind"):
        raise DomainMismatch(
            f"{name}: out: expected a type that takes {found.dtype}, got {out.dtype}; leave out "
            f"out, and .astype({out.dtype.name!r}) of the result converts without a check"
        )
    whole = found.dtype.kind in "iu" and out.dtype.kind in "iu"
    out[...] = converted_exactly(f"{name}: out", found, out.dtype) if whole else found
    return out


def _total(u: Any, dtype: DType | None) -> Any:
    """The sum of all entries, a number of NumPy."""
    if isinstance(u.device, str):
        return move(stored(u).sum(dtype=dtype), "cpu")[()]
    from spgraph import operations

    total: Any = operations.reduce(u if dtype is None else u.astype(dtype))
    return total if dtype is None else total.astype(dtype)


def _extreme(u: Any, name: Extreme, axis: Any, out: Any, explicit: bool) -> Any:
    flags(name, explicit=explicit)
    axis = _checked(u, name, axis, out)
    if axis is None:
        values = (u._value_range()[name == "max"],) if u.nvals else ()
        zero = () if u.nvals and (explicit or u.nvals == math.prod(u.shape)) else (0,)
        choose = np.maximum if name == "max" else np.minimum
        return choose.reduce(np.array([*values, *zero], u.dtype))
    from spgraph.containers.vector import Vector

    with _here(u):
        found, counts = extremes(u, axis, name)
        if not explicit:
            xp = array_module(found)
            beside_zero = (xp.maximum if name == "max" else xp.minimum)(found, u.dtype.type(0))
            found = xp.where(counts < u.shape[axis], beside_zero, found)
        made = Vector.from_dense(found, missing=0)
    return made if isinstance(u.device, str) else made.to(u.device)


def _position(u: Any, extreme: Extreme, axis: Any, out: Any, explicit: bool) -> Any:
    name = f"arg{extreme}"
    flags(name, explicit=explicit)
    axis = _checked(u, name, axis, out)
    u = plain(u)
    with _here(u):
        if axis is None:
            return _first(u, name, explicit)
        return _first_of_rows(u if axis == 1 else u.T, extreme, explicit)


def _checked(u: Any, name: str, axis: Any, out: Any) -> int | None:
    if out is not None:
        raise ValueError(f"{name}: out: expected None, got {type(out).__name__}")
    axis = checked_axis(name, axis, len(u.shape))
    if 0 in (u.shape if axis is None else (u.shape[axis],)):
        raise ValueError(f"{name}: expected positions to reduce, got the shape {u.shape}")
    return axis


def _first(u: Any, name: str, explicit: bool) -> Any:
    """The flat position of the first extreme of a plain container; see `argmax`."""
    if u.nvals == 0:
        if explicit:
            raise ValueError(f"{name}: explicit=True: expected entries, got none")
        return 0
    values = stored(u)
    xp, best = array_module(values), u.dtype.type(u._value_range()[name == "argmax"])
    place = int(xp.flatnonzero(values == best if best == best else values != values)[0])
    if explicit:
        return np.int64(place)
    *rows, columns = u.to_coo()[:-1]
    flat = columns.astype(np.int64)
    if rows:
        flat += rows[0].astype(np.int64) * u.ncols
    beyond = best > 0 if name == "argmax" else best < 0
    if beyond or u.nvals == math.prod(u.shape):
        return int(flat[place])
    gaps = xp.flatnonzero(flat != xp.arange(u.nvals))
    zero = int(gaps[0]) if gaps.size else u.nvals
    return min(zero, place) if best == 0 else zero


def _first_of_rows(A: Any, extreme: Extreme, explicit: bool) -> Array:
    """The column of the first extreme of each row of a plain Matrix; see `argmax`."""
    greatest, counts = extremes(A, 1, extreme)
    values, rows, columns = stored(A), A.row_indices(), A._indices
    xp = array_module(columns)
    best = greatest[rows]
    at = _firsts((values == best) | ((values != values) & (best != best)), rows)
    lines, found = rows[at], columns[at].astype(np.int64)
    if not explicit:
        # the first column without an entry: that after the last entry, where there is no gap
        zeros, places = counts.astype(np.int64), xp.arange(A.nvals) - A._indptr[rows]
        gaps = _firsts(columns != places, rows)
        zeros[rows[gaps]] = places[gaps]
        value, zero = values[at], zeros[lines]
        beyond = value > 0 if extreme == "max" else value < 0
        missing = xp.where(value == 0, xp.minimum(found, zero), zero)
        found = xp.where(beyond | (counts[lines] == A.ncols), found, missing)
    made = xp.zeros(A.nrows, np.int64)
    made[lines] = found
    return made


def _firsts(flags: Array, rows: Array) -> Array:
    """The place of the first flag of each row that has one."""
    places = array_module(flags).flatnonzero(flags)
    return places[is_first(rows[places])]
