"""DIMACS .gr files: the shortest-path challenge's `p sp` and PACE's `p tw`."""

from __future__ import annotations

import re

import numpy as np

from spgraph.errors import FormatError
from spgraph.io.coordinates import Coordinates
from spgraph.io.source import Source
from spgraph.io.table import LARGEST_ORDER, Form, Layout, bounded, read_table

_COMMENT = re.compile(rb"(?m)^[ \t]*c(?:[ \t\r][^\n]*)?$")


def parse(source: Source, base: int, dtype: np.dtype | None = None) -> Coordinates:
    """The edges of `source`: under 'p sp' directed with int64 weights, under 'p tw' undirected."""
    layout = layout_of(source, base).read_as(dtype)
    rows, columns, *values = read_table(source, layout.form, layout.count)
    rows -= base
    columns -= base
    order = layout.nrows or 0
    weights = values[0] if values else None
    return Coordinates(
        source.path, rows, columns, weights, order, order, undirected=layout.undirected
    )


def layout_of(source: Source, base: int) -> Layout:
    """The layout that the header declares; `source` is left behind the header."""
    problem, order, count = _header(source)
    directed = problem == b"sp"
    form = Form(
        usage="a line 'a tail head weight' or a comment 'c ...'"
        if directed
        else "a line 'u v' or a comment 'c ...'",
        letter=b"a" if directed else b"",
        values=("int64",) if directed else (),
        low=base,
        high=(order - 1 + base,) * 2,
        beyond=f": line {source.line} declares {order} vertices",
        below=": .gr files count from 1; read with base=0 if this one does not" if base else "",
        comment=_COMMENT,
        markers=(b"c",),
    )
    return Layout(form, count, order, order, undirected=not directed)


def _header(source: Source) -> tuple[bytes, int, int]:
    """(problem type, number of vertices, number of edges) from the line that begins with p."""
    while (line := source.readline()) is not None:
        tokens = line.split()
        if not tokens or tokens[0] == b"c":
            continue
        where = f"{source.path}, line {source.line}"
        got = repr(line[:60].decode("utf-8", "replace"))
        if tokens[0] != b"p":
            raise FormatError(
                f"{where}: expected 'p sp N M' or 'p tw N M' before the first edge, got {got}"
            )
        numbers = tokens[2:]
        if (
            tokens[1:2] not in ([b"sp"], [b"tw"])
            or len(numbers) != 2
            or not all(n.isdigit() for n in numbers)
        ):
            raise FormatError(
                f"{where}: expected 'p sp N M' or 'p tw N M', N vertices and M edges, got {got}"
            )
        order, count = bounded(numbers[0]), bounded(numbers[1])
        if order > LARGEST_ORDER:
            raise FormatError(f"{where}: expected at most {LARGEST_ORDER} vertices, got {order}")
        return tokens[1], order, count
    raise FormatError(
        f"{source.path}: expected a header line 'p sp N M' or 'p tw N M', the file has none"
    )
