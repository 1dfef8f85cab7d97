"""The benchmarks of GPUs end to end without a GPU: containers stay on the CPU, CuPy is NumPy, and
events, pools and cuGraph are stand-ins. What is tested is that every row is there and complete.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import spgraph as sg
from benchmarks import compare
from benchmarks.measuring import graphs, machine, rows
from benchmarks.pages import scaling, speed_tables, tables
from spgraph.containers.storage import arrays


class Gpu:
    """cupy.cuda.Device."""

    current = 0

    def __init__(self, number: int = 0) -> None:
        self.id, self.before = number, 0

    def __enter__(self) -> Gpu:
        self.before, Gpu.current = Gpu.current, self.id
        return self

    def __exit__(self, *error: object) -> None:
        Gpu.current = self.before

    def synchronize(self) -> None:
        pass


class Event:
    def record(self) -> None:
        pass

    synchronize = record


class Pool:
    """A pool that keeps what it has once taken of a GPU."""

    used, total = [500, 500], [9000, 9000]

    def free_all_blocks(self) -> None:
        pass

    def used_bytes(self) -> int:
        return Pool.used[Gpu.current]

    def total_bytes(self) -> int:
        return Pool.total[Gpu.current]

    @staticmethod
    def take(size: int) -> int:
        Pool.used[Gpu.current] += size
        return size


class Allocator:
    """The allocator of all threads."""

    current = staticmethod(Pool.take)

    @staticmethod
    def get() -> Any:
        return Allocator.current

    @staticmethod
    def set(allocate: Any) -> None:
        Allocator.current = staticmethod(allocate)


class Cupy:
    """CuPy, whose arrays are NumPy's."""

    cuda = SimpleNamespace(
        Device=Gpu,
        Event=Event,
        get_elapsed_time=lambda begin, end: 0.5,
        runtime=SimpleNamespace(getDeviceCount=lambda: 2, getDevice=lambda: Gpu.current),
        get_allocator=Allocator.get,
        set_allocator=Allocator.set,
    )
    asnumpy = staticmethod(np.asarray)
    ndarray = Pool  # no array is CuPy's

    def get_default_memory_pool(self) -> Pool:
        return Pool()

    def RawKernel(self, text: str, name: str) -> Any:
        return lambda *given: None

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


ON_GPU = ("algorithms", "bfs", "operations", "distributed")


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy, load = Cupy(), graphs.load
    monkeypatch.setattr(machine, "others_cores", lambda: 0.0)  # which takes a second
    monkeypatch.setattr(machine, "others_cores_since", lambda *since: 0.0)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(arrays, "import_cupy", lambda: cupy)
    for name in ("measuring.gpu_clock", *(f"gpu.{name}" for name in ON_GPU)):
        module = importlib.import_module(f"benchmarks.{name}")
        monkeypatch.setattr(module, "import_cupy", lambda: cupy)
    host = importlib.import_module("benchmarks.gpu.host_storage")
    monkeypatch.setattr(host, "import_cupy", lambda: cupy)
    monkeypatch.setattr(graphs, "load", lambda name, data, device: load(name, data, "cpu"))
    monkeypatch.setattr(sg.Vector, "to_cupy", lambda v, **given: v.to_numpy(**given))
    monkeypatch.setattr(sg.Matrix, "to_cupyx", sg.Matrix.to_scipy)


def measured(
    name: str, output: Path, monkeypatch: pytest.MonkeyPatch, *words: str
) -> dict[str, Any]:
    """The result file of a run, every row of which is complete."""
    module = importlib.import_module(name)
    monkeypatch.setattr(sys, "argv", [name, *words, "-o", str(output)])
    module.main()
    result = json.loads(output.read_text())
    assert result["benchmark"] == output.name.rpartition("_")[0]
    assert rows.incomplete(result) == []
    assert len(list(compare.cells(result))) > 2
    return result


def test_memory_of_a_call_on_gpus(no_gpu: None) -> None:
    """The most in use on any of them, not what the pool keeps; a call that fails leaves the
    allocator as it was.
    """

    def call() -> None:
        for gpu, sizes in enumerate(((100, 200), (50, 700, 30))):
            with Gpu(gpu):
                for size in sizes:
                    Allocator.current(size)
                    Pool.used[gpu] -= size * (size == 700)  # given back

    before = Allocator.current
    try:
        assert rows.untimed(call, 2.0, "cuda") == (2.0, 500, 500 + 50 + 700, 5)
        with pytest.raises(ZeroDivisionError):
            rows.untimed(lambda: 1 // 0, 2.0, "cuda")
        assert Allocator.current is before
    finally:
        Pool.used[:] = [500, 500]


def no_faults(result: dict[str, Any]) -> None:
    assert not [entry["faults"] for entry in result["graphs"].values() if entry["faults"]]


@pytest.mark.parametrize("name", ["bfs", "algorithms"])
def test_beside_cugraph(
    name: str, no_gpu: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = importlib.import_module("benchmarks.gpu.cugraph_process")
    peer = importlib.import_module(f"benchmarks.gpu.{name}_cugraph")
    monkeypatch.setattr(process, "run", lambda *given: None)
    monkeypatch.setattr(peer, "graph_of", lambda A, *given, **more: A)
    monkeypatch.setattr(graphs, "KRONECKER", {"kron21": (7, 16)})
    file = tmp_path / f"{name}_gpu_2026-01-01.json"
    words = ["--graphs", "kron21", "--sources", "2", "--calls", "2"]
    words += ["--no-first-call"] if name == "bfs" else []
    result = measured(f"benchmarks.gpu.{name}", file, monkeypatch, *words)
    no_faults(result)
    options = argparse.Namespace(data=tmp_path, calls=2)
    entry = result["graphs"]["kron21"]
    found = peer.measure("kron21", entry, options, Cugraph(), None)
    entry["cugraph"] = found
    for row in machine.dictionaries(found):
        if "conditions" in row:
            row["conditions"]["commit"] = "0"
    assert rows.incomplete(found) == [] and "error" not in json.dumps(found)
    wanted = {"levels", "parents"} if name == "bfs" else {"sssp", "components", "pagerank"}
    assert wanted <= found.keys()
    if name == "algorithms":
        ours = entry["pagerank"]
        pairs = zip(*(ours[calls]["wall_times"][0] for calls in ("twenty", "forty")), strict=True)
        assert ours["wall_times"] == pytest.approx([(b - a) / 20 for a, b in pairs], abs=1e-5)
        assert ours["device_ms"] == 0.0  # all events are half a millisecond apart


class Cugraph:
    """pylibcugraph, whose graphs are Matrices, with spgraph's answers."""

    def bfs(self, handle: Any, A: sg.Matrix, start: Any, *rest: Any) -> Any:
        none = np.iinfo(np.int32).max
        return (sg.bfs(A, int(start[0])).level.to_numpy(fill=none),)

    def sssp(self, handle: Any, A: sg.Matrix, source: int, *rest: Any) -> Any:
        distance = sg.sssp(graphs.weighted(A), source).distance
        return None, distance.dup(np.float64).to_numpy(fill=1e38)

    def weakly_connected_components(self, handle: Any, A: sg.Matrix, *rest: Any) -> Any:
        return None, sg.connected_components(A).to_numpy()

    def betweenness_centrality(self, handle: Any, A: sg.Matrix, start: Any, *rest: Any) -> Any:
        return None, sg.betweenness_centrality(A, sources=start.tolist()).to_numpy()

    def triangle_count(self, handle: Any, A: sg.Matrix, *rest: Any) -> Any:
        return None, np.array([3 * sg.triangle_count(A)])

    def pagerank(self, handle: Any, A: sg.Matrix, *rest: Any, **more: Any) -> Any:
        return None, sg.pagerank(A, tol=None, max_iter=rest[6]).to_numpy()


def test_operations(no_gpu: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    operations = importlib.import_module("benchmarks.gpu.operations")
    monkeypatch.setattr(operations, "PUSHED", 500)
    monkeypatch.setattr(graphs, "KRONECKER", {"kron21": (7, 16)})
    file = tmp_path / "operations_gpu_2026-01-01.json"
    words = ["--graphs", "kron21,road_NY", "--data", str(tmp_path), "--calls", "2"]
    result = measured("benchmarks.gpu.operations", file, monkeypatch, *words)
    assert "missing" in result["graphs"].pop("road_NY")
    no_faults(result)
    assert len(result["graphs"]["kron21"]["tasks"]) == 12


def test_dense_products(no_gpu: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dense = importlib.import_module("benchmarks.dense_products")
    monkeypatch.setattr(dense, "import_cupy", Cupy)
    file = tmp_path / "dense_products_gpu_2026-01-01.json"
    words = ["--device", "cuda", "--graphs", "kron8:8:9", "--types", "float32", "--calls", "2"]
    no_faults(measured("benchmarks.dense_products", file, monkeypatch, *words))


class Streamed(sg.Matrix):
    """A Matrix in host memory, of which every look at the bytes that were read finds more."""

    __slots__ = ()
    read = 0

    @property
    def bytes_streamed(self) -> int:
        Streamed.read += 1000
        return Streamed.read


def test_host_storage(no_gpu: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = importlib.import_module("benchmarks.gpu.host_storage")
    monkeypatch.setattr(host, "bus_rate", lambda S: 1000.0)

    def to(A: sg.Matrix, device: str, **given: Any) -> sg.Matrix:
        parts = (A.nrows, A.ncols, A.indptr, A.indices, A.values)
        return Streamed._of(*parts, iso=A.iso, symmetric=A.symmetric)

    monkeypatch.setattr(sg.Matrix, "to", to)
    file = tmp_path / "host_storage_gpu_2026-01-01.json"
    words = ["--graphs", "kron8", "--calls", "2"]
    result = measured("benchmarks.gpu.host_storage", file, monkeypatch, *words)
    no_faults(result)
    task = result["graphs"]["kron8"]["tasks"]["mxv"]
    assert task["ratio"] == pytest.approx(task["median"] / task["bus_ms"], rel=0.01)


def test_several_gpus(no_gpu: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers, rows and costs of one device and of two, and what the page makes of them."""
    several = importlib.import_module("benchmarks.gpu.distributed")

    def graph(name: str, devices: list[str], given: dict[str, Any]) -> Any:
        return graphs.load("kron8", tmp_path, "cpu").distribute(len(devices))

    monkeypatch.setattr(several, "graph", graph)
    monkeypatch.setattr(several, "GRAPHS", {"kron24_16": (8, 16)})
    file = tmp_path / "distributed_gpu_2026-01-01.json"
    words = ["--graphs", "kron24_16,grid1000", "--devices", "1,2", "--exchange", "peer,nccl"]
    words += ["--sources", "2", "--calls", "2"]
    result = measured("benchmarks.gpu.distributed", file, monkeypatch, *words)
    assert not result["faults"]
    found = {
        (row["algorithm"], row["devices"]): row.get("cost")
        for row in result["results"]
        if row["graph"] == "kron24_16"
    }
    assert {task for task, _ in found} == set(several.TASKS)
    for (task, devices), cost in found.items():
        assert (cost["H"] > 0) == (cost["C"] > 0) == (devices > 1), task
        reported = task.startswith(("bfs", "pagerank", "betweenness"))
        assert (cost["W"] is None) == task.startswith("sssp"), task
        assert (cost["S"] or 0) > 1 or not reported, task
    G = graphs.load("kron8", tmp_path, "cpu")
    ids, level = sg.bfs(G, result["graphs"]["kron24_16"]["sources"][0]).level.to_coo()
    degrees = G.row_degrees().to_numpy()[ids]
    for devices in (1, 2):
        edges = int(degrees.sum())
        if devices > 1:  # which end without a look at what the last level leads to
            edges -= int(degrees[level == level.max()].sum())
        assert found["bfs counts push", devices]["W"] == edges
        cost = found["betweenness", devices]
        assert (cost["W"], cost["S"]) == (2 * edges, 2 * (1 + level.max()))
    assert found["pagerank 10", 2]["S"] == 10
    assert found["components", 1]["W"] < G.nvals == found["components", 2]["W"]
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    result["machine"]["gpu"] = {"name": "a GPU", "driver_version": "1"}
    result["versions"]["cupy-cuda13x"] = "1"
    result["source"]["commit"] = "0" * 40
    file.write_text(json.dumps(result))
    assert "| kron24_16 | bfs levels |" in speed_tables.distributed_gpu()
    cost = found["bfs levels", 2]
    counts = " | ".join(f"{cost[key]:,}" for key in "WHCS")
    assert "strong: kron24_16" in scaling.picture()
    shown = speed_tables.distributed_costs()
    assert f"| kron24_16 | bfs levels | 2 | {counts} |" in shown
    assert f"| kron24_16 | components | 2 | {G.nvals:,} |" in shown
    assert "| kron24_16 | sssp | 2 | - |" in shown
