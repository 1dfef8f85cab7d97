"""Files of the Binsparse specification, in HDF5 (.h5, .hdf5) and in NumPy archives (.bsp.npz).

Source: Brock, Davis, Kitchen, Welch, Virshup, Ahrens, "Binary Sparse Format Specification", version
0.1 (2025). The package binsparse, its reference implementation, reads and writes the containers.
"""

from __future__ import annotations

import io
from types import ModuleType
from typing import IO, Any

import numpy as np

from spgraph import late_imports
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import index_dtype
from spgraph.containers.storage.values import value_dtype
from spgraph.errors import FormatError
from spgraph.io.archive import BROKEN, Archive, is_of_disk
from spgraph.io.coordinates import Coordinates, symmetrised

SUFFIXES = (".h5", ".hdf5")
ARCHIVE = ".bsp.npz"

Found = Matrix | Vector | Coordinates
# of the key "structure": which triangle is stored
TRIANGLES = {"symmetric_lower": "rows", "symmetric_upper": "columns"}
TRIANGLES |= {f"hermitian{name[9:]}": larger for name, larger in TRIANGLES.items()}


def takes(name: str) -> bool:
    """Whether a file of this name is one of Binsparse."""
    return name.lower().endswith((*SUFFIXES, ARCHIVE))


def parse_any(path: str) -> Found:
    """What the file holds. FormatError where it breaks the specification, or holds what neither a
    Matrix nor a Vector is; the library's absence is a ModuleNotFoundError.
    """
    binsparse, h5py = _libraries(path)
    try:
        if path.lower().endswith(ARCHIVE):
            with open(path, "rb") as stream:
                return _tensor(binsparse.NPZBinsparseContainer(Members(Archive(stream))), path)
        with h5py.File(path, "r") as file:
            return _tensor(binsparse.HDF5BinsparseContainer(file), path)
    except FormatError:
        raise
    except (binsparse.BinsparseParseError, KeyError, TypeError, *BROKEN) as error:
        if is_of_disk(error):
            raise
        raise FormatError(f"{path}: not a sparse array of Binsparse: {error}") from error


def write(stream: IO[bytes], path: str, x: Matrix | Vector) -> None:
    """Write a Matrix as CSR, a Vector as CVEC, or DVEC where each position has an entry."""
    binsparse, h5py = _libraries(path)
    tensor: Any
    if isinstance(x, Matrix):
        values = np.broadcast_to(x._values[:1], x.nvals) if x.iso else x._values
        parts = {"pointers_to_1": x._indptr, "indices_1": x._indices, "values": values}
        tensor = binsparse.CSRMatrix(x.shape, x.nvals, **parts)
    elif x.nvals == x.size:
        tensor = binsparse.DVECVector(x.shape, x.size, values=x._values)
    else:
        v = x.to_sparse()
        tensor = binsparse.CVECVector(x.shape, x.nvals, indices_0=v._indices, values=v._values)
    if path.lower().endswith(ARCHIVE):
        members: dict[str, np.ndarray] = {}
        tensor.serialize(binsparse.NPZBinsparseContainer(members))
        savez: Any = np.savez
        savez(stream, **members)
        return
    memory = io.BytesIO()  # HDF5 reads what it writes, which the stream does not allow
    with h5py.File(memory, "w") as file:
        tensor.serialize(binsparse.HDF5BinsparseContainer(file))
    stream.write(memory.getbuffer())


class Members(dict[str, Any]):
    """The arrays of an archive, read when they are asked for, as the library's container does."""

    def __init__(self, archive: Archive) -> None:
        super().__init__()
        self.archive = archive

    def __getitem__(self, key: str) -> np.ndarray:
        if key == "binsparse":
            return self.archive.array(key, "SU", 0)
        return self.archive.array(key, "biuf", 1)


def _libraries(path: str) -> tuple[ModuleType, ModuleType]:
    try:
        with late_imports.whole():
            import binsparse
            import h5py
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{path}: files of Binsparse need the package {error.name}, which is not installed: "
            "pip install 'spgraph[binsparse]'",
            name=error.name,
        ) from error
    return binsparse, h5py


def _tensor(container: Any, path: str) -> Found:
    """What a container of the library holds."""
    import binsparse

    header = container.read_header()
    tensor = binsparse.BinsparseTensor.parse(container, alias=True)
    if tensor.fill is True and tensor.fill_value != 0:
        raise FormatError(
            f"{path}: fill_value: expected none or 0, since a position without an entry has no "
            f"value, got {tensor.fill_value}"
        )
    kind, shape = tensor.format, tensor.shape
    if kind in ("DVEC", "CVEC"):
        return _vector(tensor)
    if kind in ("DMATR", "DMATC"):
        dense = _values(tensor).reshape(shape if kind == "DMATR" else shape[::-1])
        return Matrix.from_dense(dense if kind == "DMATR" else dense.T, missing=None)
    if kind == "custom" or len(shape) != 2:
        raise FormatError(f"{path}: format: expected a predefined one of 1 or 2 dimensions")
    major, minor = _major_ids(tensor, shape[kind.endswith("C")]), _ids("indices_1", tensor)
    rows, columns = (minor, major) if kind.endswith("C") else (major, minor)
    values = _values(tensor)
    if not rows.size == columns.size == values.size == tensor.number_of_stored_values:
        raise ValueError(
            f"expected {tensor.number_of_stored_values} stored values, got {rows.size} rows, "
            f"{columns.size} columns, {values.size} values"
        )
    for name, ids, extent in (("row", rows, shape[0]), ("column", columns, shape[1])):
        if ids.size and int(ids.max()) >= extent:
            raise ValueError(f"{name} {int(ids.max())} of {extent}")
    A = _matrix(rows, columns, values, shape)
    return A if (structure := header.get("structure")) is None else _whole(A, structure, path)


def _whole(A: Matrix, structure: Any, path: str) -> Matrix:
    """A with the triangle that is not stored."""
    if structure not in TRIANGLES:
        raise FormatError(
            f"{path}: structure: expected {', '.join(TRIANGLES)} or none, got {structure!r}"
        )
    rows, columns = A.to_coo()[:2]
    if (rows < columns if TRIANGLES[structure] == "rows" else rows > columns).any():
        raise FormatError(f"{path}: structure: expected {structure}, got entries in both triangles")
    return symmetrised(A)


def _major_ids(tensor: Any, extent: int) -> np.ndarray:
    """The row of each entry, of a format by columns its column."""
    if not hasattr(tensor, "pointers_to_1"):
        return _ids("indices_0", tensor)
    offsets = _ids("pointers_to_1", tensor).astype(np.int64)
    counts = offsets[1:] - offsets[:-1]
    named = hasattr(tensor, "indices_0")
    listed = _ids("indices_0", tensor) if named else np.arange(extent, dtype=index_dtype(extent))
    if not offsets.size or offsets[0] != 0 or (counts < 0).any() or counts.size != listed.size:
        raise ValueError(f"pointers_to_1: expected {listed.size + 1} offsets that ascend from 0")
    return np.repeat(listed, counts)


def _ids(name: str, tensor: Any) -> np.ndarray:
    ids = np.asarray(getattr(tensor, name))
    if ids.dtype.kind not in "iu" or ids.ndim != 1 or (ids.size and int(ids.min()) < 0):
        raise ValueError(f"{name}: expected a list of integers >= 0, got {ids.dtype}")
    largest = int(ids.max(initial=0))
    if largest >= 2**63 - 1:
        raise ValueError(f"{name}: expected integers below 2**63 - 1, got {largest}")
    return ids.astype(index_dtype(largest), copy=False)


def _values(tensor: Any) -> np.ndarray:
    values = np.asarray(tensor.values)
    return values.astype(value_dtype(values.dtype), copy=False)


def _vector(tensor: Any) -> Vector:
    (size,) = tensor.shape
    values = np.array(_values(tensor))
    if tensor.format == "DVEC":
        if values.size != size:
            raise ValueError(f"values: expected {size}, got {values.size}")
        return Vector._of(size, values)
    return Vector.from_coo(_ids("indices_0", tensor), values, size=size)


def _matrix(rows: np.ndarray, columns: np.ndarray, values: np.ndarray, shape: Any) -> Matrix:
    """The Matrix of these entries, which may be in any order but not repeated; iso where the file
    holds one value.
    """
    iso = values.strides == (0,) and values.size > 0
    given: Any = values[0] if iso else values
    A = Matrix.from_coo(rows, columns, given, nrows=shape[0], ncols=shape[1])
    if A.nvals != rows.size:  # a single value is not refused twice
        raise ValueError(f"expected each position once, got {rows.size - A.nvals} repeated")
    return A
