"""Files of the Binsparse specification, in HDF5 (.h5, .hdf5) and in NumPy archives (.bsp.npz).

Source: Brock, Davis, Kitchen, Welch, Virshup, Ahrens, "Binary Sparse Format Specification", version
0.1 (2025). The package binsparse, its reference implementation, reads and writes the containers.
"""

from __future__ import annotations

import io
import math
import re
from types import ModuleType
from typing import IO, Any

import numpy as np

from spgraph import checks
from spgraph.containers import Matrix, Vector, memory
from spgraph.containers.storage.arrays import index_dtype
from spgraph.containers.storage.values import value_dtype
from spgraph.errors import FormatError
from spgraph.io.archive import BROKEN, Archive, is_of_disk
from spgraph.io.coordinates import Coordinates, symmetrized
from spgraph.process import lazy_imports

SUFFIXES = (".h5", ".hdf5")
ARCHIVE = ".bsp.npz"

Found = Matrix | Vector | Coordinates
# of the key "structure": which triangle is stored
TRIANGLES = {"symmetric_lower": "rows", "symmetric_upper": "columns"}
TRIANGLES |= {f"hermitian{name[9:]}": larger for name, larger in TRIANGLES.items()}


def takes(name: str) -> bool:
    """Whether a file of this name is one of Binsparse."""
    return name.lower().endswith((*SUFFIXES, ARCHIVE))


def parse_any(path: str, compact: bool | None = None) -> Found:
    """What the file holds. FormatError where it breaks the specification, or holds what neither a
    Matrix nor a Vector is; the library's absence is a ModuleNotFoundError. MemoryError if row
    pointers would dwarf the entries, unless `compact` is given.
    """
    binsparse, h5py = _libraries(path)
    try:
        if path.lower().endswith(ARCHIVE):
            with open(path, "rb") as stream:
                members = Members(Archive(stream))
                container = binsparse.NPZBinsparseContainer(members)
                for key, declared in container.read_header()["data_types"].items():
                    _check_type(key, declared, members.archive.header(key).dtype)
                return _tensor(container, path, compact)
        with h5py.File(path, "r") as file:
            container = binsparse.HDF5BinsparseContainer(file)
            for key, declared in container.read_header()["data_types"].items():
                _check_type(key, declared, _stored(file, key, path))
            return _tensor(container, path, compact)
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
        with lazy_imports.whole():
            import binsparse
            import h5py
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{path}: files of Binsparse need the package {error.name}, which is not installed: "
            "pip install 'spgraph[binsparse]'",
            name=error.name,
        ) from error
    return binsparse, h5py


def _stored(file: Any, key: str, path: str) -> np.dtype:
    """The type of an array in HDF5, which is not read: values of other files are refused, which it
    may name, and more values than there is memory for.
    """
    import h5py

    dataset = file[key] if isinstance(file.get(key, getlink=True), h5py.HardLink) else None
    if not isinstance(dataset, h5py.Dataset) or dataset.external or dataset.is_virtual:
        raise ValueError(f"{key}: expected an array within the file")
    memory.require(dataset.size * dataset.dtype.itemsize, f"{path}: {key}")
    if dataset.size and not dataset.id.get_storage_size():
        raise ValueError(f"{key}: expected {dataset.size} values, the file has none")
    return dataset.dtype


def _check_type(key: str, declared: Any, stored: np.dtype) -> None:
    """ValueError unless an array has the type that the header declares: the library would convert
    it, with what is lost thereby.
    """
    name = re.sub(r"^(iso|complex)\[(.*)\]$", r"\2", re.sub(r"^iso\[(.*)\]$", r"\1", str(declared)))
    if stored.itemsize == 1 and stored.kind in "biu" and name == "bint8":
        return
    if stored.newbyteorder("=").name != name:
        raise ValueError(f"{key}: expected values of the declared type {declared}, got {stored}")


def _tensor(container: Any, path: str, compact: bool | None) -> Found:
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
    if kind in ("DVEC", "DMATR", "DMATC"):
        memory.require(4 * math.prod(shape) * tensor.values.itemsize, f"{path}: {kind}")
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
    count, nbytes = rows.size, rows.nbytes + columns.nbytes + values.nbytes
    checks.row_pointers(path, shape[0], count, nbytes, compact, square=shape[0] == shape[1])
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
    return symmetrized(A)


def _major_ids(tensor: Any, extent: int) -> np.ndarray:
    """The row of each entry, of a format by columns its column."""
    if not hasattr(tensor, "pointers_to_1"):
        return _ids("indices_0", tensor)
    offsets = _ids("pointers_to_1", tensor).astype(np.int64)
    counts = offsets[1:] - offsets[:-1]
    listed = _ids("indices_0", tensor) if hasattr(tensor, "indices_0") else None
    rows, entries = extent if listed is None else listed.size, np.size(tensor.indices_1)
    # before anything is made of the extent, which the file may claim to be of any size
    ascending = offsets.size == rows + 1 and offsets[0] == 0 and not (counts < 0).any()
    if not ascending or offsets[-1] != entries:
        raise ValueError(
            f"pointers_to_1: expected {rows + 1} offsets that ascend from 0 to {entries}"
        )
    return np.repeat(np.arange(rows, dtype=index_dtype(rows)) if listed is None else listed, counts)


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
    indices = _ids("indices_0", tensor)
    if indices.size and int(indices.max()) >= size:
        raise ValueError(f"indices_0: expected positions below {size}, got {indices.max()}")
    return Vector.from_coo(indices, values, size=size)


def _matrix(rows: np.ndarray, columns: np.ndarray, values: np.ndarray, shape: Any) -> Matrix:
    """The Matrix of these entries, which may be in any order but not repeated; iso where the file
    holds one value.
    """
    iso = values.strides == (0,) and values.size > 0
    given: Any = values[0] if iso else values
    A = Matrix.from_coo(rows, columns, given, nrows=shape[0], ncols=shape[1], compact=False)
    if A.nvals != rows.size:  # a single value is not refused twice
        raise ValueError(f"expected each position once, got {rows.size - A.nvals} repeated")
    return A
