"""The command `spgraph`: graph files in, tables, JSON and arrays out."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import click

import spgraph as sg
from spgraph import errors
from spgraph.cli import launch, names, options, streams
from spgraph.cli.algorithm import FAILED_VALIDATION
from spgraph.cli.commands import algorithms, gap, graph500, graphs, warm
from spgraph_command import wants_json

BUG, BAD_INPUT, LOST_PEER, INTERRUPTED, BROKEN_PIPE = 1, 2, 70, 130, 141
PREFIX = "spgraph: error: "

# What a user's input can raise. TypeError, IndexError and RuntimeError are caught only as spgraph's
# own classes: a bare one is a bug, and a bug keeps its traceback.
USER_ERRORS = (
    OSError,
    MemoryError,
    OverflowError,
    ValueError,
    errors.DomainMismatch,
    errors.IndexOutOfBound,
    errors.BackendMismatch,
    errors.BackendUnavailable,
    errors.ConvergenceError,
)


class Interrupted(BaseException):
    """Ctrl-C, in a run that prints JSON."""


class Ending(NamedTuple):
    """How a run ends: its exit code, the error if there is one and the text of it for people;
    `own`: it is not one that another process caused.
    """

    code: int
    error: BaseException | None = None
    text: str = ""
    own: bool = True

    def said(self, as_json: bool) -> str:
        """The line for standard error, '' for none."""
        if self.error is None or not as_json:
            return self.text
        message = self.text.removeprefix(PREFIX)
        told = {"kind": type(self.error).__name__, "message": message, "exit_code": self.code}
        return streams.as_line("error", told | _details(self.error))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line `arguments` (default: those of the process); the exit code.

    0 success, 1 a failed validation, 2 bad input, 70 a lost process or device, 130 interrupted.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    as_json = wants_json(words)
    streams.open_closed()
    with streams.warnings_as_json() if as_json else nullcontext():
        end = _run(words, as_json)
        if end.code == BUG and end.error is not None and launch.processes() == 1 and not as_json:
            raise end.error
        return launch.leave(end.code, end.said(as_json), own=end.own and end.error is not None)


def _run(words: list[str], as_json: bool) -> Ending:
    try:
        code = cli.main(words, prog_name="spgraph", standalone_mode=False, obj=as_json)
        sys.stdout.flush()
        if streams.lost():
            return _bad(OSError(), "standard output: it is closed")
        return Ending(code or 0)
    except click.exceptions.NoArgsIsHelpError as error:
        return Ending(BAD_INPUT, error, error.format_message())
    except click.ClickException as error:
        return _bad(error, error.format_message())
    except (click.Abort, KeyboardInterrupt, Interrupted):
        return Ending(INTERRUPTED, KeyboardInterrupt())
    except (BrokenPipeError, SystemExit):
        # the reader (`head`, a pager) has left, which click tells by SystemExit; keep the
        # interpreter from complaining when it flushes at its exit
        streams.give_up(sys.stdout)
        return Ending(BROKEN_PIPE)
    except OSError as error:
        if error.filename is not None and error.strerror:
            return _bad(error, f"{error.filename}: {error.strerror}")
        if error.errno in streams.UNWRITTEN:  # files are named: it is what was being printed
            streams.give_up(sys.stdout)
            return _bad(error, f"standard output: {error.strerror}")
        return _bad(error, str(error))
    except USER_ERRORS as error:
        return _bad(error, str(error) or type(error).__name__)
    except errors.CommunicationError as error:
        return _bad(error, str(error), LOST_PEER, own=False)
    except Exception as error:
        return Ending(BUG, error, traceback.format_exc())


def _bad(error: BaseException, message: str, code: int = BAD_INPUT, *, own: bool = True) -> Ending:
    return Ending(code, error, f"{PREFIX}{' '.join(message.split())}", own)


def _details(error: BaseException) -> dict[str, Any]:
    """What is known of an error beside its text, for programs."""
    found: dict[str, Any] = {}
    if isinstance(error, KeyboardInterrupt):
        found["message"] = "interrupted"
    if isinstance(error, OSError) and error.filename is not None:
        found["file"] = str(error.filename)
    if isinstance(error, click.BadParameter) and error.param is not None:
        found["parameter"] = error.param.opts[-1] if error.param.opts else error.param.name
    if isinstance(error, click.NoSuchOption):
        found |= {"parameter": error.option_name, "nearest": list(error.possibilities or ())}
    if isinstance(error, names.UnknownVertex):
        found |= {"parameter": error.option, "name": error.name, "nearest": error.nearest}
    return found


class Commands(click.Group):
    """The commands. Where programs listen, Ctrl-C is not told by click, which prints a line."""

    def invoke(self, context: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(context)
        except KeyboardInterrupt:
            if context.obj:  # JSON is wanted
                raise Interrupted from None
            raise


@click.group(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(sg.__version__, prog_name="spgraph", message="%(prog)s %(version)s")
def cli() -> None:
    """Graphs as sparse matrices: generate them, look at them, run every algorithm of spgraph.

    FILE is a graph: Matrix Market .mtx, DIMACS or PACE .gr, an edge list (.txt .el .wel .edges .csv
    .tsv), .npz; each also compressed (.gz .bz2 .xz .zst); a file of Binsparse (.h5 .hdf5 .bsp.npz);
    a table with names of vertices (--columns); - is standard input, in any of these but Binsparse.

    -o writes scores, distances and labels as a row for each vertex (.csv, .tsv, .parquet) or as
    .npz: what spgraph.load reads, or, where there are several for each vertex, arrays by their
    names and `reached`; of matrices it writes .npz, .mtx, or a row for each entry.

    --shards and --gpus share a graph out; over several processes where MPI starts them, each of
    which reads its share: mpirun -n 4 spgraph bfs FILE --shards 4. One of them prints and writes.

    Exit codes: 0 success, 1 a failed validation, 2 bad input, 70 a lost process or device, 130
    interrupted, 141 nobody reads standard output any more.
    """


cli.add_command(graphs.generate)
cli.add_command(graphs.info)
cli.add_command(graphs.convert)
cli.add_command(warm.warm)
cli.add_command(graph500.command)
cli.add_command(gap.command)
for algorithm in algorithms.ALGORITHMS:
    cli.add_command(algorithm.command(algorithms.EXAMPLES))


def _add_quiet(command: click.Command) -> None:
    """The option -q for a command and those below it."""
    command.params.append(options.QUIET)
    for each in command.commands.values() if isinstance(command, click.Group) else ():
        _add_quiet(each)


_add_quiet(cli)

__all__ = [
    "BAD_INPUT",
    "BROKEN_PIPE",
    "FAILED_VALIDATION",
    "INTERRUPTED",
    "cli",
    "main",
]
