"""Few entries and large numbers: said before anything is allocated, and made small by compact."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import spgraph as sg
from spgraph import checks, distributed
from spgraph.containers import Matrix, Vector, memory
from spgraph.errors import FormatError
from spgraph.io import load, read, save, write

HEAD = "%%MatrixMarket matrix coordinate integer general\n"
FAR = {
    "far.el": "0 3037000498",
    "far.csv": "source,target,weight\n5,3037000498,7\n",
    "far.gr": "p sp 3037000499 2\na 1 3037000499 4\na 1 2 3\n",
    "tree.gr": "p tw 2000000000 1\n1 2000000000\n",
    "far.mtx": HEAD + "3000000000 3000000000 1\n7 3000000000 1\n",
    "none.mtx": HEAD + "3000000000 3000000000 0\n",
    "long.mtx": HEAD + "3000000000 3 0\n",
}


@pytest.mark.parametrize("name", FAR)
@pytest.mark.parametrize("shards", [0, 2])
def test_large_row_pointers_are_refused(tmp_path: Path, name: str, shards: int) -> None:
    if shards and name == "long.mtx":
        pytest.skip("not square, which shards refuse")
    path = tmp_path / name
    path.write_text(FAR[name])
    remedy = "compact=False" if name == "long.mtx" else "compact=True numbers"
    with pytest.raises(MemoryError, match=rf"{name}: the row pointers of .* GB, .* B; {remedy}"):
        distributed.read(path, shards) if shards else read(path)


def test_large_row_pointers_of_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    A = Matrix.from_coo([5], [70_000], nrows=90_000, ncols=90_000)
    write(tmp_path / "g.npz", A)
    scipy.sparse.save_npz(tmp_path / "c.npz", A.to_scipy().tocoo())
    (tmp_path / "g.npz.gz").write_bytes(gzip.compress((tmp_path / "g.npz").read_bytes()))
    monkeypatch.setattr(checks, "LARGE", 300_000)
    for name in ("g.npz", "c.npz", "g.npz.gz"):
        path = tmp_path / name
        with pytest.raises(MemoryError, match=r"the row pointers of 90,000 rows take 360\.0 kB"):
            read(path)
        assert read(path, compact=False).isequal(A)
        B, ids = read(path, compact=True)
        assert B.shape == (2, 2) and ids.tolist() == [5, 70_000] and list(B) == [(0, 1, True)]
    assert load(tmp_path / "g.npz").isequal(A)  # what was saved comes back


@pytest.mark.parametrize("layout", ["csc", "coo", "dia"])
def test_other_layouts_are_not_made_before_they_are_found_large(
    tmp_path: Path, layout: str
) -> None:
    ids = {"csc": {"indices": np.array([4]), "indptr": np.array([0, 1, 1])}, "dia": {}, "coo": {}}
    ids["dia"]["offsets"] = np.array([1])
    ids["coo"] |= {"row": np.array([4]), "col": np.array([0])}
    data = np.ones((1, 2)) if layout == "dia" else np.ones(1)
    path = tmp_path / "g.npz"
    np.savez(path, format=layout.encode(), shape=np.array([2**40, 2]), data=data, **ids[layout])
    with pytest.raises(MemoryError, match="row pointers of 1,099,511,627,776 rows"):
        read(path)


def test_the_limit_counts_both_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "LARGE", 4000)
    path = tmp_path / "g.el"
    for largest, edges, refused in (
        (998, 1, False),
        (999, 1, True),
        (999, 9, False),
        (9999, 9, True),
    ):
        path.write_text("".join(f"{k} {largest}\n" for k in range(edges)))
        rows, columns = np.arange(edges, dtype=np.int32), np.full(edges, largest, np.int32)
        for make in (lambda: read(path), lambda r=rows, c=columns: Matrix.from_coo(c, r)):
            if refused:
                with pytest.raises(MemoryError, match="compact=True"):
                    make()
            else:
                assert make().nrows == largest + 1


def test_from_coo(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = 2**31
    with pytest.raises(
        MemoryError,
        match=r"from_coo: the row pointers of 2,147,483,648 rows take 8\.6 GB, the ids and values "
        r"of 3 entries 48 B; compact=True .* compact=False",
    ):
        Matrix.from_coo([0, 1, 2], [1, 2, 0], nrows=wide, ncols=wide)
    with pytest.raises(MemoryError, match=r"of 1 entries 24 B; compact=False"):
        Matrix.from_coo([0], [0], [1.0], nrows=wide, ncols=5)
    ends = [10**18, 3, 2**63 - 2], [3, 3, 10**18]
    A, ids = Matrix.from_coo(*ends, [1, 2, 3], compact=True)
    assert ids.tolist() == [3, 10**18, 2**63 - 2] and ids.dtype == np.int64
    assert A.shape == (3, 3) and A.indices.dtype == np.int32
    assert list(A) == [(0, 0, 2), (1, 0, 1), (2, 1, 3)]
    A, ids = Matrix.from_coo([], [], compact=True, symmetric=True)
    assert A.shape == (0, 0) and ids.size == 0
    A, ids = Matrix.from_coo([7, 7], [9, 9], nrows=20, ncols=20, compact=True)
    assert A.iso and ids.tolist() == [7, 9] and A.nvals == 1
    A, ids = Matrix.from_coo(np.array([2**40], np.uint64), np.array([1], np.int8), compact=True)
    assert ids.tolist() == [1, 2**40] and list(A) == [(1, 0, True)]
    monkeypatch.setattr(checks, "LARGE", 1000)
    with pytest.raises(MemoryError, match="compact"):
        Matrix.from_coo([999], [0])
    assert Matrix.from_coo([0], [9999], nrows=10_000, compact=False).shape == (10_000, 10_000)
    with pytest.raises(IndexError, match="below nrows = 5"):
        Matrix.from_coo([7], [7], nrows=5, compact=True)
    with pytest.raises(ValueError, match="compact: expected a square matrix, got 5 x 6"):
        Matrix.from_coo([1], [1], nrows=5, ncols=6, compact=True)
    for bad in (1, "yes", 0):
        with pytest.raises(TypeError, match="from_coo: compact: expected True, False or None"):
            Matrix.from_coo([1], [1], compact=bad)


def test_from_coo_in_shards() -> None:
    place = Matrix.from_coo([0, 1], [1, 0]).distribute(2).device
    G, ids = Matrix.from_coo([5, 10**15], [10**15, 7], [1.5, 2.5], compact=True, device=place)
    assert ids.tolist() == [5, 7, 10**15] and list(G.gather()) == [(0, 2, 1.5), (2, 1, 2.5)]
    with pytest.raises(MemoryError, match="compact=True"):
        Matrix.from_coo([2**31], [0], device=place)


@pytest.mark.gpu
def test_from_coo_on_a_gpu() -> None:
    import cupy

    far = cupy.asarray([10**18, 3, 2**63 - 2])
    A, ids = Matrix.from_coo(far, cupy.asarray([3, 3, 10**18]), [1, 2, 3], compact=True)
    assert A.device == "cuda:0" and isinstance(ids, cupy.ndarray)
    assert ids.tolist() == [3, 10**18, 2**63 - 2] and list(A) == [(0, 0, 2), (1, 0, 1), (2, 1, 3)]
    A, ids = Matrix.from_coo([7, 7], [9, 9], compact=True, device="cuda")
    assert A.iso and ids.tolist() == [7, 9] and A.nvals == 1
    with pytest.raises(MemoryError, match=r"of 2,147,483,648 rows take 8\.6 GB"):
        Matrix.from_coo([2**31 - 1], [0], device="cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("shards", [1, 3])
def test_compact_on_gpus(tmp_path: Path, shards: int) -> None:
    path = tmp_path / "g.wel"
    path.write_text(TEXTS["g.wel"])
    B, expected = read(path, compact=True, dtype="float32")
    G, ids = distributed.read(path, shards, compact=True, dtype="float32", devices="cuda")
    assert G.gather().to("cpu").isequal(B) and ids.tolist() == expected.tolist()


TEXTS = {
    "g.el": "9 4\n4 100\n100 7\n9 4\n",
    "g.wel": "9 4 3\n4 100 2.5\n4 9 1\n9 4 2\n",
    "g.gr": "p sp 200 3\na 10 5 3\na 5 101 2\na 10 5 1\n",
    "tree.gr": "p tw 200 2\n10 5\n5 101\n",
    "g.mtx": HEAD + "200 200 3\n10 5 3\n5 101 2\n10 5 1\n",
    "skew.mtx": HEAD.replace("general", "skew-symmetric") + "200 200 2\n10 5 3\n101 5 2\n",
    "real.mtx": HEAD.replace("integer general", "real symmetric") + "200 200 2\n10 5 .5\n101 5 2\n",
    "none.mtx": HEAD + "200 200 0\n",
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("symmetric", [None, True])
def test_compact_is_the_same_graph(tmp_path: Path, name: str, symmetric: Any) -> None:
    """A[ids[i], ids[j]] is B[i, j], and there is nothing else in A."""
    path = tmp_path / name
    path.write_text(TEXTS[name])
    A = read(path, symmetric=symmetric)
    B, ids = read(path, symmetric=symmetric, compact=True)
    rows, columns, values = A.to_coo()
    assert ids.tolist() == sorted({*rows.tolist(), *columns.tolist()})
    assert B.shape == (ids.size, ids.size) and B.symmetric is A.symmetric and B.iso == A.iso
    small = [(int(ids[i]), int(ids[j]), x) for i, j, x in B]
    assert small == list(zip(rows.tolist(), columns.tolist(), values.tolist(), strict=True))
    for shards in (1, 3):
        G, found = distributed.read(path, shards, symmetric=symmetric, compact=True)
        assert G.gather().isequal(B) and found.tolist() == ids.tolist()
        assert G.symmetric is B.symmetric


def test_ids_of_63_bits(tmp_path: Path) -> None:
    path = tmp_path / "g.el"
    path.write_text(f"1 {2**63 - 2}\n{2**62} 1\n")
    with pytest.raises(FormatError, match="beyond 3037000498.*compact=True"):
        read(path)
    A, ids = read(path, compact=True)
    assert ids.tolist() == [1, 2**62, 2**63 - 2] and list(A) == [(0, 2, True), (1, 0, True)]
    G, found = distributed.read(path, 2, compact=True)
    assert G.gather().isequal(A) and found.tolist() == ids.tolist()
    A, ids = read(path, compact=True, base=1)
    assert ids.tolist() == [0, 2**62 - 1, 2**63 - 3]
    G, found = distributed.read(path, 2, compact=True, base=1)
    assert G.gather().isequal(A) and found.tolist() == ids.tolist()
    path.write_text(f"1 {2**63 - 1}\n")
    with pytest.raises(FormatError, match="is beyond 9223372036854775806"):
        read(path, compact=True)


def test_compact_needs_vertices(tmp_path: Path) -> None:
    path = tmp_path / "g.mtx"
    path.write_text(HEAD + "2 3 1\n1 2 5\n")
    with pytest.raises(
        ValueError, match=r"compact: expected a square matrix in .*g\.mtx, got 2 x 3"
    ):
        read(path, compact=True)
    write(tmp_path / "g.npz", read(path))
    with pytest.raises(ValueError, match=r"compact: expected a square matrix in .*g\.npz"):
        read(tmp_path / "g.npz", compact=True)
    with pytest.raises(TypeError, match="read: compact: expected True, False or None"):
        read(path, compact=1)  # type: ignore[call-overload]


def test_sizes_that_no_id_has() -> None:
    for size in (2**63, 2**70):
        for make in (
            lambda n=size: Matrix.empty(n, 1),
            lambda n=size: Matrix.empty(1, n),
            lambda n=size: Matrix.from_coo([0], [0], nrows=1, ncols=n),
            lambda n=size: Matrix.from_coo([0], [0], nrows=n, ncols=1),
            lambda n=size: Vector.empty(n),
            lambda n=size: Vector.filled(1, size=n),
            lambda n=size: Vector.arange(n),
            lambda n=size: Vector.from_coo([0], [1], size=n),
            lambda n=size: Matrix._from_columns(Vector.from_dense([0]), ncols=n),
        ):
            with pytest.raises(ValueError, match=r"expected an integer below 2\*\*63, got"):
                make()
    for bad in (-1, 2.5, True, "3", None):
        with pytest.raises(ValueError, match="nrows: expected an integer >= 0"):
            Matrix.empty(bad, 3)  # type: ignore[arg-type]
    A = Matrix.from_coo([0], [2**63 - 2], ncols=2**63 - 1, nrows=1)
    assert A.shape == (1, 2**63 - 1) and list(A) == [(0, 2**63 - 2, True)]
    with pytest.raises(MemoryError):
        Matrix.empty(2**45, 1)


def test_generators_of_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="edge_factor"):
        sg.generators.kronecker(10, 1e300)
    with pytest.raises(MemoryError):
        sg.generators.kronecker(30, 1e6)
    with pytest.raises(MemoryError):
        sg.generators.uniform_random(2**31 - 1, 1e6)
    with pytest.raises(MemoryError, match="random_geometric: about .* pairs of points: that needs"):
        sg.generators.random_geometric(10**7, 1.0)
    monkeypatch.setattr(memory, "available", lambda: 1 << 30)
    with pytest.raises(MemoryError, match="grid: 1,000,000,000 vertices: that needs 48"):
        sg.generators.grid(10**5, 10**4)
    with pytest.raises(
        MemoryError, match="2,147,483,647 vertices and 0 edges, duplicates included"
    ):
        sg.generators.uniform_random(2**31 - 1, 0)


def test_what_save_writes_may_have_many_rows(tmp_path: Path) -> None:
    A = Matrix.empty(1000, 2**40)
    save(tmp_path / "g.npz", A)
    assert load(tmp_path / "g.npz").shape == (1000, 2**40)
