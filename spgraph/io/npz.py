"""NumPy archives: SciPy's layouts of sparse matrices, and the one that `write` makes."""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import IO, Any

import numpy as np
import scipy.sparse

from spgraph.containers import Matrix, Vector
from spgraph.containers.arrays import index_dtype
from spgraph.containers.vector import value_dtype
from spgraph.errors import FormatError

# what NumPy, SciPy and zipfile raise on archives that are not what they seem
_BROKEN = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    EOFError,
    OSError,
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
)


def parse(path: str, content: bytes | None) -> Matrix:
    """The Matrix in the archive at `path`, or in `content` where the archive itself was compressed.

    The layout is that of scipy.sparse.save_npz (csr, csc, coo, bsr, dia), perhaps with the keys
    `iso` and `symmetric` that `write` adds. Nothing is ever unpickled, and every index is checked.
    """
    found = parse_any(path, content)
    if isinstance(found, Vector):
        raise FormatError(f"{path}: it holds a Vector; spgraph.load reads it")
    return found


def parse_any(path: str, content: bytes | None) -> Matrix | Vector:
    """As `parse`, or the Vector that `write` wrote."""
    try:
        with open(path, "rb") if content is None else io.BytesIO(content) as stream:
            return _load(stream)
    except _BROKEN as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = f"no array {error}" if isinstance(error, KeyError) else str(error)
        if "pickle" in reason:
            reason = "it is no archive of plain arrays, and pickled objects are never read"
        raise FormatError(
            f"{path}: not a sparse matrix in a .npz archive: {reason}; "
            "expected what spgraph.write or scipy.sparse.save_npz writes"
        ) from error


def write(stream: IO[bytes], A: Matrix | Vector) -> None:
    """A in SciPy's csr layout and two more keys; an iso A is one value, which SciPy refuses. A
    Vector as its size, indices and values.
    """
    if isinstance(A, Vector):
        indices, values = A.to_coo()
        np.savez(
            stream,
            format=np.array(b"vector"),
            shape=np.array(A.shape),
            indices=indices,
            data=values,
        )
        return
    np.savez(
        stream,
        format=np.array(b"csr"),
        shape=np.array(A.shape),
        indptr=A._indptr,
        indices=A._indices,
        data=A._values,
        iso=np.array(A.iso),
        symmetric=np.array(-1 if A.symmetric is None else int(A.symmetric)),
    )


def _load(stream: Any) -> Matrix | Vector:
    archive = np.load(stream, allow_pickle=False)
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise ValueError("it holds one array, not an archive of arrays")
    with archive:
        arrays = {name: archive[name] for name in archive.files}
    layout = arrays["format"].item()
    if layout in (b"csr", "csr"):
        return _csr(arrays)
    if layout == b"vector":
        return _vector(arrays)
    stream.seek(0)
    return _other(scipy.sparse.load_npz(stream))


def _csr(arrays: dict[str, np.ndarray]) -> Matrix:
    nrows, ncols = (int(extent) for extent in arrays["shape"])
    iso = bool(arrays["iso"]) if "iso" in arrays else False
    known = int(arrays["symmetric"]) if "symmetric" in arrays else -1
    symmetric = None if known < 0 else bool(known)
    indptr, indices = _indices("indptr", arrays["indptr"]), _indices("indices", arrays["indices"])
    data = arrays["data"]
    if nrows < 0 or ncols < 0 or indptr.shape != (nrows + 1,):
        raise ValueError(f"shape {nrows} x {ncols} does not go with {indptr.size} offsets")
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise ValueError("indptr does not ascend from 0")
    if indices.shape != (indptr[-1],):
        raise ValueError(f"indptr ends at {indptr[-1]}, there are {indices.size} indices")
    if data.shape != ((1,) if iso else indices.shape):
        raise ValueError(f"there are {indices.size} indices and {data.size} values")
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < ncols:
        raise ValueError(f"a column index lies outside of 0..{ncols - 1}")
    data = data.astype(value_dtype(data.dtype), copy=False)
    rising = np.diff(indices) > 0
    starts = indptr[1:-1]
    starts = starts[(starts > 0) & (starts < indices.size)]
    rising[starts - 1] = True  # from one row to the next, ids may fall
    if rising.all():
        return Matrix(nrows, ncols, indptr, indices, data, iso=iso, symmetric=symmetric)
    if iso:
        raise ValueError("the columns of a row do not ascend")
    return Matrix.from_scipy(scipy.sparse.csr_array((data, indices, indptr), shape=(nrows, ncols)))


def _vector(arrays: dict[str, np.ndarray]) -> Vector:
    (size,) = (int(extent) for extent in arrays["shape"])
    indices, data = _indices("indices", arrays["indices"]), arrays["data"]
    if size < 0 or data.shape != indices.shape:
        raise ValueError(f"size {size}: there are {indices.size} indices and {data.size} values")
    if indices.size and not 0 <= int(indices[0]) <= int(indices[-1]) < size:
        raise ValueError(f"an index lies outside of 0..{size - 1}")
    if (np.diff(indices) <= 0).any():
        raise ValueError("the indices do not ascend")
    data = data.astype(value_dtype(data.dtype), copy=False)
    return Vector(size, data, indices=indices.astype(index_dtype(size), copy=False)).conform()


def _indices(name: str, array: np.ndarray) -> np.ndarray:
    """`array` as int32 or int64, as it came if it is either."""
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"{name} is not a list of integers")
    if array.dtype in (np.int32, np.int64):
        return array
    return array.astype(index_dtype(int(array.max(initial=0))))


def _other(S: Any) -> Matrix:
    """The Matrix of what SciPy loaded; SciPy has checked the indices of coo and dia only."""
    if S.ndim != 2:
        raise ValueError(f"it has {S.ndim} dimensions, a matrix has 2")
    if S.format in ("csc", "bsr"):
        S.check_format(full_check=True)
    return Matrix.from_scipy(S)
