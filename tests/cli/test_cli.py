"""The command line, in its own process where exit codes and streams are the point."""

from __future__ import annotations

import errno
import gzip
import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse
import scipy.sparse.csgraph

import spgraph as sg
from spgraph import cli, terminal
from spgraph.cli import placement
from spgraph.io.request import Request

Run = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small graph of two components; vertex 3 has the largest degree."""
    path = tmp_path_factory.mktemp("graph") / "small.txt"
    edges = [(0, 1), (1, 3), (3, 2), (3, 4), (3, 5), (4, 5), (6, 7)]
    path.write_text("# a comment\n" + "".join(f"{u}\t{v}\n" for u, v in edges))
    return path


def test_version_and_help_in_a_process() -> None:
    for command in (
        [sys.executable, "-m", "spgraph"],
        [str(Path(sys.executable).with_name("spgraph"))],
    ):
        out = subprocess.check_output([*command, "--version"], text=True)
        assert out == f"spgraph {sg.__version__}\n"
    help_text = subprocess.check_output(
        [sys.executable, "-m", "spgraph", "bfs", "--help"], text=True
    )
    assert "largest degree" in " ".join(help_text.split())
    assert "spgraph bfs kron.npz" in help_text


def test_no_command_shows_the_help(run: Run) -> None:
    code, out, err = run()
    assert code == 2 and not out and "Usage: spgraph" in err and "generate" in err


# --- generate, info -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("kronecker", 6, "--seed", 3), lambda: sg.generators.kronecker(6, seed=3)),
        (
            ("kronecker", 5, "--edge-factor", 4, "--directed", "--self-loops", "--no-permute"),
            lambda: sg.generators.kronecker(
                5, 4, seed=1, symmetric=False, self_loops=True, permute=False
            ),
        ),
        (
            ("kronecker", 5, "--a", 0.25, "--b", 0.25, "--c", 0.25),
            lambda: sg.generators.kronecker(5, a=0.25, b=0.25, c=0.25),
        ),
        (("uniform", 50, 3), lambda: sg.generators.uniform_random(50, 3, seed=1)),
        (
            ("grid", 5, 7, "--remove", 0.2, "--seed", 9),
            lambda: sg.generators.grid(5, 7, remove=0.2, seed=9),
        ),
        (
            ("geometric", 40, 0.3, "--seed", 5),
            lambda: sg.generators.random_geometric(40, 0.3, seed=5),
        ),
    ],
)
@pytest.mark.parametrize("suffix", [".npz", ".mtx", ".mtx.gz"])
def test_generate_writes_the_graph_of_the_generator(
    words: tuple[Any, ...], expected: Callable[[], sg.Matrix], suffix: str, run: Run, tmp_path: Path
) -> None:
    file = tmp_path / f"made{suffix}"
    code, out, err = run("generate", *words, "-o", file)
    assert (code, err) == (0, "")
    written, made = sg.read(file), expected()
    assert np.array_equal(written.indptr, made.indptr)
    assert np.array_equal(written.indices, made.indices)
    assert f"{made.nrows} vertices, {made.nvals:,} edges" in out


def test_info(run: Run, graph: Path) -> None:
    code, out, err = run("info", graph, "--symmetric", "--format", "json")
    assert (code, err) == (0, "")
    facts = json.loads(out)
    assert facts["rows"] == facts["columns"] == 8 and facts["edges"] == 14 and facts["symmetric"]
    assert (facts["degree_min"], facts["degree_max"], facts["degree_mean"]) == (1, 4, 1.75)
    assert facts["isolated_rows"] == 0 and facts["iso"] and facts["type"] == "bool"

    code, out, _ = run("info", graph)
    assert code == 0
    assert "8 x 8" in out and "7 (directed)" in out and "0 least" in out


def test_info_draws_the_degrees(run: Run, graph: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra plot")
    code, out, err = run("info", graph, "--plot", tmp_path / "degrees.svg")
    assert (code, err) == (0, "") and "8 x 8" in out
    assert "<svg" in (tmp_path / "degrees.svg").read_text()


# --- bad input ------------------------------------------------------------------------------------


def bad_files(folder: Path) -> dict[str, Path]:
    files = {
        "missing": folder / "missing.txt",
        "empty": folder / "empty.mtx",
        "suffix": folder / "graph.docx",
        "token": folder / "token.txt",
        "corrupt": folder / "corrupt.txt.gz",
        "oblong": folder / "oblong.mtx",
    }
    files["empty"].write_text("")
    files["suffix"].write_text("0 1\n")
    files["token"].write_text("0 1\n1 x\n")
    files["corrupt"].write_bytes(gzip.compress(b"0 1\n" * 1000)[:-20])
    scipy.io.mmwrite(files["oblong"], scipy.sparse.coo_array(np.ones((2, 3))))
    return files


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("bfs", "missing"), "missing.txt"),
        (("bfs", "empty"), "empty.mtx"),
        (("bfs", "suffix"), "graph.docx"),
        (("bfs", "token"), "2"),
        (("bfs", "corrupt"), "corrupt.txt.gz"),
        (("bfs", "oblong"), "2"),
        (("info", "missing"), "missing.txt"),
        (("bfs", "graph", "--source", "8"), "8"),
        (("bfs", "graph", "--source", "-1"), "-1"),
        (("bfs", "graph", "--source", "1.5"), "'1.5' is not a valid integer"),
        (("bfs", "graph", "--device", "tpu"), "tpu"),
        (("bfs", "graph", "--direction", "up"), "'up' is not one of"),
        (("bfs", "graph", "-o", "out.txt"), "ends in .npz, .csv, .tsv or .parquet, got out.txt"),
        (("bfs", "graph", "--plot", "out.jpg"), "ends in .png, .pdf or .svg, got out.jpg"),
        (("bfs", "graph", "--validate", "--no-parents"), "--validate: expected --parents"),
        (("bfs", "graph", "--top", "0"), "0"),
        (("info", "graph", "--plot", "nowhere/a.png"), "there is no folder nowhere"),
        (("bfs", "graph", "--plot", "nowhere/a.png"), "there is no folder nowhere"),
        (("bfs",), "Missing argument 'FILE'"),
        (("dfs", "graph"), "No such command 'dfs'"),
        (("generate", "kronecker", "-1", "-o", "a.npz"), "-1"),
        (("generate", "kronecker", "4", "--a", "2", "-o", "a.npz"), "2"),
        (("generate", "grid", "4", "4"), "Missing option '-o'"),
    ],
)
def test_bad_input_is_one_line_and_exits_2(
    run: Run,
    graph: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    files = {**bad_files(tmp_path), "graph": graph}
    code, out, err = run(*(files.get(word, word) for word in words))
    assert code == 2 and not out
    assert err.startswith("spgraph: error: ") and err.count("\n") == 1 and message in err
    assert not (tmp_path / "a.npz").exists()


def test_cuda_where_there_is_none_says_what_to_install(run: Run, graph: Path) -> None:
    if _has_gpu():
        pytest.skip("gpu: there is one")
    code, _, err = run("bfs", graph, "--device", "cuda")
    assert code == 2 and err.count("\n") == 1
    assert "pip install 'spgraph[cuda13]'" in err or "nvidia-smi" in err or "no GPU" in err


def _has_gpu() -> bool:
    try:
        import cupy

        return cupy.cuda.runtime.getDeviceCount() > 0
    except Exception:
        return False


def test_a_bug_keeps_its_traceback(graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise TypeError("a bug")

    monkeypatch.setattr(placement, "read_named", broken)
    with pytest.raises(TypeError, match="a bug"):
        cli.main(["info", str(graph)])


def test_an_unreadable_file_is_named(
    run: Run, graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(request: Request) -> None:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), request.name)

    monkeypatch.setattr(placement, "read_named", refused)
    code, _, err = run("info", graph)
    assert (code, err) == (2, f"spgraph: error: {graph}: Permission denied\n")


@pytest.mark.parametrize("words", [["bfs"], ["bfs", "--shards", "2"], ["pagerank"]])
def test_a_wrong_number_of_threads_is_one_line(graph: Path, words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "spgraph", *words, str(graph)],
        env={**os.environ, "SPGRAPH_NUM_THREADS": "x"},
        capture_output=True,
        text=True,
    )
    said = "spgraph: error: SPGRAPH_NUM_THREADS: expected an integer from 1 to 4096, got 'x'\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


def test_python_without_docstrings_runs_every_command(graph: Path) -> None:
    """`python -OO` leaves them out; help is made of them."""
    for words in (["pagerank", str(graph)], ["generate", "grid", "--help"], ["--help"]):
        done = subprocess.run(
            [sys.executable, "-OO", "-m", "spgraph", *words], capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, "")
    assert "widest_path" in done.stdout


def test_a_home_that_cannot_be_used_is_one_warning(graph: Path, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("not a folder")
    kept = ("SPGRAPH_CACHE_DIR", "XDG_CACHE_HOME")
    given = {name: value for name, value in os.environ.items() if name not in kept}
    done = subprocess.run(
        [sys.executable, "-m", "spgraph", "bfs", str(graph), "--validate"],
        env={**given, "HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "reached" in done.stdout
    assert done.stderr.count("Warning") == 1 and "SPGRAPH_CACHE_DIR" in done.stderr


# --- streams and signals --------------------------------------------------------------------------


def test_a_reader_that_leaves_is_no_error(graph: Path) -> None:
    words = [sys.executable, "-m", "spgraph", "info", str(graph)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == cli.BROKEN_PIPE
    process.stderr.close()


def test_interrupt_exits_130(run: Run, graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(placement, "read_named", interrupted)
    assert run("info", graph)[0] == 130


INTERRUPTING = """
import signal, sys
where, what = {where!r}, {what!r}
if what == "ignored":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == where:
            print("interrupted", flush=True)
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
"""

AS_SCRIPT = """
import importlib, signal, sys
before = signal.getsignal(signal.SIGINT)
module, function, *sys.argv = sys.argv[1:]
code = getattr(importlib.import_module(module), function)()
assert signal.getsignal(signal.SIGINT) is before
sys.exit(code)
"""


@pytest.mark.parametrize("where", ["spgraph", "numpy.linalg", "click", "spgraph.cli.launch"])
@pytest.mark.parametrize("what", ["handled", "ignored"])
@pytest.mark.parametrize("how", ["script", "-m", "-mspgraph"])
def test_interrupt_while_the_command_is_imported(
    how: str, where: str, what: str, tmp_path: Path
) -> None:
    """With -m from the package's first line on: before that Python alone is there."""
    if how != "script" and where == "spgraph":
        where = "spgraph.algorithms"
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    script = ["-c", AS_SCRIPT, *scripts["spgraph"].split(":"), "spgraph"]
    words = {"script": script, "-m": ["-m", "spgraph"], "-mspgraph": ["-mspgraph"]}[how]
    # Python imports a module of this name before it runs anything
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTING.format(where=where, what=what))
    done = subprocess.run(
        [sys.executable, *words, "--version"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (tmp_path, ROOT)))},
        capture_output=True,
        text=True,
    )
    said = "interrupted\n" + (f"spgraph {sg.__version__}\n" if what == "ignored" else "")
    code = 0 if what == "ignored" else cli.INTERRUPTED
    assert (done.returncode, done.stdout, done.stderr) == (code, said, "")


def test_amounts() -> None:
    durations = [terminal.duration(seconds) for seconds in (0.0000123, 0.0042, 1.25)]
    assert durations == ["0.0123 ms", "4.2 ms", "1.25 s"]
    rates = [terminal.rate(teps) for teps in (5e3, 2e6, 1.72e9)]
    assert rates == ["5.00 kTEPS", "2.00 MTEPS", "1.72 GTEPS"]
