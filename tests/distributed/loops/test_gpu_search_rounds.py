"""Search in rounds on GPUs: several shards on one through plain copies, one shard a GPU through
NCCL on two and four where they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gpus import names
from search_cases import GRAPHS, edges_of, matrix

import spgraph as sg
from spgraph import direction as directions
from spgraph.backends.cuda.search import search_rounds as kernels
from spgraph.distributed.loops.sharded_graph import sharded_graph
from spgraph.iterations import search
from spgraph.semirings import any_first, max_times, min_secondj, plus_first

pytestmark = pytest.mark.gpu


@pytest.fixture(params=["3 on one", "2", "4"])
def devices(request: pytest.FixtureRequest) -> list[str]:
    """The device of each shard, where there are so many."""
    if request.param == "3 on one":
        return ["cuda:0"] * 3
    return names(int(request.param))


def spread(A: sg.Matrix, devices: list[str], partition: Any) -> Any:
    exchange = "nccl" if len(set(devices)) > 1 else "auto"
    return A.distribute(len(devices), devices=devices, partition=partition, exchange=exchange)


def noted(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The kernels that are launched from now on."""
    names: set[str] = set()
    run = kernels.Shard.run

    def noted(shard: Any, name: str, *given: Any, **more: Any) -> None:
        names.add(name)
        run(shard, name, *given, **more)

    monkeypatch.setattr(kernels.Shard, "run", noted)
    return names


def check(A: sg.Matrix, G: Any, sources: list[int], directions: tuple[str, ...]) -> None:
    """Levels and parents equal those of the CPU."""
    for source in sources:
        oracle: Any = sg.bfs(A, source)
        for direction in directions:
            for parents in (True, False):
                found: Any = sg.bfs(G, source, parents=parents, direction=direction)
                for k in range(1 + parents):
                    home, expected = found[k].gather(), oracle[k]
                    np.testing.assert_array_equal(
                        home.to_numpy(fill=-1), expected.to_numpy(fill=-1), f"{direction} {parents}"
                    )
    both = None if directions == ("push",) else G.T  # a search that only pushes has no transpose
    assert sharded_graph(G, both).plans("search in rounds", None)


@pytest.mark.parametrize("partition", ["edges", "random"])
@pytest.mark.parametrize("name", [name for name in GRAPHS if name not in ("one", "loop")])
def test_small_graphs(
    name: str, partition: str, devices: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "LIST_EDGES", 16)
    A, sources = matrix(name), edges_of(name)[2]
    G = spread(A, devices, partition)
    check(A, G, sources[:2], ("auto", "push", "pull"))


@pytest.mark.parametrize("name", ["kronecker", "grid"])
def test_large_graphs(name: str, devices: list[str]) -> None:
    """Ten times, since what goes wrong between devices does not go wrong always."""
    generators = sg.generators
    A = generators.kronecker(17, 16, seed=1) if name == "kronecker" else generators.grid(200, 300)
    G = spread(A, devices, "edges")
    sources = np.flatnonzero(np.diff(A.indptr))[::20000][:2].tolist()
    check(A, G, sources, ("push", "pull") if name == "kronecker" else ("auto",))
    for _ in range(10):
        check(A, G, sources[:1], ("auto",))


@pytest.mark.parametrize(
    ("semiring", "kind"),
    [(plus_first, "int64"), (any_first, "float32"), (max_times, "float32"), (min_secondj, "int32")],
    ids=repr,
)
def test_values(
    semiring: Any, kind: str, devices: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums of products over several shards, as lists and as bitmaps, equal those of the CPU."""
    rows, columns, _ = sg.generators.kronecker(14, 16, seed=1).to_coo()
    weights = np.random.default_rng(2).integers(1, 4, rows.size).astype(kind)
    A = sg.Matrix.from_coo(rows, columns, weights, nrows=1 << 14, ncols=1 << 14)
    sources = [int(np.diff(A.indptr).argmax()), int(np.flatnonzero(np.diff(A.indptr))[-1])]
    start = sg.Vector.from_coo(sources, np.array([3, 5], kind), size=A.nrows)
    G = spread(A, devices, "random")
    for most in (16, 1 << 20):
        monkeypatch.setattr(kernels, "LIST_EDGES", most)
        for direction in ("auto", "push", "pull"):
            expected: Any = search(A, start, semiring)
            found: Any = search(G, start.to(G.device), semiring, direction=direction)  # type: ignore[arg-type]
            assert found.level.gather().isequal(expected.level)
            if semiring is not any_first:
                assert found.value.gather().isequal(expected.value)
            else:  # all products of a source are its value
                assert np.isin(found.value.gather().to_coo()[1], [3, 5]).all()
    for T in (None, G.T):
        assert sharded_graph(G, T).plans("search in rounds", None)


def test_union_by_two_exchanges(devices: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "GATHER_BYTES", 0)
    monkeypatch.setattr(kernels, "LIST_EDGES", 16)
    A = sg.generators.kronecker(12, 16, seed=1)
    check(A, spread(A, devices, "edges"), [int(np.diff(A.indptr).argmax())], ("push",))


def test_rows_longer_than_a_warp_takes(devices: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What a warp leaves of a row, all warps look at."""
    monkeypatch.setattr(kernels, "LONG_ROW", 128)
    launched = noted(monkeypatch)
    # the hub's in-neighbours are all reached after it has looked at thousands that are not
    n, deep = 6000, 5000
    leaves = np.arange(1, n)
    rows = np.concatenate([leaves, [n, n + 1], np.full(n - deep, n)])
    columns = np.concatenate([np.zeros(n - 1, int), [n + 1, n], np.arange(deep, n)])
    A = sg.Matrix.from_coo(rows, columns, nrows=n + 2, ncols=n + 2)
    check(A, spread(A, devices, "edges"), [n + 1], ("pull",))
    assert "pull_rows" in launched


def test_a_push_after_pulls(devices: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The frontier becomes a queue again: a dense part, and a path that leaves it."""
    monkeypatch.setattr(kernels, "LIST_EDGES", 16)
    pulls = directions.search_pulls  # as if a frontier were a queue for nothing
    monkeypatch.setattr(directions, "search_pulls", lambda x, _, *rest: pulls(x, True, *rest))
    launched = noted(monkeypatch)
    kron, path = sg.generators.kronecker(12, 32, seed=1), 60
    rows, columns, _ = kron.to_coo()
    hub, n = int(np.diff(kron.indptr).argmax()), kron.nrows
    far = int(columns[kron.indptr[hub]])
    ends = np.concatenate([[far], np.arange(n, n + path)])
    rows = np.concatenate([rows, ends[:-1], ends[1:]])
    columns = np.concatenate([columns, ends[1:], ends[:-1]])
    A = sg.Matrix.from_coo(rows, columns, nrows=n + path, ncols=n + path)
    check(A, spread(A, devices, "edges"), [hub], ("auto",))
    assert "convert" in launched
