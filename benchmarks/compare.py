"""Two result files of one benchmark, cell by cell: new time / old time, the worst first.

A cell is a time that both files hold at the same place; a time that only one of them holds is
listed. With --limit the exit code is 1 where a cell of spgraph is slower than that many times the
old one, or is gone. Cells of peers are shown, as a measure of noise, and judged by nobody.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
from collections.abc import Iterator
from typing import Any

Cells = dict[str, float]

# the last part of a cell's place, or how it ends
TIMES = ("median", "ms", "us")
ENDINGS = ("_ms", "_us", "_s", " ms", "_time", "_validate", "graph_generation")
NOT_TIMES = ("per_s", "load_s", "numba_import_s", "stddev_time", "stddev_validate", "first_ms")
PEERS = ("cugraph", "cupyx", "graphblas", "igraph", "networkit", "networkx", "scipy", "gapbs")
# parts of a place that every cell of a file has
NO_PLACES = {"graphs", "runs", "matrices", "tasks", "systems", "results", "rows", "median"}
# what tells the entries of a list of results apart
KEYS = ("graph", "algorithm", "task", "devices", "exchange", "threads", "loaded", "switch", "value")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("old", type=pathlib.Path, metavar="OLD.json")
    parser.add_argument("new", type=pathlib.Path, metavar="NEW.json")
    parser.add_argument("--limit", type=float, help="exit with 1 where new / old is above this")


def run(given: argparse.Namespace) -> int:
    """Print the comparison; 1 where --limit is broken."""
    old, new = (json.loads(path.read_text(encoding="utf-8")) for path in (given.old, given.new))
    if old.get("benchmark") != new.get("benchmark"):
        raise SystemExit(
            f"compare: expected two files of one benchmark, got {old.get('benchmark')!r} and "
            f"{new.get('benchmark')!r}"
        )
    for line in places(old, new):
        print(line)
    before, after = dict(cells(old)), dict(cells(new))
    both = sorted(before.keys() & after.keys(), key=lambda cell: -after[cell] / before[cell])
    if not both:
        raise SystemExit("compare: the files have no cell in common")
    width = max(map(len, both))
    for cell in both:
        ratio = after[cell] / before[cell]
        print(f"{cell:<{width}}  {before[cell]:10.4g} {after[cell]:10.4g}  {ratio:6.3f}")
    ours = [cell for cell in both if not is_peer(cell)]
    gone = sorted(cell for cell in before.keys() - after.keys() if not is_peer(cell))
    for what, names in (("gone", gone), ("new", sorted(after.keys() - before.keys()))):
        for cell in names:
            print(f"{cell}: {what}")
    logs = [math.log(after[cell] / before[cell]) for cell in ours]
    if logs:
        mean = math.exp(math.fsum(logs) / len(logs))
        print(f"{len(ours)} cells of spgraph, geometric mean of new / old {mean:.3f}")
    if given.limit is None:
        return 0
    slower = [cell for cell in ours if after[cell] > given.limit * before[cell]]
    print(f"above {given.limit}: {len(slower)}; gone: {len(gone)}")
    return 1 if slower or gone else 0


def cells(result: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """(its place, its time) of each time in a result file, in the file's unit."""
    yield from _cells({k: v for k, v in result.items() if k not in ("how", "machine")}, ())


def _cells(value: Any, place: tuple[str, ...]) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _cells(inner, (*place, str(key)))
    elif isinstance(value, list):
        for inner in value:
            if isinstance(inner, dict):
                given = {key: inner[key] for key in KEYS if inner.get(key, False) is not False}
                name = " ".join(key if of is True else str(of) for key, of in given.items())
                if name:
                    yield from _cells(inner, (*place, name))
    elif isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        last = place[-1]
        timed = last in TIMES or last.endswith(ENDINGS)
        if timed and not last.endswith(NOT_TIMES):
            yield " / ".join(part for part in place if part not in NO_PLACES), float(value)


def is_peer(cell: str) -> bool:
    """Whether the time is another library's."""
    return any(part.startswith(PEERS) for part in cell.split(" / "))


def places(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Where both were measured, and what differs between the machines and the versions."""
    for name, result in (("old", old), ("new", new)):
        commit = (result.get("source") or {}).get("commit") or "unknown"
        yield f"{name}: {result.get('date', '?')}, commit {commit[:7]}"
    for what in ("machine", "versions"):
        one, other = old.get(what) or {}, new.get(what) or {}
        for key in sorted(one.keys() | other.keys()):
            if one.get(key) != other.get(key):
                yield f"{what}, {key}: {one.get(key)} -> {other.get(key)}"
