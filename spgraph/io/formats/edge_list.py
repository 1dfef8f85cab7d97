"""Edge lists: two vertex ids per line and an optional weight, as in SNAP's files and GAP's .el and
.wel.
"""

from __future__ import annotations

import re

import numpy as np

from spgraph.containers.storage.arrays import INT64_MAX
from spgraph.errors import FormatError
from spgraph.io.coordinates import Coordinates
from spgraph.io.source import Source
from spgraph.io.table import LARGEST_ORDER, Form, Layout, is_number, read_table, split

SUFFIXES = (".txt", ".el", ".wel", ".edges", ".csv", ".tsv")

_COMMENT = re.compile(rb"[#%][^\n]*")


def parse(
    source: Source, base: int, dtype: np.dtype | None = None, compact: bool | None = None
) -> Coordinates:
    """The edges of `source`, directed; the largest id determines the number of vertices.

    A first line whose first two fields are not numbers is a header and is skipped. The first line
    with an edge decides whether there are weights; they are int64 if all of them are integers in
    its range, else float64. With `compact` ids may have up to 63 bits.
    """
    layout = layout_of(source, base, compact).read_as(dtype)
    rows, columns, *values = read_table(source, layout.form)
    order = 1 + int(max(rows.max(), columns.max())) - base
    if base:
        rows -= base
        columns -= base
    weights = values[0] if values else None
    return Coordinates(source.path, rows, columns, weights, order, order)


def layout_of(source: Source, base: int, compact: bool | None = None) -> Layout:
    """The layout, derived from the first edge. `source` is left in front of that edge, behind a
    header line if there is one.
    """
    text = _first_line(source)
    names = split(text, commas=True)[:2]
    if len(names) == 2 and all(names) and not any(map(is_number, names)):
        text = _first_line(source)
    source.push_back()
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
        below="; are the ids counted from 0? then read with base=0" if base else "",
        beyond="; read with compact=True, or number the vertices densely, from 0",
    )
    return Layout(form)


def _first_line(source: Source) -> bytes:
    """The next line that is not empty, without its comment."""
    while True:
        source.skip_empty_lines()
        if (line := source.readline()) is None:
            break
        if text := _COMMENT.sub(b"", line).strip(b" \t\r\v\f"):
            return text
    raise no_edge(source.path)


def no_edge(path: str) -> FormatError:
    """The error for a file without an edge."""
    return FormatError(f"{path}: expected at least one edge, 'source target [weight]', got none")
