"""Vertices with names: tables of edges in, names in options, in what is printed and in files."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

import spgraph as sg
from spgraph.cli import names
from spgraph.io.saved import read_names

Run = Callable[..., tuple[int, str, str]]

ROADS = 'from,to,km\nUlm,Bonn,4\nBonn,Kiel,3\nKiel,"Bad, X",3\nUlm,Kiel,9\nUlm,Bonn,5\n'
ORDER = ["Ulm", "Bonn", "Kiel", "Bad, X"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "roads.csv"
    path.write_text(ROADS)
    return path


@pytest.fixture
def graph(run: Run, table: Path) -> Path:
    """The undirected graph of the table, with its names."""
    path = table.with_name("roads.npz")
    words = ("convert", table, "--columns", "from,to,km", "--symmetric", "-o", path)
    assert run(*words)[::2] == (0, "")
    return path


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.reader(stream, delimiter="\t" if path.suffix == ".tsv" else ","))


def test_a_table_is_converted_with_its_names(graph: Path) -> None:
    A, ids = sg.read(graph, names=True)
    assert list(ids) == ORDER and A.nvals == 8 and A.symmetric
    assert A.to_scipy().toarray()[0].tolist() == [0, 4, 9, 0]  # of two roads the shorter one


def test_names_in_json_tables_and_files(run: Run, graph: Path, tmp_path: Path) -> None:
    words = ("sssp", graph, "--source", "Bad, X", "--top", 4)
    code, out, err = run(*words, "--format", "json", "-o", tmp_path / "far.tsv")
    assert (code, err) == (0, "")
    record = json.loads(out)
    assert record["parameters"]["source"] == "Bad, X"
    found = [tuple(row.values()) for row in record["entries"]["distance"]]
    expected = [("Bad, X", 0, "Bad, X"), ("Kiel", 3, "Bad, X"), ("Bonn", 6, "Kiel")]
    assert found == [*expected, ("Ulm", 10, "Bonn")]
    assert rows(tmp_path / "far.tsv")[1:] == [
        [v, str(d), p] for v, d, p in (found[k] for k in (3, 2, 1, 0))
    ]
    code, out, _ = run(*words)
    assert code == 0 and "source Bad, X" in out
    assert ["Bonn", "6", "Kiel"] in [line.split() for line in out.splitlines()]


def test_other_kinds_of_results_have_names(run: Run, graph: Path, tmp_path: Path) -> None:
    def best(name: str, *more: object) -> list[Any]:
        code, out, err = run(name, graph, *more, "--top", 1, "--format", "json")
        assert code == 0, err
        (found,) = json.loads(out)["entries"].values()
        return list(found[0].values())

    assert best("connected-components", "-o", tmp_path / "c.csv") == ["Ulm", 4]
    assert rows(tmp_path / "c.csv") == [["vertex", "component"], *([name, "Ulm"] for name in ORDER)]
    assert best("minimum-spanning-tree", "-o", tmp_path / "t.npz") == ["Ulm", "Bonn", 4]
    assert list(read_names(tmp_path / "t.npz") or ()) == ORDER
    assert best("multi-source-bfs", "--sources", 'Kiel,"Bad, X"') == [0, "Kiel", 0]
    assert best("reachable", "--sources", "Ulm") == ["Ulm"]
    # numbers that only look like vertices stay as they are
    assert isinstance(best("greedy-color", "--seed", 1)[0], int)


def test_names_go_with_arrays(run: Run, graph: Path, tmp_path: Path) -> None:
    assert run("bfs", graph, "--source", "Kiel", "-o", tmp_path / "bfs.npz")[0] == 0
    with np.load(tmp_path / "bfs.npz") as arrays:
        assert arrays["level"].tolist() == [1, 1, 0, 1] and "names_offsets" in arrays
    assert run("pagerank", graph, "-o", tmp_path / "ranks.npz")[0] == 0
    assert list(read_names(tmp_path / "ranks.npz") or ()) == ORDER
    code, _, err = run("minimum-spanning-tree", graph, "-o", tmp_path / "t.mtx")
    assert code == 0 and err.startswith("note: ") and ".mtx has no place for names" in err


def test_a_vector_is_matched_by_names(run: Run, graph: Path, tmp_path: Path) -> None:
    other = sg.Ids(["Kiel", "Ulm", "Bonn", "Bad, X"])
    sg.save(tmp_path / "start.npz", sg.Vector.from_coo([0], [1.0], size=4), ids=other)
    sg.save(tmp_path / "plain.npz", sg.Vector.from_coo([2], [1.0], size=4))  # Kiel by position
    found = []
    for name in ("start", "plain"):
        target = tmp_path / f"{name}.csv"
        words = ("--personalization", tmp_path / f"{name}.npz", "-o", target)
        assert run("pagerank", graph, *words)[0] == 0
        found.append(target.read_text())
    assert found[0] == found[1]
    stranger = sg.Ids(["Rome", "Ulm", "Bonn", "Bad, X"])
    sg.save(tmp_path / "start.npz", sg.Vector.from_coo([0], [1.0], size=4), ids=stranger)
    code, _, err = run("pagerank", graph, "--personalization", tmp_path / "start.npz")
    assert code == 2 and "start.npz: expected names of vertices of the graph" in err
    assert "'Rome'" in err


def test_an_unknown_name_gives_the_nearest(run: Run, graph: Path) -> None:
    code, out, err = run("bfs", graph, "--source", "Kil")
    said = "spgraph: error: --source: there is no vertex 'Kil'; the nearest names are 'Kiel'\n"
    assert (code, out, err) == (2, "", said)
    code, _, err = run("reachable", graph, "--sources", "Ulm,bon")
    assert code == 2 and "--sources: there is no vertex 'bon'; the nearest names are 'Bonn'" in err
    assert run("bfs", graph, "--source", "0")[2].endswith("there is no vertex '0'\n")


def test_the_nearest_of_very_many_begin_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "MANY", 3)
    assert names.nearest("Xiel", sg.Ids(ORDER)) == []
    assert names.nearest("kiel", sg.Ids(ORDER)) == ["Kiel"]


def test_names_that_look_like_integers(run: Run, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    edges = {"source": ["7", "8"], "target": ["8", "9"]}
    for kind, file in ((arrow.string(), "s.parquet"), (arrow.int64(), "i.parquet")):
        columns = {key: arrow.array(names).cast(kind) for key, names in edges.items()}
        pyarrow.parquet.write_table(arrow.table(columns), tmp_path / file)
        code, out, err = run(
            "bfs", tmp_path / file, "--source", "8", "--format", "json", "--top", 2
        )
        assert (code, err) == (0, "")
        own = ["8", "9"] if file == "s.parquet" else [8, 9]
        record = json.loads(out)
        assert record["parameters"]["source"] == own[0]
        assert [row["vertex"] for row in record["entries"]["level"]] == own
        assert (
            "there is no vertex '08'" in run("bfs", tmp_path / file, "--source", "08")[2]
            or own[0] == 8
        )
    code, _, err = run("bfs", tmp_path / "i.parquet", "--source", "x")
    assert code == 2 and "'x' is not a valid integer" in err
    assert "'1'" in run("bfs", tmp_path / "i.parquet", "--source", "1")[2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--columns from", "expected two or three titles like from,to,km, got 'from'"),
        ("--columns from,to,km,more", "expected two or three titles"),
        ("--columns from,To", "expected the name of one column, got 'To'"),
        ("--columns from,to --base 1", "--base: expected none for a table with names"),
        ("--columns from,to --compact ids.csv", "--compact: expected none for a table with names"),
        ("--columns from,to --source Rom", "there is no vertex 'Rom'"),
        ("", "--columns FROM,TO reads a table whose vertices have names"),
        ("--source Ulm", "'Ulm' is not a valid integer, and vertices have no names"),
    ],
)
def test_what_is_refused(words: str, message: str, run: Run, table: Path) -> None:
    code, out, err = run("bfs", table, *words.split())
    assert code == 2 and not out and message in err and err.count("\n") == 1


def test_compact_of_a_graph_with_names(run: Run, graph: Path, tmp_path: Path) -> None:
    code, _, err = run("info", graph, "--compact", tmp_path / "ids.csv")
    assert code == 2 and "--compact: expected none for a graph with names" in err


def test_info_shows_some_names(run: Run, graph: Path) -> None:
    assert "names      Ulm, Bonn, Kiel, ...\n" in run("info", graph)[1]
    assert json.loads(run("info", graph, "--format", "json")[1])["names"] == 4


def test_a_name_cannot_steer_the_terminal(run: Run, tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("source,target\n\x1b[31mred,b\n")
    words = ("--columns", "source,target", "--source", "\x1b[31mred", "--top", 2)
    code, out, _ = run("bfs", tmp_path / "g.csv", *words)
    assert code == 0 and "\x1b" not in out and "\\x1b[31mred" in out


def test_shards_keep_names(run: Run, graph: Path) -> None:
    words = ("bfs", graph, "--source", "Kiel", "--top", 4, "--format", "json")
    found = [json.loads(run(*words, *more)[1])["entries"] for more in ((), ("--shards", 2))]
    assert found[0] == found[1] and found[0]["level"][0]["vertex"] == "Kiel"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs /dev/stdin")
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".parquet"])
def test_tables_from_standard_input(
    suffix: str, run: Run, tmp_path: Path, standard_input: Callable[[Path], None]
) -> None:
    import gzip

    path = tmp_path / f"t{suffix}"
    text = "source,target\nUlm,Bonn\nBonn,Kiel\n"
    if suffix == ".parquet":
        arrow = pytest.importorskip("pyarrow")
        import pyarrow.parquet

        columns = {"source": ["Ulm", "Bonn"], "target": ["Bonn", "Kiel"]}
        pyarrow.parquet.write_table(arrow.table(columns), path)
    elif suffix == ".csv.gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text.replace(",", "\t" if suffix == ".tsv" else ","))
    standard_input(path)
    code, out, err = run("info", "-", "--columns", "source,target")
    assert (code, err) == (0, "") and "Ulm, Bonn, Kiel" in out


# --- tables that are written ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["back.csv", "back.tsv", "back.parquet"])
@pytest.mark.parametrize("columns", ["from,to,km", "from,to"])
def test_a_graph_is_written_as_the_table_that_is_read(
    run: Run, table: Path, name: str, columns: str
) -> None:
    path = table.with_name(name)
    assert run("convert", table, "--columns", columns, "-o", path)[::2] == (0, "")
    expected, ids = sg.from_edges(table, *columns.split(","), dup_op="min")
    titles = ("source", "target", "weight")[: len(columns.split(","))]
    A, named = sg.from_edges(path, *titles)
    assert A.isequal(expected) and A.dtype == expected.dtype and list(named) == list(ids) == ORDER
    if name == "back.parquet":  # whose default they are
        assert run("bfs", path, "--source", "Bad, X")[0] == 0


def test_the_path_to_a_vertex(run: Run, graph: Path, table: Path) -> None:
    words = ("sssp", graph, "--source", "Ulm", "--path-to")
    code, out, err = run(*words, "Kiel", "--format", "json")
    assert (code, err, json.loads(out)["summary"]["path"]) == (0, "", ["Ulm", "Bonn", "Kiel"])
    assert run(*words, "Ulm")[1].splitlines()[-1].split() == ["path", "Ulm"]
    code, out, _ = run("bfs", table, "--columns", "from,to", "--source", "Kiel", "--path-to", "Ulm")
    assert code == 0 and out.splitlines()[-1].split() == ["path", "none"]
    code, _, err = run(*words, "Kil")
    assert code == 2 and "--path-to: there is no vertex 'Kil'; the nearest names are 'Kiel'" in err
    code, _, err = run(*words, "Kiel", "--no-parents")
    assert code == 2 and "--path-to: expected --parents, there is no tree to follow" in err


def test_the_path_to_a_vertex_without_a_name(run: Run, tmp_path: Path) -> None:
    (tmp_path / "e.wel").write_text("0 1 0.5\n1 2 0.5\n0 2 0.1\n")
    for command in ("sssp", "widest-path", "most-reliable-path"):
        words = (command, tmp_path / "e.wel", "--source", 0, "--format", "json", "--path-to")
        expected = [0, 2] if command == "sssp" else [0, 1, 2]
        assert json.loads(run(*words, 2)[1])["summary"]["path"] == expected
        for v in (3, -1):
            code, _, err = run(*words, v)
            assert code == 2 and f"--path-to: expected a vertex from 0 to 2, got {v}" in err


def test_a_tree_and_levels_are_written_as_tables(run: Run, graph: Path, tmp_path: Path) -> None:
    tree, levels = tmp_path / "tree.csv", tmp_path / "levels.tsv"
    assert run("minimum-spanning-tree", graph, "-o", tree)[::2] == (0, "")
    expected = [["Ulm", "Bonn", "4"], ["Bonn", "Kiel", "3"], ["Kiel", "Bad, X", "3"]]
    assert rows(tree) == [["source", "target", "weight"], *expected]
    words = ("multi-source-bfs", graph, "--sources", "Ulm,Kiel", "-o", levels)
    assert run(*words)[::2] == (0, "")
    found = sg.multi_source_bfs(sg.read(graph), [0, 2])
    listed = [[str(search), ORDER[v], str(level)] for search, v, level in found]
    assert rows(levels) == [["search", "vertex", "level"], *listed]


def test_results_of_vertices_are_written_as_parquet(run: Run, graph: Path, tmp_path: Path) -> None:
    path = tmp_path / "far.parquet"
    assert run("sssp", graph, "--source", "Ulm", "-o", path)[::2] == (0, "")
    found = parquet.read_table(path).to_pydict()
    assert found == {
        "vertex": ORDER,
        "distance": [0, 4, 7, 10],
        "parent": ["Ulm", "Ulm", "Bonn", "Kiel"],
    }


def test_a_generated_graph_is_written_as_a_table(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "grid.csv"
    assert run("generate", "grid", 1, 3, "-o", path)[::2] == (0, "")
    assert rows(path) == [["source", "target"], ["0", "1"], ["1", "0"], ["1", "2"], ["2", "1"]]
    A, ids = sg.from_edges(path)
    assert A.isequal(sg.generators.grid(1, 3)) and list(ids) == [0, 1, 2]
