"""The facts beside every measured number: machine, versions, commit, command, date; result files.

usage: python -m benchmarks.measuring.machine

Neither host names nor absolute paths are among them, so that a result file can be published.
"""

from __future__ import annotations

import datetime
import functools
import importlib.metadata
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from benchmarks.measuring.arguments import ROOT

# what a result may depend on, by the names that PyPI knows
PACKAGES = (
    "numpy scipy numba llvmlite cupy-cuda13x cupy-cuda12x networkit python-graphblas "
    "suitesparse-graphblas igraph pandas torch pylibcugraph-cu13 rmm-cu13"
).split()
OTHERS_MOST = 0.2  # cores that others may use before and in a run that is published
SAME = ("cpu", "cores", "pinned", "gpu")  # on machines whose times stand in one file
SETTINGS = "SPGRAPH_NUM_THREADS OMP_NUM_THREADS OMP_WAIT_POLICY NUMBA_NUM_THREADS".split()


def facts(commit: str | None = None) -> dict[str, Any]:
    """Everything known about this run, which begins now; `commit` is said where the tree has no
    history with it.
    """
    found = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": command(),
        "settings": {name: os.environ[name] for name in SETTINGS if name in os.environ},
        "machine": {
            "cpu": _cpu_model(),
            "cores": cores(),
            "pinned": pinned(),
            "load_average": [round(load, 2) for load in os.getloadavg()],
            "others_cores": others_cores(),
            "others_cores_during": None,
            "system": f"{platform.system()} {platform.machine()}",
            "gpu": _gpu(),
        },
        "versions": versions(),
        "source": _source(commit),
    }
    _beginning()
    return found


def begun(path: pathlib.Path, result: dict[str, Any]) -> dict[str, Any]:
    """`result`, which is to be written to `path`, or the result that is there, to which what is
    measured now is added; SystemExit where the two cannot stand in one file.
    """
    if not path.exists():
        return result
    old: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    places = [{k: each["machine"].get(k) for k in SAME} for each in (old, result)]
    for what, (one, other) in {
        **{key: (old[key], result[key]) for key in ("benchmark", "source")},
        "machine": (places[0], places[1]),
    }.items():
        if one != other:
            raise SystemExit(
                f"{path.name} has {what} {one}, not {other}: give another file with --output"
            )
    if result["command"] not in old["command"].split("; "):
        old["command"] += f"; {result['command']}"
    _loudest(old["machine"], "others_cores", result["machine"]["others_cores"])
    return old


def write(path: pathlib.Path, result: dict[str, Any]) -> None:
    """Write a result file, its commit in the conditions of every row (rows.py), and what others
    used of the processors since it was begun; an innermost list stays on one line.
    """
    _loudest(result["machine"], "others_cores_during", others_cores_since(*_beginning()))
    for found in dictionaries(result):
        if {"threads", "pinned", "load_average"} == found.keys():
            found["commit"] = result["source"]["commit"]
    text = json.dumps(result, indent=1)
    text = re.sub(
        r"\[[^][{}\"]*\]", lambda found: "[" + " ".join(found[0][1:-1].split()) + "]", text
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


def dictionaries(value: Any) -> Iterator[dict[str, Any]]:
    """All that a result holds, at any depth."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    for inner in value if isinstance(value, list) else ():
        yield from dictionaries(inner)


def command() -> str:
    """The command line; an absolute path in it is cut down to its last part."""
    main = sys.modules["__main__"]
    module = getattr(getattr(main, "__spec__", None), "name", None)
    program = ["-m", module] if module else [_short(sys.argv[0])]
    return " ".join(["python", *program, *map(_short, sys.argv[1:])])


def cores() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads() -> int:
    """How many threads spgraph runs on, and peers are told to."""
    from spgraph.backends.cpu.runtime import pool

    return pool.processors()


def pinned() -> list[int] | None:
    """The processors that this process may use, where it may not use all."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    mine = sorted(os.sched_getaffinity(0))
    return mine if len(mine) < (os.cpu_count() or 1) else None


def others_cores(seconds: float = 1.0) -> float | None:
    """How many processors other processes use, on average over the next `seconds`; None where the
    system does not say.
    """
    before = _busy_seconds()
    time.sleep(seconds)
    after = _busy_seconds()
    if before is None or after is None:
        return None
    return round(max(0.0, after - before) / seconds, 2)


def others_cores_since(moment: float, busy: float | None) -> float | None:
    """How many processors others have used, on average since a moment of perf_counter() at which
    they had used `busy` seconds. Processes that this one has started and waited for are no others.
    """
    now, seconds = _busy_seconds(), time.perf_counter() - moment
    if busy is None or now is None or seconds < 1:
        return None
    return round(max(0.0, now - busy) / seconds, 2)


def _loudest(place: dict[str, Any], name: str, cores: float | None) -> None:
    """Of a result that is made of several runs the louder one decides whether it is shown."""
    there = [each for each in (place.get(name), cores) if each is not None]
    place[name] = max(there, default=None)


def quiet(result: dict[str, Any]) -> bool:
    """Whether a result was measured on a machine that did nothing else, before the run and in it;
    older ones, which do not say, count as quiet.
    """
    found = (result["machine"].get(f"others_cores{when}") for when in ("", "_during"))
    return max(cores or 0.0 for cores in found) <= OTHERS_MOST


@functools.cache
def _beginning() -> tuple[float, float | None]:
    """When this process began to measure, and what others had used by then."""
    return time.perf_counter(), _busy_seconds()


def _busy_seconds() -> float | None:
    """The processor time that all but this process, and those that it has started and waited for,
    have used since the start of the system.
    """
    try:
        words = pathlib.Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
    except OSError:
        return None
    user, nice, system, _, _, *interrupts = map(int, words[1:8])
    used = (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")
    return used - sum(os.times()[:4])


def versions() -> dict[str, str]:
    """Python's and those of the packages that are installed."""
    import spgraph

    found = {"python": platform.python_version(), "spgraph": spgraph.__version__}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _short(argument: str) -> str:
    key, equals, value = argument.rpartition("=")
    return key + equals + (os.path.basename(value.rstrip("/")) if os.path.isabs(value) else value)


def _cpu_model() -> str:
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in text.splitlines() if "model name" in line]
    return names[0] if names else platform.machine()


def _gpu() -> dict[str, str] | None:
    asked = "name,driver_version,memory.total,clocks.max.sm,power.limit"
    line = _output("nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader")
    if not line:
        return None
    values = [value.strip() for value in line.splitlines()[0].split(",")]
    return dict(zip(asked.split(","), values, strict=False))


def _source(commit: str | None) -> dict[str, Any]:
    """The commit of the checkout, and whether a file differs from it; results do not count."""
    head = _output("git", "rev-parse", "HEAD")
    if commit or not head:  # a tree that was copied may carry the history of another
        return {"commit": commit, "dirty": None}
    git = ("git", "--no-optional-locks", "status", "--porcelain")
    return {"commit": head, "dirty": bool(_output(*git, "--", ".", ":!benchmarks/results"))}


def _output(*command: str) -> str:
    """What a command prints; nothing where it fails or is not there."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


if __name__ == "__main__":
    print(json.dumps(facts(), indent=2))
