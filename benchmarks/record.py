"""Run `spgraph graph500` or `spgraph gap`, and write what they measure as a result file.

What follows the name are the command's own arguments. A file that is there already, of the same
commit and machine, gets the run beside those that it has; a run whose results are not valid, or not
verified, is not written. Under mpirun the first process writes.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import pathlib
import tempfile
from typing import Any

import spgraph.cli
from benchmarks.measuring import machine, rows
from benchmarks.measuring.arguments import RESULTS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--commit", help="where the tree has no git history: which commit it is")
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("suite", choices=("graph500", "gap"))
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...")


def run(given: argparse.Namespace) -> int:
    """Run, write, print the rows; the exit code of the command."""
    facts = machine.facts(given.commit)
    # a stream that the command takes for a closed one is of no use: a file
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        with contextlib.redirect_stdout(said):
            code = spgraph.cli.main([given.suite, *given.arguments, "--format", "json"])
        said.seek(0)
        text = said.read()
    if not text:  # not the process that prints, or an error, which was said
        return code
    found = json.loads(text)
    if code:
        print(f"record: {given.suite} is not valid: nothing is written")
        return code
    unverified = [name for name, run in found.get("kernels", {}).items() if not run["verified"]]
    if unverified:
        print(f"record: {unverified[0]} is not verified: nothing is written; leave out --no-verify")
        return 1
    device = "cuda" if found["device"].startswith("cuda") else "cpu"
    entry = {"command": facts["command"], **found}
    entry["results"] = (graph500_rows if given.suite == "graph500" else gap_rows)(found, device)
    kind = f"{given.suite}_{'gpu' if device == 'cuda' else 'cpu'}"
    today = datetime.datetime.now(datetime.UTC).date()
    output = given.output or RESULTS / f"{kind}_{today}.json"
    result = machine.begun(output, {"benchmark": kind, **facts, "unit": "ms", "runs": {}})
    add(result["runs"], name_of(found), entry)
    machine.write(output, result)
    print("\n".join([f"{name_of(found)}; ms", *map(line, entry["results"])]))
    print(f"written: {output.name}")
    return 0


def add(runs: dict[str, Any], name: str, entry: dict[str, Any]) -> None:
    """The run beside those that there are; GAP's kernels may come one after another."""
    if name in runs and "kernels" in entry:
        before = runs[name]
        others = [row for row in before["results"] if row["task"] not in entry["kernels"]]
        entry["results"] = others + entry["results"]
        entry["kernels"] = before["kernels"] | entry["kernels"]
        entry["command"] = f"{before['command']}; {entry['command']}"
    runs[name] = entry


def name_of(found: dict[str, Any]) -> str:
    """What tells a run from others of its benchmark."""
    if found["benchmark"] == "graph500":
        name = f"scale {found['SCALE']}, edgefactor {found['edgefactor']}"
    else:
        graph = found["graph"]
        name = pathlib.Path(graph.get("name") or graph["file"]).name
        name += f", scale {graph['scale']}" if "scale" in graph else ""
    shards = found.get("shards", 1)
    return f"{name}, {shards} shard{'s' * (shards > 1)} on {found['device']}"


def graph500_rows(found: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """A row a kernel, and of the checks of its trees; a root is a call."""
    made = []
    for task in ("bfs", "sssp"):
        runs, first_ms = found[f"{task}_runs"], 1e3 * found[f"{task}_first_time"]
        times = {"seconds": task, "validation_seconds": f"{task} validation"}
        for field, name in times.items():
            ms = [1e3 * run[field] for run in runs]
            seen = rows.of_the_process(first_ms if name == task else None, device)
            made.append({"task": name, **rows.row(ms, seen, median="ms")})
    return made


def gap_rows(found: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """A row a kernel; a trial is a call."""
    made = []
    for task, trials in found["kernels"].items():
        ms = [1e3 * seconds for seconds in trials["seconds"]]
        seen = rows.of_the_process(1e3 * trials["first_seconds"], device)
        made.append({"task": task, **rows.row(ms, seen, median="ms")})
    return made


def line(row: dict[str, Any]) -> str:
    """A row for a person."""
    low, high = row["quartiles"]
    rest = f"{low:.4f} to {high:.4f}, least {row['min']:.4f}"
    return f"  {row['task']:16} {row['ms']:10.4f}  ({rest})"
