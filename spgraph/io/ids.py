"""`Ids`: the names of vertices by position, and positions by name."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from spgraph.checks import vectors_in
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.numbers import flags
from spgraph.errors import DimensionMismatch, DomainMismatch, IndexOutOfBound
from spgraph.io.archive import Archive
from spgraph.io.arrow_columns import (
    arrow_column,
    encoded,
    first_true,
    is_string,
    load_pyarrow,
    name_column,
)
from spgraph.process import lazy_imports

if TYPE_CHECKING:
    import pyarrow

Name = str | int


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
            column = arrow_column("Ids.positions", "names", names)
            if not len(column):
                return np.empty(0, np.int64)
            kind = self._array.type
            integers = arrow.types.is_integer(column.type)
            known = integers or is_string(column.type)
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
