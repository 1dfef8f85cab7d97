"""`from_edges` and `Ids`: graphs from tables of edges with names, and results with names."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from fixtures_device import device  # noqa: F401

import spgraph as sg
from spgraph.errors import DimensionMismatch, DomainMismatch, FormatError, IndexOutOfBound

NAMES = {
    "string": pa.array(["Ulm", "Bonn", "", "NA", "7", "Köln", "a\nb", "007"]),
    "int64": pa.array([5, -3, 2**62, 0, 7, 11, 1, 12]),
    "uint64": pa.array([5, 3, 2**63 + 1, 0, 7, 11, 1, 12], pa.uint64()),
    "int8": pa.array([5, -3, 2, 0, 7, 11, 1, 12], pa.int8()),
}
WEIGHTS = ["bool", "int8", "uint16", "int64", "float32", "float64"]


def random_table(seed: int, names: str, weights: str, rows: int = 40) -> pa.Table:
    rng = np.random.default_rng(seed)
    ends = [NAMES[names].take(pa.array(rng.integers(0, 8, rows))) for _ in range(2)]
    values = rng.integers(0, 2 if weights == "bool" else 50, rows).astype(weights)
    return pa.table([*ends, values, [None] * rows], names=["a", "b", "w", "not looked at"])


def entries(A: sg.Matrix, ids: sg.Ids) -> dict[tuple[Any, Any], Any]:
    names = list(ids)
    return {(names[i], names[j]): value for i, j, value in A}


def oracle(table: pa.Table, symmetric: bool) -> dict[tuple[Any, Any], Any]:
    """The least weight of each edge."""
    found: dict[tuple[Any, Any], Any] = {}
    for a, b, w in zip(*(table[name].to_pylist() for name in "abw"), strict=True):
        for edge in [(a, b), (b, a)][: 1 + symmetric]:
            found[edge] = min(w, found.get(edge, w))
    return found


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize(("seed", "names"), list(enumerate(NAMES)))
def test_random_tables(seed: int, names: str, symmetric: bool) -> None:
    for weights in WEIGHTS:
        table = random_table(seed, names, weights)
        op = "land" if weights == "bool" else "min"
        A, ids = sg.from_edges(table, "a", "b", "w", symmetric=symmetric, dup_op=op)
        assert A.dtype == weights and A.shape == (len(ids), len(ids))
        assert entries(A, ids) == oracle(table, symmetric)
        assert bool(A.symmetric) is symmetric
        both = table["a"].to_pylist() + table["b"].to_pylist()
        assert list(ids) == list(dict.fromkeys(both))  # by first appearance
        # and back
        again = sg.from_edges(ids.label(A), weight="weight")
        assert entries(*again) == entries(A, ids)


def test_a_pattern_has_each_edge_once() -> None:
    table = random_table(0, "string", "bool")
    for symmetric in (False, True):
        A, ids = sg.from_edges(table, "a", "b", symmetric=symmetric)
        assert A.iso and A.dtype == bool
        assert entries(A, ids).keys() == oracle(table, symmetric).keys()


def frames(table: pa.Table, folder: Path) -> dict[str, Any]:
    """The same table in every form that is taken."""
    columns = {name: table[name].to_pylist() for name in "abw"}
    chunks = pa.concat_tables([table.slice(0, 7), table.slice(7)])
    pa.parquet.write_table(table, folder / "t.parquet")
    # CSV has no other way to tell an empty name from a missing one
    text = table.select(["a", "b", "w"])
    pa.csv.write_csv(text, folder / "t.csv")
    pa.csv.write_csv(text, folder / "t.tsv", pa.csv.WriteOptions(delimiter="\t"))
    (folder / "t.csv.gz").write_bytes(gzip.compress((folder / "t.csv").read_bytes()))
    return {
        "lists": columns,
        "arrays": {name: np.array(column) for name, column in columns.items()},
        "arrow": {name: table[name].combine_chunks() for name in "abw"},
        "chunks": chunks,
        "batch": table.combine_chunks().to_batches()[0],
        "stream": pa.RecordBatchReader.from_batches(table.schema, chunks.to_batches()),
        "dictionary": table.set_column(0, "a", table["a"].dictionary_encode()),
        "parquet": folder / "t.parquet",
        "csv": str(folder / "t.csv"),
        "tsv": folder / "t.tsv",
        "csv.gz": folder / "t.csv.gz",
    }


@pytest.mark.parametrize("names", ["string", "int64"])
def test_every_form_gives_the_same(names: str, tmp_path: Path) -> None:
    table = random_table(3, names, "int64", rows=20)
    table = table.filter(pa.compute.not_equal(table["a"].cast("string"), ""))
    table = table.filter(pa.compute.not_equal(table["b"].cast("string"), ""))
    expected = sg.from_edges(table, "a", "b", "w", dup_op="first")
    for form, given in frames(table, tmp_path).items():
        A, ids = sg.from_edges(given, "a", "b", "w", dup_op="first")
        assert list(ids) == list(expected.ids), form
        assert A.isequal(expected.matrix) and A.dtype == np.int64, form
    columns = tuple(table[name].to_pylist() for name in "abw")
    edges = list(zip(*columns, strict=True))
    for given in (columns, edges, list(map(list, edges))):
        assert sg.from_edges(given, dup_op="first").matrix.isequal(expected.matrix)
    for given in (columns[:2], [edge[:2] for edge in edges]):
        pattern = sg.from_edges(given).matrix
        assert pattern.iso and pattern.nvals == expected.matrix.nvals


def test_pandas(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pip install 'spgraph[dev]'")
    table = random_table(4, "string", "float64")
    expected = sg.from_edges(table, "a", "b", "w", dup_op="plus")
    frame = table.to_pandas()
    kinds = [frame, frame.astype({"a": "category", "b": object}), frame.set_index("b", drop=False)]
    for given in [*kinds, frame.rename(columns={"a": 0})]:
        source = "a" if "a" in given.columns else 0
        A, ids = sg.from_edges(given, source, "b", "w", dup_op="plus")
        assert list(ids) == list(expected.ids) and A.isequal(expected.matrix)
    theirs = nx.from_pandas_edgelist(frame, "a", "b", create_using=nx.DiGraph)
    assert set(theirs.edges) == entries(*sg.from_edges(frame, "a", "b")).keys()
    # integers beside a missing one are floating-point numbers with NaN there
    holes = pandas.DataFrame({"source": [1, 2, None], "target": [2, 3, 4]})
    with pytest.raises(ValueError, match=r"from_edges: source: .* in row 2 \(counted from 0\)"):
        sg.from_edges(holes)
    level = sg.bfs(expected.matrix, expected.ids["Ulm"]).level
    named = expected.ids.label(level).to_pandas().set_index("name")["value"]
    assert named["Ulm"] == 0 and len(named) == level.nvals


def test_polars() -> None:
    polars = pytest.importorskip("polars", reason="pip install 'spgraph[dev]'")
    table = random_table(5, "string", "float64")
    expected = sg.from_edges(table, "a", "b", "w", dup_op="plus")
    frame = polars.from_arrow(table)
    for given in (frame, frame.with_columns(frame["a"].cast(polars.Categorical))):
        A, ids = sg.from_edges(given, "a", "b", "w", dup_op="plus")
        assert list(ids) == list(expected.ids) and A.isequal(expected.matrix)
    assert ids.positions(frame["b"]).tolist() == [ids[name] for name in frame["b"]]
    assert polars.from_arrow(ids.label(A)).columns == ["source", "target", "weight"]


def test_many_rows_and_the_error_of_one_of_them() -> None:
    """More than the backend's sort needs, which has its own way to find repeats."""
    n = 1 << 17
    sources, targets = np.arange(n), np.arange(n) + 1
    A, ids = sg.from_edges((sources, targets, np.ones(n)))
    assert A.nvals == n and ids.names[-1] == n
    sources[-1], targets[-1] = 3, 4
    with pytest.raises(ValueError, match=rf"got 3 -> 4 in rows 3 and {n - 1} \(counted from 0\)"):
        sg.from_edges((sources, targets, np.ones(n)))


def test_names_of_text(tmp_path: Path) -> None:
    def ids_of(text: str) -> list[Any]:
        (tmp_path / "t.csv").write_text("source,target,weight\n" + text)
        return list(sg.from_edges(tmp_path / "t.csv").ids)

    assert ids_of("1,2,\n2,-3,\n") == [1, 2, -3]
    assert ids_of("1,2,\n01,3,\n") == ["1", "01", "2", "3"]
    assert ids_of("1,2,\n2,x,\n") == ["1", "2", "x"]
    assert ids_of("NA,nan,\nnull,1.0,\n") == ["NA", "null", "nan", "1.0"]
    assert ids_of("") == []
    (tmp_path / "t.csv").write_text("source,target,weight\na,b,1\nb,c,2.5\n")
    assert sg.from_edges(tmp_path / "t.csv", weight="weight").matrix.values.tolist() == [1, 2.5]


def test_arrays_of_the_other_byte_order() -> None:
    names, weights = np.array([5, 9, 7]), np.array([1.5, 2.0, 4.0])
    A, ids = sg.from_edges(
        (names.astype(">i4"), names[::-1].astype(">i8") + 1, weights.astype(">f8"))
    )
    B, same = sg.from_edges((names, names[::-1] + 1, weights))
    assert A.isequal(B, check_dtype=True) and list(ids) == list(same)
    assert ids.positions(names.astype(">i2")).tolist() == ids.positions(names).tolist()


def test_names_of_an_array_that_hold_a_zero() -> None:
    """Arrow ends those of NumPy's arrays at the zero: two names became one."""
    names = np.array(["a", "a\0b", "c", "", "a", "ü\0x"])
    A, ids = sg.from_edges((names[[0, 1, 5]], names[[1, 3, 1]]))
    assert sorted(ids) == ["", "a", "a\0b", "ü\0x"] and A.nvals == 3
    assert list(sg.Ids(names[[0, 1, 5]])) == ["a", "a\0b", "ü\0x"]
    ids = sg.Ids(["a", "a\0b"])
    assert ids.positions(names[[1, 0, 1]]).tolist() == [1, 0, 1]
    assert sg.Ids(np.array([], "U0")).names.size == 0


def test_no_rows() -> None:
    for table in ([], ([], []), ([], [], []), pa.table({"source": pa.array([], pa.string())})):
        if isinstance(table, pa.Table):
            table = table.append_column("target", table["source"])
        A, ids = sg.from_edges(table, symmetric=True)
        assert A.shape == (0, 0) and len(ids) == 0 and ids.names.size == 0
        assert ids.positions([]).tolist() == []


PLAIN = {"source": ["a", "b"], "target": ["b", "c"], "weight": [1, 2]}


@pytest.mark.parametrize(
    ("table", "options", "error", "message"),
    [
        (PLAIN | {"source": ["a", None]}, {}, ValueError, "source: .*, None or NaN in row 1 "),
        (PLAIN | {"source": pa.DictionaryArray.from_arrays([0, 1], ["a", None])}, {}, ValueError,
         "source: .* in row 1 "),
        (PLAIN | {"target": [None, 1.5]}, {}, ValueError, "target: .* in row 0 "),
        (PLAIN | {"weight": [1, None]}, {"weight": "weight"}, ValueError, "weight: .* in row 1 "),
        (PLAIN | {"weight": pa.array([1.0, np.nan])}, {"weight": "weight"}, ValueError,
         "weight: .* got NaN in row 1 "),
        (PLAIN | {"weight": ["1", "2"]}, {"weight": "weight"}, DomainMismatch, "weight: .*string"),
        (PLAIN | {"source": [1.5, 2.0]}, {}, DomainMismatch, "source: .*got double"),
        (PLAIN | {"source": [1, 2]}, {}, DomainMismatch, "source of int64 and target of large"),
        (PLAIN | {"source": ["a", 2]}, {}, DomainMismatch, "source: expected a list"),
        (PLAIN | {"source": ["a"]}, {}, DimensionMismatch, "target: expected 1 rows.* got 2"),
        (PLAIN | {"weight": [1]}, {"weight": "weight"}, DimensionMismatch, "weight: expected 2"),
        (PLAIN, {"source": "from"}, ValueError, "got 'from'.*'source', 'target', 'weight'"),
        (PLAIN, {"symmetric": 1}, DomainMismatch, "symmetric: expected True or False, got 1"),
        (PLAIN, {"dup_op": "pluss"}, DomainMismatch, "dup_op: "),
        ({"source": [-1], "target": pa.array([2**63], pa.uint64())}, {}, DomainMismatch,
         "all of uint64 or all of int64"),
        (([2**70, -1], [0, 1]), {}, DomainMismatch, "source: expected integers of int64 in a list"),
        ((["a"], np.array([-(2**63) - 1], object)), {}, DomainMismatch, "target: .* a longer one"),
        ((["a"], ["b"], [2**63]), {}, DomainMismatch, "weight: .* 'uint64'.* up to 2"),
        ([("a", "b"), ("b", "c", 1)], {}, DomainMismatch, r"got \('b', 'c', 1\) as element 1"),
        ([["a", "b"], np.array([1, 2])], {}, DomainMismatch, "as element 1; arrays of sources"),
        (["ab", "bc"], {}, DomainMismatch, "got 'ab' as element 0"),
        ([("a",), ("b",)], {}, DomainMismatch, r"got \('a',\) as element 0"),
        ([("a", "b", {"weight": 1})], {}, DomainMismatch, "weight: expected .* got struct"),
        ([("a", "b")], {"source": "s"}, ValueError, "expected none of them beside a"),
        ((("a", "b"), ("b", "c")), {}, DomainMismatch, "got 2 of tuple"),
        ((["a"], ["b"]), {"source": "s"}, ValueError, "expected none of them beside a tuple"),
        (5, {}, DomainMismatch, "table: .* got int"),
        (pa.chunked_array([["a"]]), {}, DomainMismatch, "table: .* got ChunkedArray"),
        ("graph.xlsx", {}, FormatError, "got graph.xlsx"),
        ("missing.csv", {}, FileNotFoundError, "there is no file missing.csv"),
        (pa.table([["a"], ["b"], ["c"]], names=["source", "source", "target"]), {}, ValueError,
         "got 'source', which 2 have"),
    ],
)  # fmt: skip
def test_what_is_refused(
    table: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"from_edges: .*{message}") as caught:
        sg.from_edges(table, **options)
    assert type(caught.value) is error


def test_repeated_edges_are_named() -> None:
    table = PLAIN | {"source": ["a", "b"], "target": ["b", "a"]}
    assert sg.from_edges(table, weight="weight").matrix.nvals == 2
    with pytest.raises(ValueError, match=r"got 'a' -> 'b' in rows 0 and 1 .*dup_op=\"plus\""):
        sg.from_edges(table, weight="weight", symmetric=True)
    A, ids = sg.from_edges(table, weight="weight", symmetric=True, dup_op="plus")
    assert entries(A, ids) == {("a", "b"): 3, ("b", "a"): 3}


def test_damaged_files(tmp_path: Path) -> None:
    for name, content in {
        "cut.parquet": b"PAR1 and no more",
        "cut.csv.gz": gzip.compress(b"source,target\na,b\n")[:-9],
        "empty.csv": b"",
        "short.csv": b"source,target\na,b\nc\n",
        "words.csv": b"source,target,weight\na,b,1\nb,c,heavy\n",
    }.items():
        (tmp_path / name).write_bytes(content)
        weight = "weight" if name == "words.csv" else None
        with pytest.raises(FormatError, match=f"from_edges: .*{name}"):
            sg.from_edges(tmp_path / name, weight=weight)
    (tmp_path / "hole.csv").write_text("source,target\na,b\n,c\n")
    with pytest.raises(ValueError, match="source: .* in row 1 "):
        sg.from_edges(tmp_path / "hole.csv")


# --- Ids ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", NAMES)
def test_ids_are_a_mapping(names: str) -> None:
    given = NAMES[names]
    ids = sg.Ids(given)
    assert dict(ids) == {name: k for k, name in enumerate(given.to_pylist())}
    assert [ids[name] for name in ids.names.tolist()] == list(range(8))
    picked = np.array([3, 3, 0])
    assert ids.positions(ids.names[picked]).tolist() == picked.tolist()
    assert ids.positions(given.take(pa.array(picked))).dtype == np.int64
    again = pickle.loads(pickle.dumps(ids))
    assert again == ids and again.names.dtype == ids.names.dtype
    assert not ids.names.flags.writeable
    with pytest.raises(KeyError, match="Ids: there is no vertex 'Rome'"):
        ids["Rome"]
    assert "Rome" not in ids and ids.get("Rome") is None


def test_what_ids_refuse() -> None:
    words, numbers = sg.Ids(["a", "b"]), sg.Ids(np.array([4, 2], np.uint64))
    with pytest.raises(ValueError, match="expected each name once, got 'a' again at 2"):
        sg.Ids(["a", "b", "a"])
    with pytest.raises(ValueError, match="Ids: names: .* in row 1 "):
        sg.Ids(["a", None])
    with pytest.raises(DomainMismatch, match="Ids: names: .* got double"):
        sg.Ids([0.5])
    for ids, unknown in ((words, ["a", "c"]), (words, ["a", None]), (numbers, [4, 3])):
        with pytest.raises(KeyError, match=r"there is no vertex .*, element 1"):
            ids.positions(unknown)
    with pytest.raises(KeyError, match="there is no such vertex"):
        numbers.positions([-1])
    for ids, kind in ((words, [1]), (numbers, ["a"]), (numbers, [4.0])):
        with pytest.raises(DomainMismatch, match="Ids.positions: names: expected"):
            ids.positions(kind)


def test_labels(device: str) -> None:
    A, ids = sg.from_edges({"source": ["a", "b", "d"], "target": ["b", "c", "a"]})
    A = A.to(device)
    level, parent = sg.bfs(A, ids["a"])
    assert ids.label(level).to_pydict() == {"name": ["a", "b", "c"], "value": [0, 1, 2]}
    assert ids.label(parent, vertices=True)["value"].to_pylist() == ["a", "a", "b"]
    assert ids.label(A).to_pydict() == {
        "source": ["a", "b", "d"],
        "target": ["b", "c", "a"],
        "weight": [True] * 3,
    }


def test_labels_of_shards() -> None:
    A, ids = sg.from_edges({"source": ["a", "b", "c"], "target": ["b", "c", "d"]})
    level = sg.bfs(A.distribute(2), ids["a"]).level
    assert ids.label(level).equals(ids.label(sg.bfs(A, ids["a"]).level))


def test_what_labels_refuse() -> None:
    ids = sg.Ids(["a", "b"])
    for x in (sg.Vector([1, 2, 3]), sg.Matrix.empty(2, 3)):
        with pytest.raises(DimensionMismatch, match="Ids.label: x: expected 2 positions"):
            ids.label(x)
    with pytest.raises(DomainMismatch, match="Ids.label: x: expected a Vector or a Matrix"):
        ids.label([1, 2])  # type: ignore[arg-type]
    with pytest.raises(DomainMismatch, match="Ids.label: vertices: .* got float64"):
        ids.label(sg.Vector([0.0, 1.0]), vertices=True)
    for values, out in (([0, 2], 2), ([-1, 0], -1)):
        with pytest.raises(IndexOutOfBound, match=f"values from 0 to 1, got {out}"):
            ids.label(sg.Vector(values), vertices=True)


def test_a_title_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"fr\xc1m,to\na,b\n")
    with pytest.raises(FormatError, match=r"from_edges: .*x.csv: 'utf-8' codec"):
        sg.from_edges(path, "from", "to")


def test_an_integer_of_text_is_not_rounded_in_silence(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    for other in ("0.5", "1e3", str(2**63)):
        path.write_text(f"source,target,weight\na,b,{2**53 + 1}\nb,c,{other}\n")
        with pytest.raises(FormatError, match=rf"got {2**53 + 1} in row 0 .*rounds; write it as"):
            sg.from_edges(path, source="source", target="target", weight="weight")
    for written, value in ((f"{2**53 + 1}.0", 2.0**53), (str(2**60), 2.0**60), ("1e300", 1e300)):
        path.write_text(f"source,target,weight\na,b,{written}\nb,c,0.5\n")
        A, _ = sg.from_edges(path, source="source", target="target", weight="weight")
        assert A.values.tolist() == [value, 0.5]
