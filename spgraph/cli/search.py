"""Breadth-first searches: bfs, multi-source-bfs, reachable."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

import spgraph as sg
from spgraph import terminal, validation
from spgraph.cli import options, output
from spgraph.cli.algorithm import algorithm, results
from spgraph.cli.kinds import levels, members, nearest
from spgraph.cli.placement import check, described, on_host, placed
from spgraph.distributed import DistributedMatrix
from spgraph.iterations import Level, search
from spgraph.semirings import any_pair, min_secondi

FAILED_VALIDATION = 1


@click.command()
@options.source
@options.parents
@click.option(
    "--direction",
    type=click.Choice(["auto", "push", "pull"]),
    default="auto",
    show_default=True,
    help="push: from the frontier; pull: from the unvisited; auto: the cheaper, level by level.",
)
@click.option("--max-depth", type=click.IntRange(0), help="Stop at this level.")
@click.option("--validate", is_flag=True, help="Check the tree by the five rules of Graph500.")
@options.graph_file
@options.place
@results(nearest, "level", traced=True)
@options.style
def bfs(
    *,
    file: Path,
    symmetric: bool | None,
    base: int | None,
    compact: Path | None,
    device: str | None,
    gpus: int | None,
    shards: int | None,
    partition: str | None,
    validate: bool,
    top: int | None,
    with_trace: bool,
    picture: Path | None,
    target: Path | None,
    style: str,
    **parameters: Any,
) -> int:
    """Breadth-first search: levels, parents of least id.

    The search runs for one level before it is timed, so that the time is not the compiler's. A file
    .npz holds level and parent, -1 where unreached, the truth values reached, and source.

    \b
    Example:
      spgraph generate kronecker 18 -o kron.npz
      spgraph bfs kron.npz --validate --trace --plot levels.png
    """
    check(device, gpus, shards, partition)
    output.check_picture(picture)
    if validate and not parameters["parents"]:
        raise click.UsageError("--validate: expected --parents, there is no tree to check")
    graph = output.read(file, symmetric, base, compact, gpus, shards, partition)
    if parameters["source"] is None:
        parameters["source"] = graph.most_connected()
    A, source = graph.A, parameters["source"]

    with terminal.progress(f"searching from vertex {source}"):
        G = placed(A, device, gpus, shards, partition)
        sg.bfs(G, **parameters | {"max_depth": 1})
        start = time.perf_counter()
        found = sg.bfs(G, **parameters)
        reached = found.level.nvals  # a number on the host: the device has finished
        seconds = time.perf_counter() - start
        parts = on_host(found, "level")
        rows = _levels_of_bfs(G, **parameters) if with_trace or picture is not None else None
    level = parts["level"].to_numpy(fill=-1)
    traversed = int(graph.degrees()[level >= 0].sum())
    summary = {
        "reached": reached,
        "depth": int(level.max()),
        "traversed_edges": traversed,
        "teps": traversed / seconds,
    }
    record = {
        "graph": graph.facts(),
        "algorithm": "bfs",
        "parameters": parameters,
        **described(G, gpus, shards, partition),
        "seconds": seconds,
        "summary": summary,
        # the facts once more, side by side
        **graph.facts(),
        **parameters,
        **summary,
        **output.details(nearest, parts, top, rows if with_trace else None),
    }
    if validate:
        with terminal.progress("validating"):
            whole = A.gather() if isinstance(A, DistributedMatrix) else A
            failures = validation.validate_bfs(
                whole, source, parts["level"], parts["parent"], max_depth=parameters["max_depth"]
            )
        record["failures"] = [failure._asdict() for failure in failures]
    if target is not None:
        output.write_result(target, parts, source=source)
    if picture is not None:
        output.write_picture(picture, nearest, parts, rows)
    output.show(record, [graph.line(), *_lines(record)], style)
    return FAILED_VALIDATION if record.get("failures") else 0


def _lines(record: dict[str, Any]) -> list[str]:
    facts = {
        "reached": f"{record['reached']:,} of {record['vertices']:,} vertices, "
        f"the last at level {record['depth']}",
        "time": terminal.duration(record["seconds"]),
        "edges": f"{record['traversed_edges']:,} leave reached vertices; an undirected one counts "
        "in both directions",
        "rate": f"{terminal.rate(record['teps'])}, these edges / time",
    }
    if "failures" in record:
        facts["tree"] = (
            "NOT VALID" if record["failures"] else "valid by the five checks of Graph500"
        )
    lines = [output.heading(record), "", *terminal.facts(facts)]
    lines += [f"  check {f['check']}: {f['message']}" for f in record.get("failures", [])]
    return lines + output.detail_lines(nearest, record)


# --- the levels, from a run of its own: the clocks of a trace cost time ---------------------------


def _levels_of_bfs(
    A: sg.Matrix, *, source: int, parents: bool, direction: str, max_depth: int | None
) -> Sequence[Level]:
    start = sg.Vector.unit(source, source, size=A.nrows, dtype=A.index_dtype, device=A.device)
    ring = min_secondi if parents else any_pair
    found = search(A, start, ring, direction=direction, max_depth=max_depth, trace=True)
    return found.trace or []


def _levels_of_reachable(A: sg.Matrix, *, sources: list[int]) -> Sequence[Level]:
    ids = np.unique(sources)
    start = sg.Vector.from_coo(ids, np.ones(ids.size, bool), size=A.nrows, device=A.device)
    return search(A, start, any_pair, trace=True).trace or []


# --- searches from several vertices ---------------------------------------------------------------


@algorithm(members, "reached", start="sources", trace=_levels_of_reachable)
@options.sources("that of largest degree")
def reachable(A: sg.Matrix, **parameters: Any) -> Any:
    """What can be reached from any of several vertices.

    \b
    Example:
      spgraph generate kronecker 18 --directed -o web.npz
      spgraph reachable web.npz --sources 0,5,7 --trace -o reached.csv
    """
    return sg.reachable(A, **parameters)


@algorithm(levels, "level", start="sources")
@options.sources("that of largest degree")
def multi_source_bfs(A: sg.Matrix, **parameters: Any) -> Any:
    """Breadth-first searches from several vertices.

    The result is a matrix of levels, with a row for each search.

    \b
    Example:
      spgraph generate kronecker 18 -o kron.npz
      spgraph multi-source-bfs kron.npz --sources 0,5,7 -o levels.mtx.gz
    """
    return sg.multi_source_bfs(A, **parameters)
