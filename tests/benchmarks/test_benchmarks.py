"""The benchmark of the CPU end to end on a small graph; no time is asserted."""

from __future__ import annotations

import importlib
import json
import os
import platform
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spgraph as sg
from benchmarks.measuring import machine, rows, turns
from benchmarks.pages import speed_tables, tables

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The result file of a run without networkit and without road networks."""
    folder = tmp_path_factory.mktemp("benchmark")
    (folder / "networkit.py").write_text("raise ImportError('networkit is not installed')\n")
    arguments = ["--graphs", "kron8,road_NY", "--sources", "2", "--calls", "3"]
    places = ["--data", str(folder), "-o", str(folder / "out" / "bfs_cpu.json")]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.cpu.bfs", "--no-first-call", *arguments, *places],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "road_NY: skipped" in done.stdout
    return json.loads((folder / "out" / "bfs_cpu.json").read_text())


def test_result_says_what_was_measured_and_where(run: dict[str, Any]) -> None:
    assert run["benchmark"] == "bfs_cpu" and run["unit"] == "ms"
    assert {"cpu", "cores", "load_average", "system", "gpu"} <= run["machine"].keys()
    assert {"python", "spgraph", "numpy", "scipy", "numba"} <= run["versions"].keys()
    assert run["source"].keys() == {"commit", "dirty"}
    assert run["command"].startswith("python -m benchmarks.cpu.bfs --no-first-call --graphs kron8")
    assert "missing" in run["graphs"]["road_NY"]


def test_every_row_has_its_conditions(run: dict[str, Any]) -> None:
    assert rows.incomplete(run) == []
    found = run["graphs"]["kron8"]["systems"]["spgraph"]
    assert found["min"] <= found["quartiles"][0] <= found["median"] <= found["quartiles"][1]
    assert found["min"] == np.min(found["times"]) and found["first_ms"] > 0
    if platform.system() == "Linux":
        assert 0 < found["held_bytes"] <= found["peak_bytes"]
    conditions = found["conditions"]
    assert conditions["threads"] == run["threads"] and len(conditions["load_average"]) == 3
    assert conditions["commit"] == run["source"]["commit"]
    assert conditions["pinned"] == run["machine"]["pinned"]
    del found["min"], conditions["pinned"]
    lacking = [line.rpartition(": ")[2] for line in rows.incomplete(run)]
    found["min"], conditions["pinned"] = 0.0, None
    assert lacking == ["min", "pinned"] and rows.incomplete(run) == []


def test_memory_of_a_call() -> None:
    """What a call takes and gives back is seen; what came before it is not."""
    before = np.ones(20_000_000)
    del before
    seen = rows.untimed(lambda: np.ones(10_000_000), 1.5)
    if platform.system() != "Linux":
        assert seen == (1.5, None, None, None)
        return
    assert seen.first_ms == 1.5
    assert 60e6 < seen.peak_bytes - seen.held_bytes < 120e6


def test_systems_are_timed_or_reported_as_missing(run: dict[str, Any]) -> None:
    graph = run["graphs"]["kron8"]
    assert graph["vertices"] == 256 and graph["input_edges"] == 16 * 256
    assert graph["directed_edges"] == sg.generators.kronecker(8, 16).nvals
    assert len(graph["sources"]) == 2
    systems = graph["systems"]
    assert systems["networkit"] == {"missing": "networkit is not installed"}
    for name in ("spgraph", "spgraph parents", "spgraph composed", "scipy"):
        times = np.array(systems[name]["times"])
        assert times.shape == (2, 3) and (times > 0).all()
        assert systems[name]["median"] == pytest.approx(
            np.median(np.median(times, axis=1)), abs=1e-4
        )
    assert not any("error" in system for system in systems.values())


def test_facts_hold_no_path_and_no_host(run: dict[str, Any]) -> None:
    facts = {name: run[name] for name in ("command", "settings", "machine", "versions", "source")}
    words = " ".join(_strings(facts)).split()
    assert [word for word in words if os.path.isabs(word.rpartition("=")[2])] == []
    assert platform.node() not in words


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    for part in value if isinstance(value, list) else [value]:
        if isinstance(part, dict | list):
            yield from _strings(part)
        else:
            yield str(part)


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("operations_cpu", ["--matrices", "kron10,uniform10", "--rounds", "1"]),
        ("csgraph_cpu", ["--graphs", "grid8,dense20", "--rounds", "1"]),
        ("algorithms_cpu", ["--graphs", "kron8", "--rounds", "1"]),
    ],
)
def test_others_agree_with_their_peers(
    module: str, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every task of spgraph is timed, and no answer differs from a peer's."""
    result = measured(module, tmp_path / "out.json", arguments, monkeypatch)
    assert result["benchmark"] == module
    assert rows.incomplete(result) == []
    assert "| spgraph |" in shown(module, result, tmp_path, monkeypatch)
    found = result.get("matrices", result.get("graphs"))
    tasks = {name: task for entry in found.values() for name, task in entry["tasks"].items()}
    assert len(tasks) >= 4
    for name, task in tasks.items():
        assert "error" not in task, name
        assert task["spgraph"]["median"] > 0, name
        assert not any("error" in system for system in task.values() if isinstance(system, dict))


def measured(
    module: str, output: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """The result file of a run in this process."""
    monkeypatch.setattr(machine, "others_cores", lambda: 0.0)  # which takes a second
    monkeypatch.setattr(machine, "others_cores_since", lambda *since: 0.0)
    monkeypatch.setattr(sys, "argv", [module, *arguments, "-o", str(output)])
    importlib.import_module(f"benchmarks.cpu.{module.removesuffix('_cpu')}").main()
    return json.loads(output.read_text())


def shown(module: str, result: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the page has of a result."""
    result["source"]["commit"] = "0" * 40
    (folder / f"{module}_2026-01-01.json").write_text(json.dumps(result))
    monkeypatch.setattr(tables, "RESULTS", folder)
    return speed_tables.TABLES[module]()


def test_a_second_run_is_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs of two commands in one file; neither of another commit nor of another machine."""
    file, words = tmp_path / "operations_cpu_2026-01-01.json", ["--only", "reduce", "--rounds", "1"]
    words += ["--commit", "a" * 40, "--matrices"]
    measured("operations_cpu", file, [*words, "kron10"], monkeypatch)
    result = measured("operations_cpu", file, [*words, "uniform10"], monkeypatch)
    assert list(result["matrices"]) == ["kron10", "uniform10"] and rows.incomplete(result) == []
    one, other = result["command"].split("; ")
    assert one.endswith("kron10 -o operations_cpu_2026-01-01.json") and "uniform10" in other
    before = file.read_bytes()
    with pytest.raises(SystemExit, match="has source .*: give another file with --output"):
        measured("operations_cpu", file, ["--commit", "b" * 40], monkeypatch)
    monkeypatch.setattr(machine, "cores", lambda: 99)
    with pytest.raises(SystemExit, match="has machine .*'cores': 99"):
        measured("operations_cpu", file, [*words, "kron10"], monkeypatch)
    assert file.read_bytes() == before


def test_tables_say_under_what_conditions_they_are() -> None:
    place: dict[str, Any] = {"cpu": "a CPU", "cores": 8, "gpu": None, "pinned": [0, 2]}
    place |= {"load_average": [1.0, 0.5, 0.25], "others_cores": 0.1, "others_cores_during": 0.15}
    made = [{"conditions": {"threads": threads, "pinned": [0, 2]}} for threads in (2, 1, 2)]
    result = {"machine": place, "versions": {"numba": "1"}, "date": "2026-01-02T03", "rows": made}
    result["source"] = {"commit": "0123456789"}
    assert tables.described("x.json", result, "numba", "scipy") == (
        "`benchmarks/results/x.json`: 8 cores of a CPU; numba 1; 1 or 2 threads bound to "
        "processors 0, 2; load average 1.00 0.50 0.25 before the run; processors used by others "
        "0.10 before, 0.15 during; 2026-01-02, commit 0123456."
    )
    del place["others_cores"], place["others_cores_during"]
    said = tables.described("x.json", {**result, "rows": []}, "scipy")
    assert "a CPU; load average 1.00 0.50 0.25 before the run; 2026-01-02" in said


def test_building_agrees_with_its_peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices from coordinates, from files and as products are what SciPy and pandas make."""
    words = ["--entries", "3000", "--graphs", "kron8", "--rounds", "1"]
    result = measured("building_cpu", tmp_path / "out.json", words, monkeypatch)
    assert rows.incomplete(result) == []
    found = result["tasks"]
    assert {"from_coo 3,000, int64, plus", "A @ A, kron8"} <= found.keys()
    for name, task in found.items():
        assert not any("error" in system for system in task["systems"].values()), name
    page = shown("building_cpu", result, tmp_path, monkeypatch)
    time = tables.milliseconds(found["A @ A, kron8"]["systems"]["spgraph"]["median"])
    assert f"| A @ A, kron8 | {time} | scipy, sorted" in page


def test_wrong_answers_are_not_timed() -> None:
    calls = {"spgraph": lambda: 3, "right": lambda: 3.0, "wrong": lambda: 4}
    told = turns.timed(calls, lambda _, x: 2 * x, lambda x, own: "" if x == own else f"{x}", 3, 2)
    assert told["wrong"] == {"error": "8"}
    assert len(told["spgraph"]["times"]) == len(told["right"]["times"]) == 3
    assert turns.ratio_to_best_peer(told)["ratio_to_best_peer"] > 0
    assert turns.ratio_to_best_peer({"spgraph": told["spgraph"], "wrong": told["wrong"]}) == {}
    timed = {"spgraph": {"median": 3.0}, "coarse": {"median": 0.0}, "fine": {"median": 2.0}}
    assert rows.ratios(timed) == {"best": "fine", "ratios": {"spgraph": 1.5}}


def test_first_call_measures_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    first_call = importlib.import_module("benchmarks.measuring.first_call")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.measuring.first_call", "cpu", "levels"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    times = json.loads(done.stdout)
    assert tuple(times) == first_call.FIELDS and all(t > 0 for t in times.values())


@pytest.mark.parametrize(
    ("level", "parent", "fault"),
    [
        ([0, 1, 1, 2], [0, 0, 0, 1], None),
        ([0, 1, 1, 2], [0, 0, 0, 2], "least parent"),
        ([0, 1, 1, 2], [1, 0, 0, 1], "1:"),
        ([0, 1, 1, 3], [0, 0, 0, 1], "2:"),
        ([0, 1, 2, 3], [0, 0, 1, 2], "3:"),
        ([0, 1, -1, 2], [0, 0, -1, 1], "4:"),
        ([0, 1, 1, 1], [0, 0, 0, 0], "5:"),
    ],
)
def test_tree_checks_find_the_fault(
    level: list[int], parent: list[int], fault: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    tree_checks = importlib.import_module("benchmarks.measuring.tree_checks")
    monkeypatch.setattr(tree_checks, "STEP", 3)  # so that a row is cut
    # 0 - 1, 0 - 2, 1 - 3, 2 - 3
    A = sg.Matrix.from_coo([0, 0, 1, 1, 2, 2, 3, 3], [1, 2, 0, 3, 0, 3, 1, 2])
    vectors = []
    for values in (level, parent):
        reached = np.flatnonzero(np.array(values) >= 0)
        vectors.append(sg.Vector.from_coo(reached, np.array(values)[reached], size=4))
    found = tree_checks.faults(A, 0, *vectors)
    assert found == [] if fault is None else any(text.startswith(fault) for text in found)


def test_dense_products(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    dense_products = importlib.import_module("benchmarks.dense_products")
    file = tmp_path / "dense.json"
    arguments = ["--graphs", "kron8:8", "--types", "float32", "--calls", "2", "-o", str(file)]
    monkeypatch.setattr(sys, "argv", ["dense_products", *arguments])
    dense_products.main()
    graph = json.loads(file.read_text())["graphs"]["kron8"]
    assert graph["vertices"] == 256 and graph["faults"] == []
    found = graph["products"]["float32 8"]
    assert all(len(found[system]["times"]) == 2 for system in ("spgraph", "scipy"))
    assert found["speedup"] > 0
    assert "float32 8" in capsys.readouterr().out


def test_others_are_counted_while_a_run_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of this process and of those that it has waited for is none of others."""
    used = [100.0]
    monkeypatch.setattr(machine, "_busy_seconds", lambda: used[0])
    moment = machine.time.perf_counter() - 10
    assert machine.others_cores_since(moment, 95.0) == pytest.approx(0.5, abs=0.02)
    assert machine.others_cores_since(moment + 9.5, 95.0) is None  # too short to tell
    assert machine.others_cores_since(moment, None) is None
    monkeypatch.setattr(machine, "_beginning", lambda: (moment, used[0]))
    file = tmp_path / "x.json"
    result = {"machine": {"others_cores_during": None}, "source": {"commit": "c"}}
    for spent, most in ((1.0, 0.1), (4.0, 0.4), (2.0, 0.4)):  # the loudest counts
        used[0] = 100.0 + spent
        monkeypatch.setattr(machine, "_beginning", lambda: (moment, 100.0))
        machine.write(file, result)
        found = json.loads(file.read_text())["machine"]["others_cores_during"]
        assert found == pytest.approx(most, abs=0.01)


def test_what_was_waited_for_is_not_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    words = [tenths * ticks // 10 for tenths in (40, 10, 30, 999, 999, 5, 5, 0)]
    file = types.SimpleNamespace(read_text=lambda encoding: f"cpu  {' '.join(map(str, words))}\n")
    monkeypatch.setattr(machine, "pathlib", types.SimpleNamespace(Path=lambda path: file))
    monkeypatch.setattr(machine.os, "times", lambda: (1.0, 0.5, 2.0, 0.25, 99.0))
    assert machine._busy_seconds() == 9.0 - 3.75  # user, nice, system and interrupts


def test_other_processes_are_counted_and_loud_results_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = machine.others_cores(0.05)
    assert found is None or found >= 0
    counts = iter([100.0, 100.3])
    monkeypatch.setattr(machine, "_busy_seconds", lambda: next(counts))
    assert machine.others_cores(0.1) == pytest.approx(3.0)
    graphs = {"road": {"missing": "no file"}, "kron": {"missing": "a peer", "tasks": {}}}
    for day, others, during in (("01", None, None), ("02", 0.1, 0.2), ("03", 0.3, 0), ("04", 0, 1)):
        place = {"others_cores": others, "others_cores_during": during}
        text = json.dumps({"machine": place, "graphs": graphs})
        (tmp_path / f"bfs_cpu_2026-01-{day}.json").write_text(text)
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    name, result = tables.newest("bfs_cpu")
    assert name == "bfs_cpu_2026-01-02.json" and list(result["graphs"]) == ["kron"]
    (tmp_path / "bfs_cpu_2026-01-01.json").unlink()
    (tmp_path / "bfs_cpu_2026-01-02.json").unlink()
    with pytest.raises(SystemExit, match="no file of bfs_cpu"):
        tables.newest("bfs_cpu")
