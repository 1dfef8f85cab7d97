"""`from_edges`: a graph from a table of edges whose vertices have names."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spgraph.checks import binary
from spgraph.containers import Matrix
from spgraph.containers.annotations import BinaryLike
from spgraph.containers.storage.numbers import flags
from spgraph.errors import DimensionMismatch, DomainMismatch, FormatError
from spgraph.io.arrow_columns import (
    column_of,
    encoded,
    first_true,
    load_pyarrow,
    missing,
    name_column,
)
from spgraph.io.coordinates import symmetrized
from spgraph.io.ids import Ids
from spgraph.io.source import BROKEN, COMPRESSIONS, Source, is_unnamed, open_compressed
from spgraph.io.table import is_rounded
from spgraph.process import lazy_imports
from spgraph.semirings import BinaryOp

if TYPE_CHECKING:
    import pyarrow

PARTS = ("source", "target", "weight")


class Edges(NamedTuple):
    """The result of `from_edges`: the adjacency Matrix, and the names of its vertices.

    >>> import spgraph as sg
    >>> A, ids = sg.from_edges((["x", "y"], ["y", "z"]))
    >>> A.shape, ids
    ((3, 3), Ids(3 names: 'x', 'y', 'z'))
    """

    matrix: Matrix
    ids: Ids


def from_edges(
    table: Any,
    source: Any = "source",
    target: Any = "target",
    weight: Any = None,
    *,
    symmetric: bool = False,
    dup_op: BinaryLike | None = None,
) -> Edges:
    """`Edges(matrix, ids)`: the adjacency Matrix, on the CPU, of a table with a row for each edge,
    and the names of its vertices, `Ids`.

    `table` is a DataFrame of pandas or polars, a Table of pyarrow (or what gives a stream of
    Arrow's), a path of .parquet, .csv or .tsv (the latter two also .gz, .bz2, .xz or .zst; of a
    pipe without a suffix, such as /dev/stdin, the first bytes tell which it is), a mapping of
    columns by name, a tuple of two or three arrays: sources, targets and perhaps weights, or a list
    of edges, each a pair (source, target) or, all of them, (source, target, weight).
    `source`, `target` and `weight` are names of columns; other columns are not looked at.
    Without `weight` the Matrix is a pattern, True at each edge; its values are of the column's type
    (bool, an integer or floating-point one) otherwise.

    Vertices have names, all strings or all integers, in both columns the same ones. They are
    numbered as they appear first, those of the source column before those that only the target
    column has: as pandas.factorize numbers both in a row. Names of integers become int64, or uint64
    where both columns are unsigned. In .csv and .tsv, whose first line has the names of columns,
    names are integers if each is one as Python writes it (so 007 is a string), weights are int64,
    or float64 if one is not an integer; then an integer that float64 rounds is a FormatError.

    `symmetric=True` stores each edge in both directions; an edge and its reverse are then the same.
    `dup_op`, an operator or its name such as "plus" or "min", combines the weights of edges that
    are listed more than once, in the order of the table; None forbids them. Without `weight` they
    are one edge.

    Raises ValueError for a name or a weight that is missing (null, None, NaN), with its row, for a
    repeated edge, and for a column that does not exist; OverflowError where the type of the weights
    does not hold a sum or a product; DomainMismatch for other types; DimensionMismatch for columns
    of different lengths; FormatError for a damaged file or an unknown suffix; FileNotFoundError for
    a missing one.

    >>> import spgraph as sg
    >>> roads = {"from": ["Ulm", "Ulm", "Bonn"], "to": ["Bonn", "Kiel", "Kiel"], "km": [40, 80, 30]}
    >>> A, ids = sg.from_edges(roads, source="from", target="to", weight="km", symmetric=True)
    >>> ids.label(sg.sssp(A, ids["Ulm"]).distance).to_pydict()
    {'name': ['Ulm', 'Bonn', 'Kiel'], 'value': [0, 40, 70]}
    """
    flags("from_edges", symmetric=symmetric)
    op = None if dup_op is None else binary("from_edges", "dup_op", dup_op)
    with lazy_imports.forks_wait:
        found, text = _columns(table, dict(zip(PARTS, (source, target, weight), strict=True)))
        values = _weights(found.pop("weight")) if "weight" in found else None
        named = {part: name_column("from_edges", part, found[part]) for part in found}
        positions, names = encoded("from_edges", named)
        ids = Ids._of(_integers(names) if text else names)
    rows, columns = np.split(positions, 2)
    if symmetric:
        rows, columns = np.minimum(rows, columns), np.maximum(rows, columns)
    A = _matrix(rows, columns, values, op, ids)
    return Edges(symmetrized(A) if symmetric else A, ids)


def _matrix(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray | None, op: BinaryOp | None, ids: Ids
) -> Matrix:
    n = len(ids)
    if values is None:
        return Matrix.from_coo(rows, columns, nrows=n, ncols=n)
    try:
        return Matrix.from_coo(rows, columns, values, nrows=n, ncols=n, dup_op=op)
    except ValueError:
        keys = rows.astype(np.int64) * n + columns
        first, counts = np.unique(keys, return_index=True, return_counts=True)[1:]
        repeated = first[counts > 1]
        if op is not None or not repeated.size:
            raise
        row = int(repeated.min())
        again = int(np.flatnonzero(keys == keys[row])[1])
        edge = " -> ".join(repr(ids._array[int(k)].as_py()) for k in (rows[row], columns[row]))
        raise ValueError(
            f"from_edges: expected each edge once, got {edge} in rows {row} and {again} (counted "
            'from 0); give an operator that combines their weights, such as dup_op="plus" or "min"'
        ) from None


def _weights(given: Any) -> np.ndarray:
    """The column as an array. Raises as `from_edges` does."""
    arrow = load_pyarrow()
    column = column_of("from_edges", "weight", given)
    kind = column.type
    if arrow.types.is_null(kind):  # of an empty list
        return np.empty(0)
    if not (
        arrow.types.is_integer(kind)
        or arrow.types.is_boolean(kind)
        or arrow.types.is_float32(kind)
        or arrow.types.is_float64(kind)
    ):
        raise DomainMismatch(
            "from_edges: weight: expected a column of bool, integers, float32 or float64, got "
            f"{kind}; convert it"
        )
    if arrow.types.is_floating(kind):
        nan = arrow.compute.is_nan(column)
        if arrow.compute.any(nan).as_py():
            raise missing("from_edges", "weight", first_true(nan), "NaN")
    values: np.ndarray = column.to_numpy()
    return values


# --- the columns of a table -----------------------------------------------------------------------


def _columns(table: Any, wanted: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """(columns by what they are of an edge: source, target and perhaps weight; whether names were
    read from a file of text).
    """
    arrow = load_pyarrow()
    text = False
    if wanted["weight"] is None:
        del wanted["weight"]
    if isinstance(table, str | os.PathLike):
        path = os.fsdecode(table)
        table, text = _from_file(path, wanted)
    elif isinstance(table, tuple | list):
        arrays = _transposed(table) if isinstance(table, list) else table
        table, wanted = _from_arrays(arrays, wanted)
    elif hasattr(table, "__arrow_c_stream__") and not hasattr(table, "__getitem__"):
        table = arrow.table(table)  # a stream, which has no columns
    is_frame = hasattr(table, "__arrow_c_stream__") and hasattr(table, "columns")
    if not is_frame and not isinstance(table, Mapping):
        raise DomainMismatch(
            "from_edges: table: expected a DataFrame, a Table of pyarrow, a path, a mapping of "
            "columns, a tuple of two or three arrays or a list of edges, got "
            f"{type(table).__name__}; of a graph G of NetworkX: sg.Matrix(G) and sg.Ids(list(G))"
        )
    if isinstance(table, arrow.Table | arrow.RecordBatch):
        _check_names(wanted, table.schema.names)
    else:
        _check_names(wanted, list(table if isinstance(table, Mapping) else table.columns))
    found = {part: table[name] for part, name in wanted.items()}
    for part, column in found.items():
        if len(column) != len(found["source"]):
            raise DimensionMismatch(
                f"from_edges: {part}: expected {len(found['source'])} rows, as source has, got "
                f"{len(column)}"
            )
    return found, text


def _check_names(wanted: dict[str, Any], names: list[Any]) -> None:
    for part, name in wanted.items():
        if names.count(name) != 1:
            shown = ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")
            raise ValueError(
                f"from_edges: {part}: expected the name of one column, got {name!r}, which "
                f"{names.count(name)} have; the columns are: {shown}"
            )


def _transposed(edges: list[Any]) -> tuple[list[Any], ...]:
    """The columns of a list of edges."""
    lengths = [len(edge) if isinstance(edge, tuple | list) else 0 for edge in edges]
    if not set(lengths) <= {2} and not set(lengths) <= {3}:
        wrong = next(k for k, n in enumerate(lengths) if n not in (2, 3) or n != lengths[0])
        raise DomainMismatch(
            "from_edges: table: expected a list of edges that are all (source, target) or all "
            f"(source, target, weight), got {edges[wrong]!r} as element {wrong}; arrays of sources "
            "and targets stand in a tuple"
        )
    return tuple(map(list, zip(*edges, strict=True))) if edges else ([], [])


def _from_arrays(table: tuple[Any, ...], wanted: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """(the arrays as columns, what is wanted of them)"""
    if len(table) not in (2, 3) or any(isinstance(each, tuple | str) for each in table):
        raise DomainMismatch(
            "from_edges: table: expected a tuple of two or three lists or arrays (sources, targets "
            f"and perhaps weights), got {len(table)} of "
            f"{', '.join(sorted({type(each).__name__ for each in table})) or 'nothing'}"
        )
    if wanted != {"source": "source", "target": "target"}:
        raise ValueError(
            "from_edges: source, target, weight: expected none of them beside a tuple of arrays or "
            f"a list of edges, which have no names, got {wanted}; a dict gives arrays names"
        )
    columns = dict(zip(PARTS, table, strict=False))
    return columns, {part: part for part in columns}


# --- files ----------------------------------------------------------------------------------------


def _from_file(path: str, wanted: dict[str, Any]) -> tuple[pyarrow.Table, bool]:
    """(the columns that are wanted of a file, whether it is one of text)"""
    arrow = load_pyarrow()
    stem, suffix = os.path.splitext(path.lower())
    compression, content = "", None
    if suffix in COMPRESSIONS:
        compression, suffix = suffix, os.path.splitext(stem)[1]
    text = suffix in (".csv", ".tsv")
    if not text and suffix != ".parquet" and is_unnamed(path):
        content, suffix = _from_pipe(path)
        text, compression = suffix != ".parquet", ""
    if not text and (suffix != ".parquet" or compression):
        raise FormatError(
            f"from_edges: table: expected a path of .parquet, .csv or .tsv (the latter two also "
            f"{', '.join(COMPRESSIONS)}), got {path}; spgraph.read knows other formats"
        )
    if not os.path.exists(path):
        raise FileNotFoundError(f"from_edges: table: there is no file {path}")
    if os.path.isdir(path):
        raise IsADirectoryError(f"from_edges: table: expected a file, {path} is a folder")

    def opened() -> IO[bytes]:
        """The file from its beginning, decompressed."""
        return open_compressed(path, compression, "rb") if content is None else io.BytesIO(content)

    try:
        if text:
            return _from_text(opened, "\t" if suffix == ".tsv" else ",", wanted), True
        with lazy_imports.whole():
            import pyarrow.parquet
        with opened() as stream:
            _check_names(wanted, pyarrow.parquet.read_schema(stream).names)
        file = path if content is None else arrow.BufferReader(content)
        columns = list(dict.fromkeys(wanted.values()))
        return pyarrow.parquet.read_table(file, columns=columns), False
    except BROKEN as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the system failed to read: the content may be fine
        raise FormatError(f"from_edges: {path}: the file is damaged: {error}") from error
    except (arrow.ArrowException, UnicodeDecodeError) as error:  # the latter of a title
        raise FormatError(f"from_edges: {path}: {error}") from error


def _from_pipe(path: str) -> tuple[bytes, str]:
    """(the whole content of a pipe, decompressed; the suffix of its format)"""
    with Source(path, None) as source:
        content = source.read_all()
    if content.startswith(b"PAR1"):
        return content, ".parquet"
    return content, ".tsv" if b"\t" in content.partition(b"\n")[0] else ".csv"


def _from_text(
    opened: Callable[[], IO[bytes]], delimiter: str, wanted: dict[str, Any]
) -> pyarrow.Table:
    """The columns that are wanted of a file of text: names as strings, weights as int64, or float64
    if one is not an integer.
    """
    csv = load_pyarrow().csv
    parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    with opened() as stream:
        _check_names(wanted, csv.open_csv(stream, parse_options=parse).schema.names)
    types = {wanted["source"]: "large_string", wanted["target"]: "large_string"}
    for number in ("int64", "float64"):
        if "weight" in wanted:
            types[wanted["weight"]] = number
        options = csv.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            null_values=[""],  # not "NA", which may be a name
            strings_can_be_null=True,
        )
        with opened() as stream:
            try:
                found = csv.read_csv(stream, parse_options=parse, convert_options=options)
            except load_pyarrow().ArrowInvalid:
                if number == "float64" or "weight" not in wanted:
                    raise
                continue
        if number == "float64" and (np.abs(found[wanted["weight"]].to_numpy()) >= 2.0**53).any():
            options.column_types = {wanted["weight"]: "large_string"}
            options.include_columns = [wanted["weight"]]
            with opened() as stream:
                written = csv.read_csv(stream, parse_options=parse, convert_options=options)
            _check_integers(written[wanted["weight"]])
        return found
    raise AssertionError("a file is read or refused")


def _check_integers(written: pyarrow.ChunkedArray) -> None:
    """FormatError for a weight, as it is written, that is an integer and that float64 rounds."""
    arrow = load_pyarrow()
    long = arrow.compute.match_substring_regex(written, r"^\s*[+-]?[0-9]{16,}\s*$")
    for row in np.flatnonzero(long.to_numpy(zero_copy_only=False).astype(bool)).tolist():
        integer = written[row].as_py().strip()
        if is_rounded(integer):
            raise FormatError(
                "from_edges: weight: expected integers that float64 holds beside values that are "
                f"none of int64, got {integer[:60]} in row {row} (counted from 0), which it "
                "rounds; write it as a decimal, with a point"
            )


def _integers(names: pyarrow.Array) -> pyarrow.Array:
    """Names of text as int64 if each is the integer as Python writes it; otherwise as they are."""
    arrow = load_pyarrow()
    try:
        found = names.cast(arrow.int64())
    except arrow.ArrowInvalid:
        return names
    return found if found.cast(arrow.large_string()).equals(names) else names


def write_parquet(stream: IO[bytes], columns: dict[str, np.ndarray]) -> None:
    """Write arrays by the titles of their columns as a table of Parquet."""
    arrow = load_pyarrow()
    with lazy_imports.whole():
        import pyarrow.parquet
    with lazy_imports.forks_wait:
        pyarrow.parquet.write_table(arrow.table(columns), stream)
