"""What the command line shows: progress on a terminal, tables, amounts and times."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from spgraph.process import activity

SHOWN_AFTER = 2.0  # seconds
EVERY = 0.1

_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


@contextmanager
def quiet() -> Iterator[None]:
    """In this block nothing but errors and warnings is shown on standard error."""
    before = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(before)


def is_quiet() -> bool:
    """Whether this is in a block of `quiet`."""
    return _quiet.get()


class Clock:
    """The time that `progress` goes by; tests have one of their own."""

    def now(self) -> float:
        """Seconds since some time."""
        return time.monotonic()

    def wait(self, ended: threading.Event, seconds: float) -> bool:
        """Wait for so long, or until `ended`; whether it is."""
        return ended.wait(seconds)


@contextmanager
def progress(text: str, clock: Clock | None = None) -> Iterator[None]:
    """Show on a terminal's stderr what this block does, if it takes more than two seconds: `text`,
    the time so far and, where a loop in it tells its steps, how much is done and the time that is
    left; "compiling" while kernels are made ready. What was shown is erased at the end.
    """
    if _quiet.get() or not sys.stderr.isatty():
        yield
        return
    activity.step(0, 0)
    ended = threading.Event()
    shows = threading.Thread(target=_show, args=(text, ended, clock or Clock()), daemon=True)
    shows.start()
    try:
        yield
    finally:
        ended.set()
        shows.join()


def _show(text: str, ended: threading.Event, clock: Clock) -> None:
    """What the thread of `progress` does."""
    begin = clock.now()
    if clock.wait(ended, SHOWN_AFTER):
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    shown = activity.current()
    display = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(24),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(compact=True),
        console=Console(stderr=True),
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,  # it is another stream than that of the console
        redirect_stderr=False,
        get_time=clock.now,
    )
    with contextlib.suppress(OSError), display:  # the terminal may go away
        display.add_task(text, total=None)
        task = display.tasks[0]
        task.start_time = begin
        while True:
            done, total = shown.steps
            said = f"{text}: compiling" if shown.preparing else text
            task.total = total or None  # None means no change to `update`
            display.update(task.id, description=said, completed=done)
            display.refresh()
            if clock.wait(ended, EVERY):
                return


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
    begin, compiled = time.perf_counter(), activity.current().prepare_seconds()
    try:
        yield times
    finally:
        ready = activity.current().prepare_seconds() - compiled
        times.compile_seconds += ready
        times.seconds += time.perf_counter() - begin - ready
