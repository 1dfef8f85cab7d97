"""Edge lists: two ids a line, perhaps a weight; SNAP's files and GAP's .el and .wel among them."""

from __future__ import annotations

import re

from spgraph.errors import FormatError
from spgraph.io.coordinates import Coordinates
from spgraph.io.source import Source
from spgraph.io.table import Form, Layout, read_table

SUFFIXES = (".txt", ".el", ".wel", ".edges", ".csv", ".tsv")

_COMMENT = re.compile(rb"[#%][^\n]*")
_SEPARATOR = re.compile(rb"[ \t\r\v\f,]+")


def parse(source: Source, base: int) -> Coordinates:
    """The edges of `source`, directed; there are as many vertices as the largest id says.

    The first line with an edge decides whether there are weights; they are int64 if all of them are
    integers that fit, else float64.
    """
    rows, columns, *values = read_table(source, layout_of(source, base).form)
    order = 1 + int(max(rows.max(), columns.max())) - base
    if base:
        rows -= base
        columns -= base
    return Coordinates(rows, columns, values[0] if values else None, order, order)


def layout_of(source: Source, base: int) -> Layout:
    """What the first edge says; `source` is before it then."""
    while (line := source.readline()) is not None:
        text = _COMMENT.sub(b"", line).strip(b" \t\r\v\f")
        if text:
            break
    else:
        raise FormatError(
            f"{source.path}: expected at least one edge, 'source target [weight]', got none"
        )
    source.push_back()
    found = _SEPARATOR.search(text)
    width = len(_SEPARATOR.split(text))
    form = Form(
        usage="'source target weight'"
        if width == 3
        else "'source target' or 'source target weight'",
        values=("int64", "float64") if width == 3 else (),
        low=base,
        comment=_COMMENT,
        markers=(b"#", b"%"),
        commas=True,
        delimiter=b" " if found is None else found[0][:1],
        below="; are the ids counted from 0? then read with base=0" if base else "",
        beyond="; number the vertices densely, from 0",
    )
    return Layout(form)
