"""Result files of `spgraph graph500` and `spgraph gap`, what is compared and shown of them, and the
drawing of scaling.
"""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks import compare, record
from benchmarks.__main__ import main
from benchmarks.measuring import machine, rows
from benchmarks.pages import scaling, speed_tables, tables

COMMIT = "0123456789"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "others_cores", lambda: 0.1)  # which takes a second
    monkeypatch.setattr(machine, "others_cores_since", lambda *since: 0.0)


def recorded(file: Path, command: str, commit: str = COMMIT) -> int:
    return main(["record", "--commit", commit, "-o", str(file), *command.split()])


def test_graph500(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs in one file; what is compared and what the page shows of them."""
    file = tmp_path / "graph500_cpu_2026-01-01.json"
    assert recorded(file, "graph500 --scale 6 --roots 3 --edgefactor 8") == 0
    assert recorded(file, "graph500 --scale 5 --roots 2 --shards 2 --trace") == 0
    result = json.loads(file.read_text())
    assert result["benchmark"] == "graph500_cpu" and result["source"]["commit"] == COMMIT
    one, two = "scale 6, edgefactor 8, 1 shard on cpu", "scale 5, edgefactor 16, 2 shards on cpu"
    assert list(result["runs"]) == [one, two]
    assert rows.incomplete(result) == []
    run = result["runs"][one]
    found = {row["task"]: row for row in run["results"]}
    assert list(found) == ["bfs", "bfs validation", "sssp", "sssp validation"]
    assert found["bfs"]["ms"] == pytest.approx(1e3 * run["bfs_median_time"], rel=1e-3)
    assert found["sssp"]["first_ms"] == pytest.approx(1e3 * run["sssp_first_time"], rel=1e-3)
    assert len(found["bfs"]["times"]) == 3 and found["bfs"]["conditions"]["commit"] == COMMIT
    assert result["runs"][two]["cost"]["bytes_sent"] > 0
    cells = dict(compare.cells(result))
    assert cells[f"{one} / bfs / ms"] == found["bfs"]["ms"] and f"{two} / sssp / ms" in cells
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    shown = speed_tables.graph500()
    rate = tables.milliseconds(run["bfs_harmonic_mean_TEPS"] / 1e9)
    assert (
        f"| 6 | 8 | 1 CPU shard | 3 | {rate} |" in shown
        and "| 5 | 16 | 2 CPU shards | 2 |" in shown
    )
    assert "commit 0123456" in shown


def test_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "gap_cpu_2026-01-01.json"
    assert recorded(file, "gap kron --scale 6 --kernel cc --kernel bc --trials 2") == 0
    result = json.loads(file.read_text())
    assert rows.incomplete(result) == [] and list(result["runs"]) == [
        "kron, scale 6, 1 shard on cpu"
    ]
    (run,) = result["runs"].values()
    assert [row["task"] for row in run["results"]] == ["cc", "bc"]
    assert run["results"][0]["first_ms"] > 0
    assert recorded(file, "gap kron --scale 6 --kernel tc --kernel bc --trials 2") == 0
    result = json.loads(file.read_text())
    (again,) = result["runs"].values()
    assert again["kernels"]["cc"] == run["kernels"]["cc"] and rows.incomplete(result) == []
    assert all(found["verified"] for found in again["kernels"].values())
    assert [row["task"] for row in again["results"]] == ["cc", "tc", "bc"]
    assert again["command"] == f"{run['command']}; {run['command']}"
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    average = tables.milliseconds(1e3 * run["kernels"]["cc"]["average"])
    line = f"| kron, scale 6, 1 shard on cpu | cc | 2 | yes | {average} |"
    assert line in speed_tables.gap() and "No run is recorded" in speed_tables.graph500()


def test_what_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run of another commit beside others, a wrong result, one that nobody verified, an error of
    the command.
    """
    file = tmp_path / "gap_cpu_2026-01-01.json"
    command = "gap kron --scale 6 --kernel cc --trials 1"
    assert recorded(file, command) == 0
    before = file.read_bytes()
    with pytest.raises(SystemExit, match="has source .* give another file with --output"):
        recorded(file, command, "another")
    assert recorded(file, "gap kron --scale 99") == 2
    assert recorded(file, f"{command} --no-verify") == 1
    assert "cc is not verified: nothing is written" in capsys.readouterr().out
    gap = record.spgraph.benchmarking.gap

    def wrong(*given: Any, **more: Any) -> Any:
        (found,) = gap(*given, **more)
        return [found._replace(failures=[["a label is no root"]])]

    monkeypatch.setattr(record.spgraph.benchmarking, "gap", wrong)
    assert recorded(file, command) == 1
    assert "not valid: nothing is written" in capsys.readouterr().out
    assert file.read_bytes() == before


def made(times: dict[tuple[str, int], float]) -> dict[str, Any]:
    """A result of distributed_gpu with one task, and PageRank in twice the time an iteration."""
    results: list[dict[str, Any]] = []
    for (graph, devices), ms in times.items():
        place = {"graph": graph, "devices": devices}
        place |= {"exchange": "peer"} if devices > 1 else {}
        results += [place | {"algorithm": "bfs", "ms": ms}]
        results += [place | {"algorithm": "pagerank 10", "ms": 20 * ms}]
        results += [place | {"algorithm": "pagerank 30", "ms": 60 * ms}]
        results += [place | {"exchange": "nccl", "algorithm": "bfs", "ms": 99.0}]
    names = dict.fromkeys(graph for graph, _ in times)
    graphs = {name: {"directed_edges": 32 << int(name[4:6])} for name in names}
    return {"graphs": graphs, "results": results, "machine": {"gpu": {"name": "a GPU"}}}


def test_scaling(monkeypatch: pytest.MonkeyPatch) -> None:
    times = {("kron24_16", 1): 1.0, ("kron25_16", 1): 3.0, ("kron25_16", 2): 2.0}
    times |= {("kron24_16", 2): 0.5, ("kron26_16", 4): 2.0, ("kron25_16", 4): 0.8}
    result = made(times)
    graph, faster = scaling.strong(result | {"graphs": {"kron25_16": {"directed_edges": 1}}})
    assert graph == "kron25_16"
    assert faster["bfs"] == [(1, 1.0), (2, 1.5), (4, pytest.approx(3.75))]
    assert faster["pagerank"] == [(n, pytest.approx(y)) for n, y in faster["bfs"]]
    chain, rates = scaling.weak(result)
    assert chain == ["kron24_16", "kron25_16", "kron26_16"]
    assert rates["bfs"] == [(1, 1.0), (2, 0.5), (4, 0.5)]
    del result["graphs"]["kron26_16"]
    monkeypatch.setattr(scaling.tables, "newest", lambda name: ("", result))
    picture = scaling.picture()
    assert re.findall(r">bfs ([\d.]+)</text>", picture) == ["3.75", "0.50"]
    assert picture.count("<polyline") > 2 * 3 and "strong: kron25_16" in picture
    names = scaling.spread({"a": 10.0, "b": 12.0, "c": 329.0, "d": 330.0}, 15)
    places = sorted(names.values())
    assert places[-1] <= 330
    assert min(b - a for a, b in itertools.pairwise(places)) >= 15
