"""The GAP Benchmark Suite: trials, sources, weights; every verifier finds a wrong result."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import spgraph as sg
from spgraph.benchmarking import gap as run_suite
from spgraph.benchmarking import verifiers
from spgraph.cli import main
from spgraph.errors import DomainMismatch

gap = importlib.import_module("spgraph.benchmarking.gap")

PLACES = [
    "cpu",
    "shards",
    pytest.param("cuda", marks=pytest.mark.gpu),
    pytest.param("shards of a gpu", marks=pytest.mark.gpu),
]


def placed(A: sg.Matrix, place: str) -> Any:
    if "shards" in place:
        return A.distribute(2, devices="cuda:0" if "gpu" in place else "cpu")
    return A.to(place)


@pytest.fixture(scope="module")
def A() -> sg.Matrix:
    return sg.generators.kronecker(7, 4)


def test_the_trials_are_those_of_the_suite() -> None:
    assert gap.TRIALS == {"bfs": 64, "sssp": 64, "pr": 16, "cc": 16, "bc": 16, "tc": 3}
    assert (gap.ROOTS, gap.TOLERANCE, gap.ITERATIONS) == (4, 1e-4, 1000)
    assert [gap.graph(name, 9).nrows for name in ("kron", "urand", "road")] == [512, 512, 512]
    assert abs(gap.graph("urand", 9).nvals - 2 * 16 * 512) < 1500


@pytest.mark.parametrize("place", PLACES)
def test_all_kernels_are_valid(place: str, A: sg.Matrix) -> None:
    # in shards betweenness and triangles take seconds to compile
    kernels = [kernel for kernel in gap.TRIALS if place != "shards" or kernel not in ("bc", "tc")]
    found = run_suite(placed(A, place), kernels=kernels, trials=2)
    assert [each.kernel for each in found] == kernels
    for each in found:
        assert each.valid and each.verified and len(each.seconds) == len(each.failures) == 2
        assert min(each.seconds) <= each.median <= max(each.seconds)
        assert {len(start) for start in each.sources} == {{"bfs": 1, "sssp": 1, "bc": 4}.get(
            each.kernel, 0)}  # fmt: skip


def test_directed_graphs_with_weights_of_their_own() -> None:
    rng = np.random.default_rng(4)
    rows, columns = rng.integers(0, 60, (2, 200))
    A = sg.Matrix.from_coo(rows, columns, rng.integers(0, 5, 200), dup_op="min", nrows=70, ncols=70)
    assert (A.values == 0).any()  # which SciPy's Dijkstra has to settle
    found = run_suite(A, trials=3)
    assert all(each.valid for each in found), found
    assert all(A.row_degrees().to_numpy()[v] for each in found for s in each.sources for v in s)


@pytest.mark.parametrize("place", PLACES)
def test_weights(place: str, A: sg.Matrix) -> None:
    W = gap.with_weights(placed(A, place), 1)
    plain = gap.with_weights(A, 1)
    assert (W.gather() if "shards" in place else W.to("cpu")).isequal(plain)
    assert plain.dtype == np.int32 and plain.isequal(plain.T)
    assert (
        plain.values.min() >= 1 and plain.values.max() <= 255 and np.unique(plain.values).size > 99
    )
    assert not gap.with_weights(A, 2).isequal(plain)


def test_sources_are_drawn_with_repeats() -> None:
    A = sg.Matrix.from_coo([1, 3], [0, 0], nrows=5, ncols=5)
    found = gap.sources(A, 64, 1)
    assert len(found) == 64 and set(found) == {1, 3} and gap.sources(A, 64, 2) != found


def wrong(kernel: str, right: Any) -> list[Any]:
    """Results with one thing wrong."""
    if kernel == "tc":
        return [right + 1]
    if kernel == "bfs":
        level, parent = right.level.dup(), right.parent.dup()
        v = int(level.to_coo()[0][level.to_coo()[1].argmax()])
        level[v] = 9
        return [(level, parent)]
    changed, v = right.dup(), int(right.to_coo()[1].argmax())
    v = 0 if kernel == "cc" else int(right.to_coo()[0][v])
    changed[v] = right[v] + 1
    if kernel != "cc":
        return [changed]
    split = right.to_numpy().copy()
    split[:] = 0  # one label for all components
    return [changed, sg.Vector.from_dense(split, missing=None)]


@pytest.mark.parametrize("kernel", list(gap.TRIALS))
def test_a_wrong_result_is_found(kernel: str, A: sg.Matrix) -> None:
    W = gap.with_weights(A, 1)
    check = verifiers.Verifiers(A, W, 1e-4)
    start = gap.sources(A, 4, 1)
    right = gap._run(W if kernel == "sssp" else A, kernel, start)
    assert check.failures(kernel, start, right) == []
    for result in wrong(kernel, right):
        assert check.failures(kernel, start, result)


def test_a_distance_that_is_missing(A: sg.Matrix) -> None:
    W = gap.with_weights(A, 1)
    start = gap.sources(A, 1, 1)
    right = sg.sssp(W, start[0], parents=False).distance.to_numpy(fill=-1)
    right[right.argmax()] = -1
    assert verifiers.Verifiers(A, W, 1e-4).failures(
        "sssp", start, sg.Vector.from_dense(right, missing=-1)
    )


def test_the_oracles(A: sg.Matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    """What betweenness and triangles are compared with is what NetworkX says."""
    monkeypatch.setattr(verifiers, "PRODUCTS", 50)
    S = A.to_scipy()
    G = nx.from_scipy_sparse_array(S)
    score = sum(verifiers.dependencies(S.indptr, S.indices, v) for v in range(A.nrows))
    expected = nx.betweenness_centrality(G, normalized=False)
    np.testing.assert_allclose(score / 2, list(expected.values()), atol=1e-9)
    check = verifiers.Verifiers(A, A, 1e-4)
    assert check.triangles == sum(nx.triangles(G).values()) // 3 > 0
    assert check.components == nx.number_connected_components(G)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sg.write(tmp_path / "grid.npz", sg.generators.grid(5, 6))
    file = str(tmp_path / "grid.npz")
    for graph in ("urand --scale 6", file):
        command = f"gap {graph} --kernel cc --kernel sssp --trials 2"
        assert main(command.split()) == 0
        table = capsys.readouterr().out.splitlines()
        assert [row.split()[0] for row in table[-2:]] == ["cc", "sssp"]
        assert all(row.split()[1] == "2" and row.endswith("valid") for row in table[-2:])
        assert main([*command.split(), "--format", "json", "--no-verify"]) == 0
        record = json.loads(capsys.readouterr().out)
        assert record["kernels"]["cc"]["valid"] is None and record["device"] == "cpu"
        assert len(record["kernels"]["sssp"]["seconds"]) == 2


def test_a_wrong_result_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gap, "triangle_count", lambda A: -1)
    assert main("gap kron --scale 6 --kernel tc".split()) == 1
    said = capsys.readouterr().out
    assert "NOT VALID" in said and "tc, trial 2: -1 triangles, not " in said


def test_bad_input(A: sg.Matrix) -> None:
    for options, message in (
        ({"kernels": ["dfs"]}, "gap: kernels: expected a list of some of bfs, sssp, .*, got 'dfs'"),
        ({"kernels": "bfs"}, "gap: kernels: expected a list of some of .*, got 'bfs'"),
        ({"trials": 0}, "gap: trials: expected an integer >= 1, got 0"),
        ({"trials": 2.5}, "gap: trials: expected an integer >= 1, got 2.5"),
    ):
        with pytest.raises(ValueError, match=message):
            run_suite(A, **options)  # type: ignore[arg-type]
    with pytest.raises(DomainMismatch, match="gap: A: expected a Matrix"):
        run_suite("fish")  # type: ignore[arg-type]
    assert run_suite(A.to_scipy(), kernels=["bfs"], trials=1)[0].valid
    with pytest.raises(ValueError, match="gap: A: expected a graph with edges"):
        run_suite(sg.Matrix.empty(3, 3))
    with pytest.raises(ValueError, match="graph: name: expected kron, urand or road, got 'web'"):
        gap.graph("web", 6)
