"""Graphs in; results out: as text, as JSON, into files."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Any, NamedTuple

import click
import numpy as np

import spgraph as sg
from spgraph import terminal
from spgraph.cli import names, placement, streams
from spgraph.cli.kinds import ENDS, Columns, Kind, Parts, Record, columns, first
from spgraph.cli.options import TABLES
from spgraph.cli.placement import is_root
from spgraph.cli.streams import STANDARD, Target, target
from spgraph.errors import FormatError
from spgraph.io.edge_table import write_parquet
from spgraph.io.files import write_to
from spgraph.io.ids import arrays_of
from spgraph.iterations import Level
from spgraph.process import activity


class Graph(NamedTuple):
    """A Matrix from a file, the time that took, and the names of vertices if they have any."""

    A: sg.Matrix
    file: Path
    times: terminal.Times
    ids: sg.Ids | None

    def facts(self) -> Record:
        return {
            "file": str(self.file),
            "vertices": self.A.nrows,
            "edges": self.A.nvals,
            **self.times.record("read_"),
        }

    def line(self) -> str:
        return (
            f"{self.file}: {self.A.nrows:,} vertices, {self.A.nvals:,} edges, read in {self.times}"
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
    columns: list[str] | None
    compact: Target | None

    @classmethod
    def of(cls, given: dict[str, Any]) -> Source:
        """Taken out of the options of a command. UsageError where they contradict each other."""
        found = {name: given.pop(name) for name in cls._fields}
        compact = found.pop("compact")
        source = cls(**found, compact=compact and target(compact, ".csv"))
        if source.columns is None and names.is_table(source.file):
            source = source._replace(columns=["source", "target"])
        if source.columns is not None and (source.base is not None or compact is not None):
            which = "--compact" if source.base is None else "--base"
            raise click.UsageError(
                f"{which}: expected none for a table with names (--columns): vertices are numbered "
                "as they appear"
            )
        return source


def read(source: Source, place: placement.Place) -> Graph:
    """The graph in a file, - being standard input; the ids of its vertices go to `compact`."""
    file, symmetric, base, columns, compact = source
    if file == STANDARD:
        if sys.stdin is None:
            raise FormatError("FILE: expected a graph on standard input, which is closed")
        file = placement.STANDARD_INPUT
    with terminal.progress(f"reading {file}"), terminal.measured() as times:
        if columns is not None:
            found = place.read_table(file, columns, symmetric=bool(symmetric))
        else:
            compacted = compact is not None or None
            try:
                found = place.read(file, symmetric=symmetric, base=base, compact=compacted)
            except FormatError as error:
                raise FormatError(f"{error}{names.hint(source.file, str(error))}") from error
    if compact is not None:
        if found.ids is not None:
            raise click.UsageError("--compact: expected none for a graph with names of vertices")
        write_result(compact, {"id": sg.Vector.from_dense(found.numbers)})
    return Graph(found.A, file, times, found.ids)


# --- files: each appears whole or not at all ------------------------------------------------------


def write(target: Target, save: Callable[[IO[bytes]], None]) -> None:
    """Let `save` write into the target, in the process that writes."""
    if is_root():
        # what is written to a terminal shows itself
        seen = target.is_standard and sys.stdout.isatty()
        shown = nullcontext() if seen else terminal.progress(f"writing {target.name}")
        with shown, target.open() as stream:
            save(stream)


def picture_target(path: Path | None) -> Target | None:
    """What --plot says; tells before the work, not after it, that there is nothing to draw with."""
    if path is None:
        return None
    from spgraph.plot.style import require_matplotlib

    require_matplotlib()
    return target(path, ".png")


def write_picture(
    target: Target, kind: Kind, parts: Parts, rows: Sequence[Level] | None = None
) -> None:
    """The levels of a search as a picture, or what the kind draws of a result."""
    from spgraph import plot

    if rows is not None:
        write_figure(target, plot.frontier_profile(rows))
    elif kind.picture is not None:
        write_figure(target, kind.picture(parts))


def write_figure(target: Target, figure: Any) -> None:
    write(target, lambda stream: figure.savefig(stream, format=target.suffix[1:]))


def write_result(
    target: Target, parts: Parts, ids: sg.Ids | None = None, ends: tuple[str, str] = ENDS
) -> None:
    """The parts in the target's format, with names for vertices where they have some and the format
    has a place for them.

    A table (.csv, .tsv, .parquet) has a row for each vertex with an entry, of a Matrix for each
    entry, whose row and column are called as `ends` says. Else a Matrix is as `sg.write` writes it;
    one Vector as `sg.save` saves it; several are arrays of all vertices, which hold -1, or NaN
    among floats, where there is no entry, and `reached`, which says where there is one.
    """

    def save(stream: IO[bytes]) -> None:
        value = first(parts)[1]
        if target.suffix in TABLES:
            rows = names.labelled(columns(parts, ends), ids)
            if target.suffix == ".parquet":
                write_parquet(stream, rows)
            else:
                _write_rows(stream, rows, "," if target.suffix == ".csv" else "\t")
        elif isinstance(value, sg.Matrix) or len(parts) == 1:
            write_to(stream, target.suffix, value, ids)
        else:
            arrays: dict[str, Any] = {name: _dense(name, part) for name, part in parts.items()}
            reached = np.zeros(value.size, bool)
            reached[value.to_coo()[0]] = True
            np.savez(stream, reached=reached, **arrays, **arrays_of(ids))

    write(target, save)
    if ids is not None and target.suffix == ".mtx":
        note(f"{target.name}: .mtx has no place for names: it numbers vertices; .npz keeps both")


def _dense(name: str, v: sg.Vector) -> np.ndarray:
    """The values of all vertices; FormatError for those of uint64 that no array has beside -1."""
    try:
        return v.to_numpy(fill=np.nan if v.dtype.kind == "f" else -1)
    except ValueError as error:
        raise FormatError(
            f"-o: expected a {name} that float64 holds beside the -1 of vertices that are not "
            f"reached, got up to {v._value_range()[1]}; a .csv or .tsv holds both"
        ) from error


def _write_rows(stream: IO[bytes], rows: Columns, delimiter: str) -> None:
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(rows)
    # truth values as 0 and 1, which other programs read
    plain = [c.view(np.uint8) if c.dtype == bool else c for c in rows.values()]
    for begin in range(0, plain[0].size, 1 << 16):
        block = (column[begin : begin + (1 << 16)].tolist() for column in plain)
        writer.writerows(zip(*block, strict=True))
        activity.step(begin, plain[0].size)
    text.flush()
    text.detach()  # the stream is closed by who opened it


# --- text and JSON --------------------------------------------------------------------------------


def show(record: Record, lines: Sequence[str], style: str, *, aside: bool = False) -> None:
    """Print `record` as JSON, or the lines that say the same to people; `aside`: on standard error,
    because standard output holds a file. There each object of JSON is a line.
    """
    text = as_json(record, None if aside else 2) if style == "json" else "\n".join(lines)
    say(text, aside=aside)


def say(text: str, *, aside: bool = False) -> None:
    if is_root() and not (aside and terminal.is_quiet()):
        click.echo(text, err=aside)


def note(text: str) -> None:
    """What is no result and no error, on standard error."""
    context = click.get_current_context(silent=True)
    as_json = context is not None and context.params.get("style") == "json"
    if is_root() and not terminal.is_quiet():
        line = streams.as_line("note", {"message": text}) if as_json else f"note: {text}"
        click.echo(line, err=True)


def as_json(record: Record, indent: int | None = 2) -> str:
    """`record` as JSON proper, which has no inf and no NaN: they become strings. Without `indent`
    it is one line.
    """
    return json.dumps(_plain(record), indent=indent, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def details(
    kind: Kind,
    parts: Parts,
    ids: sg.Ids | None,
    top: int | None,
    rows: Sequence[Level] | None,
) -> Record:
    """What --trace and --top add to a record."""
    more: Record = {}
    if rows is not None:
        more["trace"] = [row._asdict() for row in rows]
    if top is not None and kind.top is not None:
        found = kind.top(parts, top)
        more["entries"] = {name: _records(names.labelled(found[name], ids)) for name in found}
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
    return f"{value:.6g}" if isinstance(value, float) else names.printable(str(value))


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
        return names.printable(",".join(map(str, value))) or "none"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, float):
        return f"{value:,.6g}"
    return f"{value:,}" if isinstance(value, int) else names.printable(str(value))
