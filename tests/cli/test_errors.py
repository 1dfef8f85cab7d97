"""Errors, warnings and notes as JSON under `--format json`: a line each, on standard error."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spgraph as sg
import spgraph_command
from spgraph import cli, errors
from spgraph.cli import placement
from spgraph.cli.commands import graphs

Run = Callable[..., tuple[int, str, str]]
Told = Callable[..., tuple[int, list[dict[str, Any]]]]


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Told:
    """Run the command line in this process: the exit code, and the lines on standard error."""

    def call(*words: object) -> tuple[int, list[dict[str, Any]]]:
        code = cli.main([str(word) for word in words])
        out, err = capsys.readouterr()
        assert not out or code == 0
        return code, [json.loads(line) for line in err.splitlines()]

    return call


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    sg.write(tmp_path / "g.npz", sg.generators.grid(3, 3), ids=sg.Ids([f"v{k}" for k in range(9)]))
    return tmp_path / "g.npz"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            "bfs missing.npz --format json",
            {"kind": "FileNotFoundError", "message": "path: there is no file missing.npz"},
        ),
        (
            "bfs --format=json",
            {
                "kind": "MissingParameter",
                "message": "Missing argument 'FILE'.",
                "parameter": "file",
            },
        ),
        (
            "bfs GRAPH --format json --device tpu",
            {"kind": "ValueError"},
        ),
        (
            "bfs GRAPH --direction up --format json",
            {"kind": "BadParameter", "parameter": "--direction"},
        ),
        ("bfs GRAPH --format json --top", {"kind": "BadOptionUsage"}),
        (
            "bfs GRAPH --sourec v3 --format json",
            {"kind": "NoSuchOption", "parameter": "--sourec", "nearest": ["--source"]},
        ),
        ("dfs GRAPH --format json", {"kind": "NoSuchCommand"}),
        (
            "bfs GRAPH --format json --source v33",
            {
                "kind": "UnknownVertex",
                "message": "--source: there is no vertex 'v33'; the nearest names are 'v3'",
                "parameter": "--source",
                "name": "v33",
                "nearest": ["v3"],
            },
        ),
        ("generate kronecker 4 --a 2 -o a.npz --format json", {"kind": "ValueError"}),
        ("convert GRAPH -o a.txt --format json", {"kind": "BadParameter", "parameter": "--output"}),
        ("pagerank GRAPH --max-iter 1 --tol 1e-12 --format json", {"kind": "ConvergenceError"}),
    ],
)
def test_an_error_is_an_object(
    words: str, expected: dict[str, Any], graph: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(graph.parent)
    code, lines = told(*(graph if word == "GRAPH" else word for word in words.split()))
    assert code == 2 and len(lines) == 1
    error = lines[0]["error"]
    assert error["exit_code"] == 2 and error["message"] and expected.items() <= error.items()
    assert not error["message"].startswith("spgraph")


@pytest.mark.parametrize(
    ("words", "option", "remedy"),
    [
        ("multi-source-bfs GRAPH --sources 1 --sources 2", "--sources", "V,V,..."),
        ("info GRAPH --columns a,b --columns c,d", "--columns", "FROM,TO[,WEIGHT]"),
        ("bfs GRAPH --source v1 --top 2 --source=v1", "--source", ""),
        ("sssp GRAPH --parents --no-parents", "--parents or --no-parents", ""),
        ("convert GRAPH -o a.npz --output b.npz", "--output", ""),
        ("generate kronecker 4 --a 0.5 --a 0.5 -o a.npz", "--a", ""),
        ("graph500 --scale 4 --scale 5", "--scale", ""),
        ("gap kron --scale 4 --kernel bfs --kernel cc --seed 1 --seed 2", "--seed", ""),
        ("bfs GRAPH --format json --format json", "--format", ""),
    ],
)
def test_an_option_that_comes_again(
    words: str, option: str, remedy: str, graph: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the last of them would count."""
    monkeypatch.chdir(graph.parent)
    code, out, err = run(*(graph if word == "GRAPH" else word for word in words.split()))
    said = f"expected {option} once, got it 2 times"
    assert code == 2 and not out and said in err
    assert (f"{said}; several are one word, {remedy}" in err) is bool(remedy)
    assert not list(graph.parent.glob("[ab].npz"))


def test_options_that_may_come_again(graph: Path, run: Run) -> None:
    """Nothing is lost of them."""
    words = ("gap", "kron", "--scale", 4, "--trials", 1, "--format", "json", "-q", "-q")
    code, out, _ = run(*words, "--kernel", "bfs", "--kernel", "cc")
    assert code == 0 and list(json.loads(out)["kernels"]) == ["bfs", "cc"]
    code, out, _ = run("bfs", graph, "--help", "--top", 1, "--top", 2)
    assert code == 0 and "Usage" in out


def test_whether_errors_are_json_is_known_from_any_words() -> None:
    for words, wanted in (
        ("-- --format json", False),
        ("--format", False),
        ("--format=json", True),
    ):
        assert spgraph_command.wants_json(words.split()) is wanted


@pytest.mark.parametrize(
    ("error", "code", "expected"),
    [
        (
            errors.CommunicationError("process 1 is lost"),
            cli.LOST_PEER,
            {"message": "process 1 is lost"},
        ),
        (KeyboardInterrupt(), cli.INTERRUPTED, {"message": "interrupted"}),
        (PermissionError(13, "Permission denied", "f.npz"), cli.BAD_INPUT, {"file": "f.npz"}),
        (MemoryError(), cli.BAD_INPUT, {"message": "MemoryError"}),
        (TypeError("a bug"), cli.BUG, {}),
    ],
)
def test_every_way_to_end(
    error: BaseException,
    code: int,
    expected: dict[str, Any],
    graph: Path,
    told: Told,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(placement, "read_named", fails)
    found, (line,) = told("info", graph, "--format", "json")
    assert found == code == line["error"]["exit_code"]
    assert line["error"]["kind"] == type(error).__name__
    assert expected.items() <= line["error"].items()
    if code == cli.BUG:
        assert "Traceback" in line["error"]["message"] and "a bug" in line["error"]["message"]


def test_warnings_and_notes_are_objects(
    graph: Path, told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def warned(*_: object, **__: object) -> None:
        warnings.warn("slow\nhere", RuntimeWarning, stacklevel=1)

    monkeypatch.setattr(graphs.sg.Matrix, "is_symmetric", warned)
    before = warnings.showwarning
    with pytest.warns(RuntimeWarning):  # pytest's own recorder, which catch_warnings renews
        warnings.warn("seen", RuntimeWarning, stacklevel=1)
    code, lines = told("info", graph, "--format", "json")
    assert code == 0 and warnings.showwarning is before
    assert lines == [{"warning": {"kind": "RuntimeWarning", "message": "slow here"}}]
    monkeypatch.undo()
    words = ("minimum-spanning-tree", graph, "-o", tmp_path / "t.mtx", "--format", "json")
    code, lines = told(*words)
    assert code == 0 and [list(line) for line in lines] == [["note"]]
    assert "no place for names" in lines[0]["note"]["message"]


def test_an_interrupt_before_the_command_runs(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    for words, said in ((["bfs", "--format", "json"], True), (["bfs"], False)):
        monkeypatch.setattr(sys, "argv", ["spgraph", *words])
        spgraph_command._leave(signal.SIGINT, None)
        err = capfd.readouterr().err
        if said:
            assert json.loads(err)["error"]["exit_code"] == 130
        else:
            assert err == ""
    assert ended == [130, 130]


def test_a_process_that_fails_prints_one_object() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "spgraph", "bfs", "missing.npz", "--format", "json"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert json.loads(done.stderr)["error"]["kind"] == "FileNotFoundError"


def test_values_that_no_array_has_beside_none(tmp_path: Path, told: Told) -> None:
    """Vertex 2 is not reached; the width of 1 is beyond float64's integers."""
    width = np.array([2**64 - 1], np.uint64)
    A = sg.Matrix.from_coo([0], [1], width, nrows=3, ncols=3)
    sg.write(tmp_path / "g.npz", A)
    words = ["widest-path", tmp_path / "g.npz", "--source", 0, "--format", "json", "-q", "-o"]
    code, lines = told(*words, tmp_path / "out.npz")
    message = lines[-1]["error"]["message"]
    assert code == 2 and "got up to 18446744073709551615; a .csv or .tsv holds both" in message
    assert not (tmp_path / "out.npz").exists()
    assert told(*words, tmp_path / "out.csv") == (0, [])
    assert "18446744073709551615" in (tmp_path / "out.csv").read_text()
