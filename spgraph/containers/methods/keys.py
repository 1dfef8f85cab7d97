"""Keys between the brackets of a container, and the values that are written there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spgraph.containers.mask import Mask
from spgraph.containers.storage.arrays import as_array, device_of, is_array, on_device
from spgraph.errors import DomainMismatch, IndexOutOfBound

if TYPE_CHECKING:
    from spgraph.containers.matrix import Matrix
    from spgraph.containers.vector import Vector

BOOL = np.dtype(bool)


def from_end(index: Any, size: int, what: str) -> int:
    """Python's meaning of a negative index; IndexOutOfBound for one outside of [-size, size)."""
    if not -size <= index < size:
        raise IndexOutOfBound(f"[]: {what}: expected {-size} <= index < {size}, got {index}")
    return int(index) % size


def single(key: Any) -> Any:
    """One key in a simpler form: `...` as a slice, an array of one integer as that integer, an
    array of another library as one of NumPy or CuPy.
    """
    if key is Ellipsis:
        return slice(None)
    if type(key) in (int, slice, list) or not is_array(key):
        return key
    array = as_array("[]", key)
    return array.item() if array.ndim == 0 and array.dtype.kind in "iu" else array


def matrix_key(key: Any, A: Matrix) -> Mask | tuple[Any, Any]:
    """Rows and columns of a key of a Matrix, or the Mask that it means."""
    if isinstance(key, tuple) and len(key) == 1:
        key = key[0]
    if not isinstance(key, tuple):
        key = single(key)
        if hasattr(key, "tocsr") and len(key.shape) == 2:
            return _mask_of(key)
        if getattr(key, "dtype", None) == BOOL and np.ndim(key) == 2:
            raise DomainMismatch(
                "[]: expected a bool Matrix, got an array; A[Matrix(x)] has A's shape, and "
                "A.toarray()[x] the elements one after another"
            )
        key = key, slice(None)
    if len(key) != 2:
        raise DomainMismatch(f"[]: expected rows and columns, got {len(key)} indices")
    rows, columns = map(single, key)
    for each in (rows, columns):
        if hasattr(each, "tocsr") and len(each.shape) == 2:
            raise DomainMismatch(
                f"[]: expected rows and columns, each an integer, a slice, or one dimension of "
                f"integers or bool, got a {type(each).__name__} of {each.shape[0]} x "
                f"{each.shape[1]}; a bool Matrix is the only key, A[A > 1]; A[A > 1][i] is a row"
            )
    if type(rows) not in (int, slice):
        rows, columns = _crossed(rows, columns)
    return _flagged(rows, A.nrows, "rows"), _flagged(columns, A.ncols, "columns")


def _crossed(rows: Any, columns: Any) -> tuple[Any, Any]:
    """Rows and columns as numpy.ix_ makes them, and rows[:, None] beside columns, as they mean the
    same here and there: each of the rows with each of the columns.
    """
    upright = is_array(rows) and rows.ndim == 2 and rows.shape[1] == 1
    if upright and is_array(columns) and columns.shape in ((columns.size,), (1, columns.size)):
        return rows.reshape(-1), columns.reshape(-1)
    if upright and isinstance(columns, list):
        return rows.reshape(-1), columns
    return rows, columns


def _mask_of(B: Any) -> Mask:
    """The truth of a bool container, or of a sparse array of SciPy or CuPy."""
    from spgraph.containers.argument import as_matrix

    if B.dtype != BOOL:
        raise DomainMismatch(
            f"[]: expected truth values of bool between the brackets, got {B.dtype}; x.V is the "
            "mask of the values that are not zero, x.S that of the entries"
        )
    return B.V if hasattr(B, "V") else as_matrix(B, "[]").V


def vector_key(key: Any, v: Vector) -> Any:
    """A key of a Vector: a position, or several; the Mask of a bool Vector."""
    if isinstance(key, tuple):
        if len(key) != 1:
            raise DomainMismatch(
                f"[]: expected positions of one dimension, got {len(key)} indices; v[[0, 2]], with "
                "a list, are those two positions"
            )
        key = key[0]
    key = single(key)
    if not isinstance(key, list) and hasattr(key, "V") and key.dtype == BOOL:
        return key.V
    return _flagged(key, v.size, "positions")


def _flagged(key: Any, size: int, what: str) -> Any:
    """The positions where an array, a list or a Vector of bool is true; other keys unchanged."""
    if isinstance(key, list):
        if not key or not isinstance(key[0], bool | np.bool_):
            return key
        key = np.asarray(key)
    if getattr(key, "dtype", None) != BOOL or np.ndim(key) != 1:
        return key
    key = key if hasattr(key, "toarray") else as_array("[]", key)
    if key.shape != (size,):
        raise IndexOutOfBound(
            f"[]: expected an array of bool of {size} {what}, got one of {key.shape[0]}"
        )
    flags = key.toarray() if hasattr(key, "toarray") else key
    with on_device(device_of(flags)) as xp:
        return xp.flatnonzero(flags)


def written(value: Any, into: Any) -> Any:
    """What is written: an array, a list or a sparse array of one dimension as a Vector where `into`
    is.
    """
    from spgraph.containers.argument import vector_of
    from spgraph.containers.vector import Vector

    listed = isinstance(value, list | tuple | range)
    stands = listed or hasattr(value, "tocsr") or is_array(value)
    if isinstance(value, Vector) or not stands or np.ndim(value) != 1:
        return value
    made = vector_of(_of_list(value, into.dtype) if listed else value)
    # a list is nowhere yet; an array stays where it is, but for shards, which are in several places
    return made.to(into.device) if listed or not isinstance(into.device, str) else made


def _of_list(value: Any, dtype: np.dtype) -> np.ndarray:
    """Python's numbers as an array that may be written into `dtype` if each of them may."""
    array: Any = as_array("[]", value)
    if array.size == 0:
        return array.astype(dtype)  # of NumPy's own type it would be of floats
    signed = array.dtype.kind == "i" and dtype.kind == "u"
    return array.astype(np.uint64) if signed and array.min() >= 0 else array
