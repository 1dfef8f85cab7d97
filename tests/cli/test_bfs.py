"""The command bfs: what it writes and draws."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
import scipy.sparse.csgraph

import spgraph as sg
from spgraph import validation
from spgraph.validation import Failure
from tests.cli.test_cli import Run, graph  # noqa: F401


def oracle(file: Path, source: int) -> np.ndarray:
    """Levels by SciPy's distances, -1 where unreached."""
    edges = np.loadtxt(file, dtype=int)
    S = scipy.sparse.csr_array((np.ones(len(edges)), edges.T), shape=(edges.max() + 1,) * 2)
    S = S + S.T
    distance = scipy.sparse.csgraph.shortest_path(S, unweighted=True, indices=source)
    return np.where(np.isinf(distance), -1, distance).astype(int)


@pytest.mark.parametrize("direction", ["auto", "push", "pull"])
def test_bfs_writes_levels_and_parents(
    run: Run, graph: Path, tmp_path: Path, direction: str
) -> None:
    file = tmp_path / "out.npz"
    words = ("bfs", graph, "--symmetric", "--source", 0, "--direction", direction, "-o", file)
    code, out, err = run(*words, "--validate")
    assert (code, err) == (0, "")
    with np.load(file, allow_pickle=False) as arrays:
        assert np.array_equal(arrays["level"], oracle(graph, 0))
        assert arrays["parent"].tolist() == [0, 0, 3, 1, 3, 3, -1, -1]
        assert arrays["reached"].tolist() == 6 * [True] + 2 * [False]
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "reached 6" in lines and "level 0 least, 2 mean, 3 largest" in lines
    assert "result valid by the five checks of Graph500" in lines


def test_bfs_as_json_with_trace(run: Run, graph: Path) -> None:
    words = ("bfs", graph, "--symmetric", "--format", "json", "--trace", "--validate")
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    result = json.loads(out)
    # the default source is the vertex of largest degree
    assert result["parameters"]["source"] == 3 and result["graph"]["vertices"] == 8
    assert result["algorithm"] == "bfs" and result["device"] == "cpu"
    summary = result["summary"]
    assert summary["reached"] == 6 and summary["level"]["largest"] == 2
    assert result["failures"] == []
    # six vertices and their twelve directed edges are reached
    assert summary["traversed_edges"] == 12
    assert summary["teps"] == pytest.approx(12 / result["seconds"])
    assert [row["frontier"] for row in result["trace"]][:3] == [1, 4, 1]
    assert all(row["direction"] in ("push", "pull") for row in result["trace"])


def test_bfs_table_is_aligned(run: Run, graph: Path) -> None:
    code, out, _ = run("bfs", graph, "--symmetric", "--trace")
    assert code == 0
    lines = out.splitlines()
    first = next(k for k, line in enumerate(lines) if line.split()[:2] == ["level", "direction"])
    last = next(k for k, line in enumerate(lines) if line.lstrip().startswith("all"))
    rows = lines[first : last + 1]
    assert len({len(row) for row in rows}) == 1
    assert "traversed edges  12" in out and "TEPS" in out


def test_max_depth(run: Run, graph: Path) -> None:
    words = ("bfs", graph, "--symmetric", "--source", 0, "--max-depth", 2, "--format", "json")
    code, out, _ = run(*words, "--validate")
    result = json.loads(out)
    assert code == 0 and result["summary"]["reached"] == 3 and not result["failures"]
    assert result["summary"]["level"]["largest"] == 2


def test_base_and_compressed_input(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "one.txt.gz"
    file.write_bytes(gzip.compress(b"1 2\n2 3\n"))
    code, out, err = run("bfs", file, "--base", 1, "--source", 0, "--format", "json")
    assert (code, err) == (0, "")
    assert json.loads(out)["graph"]["vertices"] == 3
    assert json.loads(out)["summary"]["level"]["largest"] == 2


def test_compact(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "far.el"
    file.write_text("7 3000000000\n3000000000 12\n")
    code, out, err = run("info", file)
    assert code == 2 and "row pointers" in err and "compact=True" in err
    code, out, err = run(
        "bfs", file, "--compact", tmp_path / "ids.npz", "--source", "0", "--top", "3"
    )
    assert code == 0 and "3 vertices" in out and "reached          3" in out, err
    assert sg.load(tmp_path / "ids.npz").to_numpy().tolist() == [7, 12, 3_000_000_000]
    code, out, err = run("info", file, "--compact", tmp_path / "ids.csv")
    assert code == 0 and "3 x 3" in out, err
    rows = (tmp_path / "ids.csv").read_text().splitlines()
    assert rows == ["vertex,id", "0,7", "1,12", "2,3000000000"]
    words = ("pagerank", file, "--compact", tmp_path / "ids.tsv", "--shards", "2")
    assert run(*words)[0] == 0 and (tmp_path / "ids.tsv").exists()
    assert run("info", file, "--compact", tmp_path / "ids.txt")[0] == 2


def test_bfs_draws(run: Run, graph: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra plot")
    file = tmp_path / "levels.png"
    code, _, err = run("bfs", graph, "--symmetric", "--plot", file)
    assert (code, err) == (0, "")
    assert file.read_bytes().startswith(b"\x89PNG")


def test_a_failed_validation_exits_1(
    run: Run, graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = Failure(5, 2, "vertex 2 has parent 4, but no edge leads from 4 to 2")
    monkeypatch.setattr(validation, "validate_bfs", lambda *_, **__: [failure])
    code, out, _ = run("bfs", graph, "--symmetric", "--validate")
    assert code == 1
    assert "NOT VALID" in out and "check 5: vertex 2 has parent 4" in out


@pytest.mark.gpu
def test_bfs_on_a_gpu(run: Run, graph: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.npz"
    words = ("bfs", graph, "--symmetric", "--source", 0, "--device", "cuda", "-o", file)
    code, _, err = run(*words, "--validate", "--trace")
    assert (code, err) == (0, "")
    assert np.array_equal(np.load(file)["level"], oracle(graph, 0))
