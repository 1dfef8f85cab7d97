"""What tests of the command line share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spgraph import cli

Run = Callable[..., tuple[int, str, str]]

# (tail, head, weight): two components, two edges both ways
EDGES = (
    *((0, 1, 8), (1, 3, 4), (3, 2, 16), (3, 4, 8), (4, 3, 12), (3, 5, 2)),
    *((4, 5, 16), (6, 7, 8), (7, 6, 4), (5, 0, 8), (2, 0, 1)),
)


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


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("graph") / "small.el"
    path.write_text("".join(f"{u} {v}\n" for u, v, _ in EDGES))
    return path


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same edges with their weights."""
    path = tmp_path_factory.mktemp("weights") / "small.wel"
    path.write_text("".join(f"{u} {v} {weight}\n" for u, v, weight in EDGES))
    return path


@pytest.fixture(scope="module")
def chances(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same edges with numbers that can be probabilities."""
    path = tmp_path_factory.mktemp("chances") / "small.wel"
    path.write_text("".join(f"{u} {v} {weight / 16}\n" for u, v, weight in EDGES))
    return path
