"""The command where standard streams are closed, full, or left by their reader."""

from __future__ import annotations

import errno
import gzip
import json
import os
import resource
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import spgraph as sg
from spgraph import cli

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
    code, _, said = shell("$run >&-", "generate", "grid", 3, 3, "-o", "-")
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


# --- `-`: data through standard input and output --------------------------------------------------


@pytest.mark.parametrize(
    ("words", "begin", "more"),
    [
        (("generate", "grid", 3, 3), b"PK", ()),
        (("generate", "grid", 3, 3), b"%%MatrixMarket", ("--output-format", "mtx")),
        (("generate", "grid", 3, 3), b"\x1f\x8b", ("--output-format", "mtx.gz")),
        (("bfs",), b"vertex,level,parent\n", ()),
        (("bfs",), b"vertex\tlevel\tparent\n", ("--output-format", "tsv")),
        (("bfs",), b"PK", ("--output-format", "npz", "--format", "json", "--top", 1)),
        (("minimum-spanning-tree",), b"PK", ()),
    ],
)
def test_results_on_standard_output(
    words: tuple[object, ...],
    begin: bytes,
    more: tuple[object, ...],
    graph: Path,
    tmp_path: Path,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    """It has the bytes of the file that is written otherwise, and nothing else."""
    if words[0] != "generate":
        words = (*words, graph)
    suffix = str(more[1]) if more else "csv" if words[0] == "bfs" else "npz"
    assert cli.main([*map(str, (*words, *more[2:])), "-o", str(tmp_path / f"x.{suffix}")]) == 0
    expected = capsysbinary.readouterr()
    assert cli.main([*map(str, (*words, *more)), "-o", "-"]) == 0
    out, err = capsysbinary.readouterr()
    assert out.startswith(begin)
    if "json" in more:  # a line for each object
        assert [next(iter(json.loads(line))) for line in err.splitlines()] == ["graph"]
        assert json.loads(expected.out)["entries"] == json.loads(err)["entries"]
    else:
        assert err.count(b"\n") == expected.out.count(b"\n") > 1
    written = (tmp_path / f"x.{suffix}").read_bytes()
    if suffix == "mtx.gz":  # whose header has the time
        out, written = gzip.decompress(out), gzip.decompress(written)
    assert out == written


def test_a_name_that_would_not_be_read_again(
    graph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.bsp.npz"
    for words in (("generate", "grid", "2", "2"), ("bfs", str(graph)), ("convert", str(graph))):
        assert cli.main([*words, "-o", str(path)]) == 2
        assert "is read as a file of Binsparse" in capsys.readouterr().err and not path.exists()


def test_other_files_on_standard_output(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "far.el").write_text("7 3000000000\n")
    assert cli.main(["info", str(tmp_path / "far.el"), "--compact", "-"]) == 0
    out, err = capsysbinary.readouterr()
    assert out == b"vertex,id\n0,7\n1,3000000000\n" and b"2 x 2" in err
    pytest.importorskip("matplotlib", reason="pictures need the extra plot")
    (tmp_path / "near.el").write_text("0 1\n")
    assert cli.main(["info", str(tmp_path / "near.el"), "--plot", "-"]) == 0
    out, err = capsysbinary.readouterr()
    assert out.startswith(b"\x89PNG") and b"2 x 2" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("bfs GRAPH -o - --plot -", "--output and --plot: expected - for one of them"),
        ("info GRAPH --plot - --compact -", "--plot and --compact: expected - for one"),
        ("convert GRAPH -o - --compact -", "--output and --compact: expected - for one"),
        ("bfs GRAPH -o x.csv --output-format csv", "--output-format: expected -o - with it"),
        ("bfs GRAPH --output-format csv", "--output-format: expected -o - with it"),
        (
            "bfs GRAPH -o - --output-format mtx",
            "'mtx' is not one of 'npz', 'csv', 'tsv', 'parquet'",
        ),
        ("pagerank - --personalization -", "--personalization: expected - for one file only"),
        ("katz-centrality - --beta -", "--beta: expected - for one file only"),
    ],
)
def test_streams_that_are_refused(
    words: str, message: str, graph: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if "plot" in words:
        pytest.importorskip("matplotlib", reason="pictures need the extra plot")
    assert cli.main([str(graph) if word == "GRAPH" else word for word in words.split()]) == 2
    out, err = capsys.readouterr()
    assert not out and message in err and err.count("\n") == 1


@pytest.mark.parametrize("what", ["generate grid 3 3 -o -", "bfs GRAPH -o - --output-format npz"])
def test_a_terminal_gets_no_binary_data(
    what: str, graph: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    words = [str(graph) if word == "GRAPH" else word for word in what.split()]
    assert cli.main(words) == 2
    out, err = capsys.readouterr()
    assert not out and ".npz is binary, and standard output is a terminal" in err
    assert cli.main(["bfs", str(graph), "-o", "-"]) == 0  # text
    assert capsys.readouterr().out.startswith("vertex,level,parent\n")


@pytest.mark.parametrize("packed", [False, True])
def test_a_vector_from_standard_input(
    packed: bool,
    graph: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    standard_input: Callable[[Path], None],
) -> None:
    start = tmp_path / "start.npz"
    sg.save(start, sg.Vector.from_coo([3], [1.0], size=64))
    words = ["pagerank", str(graph), "-o", "-", "--personalization"]
    assert cli.main([*words, str(start)]) == 0
    expected = capsys.readouterr().out
    if packed:
        start.write_bytes(gzip.compress(start.read_bytes()))
    standard_input(start)
    assert cli.main([*words, "-"]) == 0
    assert capsys.readouterr().out == expected


def test_commands_in_a_pipe(tmp_path: Path) -> None:
    """Names go with the graph; the reader that leaves is no error; what is said is no data."""
    (tmp_path / "t.csv").write_text(
        "source,target\n" + "".join(f"a{k},b{k}\n" for k in range(9000))
    )
    line = (
        f"cat {tmp_path}/t.csv | $run convert - --columns source,target -o - 2> /dev/null"
        " | $run connected-components - -o - | head -n 2; echo ${PIPESTATUS[@]}"
    )
    code, printed, said = shell(line)
    assert printed == "vertex,component\na0,a0\n0 0 141 0\n" and code == 0
    assert said == ""  # the table would have been printed to standard error after the data
