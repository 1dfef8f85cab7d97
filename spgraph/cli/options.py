"""Options that commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import click

from spgraph.cli.placement import PARTITIONS
from spgraph.io.source import COMPRESSIONS

PICTURES = (".png", ".pdf", ".svg")
VERTICES = (".npz", ".csv", ".tsv")
MATRICES = (".npz", ".mtx", *(f".mtx{compression}" for compression in COMPRESSIONS))


def either(words: tuple[str, ...]) -> str:
    """'.npz, .csv or .tsv'."""
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def writable(*suffixes: str) -> Callable[..., Path | None]:
    """A click callback: the suffix is known and the folder exists, found out before any work."""

    def check(context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
        if path is None:
            return None
        if not path.name.lower().endswith(suffixes):
            raise click.BadParameter(f"expected a name that ends in {either(suffixes)}, got {path}")
        if not path.parent.is_dir():
            raise click.BadParameter(f"there is no folder {path.parent} to write {path.name} into")
        return path

    return check


def output(suffixes: tuple[str, ...], help: str, *, required: bool = False) -> click.Option:
    """Where the result is written."""
    return click.Option(
        ["-o", "--output", "target"],
        type=click.Path(path_type=Path),
        required=required,
        callback=writable(*suffixes),
        help=help,
    )


def picture(help: str) -> click.Option:
    """Where a picture is written."""
    return click.Option(
        ["--plot", "picture"],
        type=click.Path(path_type=Path),
        callback=writable(*PICTURES),
        help=f"{help} ({either(PICTURES)}).",
    )


def top(help: str) -> click.Option:
    """How many rows of a result are printed."""
    return click.Option(["--top"], type=click.IntRange(1), metavar="K", help=help)


GRAPH: list[click.Parameter] = [
    click.Argument(["file"], type=click.Path(path_type=Path)),
    click.Option(
        ["--symmetric/--directed"],
        default=None,
        help="Take each edge both ways, or as it stands [default: as the format says].",
    ),
    click.Option(
        ["--base"],
        type=click.IntRange(0, 1),
        help="Least vertex id of an edge list [default: 0]; other formats fix their own.",
    ),
    click.Option(
        ["--compact"],
        type=click.Path(path_type=Path),
        metavar="IDS",
        callback=writable(*VERTICES),
        help="For ids far apart: number the vertices that have edges 0, 1, ..., and write the id "
        f"of each into this file ({either(VERTICES)}).",
    ),
]

PLACE: list[click.Parameter] = [
    click.Option(
        ["--device"], help="Where to run: cpu, cuda or cuda:N [default: cpu; cuda with --gpus]."
    ),
    click.Option(["--gpus"], type=int, metavar="N", help="Share the graph out over N GPUs."),
    click.Option(
        ["--shards"],
        type=int,
        metavar="P",
        help="Share it out in P shards on the CPU, or over the processes of MPI.",
    ),
    click.Option(
        ["--partition"],
        type=click.Choice(PARTITIONS),
        help="Who gets which vertex, with --gpus or --shards [default: edges].",
    ),
]

FORMAT = click.Option(
    ["--format", "style"],
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="How to print the result.",
)
TRACE = click.Option(["--trace", "with_trace"], is_flag=True, help="Print a row per level.")
VALIDATE = click.Option(
    ["--validate", "validated"], is_flag=True, help="Check the tree by the five rules of Graph500."
)


def suffix_of(path: Path) -> str:
    """The last suffix, in lower case."""
    return os.path.splitext(path.name)[1].lower()
