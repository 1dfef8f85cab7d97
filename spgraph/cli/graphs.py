"""Graphs as they are: generate, info."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

import spgraph as sg
from spgraph import terminal
from spgraph.cli import options, output, signatures
from spgraph.cli.placement import Place

# --- spgraph info ---------------------------------------------------------------------------------


def run_info(picture: Path | None, style: str, **given: Any) -> None:
    """Read a graph, print and draw what it is."""
    output.check_picture(picture)
    A, file, read_seconds = output.read(output.Source.of(given), Place())
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
        "read_seconds": read_seconds,
    }
    if picture is not None:
        output.write_figure(picture, sg.plot.degree_distribution(A))
    facts = {
        "file": f"{file}, read in {terminal.duration(read_seconds)}",
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
    output.show(result, terminal.facts(facts), style)


info = click.Command(
    "info",
    callback=run_info,
    params=[
        *options.GRAPH,
        options.picture("Draw how many vertices have which degree into this file"),
        options.FORMAT,
    ],
    help="""What a graph is: size, symmetry, degrees, type.

    \b
    Example:
      spgraph generate kronecker 18 -o kron.npz
      spgraph info kron.npz --plot degrees.png
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


@click.group()
def generate() -> None:
    """Make a graph and write it to a file.

    \b
    Example:
      spgraph generate kronecker 18 -o kron.npz
    """


def _generator(name: str, generator: Callable[..., sg.Matrix], example: str) -> click.Command:
    """A generator as a command."""

    def run(target: Path, **parameters: Any) -> None:
        start = time.perf_counter()
        with terminal.progress(f"generating {target}"):
            A = generator(**parameters)
        output.write(target, lambda path: sg.write(path, A))
        spent = terminal.duration(time.perf_counter() - start)
        output.say(
            f"{target}: {A.nrows:,} vertices, {A.nvals:,} edges, made and written in {spent}"
        )

    target = options.output(
        options.MATRICES,
        f"File to write: .npz (fast) or {options.either(options.MATRICES[1:])}.",
        required=True,
    )
    return click.Command(
        name,
        callback=run,
        params=[*signatures.options(generator, without={"device"}), target],
        help=f"{signatures.summary(generator)}.\n\n{signatures.explanation(generator)}"
        f"\n\n\b\nExample:\n  spgraph generate {name} {example}",
        short_help=signatures.summary(generator),
    )


for name, (generator, example) in GENERATORS.items():
    generate.add_command(_generator(name, generator, example))
