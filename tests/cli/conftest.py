"""What tests of the command line share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


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
