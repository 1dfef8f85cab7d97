"""Result files of one benchmark, cell by cell: new time / old time, the worst first.

A cell is a time that the files hold at the same place; a time that only some of them hold is
listed. A change is called slower or faster only where the quartiles of the calls are apart, those
from a source beside the old ones from that source: the rest is the noise of the calls, or was timed
once. The noise of the machine, which may be slower for an hour, shows in the peers' cells: they do
not depend on this project, nobody judges them, and their mean and range stand below. To tell the
two apart, measure in turns, old, new, old, new, and give all the files in this order: then a cell
has a ratio a pair, of which the median is printed, and a change is called so where all pairs agree.
With --limit the exit code is 1 where a cell of spgraph is slower, or was timed once, and in all
pairs by more than that, or is gone.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import statistics
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

# the last part of a cell's place, or how it ends
TIMES = ("median", "ms", "us")
ENDINGS = ("_ms", "_us", "_s", " ms", "_time", "_validate", "graph_generation")
NOT_TIMES = ("per_s", "load_s", "numba_import_s", "stddev_time", "stddev_validate", "first_ms")
PEERS = ("cugraph", "cupyx", "graphblas", "igraph", "networkit", "networkx", "scipy", "gapbs")
NOISE, ONCE = "noise", "timed once"
# parts of a place that every cell of a file has
NO_PLACES = {"graphs", "runs", "matrices", "tasks", "systems", "results", "rows", "median"}
# what tells the entries of a list of results apart
KEYS = ("graph", "algorithm", "task", "devices", "exchange", "threads", "loaded", "switch", "value")


class Time(NamedTuple):
    """Of a cell: the figure, and the times that it is made of, a list for each source."""

    ms: float
    times: list[list[float]]


Cells = dict[str, Time]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("files", type=pathlib.Path, nargs="+", metavar="OLD.json NEW.json")
    parser.add_argument("--limit", type=float, help="exit with 1 where new / old is above this")


def run(given: argparse.Namespace) -> int:
    """Print the comparison; 1 where --limit is broken."""
    results = [json.loads(path.read_text(encoding="utf-8")) for path in given.files]
    if len(results) % 2:
        raise SystemExit(f"compare: expected pairs of files, old and new, got {len(results)} files")
    kinds = list(dict.fromkeys(result.get("benchmark") for result in results))
    if len(kinds) > 1:
        raise SystemExit(
            f"compare: expected files of one benchmark, got {kinds[0]!r} and {kinds[1]!r}"
        )
    for line in places(results[0], results[-1]):
        print(line)
    pairs = [(timed(old), timed(new)) for old, new in zip(results[::2], results[1::2], strict=True)]
    before, after = (set.intersection(*(set(pair[k]) for pair in pairs)) for k in (0, 1))
    ratios = {cell: [new[cell].ms / old[cell].ms for old, new in pairs] for cell in before & after}
    if not ratios:
        raise SystemExit("compare: the files have no cell in common")
    verdicts = {cell: verdict([(old[cell], new[cell]) for old, new in pairs]) for cell in ratios}
    print_cells(pairs, ratios, verdicts)
    gone = sorted(cell for cell in before - after if not is_peer(cell))
    for what, cells in (("gone", gone), ("new", sorted(after - before))):
        for cell in cells:
            print(f"{cell}: {what}")
    print_means(ratios, verdicts)
    if given.limit is None:
        return 0
    slower = [
        cell
        for cell, verdict in verdicts.items()
        if verdict in ("slower", ONCE) and min(ratios[cell]) > given.limit and not is_peer(cell)
    ]
    print(f"above {given.limit}: {len(slower)}; gone: {len(gone)}")
    return 1 if slower or gone else 0


def verdict(pairs: Sequence[tuple[Time, Time]]) -> str:
    """Whether a cell is "slower" or "faster" in all pairs, beyond their quartiles; NOISE, or ONCE
    where nothing is known of that.
    """
    if len(pairs) == 1 and min(sum(map(len, time.times)) for time in pairs[0]) < 2:
        return ONCE
    ranges = [quartiles(old, new) for old, new in pairs]
    if all(new[0] > old[1] for old, new in ranges):
        return "slower"
    return "faster" if all(new[1] < old[0] for old, new in ranges) else NOISE


def quartiles(old: Time, new: Time) -> list[np.ndarray]:
    """The quartiles of both: in parts of the old median from the same source, if both have times
    from the same number of sources.
    """
    scales = [np.median(times) for times in old.times]
    if len(new.times) != len(scales):
        scales = [1.0] * max(len(old.times), len(new.times))
    return [
        np.percentile(
            np.concatenate([np.divide(x, s) for x, s in zip(time.times, scales, strict=False)]),
            (25, 75),
        )
        for time in (old, new)
    ]


def print_cells(
    pairs: list[tuple[Cells, Cells]], ratios: dict[str, list[float]], verdicts: dict[str, str]
) -> None:
    """A line a cell: the old time and the new, their ratio, and of several pairs its range."""
    width = max(map(len, ratios))
    for cell in sorted(ratios, key=lambda cell: -statistics.median(ratios[cell])):
        found = ratios[cell]
        old, new = (statistics.median(pair[k][cell].ms for pair in pairs) for k in (0, 1))
        line = f"{cell:<{width}}  {old:10.4g} {new:10.4g}  {statistics.median(found):6.3f}"
        if len(found) > 1:
            line += f" {min(found):6.3f} to {max(found):6.3f}"
        print(f"{line}  {verdicts[cell]}")


def print_means(ratios: dict[str, list[float]], verdicts: dict[str, str]) -> None:
    """A line for the cells of spgraph, and one for those of peers, which tell how the machine
    changed.
    """
    for whose, peers in (("spgraph", False), ("peers", True)):
        cells = [cell for cell in ratios if is_peer(cell) == peers]
        logs = sorted(math.log(statistics.median(ratios[cell])) for cell in cells)
        if not logs:
            continue
        mean, least, most = map(math.exp, (math.fsum(logs) / len(logs), logs[0], logs[-1]))
        line = f"{len(cells)} cells of {whose}, geometric mean of new / old {mean:.3f}"
        counts = [
            f"{sum(verdicts[cell] == word for cell in cells)} {word}"
            for word in ("slower", "faster", NOISE, ONCE)
        ]
        print(f"{line}, from {least:.3f} to {most:.3f}: {', '.join(counts)}")


def timed(result: dict[str, Any]) -> Cells:
    """The cells of a result file by their places."""
    return dict(_cells({k: v for k, v in result.items() if k not in ("how", "machine")}, ()))


def cells(result: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """(its place, its time) of each time in a result file, in the file's unit."""
    found = _cells({k: v for k, v in result.items() if k not in ("how", "machine")}, ())
    yield from ((place, time.ms) for place, time in found)


def _cells(value: Any, place: tuple[str, ...], around: Any = None) -> Iterator[tuple[str, Time]]:
    """The times in a value, which stands in the dictionary `around` it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _cells(inner, (*place, str(key)), value)
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
            name = " / ".join(part for part in place if part not in NO_PLACES)
            kind = last.removesuffix("_ms") + "_" if last.endswith("_ms") else ""
            times = (around or {}).get(f"{kind}times") or [value]
            nested = times if isinstance(times[0], list) else [times]
            yield name, Time(float(value), nested)


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
