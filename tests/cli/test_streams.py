"""The command where standard streams are closed, full, or left by their reader."""

from __future__ import annotations

import errno
import os
import resource
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import spgraph as sg

pytestmark = pytest.mark.skipif(os.name != "posix", reason="streams of a POSIX shell")
full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("graph") / "k.npz"
    sg.write(path, sg.generators.kronecker(6, seed=1))
    return path


def shell(line: str, *words: object) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `line`, where $run is the command with `words`."""
    command = shlex.join([sys.executable, "-m", "spgraph", *map(str, words)])
    done = subprocess.run(
        ["bash", "-c", line.replace("$run", command)], capture_output=True, text=True, timeout=280
    )
    return done.returncode, done.stdout, done.stderr


def test_a_closed_output_is_an_error_in_one_line(graph: Path, tmp_path: Path) -> None:
    code, _, said = shell("$run >&-", "info", graph)
    assert (code, said) == (2, "spgraph: error: standard output: it is closed\n")
    # what is opened next gets no stream's number: nothing is printed into it
    out = tmp_path / "level.npz"
    code, _, said = shell("$run >&- 2>&- <&-", "bfs", graph, "-o", out)
    assert (code, said) == (2, "")
    code, _, _ = shell("$run", "bfs", graph, "-o", tmp_path / "again.npz")
    assert code == 0 and out.read_bytes() == (tmp_path / "again.npz").read_bytes()


def test_a_closed_error_stream_keeps_the_exit_code(graph: Path) -> None:
    code, printed, _ = shell("$run 2>&-", "info", graph)
    assert code == 0 and "shape" in printed
    assert shell("$run 2>&-", "info", "nothing.npz")[0] == 2


def test_a_closed_input(graph: Path) -> None:
    code, _, said = shell("$run <&-", "info", "-")
    assert code == 2
    assert said == "spgraph: error: FILE: expected a graph on standard input, which is closed\n"
    assert shell("$run <&-", "info", graph)[0] == 0


@full
def test_full_streams(graph: Path) -> None:
    code, _, said = shell("$run >/dev/full", "info", graph)
    expected = f"spgraph: error: standard output: {os.strerror(errno.ENOSPC)}\n"
    assert (code, said) == (2, expected)
    code, _, said = shell("$run >/dev/full", "--help")
    assert (code, said) == (2, expected)
    assert shell("$run 2>/dev/full", "info", "nothing.npz")[0] == 2


def test_a_reader_that_leaves(graph: Path) -> None:
    code, _, said = shell("$run | true; exit ${PIPESTATUS[0]}", "bfs", graph, "--trace")
    assert code in (0, 141) and said == ""  # 0 where all was written before `true` had gone
    code, printed, said = shell("$run --help | head -n 1", "bfs")
    assert code == 0 and said == "" and printed.startswith("Usage")


@pytest.fixture
def small_files() -> Iterator[int]:
    """No file of this process may grow over so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    yield 4096
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("name", ["g.npz", "g.mtx", "g.mtx.gz", "g.mtx.zst"])
def test_a_file_that_does_not_fit_is_named(name: str, tmp_path: Path, small_files: int) -> None:
    A = sg.generators.kronecker(9, seed=1)
    path = tmp_path / name
    path.write_bytes(b"as it was")
    with pytest.raises(OSError) as caught:
        sg.write(path, A)
    assert caught.value.filename == str(path) and caught.value.errno == errno.EFBIG
    assert path.read_bytes() == b"as it was" and os.listdir(tmp_path) == [name]
