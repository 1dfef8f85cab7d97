"""Edge lists: two ids a line, perhaps a weight; SNAP's files and GAP's .el and .wel among them."""

from __future__ import annotations

import re

import numpy as np

from spgraph.containers.arrays import INT64_MAX
from spgraph.errors import FormatError
from spgraph.io.coordinates import Coordinates
from spgraph.io.source import Source
from spgraph.io.table import LARGEST_ORDER, Form, Layout, is_number, read_table, split

SUFFIXES = (".txt", ".el", ".wel", ".edges", ".csv", ".tsv")

_COMMENT = re.compile(rb"[#%][^\n]*")
_SEPARATOR = re.compile(rb"[ \t\r\v\f,]")


def parse(
    source: Source, base: int, dtype: np.dtype | None = None, compact: bool | None = None
) -> Coordinates:
    """The edges of `source`, directed; there are as many vertices as the largest id says.

    A first line whose first two fields are no numbers names the columns, and says nothing. The
    first line with an edge decides whether there are weights; they are int64 if all of them are
    integers that fit, else float64. `compact` says that ids may be as large as 63 bits are.
    """
    layout = layout_of(source, base, compact).read_as(dtype)
    rows, columns, *values = read_table(source, layout.form)
    if rows.size == 0:  # a line with nothing but the mark of a byte order
        raise no_edge(source.path)
    order = 1 + int(max(rows.max(), columns.max())) - base
    if base:
        rows -= base
        columns -= base
    weights = values[0] if values else None
    return Coordinates(source.path, rows, columns, weights, order, order)


def layout_of(source: Source, base: int, compact: bool | None = None) -> Layout:
    """What the first edge says; `source` is before it then, and behind a line of names."""
    text = _first_line(source)
    names = split(text, commas=True)[:2]
    if len(names) == 2 and all(names) and not any(map(is_number, names)):
        text = _first_line(source)
    source.push_back()
    found = _SEPARATOR.search(text)
    width = len(split(text, commas=True))
    form = Form(
        usage="'source target weight'"
        if width == 3
        else "'source target' or 'source target weight'",
        values=("int64", "float64") if width == 3 else (),
        low=base,
        high=(INT64_MAX - 1 if compact else LARGEST_ORDER - 1,) * 2,
        comment=_COMMENT,
        markers=(b"#", b"%"),
        commas=True,
        delimiter=b" " if found is None else found[0],
        below="; are the ids counted from 0? then read with base=0" if base else "",
        beyond="; read with compact=True, or number the vertices densely, from 0",
    )
    return Layout(form)


def _first_line(source: Source) -> bytes:
    """The next line with something in it, without its comment."""
    while True:
        source.skip_empty_lines()
        if (line := source.readline()) is None:
            break
        if text := _COMMENT.sub(b"", line).strip(b" \t\r\v\f"):
            return text
    raise no_edge(source.path)


def no_edge(path: str) -> FormatError:
    """What a file without an edge is answered with."""
    return FormatError(f"{path}: expected at least one edge, 'source target [weight]', got none")
