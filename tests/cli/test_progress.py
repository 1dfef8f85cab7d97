"""Progress on a terminal, a pty here, by a clock that the tests turn."""

from __future__ import annotations

import fcntl
import io
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import spgraph as sg
from spgraph import cli, terminal
from spgraph.cli import output
from spgraph.process import activity

pty = pytest.importorskip("pty", reason="terminals of POSIX")
COLORS = re.compile(r"\x1b\[[0-9;]*3[0-9][0-9;]*m")

# the cursor is seen again, goes back to the line, and the line is erased
ERASED = "\x1b[?25h\r\x1b[1A\x1b[2K"


class Clock(terminal.Clock):
    """Stands still but for `pass_by`, which returns when the display has shown the new time."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.until: float | None = None
        self.changed = threading.Condition()

    def now(self) -> float:
        return self.time

    def wait(self, ended: threading.Event, seconds: float) -> bool:
        with self.changed:
            self.until = self.time + seconds
            self.changed.notify_all()
            while not ended.is_set() and self.time < self.until:
                self.changed.wait(0.01)
            self.until = None
            return ended.is_set()

    def pass_by(self, seconds: float) -> None:
        with self.changed:
            self._let_it_wait()
            self.time += seconds
            self.changed.notify_all()
            self._let_it_wait()

    def _let_it_wait(self) -> None:
        waits = self.changed.wait_for(
            lambda: self.until is not None and self.until > self.time, timeout=120
        )
        assert waits


class Screen:
    """A terminal as standard error."""

    def __init__(self) -> None:
        self.leader, follower = pty.openpty()
        fcntl.fcntl(self.leader, fcntl.F_SETFL, os.O_NONBLOCK)
        self.stream = os.fdopen(follower, "w")

    def read(self) -> str:
        """What has been shown since the last call."""
        found = b""
        while True:
            try:
                piece = os.read(self.leader, 1 << 16)
            except (BlockingIOError, OSError):
                return found.decode()
            found += piece

    @contextmanager
    def progress(self, text: str, clock: Clock) -> Iterator[None]:
        """`terminal.progress` on this terminal: pytest has a standard error of its own."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stderr", self.stream)
            with terminal.progress(text, clock):
                yield

    def close(self) -> None:
        self.stream.close()
        os.close(self.leader)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Screen]:
    made = Screen()
    for name, value in (("TERM", "xterm-256color"), ("COLUMNS", "100")):
        monkeypatch.setenv(name, value)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    yield made
    made.close()


def plain(text: str) -> str:
    """The last line of what was shown, without colours."""
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
    return re.split(r"[\r\n]+", text.rstrip("\r\n"))[-1]


def test_nothing_is_shown_for_two_seconds(screen: Screen) -> None:
    clock = Clock()
    with screen.progress("reading g.npz", clock):
        clock.pass_by(1.9)
        assert screen.read() == ""
    assert screen.read() == ""
    with screen.progress("reading g.npz", clock):
        clock.pass_by(2.0)
        shown = screen.read()
        assert "reading g.npz" in plain(shown) and "0:00:02" in plain(shown)
        assert COLORS.search(shown)
        clock.pass_by(58)
        assert "0:01:00" in plain(screen.read())
    # the line is erased, and the cursor is there again
    assert screen.read().endswith(ERASED)


def test_an_estimate_where_steps_are_known(screen: Screen) -> None:
    clock = Clock()
    with screen.progress("reading [b]g.el[/b]", clock):
        activity.step(5, 100)
        clock.pass_by(2)
        assert "reading [b]g.el[/b]" in plain(screen.read())
        activity.step(50, 100)
        clock.pass_by(18)  # 45 in 18 s: the other 50 take 20
        shown = plain(screen.read())
        assert " 50%" in shown and "0:00:20" in shown and "00:20" in shown.replace("0:00:20", "", 1)
        activity.step(0, 0)  # sorting, of which nobody knows
        clock.pass_by(1)
        assert "%" not in plain(screen.read())


def test_compiling_is_said(screen: Screen) -> None:
    clock = Clock()
    with screen.progress("running bfs", clock):
        with activity.preparing():
            clock.pass_by(3)
            assert "running bfs: compiling" in plain(screen.read())
        clock.pass_by(1)
        shown = plain(screen.read())
        assert "running bfs" in shown and "compiling" not in shown


def test_an_error_leaves_a_clean_line(screen: Screen) -> None:
    clock = Clock()
    with pytest.raises(KeyboardInterrupt), screen.progress("running bfs", clock):
        clock.pass_by(3)
        screen.read()
        raise KeyboardInterrupt
    assert screen.read().endswith(ERASED)


def test_no_color(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    clock = Clock()
    with screen.progress("running bfs", clock):
        activity.step(1, 4)
        clock.pass_by(3)
        shown = screen.read()
    assert "running bfs" in shown and " 25%" in shown and not COLORS.search(shown)


def test_quiet_and_no_terminal(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    before = threading.active_count()
    with terminal.quiet(), screen.progress("running bfs", Clock()):
        assert threading.active_count() == before
    assert not terminal.is_quiet()
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with terminal.progress("running bfs", Clock()):
        assert threading.active_count() == before
    assert sys.stderr.getvalue() == "" and screen.read() == ""  # type: ignore[attr-defined]


def test_the_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "g.el").write_text("0 1\n1 2\n")
    seen: list[bool] = []
    monkeypatch.setattr(output, "note", lambda text: seen.append(terminal.is_quiet()))
    for words in (["-q", "core-number"], ["core-number", "--quiet"], ["core-number"]):
        assert cli.main([*words, str(tmp_path / "g.el")]) == 0
        out, err = capsys.readouterr()
        assert "core_number on cpu" in out and not err
    assert seen == [True, True, False] and not terminal.is_quiet()
    monkeypatch.undo()
    assert cli.main(["core-number", str(tmp_path / "g.el"), "-q", "-o", "-"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("vertex,core") and not err
    assert cli.main(["core-number", "missing.el", "-q"]) == 2
    assert "no file missing.el" in capsys.readouterr().err


# --- who tells its steps --------------------------------------------------------------------------


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The steps that are told, in their order."""
    told: list[tuple[int, int]] = []

    class Activity(activity.Activity):
        def __setattr__(self, name: str, value: object) -> None:
            if name == "steps":
                told.append(value)  # type: ignore[arg-type]
            super().__setattr__(name, value)

    made = Activity()
    told.clear()
    monkeypatch.setattr(activity, "current", lambda: made)
    return told


def goes_up(told: list[tuple[int, int]], total: int) -> None:
    done = [step[0] for step in told if step != (0, 0)]
    assert done == sorted(done) and len(done) > 1 and done[-1] == total
    assert {step[1] for step in told if step != (0, 0)} == {total}


def test_reading_tells_its_bytes(
    steps: list[tuple[int, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spgraph.io.source.BLOCK", 100)
    text = "".join(f"{k} {k + 1}\n" for k in range(200))
    for name in ("g.el", "g.el.gz"):
        with sg.io.source.open_compressed(str(tmp_path / name), name[4:], "wb") as stream:
            stream.write(text.encode())
        assert sg.read(tmp_path / name).nvals == 200
        size = (tmp_path / name).stat().st_size
        goes_up(steps, size)
        assert steps[-1] == (0, 0)  # what follows has no steps
        steps.clear()
    sg.write(tmp_path / "g.npz", sg.generators.grid(9, 9))
    steps.clear()
    sg.read(tmp_path / "g.npz")
    done, total = steps[-1]
    assert done == total > 0


def test_generating_and_writing_tell_their_rows(
    steps: list[tuple[int, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spgraph.random_edges.CHUNK", 64)
    sg.generators.kronecker(5, 8)
    goes_up(steps, 32 * 8)
    assert steps[-1] == (0, 0)


def test_sources_are_told(steps: list[tuple[int, int]]) -> None:
    A = sg.generators.grid(5, 5)
    sg.closeness_centrality(A, sources=[0, 3, 7])
    assert steps[-1] == (3, 3)
    steps.clear()
    sg.iterations.path_dependencies.composed_dependencies(A, None, np.array([0, 4, 9]), None)
    assert (2, 3) in steps
