"""What subcommands of algorithms write, and what they refuse without writing."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import spgraph as sg

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(("suffix", "delimiter"), [(".csv", ","), (".TSV", "\t")])
def test_rows_of_vertices(
    suffix: str, delimiter: str, run: Run, file: Path, weights: Path, tmp_path: Path
) -> None:
    target = tmp_path / f"rows{suffix}"
    assert run("sssp", weights, "--source", 0, "-o", target)[0] == 0
    with target.open(newline="") as stream:
        head, *rows = csv.reader(stream, delimiter=delimiter)
    assert head == ["vertex", "distance", "parent"]
    distance, parent = sg.sssp(sg.read(weights), 0)
    assert [(int(v), int(d)) for v, d, _ in rows] == list(distance)
    assert [(int(v), int(p)) for v, _, p in rows] == list(parent)

    assert run("maximal-independent-set", file, "--seed", 1, "-o", target)[0] == 0
    with target.open(newline="") as stream:
        head, *rows = csv.reader(stream, delimiter=delimiter)
    chosen = sg.maximal_independent_set(sg.read(file), seed=1).to_numpy()
    assert head == ["vertex", "member"]
    assert [int(value) for _, value in rows] == chosen.astype(int).tolist()


def test_many_rows(run: Run, tmp_path: Path) -> None:
    graph, target = tmp_path / "grid.npz", tmp_path / "ranks.csv"
    sg.write(graph, sg.generators.grid(300, 300))
    assert run("pagerank", graph, "-o", target)[0] == 0
    vertex, rank = np.loadtxt(target, delimiter=",", skiprows=1, unpack=True)
    assert np.array_equal(vertex, np.arange(90_000))
    assert np.array_equal(rank, sg.pagerank(sg.generators.grid(300, 300)).to_numpy())


@pytest.mark.parametrize("suffix", [".npz", ".mtx", ".mtx.gz"])
def test_matrices_in_every_format(suffix: str, run: Run, weights: Path, tmp_path: Path) -> None:
    target = tmp_path / f"tree{suffix}"
    assert run("minimum-spanning-tree", weights, "-o", target)[0] == 0
    assert sg.read(target).isclose(sg.minimum_spanning_tree(sg.read(weights)))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("sssp missing.wel", "missing.wel"),
        ("sssp weights --source 8", "8"),
        ("sssp graph --source x", "'x' is not a valid integer"),
        ("sssp weights --delta -1", "-1"),
        ("sssp negative.wel --source 0", "-2"),
        ("sssp huge.npz --source 0", "int64"),
        ("reachable graph --sources 0,x", "--sources: 'x' is not a valid integer"),
        ("multi-source-bfs graph --sources 0,8", "8"),
        ("multi-source-bfs graph -o out.txt", "ends in .npz, .mtx, .mtx.gz"),
        ("pagerank graph --damping 2", "damping"),
        ("pagerank graph --max-iter 1 --tol 1e-12 -o out.npz", "raise max_iter or tol"),
        ("pagerank graph --tol little", "expected a number or none, got 'little'"),
        ("pagerank graph --top 0", "0"),
        ("pagerank graph --personalization nothing.npz", "nothing.npz"),
        ("pagerank graph --personalization matrix.npz", "expected a Vector"),
        ("pagerank graph --personalization short.npz", "size"),
        ("katz-centrality graph --beta one", "expected a number or the name of a file .npz"),
        ("pagerank oblong.mtx -o out.npz", "square"),
        ("connected-components graph --connection up", "'up' is not one of"),
        ("betweenness-centrality graph --k 3 --sources 0", "expected sources or k, got both"),
        ("greedy-color graph --seed -1", "-1"),
        ("triangle-count graph -o out.csv", "No such option"),
        ("core-number graph -o nowhere/out.csv", "there is no folder nowhere"),
        ("core-number graph -o folder.csv", "folder.csv"),
        ("core-number graph --device tpu", "tpu"),
        ("core-number graph --gpus 2 --device cpu", "--gpus: expected --device cuda or none"),
        ("core-number graph --gpus 0", "--gpus: expected an integer >= 1, got 0"),
        ("bfs graph --shards 0", "--shards: expected an integer >= 1, got 0"),
        ("bfs graph --shards 1000000", "--shards: expected at most 1024 shards in a process, got"),
        ("bfs graph --gpus 2 --shards 2", "expected --gpus or --shards, got both"),
        ("bfs graph --shards 2 --device cuda", "--shards: expected --device cpu or none"),
        ("bfs graph --partition random", "--partition: expected --gpus or --shards with it"),
        ("bfs graph --shards 2 --partition best", "'best' is not one of"),
    ],
)
def test_bad_input_is_one_line_and_leaves_no_file(
    words: str,
    message: str,
    run: Run,
    file: Path,
    weights: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("negative.wel").write_text("0 1 -2\n")
    sg.write("huge.npz", sg.Matrix.from_coo([0], [1], [2**63], nrows=2, ncols=2, dtype=np.uint64))
    Path("oblong.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 3 1\n1 3 1\n")
    Path("folder.csv").mkdir()
    sg.save("matrix.npz", sg.Matrix.empty(2, 2))
    sg.save("short.npz", sg.Vector.from_dense([1.0]))
    before = set(tmp_path.rglob("*"))
    files = {"graph": file, "weights": weights}
    code, out, err = run(*(files.get(word, word) for word in words.split()))
    assert code == 2 and not out
    assert err.startswith("spgraph: error: ") and err.count("\n") == 1 and message in err
    assert set(tmp_path.rglob("*")) == before


def test_a_write_that_fails_leaves_what_was_there(
    run: Run, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(csv, "writer", full)
    monkeypatch.setattr(np, "savez", full)
    for suffix in (".csv", ".npz"):
        target = tmp_path / f"out{suffix}"
        target.write_text("before")
        code, out, err = run("sssp", weights, "-o", target)
        assert code == 2 and not out and "No space left" in err
        assert target.read_text() == "before"
    assert {path.name for path in tmp_path.iterdir()} == {"out.csv", "out.npz"}
