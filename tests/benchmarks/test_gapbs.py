"""GAPBS as a peer: its graph files, what is read of its output; its programs are stand-ins here."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import spgraph as sg
from benchmarks.cpu import gapbs_programs
from benchmarks.measuring import machine, rows

ROOT = Path(__file__).resolve().parents[2]
# what a program of GAPBS prints, and its dump: here of one call from the second source
PROGRAM = """#!/bin/sh
[ "$OMP_NUM_THREADS $GAP_SOURCES $1 $3 $4" = "2 0,2 -f -n 3" ] || exit 1
printf 'Trial Time:          0.00150\\nTrial Time: 0.00250\\nTrial Time: 0.00350\\nResult: 7\\n'
printf '\\001\\0\\0\\0\\002\\0\\0\\0\\002\\0\\0\\0' > "$GAP_DUMP"
"""


@pytest.fixture
def gapbs(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    return gapbs_programs


@pytest.fixture
def suite(gapbs: ModuleType, tmp_path: Path) -> Any:
    """On the directed path 0 -> 1 -> 2 with weights 5 and 6, and one build."""
    for name in ("bfs", "tc"):
        (tmp_path / "builds" / "o3").mkdir(parents=True, exist_ok=True)
        (tmp_path / "builds" / "o3" / name).write_text(PROGRAM)
        (tmp_path / "builds" / "o3" / name).chmod(0o755)
    W = sg.Matrix.from_coo([0, 1], [1, 2], np.array([5, 6], np.int32), nrows=3, ncols=3)
    return gapbs.Suite(tmp_path / "builds", tmp_path, W.pattern(), W)


def test_graph_file_has_both_directions_of_a_directed_graph(suite: Any, tmp_path: Path) -> None:
    """One byte, two counts, then pointers of 64 bits and ids beside weights, for A and for A.T."""
    data = (tmp_path / "graph.wsg").read_bytes()
    assert data[0] == 1
    words = np.frombuffer(data[1:], np.int32)
    pointers = [*words[4:12:2], *words[16:24:2]]
    assert words[:4:2].tolist() == [2, 3] and pointers == [0, 1, 2, 2, 0, 0, 1, 2]
    assert words[12:16].tolist() == [1, 5, 2, 6] and words[24:].tolist() == [0, 5, 1, 6]
    plain = np.frombuffer((tmp_path / "graph.sg").read_bytes()[1:], np.int32)
    assert plain[12:14].tolist() == [1, 2] and plain.size == words.size - 4


def test_times_and_the_result_are_read(gapbs: ModuleType, suite: Any) -> None:
    program = gapbs.Program("o3", "bfs", ())
    run = suite.run(program, "bfs", [0, 2], 3, 2)
    assert run.times == pytest.approx([1.5, 2.5, 3.5]) and run.result.tolist() == [1, 2, 2]
    assert 1 << 16 < run.peak_bytes < 1 << 30
    assert suite.run(gapbs.Program("o3", "tc", ()), "tc", [0, 2], 3, 2).result == 7
    with pytest.raises(RuntimeError, match="bfs: exit code 1"):
        suite.run(program, "bfs", [0, 2], 4, 2)
    assert gapbs.missing(suite.builds) is None and gapbs.missing(suite.folder / "no") is not None


def test_every_variant_and_delta_is_tried(gapbs: ModuleType, suite: Any) -> None:
    assert len(suite.programs("sssp", [0])) == len(gapbs.DELTAS)
    assert [one.name for one in suite.programs("pr", [0])] == ["pr", "pr_spmv"]
    assert suite.programs("bc", [0, 2])[0].options == ("-i", "2")


def test_levels_of_parents(gapbs: ModuleType) -> None:
    parents = np.array([3, 0, -1, 3, 1], np.int32)
    assert gapbs.levels(parents).tolist() == [1, 2, -1, 0, 3]


def test_summary_takes_cells_of_a_millisecond(gapbs: ModuleType) -> None:
    cpu = importlib.import_module("benchmarks.cpu.gapbs")
    systems = {
        "spgraph": rows.statistics([2.0, 4.0]),
        "spgraph parents": rows.statistics([0.5]),
        "gapbs": rows.statistics([1.0, 3.0]),
        "scipy": {"error": "wrong"},
    }
    assert systems["gapbs"]["quartiles"] == [1.5, 2.5] and systems["gapbs"]["min"] == 1.0
    row = {"task": "bfs", "threads": 2, "loaded": False, "systems": systems, **rows.ratios(systems)}
    assert row["best"] == "gapbs" and row["ratios"] == {"spgraph": 1.5, "spgraph parents": 0.25}
    found = cpu.summary({"path": {"rows": [row]}, "other": {"missing": "no file"}})["2 threads"]
    assert found == {"cells": 1, "above": {"path bfs": 1.5}, "geometric_mean": 1.5}
    entry = {"vertices": 3, "directed_edges": 2, "rows": [row]}
    assert "scipy: wrong" in cpu.table("path", entry) and "x 1.50" in cpu.table("path", entry)


class Answers:
    """A suite whose programs answer as spgraph does, in a millisecond."""

    directed = False

    def __init__(self, builds: Path, folder: Path, A: sg.Matrix, W: sg.Matrix) -> None:
        self.A = A

    def fastest(self, kernel: str, sources: list[int], threads: int) -> Any:
        return gapbs_programs.Program("o3", kernel, ())

    def run(self, program: Any, kernel: str, sources: list[int], calls: int, threads: int) -> Any:
        last = sources[(calls - 1) % len(sources)]
        result = {
            "bfs": lambda: sg.bfs(self.A, last).parent.to_numpy(fill=-1),
            "cc": lambda: sg.connected_components(self.A).to_numpy(),
            "tc": lambda: sg.triangle_count(self.A) + 1,
        }[kernel]()
        return gapbs_programs.Run([1.0] * calls, result, 5000)


def test_every_row_is_complete(
    gapbs: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two conditions of three tasks; a wrong answer is not timed."""
    cpu = importlib.import_module("benchmarks.cpu.gapbs")
    monkeypatch.setattr(gapbs, "Suite", Answers)
    monkeypatch.setattr(cpu, "use_threads", lambda threads: None)
    monkeypatch.setattr(cpu, "PAUSE", 0)
    monkeypatch.setattr(cpu.gapbs_programs, "endless_loops", lambda count: contextlib.nullcontext())
    options = argparse.Namespace(data=tmp_path, threads=[1], loaded="kron8", processors=[0])
    vars(options).update(builds=tmp_path, tasks="bfs,components,triangles", seconds=1e-4)
    entry = cpu.measure("kron8", options)
    machine.write(
        tmp_path / "out.json", {"machine": {}, "source": {"commit": "0"}, "rows": entry["rows"]}
    )
    result = json.loads((tmp_path / "out.json").read_text())
    assert rows.incomplete(result) == [] and len(result["rows"]) == 6
    for row in result["rows"]:
        found = row["systems"]["gapbs"]
        assert found.get("median") == (None if row["task"] == "triangles" else 1.0)
        assert ("error" in found) == (row["task"] == "triangles")
        assert found.get("peak_bytes", 5000) == 5000
