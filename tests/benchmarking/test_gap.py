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
from spgraph.benchmarking import oracles, verifiers
from spgraph.cli import main
from spgraph.containers.storage.arrays import move
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
    """Results with one thing wrong, and as little of it as the suite's tolerances let pass."""
    if kernel == "tc":
        return [right + 1, right - 1, 0]
    if kernel == "bfs":
        return [
            (changed(right.level, -1, 1), right.parent),
            (right.level, changed(right.parent, -1, right.parent.to_numpy(fill=-1)[-1] ^ 1)),
        ]
    x = right.to_numpy(fill=-1)
    if kernel == "cc":
        largest = np.flatnonzero(x == np.bincount(x).argmax())
        apart, one = x.copy(), x.copy()
        apart[largest[largest.size // 2 :]] = largest[-1]  # a component in two
        one[x != x[largest[0]]] = x[largest[0]]  # two components in one
        return [changed(right, 0, 1), vector(apart), vector(one)]
    if kernel == "pr":
        return [changed(right, -1, 2e-4), vector(x * (1 + 1e-3)), changed(right, 0, np.nan)]
    if kernel == "bc":
        slightly = 2e-7 * x.max()
        return [changed(right, v, by) for v, by in ((0, slightly), (-1, -slightly), (3, np.nan))]
    source = int(np.flatnonzero(x == 0)[0])
    unreached = x.copy()
    unreached[x < 0] = 1000
    gone = np.where(x == x.max(), -1, x)
    more = np.where(x < 0, -1, x + 1)  # what in-neighbours bring, but for the source
    return [changed(right, -1, 1), changed(right, -1, -1), changed(right, source, 1)] + [
        vector(each) for each in (unreached, gone, more)
    ]


def home(x: Any) -> np.ndarray:
    return move(x, "cpu")


def vector(x: np.ndarray) -> sg.Vector:
    return sg.Vector.from_dense(x, missing=-1)


def changed(right: sg.Vector, k: int, by: float) -> sg.Vector:
    """Another value of the k-th entry in order of the values."""
    x = right.to_numpy(fill=-1).copy()
    there = np.flatnonzero(x >= 0)
    x[there[x[there].argsort(kind="stable")[k]]] += by
    return vector(x)


@pytest.mark.parametrize("kernel", list(gap.TRIALS))
@pytest.mark.parametrize("place", PLACES)
def test_a_wrong_result_is_found(kernel: str, place: str, A: sg.Matrix) -> None:
    G, W = placed(A, place), placed(gap.with_weights(A, 1), place)
    check = verifiers.Verifiers(G, W, 1e-4)
    start = gap.sources(A, 4, 1)
    own = W if kernel == "sssp" else G
    right = gap._run(gap.with_weights(A, 1) if kernel == "sssp" else A, kernel, start)

    def failures(found: Any) -> list[str]:
        if isinstance(found, sg.Vector):
            found = found.to(own.device)
        return check.failures(kernel, start, found)

    assert failures(right) == []
    for k, result in enumerate(wrong(kernel, right)):
        assert failures(result), (k, result)


def graphs() -> list[sg.Matrix]:
    """Symmetric and directed ones, with loops, with vertices without edges, of loops alone."""
    rng = np.random.default_rng(3)
    rows, columns = rng.integers(0, 50, (2, 90))
    directed = sg.Matrix.from_coo(rows, columns, nrows=60, ncols=60, dup_op="any")
    loops = sg.Matrix.from_coo([1, 2], [1, 2], nrows=4, ncols=4)
    return [sg.generators.kronecker(7, 4), sg.generators.grid(9, 8, remove=0.3), directed, loops]


@pytest.mark.parametrize(
    ("device", "step"),
    [
        *(("cpu", step) for step in (1, 7, 1 << 20)),
        # each step is some thirty launches
        *(pytest.param("cuda", step, marks=pytest.mark.gpu) for step in (200, 1 << 20)),
    ],
)
def test_the_oracles(device: str, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What results are compared with is what NetworkX and SciPy say."""
    monkeypatch.setattr(oracles, "STEP", step)
    monkeypatch.setattr(oracles, "STEP_CUDA", step)
    monkeypatch.setattr(oracles, "TABLE", 5)
    for A in graphs():
        S, there = A.pattern(np.int64).to_scipy(), A.to(device)
        G = nx.from_scipy_sparse_array(S, create_using=nx.Graph if A.symmetric else nx.DiGraph)
        score = sum(home(oracles.dependencies(there, v)) for v in range(A.nrows))
        expected = nx.betweenness_centrality(G, normalized=False)
        np.testing.assert_allclose(
            score / (2 if A.symmetric else 1), list(expected.values()), atol=1e-9
        )
        either = nx.from_scipy_sparse_array(S + S.T)
        either.remove_edges_from(list(nx.selfloop_edges(either)))
        assert oracles.triangles(there) == sum(nx.triangles(either).values()) // 3
        components = home(oracles.components(there)).tolist()
        assert components == [min(nx.node_connected_component(either, v)) for v in either]


def test_more_paths_than_a_float_can_count() -> None:
    """3,000 times two ways beside each other: 2**3000 shortest paths."""
    n = 3000
    ends = 3 * np.arange(n)
    rows = np.concatenate([ends, ends, ends + 1, ends + 2])
    columns = np.concatenate([ends + 1, ends + 2, ends + 3, ends + 3])
    A = sg.Matrix.from_coo(rows, columns, nrows=3 * n + 1, ncols=3 * n + 1)
    found = oracles.dependencies(A, 0)
    beyond = 3 * (n - np.arange(n)) - 2  # vertices behind the two ways
    assert found[0] == 0 and found[-1] == 0 and (found[3:-1:3] == beyond[:-1] - 1).all()
    assert (found[1::3] == beyond / 2).all() and (found[2::3] == beyond / 2).all()
    assert run_suite(A, kernels=["bc"], trials=2)[0].valid


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
