"""`spgraph gap`: the GAP Benchmark Suite."""

from __future__ import annotations

from typing import Any

import click

from spgraph import benchmarking, terminal
from spgraph.benchmarking.gap import TRIALS, Trials, graph
from spgraph.cli import launch, options, output, signatures
from spgraph.cli.algorithm import FAILED_VALIDATION
from spgraph.cli.kinds import Record
from spgraph.cli.placement import Place

GENERATED = ("kron", "urand", "road")


def run(style: str, scale: int, kernels: tuple[Any, ...], **given: Any) -> int:
    """Make or read the graph, run the kernels on it, print their times; the exit code."""
    if launch.processes() > 1:
        raise click.UsageError("gap: expected one process, leave out mpirun; --gpus takes several")
    place, source = Place.of(given), output.Source.of(given)
    facts: Record
    if str(source.file) in GENERATED:
        name = str(source.file)
        with terminal.progress(f"generating {name}"):
            A = graph(name, scale, seed=given["seed"])
        facts = {"name": name, "scale": scale, "vertices": A.nrows, "edges": A.nvals}
        line = f"{name} of scale {scale}: {A.nrows:,} vertices, {A.nvals:,} edges"
    else:
        read = output.read(source, place)
        A, facts, line = read.A, read.facts(), read.line()
    found = []
    G = place.place(A)
    for kernel in kernels or tuple(TRIALS):
        with terminal.progress(f"running {kernel}"):
            found += benchmarking.gap(G, kernels=[kernel], **given)
    records = {each.kernel: record(each) for each in found}
    where = place.facts()
    heading = f"{line}, on {where['device']}"
    facts = {"benchmark": "gap", "graph": facts, **where, "kernels": records}
    output.show(facts, [heading, "", *lines(found)], style)
    return 0 if all(each.valid for each in found) else FAILED_VALIDATION


def record(found: Trials) -> Record:
    """The trials of a kernel, for JSON."""
    return {
        "trials": len(found.seconds),
        "average": found.average,
        "least": min(found.seconds),
        "median": found.median,
        "verified": found.verified,
        "valid": found.valid if found.verified else None,
        **found._asdict(),
    }


def lines(found: list[Trials]) -> list[str]:
    """The table of the kernels, and what is wrong with their results."""
    head = ("kernel", "trials", "average [ms]", "least [ms]", "median [ms]", "result")
    said = []
    for each in found:
        times = (each.average, min(each.seconds), each.median)
        result = "not verified" if not each.verified else "valid" if each.valid else "NOT VALID"
        cells = [f"{seconds * 1e3:,.3f}" for seconds in times]
        said.append((each.kernel, str(len(each.seconds)), *cells, result))
    wrong = [
        f"{each.kernel}, trial {k}: {message}"
        for each in found
        for k, messages in enumerate(each.failures)
        for message in messages
    ]
    return [*terminal.table(head, said), *([""] if wrong else []), *wrong]


command = options.Command(
    "gap",
    callback=run,
    params=[
        *options.GRAPH,
        click.Option(
            ["--scale"],
            type=click.IntRange(2, 30),
            default=16,
            show_default=True,
            help="Of a generated graph: 2**SCALE vertices.",
        ),
        click.Option(
            ["--kernel", "kernels"],
            type=click.Choice(list(TRIALS)),
            multiple=True,
            help="Run this kernel; may be repeated [default: all].",
        ),
        *signatures.options(benchmarking.gap, without={"A", "kernels", "trials", "verify"}),
        click.Option(
            ["--trials"],
            type=click.IntRange(1),
            help="How many trials of each kernel [default: as the suite has it].",
        ),
        click.Option(
            ["--verify/--no-verify"], default=True, help="Check the result of every trial."
        ),
        *options.PLACE,
        options.FORMAT,
    ],
    short_help="Run the GAP Benchmark Suite",
    help="""Run the GAP Benchmark Suite: BFS, SSSP, PR, CC, BC and TC.

    FILE is kron, urand or road, which are generated, or a graph. The kernels have the trials, the
    sources, the tolerance and the verifiers of the suite; the exit code is 1 if a result is wrong.
    Weights, where a graph has none, are random integers from 1 to 255.

    \b
    Example:
      spgraph gap kron --scale 10 --kernel bfs --kernel cc
    """,
)
