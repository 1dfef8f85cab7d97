"""Checks of compressed rows (CSR) that come from other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

from spgraph.containers.storage.arrays import Array, array_module
from spgraph.containers.storage.casting import check_wrapped, may_wrap
from spgraph.errors import FormatError

# entries that are compared at once: 256 kB of ids stay in a core's own cache
PIECE = 1 << 16
# the types of ids; read as unsigned, a negative id is a large one
UNSIGNED = {np.dtype(np.int32): np.dtype(np.uint32), np.dtype(np.int64): np.dtype(np.uint64)}

# the formats of SciPy that may store several entries of one position
STORED = ("csr", "csc", "bsr", "coo")

Arrays = tuple[Array, Array, Array]


def checked(name: str, S: Any, major: int, minor: int) -> Arrays:
    """(indptr, indices, data) of the compressed rows S, `major` of them with ids below `minor`:
    those of S where they can be, of NumPy's own types, contiguous, no longer than the entries.

    FormatError where they are no such rows. SciPy's objects are made unchecked and their arrays
    are set and written by whoever holds them, so that its C code, too, may fault on them.
    """
    indptr, indices = _ids(name, "indptr", S.indptr), _ids(name, "indices", S.indices)
    data = S.data
    if type(data) is not np.ndarray or not data.flags.c_contiguous:
        data = array_module(data).ascontiguousarray(data)
    if data.ndim != (3 if getattr(S, "format", "csr") == "bsr" else 1):
        raise FormatError(f"{name}: S.data: expected a list of values, got the shape {data.shape}")
    if indptr.shape != (major + 1,):
        raise FormatError(
            f"{name}: S.indptr: expected {major + 1} offsets for the shape, got {indptr.size}"
        )
    xp, nvals = array_module(indptr), int(indptr[-1])
    if int(indptr[0]) != 0 or int(xp.count_nonzero(indptr[1:] < indptr[:-1])):
        raise FormatError(f"{name}: S.indptr: expected offsets that ascend from 0")
    if nvals > indices.size or nvals > len(data):
        raise FormatError(
            f"{name}: S.indptr ends at {nvals}: expected as many indices and values, "
            f"got {indices.size} and {len(data)}"
        )
    indices = indices if indices.size == nvals else indices[:nvals]
    data = data if len(data) == nvals else data[:nvals]
    if nvals and int(_greatest(indices.view(UNSIGNED[indices.dtype]))) >= minor:
        raise FormatError(
            f"{name}: S.indices: expected ids within 0..{minor - 1}, "
            f"got {int(indices.min())} to {int(indices.max())}"
        )
    return indptr, indices, data


def ascends(indptr: Array, indices: Array) -> bool:
    """Whether the ids of each row do, each once; `indptr` has been checked.

    SciPy's flag for it is kept from the first time that somebody asked, whatever is written since.
    """
    xp, nvals = array_module(indices), indices.size
    if nvals <= PIECE or xp is not np:  # few calls: in small arrays they are what takes time
        rises = xp.empty(nvals + 1, bool)
        xp.greater(indices[1:], indices[:-1], out=rises[1:nvals])
        rises[indptr] = True  # from one row to the next, ids may fall; and both ends
        return int(xp.count_nonzero(rises)) == nvals + 1
    for k in range(0, nvals, PIECE):
        end = min(k + PIECE, nvals)
        first = max(k, 1)
        rises = xp.ones(end - k + 1, bool)
        xp.greater(indices[first:end], indices[first - 1 : end - 1], out=rises[first - k : end - k])
        starts = indptr[slice(*indptr.searchsorted(indptr.dtype.type((k, end))))] - k
        rises[starts] = True  # from one row to the next, ids may fall
        if int(xp.count_nonzero(rises)) != rises.size:
            return False
    return True


def check_other(name: str, S: Any) -> None:
    """FormatError where a SciPy or CuPy array of another format has ids that its conversion to
    compressed rows would follow out of the memory of its arrays.
    """
    check = {"csc": _check_csc, "bsr": _check_bsr, "dia": _check_dia, "coo": _check_coo}
    of_format = check.get(getattr(S, "format", ""))
    if of_format is not None:
        of_format(name, S)


def _check_csc(name: str, S: Any) -> None:
    checked(name, S, S.shape[1], S.shape[0])


def _check_bsr(name: str, S: Any) -> None:
    height, width = S.data.shape[1:] if S.data.ndim == 3 else (0, 0)
    if not height or not width or S.shape[0] % height or S.shape[1] % width:
        raise FormatError(f"{name}: S.data: expected blocks that divide the shape {S.shape}")
    checked(name, S, S.shape[0] // height, S.shape[1] // width)


def _check_dia(name: str, S: Any) -> None:
    if S.data.shape[:1] != S.offsets.shape:
        raise FormatError(
            f"{name}: S.data: expected {S.offsets.size} diagonals, got the shape {S.data.shape}"
        )


def _check_coo(name: str, S: Any) -> None:
    if S.ndim != 2:
        return
    for argument, given, extent in zip(("row", "col"), (S.row, S.col), S.shape, strict=True):
        ids = _ids(name, argument, given)
        if ids.size != S.data.size:
            raise FormatError(
                f"{name}: S.{argument}: expected {S.data.size} ids, one a value, got {ids.size}"
            )
        if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < extent:
            raise FormatError(
                f"{name}: S.{argument}: expected ids within 0..{extent - 1}, "
                f"got {int(ids.min())} to {int(ids.max())}"
            )


def without_duplicates(csr: Any, arrays: Arrays) -> Any:
    """A SciPy or CuPy array of copies of (indptr, indices, data) of `csr`, duplicates summed."""
    indptr, indices, data = (array.copy() for array in arrays)
    # SciPy's flags for it are kept from the first time that somebody asked
    fresh = type(csr)((data, indices, indptr), shape=csr.shape)
    fresh.sum_duplicates()
    return fresh


def check_sums(name: str, S: Any, made: Array) -> None:
    """OverflowError where a sum of duplicates of S has wrapped around in `made`, the values of its
    compressed rows.
    """
    if getattr(S, "format", None) not in STORED or made.size >= S.nnz:
        return
    if may_wrap(S.data.ravel(), "plus", S.nnz - made.size):
        reals = S.astype(np.float64).tocsr()  # arrays, and flags of them, that nobody else has
        reals.sum_duplicates()
        check_wrapped(f"{name}: S", made, reals.data)


def _greatest(values: Array) -> Array:
    """The greatest value; NumPy's method costs as much again as looking at a small array."""
    return np.maximum.reduce(values) if type(values) is np.ndarray else values.max()


def _ids(name: str, argument: str, ids: Array) -> Array:
    """`ids` as a contiguous list of int32 or int64."""
    if type(ids) is np.ndarray and ids.ndim == 1 and ids.dtype in UNSIGNED:
        return ids if ids.flags.c_contiguous else np.ascontiguousarray(ids)
    if getattr(ids, "ndim", 0) != 1 or ids.dtype.kind not in "iu":
        raise FormatError(
            f"{name}: S.{argument}: expected a list of integers, got "
            f"{getattr(ids, 'ndim', 0)} dimensions of {getattr(ids, 'dtype', type(ids))}"
        )
    if ids.dtype not in UNSIGNED:
        ids = ids.astype(np.int64)
    return array_module(ids).ascontiguousarray(ids)
