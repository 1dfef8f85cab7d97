"""What the command line shows: progress on a terminal, tables, amounts and times."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from spgraph import late_imports


@contextmanager
def progress(text: str) -> Iterator[None]:
    """Show `text`, a spinner and the time so far on stderr: on a terminal, from one second on."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    display = Progress(*columns, console=Console(stderr=True), transient=True)
    display.add_task(text, total=None)
    timer = threading.Timer(1.0, display.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if display.live.is_started:
            display.stop()


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], total: Sequence[str] | None = None
) -> list[str]:
    """Lines of right-aligned columns, under a rule `total`; the direction, a word, aligned left."""
    last = [] if total is None else [total]
    widths = [max(map(len, column)) for column in zip(head, *rows, *last, strict=True)]

    def line(cells: Sequence[str]) -> str:
        return "  ".join(
            cell.ljust(width) if name == "direction" else cell.rjust(width)
            for name, cell, width in zip(head, cells, widths, strict=True)
        )

    rule = "  ".join("-" * width for width in widths)
    lines = [line(head), rule, *map(line, rows)]
    return lines if total is None else [*lines, rule, line(total)]


def facts(named: dict[str, str]) -> list[str]:
    """Lines of a name and what there is to say about it, in two columns."""
    width = max(map(len, named))
    return [f"{name.ljust(width)}  {fact}" for name, fact in named.items()]


def duration(seconds: float) -> str:
    """Seconds for people: '4.2 ms', '1.25 s'."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def rate(teps: float) -> str:
    """Traversed edges a second for people: '1.72 GTEPS'."""
    for unit, size in (("GTEPS", 1e9), ("MTEPS", 1e6)):
        if teps >= size:
            return f"{teps / size:.2f} {unit}"
    return f"{teps / 1e3:.2f} kTEPS"


class Times:
    """Of a piece of work: its `seconds` without those that only a first call takes, which are
    `compile_seconds`: to compile kernels or load them from the disk, and to import libraries. The
    two add up to what passed on the clock.
    """

    def __init__(self) -> None:
        self.seconds = self.compile_seconds = 0.0

    def __str__(self) -> str:
        """'12 ms', or '12 ms, after 1.3 s for compiling and loading'."""
        if self.compile_seconds == 0:
            return duration(self.seconds)
        ready = duration(self.compile_seconds)
        return f"{duration(self.seconds)}, after {ready} for compiling and loading"

    def record(self, prefix: str = "") -> dict[str, float]:
        """The two by the names that JSON has."""
        return {f"{prefix}seconds": self.seconds, f"{prefix}compile_seconds": self.compile_seconds}


@contextmanager
def measured(times: Times | None = None) -> Iterator[Times]:
    """The Times of this block, which are there when it has ended; added to `times` if given."""
    times = times or Times()
    begin, compiled = time.perf_counter(), late_imports.current().prepare_seconds()
    try:
        yield times
    finally:
        ready = late_imports.current().prepare_seconds() - compiled
        times.compile_seconds += ready
        times.seconds += time.perf_counter() - begin - ready
