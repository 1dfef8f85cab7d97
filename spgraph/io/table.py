"""Convert lines of numbers to arrays, strictly: a wrong character is an error that names its line.

A kernel of the CPU parses large blocks of lines on all cores; it does not say which line is wrong.
Small blocks, for which it is not worth compiling or loading, and those that it gives back, are
parsed line by line in Python, which names the line, with the same result.

SciPy's Matrix Market reader reads the id 2.5 as 2 and 7x as 7, and ignores surplus columns.
"""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any, Literal

import numpy as np

from spgraph.containers import memory
from spgraph.containers.storage.casting import rounded
from spgraph.errors import FormatError
from spgraph.io.source import Source, lone_return
from spgraph.steps import backend

LARGEST_ORDER = 3_037_000_499  # rows * columns stays within 63 bits
LARGE = 1 << 13  # bytes that take 3 ms line by line: below, no kernel is worth loading

_INTEGER = re.compile(rb"-?[0-9]+")
_REAL = re.compile(
    rb"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE
)
_BLANKS = b" \t\r\v\f"
# an integer at the end of a line that may have more than 53 binary digits
_LONG = re.compile(rb"(?<=[\s,])-?[0-9]{16,}(?=[ \t\r\v\f]*(?:[#%][^\n]*)?$)", re.MULTILINE)
_RANGES = {"int64": (-(2**63), 2**63 - 1), "uint64": (0, 2**64 - 1)}


@dataclasses.dataclass(frozen=True)
class Form:
    """The fields of a line: an optional letter, `ids` vertex ids, an optional value.

    `values` lists the types that the value may have; if integers and reals occur, all become reals.
    """

    usage: str
    ids: int = 2
    letter: bytes = b""
    values: tuple[str, ...] = ()
    low: int = 0
    high: tuple[int, int] = (LARGEST_ORDER - 1, LARGEST_ORDER - 1)
    beyond: str = ""  # appended to the error for an id above high
    below: str = ""  # appended to the error for an id below low
    comment: re.Pattern[bytes] | None = None
    markers: tuple[bytes, ...] = ()  # every comment contains one of these
    commas: bool = False

    @property
    def width(self) -> int:
        return len(self.letter) + self.ids + bool(self.values)


@dataclasses.dataclass(frozen=True)
class Layout:
    """What is known of a file before its first entry is read; ids count from form.low.

    `count`, `nrows` and `ncols` are the number of entries, rows and columns that the header
    declares, None if it does not. `undirected` and `duplicates` are those of Coordinates; `skew`:
    of every two entries of opposite values the file lists one.
    """

    form: Form
    count: int | None = None
    nrows: int | None = None
    ncols: int | None = None
    undirected: bool = False
    duplicates: Literal["min", "plus"] = "min"
    skew: bool = False

    def read_as(self, dtype: np.dtype | None) -> Layout:
        """The same layout with values read in a type that converts to `dtype` without loss."""
        types = self.form.values
        if dtype is not None and types:
            whole = "uint64" if dtype == np.uint64 and not self.skew else "int64"
            if dtype.kind == "f":
                types = ("float64",)
            elif types[-1] == "float64":
                types = (whole, "float64")
            elif types == ("int64",):
                types = (whole,)
        return dataclasses.replace(self, form=dataclasses.replace(self.form, values=types))


def read_table(source: Source, form: Form, count: int | None = None) -> list[np.ndarray]:
    """The columns of all lines left in `source`: ids (int32 if possible), then values.

    `count` is the number of lines that the header declares (None: it does not); FormatError for
    more or fewer.
    """
    parts: list[list[np.ndarray]] = []
    whole: list[np.ndarray] = []  # integers before the first real
    seen, held, types = 0, 0, form.values
    for line, block in source.blocks():
        left = None if count is None else count - seen
        columns = read_block(form, source.path, line, block, types, left)
        if len(types) > 1 and columns[-1].dtype == types[-1]:
            types, whole = types[-1:], [part[-1] for part in parts]  # reals from here on
        seen += columns[0].size
        held += sum(column.nbytes for column in columns)
        memory.require(
            held, f"{source.path}, line {source.line}: putting together {seen:,} entries"
        )
        parts.append(columns)
    if count is not None and seen < count:
        raise FormatError(
            f"{source.path}, line {source.line}: the file ends after {seen} entries, the header "
            f"declares {count}: fetch the file again, or correct the header"
        )
    for values in whole:
        if (lost := rounded(values)).size:
            raise _lost(source.path, str(lost[0]))
    if not parts:
        parts = [_empty(form, types)]
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def read_block(
    form: Form, path: str, line: int, block: bytes, types: tuple[str, ...], left: int | None = None
) -> list[np.ndarray]:
    """The columns of a block whose first line has the number `line`; values get the first of
    `types` that can represent them all. FormatError for more than `left` entries.
    """
    columns = _by_kernel(form, block, types) if len(block) >= LARGE else None
    if columns is None or (left is not None and columns[0].size > left):
        columns = _by_line(form, path, line, block, types, left)
    if len(form.values) > 1 and columns[-1].dtype.kind == "f":
        _check_integers(form, path, line, block, columns[-1])
    return [_narrow(c) for c in columns[: form.ids]] + columns[form.ids :]


def _check_integers(form: Form, path: str, line: int, block: bytes, values: np.ndarray) -> None:
    """FormatError for an integer of the block that its conversion to float64, which other values
    require, has rounded.
    """
    if not bool((np.abs(values) >= 2.0**53).any()):
        return
    for found in _LONG.finditer(block):
        token, start = found[0], block.rfind(b"\n", 0, found.start()) + 1
        if form.comment is not None and form.comment.search(block, start, found.start()):
            continue
        if is_rounded(token.decode()):
            number = line + block.count(b"\n", 0, found.start())
            raise _lost(f"{path}, line {number}", token[:60].decode())


def is_rounded(integer: str) -> bool:
    """Whether float64 holds the integer, as it is written, by a neighbour or infinity alone."""
    near = float(integer)
    return math.isinf(near) or len(integer) > 400 or int(near) != int(integer)


def _lost(where: str, integer: str) -> FormatError:
    return FormatError(
        f"{where}: expected integers that float64 holds beside values that are none of int64, got "
        f"{integer}, which it rounds; dtype='float64' reads it so, dtype='uint64' reads integers "
        "up to 2**64 - 1"
    )


def _narrow(ids: np.ndarray) -> np.ndarray:
    if ids.size == 0 or ids.max() < 2**31:
        return ids.view(np.int32) if ids.dtype == np.uint32 else ids.astype(np.int32)
    return ids.astype(np.int64, copy=False)


def _empty(form: Form, types: tuple[str, ...]) -> list[np.ndarray]:
    return [np.empty(0, np.int64) for _ in range(form.ids)] + [np.empty(0, t) for t in types[:1]]


def _by_kernel(form: Form, block: bytes, types: tuple[str, ...]) -> list[np.ndarray] | None:
    """The columns, values of the first of `types` that can represent them all; None if a line may
    be wrong.
    """
    parse = getattr(backend("cpu"), "parse_lines", None)
    high = form.high[: form.ids]
    if parse is None or min(high, default=form.low) < form.low:  # no vertex, so that no id is right
        return None
    if not block.endswith(b"\n"):
        block += b"\n"
    # no integer has a point: the first line tells that most columns of reals are none of integers
    line = block[: block.find(b"\n")]
    point = len(types) > 1 and b"." in line and not any(mark in line for mark in form.markers)
    given = form.letter, form.markers, form.commas, form.low, high
    for type in types[point:] or ("",):
        if (columns := parse(block, *given, type, _REAL)) is not None:
            return columns
    return None


def _by_line(
    form: Form, path: str, first: int, block: bytes, types: tuple[str, ...], left: int | None
) -> list[np.ndarray]:
    """The columns of a block, line by line; FormatError at the first bad line."""
    rows: list[list[Any]] = []
    for number, raw in enumerate(block.split(b"\n"), first):
        where = f"{path}, line {number}"
        if b"\r" in raw.removesuffix(b"\r"):
            raise lone_return(where)
        text = (raw if form.comment is None else form.comment.sub(b"", raw)).strip(_BLANKS)
        if not text:
            continue
        if left is not None and len(rows) == left:
            raise FormatError(f"{where}: more entries than the header declares; correct the header")
        tokens = split(text, form.commas)
        if b"" in tokens:
            raise FormatError(
                f"{where}: expected a number between the commas, got nothing in {_show(text)}"
            )
        if form.letter and tokens[0] != form.letter:
            raise FormatError(f"{where}: expected {form.usage}, got {_show(text)}")
        if len(tokens) != form.width:
            raise FormatError(
                f"{where}: expected {form.width} columns, {form.usage}, got {len(tokens)}: "
                f"{_show(text)}"
            )
        del tokens[: len(form.letter)]
        row: list[Any] = [
            _id(form, where, token, high)
            for token, high in zip(tokens[: form.ids], form.high, strict=False)
        ]
        if types:
            row.append(_value(where, tokens[-1], types))
            if len(types) > 1 and isinstance(row[-1], float):  # so are all: -0 keeps its sign
                return _by_line(form, path, first, block, types[-1:], left)
        rows.append(row)
    if not rows:
        return _empty(form, types)
    kinds = ["int64"] * form.ids + list(types[:1])
    return [
        np.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)
    ]


def split(text: bytes, commas: bool) -> list[bytes]:
    """The fields of a line, separated by blanks and, if `commas`, by commas, between which a field
    may be empty.
    """
    if not commas:
        return text.split()
    return [token for part in text.split(b",") for token in part.split() or [b""]]


def is_number(token: bytes) -> bool:
    """Whether it is a number, integer or real, as values are written."""
    return _REAL.fullmatch(token) is not None


def _id(form: Form, where: str, token: bytes, high: int) -> int:
    if not _INTEGER.fullmatch(token):
        raise FormatError(
            f"{where}: expected an integer vertex id, got {_show(token)} "
            f"(a comment begins with {' or '.join(m.decode() for m in form.markers)}; "
            "from_edges, and --columns of a command, read a .csv of names)"
        )
    id = bounded(token)
    if id < form.low:
        raise FormatError(f"{where}: vertex id {id} is below {form.low}, the least{form.below}")
    if id > high:
        raise FormatError(f"{where}: vertex id {id} is beyond {high}, the largest{form.beyond}")
    return id


def bounded(token: bytes) -> int:
    """The integer, cut to its first 29 significant digits: enough to be out of range, whereas int()
    refuses numbers of thousands of digits.
    """
    digits = token.removeprefix(b"-")
    return int(token[: len(token) - len(digits)] + b"0" + digits.lstrip(b"0")[:29])


def _value(where: str, token: bytes, types: tuple[str, ...]) -> int | float:
    if types[0] in _RANGES and _INTEGER.fullmatch(token):
        low, high = _RANGES[types[0]]
        number = bounded(token)
        if low <= number <= high:
            return number
        if len(types) == 1:
            raise FormatError(f"{where}: the value {_show(token)} does not fit {types[0]}")
    if "float64" in types and _REAL.fullmatch(token):
        return float(token)
    expected = "a number" if "float64" in types else "an integer"
    raise FormatError(f"{where}: expected {expected} as the value, got {_show(token)}")


def _show(text: bytes) -> str:
    return repr(text[:60].decode("utf-8", "replace"))
