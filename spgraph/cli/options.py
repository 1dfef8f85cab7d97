"""Options that commands share, each a decorator."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from spgraph.cli.placement import PARTITIONS
from spgraph.io.source import COMPRESSIONS

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]

PICTURES = (".png", ".pdf", ".svg")
VERTICES = (".npz", ".csv", ".tsv")
MATRICES = (".npz", ".mtx", *(f".mtx{compression}" for compression in COMPRESSIONS))


def together(*decorators: Decorator) -> Decorator:
    """Several options as one, in this order in the help."""

    def decorate(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


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


def output(suffixes: tuple[str, ...], help: str, *, required: bool = False) -> Decorator:
    return click.option(
        "-o",
        "--output",
        "target",
        type=click.Path(path_type=Path),
        required=required,
        callback=writable(*suffixes),
        help=help,
    )


def picture(help: str) -> Decorator:
    return click.option(
        "--plot",
        "picture",
        type=click.Path(path_type=Path),
        callback=writable(*PICTURES),
        help=f"{help} ({either(PICTURES)}).",
    )


def top(help: str) -> Decorator:
    return click.option("--top", type=click.IntRange(1), metavar="K", help=help)


graph_file = together(
    click.argument("file", type=click.Path(path_type=Path)),
    click.option(
        "--symmetric/--directed",
        default=None,
        help="Take each edge both ways, or as it stands [default: as the format says].",
    ),
    click.option(
        "--base",
        type=click.IntRange(0, 1),
        help="Least vertex id of an edge list [default: 0]; other formats fix their own.",
    ),
    click.option(
        "--compact",
        type=click.Path(path_type=Path),
        metavar="IDS",
        callback=writable(*VERTICES),
        help="For ids far apart: number the vertices that have edges 0, 1, ..., and write the id "
        f"of each into this file ({either(VERTICES)}).",
    ),
)

place = together(
    click.option(
        "--device",
        help="Where to run: cpu, cuda or cuda:N [default: cpu; cuda with --gpus].",
    ),
    click.option("--gpus", type=int, metavar="N", help="Share the graph out over N GPUs."),
    click.option(
        "--shards",
        type=int,
        metavar="P",
        help="Share it out over P shards on the CPU, or over the processes of MPI.",
    ),
    click.option(
        "--partition",
        type=click.Choice(PARTITIONS),
        help="Who gets which vertex, with --gpus or --shards [default: edges].",
    ),
)

style = click.option(
    "--format",
    "style",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="How to print the result.",
)

# what every command has, in its help behind its own options
SHARED = set(
    "file symmetric base compact device gpus shards partition top with_trace picture target "
    "style".split()
)

trace = click.option("--trace", "with_trace", is_flag=True, help="Print a row per level.")

# --- parameters of algorithms, under their names in Python ----------------------------------------


def _vertices(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> list[int] | None:
    try:
        return None if text is None else [int(word) for word in text.split(",")]
    except ValueError:
        raise click.BadParameter(f"expected vertices like 0,5,7, got {text!r}") from None


def _or_none(value: Any) -> float | None:
    try:
        return None if value == "none" else float(value)
    except ValueError:
        raise click.BadParameter(f"expected a number or none, got {value!r}") from None


source = click.option(
    "--source", type=int, help="First vertex, from 0 [default: that of largest degree]."
)


def sources(default: str) -> Decorator:
    return click.option(
        "--sources",
        metavar="V,V,...",
        callback=_vertices,
        help=f"Vertices to start from, from 0 [default: {default}].",
    )


def iteration(tol: float, max_iter: int) -> Decorator:
    return together(
        click.option(
            "--tol",
            type=_or_none,
            metavar="NUMBER",
            default=tol,
            show_default=True,
            help="End when the change is at most this; none: after --max-iter iterations.",
        ),
        rounds(max_iter),
    )


def rounds(max_iter: int) -> Decorator:
    return click.option(
        "--max-iter", type=int, default=max_iter, show_default=True, help="Most iterations."
    )


parents = click.option(
    "--parents/--no-parents", default=True, show_default=True, help="Find the tree, too."
)
delta = click.option(
    "--delta", type=float, help="Width of the buckets of weights [default: from the weights]."
)
weighted = click.option("--weighted", is_flag=True, help="Take the edges' values; else each is 1.")
seed = click.option("--seed", type=int, help="Which random order [default: another every time].")


def suffix_of(path: Path) -> str:
    """The last suffix, in lower case."""
    return os.path.splitext(path.name)[1].lower()
