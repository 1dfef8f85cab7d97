"""The standard streams of the command: some are closed, full, or read by nobody any more; and the
files that it writes, - being standard output.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import click

from spgraph.io.source import COMPRESSIONS, open_compressed, replacing

STANDARD = Path("-")
TEXT = (".csv", ".tsv", ".mtx", ".svg")  # what a terminal can show


# what writing to a full, broken or closed stream raises
UNWRITTEN = (errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EBADF, errno.EDQUOT)


def open_closed() -> None:
    """Open what whoever started the process has closed (`>&-`), so that everything may print.

    A number that is free would be that of the next file opened, and what is printed would go into
    that file. What goes to a closed standard output is kept, for `lost` to say that there was some.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    if sys.stdout is None:
        sys.stdout = io.StringIO()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (for the life of the process)


def lost() -> bool:
    """Whether something was printed to an output that was closed."""
    return type(sys.stdout) is io.StringIO and bool(sys.stdout.getvalue())


def binary_output() -> IO[bytes]:
    """Standard output for bytes, behind what has been printed. ClickException if it is closed."""
    if type(sys.stdout) is io.StringIO:
        raise click.ClickException("standard output: it is closed")
    sys.stdout.flush()
    return sys.stdout.buffer


def as_line(what: str, told: dict[str, Any]) -> str:
    """A line of JSON for standard error: `what` is "error", "warning" or "note"."""
    return json.dumps({what: told}, ensure_ascii=False)


@contextmanager
def warnings_as_json() -> Iterator[None]:
    """Warnings in this block are lines of JSON on standard error."""

    def show(message: Warning | str, category: type[Warning], *_: object) -> None:
        text = " ".join(str(message).split())
        click.echo(as_line("warning", {"kind": category.__name__, "message": text}), err=True)

    with warnings.catch_warnings():
        warnings.showwarning = show  # type: ignore[assignment]
        yield


def give_up(stream: Any) -> None:
    """Keep the interpreter from complaining of a stream as it flushes it at its exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


# --- files that are written, whole or not at all --------------------------------------------------


class Target(NamedTuple):
    """A file to write, or - for standard output; `suffix`, such as ".mtx", says the format,
    `compression` is that of a suffix behind it or ''.
    """

    path: Path
    suffix: str
    compression: str = ""

    @property
    def is_standard(self) -> bool:
        """Whether it is standard output, where nothing else may be printed then."""
        return self.path == STANDARD

    @property
    def name(self) -> str:
        """What messages call it."""
        return "standard output" if self.is_standard else str(self.path)

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """A stream for the bytes: those of a file are kept if the block ends well, standard output
        gets them at once.
        """
        if not self.is_standard:
            with replacing(str(self.path), self.compression) as stream:
                yield stream
            return
        output = binary_output()
        if self.compression:
            with open_compressed(output, self.compression, "wb") as stream:
                yield stream
        else:
            yield output
        output.flush()


def target(path: Path, standard: str) -> Target:
    """The Target of a path, `standard` being the suffix where it is standard output.

    UsageError for binary data and a terminal.
    """
    name = standard if path == STANDARD else path.name.lower()
    stem, suffix = os.path.splitext(f"x{name}")
    compression = suffix if suffix in COMPRESSIONS else ""
    if compression:
        suffix = os.path.splitext(stem)[1]
    if path == STANDARD and (compression or suffix not in TEXT) and sys.stdout.isatty():
        raise click.UsageError(
            f"-: {standard} is binary, and standard output is a terminal: expected a pipe, or the "
            "name of a file; --output-format with -o chooses a format of text"
        )
    return Target(path, suffix, compression)


def result_target(given: dict[str, Any], standard: str) -> Target | None:
    """What -o and --output-format say, which are taken out of the options of a command."""
    path, asked = given.pop("target", None), given.pop("target_format", None)
    if asked is not None and path != STANDARD:
        raise click.UsageError(
            "--output-format: expected -o - with it; the suffix of a file says its format"
        )
    return None if path is None else target(path, f".{asked}" if asked else standard)


def writes_standard(**targets: Target | None) -> bool:
    """Whether one of the options' targets is standard output; UsageError if several are."""
    taken = [name for name, each in targets.items() if each is not None and each.is_standard]
    if len(taken) > 1:
        raise click.UsageError(
            f"{' and '.join(f'--{name}' for name in taken)}: expected - for one of them: standard "
            "output holds one file"
        )
    return bool(taken)
