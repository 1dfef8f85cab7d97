"""`Ids`: the names of vertices by position, and positions by name."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from spgraph.checks import vectors_in
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.numbers import flags
from spgraph.errors import DimensionMismatch, DomainMismatch, IndexOutOfBound
from spgraph.io.archive import Archive
from spgraph.process import lazy_imports

if TYPE_CHECKING:
    import pyarrow

Name = str | int


@functools.cache
def load_pyarrow() -> ModuleType:
    """The library, for which `import spgraph` need not pay."""
    with lazy_imports.whole():
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
    return pyarrow


class Ids(Mapping[Name, int]):
    """The names of the vertices 0, 1, ... of a graph, all strings or all integers: a mapping from
    each name to its position, a row and column of the Matrix.

    `ids[name]` is a position, an int, and a KeyError for an unknown name; the first such look-up
    makes a dict of all names. `ids.names[positions]` are names, `ids.positions(names)` positions,
    both of whole arrays. `Ids(names)` takes the names by position, as a list, an array or a column
    of a table; ValueError for one that is missing or given twice, DomainMismatch for other types.

    >>> import spgraph as sg
    >>> ids = sg.Ids(["Ulm", "Bonn", "Kiel"])
    >>> ids["Kiel"], "Rome" in ids, len(ids), list(ids)
    (2, False, 3, ['Ulm', 'Bonn', 'Kiel'])
    """

    def __init__(self, names: Any) -> None:
        with lazy_imports.forks_wait:
            found, self._array = encoded("Ids", {"names": name_column("Ids", "names", names)})
        if len(self._array) < found.size:
            again = int(np.flatnonzero(found != np.arange(found.size))[0])
            name = self._array[int(found[again])].as_py()
            raise ValueError(f"Ids: names: expected each name once, got {name!r} again at {again}")

    @classmethod
    def _of(cls, array: pyarrow.Array) -> Ids:
        """The Ids of distinct names, which are trusted."""
        ids = object.__new__(cls)
        ids._array = array
        return ids

    @functools.cached_property
    def names(self) -> np.ndarray:
        """The names by position, read-only: an array of int64 or uint64, or of Python's strings.

        >>> import spgraph as sg
        >>> ids = sg.Ids(["Ulm", "Bonn", "Kiel"])
        >>> ids.names[[2, 0]].tolist()
        ['Kiel', 'Ulm']
        """
        names: np.ndarray = self._array.to_numpy(zero_copy_only=False)
        names.flags.writeable = False
        return names

    @functools.cached_property
    def _positions(self) -> dict[Name, int]:
        return dict(zip(self.names.tolist(), range(len(self)), strict=True))

    def positions(self, names: Any) -> np.ndarray:
        """The position of each of `names` (a list, an array or a column of a table), as an array of
        int64.

        Raises KeyError for a name that is missing or unknown, and DomainMismatch for other types
        than these Ids have.

        >>> import spgraph as sg
        >>> sg.Ids(["Ulm", "Bonn", "Kiel"]).positions(["Kiel", "Kiel", "Ulm"]).tolist()
        [2, 2, 0]
        """
        arrow = load_pyarrow()
        with lazy_imports.forks_wait:
            column = _arrow_column("Ids.positions", "names", names)
            if not len(column):
                return np.empty(0, np.int64)
            kind = self._array.type
            integers = arrow.types.is_integer(column.type)
            known = integers or _is_string(column.type)
            if not known or integers != arrow.types.is_integer(kind):
                own = "integers" if arrow.types.is_integer(kind) else "strings"
                raise DomainMismatch(
                    f"Ids.positions: names: expected {own}, as these names are, got {column.type}; "
                    "convert them"
                )
            try:
                same = column.cast(kind)
            except arrow.ArrowInvalid as error:  # an integer that the names' type does not have
                raise KeyError(f"Ids.positions: names: there is no such vertex: {error}") from None
            found = arrow.compute.index_in(same, value_set=self._array, skip_nulls=True)
            if found.null_count:
                at = first_true(arrow.compute.is_null(found))
                name = column[at].as_py()
                raise KeyError(f"Ids.positions: names: there is no vertex {name!r}, element {at}")
            return found.to_numpy().astype(np.int64)

    def label(self, x: Vector | Matrix, *, vertices: bool = False) -> pyarrow.Table:
        """The entries of `x`, with names for positions, as a pyarrow.Table, by ascending position.

        A Vector gives the columns name and value; a Matrix source, target and weight, which
        `from_edges` takes. `vertices=True`: the values are vertices, too (parents, components),
        and become their names. The table's `to_pandas()` is a DataFrame, `polars.from_arrow` makes
        one of polars. `x` may lie on any device, and in shards.

        Raises DimensionMismatch unless `x` has as many positions (rows and columns) as there are
        names; DomainMismatch for other kinds, or for `vertices` with values that are no integers;
        IndexOutOfBound for such a value that is no vertex.

        >>> import spgraph as sg
        >>> A, ids = sg.from_edges({"source": ["a", "b"], "target": ["b", "c"]})
        >>> ids.label(sg.bfs(A, ids["a"]).level).to_pydict()
        {'name': ['a', 'b', 'c'], 'value': [0, 1, 2]}
        >>> ids.label(sg.bfs(A, ids["a"]).parent, vertices=True)["value"].to_pylist()
        ['a', 'a', 'b']
        """
        flags("label", vertices=vertices)
        arrow = load_pyarrow()
        if not isinstance(x, Vector | Matrix):
            raise DomainMismatch(
                f"Ids.label: x: expected a Vector or a Matrix, got {type(x).__name__}"
                f"{vectors_in(x)}"
            )
        n = len(self)
        if any(extent != n for extent in x.shape):
            raise DimensionMismatch(
                f"Ids.label: x: expected {n} positions each way, one for each name, got "
                f"{' x '.join(map(str, x.shape))}"
            )
        *positions, values = x.to("cpu").to_coo()
        if vertices:
            _check_vertices(values, n)
        with lazy_imports.forks_wait:
            columns = [self._array.take(arrow.array(each)) for each in positions]
            if vertices:
                columns.append(self._array.take(arrow.array(values.astype(np.int64))))
            else:
                columns.append(arrow.array(values))
            titles = ["name", "value"] if len(columns) == 2 else ["source", "target", "weight"]
            return arrow.table(columns, names=titles)

    # --- for Python -------------------------------------------------------------------------------

    def __getitem__(self, name: Name) -> int:
        try:
            return self._positions[name]
        except KeyError:
            raise KeyError(f"Ids: there is no vertex {name!r}") from None

    def __iter__(self) -> Iterator[Name]:
        return iter(self.names.tolist())

    def __len__(self) -> int:
        return len(self._array)

    def __reduce__(self) -> tuple[Any, ...]:
        return Ids._of, (self._array,)

    def __repr__(self) -> str:
        shown = [repr(name) for name in self._array[:3].to_pylist()]
        return f"Ids({len(self)} names: {', '.join(shown + ['...'] * (len(self) > 3))})"


def _check_vertices(values: np.ndarray, n: int) -> None:
    if values.dtype.kind not in "iu":
        raise DomainMismatch(
            f"Ids.label: vertices: expected values that are vertices, integers, got {values.dtype};"
            " leave it out"
        )
    if values.size and not 0 <= int(values.min()) <= int(values.max()) < n:
        out = int(values.min()) if int(values.min()) < 0 else int(values.max())
        raise IndexOutOfBound(
            f"Ids.label: vertices: expected values from 0 to {n - 1}, got {out}; leave it out if "
            "values are no vertices"
        )


# --- columns of names -----------------------------------------------------------------------------


def first_true(column: Any) -> int:
    """The position of the first true value of an Arrow column that has one."""
    return load_pyarrow().compute.index(column, True).as_py()


def _is_string(kind: Any) -> bool:
    types = load_pyarrow().types
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def _arrow_column(name: str, argument: str, given: Any) -> pyarrow.ChunkedArray:
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
    kind = arrow.large_string() if _is_string(kind) else kind
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
    column = _arrow_column(name, argument, given)
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
    if _is_string(column.type):
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


# --- names in an archive of arrays ----------------------------------------------------------------


def check_ids(operation: str, ids: Ids | None, x: Matrix | Vector) -> None:
    """DimensionMismatch unless there is a name for each column of `x` (each position of a Vector);
    DomainMismatch for what is no Ids.
    """
    if ids is None:
        return
    if not isinstance(ids, Ids):
        raise DomainMismatch(
            f"{operation}: ids: expected Ids or None, got {type(ids).__name__}; make them by "
            "sg.Ids(names)"
        )
    if len(ids) != x.shape[-1]:
        raise DimensionMismatch(
            f"{operation}: ids: expected {x.shape[-1]} names, one for each column of a Matrix or "
            f"position of a Vector, got {len(ids)}"
        )


def arrays_of(ids: Ids | None) -> dict[str, Any]:
    """The arrays of an archive that hold the names: `names`, if they are integers. Of strings the
    UTF-8 text, one after the other, in the bytes `names`; string k begins at `names_offsets[k]`,
    and there is one offset more, the end.
    """
    if ids is None:
        return {}
    arrow = load_pyarrow()
    array = ids._array
    if arrow.types.is_integer(array.type):
        return {"names": array.to_numpy()}
    if not len(array):
        return {"names": np.empty(0, np.uint8), "names_offsets": np.zeros(1, np.int64)}
    _, ends, text = array.buffers()
    offsets = np.frombuffer(ends, np.int64)[array.offset : array.offset + len(array) + 1]
    held = np.frombuffer(text or b"", np.uint8)[offsets[0] : offsets[-1]]
    return {"names": held, "names_offsets": offsets - offsets[0]}


def names_in(archive: Archive, count: int) -> Ids | None:
    """The names in an archive, None if it has none; ValueError unless they are `count` different
    ones.
    """
    if "names" not in archive:
        return None
    held = archive.array("names", "iu")
    size, offsets = held.size, np.zeros(1, np.int64)
    if "names_offsets" in archive:
        offsets = archive.array("names_offsets", "iu").astype(np.int64)
        size = offsets.size - 1
    if size != count:
        raise ValueError(f"names: expected {count}, one for each column or position, got {size}")
    arrow = load_pyarrow()
    text = "names_offsets" in archive
    if not text:
        wide = held.astype(np.uint64 if held.dtype == np.uint64 else np.int64)
        kind, buffers = arrow.from_numpy_dtype(wide.dtype), [wide]
    else:
        if held.dtype != np.uint8:
            raise ValueError(f"names: expected bytes of text beside offsets, got {held.dtype}")
        # not left to Arrow, which checks some of it only where there are strings
        if offsets[0] or offsets[-1] != held.size or (np.diff(offsets) < 0).any():
            raise ValueError(f"names_offsets: expected them to ascend from 0 to {held.size}")
        kind, buffers = arrow.large_string(), [offsets, np.ascontiguousarray(held)]
    with lazy_imports.forks_wait:
        memory = [None, *map(arrow.py_buffer, buffers)]
        array = arrow.Array.from_buffers(kind, size, memory)
        try:
            array.validate(full=True)
        except arrow.ArrowInvalid as error:
            raise ValueError(f"names: expected UTF-8: {error}") from None
        if len(array.unique()) < size:
            raise ValueError("names: expected each name once")
    return Ids._of(array)
