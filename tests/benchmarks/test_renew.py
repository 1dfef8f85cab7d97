"""`python -m benchmarks renew` and `peers`: what is run, in what time, and what becomes of it."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__, renew
from benchmarks.cpu import gapbs_programs
from benchmarks.measuring import arguments
from benchmarks.pages import speed_tables
from spgraph.cli.commands import gap, graph500

# writes a result as a benchmark does, or fails, or does not end
BENCHMARK = """
import json, pathlib, sys, time
file = pathlib.Path(sys.argv[sys.argv.index("-o") + 1])
before = json.loads(file.read_text())["parts"] if file.exists() else []
result = {"machine": {"others_cores": 0.0}, "arguments": sys.argv[1:]}
result["parts"] = before + [sys.argv[-1]]
file.write_text(json.dumps(result))
if "fails" in sys.argv:
    sys.exit("it failed, " + str(result))
if "waits" in sys.argv:
    time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "made.py").write_text(BENCHMARK)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    parts = (
        renew.Part("one_cpu", "cpu", 100, "made OPTIONS one", ("data",)),
        renew.Part("two_cpu", "cpu", 100, "made waits OPTIONS"),
        renew.Part("three_cpu", "cpu", 100, "made fails OPTIONS"),
        renew.Part("four_gpu", "gpu", 100, "made OPTIONS", ("cugraph",)),
        renew.Part("five_cpu", "cpu", 100, "made record OPTIONS", ("gapbs",)),
        renew.Part("six_cpu", "cpu", 100, "made OPTIONS some"),
        renew.Part("six_cpu of others", "cpu", 100, "made OPTIONS others"),
        renew.Part("six_cpu of none", "cpu", 100, "made OPTIONS fails"),
    )
    monkeypatch.setattr(renew, "PARTS", parts)
    return tmp_path


def given(folder: Path, *more: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    renew.add_arguments(parser)
    return parser.parse_args(["--folder", str(folder), "--commit", "abc", *more])


def test_each_has_a_file_of_its_own(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--on", "cpu,gpu", "--only", "one_cpu,four_gpu,five_cpu", "--data", str(folder)]
    with tarfile.open(folder / "bundle.tar", "w") as archive:
        archive.add(folder / "made.py", "made.py")
    assert renew.run(given(folder, *more, "--cugraph", str(folder / "bundle.tar"))) == 0
    assert renew.run(given(folder, *more)) == 0
    names = sorted(path.name.replace(today(), "DAY") for path in folder.glob("*.json"))
    assert names == [f"{kind}_DAY{n}.json" for kind in ("four_gpu", "one_cpu") for n in ("", "_2")]
    first = json.loads((folder / f"one_cpu_{today()}.json").read_text())["arguments"]
    assert first[2:] == ["--commit", "abc", "--data", str(folder), "one"]
    assert json.loads((folder / f"four_gpu_{today()}.json").read_text())["arguments"][-2] == (
        "--cugraph"
    )
    said = capsys.readouterr().out
    assert "five_cpu: GAPBS is missing" in said and "not done: none" in said


def test_what_is_not_done_is_not_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its file has a name that no table looks for; parts for which there is no time are named."""
    more = ["--on", "cpu", "--only", "one_cpu,three_cpu"]
    assert renew.run(given(folder, *more)) == 1
    assert (folder / f"stopped_three_cpu_{today()}.json").exists()
    said = capsys.readouterr().out
    assert "exit code 1" in said and "it failed" in said and "not done: three_cpu" in said
    assert renew.run(given(folder, "--on", "cpu", "--only", "one_cpu", "--within", "20")) == 1
    assert "one_cpu: left out, 20 s are left" in capsys.readouterr().out
    for words, message in (
        (["--only", "seven"], "--only: expected some of one_cpu, .*; got 'seven'"),
        (["--on", "tpu"], "--on: expected some of cpu, gpu, gpus; got 'tpu'"),
        (["--on", "cpu", "--only", "four_gpu"], "none of four_gpu is measured on cpu"),
    ):
        with pytest.raises(SystemExit, match=message):
            renew.run(given(folder, *words))


def test_a_benchmark_in_pieces_has_one_file(folder: Path) -> None:
    """Pieces of one call share it; those of a later call are added where that is asked for. What
    a piece that fails has done to it is put aside.
    """

    def parts(name: str) -> list[str]:
        return json.loads((folder / name).read_text())["parts"]

    on, first, second = ["--on", "cpu"], f"six_cpu_{today()}.json", f"six_cpu_{today()}_2.json"
    assert renew.run(given(folder, *on, "--only", "six_cpu,six_cpu of others")) == 0
    assert parts(first) == ["some", "others"]
    assert renew.run(given(folder, *on, "--only", "six_cpu")) == 0
    assert renew.run(given(folder, *on, "--add", "--only", "six_cpu of others")) == 0
    assert parts(first) == parts(second) == ["some", "others"]
    assert renew.run(given(folder, *on, "--add", "--only", "six_cpu of none")) == 1
    assert parts(second) == ["some", "others"] and parts(f"stopped_{second}")[-1] == "fails"
    older = folder / first.replace(today(), "2026-01-01_9")
    (folder / first).rename(older), (folder / second).unlink()
    assert renew.run(given(folder, *on, "--add", "--only", "six_cpu")) == 0
    assert parts(first) == ["some"] and parts(older.name) == ["some", "others"]


def test_one_that_does_not_end_is_ended(folder: Path) -> None:
    code, _ = renew.ended(["made", "waits", "-o", str(folder / "x.json")], 1.0)
    assert code == -1


def today() -> str:
    return arguments.free(Path("none"), "x").stem[2:]


def test_the_benchmarks_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each makes a file that the documents show, and takes what it is given."""
    parser = argparse.ArgumentParser()
    renew.add_arguments(parser)
    options = parser.parse_args("--commit c --graphs kron8 --data d --gapbs b --cugraph u".split())
    assert len({part.name for part in renew.PARTS}) == len(renew.PARTS)
    assert not any("," in part.name for part in renew.PARTS)  # names are given with commas between
    shown = {*speed_tables.TABLES, "graph500_gpu", "graph500_cpu", "gap_gpu", "gap_cpu"}
    suites = {"graph500": graph500.command, "gap": gap.command}
    monkeypatch.setattr(gapbs_programs, "missing", lambda builds: None)
    for part in renew.PARTS:
        assert part.kind in shown
        module, *words = renew.command(part, Path("out.json"), options)
        if module == "benchmarks":
            command = importlib.import_module(f"benchmarks.{words[0]}")
            parser = argparse.ArgumentParser()
            command.add_arguments(parser)
            given = parser.parse_args(words[1:])
            if words[0] == "record":
                suites[given.suite].make_context(given.suite, given.arguments)
        else:
            monkeypatch.setattr(sys, "argv", [module, *words])
            given = importlib.import_module(module)._options()
        assert given.output == Path("out.json") and given.commit == "c"


def test_peers_names_those_that_are_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[Any] = []
    monkeypatch.setattr(renew, "run", lambda given: ran.append(given) or 0)
    assert __main__.main(["peers", "--graphs", "kron8", "--folder", "out"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert "SciPy: there" in said and "GAPBS: missing, give --gapbs BUILDS" in said
    assert __main__.main(["peers", "--device", "cuda", "--cugraph", "bundle.tar"]) == 0
    assert "cuGraph: there" in capsys.readouterr().out
    cpu, gpu = ran
    assert (cpu.on, cpu.graphs, cpu.folder) == ("cpu", "kron8", Path("out"))
    assert (gpu.on, gpu.folder, gpu.within) == ("gpu", arguments.RESULTS, None)
    names = {part.name: part.on for part in renew.PARTS}
    for ran_of in ran:
        assert {names[name] for name in ran_of.only.split(",")} == {ran_of.on}


def test_the_newest_file_is_the_last_of_its_day(tmp_path: Path) -> None:
    """Also behind nine others, and where the first ones of the day are gone."""
    days = [f"seeds_gpu_{day}" for day in ("2026-01-01", today())]
    for name in (f"{days[1]}_9", f"{days[1]}_2", f"{days[0]}_10", f"{days[0]}_11"):
        (tmp_path / f"{name}.json").write_text("{}")
    made = arguments.free(tmp_path, "seeds_gpu")
    assert made.name == f"{days[1]}_10.json"
    made.write_text("{}")
    names = [path.stem for path in arguments.files(tmp_path, "seeds_gpu")]
    assert names == [f"{days[0]}_10", f"{days[0]}_11", *(f"{days[1]}_{n}" for n in (2, 9, 10))]
    assert arguments.free(tmp_path, "bfs_gpu").name == f"bfs_gpu_{today()}.json"
