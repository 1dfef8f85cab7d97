"""Graphs as they are: generate, info."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import numpy as np

import spgraph as sg
from spgraph import terminal
from spgraph.cli import names, options, output, signatures, streams
from spgraph.cli.placement import Place

# --- spgraph info ---------------------------------------------------------------------------------


def run_info(style: str, **given: Any) -> None:
    """Read a graph, print and draw what it is."""
    picture = output.picture_target(given.pop("picture"))
    source = output.Source.of(given)
    aside = streams.writes_standard(plot=picture, compact=source.compact)
    A, file, times, ids = output.read(source, Place())
    degrees = np.diff(A._indptr)
    with terminal.progress("testing for symmetry"):
        mirrored = A.nrows == A.ncols and A.is_symmetric()
    result = {
        "file": str(file),
        "rows": A.nrows,
        "columns": A.ncols,
        "edges": A.nvals,
        "symmetric": bool(mirrored),
        "type": str(A.dtype),
        "iso": A.iso,
        "bytes": A.nbytes,
        "degree_min": int(degrees.min()) if degrees.size else None,
        "degree_median": float(np.median(degrees)) if degrees.size else None,
        "degree_mean": float(degrees.mean()) if degrees.size else None,
        "degree_max": int(degrees.max()) if degrees.size else None,
        "isolated_rows": int((degrees == 0).sum()),
        "names": None if ids is None else len(ids),
        **times.record("read_"),
    }
    if picture is not None:
        output.write_figure(picture, sg.plot.degree_distribution(A))
    facts = {
        "file": f"{file}, read in {times}",
        "shape": f"{A.nrows:,} x {A.ncols:,}",
        "edges": f"{A.nvals:,} ({'an undirected one counts twice' if mirrored else 'directed'})",
        "symmetric": "yes" if mirrored else "no",
        "values": f"{A.dtype}, the same on every edge" if A.iso else str(A.dtype),
        "bytes": f"{A.nbytes:,}",
    }
    if degrees.size:
        facts["degree"] = (
            f"{result['degree_min']:,} least, {result['degree_median']:,.1f} median, "
            f"{result['degree_mean']:,.1f} mean, {result['degree_max']:,} largest"
        )
        facts["no edges"] = f"{result['isolated_rows']:,} rows"
    if ids is not None:
        few = [names.printable(str(name)) for name in ids.names[:3]]
        facts["names"] = ", ".join(few + ["..."] * (len(ids) > 3))
    output.show(result, terminal.facts(facts), style, aside=aside)


info = options.Command(
    "info",
    callback=run_info,
    params=[
        *options.GRAPH,
        options.picture("Draw how many vertices have which degree into this file"),
        options.FORMAT,
    ],
    short_help="What a graph is: size, symmetry, degrees, type",
    help="""What a graph is: size, symmetry, degrees, type.

    \b
    Example:
      spgraph generate kronecker 18 -o kron.npz
      spgraph info kron.npz --plot degrees.png
    """,
)

# --- graphs that are written: convert, generate ---------------------------------------------------


def output_options() -> list[click.Option]:
    formats = options.either(options.MATRICES[1:])
    text = f"File to write: .npz (fast, keeps types and names) or {formats}."
    return options.output(options.MATRICES, text, required=True)


def graph_target(given: dict[str, Any]) -> streams.Target:
    """What -o says, which is required."""
    target = streams.result_target(given, options.standard_suffix(options.MATRICES))
    assert target is not None
    return target


def written(
    target: streams.Target,
    A: sg.Matrix,
    ids: sg.Ids | None,
    record: dict[str, Any],
    times: terminal.Times,
    style: str,
) -> None:
    """Write the graph, and print what was done in which time."""
    with terminal.measured() as writing:
        output.write_result(target, {"weight": A}, ids)
    record |= {"file": str(target.path), "vertices": A.nrows, "edges": A.nvals}
    record |= times.record() | writing.record("write_")
    lines = [
        f"{target.name}: {A.nrows:,} vertices, {A.nvals:,} edges",
        *terminal.facts({"made in": str(times), "written in": str(writing)}),
    ]
    output.show(record, lines, style, aside=target.is_standard)


def run_convert(style: str, **given: Any) -> None:
    """Read a graph and write it in another format."""
    target, source = graph_target(given), output.Source.of(given)
    streams.writes_standard(output=target, compact=source.compact)
    graph = output.read(source, Place())
    record = {"source": str(graph.file)}
    written(target, graph.A, graph.ids, record, graph.times, style)


convert = options.Command(
    "convert",
    callback=run_convert,
    params=[*options.GRAPH, *output_options(), options.FORMAT],
    short_help="Write a graph in another format",
    help="""Write a graph in another format.

    What the options say of the file that is read (--symmetric, --columns, --compact) holds for the
    file that is written; .npz and tables also keep the names of vertices. A table has the columns
    source, target and weight, and a row for each edge, an undirected one in both directions.

    \b
    Example:
      printf 'from,to,km\\nUlm,Bonn,4\\nBonn,Kiel,3\\n' > roads.csv
      spgraph convert roads.csv --columns from,to,km --symmetric -o roads.npz
      spgraph sssp roads.npz --source Ulm --top 3
    """,
)

# --- spgraph generate -----------------------------------------------------------------------------

# by the name of the command: the generator, and the arguments of the example
GENERATORS: dict[str, tuple[Callable[..., sg.Matrix], str]] = {
    "kronecker": (sg.generators.kronecker, "18 --edge-factor 16 -o kron.npz"),
    "uniform": (sg.generators.uniform_random, "100000 8 -o uniform.npz"),
    "grid": (sg.generators.grid, "1000 1000 --remove 0.1 -o grid.npz"),
    "geometric": (sg.generators.random_geometric, "100000 0.01 -o geometric.npz"),
}


@click.group(short_help="Make a graph and write it to a file")
def generate() -> None:
    """Make a graph and write it to a file.

    \b
    Example:
      spgraph generate kronecker 18 -o kron.npz
    """


def _generator(name: str, generator: Callable[..., sg.Matrix], example: str) -> click.Command:
    """A generator as a command."""

    def run(style: str, **parameters: Any) -> None:
        target = graph_target(parameters)
        with terminal.progress(f"generating {target.name}"), terminal.measured() as times:
            A = generator(**parameters)
        written(target, A, None, {"generator": name, "parameters": parameters}, times, style)

    return options.Command(
        name,
        callback=run,
        params=[
            *signatures.options(generator, without={"device"}),
            *output_options(),
            options.FORMAT,
        ],
        help=f"{signatures.summary(generator)}.\n\n{signatures.explanation(generator)}"
        f"\n\n\b\nExample:\n  spgraph generate {name} {example}",
        short_help=signatures.summary(generator),
    )


for name, (generator, example) in GENERATORS.items():
    generate.add_command(_generator(name, generator, example))
