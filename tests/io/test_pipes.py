"""Graphs through pipes: of any format, named or not, compressed or not."""

from __future__ import annotations

import gzip
import lzma
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from spgraph import Matrix, cli, distributed, generators
from spgraph.errors import FormatError
from spgraph.io import load, read, source, write

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="makes named pipes")

TEXTS = {
    ".el": b"# c\n0 1\n1 2\n2 0\n",
    ".csv": b"source,target\n0,1\n1,2\n2,0\n",
    ".gr": b"c c\np tw 3 3\n1 2\n2 3\n3 1\n",
    ".mtx": b"%%MatrixMarket matrix coordinate pattern general\n3 3 3\n1 2\n2 3\n3 1\n",
}
PACK = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}


def contents(folder: Path) -> dict[str, bytes]:
    """A file of each format and compression, by its suffixes."""
    folder.joinpath("plain.el").write_bytes(TEXTS[".el"])
    write(folder / "plain.npz", read(folder / "plain.el"))
    texts = TEXTS | {".npz": folder.joinpath("plain.npz").read_bytes()}
    found = {suffix + how: PACK[how](text) for suffix, text in texts.items() for how in PACK}
    with source.open_compressed(str(folder / "g.zst"), ".zst", "wb") as stream:
        stream.write(texts[".npz"])
    return found | {".npz.zst": (folder / "g.zst").read_bytes()}


SUFFIXES = [*(text + how for text in (*TEXTS, ".npz") for how in PACK), ".npz.zst"]


def feed(path: Path, content: bytes, step: int = 1 << 16) -> threading.Thread:
    """Writes into the pipe, in so many bytes at once, as soon as somebody reads."""
    os.mkfifo(path)

    def write_it() -> None:
        try:
            with open(path, "wb", buffering=0) as stream:
                for first in range(0, len(content), step):
                    stream.write(content[first : first + step])
        except BrokenPipeError:  # a bad file is not read to its end
            pass

    thread = threading.Thread(target=write_it)
    thread.start()
    return thread


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("named", [True, False])
def test_a_pipe_is_read(tmp_path: Path, suffix: str, named: bool) -> None:
    content = contents(tmp_path)[suffix]
    whole = tmp_path / f"whole{suffix}"
    whole.write_bytes(content)
    pipe = tmp_path / (f"pipe{suffix}" if named else "pipe")
    thread = feed(pipe, content, 1 << 16 if named else 1)
    A = read(pipe)
    thread.join()
    assert A.isequal(read(whole)) and A.symmetric is read(whole).symmetric


def test_load_of_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.npz"
    thread = feed(pipe, contents(tmp_path)[".npz"])
    assert load(pipe).nvals == 3
    thread.join()


def test_what_comes_through_a_pipe_may_be_bad(tmp_path: Path) -> None:
    good = contents(tmp_path)
    for k, content in enumerate((b"", b"junk\n", good[".npz"][:-9], good[".el.gz"][:-9], b"0 x\n")):
        thread = feed(tmp_path / f"pipe{k}", content)
        with pytest.raises(FormatError, match=rf"pipe{k}"):
            read(tmp_path / f"pipe{k}")
        thread.join()
    os.mkfifo(tmp_path / "pipe.foo")
    with pytest.raises(ValueError, match="base: expected 0, 1"):
        read(tmp_path / "pipe.foo", base=7)
    thread = feed(tmp_path / "m", good[".mtx"])
    with pytest.raises(ValueError, match=r"base: \.mtx files never count from 0"):
        read(tmp_path / "m", base=0)
    thread.join()


@pytest.mark.parametrize("suffix", [".npz", ".gr", ".csv.gz"])
def test_standard_input(tmp_path: Path, suffix: str) -> None:
    """Of a process: a pipe, and a file in its place."""
    content = contents(tmp_path)[suffix]
    program = "import spgraph as sg; print(sg.read('/dev/stdin').nvals)"
    (tmp_path / "whole").write_bytes(content)
    command = [sys.executable, "-c", program]
    with open(tmp_path / "whole", "rb") as file:
        run = subprocess.run(command, stdin=file, capture_output=True, check=False)
    piped = subprocess.run(command, input=content, capture_output=True, check=False)
    expected = b"6\n" if suffix == ".gr" else b"3\n"
    assert run.stdout == piped.stdout == expected, (run.stderr, piped.stderr)


def test_the_command_reads_standard_input(tmp_path: Path) -> None:
    for suffix in (".npz", ".csv"):
        program = "from spgraph import cli; raise SystemExit(cli.main(['info', '-']))"
        run = subprocess.run(
            [sys.executable, "-c", program],
            input=contents(tmp_path)[suffix],
            capture_output=True,
            check=False,
        )
        assert run.returncode == 0 and b"3 x 3" in run.stdout, run.stderr
    assert cli.main(["info", str(tmp_path / "missing.npz")]) == cli.BAD_INPUT


def test_a_pipe_in_shards(tmp_path: Path) -> None:
    """Text is read twice where it can be, and a pipe cannot: it is read whole."""
    for suffix in (".el", ".npz", ".mtx.gz"):
        content = contents(tmp_path)[suffix]
        for named in (True, False):
            pipe = tmp_path / (f"{named}{suffix}" if named else f"{named}{suffix[1:]}")
            thread = feed(pipe, content)
            G = distributed.read(pipe, 2)
            thread.join()
            assert G.nvals == 3


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="there is no /dev/shm")
def test_files_in_shared_memory_are_no_pipes() -> None:
    pytest.importorskip("binsparse", reason="binsparse is not installed (extra binsparse)")
    A = generators.kronecker(5)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        path = os.path.join(folder, "g.h5")
        write(path, A)
        found = load(path)
        assert isinstance(found, Matrix) and found.isequal(A)
