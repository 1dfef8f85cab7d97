"""Columns of tables as columns of Arrow, and names as numbers in the order in which they appear."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from spgraph.errors import DomainMismatch
from spgraph.process import lazy_imports

if TYPE_CHECKING:
    import pyarrow


@functools.cache
def load_pyarrow() -> ModuleType:
    """The library, for which `import spgraph` need not pay."""
    with lazy_imports.whole():
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
    return pyarrow


def first_true(column: Any) -> int:
    """The position of the first true value of an Arrow column that has one."""
    return load_pyarrow().compute.index(column, True).as_py()


def is_string(kind: Any) -> bool:
    """Whether a type of Arrow is one of its types of strings."""
    types = load_pyarrow().types
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def arrow_column(name: str, argument: str, given: Any) -> pyarrow.ChunkedArray:
    """A list, an array or a column of a table as Arrow's, of no dictionary; NaN of pandas is
    null.
    """
    arrow = load_pyarrow()
    try:
        if isinstance(given, arrow.ChunkedArray):
            column = given
        elif hasattr(given, "__arrow_c_stream__"):
            column = arrow.chunked_array(given)
        else:
            if isinstance(given, np.ndarray) and not given.dtype.isnative:
                given = given.astype(given.dtype.newbyteorder("="))  # Arrow has no other order
            if isinstance(given, np.ndarray) and given.dtype.kind == "U" and _has_zeros(given):
                given = given.astype(object)  # Arrow would end a string at its first zero
            column = arrow.array(given, from_pandas=True)
    except OverflowError:  # of Python's integers
        raise DomainMismatch(
            f"{name}: {argument}: expected integers of int64 in a {type(given).__name__}, got a "
            "longer one; np.array(..., 'uint64') takes those up to 2**64 - 1, and names may be "
            "strings"
        ) from None
    except (arrow.ArrowException, TypeError, ValueError) as error:
        raise DomainMismatch(
            f"{name}: {argument}: expected a list, an array or a column of 1 dimension and of one "
            f"type, got {type(given).__name__}: {error}"
        ) from None
    if not isinstance(column, arrow.ChunkedArray):
        column = arrow.chunked_array([column])
    if not arrow.types.is_dictionary(column.type):
        return column
    kind = column.type.value_type
    kind = arrow.large_string() if is_string(kind) else kind
    # not a cast of the whole, which Arrow does not have for all that polars gives
    chunks = [chunk.dictionary.cast(kind).take(chunk.indices) for chunk in column.chunks]
    return arrow.chunked_array(chunks, kind)


def _has_zeros(words: np.ndarray) -> bool:
    """Whether a string of an array has a zero before another character."""
    if not words.nbytes:
        return False
    zero = np.ascontiguousarray(words).view(np.uint32).reshape(words.size, -1) == 0
    return bool((zero[:, :-1] > zero[:, 1:]).any())


def column_of(name: str, argument: str, given: Any) -> pyarrow.ChunkedArray:
    """A column without null; ValueError, with its row, for one that has null."""
    arrow = load_pyarrow()
    column = arrow_column(name, argument, given)
    if column.null_count:
        row = first_true(arrow.compute.is_null(column))
        raise missing(name, argument, row, "null, None or NaN")
    return column


def missing(name: str, argument: str, row: int, value: str) -> ValueError:
    """The error for a row without a name or a weight."""
    return ValueError(
        f"{name}: {argument}: expected a value in every row, got {value} in row {row} (counted "
        "from 0); leave such rows out, or fill them"
    )


def name_column(name: str, argument: str, given: Any) -> pyarrow.ChunkedArray:
    """A column of names as large strings or integers of Arrow's. Raises as `column_of` does, and
    DomainMismatch for other types.
    """
    arrow = load_pyarrow()
    column = column_of(name, argument, given)
    if is_string(column.type):
        return column.cast(arrow.large_string())
    if not len(column) and arrow.types.is_null(column.type):  # of an empty list
        return column.cast(arrow.int64())
    if not arrow.types.is_integer(column.type):
        raise DomainMismatch(
            f"{name}: {argument}: expected names that are strings or integers, got {column.type}; "
            "convert the column"
        )
    return column


def encoded(name: str, columns: dict[str, Any]) -> tuple[np.ndarray, pyarrow.Array]:
    """(the position of each name of all columns, one after the other; the distinct names in the
    order in which they appear first).

    The columns are those of `name_column`. DomainMismatch if some are strings and others integers,
    or integers that no one type has.
    """
    arrow = load_pyarrow()
    strings = {k: arrow.types.is_large_string(column.type) for k, column in columns.items()}
    given = {k: column for k, column in columns.items() if len(column)} or columns
    if len({strings[k] for k in given}) > 1:
        told = " and ".join(f"{k} of {column.type}" for k, column in columns.items())
        raise DomainMismatch(
            f"{name}: expected names that are all strings or all integers, got {told}; convert one"
        )
    if any(strings[k] for k in given):
        kind = arrow.large_string()
    else:
        unsigned = all(arrow.types.is_unsigned_integer(c.type) for c in given.values())
        wide = any(c.type == arrow.uint64() for c in given.values())
        kind = arrow.uint64() if unsigned and wide else arrow.int64()
    try:
        chunks = [chunk for k in given for chunk in given[k].cast(kind).chunks]
    except arrow.ArrowInvalid as error:
        raise DomainMismatch(
            f"{name}: expected integers that are all of uint64 or all of int64: {error}; convert "
            "the columns to strings"
        ) from None
    found = arrow.chunked_array(chunks, kind).dictionary_encode().unify_dictionaries()
    if not found.num_chunks:
        return np.empty(0, np.int32), arrow.array([], kind)
    positions = [chunk.indices.to_numpy() for chunk in found.chunks]
    return np.concatenate(positions), found.chunk(0).dictionary
