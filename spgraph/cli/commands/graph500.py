"""`spgraph graph500`: the Graph500 benchmark."""

from __future__ import annotations

from typing import Any

import click

from spgraph import terminal
from spgraph.benchmarking.graph500 import Graph500, graph500
from spgraph.benchmarking.report import block, record, trace_rows
from spgraph.cli import launch, options, output, signatures
from spgraph.cli.algorithm import FAILED_VALIDATION
from spgraph.cli.placement import Place


def run(
    style: str,
    device: str | None,
    gpus: int | None,
    shards: int | None,
    with_trace: bool,
    **given: Any,
) -> int:
    """Run the benchmark, print its block; the exit code."""
    Place(device, gpus, shards).check()
    where: dict[str, Any] = {"device": "cuda" if gpus else device or "cpu"}
    where["shards"] = gpus or shards or 1
    if launch.processes() > 1:
        where = {"communicator": launch.communicator(gpus, shards)}
    with terminal.progress(f"running graph500 of scale {given['scale']}"):
        found = graph500(**given, **where, trace=with_trace)
    output.show(record(found), lines(found), style)
    return 0 if found.valid else FAILED_VALIDATION


def lines(found: Graph500) -> list[str]:
    """The block; of an invalid run what is wrong, as the reference code prints no results then."""
    if not found.valid:
        said = ["No results printed for invalid run."]
        for name, runs in (("bfs", found.bfs), ("sssp", found.sssp)):
            for root in runs:
                said += [
                    f"{name} from {root.key}: check {failure.check}: {failure.message}"
                    for failure in root.failures
                ]
        return said
    said = [str(line) for line in block(found)]
    if found.trace is not None:
        head = ["level", "direction", "frontier", "edges looked at", "unique ratio", "time [ms]"]
        rows, times = trace_rows(found), ["seconds"]
        if "exchange_seconds" in rows[0]:
            head += ["in rounds: exchange", "all else"]
            times += ["exchange_seconds", "compute_seconds"]
        cells = [
            (
                str(row["depth"]),
                row["direction"],
                f"{row['frontier']:,}",
                f"{row['edges']:,}",
                f"{row['unique_ratio']:.4f}",
                *(f"{row[name] * 1e3:,.3f}" for name in times),
            )
            for row in rows
        ]
        said += ["", f"The search from {found.bfs[0].key}:", "", *terminal.table(head, cells)]
    if found.cost is not None:
        cost = found.cost
        said += [
            "",
            "The same search in rounds, devices waiting before and after each exchange:",
            f"exchange {cost.exchange_seconds * 1e3:,.3f} ms, compute "
            f"{cost.compute_seconds * 1e3:,.3f} ms; W {cost.edges:,} edges, "
            f"H {cost.bytes_sent:,} bytes, C {cost.elements:,} elements, S {cost.rounds:,} rounds",
        ]
    return said


command = options.Command(
    "graph500",
    callback=run,
    params=[
        click.Option(
            ["--scale"], type=click.IntRange(1, 30), required=True, help="2**SCALE vertices."
        ),
        *signatures.options(
            graph500, without={"scale", "device", "shards", "communicator", "trace"}
        ),
        *options.PLACE[:3],
        options.TRACE,
        options.FORMAT,
    ],
    short_help=signatures.summary(graph500),
    help=f"""{signatures.summary(graph500)}.

    An edge list, the graph made of it, and from each of 64 keys a breadth-first tree and a tree of
    shortest paths, every one of which is checked by the five rules of specification 2.0. The block
    printed has the names and the order of the reference code; the exit code is 1 if a tree is
    wrong. The first search of each kernel is not among the times, as in that code: it compiles.

    \b
    Example:
      spgraph graph500 --scale 16
      mpirun -n 2 spgraph graph500 --scale 20 --shards 2
    """,
)
