"""A function of a graph as a command: what is around every algorithm."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from spgraph import terminal
from spgraph.cli import options, output
from spgraph.cli.kinds import Kind
from spgraph.cli.placement import check, described, on_host, placed
from spgraph.iterations import Level

Compute = Callable[..., Any]
Trace = Callable[..., Sequence[Level]]


def algorithm(
    kind: Kind,
    name: str,
    *,
    start: str | None = None,
    trace: Trace | None = None,
    undirected: str | None = None,
) -> Callable[[Compute], click.Command]:
    """The decorator that makes a command of a function `compute(A, **parameters)`.

    The function returns what the algorithm does; its docstring is the help, and its own options, by
    their names in Python, are the parameters. The command reads the graph, places it, runs the
    function, prints and writes the result as its `kind` has it. `name` is what a result is called
    that is not a tuple of names itself. `start` is the parameter, source or sources, that means the
    vertex of largest degree where it is not given. `trace`, called as the function is, returns
    the levels for --trace and --plot. `undirected` says that the algorithm is one of undirected
    graphs, and whether "edges" or their "weights" are the same both ways in one: of another graph a
    note on standard error says so.
    """

    def decorate(compute: Compute) -> click.Command:
        @click.command()
        @options.graph_file
        @options.place
        @results(kind, name, traced=trace is not None)
        @options.style
        @functools.wraps(compute)  # click keeps the options of `compute` in its __dict__
        def command(
            *,
            file: Path,
            symmetric: bool | None,
            base: int | None,
            compact: Path | None,
            device: str | None,
            gpus: int | None,
            shards: int | None,
            partition: str | None,
            style: str,
            top: int | None = None,
            target: Path | None = None,
            with_trace: bool = False,
            picture: Path | None = None,
            **parameters: Any,
        ) -> None:
            check(device, gpus, shards, partition)
            output.check_picture(picture)
            graph = output.read(file, symmetric, base, compact, gpus, shards, partition)
            if start is not None and parameters[start] is None:
                vertex = graph.most_connected()
                parameters[start] = vertex if start == "source" else [vertex]
            note = None
            if undirected is not None:
                note = about_direction(graph, compute.__name__, weights=undirected == "weights")
            with terminal.progress(f"running {compute.__name__}"):
                G = placed(graph.A, device, gpus, shards, partition)
                begin = time.perf_counter()
                parts = on_host(compute(G, **parameters), name)
                seconds = time.perf_counter() - begin
                rows = None
                if trace is not None and (with_trace or picture is not None):
                    rows = trace(G, **parameters)
            record = {
                "graph": graph.facts(),
                "algorithm": compute.__name__,
                "parameters": parameters,
                **described(G, gpus, shards, partition),
                "seconds": seconds,
                "summary": kind.summary(parts),
                **output.details(kind, parts, top, rows if with_trace else None),
            }
            if target is not None:
                output.write_result(target, parts)
            if picture is not None:
                output.write_picture(picture, kind, parts, rows)
            facts = {"time": f"{terminal.duration(seconds)}, kernels made ready included"}
            for key, value in record["summary"].items():
                facts[key.replace("_", " ")] = output.said(value)
            lines = [graph.line(), output.heading(record), "", *terminal.facts(facts)]
            if note is not None:
                output.note(note)
            output.show(record, [*lines, *output.detail_lines(kind, record)], style)

        command.params.sort(key=lambda option: option.name in options.SHARED)
        return command

    return decorate


def about_direction(graph: output.Graph, algorithm: str, *, weights: bool) -> str | None:
    """What an algorithm of undirected graphs makes of a directed one; None of an undirected one."""
    A = graph.A
    if A.nrows != A.ncols:  # which the algorithm refuses
        return None
    with terminal.progress("testing for symmetry"):
        if (A if weights or A.iso else A.pattern()).is_symmetric():
            return None
    which = "edges and weights are" if weights else "edges are"
    taken = "the lesser weight" if weights else "an edge"
    return (
        f"{graph.file}: {which} not the same both ways, and {algorithm} is about undirected "
        f"graphs: it takes {taken} between two vertices, whichever way it points"
    )


def results(kind: Kind, name: str, *, traced: bool) -> options.Decorator:
    """The options of what to do with a result of this kind."""
    chosen: list[options.Decorator] = []
    if kind.top is not None:
        chosen.append(options.top(f"Print the K {kind.best.format(name=name)}."))
    if traced:
        chosen.append(options.trace)
    if traced or kind.picture is not None:
        what = "the levels" if traced else kind.drawn.format(name=name)
        chosen.append(options.picture(f"Draw {what} into this file"))
    if kind.suffixes:
        formats = options.either(kind.suffixes)
        chosen.append(
            options.output(kind.suffixes, f"Write the result into this file ({formats}).")
        )
    return options.together(*chosen)
