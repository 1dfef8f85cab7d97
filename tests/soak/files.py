"""Cases of files: small valid ones and mutations of them, which are read right or refused."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from soak.entries import Entries, from_coo, read_back

ROOM = 1 << 30
SUFFIXES = ".el .wel .txt .csv .tsv .edges .gr .mtx .npz".split()
COMPRESSIONS = ["", "", "", "", ".gz", ".bz2", ".xz", ".zst"]
PIECES = [b"0", b"-1", b"1e3", b"nan", b"inf", b"\n", b" ", b",", b"#", b"%", b"\t", b"\xff", b"\0"]
PIECES += [b"99999999999999999999", b"3037000498", b"3037000500", b"2147483648", b"1.5", b"\r\n"]
PIECES += [
    b"9223372036854775808",
    b"\r",
    b"symmetric",
    b"p sp 3 2\n",
    b"a 1 2 3\n",
    b"\xef\xbb\xbf",
]


@dataclass
class FileCase:
    """A file's name and bytes, how it is read, and what was written, where nothing was changed."""

    what: str
    content: bytes
    expected: Entries | None
    options: dict[str, Any]
    threads: int = 1
    rules: set[str] = field(default_factory=set)

    def text(self) -> str:
        return f"{self.what} {self.options}\n{self.content!r}"


def draw(number: int, pool: int) -> FileCase:
    """Case `number` of a pool."""
    rng = np.random.default_rng([2029, pool, number])
    suffix = str(rng.choice(SUFFIXES))
    n = int(rng.integers(1, 9))
    count = int(rng.integers(1, 14))
    rows, columns = rng.integers(0, n, count), rng.integers(0, n, count)
    weights = rng.integers(0, 9, count)
    if rng.random() < 0.3:
        weights = weights / 2
    content, expected = WRITERS[suffix](rng, n, rows, columns, weights)
    edits = int(rng.choice([0, 1, 1, 1, 2, 3, 5]))
    for _ in range(edits):
        content = mutated(rng, content)
    compression = str(rng.choice(COMPRESSIONS))
    if compression:
        content = _compressed(content, compression)
        if rng.random() < 0.4:
            content, edits = mutated(rng, content), 1
    options: dict[str, Any] = {}
    if rng.random() < 0.1:
        options["symmetric"] = bool(rng.random() < 0.5)
    if rng.random() < 0.1 and suffix not in (".npz",):
        options["base"] = int(rng.integers(2))
    whole = expected if not edits and not options else None
    case = FileCase(f"g{suffix}{compression}", content, whole, options)
    if suffix == ".npz":
        case.rules.add("archives")
    return case


def mutated(rng: np.random.Generator, content: bytes) -> bytes:
    """The bytes with one change."""
    size = len(content)
    at, to = sorted(int(k) for k in rng.integers(0, size + 1, 2))
    turn = int(rng.integers(8))
    if turn == 0 and size:  # a flipped bit
        at = min(at, size - 1)
        return content[:at] + bytes([content[at] ^ (1 << int(rng.integers(8)))]) + content[at + 1 :]
    if turn == 1:
        return content[:at]
    if turn == 2:
        return content[:at] + content[min(at + 1 + int(rng.integers(4)), size) :]
    if turn == 3:
        return content[:to] + content[at:to][:40] + content[to:]
    if turn == 4:
        return content[:at] + bytes([int(rng.integers(256))]) + content[at + 1 :]
    piece = PIECES[int(rng.integers(len(PIECES)))]
    if turn == 5:
        return content[:at] + piece + content[at:]
    numbers = list(re.finditer(rb"\d+", content))
    if turn == 6 and numbers:  # another number
        found = numbers[int(rng.integers(len(numbers)))]
        return content[: found.start()] + piece + content[found.end() :]
    lines = content.split(b"\n")
    k = int(rng.integers(len(lines)))
    return b"\n".join([*lines[:k], lines[int(rng.integers(len(lines)))], *lines[k:]])


def _compressed(content: bytes, compression: str) -> bytes:
    if compression == ".zst":
        import pyarrow

        return bytes(pyarrow.Codec("zstd").compress(content))
    pack: dict[str, Callable[[bytes], bytes]] = {
        ".gz": lambda text: gzip.compress(text, mtime=0),
        ".bz2": bz2.compress,
        ".xz": lzma.compress,
    }
    return pack[compression](content)


# --- valid files --------------------------------------------------------------------------------


def _least(shape: tuple[int, int], rows: Any, columns: Any, values: Any) -> Entries:
    """Entries of which the least value counts where several stand at one position."""
    order = np.lexsort((values, columns, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    keys = rows * max(shape[1], 1) + columns
    first = np.append(True, keys[1:] != keys[:-1])[: keys.size]
    return from_coo(shape, (rows[first], columns[first]), values[first])


def _edge_list(separator: str, weighted: bool | None) -> Any:
    def write(
        rng: np.random.Generator, n: int, rows: Any, columns: Any, weights: Any
    ) -> tuple[bytes, Entries]:
        has = bool(rng.random() < 0.5) if weighted is None else weighted
        lines = ["# a comment"] if rng.random() < 0.3 else []
        for i, j, w in zip(rows.tolist(), columns.tolist(), weights.tolist(), strict=True):
            lines.append(separator.join(str(part) for part in ((i, j, w) if has else (i, j))))
        size = int(max(rows.max(), columns.max())) + 1
        values = weights if has else np.ones(rows.size, bool)
        text = "\n".join(lines) + ("\n" if rng.random() < 0.9 else "")
        return text.encode(), _least((size, size), rows, columns, values)

    return write


def _dimacs(
    rng: np.random.Generator, n: int, rows: Any, columns: Any, weights: Any
) -> tuple[bytes, Entries]:
    weights = np.floor(weights).astype(np.int64)
    lines = ["c a comment", f"p sp {n} {rows.size}"]
    lines += [f"a {i + 1} {j + 1} {w}" for i, j, w in zip(rows, columns, weights, strict=True)]
    return ("\n".join(lines) + "\n").encode(), _least((n, n), rows, columns, weights)


def _matrix_market(
    rng: np.random.Generator, n: int, rows: Any, columns: Any, weights: Any
) -> tuple[bytes, Entries]:
    kind = str(rng.choice(["pattern", "real", "integer"]))
    form = str(rng.choice(["general", "symmetric"]))
    keys = np.unique(rows * n + columns)
    rows, columns, weights = keys // n, keys % n, weights[: keys.size]
    if form == "symmetric":
        keep = rows >= columns
        rows, columns, weights = rows[keep], columns[keep], weights[keep]
    weights = np.floor(weights).astype(np.int64) if kind == "integer" else weights.astype(float)
    lines = [f"%%MatrixMarket matrix coordinate {kind} {form}", "% c", f"{n} {n} {rows.size}"]
    for i, j, w in zip(rows.tolist(), columns.tolist(), weights.tolist(), strict=True):
        lines.append(f"{i + 1} {j + 1}" + ("" if kind == "pattern" else f" {w}"))
    values = np.ones(rows.size, bool) if kind == "pattern" else weights
    if form == "symmetric":
        off = rows != columns
        mirrored = (np.append(rows, columns[off]), np.append(columns, rows[off]))
        return "\n".join([*lines, ""]).encode(), from_coo(
            (n, n), mirrored, np.append(values, values[off])
        )
    return "\n".join([*lines, ""]).encode(), from_coo((n, n), (rows, columns), values)


def _archive(
    rng: np.random.Generator, n: int, rows: Any, columns: Any, weights: Any
) -> tuple[bytes, Entries]:
    import scipy.sparse

    keys = np.unique(rows * n + columns)
    entries = from_coo((n, n), (keys // n, keys % n), weights[: keys.size].astype(float))
    A = scipy.sparse.csr_array((entries.values, entries.at()), shape=(n, n))
    stream = io.BytesIO()
    compressed = bool(rng.random() < 0.5)
    if rng.random() < 0.5:
        scipy.sparse.save_npz(stream, A, compressed=compressed)
    else:
        arrays = {"indptr": A.indptr, "indices": A.indices, "data": A.data}
        facts = {"format": b"csr", "shape": np.array(A.shape)}
        if rng.random() < 0.5:
            facts["symmetric"] = np.array(int(rng.integers(-1, 2)))
        save = np.savez_compressed if compressed else np.savez
        save(stream, **arrays, **facts)
    return stream.getvalue(), entries


WRITERS: dict[str, Any] = {
    ".el": _edge_list(" ", False),
    ".wel": _edge_list(" ", True),
    ".txt": _edge_list("\t", None),
    ".edges": _edge_list("  ", None),
    ".csv": _edge_list(",", None),
    ".tsv": _edge_list("\t", None),
    ".gr": _dimacs,
    ".mtx": _matrix_market,
    ".npz": _archive,
}


# --- what is read -------------------------------------------------------------------------------


@contextmanager
def limited_memory() -> Iterator[None]:
    """A file whose numbers ask for more than ROOM bytes ends in a MemoryError."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def check(case: FileCase, folder: Path) -> str | None:
    """What is wrong with what the reader makes of the file; None where nothing is."""
    import spgraph as sg
    from spgraph.errors import FormatError

    path = folder / case.what
    path.write_bytes(case.content)
    try:
        with limited_memory():
            A = sg.read(path, **case.options)
    except (FormatError, MemoryError) as error:
        if case.expected is not None:
            return f"a valid file is refused: {error}"
        said = str(error)
        return None if case.what in said or isinstance(error, MemoryError) else f"no file: {said}"
    except ValueError as error:
        return None if case.options else f"{type(error).__name__}: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if A.nvals * 100 + A.nrows > 10**7:
        return None  # too large to be looked at
    try:
        found = read_back(A)
    except AssertionError as error:
        return f"what was read is corrupt: {error}"
    if case.expected is not None and not _same(found, case.expected):
        return f"{found.keys.tolist()} {found.values.tolist()}, expected {case.expected}"
    if A.symmetric:
        i, j = found.at()
        if not _same(found, from_coo(found.shape[::-1], (j, i), found.values)):
            return "it says that it is symmetric, and is not"
    copy = folder / "copy.npz"
    sg.write(copy, A)
    return (
        None if _same(read_back(sg.read(copy)), found) else "what was read is not what is written"
    )


def _same(x: Entries, y: Entries) -> bool:
    kind = x.dtype.kind == "f" and y.dtype.kind == "f"
    return x.shape == y.shape and all(
        np.array_equal(one, other, equal_nan=kind and k == 1)
        for k, (one, other) in enumerate(((x.keys, y.keys), (x.values, y.values)))
    )
