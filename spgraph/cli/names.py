"""Vertices by name: words of the command line to positions, positions in results to names."""

from __future__ import annotations

import csv
import difflib
from pathlib import Path
from typing import Any

import click
import numpy as np

import spgraph as sg
from spgraph.cli.streams import STANDARD
from spgraph.errors import FormatError
from spgraph.io.source import COMPRESSIONS

# the columns of results that hold vertices
VERTICES = ("vertex", "parent", "component", "label", "source", "target")
Columns = dict[str, np.ndarray]
MANY = 100_000  # names: of more, those are compared that begin like the one that is unknown


class UnknownVertex(click.UsageError):
    """There is no vertex of a name; `nearest` are up to three names that are like it."""

    def __init__(self, option: str, name: str, nearest: list[str]) -> None:
        self.option, self.name, self.nearest = option, name, nearest
        like = f"; the nearest names are {', '.join(map(repr, nearest))}" if nearest else ""
        super().__init__(f"{option}: there is no vertex {name!r}{like}")


def may_have_names(file: Path, columns: Any) -> bool:
    """Whether the graph in a file can have names of vertices: told before it is read."""
    name = file.name.lower()
    for compression in COMPRESSIONS:
        name = name.removesuffix(compression)
    return columns is not None or file == STANDARD or name.endswith(".npz") or "." not in name


def hint(file: Path, error: str) -> str:
    """What else may be meant by a file of edges in which something is no number."""
    table = any(suffix in file.name.lower() for suffix in (".csv", ".tsv")) or file == STANDARD
    if table and "expected an integer" in error:
        return "; --columns FROM,TO reads a table whose vertices have names"
    return ""


def is_table(file: Path) -> bool:
    """Whether the suffix is that of tables alone."""
    return file.name.lower().endswith(".parquet")


def split(text: str) -> list[str]:
    """The words between commas; one that has a comma stands in quotation marks, as in CSV."""
    (words,) = csv.reader([text], skipinitialspace=True, strict=True)
    return words


def positions(option: str, words: list[str], ids: sg.Ids | None) -> list[int]:
    """The vertices that words of the command line name: numbers where the graph has no names.

    UsageError for a word that is no integer where integers are meant, UnknownVertex for a name
    that is not there.
    """
    if ids is None or ids.names.dtype.kind in "iu":
        vertices = [_number(option, word) for word in words]
        if ids is None:
            return vertices
        unknown = [str(name) for name in vertices if name not in ids]
    else:
        unknown = [name for name in words if name not in ids]
    if unknown:
        raise UnknownVertex(option, unknown[0], nearest(unknown[0], ids))
    return [ids[name] for name in (words if ids.names.dtype.kind == "O" else vertices)]


def _number(option: str, word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise click.UsageError(
            f"{option}: {word!r} is not a valid integer, and vertices have no names that are "
            "strings (--columns reads a table with names)"
        ) from None


def nearest(name: str, ids: sg.Ids) -> list[str]:
    """Up to three names that are like `name`, the likeliest first."""
    known = [str(each) for each in ids]
    begin = name[:2].casefold()
    if len(known) > MANY:
        known = [each for each in known if each[:2].casefold() == begin][:MANY]
    folded = {each.casefold(): each for each in known}
    return [folded[each] for each in difflib.get_close_matches(name.casefold(), folded, n=3)]


def names_of(vertices: Any, ids: sg.Ids | None) -> Any:
    """The names of an array or a list of vertices, as they are where there are no names."""
    if ids is None:
        return vertices
    at = np.asarray(vertices, np.int64)
    if at.size and int(at.min()) < 0:
        raise ValueError(f"expected vertices, got {int(at.min())}")
    found = ids.names[at]
    return found.tolist() if isinstance(vertices, list) else found


def labelled(rows: Columns, ids: sg.Ids | None) -> Columns:
    """The rows of a result with names for vertices."""
    return {
        title: names_of(column, ids) if title in VERTICES else column
        for title, column in rows.items()
    }


def aligned(v: sg.Vector, own: sg.Ids | None, ids: sg.Ids | None, path: Path) -> sg.Vector:
    """A Vector whose positions have the names `own`, for a graph of the names `ids`: at its
    positions. FormatError for an entry whose name the graph does not have.
    """
    if own is None or ids is None or own._array.equals(ids._array):
        return v
    at, values = v.to_coo()
    try:
        return sg.Vector.from_coo(ids.positions(own.names[at]), values, size=len(ids))
    except (KeyError, TypeError) as error:
        text = error.args[0]
        raise FormatError(f"{path}: expected names of vertices of the graph: {text}") from None


def printable(text: str) -> str:
    """A name for a terminal: what would move its cursor or change its colours is escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
