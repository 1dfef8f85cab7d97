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
from spgraph.cli import options, output

# --- spgraph info ---------------------------------------------------------------------------------


@click.command()
@options.graph_file
@options.picture("Draw how many vertices have which degree into this file")
@options.style
def info(
    file: Path,
    symmetric: bool | None,
    base: int | None,
    compact: Path | None,
    picture: Path | None,
    style: str,
) -> None:
    """What a graph is: size, symmetry, degrees, type.

    \b
    Example:
      spgraph generate kronecker 18 -o kron.npz
      spgraph info kron.npz --plot degrees.png
    """
    output.check_picture(picture)
    A, _, read_seconds = output.read(file, symmetric, base, compact)
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


# --- spgraph generate -----------------------------------------------------------------------------


@click.group()
def generate() -> None:
    """Make a graph and write it to a file.

    \b
    Example:
      spgraph generate kronecker 18 -o kron.npz
    """


_to_file = options.together(
    click.option("--seed", type=int, default=1, show_default=True, help="Which random graph."),
    options.output(
        options.MATRICES,
        f"File to write: .npz (fast) or {options.either(options.MATRICES[1:])}.",
        required=True,
    ),
)
_edge_factor = click.option(
    "--edge-factor", type=int, default=16, show_default=True, help="Edges per vertex."
)
_symmetric = click.option(
    "--symmetric/--directed", default=True, show_default=True, help="Take each edge both ways."
)


def _make(target: Path, generator: Callable[..., sg.Matrix], **parameters: Any) -> None:
    start = time.perf_counter()
    with terminal.progress(f"generating {target}"):
        A = generator(**parameters)
    output.write(target, lambda path: sg.write(path, A))
    spent = terminal.duration(time.perf_counter() - start)
    output.say(f"{target}: {A.nrows:,} vertices, {A.nvals:,} edges, made and written in {spent}")


@generate.command()
@click.argument("scale", type=int)
@_edge_factor
@click.option("--a", type=float, default=0.57, show_default=True, help="Share of the upper left.")
@click.option("--b", type=float, default=0.19, show_default=True, help="Share of the upper right.")
@click.option("--c", type=float, default=0.19, show_default=True, help="Share of the lower left.")
@_symmetric
@click.option("--self-loops", is_flag=True, help="Keep edges from a vertex to itself.")
@click.option("--permute/--no-permute", default=True, show_default=True, help="Shuffle the ids.")
@_to_file
def kronecker(target: Path, **parameters: Any) -> None:
    """The Graph500's R-MAT graph of 2^SCALE vertices.

    \b
    Example:
      spgraph generate kronecker 18 --edge-factor 16 -o kron.npz
    """
    _make(target, sg.generators.kronecker, **parameters)


@generate.command()
@click.argument("n", metavar="VERTICES", type=int)
@_edge_factor
@_symmetric
@_to_file
def uniform(target: Path, **parameters: Any) -> None:
    """A graph on VERTICES whose edges have ends drawn uniformly.

    \b
    Example:
      spgraph generate uniform 100000 --edge-factor 8 -o uniform.npz
    """
    _make(target, sg.generators.uniform_random, **parameters)


@generate.command()
@click.argument("rows", type=int)
@click.argument("columns", type=int)
@click.option(
    "--remove", type=float, default=0.0, show_default=True, help="Share of edges to leave out."
)
@_to_file
def grid(target: Path, **parameters: Any) -> None:
    """A grid of ROWS x COLUMNS vertices, like a road map when some edges are removed.

    \b
    Example:
      spgraph generate grid 1000 1000 --remove 0.1 -o roads.npz
    """
    _make(target, sg.generators.grid, **parameters)


@generate.command()
@click.argument("n", metavar="VERTICES", type=int)
@click.argument("radius", type=float)
@_to_file
def geometric(target: Path, **parameters: Any) -> None:
    """VERTICES drawn in the unit square, joined where at most RADIUS apart.

    \b
    Example:
      spgraph generate geometric 100000 0.01 -o geometric.npz
    """
    _make(target, sg.generators.random_geometric, **parameters)
