"""Result files as the documents show them: the newest of each benchmark, numbers, tables."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks.measuring import arguments, machine
from benchmarks.measuring.arguments import RESULTS

Result = dict[str, Any]


def newest(benchmark: str) -> tuple[str, Result]:
    """The name and the content of the newest result file of a benchmark; one that was measured
    beside other work is passed over.
    """
    for path in reversed(arguments.files(RESULTS, benchmark)):
        result = json.loads(path.read_text())
        if machine.quiet(result):
            named = result.get("graphs", {}).items()
            there = {"graphs": {name: entry for name, entry in named if set(entry) != {"missing"}}}
            return path.name, result | there
    raise SystemExit(f"{RESULTS}: no file of {benchmark} from a machine that was quiet before")


def quiet(*benchmarks: str) -> list[tuple[str, Result]]:
    """The names and contents of all files of benchmarks from machines that were quiet before, the
    newest of each benchmark first.
    """
    found = []
    for benchmark in benchmarks:
        paths = reversed(arguments.files(RESULTS, benchmark))
        found += [(path.name, json.loads(path.read_text())) for path in paths]
    return [(name, result) for name, result in found if machine.quiet(result)]


def of_one_commit(*benchmarks: str) -> list[tuple[str, Result]]:
    """`newest` of each benchmark that has a file, and before it its others of the same commit, as
    runs on one GPU and on two are.
    """
    found = []
    for benchmark in benchmarks:
        files = quiet(benchmark)
        commit = newest(benchmark)[1]["source"]["commit"] if files else None
        found += [file for file in reversed(files) if file[1]["source"]["commit"] == commit]
    return found


def milliseconds(value: float | None) -> str:
    """Three significant digits; a dash for what was not measured, or is lost in noise."""
    if value is None or value <= 0:
        return "-"
    value = float(f"{value:.3g}")
    return f"{value:,.{max(0, 2 - math.floor(math.log10(value)))}f}"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def described(name: str, result: Result, *libraries: str, gpus: int = 1) -> str:
    """Where, when, with what and beside what other work a file was measured."""
    where, versions = result["machine"], result["versions"]
    place = f"{where['cores']} cores of {where['cpu']}"
    if where["gpu"] and "_cpu_" not in name:
        count = {0: "", 1: "one "}.get(gpus, f"up to {gpus} ")
        place = f"{count}{where['gpu']['name']}, driver {where['gpu']['driver_version']}"
    used = [f"{library} {versions[library]}" for library in libraries if library in versions]
    if "cugraph" in result:
        used.append(f"cuGraph {result['cugraph']['version']}")
    day, commit = result["date"][:10], result["source"]["commit"][:7]
    said = [place, f"{', '.join(used)}", *conditions(result), f"{day}, commit {commit}"]
    return f"`benchmarks/results/{name}`: {'; '.join(part for part in said if part)}."


def conditions(result: Result) -> Iterator[str]:
    """The threads of the rows of a file, and what else the machine did."""
    where = result["machine"]
    found = [each["conditions"] for each in machine.dictionaries(result) if "conditions" in each]
    threads = {row["threads"] for row in found}
    if threads:
        pinned = where.get("pinned")
        bound = f" bound to processors {', '.join(map(str, pinned))}" if pinned else ""
        plural = "s" * (max(threads) > 1)
        yield f"{' or '.join(map(str, sorted(threads)))} thread{plural}{bound}"
    load = " ".join(f"{average:.2f}" for average in where["load_average"])
    yield f"load average {load} before the run"
    others = (where.get("others_cores"), where.get("others_cores_during"))
    times = zip(others, ("before", "during"), strict=True)
    used = [f"{cores:.2f} {when}" for cores, when in times if cores is not None]
    if used:
        yield f"processors used by others {', '.join(used)}"


def same(*names: str) -> str:
    """That a table is of files that the page has described."""
    return f"Of {', '.join(f'`{name}`' for name in names)}, as above."


def graph(name: str, entry: Result) -> str:
    """A graph's name, or how it was generated."""
    return entry["origin"].partition(", seed")[0] if "seed" in entry["origin"] else name


def size(entry: Result) -> str:
    return f"{milliseconds(entry['directed_edges'] / 1e6)} M"
