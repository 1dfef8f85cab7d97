"""Broken files: each is a valid graph or an error of the kinds that `read` names, for every reader.

What is read is checked by loops that share nothing with the library.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from spgraph import checks, distributed
from spgraph.containers import Matrix, Vector
from spgraph.errors import DimensionMismatch, FormatError
from spgraph.io import load, read, save, source, table, write

CASES = 100
EXPECTED = (FormatError, MemoryError)
HEAD = "%%MatrixMarket matrix coordinate {} {}\n"


def some(symmetric: bool) -> scipy.sparse.csr_array:
    rng = np.random.default_rng(5)
    D = rng.integers(1, 9, (12, 12)) * (rng.random((12, 12)) < 0.3)
    return scipy.sparse.csr_array(D + D.T if symmetric else D)


def packed(**arrays: Any) -> bytes:
    sink = io.BytesIO()
    np.savez_compressed(sink, **arrays)
    return sink.getvalue()


def files(folder: Path) -> dict[str, bytes]:
    """Small valid files of every reader."""
    S, T = some(False), some(True)
    edges = list(zip(*map(list, S.nonzero()), S.data.tolist(), strict=True))
    lower = [
        (i, j, x)
        for i, j, x in zip(*map(list, T.nonzero()), T.data.tolist(), strict=True)
        if i >= j
    ]
    write(folder / "g.npz", S)
    write(folder / "s.npz", Matrix.from_scipy(T, symmetric=True))
    write(folder / "p.npz", Matrix.from_scipy(T, symmetric=True).pattern())
    found = {name: (folder / name).read_bytes() for name in ("g.npz", "s.npz", "p.npz")}
    for layout in ("csr", "csc", "coo", "bsr", "dia"):
        scipy.sparse.save_npz(folder / "x.npz", S.asformat(layout))
        found[f"{layout}.npz"] = (folder / "x.npz").read_bytes()
    texts = {
        "real.mtx": HEAD.format("real", "general")
        + f"% c\n12 12 {len(edges)}\n"
        + "".join(f"{i + 1} {j + 1} {x}.5\n" for i, j, x in edges),
        "symmetric.mtx": HEAD.format("integer", "symmetric")
        + f"12 12 {len(lower)}\n"
        + "".join(f"{i + 1} {j + 1} {x}\n" for i, j, x in lower),
        "array.mtx": HEAD.format("real", "general").replace("coordinate", "array")
        + "3 3\n1\n0\n2\n.5\n0\n1e3\n0\n0\n7\n",
        "g.gr": f"c c\np sp 12 {len(edges)}\n"
        + "".join(f"a {i + 1} {j + 1} {x}\n" for i, j, x in edges),
        "tree.gr": f"p tw 12 {len(lower)}\n" + "".join(f"{i + 1} {j + 1}\n" for i, j, _ in lower),
        "g.el": "# c\n" + "".join(f"{i} {j}\n" for i, j, _ in edges),
        "g.csv": "u,v,w\n" + "".join(f"{i},{j},{x}.25\n" for i, j, x in edges),
    }
    return found | {name: text.encode() for name, text in texts.items()}


NAMES = "g.npz s.npz p.npz csr.npz csc.npz coo.npz bsr.npz dia.npz real.mtx symmetric.mtx array.mtx"
NAMES += " g.gr tree.gr g.el g.csv"


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """The content with one or two changes at random places."""
    found = bytearray(content)
    for _ in range(int(rng.integers(1, 3))):
        at = int(rng.integers(0, len(found) + 1))
        count = int(rng.integers(1, 9))
        change = rng.integers(0, 7)
        if change == 0:
            del found[at:]
        elif change == 1 and at < len(found):
            found[at] ^= 1 << int(rng.integers(0, 8))
        elif change == 2:
            found[at:at] = found[at : at + count]
        elif change == 3:
            del found[at : at + count]
        elif change == 4:
            found[at:at] = rng.bytes(count)
        elif change == 5:
            found[at : at + count] = bytes(len(found[at : at + count]))
        else:  # another digit or sign where text has one
            found[at : at + 1] = rng.choice(
                np.frombuffer(b"0123456789-. ,\r\neEx", np.uint8), 1
            ).tobytes()
    return bytes(found)


def inside(content: bytes, rng: np.random.Generator) -> bytes:
    """The archive with changes in one of its arrays: checksums are right, only the array is not."""
    sink = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(sink, "w") as new:
        names = old.namelist()
        chosen = names[int(rng.integers(len(names)))]
        for name in names:
            member = old.read(name)
            if name == chosen and rng.integers(2):
                member = member[:128] + mutated(member[128:], rng)[: len(member) - 128]
                member += bytes(len(old.read(name)) - len(member))  # as long as before
            elif name == chosen:
                member = mutated(member, rng)
            new.writestr(name, member)
    return sink.getvalue()


def check(A: Matrix) -> None:
    """Canonical CSR of the shape it says, values of a type that is one; symmetric if it says so."""
    rows = A.indptr.tolist()
    columns, values = A.indices.tolist(), np.asarray(A.values)
    assert len(rows) == A.nrows + 1 and rows[0] == 0 and rows[-1] == len(columns)
    assert A.indptr.dtype in (np.int32, np.int64) and A.indices.dtype in (np.int32, np.int64)
    assert values.dtype.kind in "biuf" and values.dtype.isnative and values.itemsize <= 8
    assert values.shape == ((1,) if A.iso else (len(columns),))
    if values.dtype == bool:
        assert set(values.view(np.uint8).tolist()) <= {0, 1}
    found = {}
    for i, (first, last) in enumerate(itertools.pairwise(rows)):
        assert first <= last
        row = columns[first:last]
        assert all(0 <= j < A.ncols for j in row) and row == sorted(set(row))
        found |= {(i, j): values[0 if A.iso else k].tobytes() for k, j in enumerate(row, first)}
    if A.symmetric is not None:
        mirrored = A.nrows == A.ncols and found == {(j, i): x for (i, j), x in found.items()}
        assert A.symmetric == mirrored or (A.symmetric and np.isnan(values).any())


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A number that becomes a large one is refused earlier than at a GiB, and blocks are small."""
    monkeypatch.setattr(checks, "LARGE", 1 << 20)
    monkeypatch.setattr(source, "BLOCK", 1 << 12)


def outcome(path: Path, reader: Any = read, **options: Any) -> Any:
    """What is read, checked; or the error, of one of the kinds that are promised."""
    try:
        found = reader(path, **options)
    except EXPECTED as error:
        assert path.name in str(error), error
        return error
    if isinstance(found, Matrix):
        check(found)
    return found


@pytest.mark.parametrize("name", NAMES.split())
@pytest.mark.parametrize("compression", ["", ".gz", ".xz", ".zst"])
def test_mutations(tmp_path: Path, name: str, compression: str) -> None:
    """Of the content, which is compressed then, and of what is compressed."""
    content = files(tmp_path)[name]
    path = tmp_path / f"mutated{name}{compression}"
    failed = 0
    for k in range(CASES):
        rng = np.random.default_rng([k, len(compression), *name.encode()])
        inner = k % 2 == 0 or not compression
        with source.open_compressed(str(path), compression, "wb") as stream:
            change = inside if name.endswith("npz") and k % 4 == 0 else mutated
            stream.write(change(content, rng) if inner else content)
        if not inner:
            path.write_bytes(mutated(path.read_bytes(), rng))
        options = {"symmetric": True} if k % 5 == 0 and name != "array.mtx" else {}
        options |= {"compact": True} if k % 7 == 0 else {}
        with contextlib.suppress(*(ValueError,) * bool(options)):  # not square, which these ask for
            found = outcome(path, **options)
            failed += isinstance(found, EXPECTED)
            if isinstance(found, tuple):
                check(found[0])
                assert found[1].shape == (found[0].nrows,)
    assert failed > CASES // 10


@pytest.mark.parametrize("name", [n for n in NAMES.split() if not n.endswith("npz")])
def test_mutations_in_shards(tmp_path: Path, name: str) -> None:
    """What shards make of a file is what one process makes of it."""
    content = files(tmp_path)[name]
    path = tmp_path / f"mutated{name}"
    for k in range(CASES):
        path.write_bytes(mutated(content, np.random.default_rng([k, *name.encode()])))
        whole = outcome(path)
        try:
            G = outcome(path, lambda path: distributed.read(path, 2).gather())
        except DimensionMismatch:
            assert isinstance(whole, EXPECTED) or whole.nrows != whole.ncols
            continue
        if isinstance(whole, Matrix):
            assert G.isequal(whole), (k, G, whole)
        else:
            assert isinstance(G, EXPECTED), (k, whole)


@pytest.mark.parametrize("name", [n for n in NAMES.split() if not n.endswith("npz")])
def test_mutations_by_the_kernel(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the kernel makes of a file is what Python makes of it line by line."""
    content = files(tmp_path)[name]
    path = tmp_path / f"mutated{name}"
    for k in range(CASES):
        path.write_bytes(mutated(content, np.random.default_rng([7, k, *name.encode()])))
        found = []
        for large in (0, 1 << 30):
            monkeypatch.setattr(table, "LARGE", large)
            found.append(outcome(path))
        one, other = found
        assert type(one) is type(other), (k, one, other)
        if isinstance(one, Matrix):
            for a, b in zip(
                (one.indptr, one.indices, one.values),
                (other.indptr, other.indices, other.values),
                strict=True,
            ):
                assert a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        else:
            assert str(one) == str(other)


def test_mutations_of_vectors(tmp_path: Path) -> None:
    v = Vector.from_coo([1, 5, 40], [0.5, 1.5, -2.0], size=300)
    save(tmp_path / "v.npz", v)
    content, path = (tmp_path / "v.npz").read_bytes(), tmp_path / "mutated.npz"
    for k in range(CASES):
        path.write_bytes(mutated(content, np.random.default_rng(k)))
        found = outcome(path, load)
        if isinstance(found, Vector):
            ids, values = (array.tolist() for array in found.to_coo())
            assert ids == sorted(set(ids)) and all(0 <= i < found.size for i in ids)
            assert len(values) == len(ids)
