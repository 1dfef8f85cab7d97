"""`read` and `write`: which format a file has, and what all formats have in common."""

from __future__ import annotations

import os
from typing import Any, Literal, overload

import numpy as np

from spgraph.build import check_compact
from spgraph.containers import Matrix, Vector
from spgraph.containers.casting import converted_exactly
from spgraph.containers.matrix import as_matrix
from spgraph.containers.vector import value_dtype
from spgraph.errors import FormatError
from spgraph.io import dimacs, edge_list, matrix_market, npz
from spgraph.io.coordinates import Coordinates, check_digits, compacted_matrix, symmetrised
from spgraph.io.source import COMPRESSIONS, Source, replacing

KNOWN = (".mtx", ".gr", *edge_list.SUFFIXES, ".npz")


@overload
def read(
    path: str | os.PathLike[str],
    *,
    symmetric: bool | None = None,
    base: int | None = None,
    dtype: Any = None,
    compact: Literal[False] | None = None,
) -> Matrix: ...


@overload
def read(
    path: str | os.PathLike[str],
    *,
    symmetric: bool | None = None,
    base: int | None = None,
    dtype: Any = None,
    compact: Literal[True],
) -> tuple[Matrix, np.ndarray]: ...


def read(
    path: str | os.PathLike[str],
    *,
    symmetric: bool | None = None,
    base: int | None = None,
    dtype: Any = None,
    compact: bool | None = None,
) -> Matrix | tuple[Matrix, np.ndarray]:
    r"""The graph in the file `path`, as a Matrix on the CPU; its suffix says the format.

    .mtx    Matrix Market: coordinate or array; pattern, integer or real; general, symmetric or
            skew-symmetric. What the Matrix is, the header says.
    .gr     DIMACS: 'p sp N M', then lines 'a tail head weight': directed, int64 weights.
            PACE: 'p tw N M', then lines 'u v': undirected, a pattern.
    .txt .el .wel .edges .csv .tsv
            edge list: lines 'source target' or 'source target weight', as the first one is:
            directed; a pattern, or int64 weights, or float64 if any weight is no integer of int64
            (`dtype="uint64"` reads larger ones to the last digit).
    .npz    what `spgraph.write` or scipy.sparse.save_npz wrote, as it was.

    Each of them may be compressed: .gz, .bz2, .xz or .zst behind the suffix. Of a pipe without a
    suffix, such as /dev/stdin, the first bytes say format and compression. Edge lists take any run
    of blanks, or a comma, between numbers, and comments from '#' or '%' to the end of a line; a
    first line whose first two fields are no numbers names the columns and is skipped.

    `symmetric=True` stores every edge of a directed file both ways (where the file lists both, the
    lesser weight counts for both); it needs a square matrix. False says that edges go one way only,
    and contradicts a file that declares them undirected. None follows the file: edge lists and 'p
    sp' are directed. `base`, 0 or 1, is the least vertex id; it defaults to 0 for edge lists and to
    1 for .gr and .mtx, where the format fixes it. Neither is guessed from the ids.

    The number of vertices is what the header declares, or the largest id counted from `base`, plus
    1. An edge that comes twice is one entry: without weights nothing is lost; in edge lists and .gr
    files the lesser weight counts (as in the GAP benchmark, and what shortest paths need); in
    Matrix Market and .npz values are summed, as SciPy does.

    `dtype` is the type of the values. They are converted, and one that the type does not hold (out
    of range, NaN or a fraction where it is one of integers) is a FormatError; a float type also
    takes `inf`, `nan` and decimals where the format or the header asks for integers.

    `compact=True` is for ids far apart, of up to 63 bits: the vertices that have an edge are
    numbered 0, 1, ... by ascending id, and (Matrix, ids) is returned. ids, an array of int64, has
    for each vertex the number that it would have had without it: the id in the file, counted from
    `base`. By default (None) a file whose row pointers would take over 1 GiB and over 64 times the
    bytes of its ids and values is a MemoryError before they are allocated; False allocates them.

    Nothing read is believed: what an .npz says of its symmetry is tested by a sum over all entries,
    and dropped where they say otherwise. The argument `symmetric` is the caller's word.

    Raises FileNotFoundError for a missing file; FormatError, with file and line, for a file that
    breaks its format: an unknown suffix, a broken compressed stream, a wrong header, fewer or more
    edges than declared, an id that is no integer or out of range, a value that is no number, a
    wrong number of columns, a carriage return within a line. MemoryError, before it is taken, for
    more memory than there is. ValueError for arguments that contradict the file. Pickled data is
    never read.

    >>> import pathlib, tempfile
    >>> import spgraph as sg
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "triangle.el"
    >>> _ = path.write_text("# a triangle\n0 1\n1 2\n2 0\n")
    >>> A = sg.read(path, symmetric=True)
    >>> A.shape, A.nvals
    ((3, 3), 6)
    """
    name, suffix, compression = check_arguments(path, symmetric, base, compact)
    kind = None if dtype is None else value_dtype(dtype)
    if suffix == ".npz" and not compression:
        found = npz.parse(name, compact)
    else:
        with Source(name, compression if suffix else None) as source:
            suffix = suffix or _format_of(source)
            check_base(suffix, base)
            found = _parse(source, suffix, base, kind, compact)
    if isinstance(found, Coordinates) and suffix != ".npz":
        check_digits(name, found.values, kind)
    A, ids = _matrix_of(name, found, compact)
    check_direction(name, symmetric, bool(A.symmetric))
    if symmetric and not A.symmetric:
        if A.nrows != A.ncols:
            raise ValueError(
                f"symmetric: expected a square matrix in {name}, got {A.nrows} x {A.ncols}"
            )
        A = symmetrised(A)
    if kind is not None and kind != A.dtype:
        A = _typed(name, A, kind)
    return A if ids is None else (A, ids)


def check_arguments(
    path: str | os.PathLike[str],
    symmetric: bool | None,
    base: int | None,
    compact: bool | None = None,
) -> tuple[str, str, str]:
    """The name of the file, and the suffixes that say its format and compression ('' for none);
    raises as `read` does. A pipe may have neither.
    """
    name = os.fsdecode(path)
    if type(base) not in (int, type(None)) or base not in (None, 0, 1):
        raise ValueError(f"base: expected 0, 1 or None (the format's own), got {base!r}")
    if symmetric is not None and not isinstance(symmetric, bool):
        raise ValueError(
            f"symmetric: expected True, False or None (as the file says), got {symmetric!r}"
        )
    check_compact("read", compact)
    try:
        suffix, compression = _suffixes(name, KNOWN)
    except FormatError:
        if not _is_unnamed(name):
            raise
        return name, "", ""
    if not os.path.exists(name):
        raise FileNotFoundError(f"path: there is no file {name}")
    if os.path.isdir(name):
        raise IsADirectoryError(f"path: expected a file, {name} is a folder")
    check_base(suffix, base)
    return name, suffix, compression


def check_base(suffix: str, base: int | None) -> None:
    """ValueError for ids counted from where those of the format never are."""
    if (suffix, base) in ((".mtx", 0), (".npz", 1)):
        raise ValueError(f"base: {suffix} files never count from {base}; leave it out")


def is_pipe(name: str) -> bool:
    """Whether what is there can be read once only, from its beginning to its end."""
    return os.path.exists(name) and not os.path.isfile(name) and not os.path.isdir(name)


def _is_unnamed(name: str) -> bool:
    """Whether it is a pipe, or what a shell gives for one."""
    streams = name.startswith(("/dev/", "/proc/")) and os.path.isfile(name)
    return streams or is_pipe(name)


def _format_of(source: Source) -> str:
    """The suffix that the first bytes of a pipe ask for."""
    if source.starts_with(b"PK"):
        return ".npz"
    if source.starts_with(b"%%MatrixMarket"):
        return ".mtx"
    lines = (line.split(None, 1) for line in source.head().splitlines())
    word = next((words[0] for words in lines if words and words[0] != b"c"), b"")
    return ".gr" if word == b"p" else ".el"


def _matrix_of(
    name: str, found: Matrix | Coordinates, compact: bool | None
) -> tuple[Matrix, np.ndarray | None]:
    """The Matrix, and with `compact` the ids of its vertices."""
    if isinstance(found, Matrix):
        return compacted_matrix(name, found) if compact else (found, None)
    ids = None
    if compact:
        found, ids = found.compacted()
    found.check_size(compact)
    return found.to_matrix(), ids


def _typed(name: str, A: Matrix, dtype: np.dtype) -> Matrix:
    """A with values of another type, which holds all of them."""
    try:
        values = converted_exactly("dtype", A.values, dtype)
    except ValueError as error:
        raise FormatError(f"{name}: {error}") from error
    arrays = A.indptr, A.indices, values
    # values that differed may be equal now
    return Matrix(A.nrows, A.ncols, *arrays, iso=A.iso, symmetric=A.symmetric or None)


def check_direction(name: str, symmetric: bool | None, undirected: bool) -> None:
    """ValueError if the caller calls a graph directed that the file declares undirected."""
    if symmetric is False and undirected:
        raise ValueError(
            f"symmetric: {name} declares an undirected graph, False contradicts it; leave it out"
        )


def write(path: str | os.PathLike[str], A: Any) -> None:
    """Writes the Matrix `A`, or what one can be made from, to `path`; its suffix says the format.

    .npz keeps everything: index types, iso values, whether A is known to be symmetric. A file of a
    Matrix that is not iso is also one of scipy.sparse.load_npz. .mtx, also compressed as .mtx.gz,
    .mtx.bz2, .mtx.xz or .mtx.zst, is for other programs: the header says 'symmetric' where A is
    known to be, and 'pattern' where all values are True; a bool Matrix with False among its values
    is written as integers 0 and 1; types come back as int64, uint64 or float64.

    The file appears whole or not at all: what was at `path` stays until the new file is complete.
    Raises FormatError for another suffix, FileNotFoundError where the folder is missing.

    >>> import pathlib, tempfile
    >>> import spgraph as sg
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "edge.npz"
    >>> sg.write(path, sg.Matrix.from_coo([0], [1], nrows=2, ncols=2))
    >>> sg.read(path).nvals
    1
    """
    name = os.fsdecode(path)
    suffix, compression = _suffixes(name, (".mtx", ".npz"))
    if suffix == ".npz" and compression:
        raise FormatError(f"{name}: expected .npz alone, which is compressed already")
    A = as_matrix(A).to("cpu")
    with replacing(name, compression) as stream:
        (npz if suffix == ".npz" else matrix_market).write(stream, A)


def save(path: str | os.PathLike[str], x: Any) -> None:
    """Writes a Vector, or a Matrix or what one can be made from, to an .npz file of plain arrays.

    What is written comes back from `load` as it was: positions, values, types, whatever device it
    is on now. The file appears whole or not at all. FormatError for another suffix.

    >>> import pathlib, tempfile
    >>> import spgraph as sg
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "ranks.npz"
    >>> sg.save(path, sg.Vector.from_coo([2], [0.5], size=4))
    >>> list(sg.load(path))
    [(2, 0.5)]
    """
    name = _npz_name(path)
    x = (x if isinstance(x, Vector) else as_matrix(x, "x")).to("cpu")
    with replacing(name, "") as stream:
        npz.write(stream, x)


def load(path: str | os.PathLike[str]) -> Matrix | Vector:
    """The Vector or Matrix in an .npz file that `save` (or `write`, or SciPy's save_npz) wrote, on
    the CPU.

    Nothing is unpickled, and every index is checked: FormatError for a file that is something else.
    """
    name = _npz_name(path)
    if not os.path.exists(name):
        raise FileNotFoundError(f"path: there is no file {name}")
    if os.path.isdir(name):
        raise IsADirectoryError(f"path: expected a file, {name} is a folder")
    found = npz.parse_any(name, compact=False)
    return found.to_matrix() if isinstance(found, Coordinates) else found


def _npz_name(path: str | os.PathLike[str]) -> str:
    name = os.fsdecode(path)
    if not name.lower().endswith(".npz"):
        raise FormatError(f"{name}: expected a name that ends with .npz")
    return name


def _suffixes(path: str, known: tuple[str, ...]) -> tuple[str, str]:
    """The suffixes that say format and compression ('' for none), in lower case."""
    stem, suffix = os.path.splitext(path.lower())
    compression = suffix if suffix in COMPRESSIONS else ""
    if compression:
        suffix = os.path.splitext(stem)[1]
    if suffix not in known:
        raise FormatError(
            f"{path}: unknown suffix {suffix!r}; known are {' '.join(known)}, each also followed "
            f"by one of {' '.join(COMPRESSIONS)}; rename the file or make a link to it"
        )
    return suffix, compression


def _parse(
    source: Source, suffix: str, base: int | None, dtype: np.dtype | None, compact: bool | None
) -> Matrix | Coordinates:
    if suffix == ".npz":
        return npz.parse(source, compact)
    if suffix == ".mtx":
        return matrix_market.parse(source, dtype)
    if suffix == ".gr":
        return dimacs.parse(source, 1 if base is None else base, dtype)
    return edge_list.parse(source, base or 0, dtype, compact)
