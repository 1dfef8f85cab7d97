"""Graphs in; results out: as text, as JSON, into files."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import click
import numpy as np

import spgraph as sg
from spgraph import terminal
from spgraph.cli import placement
from spgraph.cli.kinds import Columns, Kind, Parts, Record, columns, first
from spgraph.cli.options import suffix_of
from spgraph.cli.placement import is_root
from spgraph.errors import FormatError
from spgraph.io.source import replacing
from spgraph.iterations import Level


class Graph(NamedTuple):
    """A Matrix from a file, and how long that took."""

    A: sg.Matrix
    file: Path
    seconds: float

    def facts(self) -> Record:
        return {
            "file": str(self.file),
            "vertices": self.A.nrows,
            "edges": self.A.nvals,
            "read_seconds": self.seconds,
        }

    def line(self) -> str:
        return (
            f"{self.file}: {self.A.nrows:,} vertices, {self.A.nvals:,} edges, "
            f"read in {terminal.duration(self.seconds)}"
        )

    def most_connected(self) -> int:
        """The first vertex of largest degree, where searches start unless they are told."""
        if self.A.nrows == 0:
            raise FormatError(f"{self.file}: the graph has no vertex to start from")
        return int(self.degrees().argmax())

    def degrees(self) -> np.ndarray:
        return self.A.row_degrees().to_numpy()


class Source(NamedTuple):
    """The options that say which graph is read."""

    file: Path
    symmetric: bool | None
    base: int | None
    compact: Path | None

    @classmethod
    def of(cls, given: dict[str, Any]) -> Source:
        """Taken out of the options of a command."""
        return cls(*(given.pop(name) for name in cls._fields))


def read(source: Source, place: placement.Place) -> Graph:
    """The graph in a file, - being standard input; the ids of its vertices go to `compact`."""
    file, symmetric, base, compact = source
    start = time.perf_counter()
    if str(file) == "-":
        if sys.stdin is None:
            raise FormatError("FILE: expected a graph on standard input, which is closed")
        file = Path("/dev/stdin")
    with terminal.progress(f"reading {file}"):
        found = place.read(file, symmetric=symmetric, base=base, compact=compact and True)
    seconds = time.perf_counter() - start
    if compact is None:
        return Graph(found, file, seconds)
    A, ids = found
    write_result(compact, {"id": sg.Vector.from_dense(ids)})
    return Graph(A, file, seconds)


# --- files: each appears whole or not at all ------------------------------------------------------


def write(path: Path, save: Callable[[Path], None]) -> None:
    if is_root():
        with terminal.progress(f"writing {path}"):
            save(path)


def check_picture(path: Path | None) -> None:
    """Tell before the work, not after it, that there is nothing to draw with."""
    if path is not None:
        from spgraph import plot

        plot.require_matplotlib()


def write_picture(
    path: Path, kind: Kind, parts: Parts, rows: Sequence[Level] | None = None
) -> None:
    """The levels of a search as a picture, or what the kind draws of a result."""
    from spgraph import plot

    if rows is not None:
        write_figure(path, plot.frontier_profile(rows))
    elif kind.picture is not None:
        write_figure(path, kind.picture(parts))


def write_figure(path: Path, figure: Any) -> None:
    def save(path: Path) -> None:
        with replacing(str(path)) as stream:
            figure.savefig(stream, format=suffix_of(path)[1:])

    write(path, save)


def write_result(path: Path, parts: Parts) -> None:
    """The parts in the format that the suffix says.

    A Matrix as `sg.write` writes it; a row for each vertex with an entry (.csv, .tsv); one Vector
    as `sg.save` saves it; several as arrays of all vertices, which hold -1, or NaN among floats,
    where there is no entry, and `reached`, which says where there is one.
    """

    def save(path: Path) -> None:
        value = first(parts)[1]
        if isinstance(value, sg.Matrix):
            sg.write(path, value)
        elif suffix_of(path) != ".npz":
            with replacing(str(path)) as stream:
                _write_rows(stream, columns(parts), "," if suffix_of(path) == ".csv" else "\t")
        elif len(parts) == 1:
            sg.save(path, value)
        else:
            arrays: dict[str, Any] = {name: _dense(part) for name, part in parts.items()}
            reached = np.zeros(value.size, bool)
            reached[value.to_coo()[0]] = True
            with replacing(str(path)) as stream:
                np.savez(stream, reached=reached, **arrays)

    write(path, save)


def _dense(v: sg.Vector) -> np.ndarray:
    return v.to_numpy(fill=np.nan if v.dtype.kind == "f" else -1)


def _write_rows(stream: IO[bytes], rows: Columns, delimiter: str) -> None:
    text = io.TextIOWrapper(stream, encoding="ascii", newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(rows)
    # truth values as 0 and 1, which other programs read
    plain = [c.view(np.uint8) if c.dtype == bool else c for c in rows.values()]
    for begin in range(0, plain[0].size, 1 << 16):
        block = (column[begin : begin + (1 << 16)].tolist() for column in plain)
        writer.writerows(zip(*block, strict=True))
    text.flush()
    text.detach()  # the stream is closed by who opened it


# --- text and JSON --------------------------------------------------------------------------------


def show(record: Record, lines: Sequence[str], style: str) -> None:
    """Print `record` as JSON, or the lines that say the same to people."""
    say(as_json(record) if style == "json" else "\n".join(lines))


def say(text: str) -> None:
    if is_root():
        click.echo(text)


def note(text: str) -> None:
    """What is no result and no error, on standard error."""
    if is_root():
        click.echo(f"note: {text}", err=True)


def as_json(record: Record) -> str:
    """`record` as JSON proper, which has no inf and no NaN: they become strings."""
    return json.dumps(_plain(record), indent=2, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def details(kind: Kind, parts: Parts, top: int | None, rows: Sequence[Level] | None) -> Record:
    """What --trace and --top add to a record."""
    more: Record = {}
    if rows is not None:
        more["trace"] = [row._asdict() for row in rows]
    if top is not None and kind.top is not None:
        found = kind.top(parts, top)
        more["entries"] = {name: _records(found[name]) for name in found}
    return more


def _records(rows: Columns) -> list[Record]:
    cells = zip(*(column.tolist() for column in rows.values()), strict=True)
    return [dict(zip(rows, row, strict=True)) for row in cells]


def heading(record: Record) -> str:
    """The algorithm, where it ran, its parameters."""
    words = {name: said(value) for name, value in record["parameters"].items() if value is not None}
    shared = ""
    if "shards" in record:
        shared = f", {record['shards']} shards by {record['partition']}"
    listed = ", ".join(f"{name} {word}" for name, word in words.items())
    line = f"{record['algorithm']} on {record['device']}{shared}"
    return f"{line}: {listed}" if listed else line


def detail_lines(kind: Kind, record: Record) -> list[str]:
    """The tables of --trace and --top."""
    lines: list[str] = []
    if "trace" in record:
        lines += ["", *trace_lines(record["trace"])]
    for name, records in record.get("entries", {}).items():
        lines += ["", f"The {len(records):,} {kind.best.format(name=name)}:", ""]
        head = list(records[0]) if records else []
        cells = [[_cell(row[column]) for column in head] for row in records]
        lines += terminal.table(head, cells) if records else ["none"]
    return lines


def _cell(value: Any) -> str:
    """A number of a table: ids, which people copy, have no commas."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def trace_lines(trace: Sequence[Record]) -> list[str]:
    rows = [
        (
            str(row["depth"]),
            row["direction"],
            f"{row['frontier']:,}",
            f"{row['edges']:,}",
            f"{row['seconds'] * 1e3:,.3f}",
        )
        for row in trace
    ]
    found, looked, spent = (
        sum(row[name] for row in trace) for name in ("frontier", "edges", "seconds")
    )
    total = ("all", "", f"{found:,}", f"{looked:,}", f"{spent * 1e3:,.3f}")
    head = ("level", "direction", "frontier", "edges looked at", "time [ms]")
    return terminal.table(head, rows, total)


def said(value: Any) -> str:
    """A value, or a dictionary of some, in a line of text."""
    if isinstance(value, dict):
        return ", ".join(f"{said(inner)} {name}" for name, inner in value.items())
    if isinstance(value, list):
        return ",".join(map(str, value))
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, float):
        return f"{value:,.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
