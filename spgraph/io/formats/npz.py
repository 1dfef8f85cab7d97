"""NumPy archives (.npz): SciPy's formats of sparse matrices, and the one that `write` makes."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import numpy as np

from spgraph import checks
from spgraph.containers import Matrix, Vector
from spgraph.containers.interchange.libraries import scipy_sparse
from spgraph.containers.storage.arrays import INT64_MAX, index_dtype
from spgraph.containers.storage.values import value_dtype
from spgraph.errors import DomainMismatch, FormatError
from spgraph.io.archive import BROKEN, Archive, is_of_disk
from spgraph.io.coordinates import Coordinates
from spgraph.io.ids import Ids, arrays_of, names_in
from spgraph.io.source import Source
from spgraph.io.symmetry import confirmed

Found = Matrix | Vector | Coordinates
Triple = tuple[np.ndarray, np.ndarray, np.ndarray]  # rows, columns, values


def parse(
    source: str | Source, compact: bool | None = None, *, named: bool = False
) -> tuple[Matrix | Coordinates, Ids | None]:
    """The Matrix in the archive at a path, or in a stream that is read to its end; and, if `named`,
    the names that were written with it, or None.

    The keys are those of scipy.sparse.save_npz (csr, csc, coo, bsr, dia), and `iso` and
    `symmetric` where `write` made the file. Nothing is unpickled, and everything is checked.
    Anything but canonical CSR is returned as Coordinates.
    """
    found, ids = parse_any(source, compact, named=named)
    if isinstance(found, Vector):
        path = source if isinstance(source, str) else source.path
        raise FormatError(f"{path}: expected a Matrix, it holds a Vector; spgraph.load reads it")
    return found, ids


def parse_any(
    source: str | Source, compact: bool | None = None, *, named: bool = False
) -> tuple[Found, Ids | None]:
    """As `parse`, but also the Vector of a file that `write` wrote from one. MemoryError if row
    pointers would dwarf the entries, unless `compact` is given.
    """
    with _archive(source) as archive:
        path = source if isinstance(source, str) else source.path
        found = _load(archive, path, compact)
        extent = found.size if isinstance(found, Vector) else found.ncols
        return found, names_in(archive, extent) if named else None


def parse_names(path: str) -> Ids | None:
    """The names in the archive at a path; None if there are none."""
    with _archive(path) as archive:
        shape = archive.array("shape", "iu")
        if not shape.size:
            raise ValueError("shape: expected an extent, there is none")
        return names_in(archive, int(shape[-1]))


@contextmanager
def _archive(source: str | Source) -> Iterator[Archive]:
    """The archive, of which the block reads. FormatError for what is wrong with it."""
    path = source if isinstance(source, str) else source.path
    try:
        with _seekable(source) as stream:
            if stream.read(2) != b"PK":
                raise ValueError("expected a zip archive")
            stream.seek(0)
            yield Archive(stream)
    except FormatError:  # of a compressed stream
        raise
    except BROKEN as error:
        if is_of_disk(error):
            raise
        raise FormatError(
            f"{path}: not a sparse matrix in a .npz archive: {error}; "
            "expected what spgraph.write or scipy.sparse.save_npz writes"
        ) from error
    except MemoryError as error:
        text = str(error)
        raise error if text.startswith(path) else MemoryError(f"{path}: {text}") from error


def _seekable(source: str | Source) -> IO[bytes]:
    """The archive as a seekable stream, which zipfile requires."""
    if isinstance(source, str) and os.path.isfile(source):
        return open(source, "rb")
    if isinstance(source, str):  # a pipe
        with Source(source) as pipe:
            return io.BytesIO(pipe.read_all())
    return io.BytesIO(source.read_all())


def write(stream: IO[bytes], A: Matrix | Vector, ids: Ids | None = None) -> None:
    """Write A with the keys of SciPy's csr format and two more; an iso A has one value, which SciPy
    cannot load. A Vector is written as its size, indices and values. `ids` are kept beside.
    """
    names = arrays_of(ids)
    if isinstance(A, Vector):
        indices, values = A.to_coo()
        np.savez(
            stream,
            format=np.array(b"vector"),
            shape=np.array(A.shape),
            indices=indices,
            data=values,
            **names,
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
        **names,
    )


def _load(archive: Archive, path: str, compact: bool | None) -> Found:
    if "binsparse" in archive and "format" not in archive:
        raise ValueError("it is a file of Binsparse, whose name has to end with .bsp.npz")
    name = archive.scalar("format", "SU")
    layout = name.decode("latin-1") if isinstance(name, bytes) else str(name)
    if layout == "vector":
        return _vector(archive)
    if layout == "csr":
        return _csr(archive, path, compact)
    readers = {"csc": _csc, "coo": _coo, "bsr": _bsr, "dia": _dia}
    if layout not in readers:
        raise ValueError(f"format: expected csr, csc, coo, bsr, dia or vector, got {layout[:60]!r}")
    nrows, ncols = _shape(archive, 2)
    rows, columns, values = readers[layout](archive, (nrows, ncols))
    return Coordinates(path, rows, columns, values, nrows, ncols, duplicates="plus")


def _csr(archive: Archive, path: str, compact: bool | None) -> Found:
    nrows, ncols = _shape(archive, 2)
    _check_size(archive, path, nrows, ncols, compact)
    iso = bool(archive.scalar("iso", "b")) if "iso" in archive else False
    claim = int(archive.scalar("symmetric", "iu")) if "symmetric" in archive else -1
    if claim not in (-1, 0, 1):
        raise ValueError(f"symmetric: expected -1 (unknown), 0 or 1, got {claim}")
    indptr, indices = _compressed(archive, nrows, ncols)
    values = _values(archive, 1 if iso else indices.size)
    if not _ascends(indptr, indices):
        if iso or "symmetric" in archive:  # SciPy writes neither
            raise ValueError("indices: expected the columns of each row to ascend, each once")
        rows = np.repeat(np.arange(nrows, dtype=index_dtype(nrows)), np.diff(indptr))
        return Coordinates(path, rows, indices, values, nrows, ncols, duplicates="plus")
    known = None
    if nrows == ncols and claim >= 0:
        known = confirmed(bool(claim), indptr, indices, None if iso else values)
    return Matrix._of(nrows, ncols, indptr, indices, values, iso=iso, symmetric=known)


def _csc(archive: Archive, shape: tuple[int, int]) -> Triple:
    indptr, indices = _compressed(archive, shape[1], shape[0])
    columns = np.repeat(np.arange(shape[1], dtype=index_dtype(shape[1])), np.diff(indptr))
    return indices, columns, _values(archive, indices.size)


def _coo(archive: Archive, shape: tuple[int, int]) -> Triple:
    if "row" not in archive and "coords" in archive:
        ids = _integers(archive, "coords", 2)
        if len(ids) != 2:
            raise ValueError(f"coords: expected 2 rows, got the shape {ids.shape}")
        names, (rows, columns) = ("coords", "coords"), ids
    else:
        names = "row", "col"
        rows, columns = (_integers(archive, name) for name in names)
    if rows.size != columns.size:
        raise ValueError(f"col: expected {rows.size} columns, as many as rows, got {columns.size}")
    for name, ids, extent in zip(names, (rows, columns), shape, strict=True):
        _below(name, ids, extent)
    return rows, columns, _values(archive, rows.size)


def _bsr(archive: Archive, shape: tuple[int, int]) -> Triple:
    data = _numbers(archive, 3)
    height, width = data.shape[1:]
    if not height or not width or shape[0] % height or shape[1] % width:
        raise ValueError(
            f"data: expected blocks that divide the shape {shape}, got {height} x {width}"
        )
    indptr, indices = _compressed(archive, shape[0] // height, shape[1] // width)
    if len(data) != indices.size:
        raise ValueError(f"data: expected {indices.size} blocks, got {len(data)}")
    S = scipy_sparse().bsr_array((data, indices, indptr), shape=shape).tocoo()
    return S.row, S.col, S.data


def _dia(archive: Archive, shape: tuple[int, int]) -> Triple:
    data, offsets = _numbers(archive, 2), _integers(archive, "offsets")
    if np.unique(offsets).size != offsets.size:
        raise ValueError("offsets: expected each diagonal once")
    if len(data) != offsets.size:
        raise ValueError(f"data: expected {offsets.size} diagonals, got {len(data)}")
    if offsets.size and not -shape[0] < offsets.min() <= offsets.max() < shape[1]:
        raise ValueError(f"offsets: expected diagonals of the shape {shape}")
    # not by SciPy, which would allocate a row pointer for every row that the file claims
    columns = np.arange(min(data.shape[1], shape[1]))
    rows = columns - offsets.astype(np.int64)[:, None]
    data = data[:, : columns.size]
    kept = (rows >= 0) & (rows < shape[0]) & (data != 0)
    return rows[kept], np.broadcast_to(columns, kept.shape)[kept], data[kept]


def _vector(archive: Archive) -> Vector:
    (size,) = _shape(archive, 1)
    indices = _integers(archive, "indices")
    _below("indices", indices, size)
    if (indices[1:] <= indices[:-1]).any():
        raise ValueError("indices: expected them to ascend, each once")
    data = _values(archive, indices.size)
    return Vector._of(size, data, indices=indices.astype(index_dtype(size), copy=False))._conform()


# --- what the formats share -----------------------------------------------------------------------


def _shape(archive: Archive, ndim: int) -> tuple[int, ...]:
    shape = archive.array("shape", "iu")
    if shape.size != ndim or not all(0 <= extent <= INT64_MAX for extent in shape.tolist()):
        raise ValueError(f"shape: expected {ndim} extents >= 0, got {shape[:9].tolist()}")
    return tuple(shape.tolist())


def _check_size(archive: Archive, path: str, nrows: int, ncols: int, compact: bool | None) -> None:
    """Raise MemoryError, before arrays are read, if row pointers would dwarf the entries."""
    entries = 0
    for key in ("indices", "data"):
        dtype, shape, *_ = archive.header(key)
        entries += dtype.itemsize * math.prod(shape)
    count = math.prod(archive.header("indices")[1])
    checks.row_pointers(path, nrows, count, entries, compact, square=nrows == ncols)


def _compressed(archive: Archive, major: int, minor: int) -> tuple[np.ndarray, np.ndarray]:
    """(indptr, indices) of `major` compressed rows (or columns) with ids below `minor`."""
    count = math.prod(archive.header("indptr")[1])
    if count != major + 1:
        raise ValueError(f"indptr: expected {major + 1} offsets for the shape, got {count}")
    indptr, indices = _integers(archive, "indptr"), _integers(archive, "indices")
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise ValueError("indptr: expected offsets that ascend from 0")
    if indices.size != indptr[-1]:
        raise ValueError(f"indptr: ends at {indptr[-1]}, there are {indices.size} indices")
    _below("indices", indices, minor)
    return indptr, indices


def _ascends(indptr: np.ndarray, indices: np.ndarray) -> bool:
    """Whether the ids of each row are strictly ascending."""
    rising = indices[1:] > indices[:-1]
    starts = indptr[1:-1]
    starts = starts[(starts > 0) & (starts < indices.size)]
    rising[starts - 1] = True  # from one row to the next, ids may fall
    return bool(rising.all())


def _below(key: str, ids: np.ndarray, extent: int) -> None:
    if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < extent:
        raise ValueError(
            f"{key}: expected ids within 0..{extent - 1}, got {ids.min()} to {ids.max()}"
        )


def _integers(archive: Archive, key: str, ndim: int = 1) -> np.ndarray:
    """An array of integers as int32 or int64; not copied if it is one of the two."""
    array = archive.array(key, "iu", ndim)
    if array.dtype in (np.int32, np.int64):
        return array
    largest = int(array.max(initial=0))
    if largest > INT64_MAX:
        raise ValueError(f"{key}: expected integers below 2**63, got {largest}")
    return array.astype(index_dtype(largest))


def _values(archive: Archive, count: int) -> np.ndarray:
    """The values of `count` entries; ValueError for another number of them."""
    data = _numbers(archive, 1)
    if data.size != count:
        raise ValueError(f"data: expected {count} values for the indices, got {data.size}")
    return data


def _numbers(archive: Archive, ndim: int) -> np.ndarray:
    dtype = archive.header("data")[0]
    try:
        value_dtype(dtype)
    except DomainMismatch as error:
        if not dtype.hasobject:
            raise ValueError(f"data: {error}") from error
    return archive.array("data", "biuf", ndim)
