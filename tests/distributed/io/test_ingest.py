"""Graphs read and drawn in shards are those that one process reads and draws."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cuda_host_shim as shim
import ingest_cases as cases
import numpy as np
import pyarrow
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import MPIEXEC

import spgraph as sg
from spgraph import Matrix, checks, distributed, generators, random_edges, read
from spgraph.backends import cpu
from spgraph.backends.cuda.generate import random_edges as on_cuda
from spgraph.distributed.communicators import Communicator, LocalCommunicator
from spgraph.distributed.containers.partition import Partition
from spgraph.distributed.generate import models
from spgraph.distributed.io import ingest, reading
from spgraph.errors import DimensionMismatch, DomainMismatch, FormatError
from spgraph.io import source
from spgraph.io.request import Request

GRAPHS: list[dict[str, Any]] = [
    {},
    {"symmetric": False},
    {"self_loops": True},
    {"symmetric": False, "self_loops": True, "permute": False},
    {"noise": 0.05, "permute": False},
]


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many rounds and pieces even of small graphs."""
    monkeypatch.setattr(models, "EDGES", 1000)
    monkeypatch.setattr(ingest, "SORTED", 300)
    monkeypatch.setattr(ingest, "COUNTS", 100)
    monkeypatch.setattr(reading, "STEP", 64)
    monkeypatch.setattr(reading, "ENTRIES", 10)


def arrays(A: Matrix) -> tuple[Any, ...]:
    values = None if A.iso else A.values.tolist()
    return A.indptr.tolist(), A.indices.tolist(), values


# --- drawing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", GRAPHS, ids=str)
def test_drawn(options: dict[str, Any]) -> None:
    model = generators.kronecker_model(8, 6, seed=3, **options)
    expected = arrays(generators.kronecker(8, 6, seed=3, **options))
    hows = ["edges", "random", Partition.even(256, 6), np.arange(256) * 7 % 6]
    for (processes, each), how in zip([(1, 6), (2, 3), (3, 2), (6, 1)], hows, strict=True):
        made = cases.together(
            processes, each, lambda comm, how=how: models.generate_shards(model, comm, how)
        )
        partition = made[0][0]
        assert all(partition == P for P, _ in made)
        rows = [row for _, some in made for row in some]
        assert cases.joined(partition, rows) == expected


def test_drawn_uniform_and_empty() -> None:
    for n, factor in ((50, 3), (3, 0), (0, 0), (1, 5)):
        state = random_edges.state_of(1, generators.EDGES)
        model = random_edges.GraphModel(
            "uniform", (n,), n, round(factor * n), state, None, True, False
        )
        A = generators.uniform_random(n, factor)
        partition, rows = models.generate_shards(model, LocalCommunicator(4))
        assert cases.joined(partition, rows) == arrays(A)


@pytest.mark.skipif(shim.COMPILER is None, reason="needs g++")
@pytest.mark.parametrize("options", GRAPHS, ids=str)
def test_kernels_on_the_host(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """What a GPU does: each shard walks all edges and keeps its own."""
    shim.install(monkeypatch)
    monkeypatch.setattr(cpu, "random_edges", on_cuda, raising=False)
    model = generators.kronecker_model(8, 6, **options)
    expected = arrays(generators.kronecker(8, 6, **options))
    for how in ("edges", np.arange(256) * 5 % 3):
        partition, rows = models.generate_shards(model, LocalCommunicator(3), how)
        assert cases.joined(partition, rows) == expected


@given(st.lists(st.lists(st.integers(0, 9), max_size=7), min_size=1, max_size=20))
def test_rows_merge_alike_on_both(rows: list[list[int]]) -> None:
    starts = np.cumsum([0, *map(len, rows)])
    columns = np.array([j for row in rows for j in row], np.int32)
    expected = [sorted(set(row)) for row in rows]
    for merge in (ingest._merged, ingest._merged_cuda):
        kept, _, begins = merge(starts, columns.copy(), None, "min")
        parts = np.split(kept, begins[1:])
        assert [part.tolist() for part in parts] == expected
    # with values: of each column the least, or the sum
    values = (np.arange(columns.size) * 7 % 5).astype(np.float32)
    ends = [list(zip(*pair, strict=True)) for pair in zip(rows, _split(values, rows), strict=True)]
    for how, of in (("min", min), ("plus", sum)):
        wanted = [
            [of(x for i, x in row if i == j) for j in sorted({i for i, _ in row})] for row in ends
        ]
        for merge in (ingest._merged, ingest._merged_cuda):
            _, combined, begins = merge(starts, columns.copy(), values.copy(), how)
            assert [part.tolist() for part in np.split(combined, begins[1:])] == wanted


def _split(values: np.ndarray, rows: list[list[int]]) -> list[list[float]]:
    return [part.tolist() for part in np.split(values, np.cumsum([len(row) for row in rows])[:-1])]


# --- reading --------------------------------------------------------------------------------------

CHANCE = np.random.default_rng(7)
PAIRS = CHANCE.integers(0, 40, (300, 2)).tolist()
HEAD = "%%MatrixMarket matrix coordinate"


def lines(form: Callable[..., str], base: int = 0, lower: bool = False) -> str:
    """The edges, some of them twice; with `lower` only those below the diagonal, each once."""
    pairs = sorted({(max(p), min(p)) for p in PAIRS if p[0] != p[1]}) if lower else PAIRS
    rows = [form(u + base, v + base, (7 * u + v * v + k) % 23) for k, (u, v) in enumerate(pairs)]
    return "\n".join(rows)


LOWER = len({(max(p), min(p)) for p in PAIRS if p[0] != p[1]})
TEXTS = {
    "g.el": lines("{0} {1}".format),
    "bom.el": "\ufeff" + lines("{0} {1}".format) + "\n",
    "crlf.tsv": "# head\r\n" + lines("{0}\t{1}".format).replace("\n", "\r\n"),
    "g.csv": lines("{0},{1},{2}".format) + "\n\n\n",
    "g.wel": "# head\n\n" + lines("  {0}   {1} {2}  # c".format),
    "reals.wel": lines("{0} {1} {2}".format) + "\n3 4 2.5\n",
    "g.gr": "c head\np sp 45 300\n" + lines("a {0} {1} {2}".format, 1),
    "tree.gr": f"p tw 45 {LOWER}\n" + lines("{0} {1}".format, 1, lower=True) + "\nc end\n",
    "g.mtx": f"{HEAD} integer general\n% c\n45 45 300\n" + lines("{0} {1} {2}".format, 1),
    "pattern.mtx": f"{HEAD} pattern general\n45 45 300\n" + lines("{0} {1}".format, 1),
    "symmetric.mtx": f"{HEAD} real symmetric\n45 45 {LOWER}\n"
    + lines("{0} {1} {2}.5".format, 1, lower=True),
    "skew.mtx": f"{HEAD} integer skew-symmetric\n45 45 {LOWER}\n"
    + lines("{0} {1} {2}".format, 1, lower=True),
    "empty.mtx": f"{HEAD} pattern general\n4 4 0\n",
    "none.mtx": f"{HEAD} pattern general\n0 0 0",
}


def read_shards(
    path: Path, communicator: Communicator, how: Any = "edges", **options: Any
) -> reading.Spread | None:
    return reading.read_shards(Request.of(path, **options), communicator, how)


def same(path: Path, processes: int, each: int, how: Any = "edges", **options: Any) -> None:
    """The shards are together what one process reads."""
    made = cases.together(processes, each, lambda comm: read_shards(path, comm, how, **options))
    A = read(path, **options)
    for one in made:
        assert isinstance(one, reading.Spread), one
        assert one.partition == made[0].partition and one.symmetric == A.symmetric
    rows = [row for one in made for row in one.rows]
    kinds = {None if row.values is None else row.values.dtype for row in rows}
    assert kinds == {None if A.iso else A.dtype}
    assert cases.joined(made[0].partition, rows) == arrays(A)


@pytest.mark.parametrize("name", TEXTS)
def test_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(TEXTS[name], newline="")
    for processes, each in ((1, 1), (3, 1), (2, 3)):
        for symmetric in (None, True):
            same(path, processes, each, symmetric=symmetric)
    same(path, 2, 2, "random")


def test_read_counts_from_base(tmp_path: Path) -> None:
    path = tmp_path / "g.el"
    path.write_text(lines("{0} {1}".format, 1))
    same(path, 3, 1, base=1)
    same(path, 3, 1, np.arange(41) % 3, base=0)


@pytest.mark.parametrize("compress", [gzip, bz2, lzma], ids=["gz", "bz2", "xz"])
def test_read_compressed(tmp_path: Path, compress: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "BLOCK", 64)
    for name in ("g.wel", "g.gr", "skew.mtx"):
        suffix = {gzip: "gz", bz2: "bz2", lzma: "xz"}[compress]
        path = tmp_path / f"{name}.{suffix}"
        path.write_bytes(compress.compress(TEXTS[name].encode()))
        same(path, 3, 2)


@pytest.mark.parametrize("name", ["g.wel", "g.gr", "tree.gr", "skew.mtx", "symmetric.mtx"])
def test_read_compact(tmp_path: Path, name: str) -> None:
    """Ids that no process has alone are put together; each process has all of them."""
    path = tmp_path / name
    path.write_text(TEXTS[name].replace("45 45", "999 999").replace(" 45 ", " 999 "), newline="")
    for symmetric in (None, True):
        A, ids = read(path, symmetric=symmetric, compact=True)
        for processes, each in ((3, 1), (2, 3)):
            made = cases.together(
                processes,
                each,
                lambda comm: read_shards(path, comm, symmetric=symmetric, compact=True),  # noqa: B023
            )
            assert all(one.ids.tolist() == ids.tolist() for one in made), made
            rows = [row for one in made for row in one.rows]
            assert cases.joined(made[0].partition, rows) == arrays(A)


def test_read_as_another_type(tmp_path: Path) -> None:
    path = tmp_path / "g.wel"
    path.write_text(TEXTS["g.wel"])
    for dtype in ("float32", "int16", "float64"):
        same(path, 3, 1, dtype=dtype)
        same(path, 2, 2, dtype=dtype, symmetric=True)
    pattern = tmp_path / "g.el"
    pattern.write_text("0 1\n1 2\n")
    G = distributed.read(pattern, 2, dtype="float32")
    assert G.dtype == np.float32 and G.gather().isequal(read(pattern, dtype="float32"))
    path.write_text("0 1 2\n1 2 300\n2 3 4\n")
    found = cases.together(2, 2, lambda comm: read_shards(path, comm, dtype="int8"))
    kinds = {type(error).__name__ for error in found}
    assert "FormatError" in kinds and kinds <= {"FormatError", "CommunicationError"}
    assert any("int8 holds, got 300" in str(error) for error in found)


def test_few_rows_far_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many rows are refused in every process alike, and made where that is said."""
    monkeypatch.setattr(checks, "LARGE", 10_000)
    monkeypatch.setattr(ingest, "UNCHECKED", 500)
    path = tmp_path / "g.el"
    path.write_text("0 1\n" * 3 + "1 20000\n" + "2 3\n" * 3)
    for error in cases.together(3, 2, lambda comm: read_shards(path, comm)):
        assert isinstance(error, MemoryError) and "of 20,001 rows take 80.0 kB" in str(error)
    same(path, 3, 2, compact=False)
    path.write_text("0 1\n" * 600 + "1 20000\n")  # enough entries, counted once more
    same(path, 3, 2)
    path = tmp_path / "g.gr"
    path.write_text("p sp 20000 1\na 1 2 3\n")
    for error in cases.together(3, 2, lambda comm: read_shards(path, comm)):
        assert isinstance(error, MemoryError) and "of 20,000 rows" in str(error)


def test_sums_of_shards(tmp_path: Path) -> None:
    """What a sum does not hold is an error in all processes; a symmetric file is symmetric."""
    path = tmp_path / "g.mtx"
    path.write_text(f"{HEAD} integer general\n3 3 2\n1 2 {2**63 - 1}\n1 2 1\n")
    found = cases.together(2, 2, lambda comm: read_shards(path, comm))
    assert {type(error).__name__ for error in found} == {"FormatError", "CommunicationError"}
    assert any(re.search(r"g\.mtx: the values .* sum up to", str(error)) for error in found)
    parts = ["3 1 1e16", "1 3 1.0", "3 1 -1e16", "1 3 0.3", "3 1 0.1", "1 3 1e-3"]
    path.write_text(f"{HEAD} real symmetric\n3 3 6\n" + "\n".join(parts))
    A = distributed.read(path, 2).gather()
    assert A.symmetric and A.nvals == 2 and A.values[0] == A.values[1]


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12), st.integers(-9, 9)), min_size=1),
    st.sampled_from(["\n", "\r\n", " # c\n", "\n\n"]),
    st.integers(1, 40),
    st.integers(1, 3),
)
def test_lines_cut_anywhere(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[int, int, int]],
    end: str,
    step: int,
    processes: int,
) -> None:
    path = tmp_path_factory.mktemp("cut") / "g.wel"
    path.write_text("".join(f"{u} {v} {w}{end}" for u, v, w in rows), newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "STEP", step)
        same(path, processes, 2)


def test_other_files_are_not_read_in_shards(tmp_path: Path) -> None:
    dense = tmp_path / "dense.mtx"
    dense.write_text("%%MatrixMarket matrix array real general\n1 2\n1\n2\n")
    generators_file = tmp_path / "g.npz"
    np.savez(generators_file, format=np.array(b"csr"))
    for path in (dense, generators_file):
        assert read_shards(path, LocalCommunicator(2)) is None


def test_a_file_without_a_suffix_is_what_its_content_says(tmp_path: Path) -> None:
    """Standard input may be a file: one of Matrix Market is no edge list with comments."""
    for name, text in TEXTS.items():
        path = tmp_path / name
        path.write_text(text)
        (tmp_path / "packed").write_bytes(gzip.compress(text.encode()))
        expected = read(path, base=None if path.suffix in (".gr", ".mtx") else 0)
        for file in (path, tmp_path / "packed"):
            with file.open("rb") as stream:
                found = distributed.read(f"/dev/fd/{stream.fileno()}", 2)
            assert found.gather().isequal(expected), name


@pytest.mark.parametrize("suffix", [".h5", ".hdf5", ".bsp.npz"])
def test_files_of_binsparse(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("binsparse", reason="binsparse is not installed (extra binsparse)")
    A = generators.kronecker(5)
    sg.write(tmp_path / f"g{suffix}", A)
    assert distributed.read(tmp_path / f"g{suffix}", 2).gather().isequal(A)


@pytest.mark.parametrize("compact", [None, True])
@pytest.mark.parametrize("change", ["grows", "shrinks", "is replaced"])
def test_a_file_that_changes_while_it_is_read(
    tmp_path: Path, change: str, compact: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries that were not counted would go to places of others."""
    path = tmp_path / "g.wel"
    path.write_text("0 1 5\n1 2 6\n2 0 7\n" * 20)
    count = reading.row_counts

    def counted(*given: Any) -> Any:
        found = count(*given)
        if change == "grows":
            with path.open("a") as stream:
                stream.write("0 2 8\n")
        elif change == "shrinks":
            os.truncate(path, 60)
        else:
            (tmp_path / "other").write_text("2 1 5\n1 2 6\n2 0 7\n" * 20)
            os.replace(tmp_path / "other", path)
        return found

    monkeypatch.setattr(reading, "row_counts", counted)
    with pytest.raises(FormatError, match=r"g\.wel: expected a file that stays as it is while"):
        distributed.read(path, 2, compact=compact)


@pytest.mark.parametrize(
    ("name", "bad"), [("g.wel", "1 x 3"), ("g.gr", "a 1 99 3"), ("skew.mtx", "2 1 4 7")]
)
def test_errors_name_the_line(tmp_path: Path, name: str, bad: str) -> None:
    """One process meets a bad line far into the file: its message is that of `read`."""
    rows = TEXTS[name].split("\n")
    rows[200] = bad
    path = tmp_path / name
    path.write_text("\n".join(rows))
    with pytest.raises(FormatError, match="line 201: ") as expected:
        read(path)
    found = cases.together(3, 2, lambda comm: read_shards(path, comm))
    kinds = sorted(type(error).__name__ for error in found)
    assert kinds == ["CommunicationError", "CommunicationError", "FormatError"]
    assert str(expected.value) in [str(error) for error in found]


def test_bad_files(tmp_path: Path) -> None:
    path = tmp_path / "g.gr"
    for declared in (299, 301):
        path.write_text(TEXTS["g.gr"].replace(" 300", f" {declared}"))
        for error in cases.together(2, 2, lambda comm: read_shards(path, comm)):
            assert isinstance(error, FormatError)
            assert f"declares {declared} entries, the file has 300" in str(error)
    path = tmp_path / "g.mtx"
    path.write_text(f"{HEAD} pattern general\n3 4 0\n")
    for error in cases.together(2, 1, lambda comm: read_shards(path, comm)):
        assert isinstance(error, DimensionMismatch) and "got 3 x 4" in str(error)
    path.write_text(TEXTS["symmetric.mtx"])
    with pytest.raises(ValueError, match="which declares an undirected graph, got False"):
        read_shards(path, LocalCommunicator(2), symmetric=False)
    path.write_text(re.sub(r"\n(\d+) \d+ (\d+)$", r"\n\1 \1 \2", TEXTS["skew.mtx"]))
    with pytest.raises(FormatError, match="skew-symmetric matrix has no diagonal"):
        read_shards(path, LocalCommunicator(2))
    with pytest.raises(FileNotFoundError, match=r"there is no file .*missing\.el"):
        read_shards(tmp_path / "missing.el", LocalCommunicator(2))
    path = tmp_path / "long.el"
    path.write_text("1 2\n" + " " * (source.LONGEST_LINE + 200))
    with pytest.raises(FormatError, match="line"):
        read_shards(path, LocalCommunicator(2))


# --- memory ---------------------------------------------------------------------------------------


@pytest.mark.mpi
def test_memory_of_four_processes(tmp_path: Path) -> None:
    """No process holds much more than its share: not all edges, nor its own twice.

    What they work on at once is made small (see `main`), and so is the allowance for it: 16 MB
    where 1 GiB is promised. All edges of the graph at once would be 34 MB, and twice that to sort.
    """
    edges = np.random.default_rng(1).integers(0, 1 << 17, (2, 1_000_000))
    options = pyarrow.csv.WriteOptions(include_header=False, delimiter=" ")
    for name, count in (("small.el", 100_000), ("large.el", 1_000_000)):
        table = pyarrow.table({"u": edges[0, :count], "v": edges[1, :count]})
        pyarrow.csv.write_csv(table, tmp_path / name, options)
    assert MPIEXEC is not None
    run = subprocess.run(
        [MPIEXEC, "-n", "4", sys.executable, cases.__file__, "small.el", "large.el"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=280,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
    )
    assert run.returncode == 0, run.stdout + run.stderr
    found = re.findall(r"entries (\d+) share (\d+) grew (\d+)", run.stdout)
    assert len(found) == 8, run.stdout
    numbers = np.array(found, np.int64)
    entries = generators.kronecker(17).nvals + np.unique(edges[0] << 17 | edges[1]).size
    assert numbers[:, 0].sum() == entries
    assert (numbers[:, 2] < 1.5 * numbers[:, 1] + 16e6).all(), numbers


def test_read_and_draw_say_what_does_not_fit(tmp_path: Path) -> None:
    model = generators.kronecker_model(4)
    (tmp_path / "graph.el").write_text("0 1\n")

    def reading_it(*arguments: Any, **options: Any) -> Any:
        return distributed.read(tmp_path / "graph.el", *arguments, **options)

    def drawing_it(*arguments: Any, **options: Any) -> Any:
        return distributed.from_model(model, *arguments, **options)

    with pytest.raises(DomainMismatch, match="from_model: model: expected a GraphModel, got int"):
        distributed.from_model(4, 2)  # type: ignore[arg-type]
    two = LocalCommunicator(2)
    for name, made in (("read", reading_it), ("from_model", drawing_it)):
        with pytest.raises(ValueError, match="shards: expected an integer >= 1, got 0"):
            made(0)
        with pytest.raises(ValueError, match=f"{name}: shards: expected at most 1024 shards in a"):
            made(10**6)
        with pytest.raises(DimensionMismatch, match=f"{name}: shards: expected 2 as the commun"):
            made(3, communicator=two)
        with pytest.raises(ValueError, match=f"{name}: devices: the communicator given has"):
            made(2, communicator=two, devices="cpu")
        with pytest.raises(DimensionMismatch, match=f"{name}: devices: expected 2, one for each"):
            made(2, devices=["cpu"])
        with pytest.raises(ValueError, match=f"{name}: exchange: 'nccl' takes a GPU of its own"):
            made(2, exchange="nccl")
        G = made(7)  # more shards than vertices of the one, empty ones among them
        assert G.partition.vertices.num_shards == 7 and sg.bfs(G, 0).level.nvals
    with pytest.raises(FileNotFoundError, match="there is no file"):
        distributed.read(tmp_path / "missing.el", 2)
