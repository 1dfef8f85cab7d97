"""Graph500: the edge list, kernel 1, keys, edges counted, statistics, the block; the command."""

from __future__ import annotations

import importlib
import json
import re
import types
from typing import Any

import numpy as np
import pytest
from processes import finished

import spgraph as sg
from spgraph.backends.shards.closure import Part
from spgraph.benchmarking import exchange, report, tuples
from spgraph.benchmarking import graph500 as run_benchmark
from spgraph.benchmarking.tuples import Tuples, construct, generate_tuples
from spgraph.cli import main
from spgraph.containers.storage.arrays import move, on_device
from spgraph.distributed import LocalCommunicator
from spgraph.distributed.containers.partitioners import partition_by_counts
from spgraph.distributed.loops import closure as closures
from spgraph.distributed.loops.sharded_graph import sparse_entries
from spgraph.semirings import min_plus

graph500 = importlib.import_module("spgraph.benchmarking.graph500")

PLACES = [
    "cpu",
    "cpu cpu cpu",
    pytest.param("cuda", marks=pytest.mark.gpu),
    pytest.param("cuda:0 cuda:0", marks=pytest.mark.gpu),
    pytest.param("cuda:0 cuda:1", marks=pytest.mark.gpu),
]


def communicator(place: str) -> LocalCommunicator:
    if "cuda:1" in place:
        import gpus

        gpus.visible(2)
    return LocalCommunicator(len(place.split()), place.split())


def host(arrays: list[Any]) -> np.ndarray:
    return np.concatenate([move(array, "cpu") for array in arrays])


def given(edges: list[tuple[int, int]], place: str = "cpu") -> Tuples:
    """This edge list, tuple e with the weight e / 16, a share of it for each shard."""
    comm = communicator(place)
    start, end = np.array(edges, np.int64).T
    keys, weights = start << 32 | end, np.arange(len(edges), dtype=np.float32) / 16
    made = Tuples([], [], comm)
    for device, key, weight in zip(
        comm.devices,
        np.array_split(keys, comm.num_shards),
        np.array_split(weights, comm.num_shards),
        strict=True,
    ):
        with on_device(device) as xp:
            made.keys.append(xp.asarray(key))
            made.weights.append(xp.asarray(weight))
    return made


@pytest.fixture(scope="module")
def plain() -> tuple[np.ndarray, np.ndarray]:
    """The keys and weights of one list, made in one piece."""
    made = generate_tuples(10, 16, 3, LocalCommunicator(1))
    return made.keys[0], made.weights[0]


@pytest.mark.parametrize("place", PLACES)
def test_the_list_is_the_same_everywhere(place: str, plain: Any) -> None:
    made = generate_tuples(10, 16, 3, communicator(place))
    assert len(made.keys) == len(place.split())
    assert (host(made.keys) == plain[0]).all() and (host(made.weights) == plain[1]).all()


def test_the_list_is_that_of_the_specification(plain: Any) -> None:
    keys, weights = plain
    start, end = keys >> 32, keys & 0xFFFFFFFF
    assert keys.size == 16 << 10 and max(start.max(), end.max()) < 1 << 10
    assert (start == end).any() and np.unique(keys).size < keys.size  # loops, repeated tuples
    assert weights.dtype == np.float32 and weights.min() >= 0 and weights.max() < 1
    assert np.abs(np.quantile(weights, [0.25, 0.5, 0.75]) - [0.25, 0.5, 0.75]).max() < 0.02
    # the generator's own probabilities, before vertices are renamed: of the first bit of both ends
    model = sg.generators.kronecker_model(10, 16, seed=3, self_loops=True)
    renamed = np.argsort(tuples.vertex_labels(model, np))
    old = renamed[start] >> 9 << 1 | renamed[end] >> 9
    assert np.abs(np.bincount(old) / keys.size - [0.57, 0.19, 0.19, 0.05]).max() < 0.02
    assert (renamed != np.arange(1 << 10)).mean() > 0.9


@pytest.mark.parametrize("place", PLACES)
def test_kernel_1(place: str, plain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuples, "STEP", 3000)
    monkeypatch.setattr(tuples, "STEP_CUDA", 3000)
    keys, weights = plain
    start, end = keys >> 32, keys & 0xFFFFFFFF
    n = 1 + max(start.max(), end.max())
    found = construct(generate_tuples(10, 16, 3, communicator(place)))
    least = np.full((n, n), np.inf, np.float32)
    for rows, columns in ((start, end), (end, start)):
        np.minimum.at(least, (rows, columns), weights)
    np.fill_diagonal(least, np.inf)
    A = found.A.gather() if "shards" in str(found.A.device) else found.A.to("cpu")
    assert found.A.symmetric and A.dtype == np.float32
    np.testing.assert_array_equal(A.to_dense(np.inf), least)
    ends = np.bincount(start, minlength=n) + np.bincount(end, minlength=n)
    np.testing.assert_array_equal(found.ends.to_numpy(), ends)
    loops = np.bincount(start[start == end], minlength=n)
    for degrees in found.degrees:
        np.testing.assert_array_equal(move(degrees, "cpu"), ends - 2 * loops)


def test_slots_of_one_shard_hold_what_from_coo_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What GPUs do, on the CPU."""
    monkeypatch.setattr(tuples, "STEP", 700)
    made = generate_tuples(8, 16, 1, LocalCommunicator(1))
    found = construct(made)
    whole = partition_by_counts(found.degrees[0], 1)
    indptr, indices, values = tuples._placed(made, found.degrees, whole)[0]
    assert (indptr == found.A.indptr).all()
    assert (indices == found.A.indices).all() and (values == found.A.values).all()


# 0 - 1 - 2 with tuples twice and a loop; 3 - 4 apart; 5 has loops alone; 6 nothing
EDGES = [(0, 1), (1, 0), (1, 2), (2, 2), (0, 1), (4, 3), (5, 5), (5, 5), (7, 7)]


@pytest.mark.parametrize("place", PLACES)
def test_keys_and_edges(place: str) -> None:
    graph = construct(given(EDGES, place))
    assert graph.A.nrows == 8
    keys = graph500.search_keys(graph.degrees, 64, 1)
    assert sorted(keys) == [0, 1, 2, 3, 4]  # fewer than 64, none with loops alone, each once
    assert graph500.search_keys(graph.degrees, 2, 1) == keys[:2]
    for key, edges in ((0, 5), (3, 1), (5, 2), (6, 0)):
        assert graph500.component_edges(graph, sg.bfs(graph.A, key).parent) == edges
    assert float(sg.sssp(graph.A, 0).distance.to_numpy(fill=-1)[1]) == 0.0


def test_keys_are_drawn_anew_for_another_seed() -> None:
    degrees = [np.ones(1 << 12, np.int64)]
    one, other = (graph500.search_keys(degrees, 64, seed) for seed in (1, 2))
    assert len(set(one)) == len(set(other)) == 64 and one != other


def test_statistics() -> None:
    assert report.statistics([3.0, 1.0, 2.0, 4.0]) == [
        *(1.0, 1.5, 2.5, 3.5, 4.0, 2.5),
        pytest.approx(np.sqrt(5 / 3)),
    ]
    assert report.statistics([5.0, 1.0, 2.0])[:5] == [1.0, 1.0, 2.0, 5.0, 5.0]
    assert np.isnan(report.statistics([1.0])[6])
    runs = [graph500.Root(0, seconds, 12, 0.0, []) for seconds in (1.0, 2.0, 3.0)]
    rates = np.array([12.0, 6.0, 4.0])
    found = report.rates(runs)
    assert found[:5] == pytest.approx([4, 4, 6, 12, 12])  # of the seconds an edge
    assert found[5] == pytest.approx(3 / (1 / rates).sum())
    # Norris: the standard error of the mean of the inverses, times the square of the mean
    error = np.std(1 / rates, ddof=1) / np.sqrt(2) * found[5] ** 2
    assert found[6] == pytest.approx(error)


def block_names() -> list[str]:
    """In the order of the reference code."""
    parts = ["min", "firstquartile", "median", "thirdquartile", "max"]
    names = ["SCALE", "edgefactor", "NBFS", "graph_generation", "num_mpi_processes"]
    names += ["construction_time"]
    for kernel in ("bfs ", "sssp"):
        names += [f"{kernel} {part}_time" for part in (*parts, "mean", "stddev")]
    names += [f"{part}_nedge" for part in (*parts, "mean", "stddev")]
    for kernel in ("bfs ", "sssp"):
        names += [f"{kernel} {p}_TEPS" for p in (*parts, "harmonic_mean", "harmonic_stddev")]
    for kernel in ("bfs ", "sssp"):
        names += [f"{kernel} {part}_validate" for part in (*parts, "mean", "stddev")]
    return names


def test_the_command_prints_the_block(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("graph500 --scale 8 --roots 5 --edgefactor 8 --trace".split()) == 0
    block, said, *trace = capsys.readouterr().out.split("\n\n")
    lines = block.splitlines()
    assert [line.partition(":")[0] for line in lines] == block_names()
    assert lines[0] == "SCALE:                          8"
    assert {line.index(line.split()[-1]) for line in lines} == {32}
    assert [line[29] for line in lines if "harmonic_mean" in line] == ["!", "!"]
    assert "unique ratio" in trace[0] and said.startswith("The search from ")
    assert "exchange" not in trace[-1]  # one shard has none
    assert main("graph500 --scale 8 --roots 2 --shards 2 --trace".split()) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    words = r"exchange [\d.]+ ms, compute [\d.]+ ms; W [\d,]+ edges, H [\d,]+ bytes"
    assert re.match(rf"{words}, C [\d,]+ elements, S \d+ rounds$", last)


def test_the_record(capsys: pytest.CaptureFixture[str]) -> None:
    command = "graph500 --scale 8 --roots 3 --shards 2 --trace --format json"
    assert main(command.split()) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["valid"] and record["NBFS"] == 3 and record["shards"] == 2
    assert {"_".join(name.split()) for name in block_names()} <= record.keys()
    for kernel in ("bfs", "sssp"):
        runs = record[f"{kernel}_runs"]
        assert len({run["key"] for run in runs}) == 3
        assert all(run["seconds"] > 0 and run["validation_seconds"] > 0 for run in runs)
        assert all(0 < run["edges"] <= 16 << 8 and run["failures"] == [] for run in runs)
    rows = record["trace"]
    assert rows[0]["unique_ratio"] == rows[1]["frontier"] / rows[0]["edges"]
    assert rows[-1]["unique_ratio"] == 0
    cost = record["cost"]
    assert cost["edges"] == sum(row["edges"] for row in rows) and cost["rounds"] == len(rows)
    for part in ("exchange_seconds", "compute_seconds"):
        assert sum(row[part] for row in rows) == pytest.approx(cost[part])


@pytest.mark.parametrize("place", PLACES[1:2] + PLACES[3:])
def test_what_a_search_costs_in_rounds(place: str) -> None:
    """W, H, C and S, beside what the communicator counts of the same search."""
    devices = list(communicator(place).devices)
    A = sg.generators.kronecker(9, seed=2).distribute(len(devices), devices=devices)
    found = exchange.search_cost(A, 5)
    G, watched = exchange.in_rounds(A)
    assert sg.bfs(G, 5).level.gather().isequal(sg.bfs(A, 5).level.gather())
    comm = A.device.communicator
    before = comm.bytes_sent, watched.collectives
    trace = sg.bfs(G, 5, trace=True).trace
    traced = comm.bytes_sent - before[0]
    assert found.rounds == len(trace) and found.edges == sum(row.edges for row in trace)
    assert 0 < found.bytes_sent <= traced and found.elements > 0
    assert 0 < found.collectives <= watched.collectives - before[1]
    assert found.exchange_seconds > 0 and found.compute_seconds > 0
    assert len(found.levels) == len(trace)
    for part in ("exchange_seconds", "compute_seconds"):
        seconds = [getattr(level, part) for level in found.levels]
        assert min(seconds) >= 0 and sum(seconds) == pytest.approx(getattr(found, part))
    searching = [
        level.exchange_seconds for level, row in zip(found.levels, trace, strict=True) if row.edges
    ]
    assert len(searching) > 2 and all(searching)
    edge = sg.Matrix.from_coo([0], [1], True, nrows=2, ncols=2)
    G = edge.distribute(len(devices), devices=devices)
    assert all(
        len(made.levels) == made.rounds
        for made in (exchange.search_cost(G, source) for source in (0, 1))
    )
    if place.startswith("cuda"):
        return
    watched.forget()
    gathered = watched.all_gather([np.arange(4), np.arange(2), np.arange(0)])
    assert [part.size for part in gathered] == [6, 6, 6]
    gathered = watched.all_gather([np.arange(4), np.arange(2), np.arange(0)])
    watched.began, watched.spans = 10.0, [(11.0, 13.0), (17.0, 18.0)]
    cost = watched.cost(None, None, 10.0)
    assert (cost.bytes_sent, cost.elements, cost.collectives) == (4 * 48, 2 * (6 + 18), 2)
    assert cost.edges is cost.rounds is None and cost.levels == []
    assert (cost.exchange_seconds, cost.compute_seconds) == (3, 7)
    # levels end with their last collective; the last level has the rest, the third none
    levels = watched.cost(4, 4, 10.0, [1, 2, 2]).levels
    assert levels == [(2, 1), (1, 4), (0, 0), (0, 2)]


class Shard:
    """A shard of a closure in two rounds."""

    def __init__(self, *given: Any) -> None:
        self.number, self.host_counters, self.round = given[2], given[-1], 0

    def closure(self, *given: Any) -> Any:
        for _ in range(2):
            self.round += 1
            self.host_counters[:] = self.round
            yield "counts", (self.host_counters, self.round, None)
        bits = np.full(1, 0b11 if self.number == 0 else 0b1, np.uint32)
        return Part(given[1].copy(), bits, None, 10 + self.number, True)


def test_what_a_closure_costs_in_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rounds, and the edges that its shards have read."""
    A = sg.Matrix.from_coo([0, 1], [1, 2], [3, 4], nrows=3, ncols=3).distribute(2)
    G, watched = exchange.in_rounds(A)
    assert not G.device.has("ClosureShard") and G.device.has("search")  # as on the CPU
    backend = types.SimpleNamespace(ClosureShard=Shard)
    monkeypatch.setattr(exchange.WatchedPlacement, "backend", lambda placement, k: backend)
    start = sparse_entries(G.device.filled(5, size=3, dtype="int64"))
    for _ in range(2):
        watched.forget()
        closures.in_rounds(G, *start, min_plus.resolve("int64", "int64"), None)
        cost = watched.cost(None, None, 1.0)
        assert (cost.edges, cost.rounds) == (10 + 11, 2)


@pytest.mark.gpu
@pytest.mark.parametrize("place", PLACES[3:])
def test_what_shortest_paths_cost_in_rounds(place: str) -> None:
    devices = list(communicator(place).devices)
    A = sg.generators.kronecker(9, seed=2)
    weights = (A.row_indices() % 7 + A.indices % 5 + 1).astype(np.int32)
    W = sg.Matrix._of(*A.shape, A.indptr, A.indices, weights).distribute(2, devices=devices)
    G, watched = exchange.in_rounds(W)
    found = sg.sssp(G, 5, parents=False).distance
    assert found.gather().isequal(sg.sssp(W, 5, parents=False).distance.gather())
    cost = watched.cost(None, None, 1.0)
    assert 0 < cost.edges <= 20 * A.nvals and 2 < cost.rounds < 200


@pytest.mark.parametrize("kernel", ["bfs", "sssp"])
def test_a_wrong_tree_is_an_error(
    kernel: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = getattr(sg, kernel)

    def wrong(A: sg.Matrix, key: int, **options: Any) -> Any:
        found = right(A, key, **options)
        found.parent[int(found.parent.to_coo()[0][0])] = key if A.nrows - 1 != key else 0
        found[0][key] = 1
        return found

    monkeypatch.setattr(graph500, kernel, wrong)
    assert main("graph500 --scale 7 --roots 2".split()) == 1
    said = capsys.readouterr().out
    assert said.startswith("No results printed for invalid run.\n")
    assert said.count(f"{kernel} from ") >= 2 and "check 2: source" in said


@pytest.mark.mpi
def test_processes() -> None:
    command = "graph500 --scale 8 --roots 4 --shards 2 --trace --format json"
    code, said = finished(2, "-m", "spgraph", *command.split())
    assert code == 0, said
    record = json.loads(said)
    assert record["num_mpi_processes"] == 2 and record["valid"]
    cost = record["cost"]
    assert cost["rounds"] == len(record["trace"]) and cost["bytes_sent"] > 0
    found = run_benchmark(8, roots=4)
    assert [run["key"] for run in record["bfs_runs"]] == [root.key for root in found.bfs]
    assert [run["edges"] for run in record["sssp_runs"]] == [root.edges for root in found.sssp]
    assert record["entries"] == found.entries


@pytest.mark.gpu
@pytest.mark.parametrize("options", ["--device cuda", "--gpus 1", "--gpus 2"])
def test_gpus(options: str, capsys: pytest.CaptureFixture[str]) -> None:
    if "2" in options:
        import gpus

        gpus.visible(2)
    assert main(f"graph500 --scale 14 --roots 4 --trace --format json {options}".split()) == 0
    record = json.loads(capsys.readouterr().out)
    if "2" in options:  # the loop on peers and the loop in rounds find the same
        cost = record["cost"]
        assert cost["bytes_sent"] > 0 and cost["exchange_seconds"] > 0
        assert cost["rounds"] == len(record["trace"])
    found = run_benchmark(14, roots=4)
    assert record["device"] == "cuda" and record["entries"] == found.entries
    assert [run["edges"] for run in record["bfs_runs"]] == [root.edges for root in found.bfs]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scale": 0}, "graph500: scale: expected an integer >= 1, got 0"),
        ({"scale": 31}, "scale: expected an integer from 0 to 30, got 31"),
        (
            {"scale": 6, "edgefactor": 1.5},
            "graph500: edgefactor: expected an integer >= 1, got 1.5",
        ),
        ({"scale": 6, "roots": True}, "graph500: roots: expected an integer >= 1, got True"),
        ({"scale": 6, "seed": -1}, "seed: expected an integer from 0"),
        ({"scale": 1, "edgefactor": 1, "seed": 12}, "graph500: seed: .* loops alone from seed 12"),
    ],
)
def test_bad_input(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run_benchmark(**arguments)
