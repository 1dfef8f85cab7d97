"""Comparing result files, and machine code."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

import spgraph.cli
from benchmarks import report
from benchmarks.__main__ import main
from benchmarks.compare import cells, timed, verdict
from benchmarks.measuring import machine, rows
from benchmarks.pages import figures, speed_tables
from spgraph.backends.cuda.runtime import offline

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"


def result(**times: float) -> dict[str, Any]:
    """A result file of one graph."""
    tasks = {name: {"spgraph": {"times": [[t]], "median": t}} for name, t in times.items()}
    return {"benchmark": "made", "graphs": {"g": {"vertices": 3, "tasks": tasks}}}


def compared(folder: Path, old: Any, new: Any, *options: str) -> int:
    """The exit code of the command."""
    for name, content in (("old", old), ("new", new)):
        (folder / f"{name}.json").write_text(json.dumps(content))
    return main(["compare", str(folder / "old.json"), str(folder / "new.json"), *options])


def test_the_worst_comes_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compared(tmp_path, result(a=1, b=2, c=4), result(a=1, b=4, c=2)) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("g")]
    assert [(line[2], *line[7:]) for line in lines] == [
        ("b", "2.000", "timed", "once"),
        ("a", "1.000", "timed", "once"),
        ("c", "0.500", "timed", "once"),
    ]


@pytest.mark.parametrize(
    ("new", "limit", "code"),
    [
        (result(a=1.04), "1.05", 0),
        (result(a=1.06), "1.05", 1),
        (result(a=1, b=9), "1.05", 0),
        (result(b=1, c=1), "1.05", 1),  # a is gone
    ],
)
def test_the_limit(new: Any, limit: str, code: int, tmp_path: Path) -> None:
    old = result(a=1) if code == 0 or "b" not in str(new) else result(a=1, b=1)
    assert compared(tmp_path, old, new, "--limit", limit) == code


def test_what_is_within_the_noise_is_not_called_a_change() -> None:
    """Times of a source are held against the old ones from that source."""

    def cell(*times: Any) -> Any:
        row = {"median": 1.0, "times": list(times)}
        (found,) = timed({"graphs": {"g": {"bfs": row}}}).values()
        return found

    slow, fast = [5.0, 5.1, 5.2, 5.3], [1.0, 1.1, 1.2, 1.3]
    assert verdict([(cell(*fast), cell(*slow))]) == "slower"
    assert verdict([(cell(*slow), cell(*fast))]) == "faster"
    wide = [0.5, 1.0, 1.5, 5.0]
    assert verdict([(cell(*fast), cell(*wide))]) == verdict([(cell(*wide), cell(*fast))]) == "noise"
    assert verdict([(cell(1.0), cell(9.0))]) == "timed once"
    # the one source takes five times as long as the other; each is a fifth slower than it was
    longer = [[1.2 * t for t in times] for times in (slow, fast)]
    assert verdict([(cell(slow, fast), cell(*longer))]) == "slower"
    assert verdict([(cell(*slow, *fast), cell(*longer[0], *longer[1]))]) == "noise"
    # in turns: all pairs have to agree, and then one time each is enough
    assert verdict([(cell(*fast), cell(*slow)), (cell(*fast), cell(*wide))]) == "noise"
    assert verdict([(cell(1.0), cell(2.0)), (cell(1.5), cell(1.6))]) == "slower"
    assert verdict([(cell(1.0), cell(2.0)), (cell(1.5), cell(1.4))]) == "noise"
    kinds = {"device_ms": 2.0, "device_times": [[2.0, 3.0]], "wall_ms": 4.0, "wall_times": [4.0]}
    found = timed({"graphs": {"g": kinds}})
    assert found["g / device_ms"].times == [[2.0, 3.0]] and found["g / wall_ms"].times == [[4.0]]


def test_files_measured_in_turns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Old, new, old, new: what is slower in one pair alone breaks no limit; peers tell how the
    machine changed.
    """
    made = (result(a=1, b=1), result(a=1.2, b=1.3), result(a=1.2, b=1), result(a=1.1, b=1.4))
    for number, (content, scipy) in enumerate(zip(made, (1, 2, 2, 1), strict=True)):
        content["graphs"]["g"]["tasks"]["a"]["scipy"] = {"median": scipy}
        (tmp_path / f"{number}.json").write_text(json.dumps(content))
    files = [str(tmp_path / f"{number}.json") for number in range(4)]
    assert main(["compare", *files, "--limit", "1.1"]) == 1
    lines = capsys.readouterr().out.splitlines()
    cells = {tuple(line.split()[2:5:2]): line.split()[5:] for line in lines if line[0] == "g"}
    assert cells["b", "spgraph"] == ["1", "1.35", "1.350", "1.300", "to", "1.400", "slower"]
    assert cells["a", "spgraph"][2:] == ["1.058", "0.917", "to", "1.200", "noise"]
    mean = "geometric mean of new / old"
    assert f"2 cells of spgraph, {mean} 1.195, from 1.058 to 1.350: 1 slower, 0 faster" in lines[-3]
    assert f"1 cells of peers, {mean} 1.250, from 1.250 to 1.250" in lines[-2]
    assert lines[-1] == "above 1.1: 1; gone: 0"
    assert main(["compare", *files, "--limit", "1.3"]) == 0
    with pytest.raises(SystemExit, match="pairs of files, old and new, got 3 files"):
        main(["compare", *files[:3]])


def test_peers_are_not_judged(tmp_path: Path) -> None:
    old, new = result(a=1), result(a=1)
    for content, time in ((old, 1.0), (new, 5.0)):
        content["graphs"]["g"]["tasks"]["a"]["scipy"] = {"median": time}
    assert compared(tmp_path, old, new, "--limit", "1.05") == 0


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="one benchmark"):
        compared(tmp_path, result(a=1), result(a=1) | {"benchmark": "other"})
    with pytest.raises(SystemExit, match="no cell"):
        compared(tmp_path, result(a=1), result(b=1))


TIMED = sorted(RESULTS.glob("*_[cg]pu_*.json"))


@pytest.mark.parametrize("path", TIMED, ids=lambda path: path.stem)
def test_every_result_file_has_cells(path: Path) -> None:
    content = json.loads(path.read_text())
    found = list(cells(content))
    assert len(found) > 5 and len(dict(found)) == len(found), "two cells at one place"
    if any("conditions" in entry for entry in machine.dictionaries(content)):
        assert rows.incomplete(content) == []  # older files have less


def test_machine_code_of_a_kernel() -> None:
    pytest.importorskip("cuda.bindings", reason="NVRTC: pip install cuda-bindings")
    from benchmarks.machine_code import read

    text = 'extern "C" __global__ void f(int* x) {{ {} }}'
    stack = (
        "int local[64]; for (int i = 0; i < 64; i++) local[x[i] & 63] = i; x[0] = local[x[1] & 63];"
    )
    small, other, large = (
        read(offline.compile_source(text.format(body), "sm_90"))["f"]
        for body in ("x[0] = 1;", "x[0] = 2;", stack)
    )
    assert small.text != other.text and small[1:] == other[1:]
    assert large.size > small.size and large.registers >= small.registers
    assert small.stack == 0 and large.stack >= 256


def test_a_renamed_kernel_is_known_by_its_code() -> None:
    from benchmarks.machine_code import Kernel, renamed

    walk, sweep, other = (Kernel(text, 64, 8, 0) for text in ("a", "b", "c"))
    old = {"walks lengths": walk, "walks again": walk, "fill fill": sweep, "gone gone": sweep}
    new = {"paths again": walk, "paths lengths": walk, "fill fill": other, "new new": other}
    assert renamed(old, new) == {"walks again": "paths again", "walks lengths": "paths lengths"}
    assert renamed(old, old) == {}


def test_the_documents_are_as_the_result_files_have_them() -> None:
    """If this fails, `python -m benchmarks report` brings them up to date."""
    for path, text in report.documents().items():
        assert path.read_text(encoding="utf-8") == text, path.name


def test_a_number_that_is_changed_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "speed.md"
    text = speed_tables.PAGES[0].read_text(encoding="utf-8")
    row = text[text.index("<!-- bfs_cpu -->") :].splitlines()[5]
    page.write_text(text.replace(row, row.replace("|", "| 1", 1)), encoding="utf-8")
    monkeypatch.setattr(speed_tables, "PAGES", (page,))
    monkeypatch.setattr(figures, "DOCS", tmp_path)
    assert report.documents()[page] == text != page.read_text(encoding="utf-8")
    assert report.run(argparse.Namespace()) == 0
    assert page.read_text(encoding="utf-8") == text
    assert {path.name for path in tmp_path.iterdir()} == {page.name, *figures.FIGURES}


@pytest.mark.parametrize(
    ("command", "some"),
    [
        ("graph500 --scale 6 --roots 2", {"construction_time", "sssp_median_time"}),
        ("gap kron --scale 6 --kernel cc --trials 2", {"kernels / cc"}),
    ],
)
def test_what_the_commands_measure_is_known(
    command: str, some: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert spgraph.cli.main([*command.split(), "--format", "json"]) == 0
    found = dict(cells(json.loads(capsys.readouterr().out)))
    assert some <= found.keys() and not [name for name in found if "TEPS" in name]
