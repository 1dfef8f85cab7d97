"""`spgraph warm`: afterwards first calls compile nothing."""

from __future__ import annotations

import os
import pathlib
import stat
import subprocess
import sys

import pytest

from spgraph import cli
from spgraph.cli.commands.warm import graphs
from spgraph.iterations.level_search import TRANSPOSE_FROM

ROOT = pathlib.Path(__file__).parents[2]
posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners and modes on this system")

CALLS = """
from numba.core import event
import numpy as np
import scipy.sparse
import spgraph as sg
import tempfile

compiled = []


class Compiled(event.Listener):
    def on_start(self, event):
        compiled.append(event.data["dispatcher"].py_func.__qualname__)

    def on_end(self, event):
        pass


event.register("numba:compile", Compiled())
S = scipy.sparse.random_array((90, 90), density=0.05, rng=1)
for A in (sg.generators.grid(9, 9), sg.Matrix.from_scipy(S.tocsr()), sg.generators.kronecker(15)):
    sg.connected_components(A)
    if A.nvals < 10_000:
        sg.closeness_centrality(A)
with tempfile.NamedTemporaryFile(suffix=".el") as file:
    file.write(b"0 1 2\\n1 2 0.5\\n" * 1000)
    file.flush()
    sg.read(file.name)
print(compiled)
"""


def start(*words: str, folder: pathlib.Path) -> tuple[str, str]:
    """What a Python with the arguments `words` prints and says."""
    given = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "SPGRAPH_CACHE_DIR": str(folder),
        "SPGRAPH_NUM_THREADS": "2",
    }
    done = subprocess.run(
        [sys.executable, "-W", "always", *words],
        env=given, cwd=ROOT, capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@posix
def test_first_calls_compile_nothing_and_others_may_read(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "made" / "cache"
    names = ("connected-components", "closeness-centrality")
    printed, told = start("-m", "spgraph", "warm", "--shared", *names, folder=folder)
    assert told == ""
    *lines, last = printed.splitlines()
    assert sorted(line.partition(":")[0] for line in lines) == sorted(names)
    kernels = list((folder / "cpu").iterdir())
    assert last.startswith(f"{len(kernels)} kernels, ") and last.endswith(f" in {folder / 'cpu'}")
    for place in (folder, folder / "cpu"):
        assert stat.S_IMODE(place.stat().st_mode) == 0o755
    assert {path.suffix for path in kernels} == {".kernel"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in kernels} == {0o644}
    printed, told = start("-c", CALLS, folder=folder)
    assert printed == "[]\n" and "kernel" not in told
    assert len(list((folder / "cpu").iterdir())) == len(kernels)


def test_graphs_are_searched_over_their_transposes() -> None:
    # whose kernels a search of fewer edges does without
    assert min(A.nvals for A in graphs()) >= TRANSPOSE_FROM


@posix
def test_a_folder_that_others_may_write(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path.chmod(0o777)
    monkeypatch.setenv("SPGRAPH_CACHE_DIR", str(tmp_path))
    assert cli.main(["warm", "bfs"]) == cli.BAD_INPUT
    out, told = capsys.readouterr()
    assert out == "" and told.startswith("spgraph: error: warm: SPGRAPH_CACHE_DIR: expected a fold")
    assert f"other users may write into {tmp_path}" in told
    tmp_path.chmod(0o700)


@posix
def test_a_process_that_fails(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPGRAPH_CACHE_DIR", str(tmp_path))
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    assert cli.main(["warm", "bfs", "sssp"]) == cli.BAD_INPUT
    assert capsys.readouterr().err.startswith("spgraph: error: warm: ")


def test_a_name_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["warm", "bsf"]) == cli.BAD_INPUT
    assert "'bsf' is not one of 'bfs'" in capsys.readouterr().err
