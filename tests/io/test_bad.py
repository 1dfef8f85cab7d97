"""Bad files: one error each, with the file, the line where there is one, and what is wrong."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse

from spgraph.containers import memory
from spgraph.errors import FormatError
from spgraph.io import from_edges, read, request, source, table, write

MM = "%%MatrixMarket matrix coordinate {} {}\n"
PATTERN, INTEGER, REAL = (MM.format(f, "general") for f in ("pattern", "integer", "real"))
ARRAY = "%%MatrixMarket matrix array real general\n"

# (name, text, line or None, what the message says)
BAD_TEXTS = [
    # edge lists
    ("g.el", "", None, "at least one edge"),
    ("g.txt", "# only\n% comments\n\n", None, "at least one edge"),
    ("g.tsv", "\n\xef\xbb\xbf\n", 2, "expected 2 columns.*got 1"),
    ("g.el", "0 1\n1 x\n", 2, "integer vertex id, got 'x'"),
    ("g.csv", "source,1\n0,1\n", 1, "got 'source' .*comment begins with # or %"),
    ("g.csv", "1,target\n0,1\n", 1, "got 'target'"),
    ("g.csv", "1.0,2.0\n0,1\n", 1, "got '1.0'"),
    ("g.csv", "nan,inf\n0,1\n", 1, "got 'nan'"),
    ("g.csv", ",source,target\n0,1,2\n", 1, "nothing in ',source,target'"),
    ("g.csv", "source,target\nfrom,to\n0,1\n", 2, "got 'from'"),
    ("g.csv", "# c\n\nsource,target\n0,1\nfrom,to\n", 5, "got 'from'"),
    ("g.csv", "source,target\n", None, "at least one edge"),
    ("g.csv", "source;target\n0;1\n", 1, "columns|vertex id"),
    ("g.el", "0 1\r1 2\r2 0\r", 1, "a carriage return within one; convert the ends"),
    ("g.el", "0 1\n1 2\r2 0\n", 2, "a carriage return within one"),
    ("g.el", "0 1\r\n1 2\r\r\n2 0\r\n", 2, "a carriage return within one"),
    ("g.el", "0 1\n# a\rb\n1 2\n", 2, "a carriage return within one"),
    ("g.el", "# c\r0 1\r", 1, "a carriage return within one"),
    ("g.gr", "p sp 3 2\ra 1 2 3\ra 2 3 4\r", 1, "a carriage return within one"),
    ("g.gr", "p sp 3 2\na 1 2 3\ra 2 3 4\n", 2, "a carriage return within one"),
    ("g.mtx", PATTERN + "3 3 2\n1 2\r2 3\n", 3, "a carriage return within one"),
    ("g.mtx", PATTERN.replace("\n", "\r") + "3 3 1\r1 2\r", 1, "a carriage return within one"),
    ("g.el", "0 1\n\n# c\n1 2.0\n", 4, "integer vertex id, got '2.0'"),
    ("g.el", "0 1\n1e3 2\n", 2, "got '1e3'"),
    ("g.el", "0 1\n0x10 2\n", 2, "got '0x10'"),
    ("g.el", "0 1\n1_0 2\n", 2, "got '1_0'"),
    ("g.el", "0 1\n+1 2\n", 2, "got '.1'"),
    ("g.el", "0 1\n0 \xff\n", 2, "integer vertex id"),
    ("g.el", "0 1\n0 1\0\n", 2, "integer vertex id"),
    ("g.el", "0 1\n0 -1\n", 2, "-1 is below 0"),
    ("g.el", "0 1\n99999999999999999999 1\n", 2, "99999999999999999999 is beyond 3037000498"),
    ("g.el", "0 1\n4000000000 1\n", 2, "4000000000 is beyond 3037000498.*number the vertices"),
    ("g.el", "0 1\n" + "9" * 5000 + " 1\n", 2, "is beyond"),
    ("g.el", "0 1\n2\n", 2, "expected 2 columns.*got 1"),
    ("g.el", "0 1\n2 3 4\n", 2, "expected 2 columns.*got 3"),
    ("g.wel", "0 1 5\n2 3\n", 2, "expected 3 columns.*got 2"),
    ("g.txt", "0 1 5 1290000\n", 1, "columns.*got 4"),
    ("g.txt", "17\n", 1, "columns.*got 1"),
    ("g.csv", "0,1\n0,,2\n", 2, "between the commas"),
    ("g.csv", "0,1\n0,2,\n", 2, "between the commas"),
    ("g.csv", "0,1\n,0,2\n", 2, "between the commas"),
    ("g.csv", "0;1\n", 1, "columns|vertex id"),
    ("g.wel", "0 1 5\n1 2 heavy\n", 2, "expected a number as the value, got 'heavy'"),
    ("g.wel", "0 1 5\n1 2 0x10\n", 2, "got '0x10'"),
    ("g.wel", "0 1 5.5\n1 2 1d5\n", 2, "got '1d5'"),
    ("g.wel", "0 1 5.5\n1 2 1_0\n", 2, "got '1_0'"),
    ("g.wel", "0 1 5\n1 2 nan(1)\n", 2, r"got 'nan\(1\)'"),
    # .gr
    ("g.gr", "", None, "header line 'p sp N M'"),
    ("g.gr", "c nothing else\n", None, "header line 'p sp N M'"),
    ("g.gr", "a 1 2 3\n", 1, "before the first edge"),
    ("g.gr", "c\n1 2\n", 2, "before the first edge"),
    ("g.gr", "p max 3 1\na 1 2 3\n", 1, "'p sp N M' or 'p tw N M'.*got 'p max 3 1'"),
    ("g.gr", "p sp 3\na 1 2 3\n", 1, "'p sp N M'"),
    ("g.gr", "p sp 3 -1\n", 1, "'p sp N M'"),
    ("g.gr", "p sp 3 1.5\n", 1, "'p sp N M'"),
    ("g.gr", "p sp 4000000000 0\n", 1, "at most 3037000499 vertices"),
    ("g.gr", "p sp " + 5000 * "9" + " 0\n", 1, "at most 3037000499 vertices"),
    ("g.gr", "p sp 3 2\na 1 2 3\n", 2, "ends after 1 entries, the header declares 2"),
    ("g.gr", "p tw 3 2\n", 1, "ends after 0 entries"),
    ("g.gr", "p sp 3 1\na 1 2 3\nc\na 2 3 4\n", 4, "more entries than the header"),
    ("g.gr", "p tw 3 0\n1 2\n", 2, "more entries than the header"),
    ("g.gr", "p sp 3 1\na 1 4 3\n", 2, "4 is beyond 3, the largest: line 1 declares 3 vertices"),
    ("g.gr", "p tw 3 1\n0 1\n", 2, "0 is below 1.*base=0"),
    ("g.gr", "p sp 3 1\ne 1 2 3\n", 2, "expected a line 'a tail head weight'.*'e 1 2 3'"),
    ("g.gr", "p sp 3 1\na 1 2\n", 2, "expected 4 columns.*got 3"),
    ("g.gr", "p sp 3 1\na 1 2 3.5\n", 2, "an integer as the value, got '3.5'"),
    ("g.gr", f"p sp 3 1\na 1 2 {2**63}\n", 2, "does not fit int64"),
    ("g.gr", "p tw 3 1\n1,2\n", 2, "columns"),
    ("g.gr", "p tw 3 1\ncat 2\n", 2, "got 'cat'.*comment begins with c"),
    # Matrix Market
    ("g.mtx", "", 0, "Missing banner"),
    ("g.mtx", "3 3 1\n1 2\n", 1, "Missing banner"),
    ("g.mtx", PATTERN, 1, "Premature EOF"),
    ("g.mtx", PATTERN + "3 3\n1 2\n", 2, "not a Matrix Market header"),
    ("g.mtx", PATTERN + "3 x 1\n1 2\n", 2, "'3 x 1' are not integers"),
    ("g.mtx", PATTERN + "3 -3 1\n1 2\n", 2, "are not integers"),
    ("g.mtx", PATTERN + "% c\n4000000000 1 1\n", 3, "at most 3037000499"),
    ("g.mtx", PATTERN.replace("coord", "cord") + "3 3 0\n", 2, "cordinate"),
    ("g.mtx", MM.format("complex", "general") + "3 3 1\n1 2 1 1\n", 2, "'complex' is not support"),
    ("g.mtx", MM.format("complex", "hermitian") + "3 3 1\n2 1 1 1\n", 2, "'complex' is not supp"),
    ("g.mtx", MM.format("real", "symmetric") + "3 4 1\n2 1 1\n", 2, "not square: 3 x 4"),
    ("g.mtx", MM.format("pattern", "skew-symmetric") + "3 3 1\n2 1\n", 2, "values with a sign"),
    ("g.mtx", ARRAY.replace("real", "pattern") + "1 0\n\n", 2, "'pattern' goes with 'coordinate'"),
    ("g.mtx", ARRAY.replace("real", "pattern") + "0 2\n0 2\n", 2, "'pattern' goes with"),
    ("g.mtx", ARRAY.replace("real", "pattern") + "1 1\n1\n", 2, "'pattern' goes with"),
    ("g.mtx", MM.format("real", "skew-symmetric") + "3 3 1\n2 2 1\n", None, "has no diagonal"),
    ("g.mtx", PATTERN + "3 3 2\n1 2\n", 3, "ends after 1 entries, the header declares 2"),
    ("g.mtx", PATTERN + f"3 3 {10**14}\n1 2\n", 3, "ends after 1 entries"),
    ("g.mtx", PATTERN + "3 3 1\n1 2\n2 3\n", 4, "more entries than the header"),
    ("g.mtx", PATTERN + "3 5 2\n1 4\n4 1\n", 4, "4 is beyond 3.*line 2 declares 3 x 5"),
    ("g.mtx", PATTERN + "5 3 1\n1 4\n", 3, "4 is beyond 3"),
    ("g.mtx", PATTERN + "3 3 1\n0 1\n", 3, "0 is below 1.*counts from 1"),
    ("g.mtx", PATTERN + "3 3 1\n1 2.5\n", 3, "got '2.5'"),
    ("g.mtx", PATTERN + "3 3 1\n1 2 7\n", 3, "expected 2 columns.*got 3"),
    ("g.mtx", INTEGER + "3 3 1\n1 2 7.5\n", 3, "an integer as the value, got '7.5'"),
    ("g.mtx", INTEGER + "3 3 1\n1 2 7x\n", 3, "got '7x'"),
    ("g.mtx", INTEGER + "3 3 1\n1 2 inf\n", 3, "an integer as the value, got 'inf'"),
    ("g.mtx", INTEGER + "3 3 2\n1 2 1\n1 3 nan\n", 4, "an integer as the value, got 'nan'"),
    ("g.gr", "p sp 3 1\na 1 2 inf\n", 2, "an integer as the value, got 'inf'"),
    ("g.mtx", INTEGER + f"3 3 2\n1 2 {2**63 - 1}\n1 2 1\n", None, "sum up to 9223372036854775808"),
    (
        "g.mtx",
        MM.format("integer", "skew-symmetric") + f"3 3 1\n2 1 {-(2**63)}\n",
        None,
        "has no negative",
    ),
    ("g.mtx", REAL + "3 3 1\n1 2 7x\n", 3, "a number as the value, got '7x'"),
    ("g.mtx", REAL + "3 3 1\n1 2\n", 3, "expected 3 columns.*got 2"),
    ("g.mtx", MM.format("unsigned-integer", "general") + "3 3 1\n1 2 -1\n", 3, "not fit uint64"),
    ("g.mtx", ARRAY + "2 2\n1\n2\n3\n", 5, "ends after 3 entries, the header declares 4"),
    ("g.mtx", ARRAY + "2 1\n1\nq\n", 4, "expected a number as the value, got 'q'"),
    ("g.mtx", ARRAY + "2 1\n1 2\n", 3, "expected 1 columns"),
]


@pytest.mark.parametrize(("name", "text", "line", "message"), BAD_TEXTS)
def test_bad_text(
    tmp_path: Path,
    name: str,
    text: str,
    line: int | None,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(FormatError) as caught:
        read(path)
    said = str(caught.value)
    monkeypatch.setattr(table, "LARGE", 0)  # as a large file, by the kernel first
    with pytest.raises(FormatError) as caught:
        read(path)
    assert str(caught.value) == said
    assert str(path) in said and re.search(message, said), said
    assert (f"line {line}:" in said) if line is not None else (f"{path}:" in said), said


def test_bad_line_far_into_a_file(tmp_path: Path) -> None:
    path = tmp_path / "g.el"
    lines = [f"{k} {k + 1}" for k in range(200_000)]
    lines[123_455] = "1 2 3"
    path.write_text("\n".join(lines))
    with pytest.raises(FormatError, match=r"g\.el, line 123456: expected 2 columns"):
        read(path)


# 2 MB of each, which took minutes where something looked at a byte more often than a few times
LONG = {
    "comments.mtx": PATTERN + "%\n" * 1_000_000 + "3 3 1\n1 2\n",
    "inner.mtx": PATTERN + "3 3 1\n" + "% c\n" * 500_000 + "1 2\n",
    "comments.el": "#\n" * 1_000_000 + "0 1\n" + "%\n" * 100_000,
    "empty.el": "\n" * 2_000_000 + "0 1\n",
    "comments.gr": "c\n" * 1_000_000 + "p sp 3 1\n" + "c c\n" * 100_000 + "a 1 2 3\n",
    "blanks.csv": "0 1\n0" + " " * 1_000_000 + "1\n",
    "zeros.el": "0 1\n0 " + "0" * 1_000_000 + "1\n",
    "digits.wel": "0 1 2.5\n0 2 " + "1" * 1_000_000 + ".5\n",
}
LONG_BAD = {
    "blanks.csv": "0,1\n0" + " " * 1_000_000 + "1 x\n",
    "tabs.gr": "p sp 3 1\na 1" + " \t" * 500_000 + "2 x\n",
    "digits.wel": "0 1 2\n0 2 " + "1" * 1_000_000 + ".5x\n",
    "points.wel": "0 1 2\n0 2 " + "1." * 500_000 + "\n",
    "minus.el": "0 1\n0 " + "-" * 1_000_000 + "1\n",
    "hashes.mtx": PATTERN + "3 3 1\n1 2" + " %" * 500_000 + "\n",
}


@pytest.mark.parametrize("name", LONG)
def test_megabytes_that_say_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(LONG[name])
    A = read(tmp_path / name)
    assert A.indices[0] == 1 and A.nvals == (2 if name == "digits.wel" else 1)


@pytest.mark.parametrize("name", LONG_BAD)
def test_megabytes_on_a_bad_line(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(LONG_BAD[name])
    with pytest.raises(FormatError, match="line [23]: "):
        read(tmp_path / name)


def test_edges_larger_than_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes unpack to as many edges as one likes: reading ends before memory does."""
    monkeypatch.setattr(source, "BLOCK", 1 << 16)
    path = tmp_path / "g.el.xz"
    path.write_bytes(lzma.compress(b"0 1\n" * 1_000_000))
    assert path.stat().st_size < 2000
    assert read(path).nvals == 1
    monkeypatch.setattr(memory, "available", lambda: 1 << 20)
    monkeypatch.setattr(memory, "SMALL", 1 << 10)
    with pytest.raises(
        MemoryError, match=r"g\.el\.xz, line \d+: putting together .* of memory, 1\.0 MB"
    ):
        read(path)
    monkeypatch.setattr(source, "BLOCK", 1 << 24)
    left = iter([1 << 30, 1 << 20])  # enough for the edges, not for what is made of them
    monkeypatch.setattr(memory, "available", lambda: next(left))
    with pytest.raises(MemoryError, match=r"g\.el\.xz: sorting 1,000,000 entries needs 8\.0 MB"):
        read(path)
    monkeypatch.setattr(memory, "available", lambda: 1 << 20)
    packed = tmp_path / "g.npz.xz"
    packed.write_bytes(lzma.compress(b"PK" + bytes(5 << 20)))
    with pytest.raises(MemoryError, match=r"g\.npz\.xz: its content takes more than"):
        read(packed)


def test_one_endless_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "BLOCK", 1 << 20)
    path = tmp_path / "g.txt"
    path.write_bytes(b"7" * (3 << 20))
    with pytest.raises(FormatError, match="line 1: expected lines of text"):
        read(path)


# --- the file itself ------------------------------------------------------------------------------


def test_missing_folder_and_unknown_suffix(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no file .*nothing\.gr"):
        read(tmp_path / "nothing.gr")
    with pytest.raises(FileNotFoundError, match="no file .*nothing$"):
        read(tmp_path / "nothing")
    (tmp_path / "folder.gr").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read(tmp_path / "folder.gr")
    for name in ("g.graph", "g", "g.gz", "g.foo.xz", "g.tar.zst"):
        (tmp_path / name).write_text("0 1\n")
        with pytest.raises(FormatError) as caught:
            read(tmp_path / name)
        for suffix in (*request.KNOWN, *source.COMPRESSIONS):
            assert suffix in str(caught.value)
    (tmp_path / "t.parquet").touch()
    with pytest.raises(FormatError, match=r"'\.parquet'; .*; from_edges reads tables$"):
        read(tmp_path / "t.parquet")


def test_bad_arguments(tmp_path: Path) -> None:
    path = tmp_path / "g.mtx"
    path.write_text(PATTERN + "2 3 1\n1 2\n")
    for base in (2, -1, True, "1", 1.5, 1.0, float("nan")):
        with pytest.raises(ValueError, match="base: expected 0, 1 or None"):
            read(path, base=base)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"base: \.mtx files never count from 0"):
        read(path, base=0)
    with pytest.raises(TypeError, match="symmetric: expected True, False or None"):
        read(path, symmetric="yes")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="symmetric: expected a square matrix"):
        read(path, symmetric=True)
    path.write_text(MM.format("pattern", "symmetric") + "2 2 1\n2 1\n")
    with pytest.raises(ValueError, match=r"symmetric: .* declares an undirected graph"):
        read(path, symmetric=False)
    with pytest.raises(TypeError):
        read(3.5)  # type: ignore[arg-type]
    (tmp_path / "g.el").write_text("0 1\n")
    with pytest.raises(FormatError, match=r"line 1: vertex id 0 is below 1.*base=0"):
        read(tmp_path / "g.el", base=1)


def zst(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress), (".zst", zst)],
)
def test_corrupt_streams(tmp_path: Path, suffix: str, pack: Any) -> None:
    rng = np.random.default_rng(1)
    text = "".join(f"{u} {v}\n" for u, v in rng.integers(0, 999, (5000, 2)))
    good = pack(text.encode())
    spoilt = bytearray(good)
    spoilt[len(good) // 2] ^= 0xFF
    bad = [good[: len(good) // 2], good[:7], text.encode(), b"junk"]
    if suffix != ".zst":  # of another program, without a checksum; ours are below
        bad.append(bytes(spoilt))
    for content in bad:
        for name in ("g.el", "g.npz"):
            path = tmp_path / (name + suffix)
            path.write_bytes(content)
            with pytest.raises(FormatError) as caught:
                read(path)
            assert str(path) in str(caught.value)
            assert f"{suffix} stream is cut off or corrupt" in str(caught.value)
    path = tmp_path / ("g.el" + suffix)
    path.write_bytes(b"")
    with pytest.raises(FormatError, match=r"at least one edge|cut off"):
        read(path)


PACKERS = [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress), (".zst", zst)]


@pytest.mark.parametrize(("suffix", "pack"), PACKERS)
def test_no_member_of_a_compressed_file_is_left_out(tmp_path: Path, suffix: str, pack: Any) -> None:
    """Parallel compressors write many members. One that is damaged at its beginning is no end."""
    path = tmp_path / f"g.el{suffix}"
    table = tmp_path / f"g.csv{suffix}"
    members = [pack(b"0 1\n"), pack(b""), pack(b"1 2\n" * 1000), pack(b"2 3")]
    whole = b"".join(members)
    path.write_bytes(whole)
    assert read(path).nvals == 3
    table.write_bytes(pack(b"source,target\na,b\n") + pack(b"b,c\n"))
    assert from_edges(table).matrix.nvals == 2
    if suffix != ".zst":  # to which nothing may be appended
        path.write_bytes(whole + bytes(8))
        assert read(path).nvals == 3
    begin = len(members[0])
    for damaged in (
        whole + b"garbage",
        whole[:begin] + b"\x01" + whole[begin + 1 :],
        whole[:begin] + whole[begin + 1 :],
        whole[:-1],
        whole[: begin + 3],
    ):
        path.write_bytes(damaged)
        with pytest.raises(FormatError, match=rf"g\.el\{suffix}.*stream is cut off or corrupt"):
            read(path)
    table.write_bytes(table.read_bytes() + b"garbage")
    with pytest.raises(FormatError, match=rf"g\.csv\{suffix}: the file is damaged"):
        from_edges(table)


def test_no_flipped_bit_of_a_written_zst_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "BLOCK", 1 << 12)
    rng = np.random.default_rng(2)
    A = scipy.sparse.random_array((5, 5), density=0.5, rng=rng).tocsr()
    path = tmp_path / "g.mtx.zst"
    write(path, A)
    good, expected = path.read_bytes(), read(path)
    for k in range(8 * len(good)):
        spoilt = bytearray(good)
        spoilt[k // 8] ^= 1 << k % 8
        path.write_bytes(spoilt)
        try:
            found = read(path)
        except FormatError:
            continue
        assert found.isequal(expected)  # a bit that says nothing, of the frame's header


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="tells the size of a process")
def test_failed_reads_keep_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "g.el.zst"
    path.write_bytes(zst(b"0 1\n" * 1000)[:-5])

    def fail(times: int) -> int:
        for _ in range(times):
            with pytest.raises(FormatError):
                read(path)
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")

    before = fail(4)
    assert fail(40) < before + (200 << 20)  # 40 blocks are 640 MiB


# --- write ----------------------------------------------------------------------------------------


def test_bad_writes_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    A = scipy.sparse.eye_array(3).tocsr()
    for name in ("g.gr", "g.el", "g.npz.gz", "g.txt", "g"):
        with pytest.raises(FormatError, match=r"suffix|npz alone"):
            write(tmp_path / name, A)
    with pytest.raises(FileNotFoundError, match="folder"):
        write(tmp_path / "no" / "g.npz", A)
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write(tmp_path / "folder.npz", A)
    with pytest.raises(TypeError, match="A: expected a Matrix"):
        write(tmp_path / "g.npz", "no matrix")
    assert [p.name for p in tmp_path.iterdir()] == ["folder.npz"]

    path = tmp_path / "g.npz"
    write(path, A)
    before = path.read_bytes()

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="No space"):
        write(path, A)
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder.npz", "g.npz"]
