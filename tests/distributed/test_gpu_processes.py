"""A GPU for each of several processes, and the command line on several GPUs: what one process on a
CPU says; a process that is killed takes the others along.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import distributed_cases
import mpi_cases
import numpy as np
import pytest
from gpus import visible
from processes import MPIEXEC, finished, met

import spgraph as sg
from spgraph.cli import main

pytestmark = pytest.mark.gpu

TIMES = {"seconds", "read_seconds", "compile_seconds", "read_compile_seconds", "teps"}
PLACES = {"device", "gpus", "shards", "partition"}


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    A = distributed_cases.graph()
    rows, columns, values = A.to_coo()
    np.savetxt(tmp_path / "graph.wel", np.stack([rows, columns, values], axis=1), fmt="%d")
    sg.write(tmp_path / "graph.npz", A)
    return tmp_path


@pytest.mark.parametrize("count", [2, 4])
def test_results(count: int) -> None:
    visible(count)
    for status, words, _ in met(count, mpi_cases.__file__, "operations:edges few:random"):
        assert status == 0 and "is done;" in words, words


@pytest.mark.parametrize("which", ["peer:0:3", "peer:1:3", "peer:2:3", "nccl:0:5"])
def test_mapped_memory(which: str) -> None:
    """Two processes search and close over all semirings in memory that both have mapped, over some
    in rounds.
    """
    visible(2)
    for status, words, _ in met(2, mpi_cases.__file__, f"loops:{which}"):
        assert status == 0 and "is done;" in words, words


@pytest.mark.parametrize("count", [2, 4])
def test_processes_agree_that_labels_are_void(count: int) -> None:
    visible(count)
    for status, words, _ in met(count, mpi_cases.__file__, "voids"):
        assert status == 0 and "is done;" in words, words


@pytest.mark.parametrize("count", [2, 4])
def test_mapped_memory_is_freed(count: int) -> None:
    visible(count)
    for status, words, _ in met(count, mpi_cases.__file__, "freed loops:peer:0:40 freed"):
        assert status == 0 and "is done;" in words, words


@pytest.mark.parametrize("exchange", ["peer", "nccl"])
def test_an_interrupted_process_ends_the_others(exchange: str) -> None:
    visible(2)
    first, last = met(2, mpi_cases.__file__, f"ended:{exchange}:SIGINT")
    assert last[0] != 0 and "KeyboardInterrupt" in last[1], last
    assert "AssertionError" not in first[1], first
    assert first[0] == 1 and "process 1: KeyboardInterrupt" in first[1], first
    assert abs(first[2] - last[2]) < 30


@pytest.mark.parametrize(("count", "exchange"), [(2, "peer"), (2, "nccl"), (4, "peer")])
def test_a_process_killed_in_a_search_takes_the_others_along(count: int, exchange: str) -> None:
    visible(count)
    *others, last = met(count, mpi_cases.__file__, f"ended:{exchange}:SIGKILL")
    assert last[0] == -9, last
    for status, words, seconds in others:
        assert "AssertionError" not in words, words  # no wrong level came out of it
        assert status == 1 and f"process {count - 1} of {count} was lost" in words, (status, words)
        assert "NCCL: cuda:" in words
        assert seconds - last[2] < 30


def said(value: Any) -> Any:
    """A record of the command line without what depends on the place and the time."""
    if isinstance(value, dict):
        return {k: said(inner) for k, inner in value.items() if k not in TIMES | PLACES}
    return [said(inner) for inner in value] if isinstance(value, list) else value


COMMANDS = [
    "bfs graph.wel --symmetric --top 3 --validate -o found.npz --format json",
    "sssp graph.wel --symmetric -o found.npz --format json",
    "connected-components graph.wel -o found.npz --format json",
]


@pytest.mark.parametrize("line", COMMANDS)
@pytest.mark.parametrize("launcher", ["", "mpiexec"])
def test_the_command(
    line: str,
    launcher: str,
    graph: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    count = min(4, visible(2))
    monkeypatch.chdir(graph)
    assert main(line.split()) == 0
    expected = said(json.loads(capsys.readouterr().out))
    saved = dict(np.load("found.npz"))
    Path("found.npz").unlink()
    shared = [*line.split(), "--gpus", str(count)]
    if launcher:
        pytest.importorskip("mpi4py")
        if MPIEXEC is None:
            pytest.skip("mpi: mpiexec is not there")
        code, words = finished(count, "-m", "spgraph", *shared, cwd=graph)
        assert code == 0, words
        found = json.loads(words)
    else:
        assert main(shared) == 0, capsys.readouterr().err
        found = json.loads(capsys.readouterr().out)
    assert said(found) == expected
    again = dict(np.load("found.npz"))
    assert again.keys() == saved.keys()
    for name, values in saved.items():
        assert np.array_equal(again[name], values), name
