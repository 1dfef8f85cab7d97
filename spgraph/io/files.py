"""`read`, `write`: choose the format of a file, and do what all formats share."""

from __future__ import annotations

import os
from typing import IO, Literal, overload

import numpy as np

from spgraph.containers import Matrix, MatrixLike, Vector, as_matrix
from spgraph.containers.annotations import DType
from spgraph.containers.storage.casting import converted_exactly
from spgraph.errors import FormatError
from spgraph.io.coordinates import Coordinates, check_digits, compacted_matrix, symmetrized
from spgraph.io.edge_table import Edges
from spgraph.io.formats import binsparse_files, dimacs, edge_list, matrix_market, npz
from spgraph.io.ids import Ids, check_ids
from spgraph.io.request import Request, check_base, suffixes
from spgraph.io.source import Source, replacing


@overload
def read(
    path: str | os.PathLike[str],
    *,
    symmetric: bool | None = None,
    base: int | None = None,
    dtype: DType | None = None,
    compact: Literal[False] | None = None,
    names: Literal[False] = False,
) -> Matrix: ...


@overload
def read(
    path: str | os.PathLike[str],
    *,
    symmetric: bool | None = None,
    base: int | None = None,
    dtype: DType | None = None,
    compact: Literal[True],
    names: Literal[False] = False,
) -> tuple[Matrix, np.ndarray]: ...


@overload
def read(
    path: str | os.PathLike[str],
    *,
    symmetric: bool | None = None,
    base: int | None = None,
    dtype: DType | None = None,
    compact: Literal[False] | None = None,
    names: Literal[True],
) -> Edges: ...


def read(
    path: str | os.PathLike[str],
    *,
    symmetric: bool | None = None,
    base: int | None = None,
    dtype: DType | None = None,
    compact: bool | None = None,
    names: bool = False,
) -> Matrix | tuple[Matrix, np.ndarray] | Edges:
    r"""The graph in the file `path`, as a Matrix on the CPU; the suffix selects the format::

      .mtx    Matrix Market: coordinate or array; pattern, integer or real; general, symmetric or
              skew-symmetric, as the header declares.
      .gr     DIMACS: 'p sp N M', then lines 'a tail head weight': directed, int64 weights.
              PACE: 'p tw N M', then lines 'u v': undirected, a pattern.
      .txt .el .wel .edges .csv .tsv
              edge list: lines 'source target' or 'source target weight', as the first. Directed; a
              pattern, int64 weights, or float64 where one is none of int64 (none may be rounded).
      .npz    what `spgraph.write` or scipy.sparse.save_npz wrote.
      .h5 .hdf5 .bsp.npz  Binsparse 0.1: any predefined format, halves of symmetric matrices. The
              HDF5 library may hang on a damaged .h5: take .bsp.npz from sources without trust.

    Each but these may be compressed: .gz, .bz2, .xz or .zst follows the suffix. For a pipe without
    a suffix, such as /dev/stdin, the first bytes determine format and compression. Blanks or a
    comma separate the numbers of an edge list, a comment runs from '#' or '%' to the end of the
    line, and a first line whose first two fields are not numbers is a header. There are as many
    vertices as the header says, or the largest id, counted from `base`, plus 1. Duplicate edges
    become one entry: with the least weight (as in GAP), or with the sum in .mtx and .npz.

    `symmetric=True` stores every edge of a directed file in both directions (where the file lists
    both, both get the lesser weight) of a square matrix; False requires a directed file; None
    follows the file. An .npz's own declaration of symmetry is verified by a checksum over all
    entries, the argument is not. `base`, 0 or 1, is the least vertex id, not guessed: 0 by default
    for edge lists, 1 for .gr and .mtx (whose standard fixes it). `dtype` is the type of the values
    ("uint64": integers beyond int64). A float type accepts `inf`, `nan` and decimals for integers.

    `compact=True` is for sparse ids of up to 63 bits: the vertices that have an edge are renumbered
    0, 1, ... by ascending id, and the result is (Matrix, ids), where ids[k], of int64, is the id of
    vertex k in the file, less `base`. By default (None) row pointers of over 1 GiB and over 64
    times the bytes of ids and values are a MemoryError before they are allocated; False allocates.

    `names=True` is for an .npz that was written with `ids`, else a FormatError: the result is
    Edges(matrix, ids). `from_edges` reads tables with names of vertices.

    Raises FileNotFoundError for a missing file; FormatError, with file and line, for one that
    violates its format (an unknown suffix, a damaged compressed stream, a wrong number of edges or
    columns, an id that is no integer or out of range, ...) or has a value that `dtype` cannot
    represent; MemoryError, before allocating, for a graph that needs more than is available;
    ValueError for arguments that contradict the file. Pickled data is never loaded.

    >>> import pathlib, tempfile
    >>> import spgraph as sg
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "triangle.el"
    >>> _ = path.write_text("# a triangle\n0 1\n1 2\n2 0\n")
    >>> A = sg.read(path, symmetric=True)
    >>> A.shape, A.nvals
    ((3, 3), 6)
    """
    request = Request.of(path, symmetric, base, dtype, compact, names)
    return _asked(request, *read_named(request))


def read_named(request: Request) -> tuple[Matrix, np.ndarray | None, Ids | None]:
    """As `read`: (the Matrix, the ids that `compact` finds, with `names` the names of an .npz)."""
    found, ids = _parsed(request)
    A, numbers = _matrix_of(request, found)
    A = _directed(request, A)
    if request.dtype is not None and request.dtype != A.dtype:
        A = _typed(request.name, A, request.dtype)
    return A, numbers, ids


def _asked(
    request: Request, A: Matrix, numbers: np.ndarray | None, ids: Ids | None
) -> Matrix | tuple[Matrix, np.ndarray] | Edges:
    """What `read` returns of what `read_named` does. Raises as `read` does."""
    if not request.names:
        return A if numbers is None else (A, numbers)
    if numbers is not None:
        raise ValueError("names: expected False beside compact=True: names are of dense vertices")
    if ids is None:
        raise FormatError(
            f"{request.name}: expected an .npz with the names of vertices, as written by "
            "write(path, A, ids=ids); leave out names=True"
        )
    return Edges(A, ids)


def _format_of(source: Source) -> str:
    """The suffix of the format that the first bytes of a pipe have."""
    if source.starts_with(b"PK"):
        return ".npz"
    if source.starts_with(b"%%MatrixMarket"):
        return ".mtx"
    if source.starts_with(b"\x89HDF"):
        raise FormatError(
            f"{source.path}: expected a format that is read from its beginning, got HDF5; give the "
            "name of the file, which ends with .h5"
        )
    lines = (line.split(None, 1) for line in source.head().splitlines())
    word = next((words[0] for words in lines if words and words[0] != b"c"), b"")
    return ".gr" if word == b"p" else ".el"


def _matrix_of(request: Request, found: Matrix | Coordinates) -> tuple[Matrix, np.ndarray | None]:
    """The Matrix, and with `compact` the ids of its vertices."""
    if isinstance(found, Matrix):
        return compacted_matrix(request.name, found) if request.compact else (found, None)
    ids = None
    if request.compact:
        found, ids = found.compacted()
    found.check_size(request.compact)
    return found.to_matrix(), ids


def _directed(request: Request, A: Matrix) -> Matrix:
    """A, with every edge in both directions for `symmetric`. Raises as `read` does."""
    request.check_direction(bool(A.symmetric))
    if not request.symmetric or A.symmetric:
        return A
    if A.nrows != A.ncols:
        raise ValueError(
            f"symmetric: expected a square matrix in {request.name}, got {A.nrows} x {A.ncols}"
        )
    return symmetrized(A)


def _typed(name: str, A: Matrix, dtype: np.dtype) -> Matrix:
    """A with its values converted to `dtype`; FormatError for one that it cannot represent."""
    try:
        values = converted_exactly("dtype", A.values, dtype)
    except ValueError as error:
        raise FormatError(f"{name}: {error}") from error
    arrays = A.indptr, A.indices, values
    # values that differed may be equal now
    return Matrix._of(A.nrows, A.ncols, *arrays, iso=A.iso, symmetric=A.symmetric or None)


def write(path: str | os.PathLike[str], A: MatrixLike, *, ids: Ids | None = None) -> None:
    """Writes the Matrix `A`, or what converts to one, to `path`; the suffix selects the format.

    .npz keeps everything: index types, iso values, whether A is known to be symmetric.
    scipy.sparse.load_npz reads it, too, unless A is iso. .h5, .hdf5 and .bsp.npz are Binsparse's,
    for other libraries of GraphBLAS (needs the package binsparse). .mtx, also compressed as
    .mtx.gz, .mtx.bz2, .mtx.xz or .mtx.zst, is for other programs: the header says 'symmetric' if A
    is known to be, and 'pattern' if all values are True; a bool Matrix with a False value is
    written as integers 0 and 1; read back, values have the type int64, uint64 or float64.

    `ids` are names of the columns, and of the rows of a square Matrix: an .npz keeps them, and
    `read(path, names=True)` returns them.

    The write is atomic: a file at `path` stays as it is until the new one is complete.
    Raises FormatError for another suffix, and for `ids` with .mtx, which has no place for names;
    FileNotFoundError where the folder is missing; DimensionMismatch for another number of names.

    >>> import pathlib, tempfile
    >>> import spgraph as sg
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "edge.npz"
    >>> sg.write(path, sg.Matrix.from_coo([0], [1], nrows=2, ncols=2))
    >>> sg.read(path).nvals
    1
    """
    name = os.fsdecode(path)
    suffix, compression = suffixes(name, (".mtx", ".npz", *binsparse_files.SUFFIXES))
    if suffix != ".mtx" and compression:
        raise FormatError(f"{name}: expected {suffix} alone, which is not compressed from outside")
    check_place(name, ids)
    A = as_matrix(A, "write: A").to("cpu")
    check_ids("write", ids, A)
    with replacing(name, compression) as stream:
        if binsparse_files.takes(name):
            binsparse_files.write(stream, name, A)
        else:
            write_to(stream, suffix, A, ids)


def check_place(name: str, ids: Ids | None) -> None:
    """FormatError for names and a format that has no place for them."""
    if ids is not None and (not name.lower().endswith(".npz") or binsparse_files.takes(name)):
        raise FormatError(f"{name}: expected .npz beside ids: other formats do not keep names")


def write_to(stream: IO[bytes], suffix: str, x: Matrix | Vector, ids: Ids | None = None) -> None:
    """Write `x`, on the CPU, to a stream, in the format of a suffix: .npz, or .mtx for a Matrix;
    `ids`, for .npz, fit.
    """
    if isinstance(x, Vector) or suffix == ".npz":
        npz.write(stream, x, ids)
    else:
        matrix_market.write(stream, x)


def _no_vector(name: str, found: Matrix | Vector | Coordinates) -> Matrix | Coordinates:
    """What `read` takes; FormatError for a Vector."""
    if isinstance(found, Vector):
        raise FormatError(f"{name}: expected a Matrix, it holds a Vector; spgraph.load reads it")
    return found


def _parsed(request: Request) -> tuple[Matrix | Coordinates, Ids | None]:
    """What the file holds; of a pipe without a suffix the first bytes decide on the format."""
    name, suffix, compression = request.name, request.suffix, request.compression
    named, compact = request.names, request.compact
    if binsparse_files.takes(name):
        read = _no_vector(name, binsparse_files.parse_any(name, compact))
        if isinstance(read, Coordinates) and suffix != ".npz":
            check_digits(name, read.values, request.dtype)
        return read, None
    if suffix == ".npz" and not compression:
        return npz.parse(name, compact, named=named)
    with Source(name, compression if suffix else None) as source:
        suffix = suffix or _format_of(source)
        check_base(suffix, request.base)
        if suffix == ".npz":
            return npz.parse(source, compact, named=named)
        found = _parse(source, suffix, request)
    if isinstance(found, Coordinates):
        check_digits(name, found.values, request.dtype)
    return found, None


def _parse(source: Source, suffix: str, request: Request) -> Matrix | Coordinates:
    if suffix == ".mtx":
        return matrix_market.parse(source, request.dtype)
    if suffix == ".gr":
        return dimacs.parse(source, 1 if request.base is None else request.base, request.dtype)
    return edge_list.parse(source, request.base or 0, request.dtype, request.compact)
