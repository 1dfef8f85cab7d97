"""`save`, `load`: Vectors and Matrices in archives of arrays."""

from __future__ import annotations

import os

from spgraph.containers import Matrix, MatrixLike, Vector, as_matrix
from spgraph.errors import FormatError
from spgraph.io.coordinates import Coordinates
from spgraph.io.files import check_place
from spgraph.io.formats import binsparse_files, npz
from spgraph.io.ids import Ids, check_ids
from spgraph.io.request import existing
from spgraph.io.source import Source, is_unnamed, replacing


def save(path: str | os.PathLike[str], x: Vector | MatrixLike, *, ids: Ids | None = None) -> None:
    """Writes `x`, a Vector, or a Matrix or what converts to one, to `path`, an .npz file of plain
    arrays; .h5, .hdf5 and .bsp.npz are files of Binsparse, as with `write`. An .npz keeps `ids`,
    the names of its positions, as by `write`.

    `load` returns it with the same positions, values and types, on the CPU. The write is atomic.
    FormatError for another suffix, and for `ids` with one of Binsparse; DimensionMismatch for
    another number of names.

    >>> import pathlib, tempfile
    >>> import spgraph as sg
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "ranks.npz"
    >>> sg.save(path, sg.Vector.from_coo([2], [0.5], size=4))
    >>> list(sg.load(path))
    [(2, 0.5)]
    """
    if isinstance(path, Vector | Matrix):
        raise TypeError(f"save: path: expected a path, got a {type(path).__name__}; save(path, x)")
    name = _npz_name(path)
    x = (x if isinstance(x, Vector) else as_matrix(x, "x")).to("cpu")
    check_ids("save", ids, x)
    check_place(name, ids)
    with replacing(name, "") as stream:
        if binsparse_files.takes(name):
            binsparse_files.write(stream, name, x)
        else:
            npz.write(stream, x, ids)


def load(path: str | os.PathLike[str]) -> Matrix | Vector:
    """The Vector or Matrix in `path`, an .npz file of `save`, `write` or scipy.sparse.save_npz, or
    a file of Binsparse (.h5, .hdf5, .bsp.npz), on the CPU.

    A pipe, such as /dev/stdin, needs no suffix, and may be compressed. Nothing is unpickled, and
    every index is checked. Raises FileNotFoundError for a missing file, FormatError for a file of
    another kind or suffix.

    >>> import pathlib, tempfile
    >>> import spgraph as sg
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "ranks.npz"
    >>> sg.save(path, sg.Vector.from_coo([2], [0.5], size=4))
    >>> sg.load(path).nvals
    1
    """
    return load_named(path, names=False)[0]


def load_named(
    path: str | os.PathLike[str], *, names: bool = True
) -> tuple[Matrix | Vector, Ids | None]:
    """As `load`; with `names` also the names in the file."""
    name = os.fsdecode(path)
    found: Matrix | Vector | Coordinates
    if is_unnamed(name):
        with Source(name, None) as source:
            found, ids = npz.parse_any(source, compact=False, named=names)
    elif binsparse_files.takes(existing(_npz_name(path))):
        found, ids = binsparse_files.parse_any(name, compact=False), None
    else:
        found, ids = npz.parse_any(name, compact=False, named=names)
    return (found.to_matrix() if isinstance(found, Coordinates) else found), ids


def _npz_name(path: str | os.PathLike[str]) -> str:
    name = os.fsdecode(path)
    if not name.lower().endswith((".npz", *binsparse_files.SUFFIXES)):
        raise FormatError(f"{name}: expected a name that ends with .npz, .h5 or .hdf5")
    return name


def read_names(path: str | os.PathLike[str]) -> Ids | None:
    """The names in an .npz, of which nothing else is read; None for other files."""
    name = os.fsdecode(path)
    named = name.lower().endswith(".npz") and not binsparse_files.takes(name)
    return npz.parse_names(name) if named else None
