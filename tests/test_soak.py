"""The soak's own tests: a few hundred cases hold, planted defects are caught and reproduced."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from soak import command, single
from soak.pools import Pool
from soak.single import KINDS, Place, Seed

import spgraph as sg
from spgraph.backends import cpu

SOAK = Path(__file__).parent / "soak"
CPU = Place()


def few_kernels(number: int = 7) -> Pool:
    """A pool whose kernels are few, and mostly those of other tests."""
    pool = Pool(number)
    pool.x = pool.y = pool.z = np.dtype("int64")
    pool.index, pool.threads, pool.manner = ("int32", "int32"), 1, "special"
    pool.semirings, pool.binary = [("plus", "times")], ["minus"]
    pool.unary, pool.select = ["ainv"], ["tril", "valuegt"]
    pool.monoids, pool.accum = ["plus"], "minus"
    return pool


def faults(kind: str, cases: int, folder: Path, place: Place = CPU) -> dict[str, str]:
    """What is wrong, by seed, of the first cases of a pool."""
    from soak import algorithms, rules

    pool = few_kernels()
    seeds = [Seed(kind, pool.number, k) for k in range(cases)]
    if kind == "algorithms":  # of one of the two types of weights that they draw
        seeds = [s for s in seeds if algorithms.draw(pool, s.number).graph.dtype == np.int64]
    found = {str(seed): single.run(seed, pool, place, folder, rules.PENDING) for seed in seeds}
    return {seed: outcome.fault for seed, outcome in found.items() if outcome.fault is not None}


@pytest.mark.parametrize(
    ("kind", "cases"), [("operations", 400), ("algorithms", 130), ("files", 400)]
)
def test_cases_of_a_fixed_seed(kind: str, cases: int, tmp_path: Path) -> None:
    pytest.importorskip("graphblas", reason="the other side is not installed (extra dev)")
    pytest.importorskip("networkx", reason="the other side is not installed (extra networkx)")
    assert faults(kind, cases, tmp_path) == {}


@pytest.mark.gpu
@pytest.mark.parametrize(("kind", "cases"), [("operations", 400), ("algorithms", 80)])
def test_cases_on_a_gpu(kind: str, cases: int, tmp_path: Path) -> None:
    assert faults(kind, cases, tmp_path, Place("cuda")) == {}


def plant_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    write = cpu.write_matrix
    monkeypatch.setattr(
        cpu, "write_matrix", lambda out, t, mask, accum, replace: write(out, t, mask, accum, False)
    )


def plant_algorithms(monkeypatch: pytest.MonkeyPatch) -> None:
    count = sg.triangle_count
    monkeypatch.setattr(sg, "triangle_count", lambda A: count(A) - (A.nrows > 10))


def plant_files(monkeypatch: pytest.MonkeyPatch) -> None:
    read = sg.read

    def without_loops(path: Any, **options: Any) -> Any:
        return sg.select(read(path, **options), sg.semirings.indexunary.offdiag)

    monkeypatch.setattr(sg, "read", without_loops)


PLANTED = {
    "operations": (plant_operations, 200),
    "algorithms": (plant_algorithms, 60),
    "files": (plant_files, 60),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_planted_defect_is_caught(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("graphblas", reason="the other side is not installed (extra dev)")
    pytest.importorskip("networkx", reason="the other side is not installed (extra networkx)")
    plant, cases = PLANTED[kind]
    with monkeypatch.context() as planted:
        plant(planted)
        found = faults(kind, cases, tmp_path)
        again = faults(kind, cases, tmp_path)
    assert found and found == again
    assert not found.keys() & faults(kind, cases, tmp_path).keys()


def test_a_case_is_a_function_of_its_seed(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("graphblas", reason="the other side is not installed (extra dev)")
    for kind in KINDS:
        said = []
        for _ in range(2):
            assert command.main(["--reproduce", f"{kind}-7-31"]) in (0, 1)
            said.append(capsys.readouterr().out)
        assert said[0] == said[1] and "found:" in said[0] and "expected:" in said[0]
    with pytest.raises(ValueError, match="seed: expected KIND-POOL-NUMBER"):
        Seed.read("operations")


def test_without_the_other_library_the_cpu_answers_for_a_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from soak import operations

    monkeypatch.setattr(single, "peer_is_there", lambda: False)
    pool = few_kernels()
    case = next(c for c in (operations.draw(pool, k) for k in range(99)) if c.what == "diag")
    assert (
        single.difference(single.expected_of(case, Place("cuda")), single.library.answer(case))
        is None
    )


def test_the_command_writes_a_report(tmp_path: Path) -> None:
    output = tmp_path / "soak.json"
    asked = ["--only", "files", "--cases", "120", "--pool-cases", "60", "--output", str(output)]
    done = subprocess.run([sys.executable, str(SOAK), *asked], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(output.read_text())
    assert report["benchmark"] == "soak" and report["command"].startswith(
        "python tests/soak --only"
    )
    assert report["cases"] + report["left_out"] == 120 and report["failures"] == 0
    assert report["pools"] == [1, 2] and {"cpu", "cores"} <= report["machine"].keys()
    assert {"python", "numpy", "scipy"} <= report["versions"].keys() and "seconds" in report


def test_a_process_that_dies_is_a_failure(tmp_path: Path) -> None:
    progress = tmp_path / "progress"
    progress.write_bytes(bytes(8))
    code, _, said = command._watched(
        [sys.executable, "-X", "faulthandler", "-c", "import os; os.abort()"], progress
    )
    assert code and "Abort" in said
