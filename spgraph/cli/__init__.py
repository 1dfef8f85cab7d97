"""The command `spgraph`: graph files in, tables, JSON and arrays out."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

import click

import spgraph as sg
from spgraph import errors
from spgraph.cli import commands, gap, graph500, graphs, launch, streams, warm
from spgraph.cli.algorithm import FAILED_VALIDATION

BUG, BAD_INPUT, LOST_PEER, INTERRUPTED, BROKEN_PIPE = 1, 2, 70, 130, 141

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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line `arguments` (default: those of the process); the exit code.

    0 success, 1 a failed validation, 2 bad input, 70 a lost process or device, 130 interrupted.
    """
    streams.open_closed()
    try:
        code = cli.main(arguments, prog_name="spgraph", standalone_mode=False)
        sys.stdout.flush()
        if streams.lost():
            return _complain("standard output: it is closed")
        return launch.leave(code or 0)
    except click.exceptions.NoArgsIsHelpError as error:
        return launch.leave(BAD_INPUT, error.format_message(), own=True)
    except click.ClickException as error:
        return _complain(error.format_message())
    except (click.Abort, KeyboardInterrupt):
        return launch.leave(INTERRUPTED, own=True)
    except (BrokenPipeError, SystemExit):
        # the reader (`head`, a pager) has left, which click tells by SystemExit; keep the
        # interpreter from complaining when it flushes at its exit
        streams.give_up(sys.stdout)
        return launch.leave(BROKEN_PIPE)
    except OSError as error:
        if error.filename is not None and error.strerror:
            return _complain(f"{error.filename}: {error.strerror}")
        if error.errno in streams.UNWRITTEN:  # files are named: it is what was being printed
            streams.give_up(sys.stdout)
            return _complain(f"standard output: {error.strerror}")
        return _complain(str(error))
    except USER_ERRORS as error:
        return _complain(str(error) or type(error).__name__)
    except errors.CommunicationError as error:
        return _complain(str(error), LOST_PEER, own=False)
    except Exception:
        if launch.processes() == 1:
            raise
        return launch.leave(BUG, traceback.format_exc(), own=True)


def _complain(message: str, code: int = BAD_INPUT, *, own: bool = True) -> int:
    return launch.leave(code, f"spgraph: error: {' '.join(message.split())}", own=own)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(sg.__version__, prog_name="spgraph", message="%(prog)s %(version)s")
def cli() -> None:
    """Graphs as sparse matrices: generate them, look at them, run every algorithm of spgraph.

    FILE is a graph: Matrix Market .mtx, DIMACS or PACE .gr, an edge list (.txt .el .wel .edges .csv
    .tsv), .npz; each also compressed (.gz .bz2 .xz .zst); - is standard input, in any of these.

    -o writes scores, distances and labels as a row for each vertex (.csv, .tsv) or as .npz: what
    spgraph.load reads, or, where there are several for each vertex, arrays by their names and
    `reached`; of matrices it writes .npz or .mtx.

    --shards and --gpus share a graph out; over several processes where MPI starts them, each of
    which reads its share: mpirun -n 4 spgraph bfs FILE --shards 4. One of them prints and writes.

    Exit codes: 0 success, 1 a failed validation, 2 bad input, 70 a lost process or device, 130
    interrupted.
    """


cli.add_command(graphs.generate)
cli.add_command(graphs.info)
cli.add_command(graphs.convert)
cli.add_command(warm.warm)
cli.add_command(graph500.command)
cli.add_command(gap.command)
for algorithm in commands.ALGORITHMS:
    cli.add_command(algorithm.command(commands.EXAMPLES))

__all__ = [
    "BAD_INPUT",
    "BROKEN_PIPE",
    "FAILED_VALIDATION",
    "INTERRUPTED",
    "cli",
    "main",
]
