"""The command line in several processes says what one says; an error ends all of them, once."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import mpi_cases
import numpy as np
import pytest
from processes import finished

from spgraph.cli import launch, main

pytestmark = pytest.mark.mpi

TIMES = {"seconds", "read_seconds", "compile_seconds", "read_compile_seconds", "teps"}


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    edges = np.random.default_rng(1).integers(0, 90, (400, 2))
    weights = edges.sum(axis=1, keepdims=True) % 7 + 1
    np.savetxt(tmp_path / "graph.wel", np.hstack([edges, weights]), fmt="%d")
    return tmp_path / "graph.wel"


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_times(inner) for name, inner in value.items() if name not in TIMES}
    return [without_times(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "command",
    [
        "bfs graph.wel --shards 4 --symmetric --top 3 --validate -o found.npz --format json",
        "pagerank graph.wel --shards 2 --partition random --top 4 -o found.npz --format json",
    ],
)
def test_the_same_as_one_process(
    command: str,
    graph: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(graph.parent)
    assert main(command.split()) == 0
    expected = without_times(json.loads(capsys.readouterr().out))
    saved = dict(np.load("found.npz"))
    Path("found.npz").unlink()
    code, said = finished(2, "-m", "spgraph", *command.split(), cwd=graph.parent)
    assert code == 0, said
    found = without_times(json.loads(said))
    assert found == expected  # to the last digit: the sums are those of the same shards
    again = dict(np.load("found.npz"))
    assert again.keys() == saved.keys()
    for name, array in saved.items():
        assert array.dtype == again[name].dtype and np.array_equal(array, again[name])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        # no process has the file, only process 0 has it, and process 1 fails while others search
        ("bfs missing.el --shards 2", "there is no file missing.el"),
        ("bfs graphRANK.el --shards 2", "there is no file graph1.el"),
        ("bfs graph0.el --shards 2 fails", "process 1 alone"),
        # found out before MPI begins, by process 1 alone
        ("bfs graph0.el --shards 2 -o folderRANK/found.npz", "no folder folder1"),
    ],
)
def test_one_line_for_an_error(arguments: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "graph0.el").write_text("0 1\n1 2\n")
    (tmp_path / "folder0").mkdir()
    code, said = finished(2, mpi_cases.__file__, "command", *arguments.split(), cwd=tmp_path)
    lines = [line for line in said.splitlines() if "error" in line]
    assert code == 2 and len(lines) == 1 and words in lines[0], said
    assert "Traceback" not in said


@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.full)])
def test_ctrl_c_in_one_process_ends_all(count: int, tmp_path: Path) -> None:
    (tmp_path / "graph.el").write_text("0 1\n1 2\n")
    command = f"bfs graph.el --shards {count} interrupted".split()
    code, said = finished(count, mpi_cases.__file__, "command", *command, cwd=tmp_path, seconds=120)
    assert code == 130 and "Traceback" not in said and "error" not in said, said


def test_what_launchers_say(monkeypatch: pytest.MonkeyPatch) -> None:
    for size, rank in launch.LAUNCHERS:
        monkeypatch.delenv(size, raising=False)
        monkeypatch.delenv(rank, raising=False)
    assert (launch.processes(), launch.rank()) == (1, 0)
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "8")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "5")
    assert (launch.processes(), launch.rank()) == (8, 5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", "expected --shards 2 or --gpus 2, for MPI has started 2 processes"),
        ("--shards 3", "expected a multiple of 2"),
        ("--gpus 3", "--gpus: expected 2, one a process"),
    ],
)
def test_numbers_that_do_not_fit(
    arguments: str, words: str, graph: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    monkeypatch.setenv("PMI_SIZE", "2")
    for rank in ("1", "0"):
        monkeypatch.setenv("PMI_RANK", rank)
        assert main(["bfs", str(graph), *arguments.split()]) == 2
        said = capsys.readouterr().err
        assert words in said and said.count("\n") == 1 if rank == "0" else not said


def test_without_mpi4py(graph: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setenv("PMI_RANK", "0")
    assert main(["bfs", str(graph), "--shards", "2"]) == 2
    assert "pip install 'spgraph[mpi]'" in capsys.readouterr().err
