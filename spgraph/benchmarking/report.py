"""The output block of Graph500: names, order and statistics as its reference code prints them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from spgraph.benchmarking.graph500 import Graph500, Root

PARTS = ("min", "firstquartile", "median", "thirdquartile", "max", "mean", "stddev")


class Line(NamedTuple):
    """A line of the block: `! ` stands before the number that ranks a submission."""

    name: str
    value: float
    format: str = "g"
    mark: str = ""

    def __str__(self) -> str:
        return f"{self.name + ':':<29}{self.mark or '   '}{self.value:{self.format}}"


def statistics(values: list[float]) -> list[float]:
    """Minimum, quartiles, maximum, mean and standard deviation, of a sample; NaN of fewer than two.

    A quartile between two values is their mean.
    """
    x, n = np.sort(np.array(values, np.float64)), len(values)

    def between(i: int, j: int) -> float:
        return float(x[i] + x[j]) / 2

    return [
        float(x[0]),
        between((n - 1) // 4, n // 4),
        between((n - 1) // 2, n // 2),
        between(n - 1 - (n - 1) // 4, n - 1 - n // 4),
        float(x[-1]),
        float(x.mean()),
        float(x.std(ddof=1)) if n > 1 else math.nan,
    ]


def rates(runs: list[Root]) -> list[float]:
    """The statistics of TEPS: quartiles of the rates, their harmonic mean, and its standard error
    by Norris, "The standard errors of the geometric and harmonic means", 1940.
    """
    found = statistics([run.seconds / run.edges for run in runs])
    mean, deviation = found[5:]
    error = deviation / (mean * mean * math.sqrt(len(runs) - 1)) if len(runs) > 1 else math.nan
    return [*(1 / seconds for seconds in found[4::-1]), 1 / mean, error]


def block(found: Graph500) -> list[Line]:
    """The lines of the block, in order."""
    kernels = {"bfs ": found.bfs, "sssp": found.sssp}
    lines = [
        Line("SCALE", found.scale, "d"),
        Line("edgefactor", found.edgefactor, "d"),
        Line("NBFS", len(found.bfs), "d"),
        Line("graph_generation", found.generation_seconds),
        Line("num_mpi_processes", found.processes, "d"),
        Line("construction_time", found.construction_seconds),
    ]
    for kernel, runs in kernels.items():
        values = statistics([run.seconds for run in runs])
        lines += [Line(f"{kernel} {part}_time", x) for part, x in zip(PARTS, values, strict=True)]
    edges = statistics([float(run.edges) for run in found.bfs])
    lines += [Line(f"{part}_nedge", x, ".11g") for part, x in zip(PARTS, edges, strict=True)]
    names = (*PARTS[:5], "harmonic_mean", "harmonic_stddev")
    for kernel, runs in kernels.items():
        for part, x in zip(names, rates(runs), strict=True):
            mark = "!  " if part == "harmonic_mean" else ""
            lines.append(Line(f"{kernel} {part}_TEPS", x, "g", mark))
    for kernel, runs in kernels.items():
        values = statistics([run.validation_seconds for run in runs])
        lines += [
            Line(f"{kernel} {part}_validate", x) for part, x in zip(PARTS, values, strict=True)
        ]
    return lines


def record(found: Graph500) -> dict[str, Any]:
    """All that was measured, for JSON: the block under its names, joined by _, and every run."""
    facts: dict[str, Any] = {"benchmark": "graph500"}
    facts |= {"_".join(line.name.split()): line.value for line in block(found)}
    facts |= {
        "valid": found.valid,
        "device": found.device,
        "shards": found.shards,
        "vertices": found.vertices,
        "entries": found.entries,
        "construction_first_time": found.construction_first_seconds,
        "bfs_first_time": found.bfs_first_seconds,
        "sssp_first_time": found.sssp_first_seconds,
    }
    for name, runs in (("bfs", found.bfs), ("sssp", found.sssp)):
        facts[f"{name}_runs"] = [
            run._asdict() | {"failures": [failure._asdict() for failure in run.failures]}
            for run in runs
        ]
    if found.trace is not None:
        facts["trace"] = trace_rows(found)
    if found.cost is not None:
        facts["cost"] = found.cost._asdict() | {"levels": [s._asdict() for s in found.cost.levels]}
    return facts


def trace_rows(found: Graph500) -> list[dict[str, Any]]:
    """The levels of the traced search. The unique ratio of a level is how many vertices it found
    for each edge that it looked at. Over several shards also its seconds of exchange and of all
    else, in rounds.

    Source: Mastrostefano, Bernaschi, "Efficient breadth first search on multi-GPU systems", 2013.
    """
    rows = found.trace or []
    after = [row.frontier for row in rows[1:]] + [0]
    steps = [step._asdict() for step in found.cost.levels] if found.cost else []
    return [
        row._asdict() | {"unique_ratio": reached / row.edges if row.edges else 0.0} | step
        for row, reached, step in zip(rows, after, steps or [{}] * len(rows), strict=True)
    ]
