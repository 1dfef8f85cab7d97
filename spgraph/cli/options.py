"""Options that commands share."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from spgraph.cli.names import split
from spgraph.cli.placement import PARTITIONS
from spgraph.cli.streams import STANDARD
from spgraph.io.formats import binsparse_files
from spgraph.io.source import COMPRESSIONS
from spgraph.terminal import quiet

PICTURES = (".png", ".pdf", ".svg")
TABLES = (".csv", ".tsv", ".parquet")
VERTICES = (".npz", *TABLES)
MATRICES = (".npz", ".mtx", *(f".mtx{compression}" for compression in COMPRESSIONS), *TABLES)


class Command(click.Command):
    """A command that refuses an option that comes again: click takes the last and tells nobody."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Put the values of the options into the context; the words that are left."""
        given = list(args)  # click takes away what it parses
        rest = super().parse_args(context, args)
        if context.resilient_parsing:  # of words that are still being typed
            return rest
        _, _, order = self.make_parser(context).parse_args(given)
        for option in order:
            if isinstance(option, click.Option) and order.count(option) > 1 and _one(option):
                words = " or ".join([option.opts[-1], *option.secondary_opts])
                kind = option.type.name
                remedy = f"; several are one word, {kind}" if "," in kind else ""
                raise click.BadParameter(
                    f"expected {words} once, got it {order.count(option)} times{remedy}",
                    context,
                    option,
                )
        return rest


def _one(option: click.Option) -> bool:
    """Whether only the last word that is given for it would count, and others be lost."""
    return not option.multiple and not (option.is_flag and not option.secondary_opts)


def either(words: tuple[str, ...]) -> str:
    """'.csv, .tsv or .parquet'."""
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def writable(*suffixes: str) -> Callable[..., Path | None]:
    """A click callback: the suffix is known and the folder exists, found out before any work."""

    def check(context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
        if path is None or path == STANDARD:
            return path
        if not path.name.lower().endswith(suffixes):
            raise click.BadParameter(f"expected a name that ends in {either(suffixes)}, got {path}")
        if binsparse_files.takes(path.name):
            raise click.BadParameter(
                f"expected another name than {path}: one that ends in {binsparse_files.ARCHIVE} is "
                "read as a file of Binsparse, which spgraph.write writes"
            )
        if not path.parent.is_dir():
            raise click.BadParameter(f"there is no folder {path.parent} to write {path.name} into")
        return path

    return check


def output(suffixes: tuple[str, ...], help: str, *, required: bool = False) -> list[click.Option]:
    """Where the result is written, and how where no suffix says it."""
    standard = standard_suffix(suffixes)
    return [
        click.Option(
            ["-o", "--output", "target"],
            type=click.Path(path_type=Path),
            required=required,
            callback=writable(*suffixes),
            metavar="FILE",
            help=f"{help} - is standard output; what else is printed goes to standard error.",
        ),
        click.Option(
            ["--output-format", "target_format"],
            type=click.Choice([suffix[1:] for suffix in suffixes]),
            help=f"The format of -o - [default: {standard[1:]}].",
        ),
    ]


def standard_suffix(suffixes: tuple[str, ...]) -> str:
    """The format of these that standard output gets unless another is asked for."""
    return ".npz" if ".mtx" in suffixes else ".csv"


def picture(help: str) -> click.Option:
    """Where a picture is written."""
    return click.Option(
        ["--plot", "picture"],
        type=click.Path(path_type=Path),
        callback=writable(*PICTURES),
        metavar="FILE",
        help=f"{help} ({either(PICTURES)}; - is standard output, a PNG).",
    )


def top(help: str) -> click.Option:
    """How many rows of a result are printed."""
    return click.Option(["--top"], type=click.IntRange(1), metavar="K", help=help)


class Columns(click.ParamType):
    """The titles of two or three columns, like from,to,km."""

    name = "FROM,TO[,WEIGHT]"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> list[str]:
        """The titles as a list."""
        with contextlib.suppress(csv.Error):
            titles = split(value)
            if len(titles) in (2, 3) and all(titles):
                return titles
        self.fail(f"expected two or three titles like from,to,km, got {value!r}")


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
        ["--columns"],
        type=Columns(),
        help="FILE is a table (.csv .tsv .parquet) with names of vertices in the columns of these "
        "titles: --source takes a name, and results have names [default for .parquet: "
        "source,target].",
    ),
    click.Option(
        ["--compact"],
        type=click.Path(path_type=Path),
        metavar="IDS",
        callback=writable(*VERTICES),
        help="For ids far apart: number the vertices that have edges 0, 1, ..., and write the id "
        f"of each into this file ({either(VERTICES)}; - is standard output).",
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
QUIET = click.Option(
    ["-q", "--quiet"],
    is_flag=True,
    expose_value=False,
    callback=lambda context, _, given: context.with_resource(quiet()) if given else None,
    help="Say nothing on standard error but errors and warnings: no progress, no notes.",
)
TRACE = click.Option(["--trace", "with_trace"], is_flag=True, help="Print a row per level.")
PATH_TO = click.Option(
    ["--path-to"], metavar="V", help="Print the vertices on the path from the source to this one."
)
VALIDATE = click.Option(
    ["--validate", "validated"], is_flag=True, help="Check the tree by the five rules of Graph500."
)
