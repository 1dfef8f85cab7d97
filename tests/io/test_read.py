"""Reading graph files: against hand-written matrices and SciPy's reader."""

from __future__ import annotations

import bz2
import functools
import gzip
import lzma
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from spgraph import distributed
from spgraph.containers import Matrix
from spgraph.errors import FormatError
from spgraph.io import read, source, table
from spgraph.io.formats import edge_list


def entries(A: Matrix) -> dict[tuple[int, int], float]:
    """{(row, column): value}, and a check that the arrays are canonical CSR."""
    assert A.indptr.shape == (A.nrows + 1,)
    assert A.indptr[0] == 0 and A.indptr[-1] == A.indices.size
    assert A.values.size == (1 if A.iso else A.indices.size)
    found = {}
    for i in range(A.nrows):
        row = A.indices[A.indptr[i] : A.indptr[i + 1]].tolist()
        assert row == sorted(set(row))
        for k, j in enumerate(row, int(A.indptr[i])):
            found[i, j] = A.values[0 if A.iso else k].item()
    return found


@pytest.fixture(autouse=True, scope="module", params=[0, 1 << 30])
def large(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each file is parsed by the kernel first, then as a small one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "LARGE", request.param)
        yield


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    def make(name: str, text: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return make


Make = Callable[[str, str | bytes], Path]
PATH = {(0, 1): True, (1, 2): True, (2, 0): True}


# --- edge lists -----------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["txt", "el", "edges", "csv", "tsv", "TXT"])
def test_edge_list(file: Make, suffix: str) -> None:
    A = read(file(f"g.{suffix}", "0 1\n1 2\n2 0\n"))
    assert A.shape == (3, 3) and A.iso and A.dtype == bool and A.symmetric is None
    assert A.indices.dtype == A.indptr.dtype == np.int32
    assert entries(A) == PATH


@pytest.mark.parametrize(
    "text",
    [
        "0 1\n1 2\n2 0",  # no end of the last line
        "0 1\r\n1 2\r\n2 0\r\n",
        "0 1\n1 2\n2 0\r",
        "\n\n0 1\n\n \t \n1 2\n2 0\n\n",
        "0\t1\n1\t2\n2\t0\n",
        "0 1\n1\t2\n2 \t  0\n",
        "  0 1  \n\t1 2\t\n2 0\n",
        "0,1\n1,2\n2,0\n",
        "0, 1\n1 ,2\n2 , 0\n",
        "0,1\n1 2\n2\t0\n",
        "00 01\n1 002\n2 0\n",
        f"0 1\n1 {'0' * 5000}2\n2 0\n",
        "# head\n% head\n0 1\n1 2\n# x (0x1F) in the middle\n2 0\n# at the end",
        "0 1 # why\n1 2%5 9\n2 0#\n",
        "   # indented\n0 1\n1 2\n2 0\n",
        "\ufeff0 1\n1 2\n2 0\n",
        "# caf\u00e9\n0 1\n1 2\n2 0\n",
        "0 1\n1 2\n2 0\n0 1\n2 0\n",  # duplicates
        "0\f1\n1\v2\n2 0\n",
    ],
)
def test_edge_list_spellings(file: Make, text: str) -> None:
    assert entries(read(file("g.txt", text))) == PATH


@pytest.mark.parametrize(
    "head",
    [
        "source,target",
        '"source","target"',
        "# c\n\nsource,target",
        "Source Target",
        "u\tv\tweight",
        " from , to # names\r",
        "id_1,id_2,w,t",
    ],
)
def test_names_of_columns_are_skipped(file: Make, head: str) -> None:
    assert entries(read(file("g.csv", f"{head}\n0,1\n1,2\n2,0\n"))) == PATH
    A = read(file("g.csv", f"{head}\n0 1 5\n1 2 2.5\n"))
    assert A.dtype == np.float64 and entries(A) == {(0, 1): 5.0, (1, 2): 2.5}


def test_dtype(file: Make) -> None:
    integers = HEAD.format("integer", "general") + "3 3 2\n1 2 inf\n2 3 -7\n"
    A = read(file("g.mtx", integers), dtype="float64")
    assert A.dtype == np.float64 and entries(A) == {(0, 1): np.inf, (1, 2): -7.0}
    A = read(file("g.gr", "p sp 3 2\na 1 2 3\na 2 3 .5\n"), dtype=np.float32)
    assert A.dtype == np.float32 and entries(A) == {(0, 1): 3.0, (1, 2): 0.5}
    reals = file("r.mtx", HEAD.format("real", "general") + "3 3 2\n1 2 1e2\n2 3 -7.0\n")
    A = read(reals, dtype="int8")
    assert A.dtype == np.int8 and entries(A) == {(0, 1): 100, (1, 2): -7}
    A = read(file("g.wel", f"0 1 {2**64 - 1}\n"), dtype="uint64")
    assert A.dtype == np.uint64 and entries(A) == {(0, 1): 2**64 - 1}
    A = read(file("g.el", "0 1\n"), dtype="int32", symmetric=True)
    assert A.iso and A.dtype == np.int32 and entries(A) == {(0, 1): 1, (1, 0): 1}
    skew = HEAD.format("integer", "skew-symmetric") + "2 2 1\n2 1 5\n"
    assert entries(read(file("s.mtx", skew), dtype="float32")) == {(1, 0): 5.0, (0, 1): -5.0}
    far = 2**53 + 1
    for name, text in (
        ("w.wel", "0 1 {}\n"),
        ("w.mtx", HEAD.format("real", "general") + "3 3 1\n1 2 {}\n"),
        ("w.mtx", HEAD.format("integer", "general") + "3 3 1\n1 2 {}\n"),
    ):
        for dtype in ("int64", "uint64"):
            assert entries(read(file(name, text.format(far)), dtype=dtype)) == {(0, 1): far}
    mixed = f"0 1 {far}\n1 2 2.0\n"
    assert read(file("x.wel", mixed.replace(str(far), "5")), dtype="int64").values.tolist() == [
        5,
        2,
    ]
    for reader in (read, lambda path, dtype: distributed.read(path, 2, dtype=dtype)):
        with pytest.raises(FormatError, match=r"x\.wel: dtype: expected integers below 2\*\*53"):
            reader(file("x.wel", mixed.replace(str(far), f"{far}.0")), dtype="int64")
    for dtype in ("uint8", "bool"):
        with pytest.raises(FormatError, match=rf"r\.mtx: .*{dtype} holds, got (-7|100)"):
            read(reals, dtype=dtype)
    with pytest.raises(FormatError, match="uint64 holds, got -7"):
        read(reals, dtype="uint64")
    for value, dtype in (("300", "int8"), ("0.5", "int64"), ("nan", "int64"), ("1e300", "float32")):
        for name in ("v.wel", "v.wel.gz"):
            pack = gzip.compress if name.endswith("gz") else bytes
            with pytest.raises(FormatError, match=rf"{name}: .*{dtype}"):
                read(file(name, pack(f"0 1 {value}\n".encode())), dtype=dtype)
    with pytest.raises(TypeError, match="dtype"):
        read(reals, dtype="complex128")


@pytest.mark.parametrize("other", ["0.5", "1e3", str(2**63)])
def test_an_integer_is_not_rounded_in_silence(file: Make, other: str) -> None:
    far, many = 2**53 + 1, "2 3 7\n" * 2000  # a block for the kernel
    for read_it in (read, functools.partial(distributed.read, shards=2)):
        for lines, number in ((f"0 1 {far}\n1 2 {other}\n", 1), (f"1 2 {other}\n0 1 -{far} \n", 2)):
            for rest in ("", many):
                path = file("x.wel", lines + rest)
                with pytest.raises(FormatError, match=rf"x\.wel, line {number}: .*got -?{far}, wh"):
                    read_it(path)
                assert read_it(path, dtype="float64").dtype == np.float64
        path = file("x.wel", f"0 1 {2**60}\n1 2 {other}\n2 3 {far}.0 # {far}\n")
        assert read_it(path)[2, 3] == 2.0**53


def test_an_integer_of_an_earlier_block_is_not_rounded_in_silence(
    file: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "BLOCK", 16)
    with pytest.raises(
        FormatError, match=rf"expected integers .* got {2**53 + 1}, which it rounds"
    ):
        read(file("x.wel", f"0 1 {2**53 + 1}\n" + "1 2 3\n" * 9 + "1 2 0.5\n"))


def test_a_symmetric_file_is_symmetric_to_the_last_bit(file: Make) -> None:
    """Entries of one position, some above and some below the diagonal, in orders that matter."""
    parts = ["3 1 1e16", "1 3 1.0", "3 1 -1e16", "1 3 0.3", "3 1 0.1", "1 3 1e-3"]
    text = HEAD.format("real", "symmetric") + f"3 3 {len(parts)}\n" + "\n".join(parts) + "\n"
    A = read(file("g.mtx", text))
    assert A.symmetric and A.values[0] == A.values[1] and A.nvals == 2


def test_edge_list_weights(file: Make) -> None:
    A = read(file("g.wel", "0 1 5\n1 2 -7\n"))
    assert A.dtype == np.int64 and entries(A) == {(0, 1): 5, (1, 2): -7}
    A = read(file("g.wel", "0 1 5\n1 2 0.1\n2 0 1e-3\n0 2 +.5\n1 0 inf\n"))
    expected = {(0, 1): 5.0, (1, 2): 0.1, (2, 0): 1e-3, (0, 2): 0.5, (1, 0): np.inf}
    assert A.dtype == np.float64 and entries(A) == expected
    A = read(file("g.wel", f"0 1 {2**63 - 1}\n1 2 {-(2**63)}\n"))
    assert A.dtype == np.int64 and entries(A) == {(0, 1): 2**63 - 1, (1, 2): -(2**63)}
    A = read(file("g.wel", f"0 1 {2**63}\n1 2 1\n"))
    assert A.dtype == np.float64 and entries(A) == {(0, 1): 2.0**63, (1, 2): 1.0}
    A = read(file("g.wel", f"0 1 -{'0' * 5000}7\n"))
    assert A.dtype == np.int64 and entries(A) == {(0, 1): -7}
    A = read(file("g.wel", "0 1 nan\n"))
    assert np.isnan(entries(A)[0, 1])


def test_the_lesser_weight_counts(file: Make) -> None:
    text = "0 1 5\n0 1 3\n1 0 4\n0 1 9\n2 2 8\n2 2 1\n"
    assert entries(read(file("g.wel", text))) == {(0, 1): 3, (1, 0): 4, (2, 2): 1}
    A = read(file("g.wel", text), symmetric=True)
    assert A.symmetric and entries(A) == {(0, 1): 3, (1, 0): 3, (2, 2): 1}
    assert entries(read(file("g.wel", "0 1 nan\n0 1 2.5\n"))) == {(0, 1): 2.5}
    text = "p sp 3 3\na 1 2 5\na 1 2 3\na 2 1 4\n"
    assert entries(read(file("g.gr", text))) == {(0, 1): 3, (1, 0): 4}


def test_symmetric_and_base(file: Make) -> None:
    path = file("g.el", "1 2\n2 3\n3 3\n")
    assert entries(read(path)) == {(1, 2): True, (2, 3): True, (3, 3): True}
    assert read(path).shape == (4, 4)
    A = read(path, base=1, symmetric=True)
    assert A.shape == (3, 3) and A.symmetric is True and A.iso
    assert entries(A) == dict.fromkeys([(0, 1), (1, 0), (1, 2), (2, 1), (2, 2)], True)
    assert entries(read(path, symmetric=False, base=0)) == entries(read(path))


def test_ids_beyond_32_bits(file: Make) -> None:
    """By the parser alone: a Matrix of that order has 17 GB of offsets."""
    path = file("g.el", f"{2**31} 5\n7 {2**31 + 1}\n")
    with source.Source(str(path)) as opened:
        found = edge_list.parse(opened, 0)
    assert found.rows.tolist() == [2**31, 7] and found.columns.tolist() == [5, 2**31 + 1]
    assert found.nrows == 2**31 + 2


def test_blocks_join(file: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines cut anywhere by the blocks, and types that change after the first block."""
    rng = np.random.default_rng(5)
    ids = rng.integers(0, 50, (400, 2))
    weights = [str(w) for w in rng.integers(0, 9, 399)] + ["2.5"]
    lines = [f"{u} {v} {w}" for (u, v), w in zip(ids, weights, strict=True)]
    lines.insert(200, "# a comment")
    path = file("g.wel", "# head\n\n" + "\n".join(lines))
    expected: dict[tuple[int, int], float] = {}
    for (u, v), w in zip(ids.tolist(), weights, strict=True):
        expected[u, v] = min(expected.get((u, v), np.inf), float(w))
    for size in (1, 7, 64, 1000, 1 << 24):
        monkeypatch.setattr(source, "BLOCK", size)
        A = read(path)
        assert A.dtype == np.float64 and entries(A) == expected
    lines[300] = "1 z 3"
    path = file("g.wel", "# head\n\n" + "\n".join(lines))
    for size in (7, 1000, 1 << 24):
        monkeypatch.setattr(source, "BLOCK", size)
        with pytest.raises(ValueError, match=r"line 303: .*'z'"):
            read(path)


blanks = st.text(" \t", min_size=1, max_size=3)
space = st.text(" \t", max_size=2)


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(-99, 99), blanks, space),
        min_size=1,
    ),
    st.sampled_from(["\n", "\r\n", " # c\n", "\n\n", "\n% 1 2 3\n"]),
)
def test_any_white_space(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple], end: str
) -> None:
    path = tmp_path_factory.mktemp("blanks") / "g.wel"
    path.write_text(
        "".join(f"{edge}{u}{gap}{v}{gap}{w}{edge}{end}" for u, v, w, gap, edge in rows), newline=""
    )
    expected: dict[tuple[int, int], float] = {}
    for u, v, w, _, _ in rows:
        expected[u, v] = min(expected.get((u, v), np.inf), w)
    assert entries(read(path)) == expected


# --- DIMACS ---------------------------------------------------------------------------------------


def test_dimacs_shortest_paths(file: Make) -> None:
    text = "c a road\nc\np sp 4 3\nc 1 2 x (0x1)\na 1 2 803\na 2 1 803\nc\na 4 1 -5\n"
    A = read(file("g.gr", text))
    assert A.shape == (4, 4) and A.dtype == np.int64 and A.symmetric is None
    assert entries(A) == {(0, 1): 803, (1, 0): 803, (3, 0): -5}
    A = read(file("g.gr", text), symmetric=True)
    assert entries(A) == {(0, 1): 803, (1, 0): 803, (3, 0): -5, (0, 3): -5} and A.symmetric
    A = read(file("g.gr", "p sp 2 1\r\n  a\t0  1 7 \r\n"), base=0)
    assert entries(A) == {(0, 1): 7}


def test_pace(file: Make) -> None:
    A = read(file("g.gr", "c x\np tw 5 3\n1 2\nc between\n5 2\n3 3\n"))
    expected = [(0, 1), (1, 0), (4, 1), (1, 4), (2, 2)]
    assert A.shape == (5, 5) and A.symmetric is True and A.iso
    assert entries(A) == dict.fromkeys(expected, True)
    assert entries(read(file("g.gr", "p tw 5 3\n1 2\n5 2\n3 3\n"), symmetric=True)) == entries(A)


@pytest.mark.parametrize("text", ["p sp 7 0\n", "c x\np tw 7 0\n\nc end", "p tw 7 0"])
def test_graphs_without_edges(file: Make, text: str) -> None:
    A = read(file("g.gr", text))
    assert A.shape == (7, 7) and A.nvals == 0
    assert read(file("g.gr", "p sp 0 0\n")).shape == (0, 0)


# --- Matrix Market --------------------------------------------------------------------------------

HEAD = "%%MatrixMarket matrix coordinate {} {}\n% a comment\n\n"


def test_matrix_market_pattern(file: Make) -> None:
    A = read(file("g.mtx", HEAD.format("pattern", "general") + "3 4 2\n1 2\n3 4\n"))
    assert A.shape == (3, 4) and A.iso and A.dtype == bool and A.symmetric is False
    assert entries(A) == {(0, 1): True, (2, 3): True}
    A = read(file("g.mtx", HEAD.format("pattern", "symmetric") + "3 3 2\n2 1\n3 3\n"))
    assert A.symmetric is True and entries(A) == dict.fromkeys([(0, 1), (1, 0), (2, 2)], True)
    A = read(file("g.mtx", HEAD.format("pattern", "general") + "3 3 0\n"))
    assert A.shape == (3, 3) and A.nvals == 0


def test_matrix_market_array(file: Make) -> None:
    head = "%%MatrixMarket matrix array {} {}\n"
    A = read(file("g.mtx", head.format("integer", "general") + "2 3\n1\n0\n3\n4\n0\n6\n"))
    assert A.to_scipy().toarray().tolist() == [[1, 3, 0], [0, 4, 6]] and A.nvals == 4
    A = read(file("g.mtx", head.format("real", "symmetric") + "2 2\n1\n2.5\n0\n"))
    assert A.to_scipy().toarray().tolist() == [[1, 2.5], [2.5, 0]] and A.symmetric


KINDS = [
    (layout, field, symmetry)
    for layout in ("coordinate", "array")
    for field in ("integer", "real", "unsigned-integer", "pattern")
    for symmetry in ("general", "symmetric", "skew-symmetric")
    # fields without a sign have no skew matrices, arrays no patterns
    if not (symmetry == "skew-symmetric" and field in ("pattern", "unsigned-integer"))
    and not (layout == "array" and field == "pattern")
]


@pytest.mark.parametrize(("layout", "field", "symmetry"), KINDS)
def test_matrix_market_against_scipy(
    tmp_path: Path, layout: str, field: str, symmetry: str
) -> None:
    rng = np.random.default_rng(3)
    dense = rng.integers(1, 99, (30, 30)) * (rng.random((30, 30)) < 0.2)
    if symmetry != "general":
        dense = np.tril(dense, -1)
        dense = dense + dense.T if symmetry == "symmetric" else dense - dense.T
    values = dense / 7 if field == "real" else dense.astype("u8" if "uns" in field else "i8")
    path = tmp_path / "g.mtx"
    S = scipy.sparse.coo_array(values)
    scipy.io.mmwrite(
        path,
        S if layout == "coordinate" else values,
        field="pattern" if field == "pattern" else None,
        symmetry=symmetry,
    )
    assert f"{layout} {field} {symmetry}" in path.read_text()
    A = read(path)
    expected = scipy.io.mmread(path, spmatrix=False)
    expected = expected.toarray() if layout == "coordinate" else expected
    assert np.array_equal(A.to_scipy().toarray(), expected)
    types = {"integer": "int64", "real": "float64", "unsigned-integer": "uint64", "pattern": "bool"}
    assert A.dtype == types[field]
    assert A.symmetric is (True if symmetry == "symmetric" else None)


def test_matrix_market_duplicates_and_mirrors(file: Make) -> None:
    text = HEAD.format("real", "general") + "2 2 4\n1 2 1.5\n1 2 2\n2 1 9\n1 2 4\n"
    path = file("g.mtx", text)
    assert entries(read(path)) == {(0, 1): 7.5, (1, 0): 9}
    assert np.array_equal(
        read(path).to_scipy().toarray(), scipy.io.mmread(path, spmatrix=False).toarray()
    )
    assert entries(read(path, symmetric=True)) == {(0, 1): 7.5, (1, 0): 7.5}
    pattern = file("h.mtx", HEAD.format("pattern", "general") + "2 2 2\n1 2\n1 2\n")
    assert entries(read(pattern, base=1)) == {(0, 1): True}


@pytest.mark.filterwarnings("error")
def test_sums_beyond_reals(file: Make) -> None:
    text = HEAD.format("real", "general") + "2 2 4\n1 1 1e308\n1 1 1e308\n2 2 inf\n2 2 -inf\n"
    assert np.array_equal(read(file("g.mtx", text)).values, [np.inf, np.nan], equal_nan=True)


# --- compression ----------------------------------------------------------------------------------


def zst(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


COMPRESS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zst}


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.el", "# c\n0 1\n1 2\n2 0\n"),
        ("g.gr", "p sp 3 3\na 1 2 1\na 2 3 1\na 3 1 1\n"),
        ("g.mtx", HEAD.format("pattern", "general") + "3 3 3\n1 2\n2 3\n3 1\n"),
    ],
)
def test_compressed(file: Make, name: str, text: str, compression: str) -> None:
    pack = COMPRESS[compression]
    A = read(file(name + compression, pack(text.encode())))
    assert entries(A).keys() == PATH.keys()
    half = len(text) // 2  # two members one behind the other are one file
    joined = pack(text[:half].encode()) + pack(text[half:].encode())
    assert read(file(name + compression.upper(), joined)).isequal(A)
