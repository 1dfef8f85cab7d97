"""Matrix Market: coordinate and array, all fields but complex, all symmetries but Hermitian.

SciPy reads headers and writes files; the numbers are read by `table`, whose docstring says why.
"""

from __future__ import annotations

import functools
import io
import re
import types
from types import ModuleType
from typing import IO, NamedTuple

import numpy as np

from spgraph.containers import Matrix
from spgraph.errors import FormatError
from spgraph.io.coordinates import Coordinates
from spgraph.io.source import Source
from spgraph.io.table import LARGEST_ORDER, Form, Layout, read_table
from spgraph.process import lazy_imports
from spgraph.process.activity import step

_VALUES: dict[str, tuple[str, ...]] = {
    "pattern": (),
    "integer": ("int64",),
    "unsigned-integer": ("uint64",),
    "real": ("float64",),
}
STEP, HEAD = 1 << 20, 256  # entries written at once; bytes that hold a header of three lines
_COMMENT = re.compile(rb"(?m)^[ \t]*%[^\n]*")


def parse(source: Source, dtype: np.dtype | None = None) -> Coordinates:
    """The entries of `source`; of a dense array, those that are not 0. Duplicates are summed."""
    layout, dense = layout_of(source)
    layout = layout.read_as(dtype)
    nrows, ncols = layout.nrows or 0, layout.ncols or 0
    if dense:
        symmetry = "skew" if layout.skew else "symmetric" if layout.undirected else "general"
        (flat,) = read_table(source, layout.form, layout.count)
        rows, columns = _dense_positions(nrows, ncols, symmetry)
        stored = flat != 0
        rows, columns, values = rows[stored], columns[stored], [flat[stored]]
    else:
        rows, columns, *values = read_table(source, layout.form, layout.count)
        rows -= 1
        columns -= 1
    if layout.skew:
        refuse_diagonal(source.path, rows, columns)
        rows, columns = np.concatenate([rows, columns]), np.concatenate([columns, rows])
        values = [np.concatenate([values[0], negative(source.path, values[0])])]
    return Coordinates(
        source.path,
        rows,
        columns,
        values[0] if values else None,
        nrows,
        ncols,
        undirected=layout.undirected,
        duplicates=layout.duplicates,
    )


def layout_of(source: Source) -> tuple[Layout, bool]:
    """(the layout that the header declares, whether a dense array follows); `source` is left behind
    the header.
    """
    nrows, ncols, count, kind, field, symmetry = _header(source)
    dense = kind == "array"
    if dense:
        form = Form("one value", ids=0, values=_VALUES[field], comment=_COMMENT, markers=(b"%",))
        count = _listed(nrows, ncols, symmetry)
    else:
        form = Form(
            usage="'row column'"
            if field == "pattern"
            else f"'row column value' with {field} values",
            values=_VALUES[field],
            low=1,
            high=(nrows, ncols),
            beyond=f": line {source.line} declares {nrows} x {ncols}",
            below=": Matrix Market counts from 1",
            comment=_COMMENT,
            markers=(b"%",),
        )
    layout = Layout(
        form,
        count,
        nrows,
        ncols,
        undirected=symmetry == "symmetric",
        duplicates="plus",
        skew=symmetry == "skew-symmetric",
    )
    return layout, dense


def refuse_diagonal(path: str, rows: np.ndarray, columns: np.ndarray) -> None:
    """FormatError if an entry of a skew-symmetric matrix is on its diagonal."""
    if (rows == columns).any():
        raise FormatError(
            f"{path}: a skew-symmetric matrix has no diagonal entries, the file lists one"
        )


def negative(path: str, values: np.ndarray) -> np.ndarray:
    """-values, for the transposed entries of a skew-symmetric matrix; FormatError for overflow."""
    if values.dtype == np.int64 and values.size and values.min() == -(2**63):
        raise FormatError(
            f"{path}: the value {-(2**63)} of a skew-symmetric matrix has no negative"
        )
    return -values


def write(stream: IO[bytes], A: Matrix) -> None:
    """A in coordinate format: 'pattern' if every value is True, 'symmetric' if A is known to be.

    STEP entries at a time: SciPy looks for signals when all that it was given is written.
    """
    S = A.to_scipy(copy=False).tocoo()
    rows, columns = S.coords
    field, values = None, S.data
    if A.dtype == bool:
        field = "pattern" if bool(A._values.all()) else "integer"
        values = values.view(np.int8)
    elif A.dtype == np.float32:
        values = values.astype(np.float64)  # or 0.1f would be written as 0.1, which it is not
    if A.symmetric:
        below = rows >= columns
        rows, columns, values = rows[below], columns[below], values[below]
    kind = "symmetric" if A.symmetric else "general"

    def text(part: slice) -> memoryview:
        """The file of these entries alone."""
        some, made = (values[part], (rows[part], columns[part])), io.BytesIO()
        only_writes = types.SimpleNamespace(write=made.write)  # mmwrite seeks if it can
        _scipy_io().mmwrite(only_writes, type(S)(some, shape=S.shape), field=field, symmetry=kind)
        return made.getbuffer()

    for begin in range(0, max(values.size, 1), STEP):
        part = text(slice(begin, begin + STEP))
        head = bytes(part[:HEAD]).split(b"\n", 3)[:3]
        if begin == 0:
            stream.write(b"\n".join(head[:-1]) + b"\n%d %d %d\n" % (*S.shape, values.size))
        stream.write(part[sum(map(len, head)) + 3 :])
        step(begin, values.size)


class Header(NamedTuple):
    """What the two lines of a header say, as SciPy's mminfo gives it; `layout` is coordinate or
    array.
    """

    nrows: int
    ncols: int
    entries: int
    layout: str
    field: str
    symmetry: str

    def check(self) -> None:
        """Raise ValueError for what cannot be, and for what no Matrix holds."""
        nrows, ncols, _, layout, field, symmetry = self
        if field not in _VALUES:
            raise ValueError(
                f"field {field!r} is not supported (a graph has real, integer or no values)"
            )
        if layout == "array" and field == "pattern":
            raise ValueError("an array has values: 'pattern' goes with 'coordinate' alone")
        if symmetry not in ("general", "symmetric", "skew-symmetric"):
            raise ValueError(f"symmetry {symmetry!r} goes with complex values only")
        if symmetry != "general" and nrows != ncols:
            raise ValueError(f"{symmetry}, but not square: {nrows} x {ncols}")
        if symmetry == "skew-symmetric" and field in ("pattern", "unsigned-integer"):
            raise ValueError(f"{symmetry} needs values with a sign, the field is {field!r}")
        if max(nrows, ncols) > LARGEST_ORDER:
            raise ValueError(f"at most {LARGEST_ORDER} rows and columns are supported")


def _header(source: Source) -> Header:
    """The header of `source`, which is left behind it."""
    lines = _header_lines(source)
    try:
        sizes = lines[-1] if len(lines) > 1 else b""
        if not all(token.isdigit() for token in sizes.split()):
            raise ValueError(f"sizes {sizes[:60].decode('utf-8', 'replace')!r} are not integers")
        header = Header(*_scipy_io().mminfo(io.BytesIO(b"\n".join(lines) + b"\n")))
        header.check()
    except (ValueError, OverflowError) as error:
        raise FormatError(
            f"{source.path}, line {source.line}: not a Matrix Market header: {error}; expected "
            "'%%MatrixMarket matrix coordinate real|integer|pattern general|symmetric', comments "
            "with %, and a line 'rows columns entries'"
        ) from error
    return header


def _header_lines(source: Source) -> list[bytes]:
    """The first line, and that with sizes if there is one, without the comments between them."""
    lines: list[bytes] = []
    while (line := source.readline()) is not None:
        sizes = bool(line.strip()) and not line.lstrip().startswith(b"%")
        if sizes or not lines:
            lines.append(line)
        if sizes:
            break
    return lines


@functools.cache
def _scipy_io() -> ModuleType:
    """scipy.io, with what its Matrix Market functions import when they are first called."""
    with lazy_imports.whole():
        import scipy.io

        scipy.io.mminfo(io.BytesIO(b"%%MatrixMarket matrix coordinate pattern general\n0 0 0\n"))
    return scipy.io


def _listed(nrows: int, ncols: int, symmetry: str) -> int:
    if symmetry == "general":
        return nrows * ncols
    return nrows * (nrows + 1) // 2 if symmetry == "symmetric" else nrows * (nrows - 1) // 2


def _dense_positions(nrows: int, ncols: int, symmetry: str) -> tuple[np.ndarray, np.ndarray]:
    """(rows, columns) of the values of an array file, which lists them column by column, and of a
    symmetric matrix only those from the diagonal down.
    """
    if symmetry == "general":
        columns, rows = np.indices((ncols, nrows), dtype=np.int64).reshape(2, -1)
    else:
        columns, rows = np.triu_indices(nrows, 0 if symmetry == "symmetric" else 1)
    return rows, columns
