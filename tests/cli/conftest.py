"""What tests of the command line share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spgraph import cli

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def standard_input() -> Iterator[Callable[[Path], None]]:
    """Make a file the standard input of this process, for one test."""
    before = os.dup(0)

    def put(path: Path) -> None:
        file = os.open(path, os.O_RDONLY)
        os.dup2(file, 0)
        os.close(file)

    yield put
    os.dup2(before, 0)
    os.close(before)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in this process: exit code, stdout, stderr."""

    def call(*words: object) -> tuple[int, str, str]:
        code = cli.main([str(word) for word in words])
        out, err = capsys.readouterr()
        return code, out, err

    return call
