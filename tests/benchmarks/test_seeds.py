"""`python -m benchmarks seeds` on small graphs, and the file of published times; no time is
asserted.
"""

from __future__ import annotations

import argparse
import itertools
import json
import pathlib
import types
from typing import Any

import pytest

import spgraph as sg
from benchmarks import compare, seeds
from benchmarks.measuring import machine, rows
from benchmarks.pages import seeds_tables, tables

TASKS = {"bfs", "bfs push", "sssp", "betweenness", "components", "pagerank"}


def published() -> dict[str, Any]:
    return json.loads(seeds.PUBLISHED.read_text(encoding="utf-8"))


def given(output: pathlib.Path, *more: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    seeds.add_arguments(parser)
    words = ["--device", "cpu", "--graphs", "rmat_n8_8,rgg_n8_0.1", "--calls", "1"]
    return parser.parse_args([*words, "-o", str(output), *more])


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "others_cores", lambda: 0.0)  # which takes a second
    monkeypatch.setattr(machine, "others_cores_since", lambda *since: 0.0)


def test_every_task_of_every_graph_is_measured(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert seeds.run(given(tmp_path / "out.json")) == 0
    result = json.loads((tmp_path / "out.json").read_text())
    assert result["graphs"]["rmat_n8_8"]["vertices"] == 256
    places = {(row["graph"], row["task"]) for row in result["results"]}
    assert places == {(graph, task) for graph in result["graphs"] for task in TASKS}
    assert all(row["ms"] > 0 and row["devices"] == 1 for row in result["results"])
    assert rows.incomplete(result) == []
    assert all(row["cost"]["H"] == 0 for row in result["results"])
    assert "nothing is published" in capsys.readouterr().out


def test_switches_and_several_devices(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shards on the CPU stand for GPUs. Answers do not depend on a switch; those that are not there
    are named.
    """
    words = ["--graphs", "rmat_n8_8", "--devices", "1,2", "--ablate"]
    assert seeds.run(given(tmp_path / "out.json", *words)) == 0
    result = json.loads((tmp_path / "out.json").read_text())
    assert rows.incomplete(result) == [] and not result["faults"]
    switches = {(row["task"], row["switch"], row["value"]) for row in result["ablation"]}
    ways = {("bfs", "direction", way) for way in ("auto", "push", "pull")}
    ways |= {("sssp", "priority buckets", value) for value in ("on", "off")}
    kinds = {
        (task, "partition", by)
        for task in ("bfs", "bfs push", "pagerank")
        for by in ("edges", "random", "biased")
    }
    assert switches == ways | kinds
    assert {"local-first", "METIS", "memory schemes"} <= result["absent"].keys()
    costs = {(row["task"], row["devices"]): row["cost"] for row in result["results"]}
    for task in TASKS:
        assert costs[task, 1]["H"] == 0 < costs[task, 2]["H"]
        assert (costs[task, 2]["W"] is None) == (task == "sssp")
        levels = costs[task, 2].get("levels", [])
        assert len(levels) == (costs[task, 2]["S"] if task in ("bfs", "bfs push") else 0)
    entries = result["graphs"]["rmat_n8_8"]["directed_edges"]
    assert 0 < costs["components", 1]["W"] < entries == costs["components", 2]["W"]
    assert costs["components", 2]["S"] > 1
    assert costs["pagerank", 2]["W"] == 30 * result["graphs"]["rmat_n8_8"]["directed_edges"]
    found = dict(compare.cells(result))
    cells = [cell for cell in found if cell.startswith("ablation")]
    assert len(cells) == 2 * len(ways) + len(kinds)
    monkeypatch.setattr(seeds_tables, "of_one_commit", lambda name: [(name, result)])
    shown = seeds_tables.ablation()
    assert "| rmat_n8_8 | bfs | 2 | direction | auto " in shown and "; METIS: " in shown
    assert "| rmat_n8_8 | bfs push | spgraph | 2 | " in seeds_tables.partitions()
    monkeypatch.setattr(seeds_tables, "of_one_commit", lambda name: [(name, {})])
    assert "--ablate" in seeds_tables.ablation()


def test_names_of_graphs(tmp_path: pathlib.Path) -> None:
    assert seeds.unknown("rmat_n8_8,rgg_n8_0.1,grid9,kron_g500-logn21,rmat_2Mv_128Me") is None
    assert seeds.generate("grid9", "cpu").nrows == 81
    with pytest.raises(SystemExit, match="seeds: --graphs: expected rmat_n.*, got 'kron8'"):
        seeds.run(given(tmp_path / "out.json", "--graphs", "rmat_n8_8,kron8"))


def test_leading_neighbours_are_a_switch_on_one_gpu() -> None:
    kept: dict[str, Any] = {"hubs": "an array"}
    place = types.SimpleNamespace(device="cuda:0", _T=types.SimpleNamespace(_derived=kept))
    seen = {}
    for (task, switch, value), _ in seeds.ablations(seeds.Graph(place, None, 0)):
        if switch == "leading neighbours":
            seen[task, value] = kept["hubs"]
    assert seen == {("bfs", "on"): "an array", ("bfs", "off"): 0} and kept["hubs"] == "an array"


def test_memory_of_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of files that say what was in use, a line a call."""
    row = {"graph": "g", "task": "bfs", "devices": 2, "held_bytes": 5e9, "peak_bytes": 5.25e9}
    results = [row, row | {"task": "sssp", "allocations": 7}]
    file = ("x.json", {"results": results})
    monkeypatch.setattr(seeds_tables, "of_one_commit", lambda name: [file])
    shown = seeds_tables.memory()
    assert "Of `x.json`, as above." in shown and "| g | sssp | 2 | 5,000 | 250 | 7 |" in shown
    assert "bfs" not in shown
    results.pop()
    assert "measured before" in seeds_tables.memory()


def test_a_wrong_answer_is_reported_and_not_timed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = sg.sssp

    def wrong(W: Any, source: int, **options: Any) -> Any:
        found = right(W, source, **options)
        found.distance._values[-1] += 1
        return found

    monkeypatch.setattr(sg, "sssp", wrong)
    assert seeds.run(given(tmp_path / "out.json", "--graphs", "rmat_n8_8")) == 1
    result = json.loads((tmp_path / "out.json").read_text())
    assert result["faults"] and not result["results"]


def test_shards_of_other_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several devices alone; loops in one launch on GPUs alone; what was opened is closed."""
    A = sg.generators.kronecker(6)
    one = seeds.Graph(A, seeds.graphs.weighted(A), 1)
    given, closed = [], []
    distribute = sg.Matrix.distribute

    def noted(M: sg.Matrix, count: int, *, devices: Any, **more: Any) -> Any:
        given.append((devices, more))
        made = distribute(M, count)
        monkeypatch.setattr(made.device.communicator, "close", lambda: closed.append(1))
        return made

    monkeypatch.setattr(sg.Matrix, "distribute", noted)
    assert list(seeds.other_shards(one, 1, "cuda")) == []
    ways, levels = set(), []
    for (task, switch, value), calls in seeds.other_shards(one, 2, "cuda"):
        if switch == "loop":
            ways.add((task, value))
            assert len(given) - len(closed) == 2  # those of this way
            levels.append(calls[-1]().gather())
    assert ways == {(task, way) for task in ("bfs", "sssp") for way in ("one launch", "rounds")}
    assert levels[0].isequal(levels[2]) and levels[1].isequal(levels[3])
    names = ["cuda:0", "cuda:1"]
    kinds = [{"partition": by} for by in ("edges", "random", "biased")]
    kinds += [{"exchange": exchange} for exchange in ("peer", "nccl")]
    assert given == [(names, kind) for kind in kinds for _ in range(2)]
    assert len(closed) == len(given)


def test_files_of_one_commit_are_shown_together(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of one GPU and of two; a row is that of the newest."""
    monkeypatch.setattr(tables, "RESULTS", tmp_path)

    def file(name: str, commit: str, *found: tuple[str, int, float], others: float = 0.0) -> None:
        made = [{"graph": g, "task": "bfs", "devices": n, "ms": ms} for g, n, ms in found]
        gpu = {"name": "NVIDIA H200", "driver_version": "1"}
        place = {"cpu": "a CPU", "cores": 1, "gpu": gpu, "others_cores": others}
        place["load_average"] = [0.0, 0.0, 0.0]
        result = {"machine": place, "versions": {}, "source": {"commit": commit * 7}}
        result |= {"date": "2026-01-01", "results": made}
        result["graphs"] = {g: {"directed_edges": 10**6} for g, _, _ in found}
        (tmp_path / f"seeds_gpu_2026-01-01{name}.json").write_text(json.dumps(result))

    file("", "a", ("rmat_n24_32", 4, 9.0))
    file("_2", "b", ("rmat_n24_32", 1, 9.0), ("rmat_n25_16", 1, 5.0))
    file("_3", "b", ("rmat_n24_32", 1, 8.0), ("rmat_n24_32", 2, 5.0))
    file("_4", "b", ("rmat_n24_32", 8, 1.0), others=1.0)
    places = {(row["graph"], row["devices"]): row["ms"] for row in seeds_tables.measured("results")}
    assert places == {("rmat_n24_32", 1): 8, ("rmat_n25_16", 1): 5, ("rmat_n24_32", 2): 5}
    assert "| strong | bfs | spgraph | 8.00 | 1.60 | - | - |" in seeds_tables.scaling()
    shown = seeds_tables.beside()
    assert "_2.json" in shown and "_3.json" in shown and "_4.json" not in shown
    assert "| rmat_n24_32 | bfs | 2 | 5.00 | 200 | Gunrock" in shown


def test_answers_of_several_devices_are_compared() -> None:
    first: list[Any] = []
    found = sg.Vector.from_coo([0, 2], [1, 5], size=4)
    assert seeds.differs(found, first) == "" and first
    assert seeds.differs(found, first) == ""
    assert "another answer" in seeds.differs(sg.Vector.from_coo([0], [1], size=4), first)


def test_what_stands_beside_a_result() -> None:
    row = {"graph": "g", "task": "bfs", "system": "S", "card": "old", "gpus": 2, "ms": 8.0}
    others = [row | {"ms": 6.0}, row | {"gpus": 1}, row | {"task": "sssp"}]
    data = {"rows": [row, *others], "cards": {"old": 100, "new": 400}}
    mine = [{"graph": "g", "task": "bfs", "devices": 2, "ms": 2.0}]
    found = seeds.beside(mine, data, "new")
    assert [(r["ms"], r["faster"], r["bandwidth"]) for r in found] == [(8, 4, 4), (6, 3, 4)]
    text = seeds.table(found)
    assert "S on old" in text and "BEHIND" in text and " 6.000" in text and "8.000" not in text
    assert "BEHIND" not in seeds.table(seeds.beside([mine[0] | {"ms": 1.0}], data, "new"))
    assert "bandwidth" not in seeds.beside(mine, data, "unknown card")[0]


def test_the_published_times_are_of_one_piece() -> None:
    data = published()
    made = {*seeds.GRAPHS.split(","), *itertools.chain(*seeds_tables.SCALING.values())}
    for row in data["rows"]:
        assert row["graph"] in made or seeds.GEOMETRIC.fullmatch(row["graph"])
        assert row["task"] in TASKS and row["ms"] > 0 and row["gpus"] >= 1
        assert row["card"] in data["cards"] and row["system"] in data["systems"]
        assert row["file"].endswith(".json")
    assert made <= {row["graph"] for row in data["rows"]}
    keys = [
        tuple(row.get(k) for k in ("graph", "task", "system", "card", "gpus", "partition"))
        for row in data["rows"]
    ]
    assert len(set(keys)) == len(keys)
