"""The command `spgraph`: graph files in, tables, JSON and arrays out."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

import spgraph as sg
from spgraph import errors, plot, terminal
from spgraph.iterations.search import Level, search
from spgraph.semirings import min_secondi
from spgraph.validation import validate_bfs

FAILED_VALIDATION, BAD_INPUT, INTERRUPTED, BROKEN_PIPE = 1, 2, 130, 141

# What a user's input can raise. TypeError, IndexError and RuntimeError are caught only as spgraph's
# own classes: a bare one is a bug, and a bug keeps its traceback.
USER_ERRORS = (
    OSError,
    MemoryError,
    ValueError,
    errors.DomainMismatch,
    errors.IndexOutOfBound,
    errors.BackendMismatch,
    errors.BackendUnavailable,
    errors.ConvergenceError,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line `arguments` (default: those of the process); the exit code.

    0 success, 1 a failed validation, 2 bad input, 130 interrupted.
    """
    try:
        code = cli.main(arguments, prog_name="spgraph", standalone_mode=False)
        sys.stdout.flush()
        return code or 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return BAD_INPUT
    except click.ClickException as error:
        return _complain(error.format_message())
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # the reader (`head`, a pager) has left, which click tells by SystemExit; keep the
        # interpreter from complaining when it flushes at its exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        named = error.filename is not None and error.strerror
        return _complain(f"{error.filename}: {error.strerror}" if named else str(error))
    except USER_ERRORS as error:
        return _complain(str(error) or type(error).__name__)


def _complain(message: str) -> int:
    click.echo(f"spgraph: error: {' '.join(message.split())}", err=True)
    return BAD_INPUT


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(sg.__version__, prog_name="spgraph", message="%(prog)s %(version)s")
def cli() -> None:
    """Graphs as sparse matrices: generate them, look at them, search them.

    Exit codes: 0 success, 1 a failed validation, 2 bad input, 130 interrupted.
    """


# --- options that commands share ------------------------------------------------------------------


def _graph_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option(
            "--base",
            type=click.IntRange(0, 1),
            help="Least vertex id of an edge list [default: 0]; other formats fix their own.",
        ),
        click.option(
            "--symmetric/--directed",
            default=None,
            help="Take each edge both ways, or as it stands [default: as the format says].",
        ),
        click.argument("file", type=click.Path(path_type=Path)),
    ):
        command = option(command)
    return command


def _format_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--format",
        "style",
        type=click.Choice(["table", "json"]),
        default="table",
        show_default=True,
        help="How to print the result.",
    )(command)


def _writable(*suffixes: str) -> Callable[..., Path | None]:
    """A click callback: the suffix is known and the folder exists, found out before any work."""

    def check(context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
        if path is not None and path.suffix not in suffixes:
            raise click.BadParameter(
                f"expected a name that ends in {' or '.join(suffixes)}, got {path}"
            )
        if path is not None and not path.parent.is_dir():
            raise click.BadParameter(f"there is no folder {path.parent} to write {path.name} into")
        return path

    return check


def _read(file: Path, symmetric: bool | None, base: int | None) -> tuple[sg.Matrix, float]:
    start = time.perf_counter()
    with terminal.progress(f"reading {file}"):
        A = sg.read(file, symmetric=symmetric, base=base)
    return A, time.perf_counter() - start


def _write(path: Path, save: Callable[[Path], None]) -> None:
    with terminal.progress(f"writing {path}"):
        save(path)


# --- spgraph bfs ----------------------------------------------------------------------------------


@cli.command()
@_graph_options
@click.option("--source", type=int, help="First vertex, from 0 [default: that of largest degree].")
@click.option(
    "--device", default="cpu", show_default=True, help="Where to search: cpu, cuda or cuda:N."
)
@click.option(
    "--direction",
    type=click.Choice(["auto", "push", "pull"]),
    default="auto",
    show_default=True,
    help="push: from the frontier; pull: from the unvisited; auto: the cheaper, level by level.",
)
@click.option("--max-depth", type=click.IntRange(0), help="Stop at this level.")
@click.option("--validate", is_flag=True, help="Check the tree by the five rules of Graph500.")
@click.option("--trace", is_flag=True, help="Print a row per level.")
@click.option(
    "--plot",
    "picture",
    type=click.Path(path_type=Path),
    callback=_writable(".png", ".pdf", ".svg"),
    help="Draw the levels into this file (.png, .pdf or .svg).",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    callback=_writable(".npz"),
    help="Write level and parent (-1 where unreached) and source into this .npz file.",
)
@_format_option
def bfs(
    file: Path,
    symmetric: bool | None,
    base: int | None,
    source: int | None,
    device: str,
    direction: str,
    max_depth: int | None,
    validate: bool,
    trace: bool,
    picture: Path | None,
    output: Path | None,
    style: str,
) -> int:
    """Breadth-first search of the graph in FILE: levels, and parents of least id.

    The search runs for one level before it is timed, so that the time is not the compiler's.

    \b
    Example:
      spgraph generate kronecker 18 -o kron.npz
      spgraph bfs kron.npz --validate --trace --plot levels.png
    """
    if picture is not None:
        plot.require_matplotlib()  # told before the work, not after it
    A, read_seconds = _read(file, symmetric, base)
    if source is None:
        if A.nrows == 0:
            raise errors.FormatError(f"{file}: the graph has no vertex to start from")
        source = int(np.diff(A.indptr).argmax())

    with terminal.progress(f"searching from vertex {source}"):
        G = A.to(device)
        sg.bfs(G, source, direction=direction, max_depth=1)
        start = time.perf_counter()
        found = sg.bfs(G, source, direction=direction, max_depth=max_depth)
        reached = found.level.nvals  # a number on the host: the device has finished
        seconds = time.perf_counter() - start
        rows = None
        if trace or picture is not None:
            rows = _trace(G, source, direction, max_depth)
    assert found.parent is not None  # parents were asked for
    level, parent = found.level.to_numpy(fill=-1), found.parent.to_numpy(fill=-1)
    traversed = int(np.diff(A.indptr)[level >= 0].sum())
    result = {
        "file": str(file),
        "vertices": A.nrows,
        "edges": A.nvals,
        "read_seconds": read_seconds,
        "device": G.device,
        "direction": direction,
        "source": source,
        "reached": reached,
        "depth": int(level.max()),
        "seconds": seconds,
        "traversed_edges": traversed,
        "teps": traversed / seconds,
    }
    if trace and rows is not None:
        result["trace"] = [row._asdict() for row in rows]
    if validate:
        with terminal.progress("validating"):
            failures = validate_bfs(A, source, found.level, found.parent, max_depth=max_depth)
        result["failures"] = [failure._asdict() for failure in failures]
    if output is not None:
        _write(output, lambda path: np.savez(path, level=level, parent=parent, source=source))
    if picture is not None and rows is not None:
        _write(picture, plot.frontier_profile(rows).savefig)

    click.echo(json.dumps(result, indent=2) if style == "json" else _bfs_text(result))
    return FAILED_VALIDATION if result.get("failures") else 0


def _trace(A: sg.Matrix, source: int, direction: str, max_depth: int | None) -> list[Level]:
    """What the levels of the search did, from a run of its own: the clocks of a trace cost time."""
    start = sg.Vector.unit(source, source, size=A.nrows, dtype=A.indices.dtype, device=A.device)
    found = search(A, start, min_secondi, direction=direction, max_depth=max_depth, trace=True)
    return found.trace or []


def _bfs_text(result: dict[str, Any]) -> str:
    lines = [
        f"{result['file']}: {result['vertices']:,} vertices, {result['edges']:,} edges, "
        f"read in {terminal.duration(result['read_seconds'])}",
        f"BFS from vertex {result['source']} on {result['device']}",
        "",
    ]
    if "trace" in result:
        rows = [
            (
                str(row["depth"]),
                row["direction"],
                f"{row['frontier']:,}",
                f"{row['edges']:,}",
                f"{row['seconds'] * 1e3:,.3f}",
            )
            for row in result["trace"]
        ]
        looked = sum(row["edges"] for row in result["trace"])
        spent = sum(row["seconds"] for row in result["trace"])
        total = ("all", "", f"{result['reached']:,}", f"{looked:,}", f"{spent * 1e3:,.3f}")
        head = ("level", "direction", "frontier", "edges looked at", "time [ms]")
        lines += [*terminal.table(head, rows, total), ""]
    facts = {
        "reached": f"{result['reached']:,} of {result['vertices']:,} vertices, "
        f"the last at level {result['depth']}",
        "time": terminal.duration(result["seconds"]),
        "edges": f"{result['traversed_edges']:,} leave reached vertices; an undirected one counts "
        "in both directions",
        "rate": f"{terminal.rate(result['teps'])}, these edges / time",
    }
    if "failures" in result:
        facts["tree"] = "valid by the five checks of Graph500"
        if result["failures"]:
            facts["tree"] = "NOT VALID"
    lines += terminal.facts(facts)
    lines += [f"  check {f['check']}: {f['message']}" for f in result.get("failures", [])]
    return "\n".join(lines)


# --- spgraph info ---------------------------------------------------------------------------------


@cli.command()
@_graph_options
@_format_option
def info(file: Path, symmetric: bool | None, base: int | None, style: str) -> None:
    """What the graph in FILE is: size, symmetry, degrees, type, bytes.

    \b
    Example:
      spgraph info kron.npz
    """
    A, read_seconds = _read(file, symmetric, base)
    degrees = np.diff(A.indptr)
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
    if style == "json":
        click.echo(json.dumps(result, indent=2))
        return
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
    click.echo("\n".join(terminal.facts(facts)))


# --- spgraph generate -----------------------------------------------------------------------------


@cli.group()
def generate() -> None:
    """Make a graph and write it to a file.

    \b
    Example:
      spgraph generate kronecker 18 -o kron.npz
    """


def _generate_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option(
            "-o",
            "--output",
            type=click.Path(path_type=Path),
            required=True,
            callback=_writable(".npz", ".mtx"),
            help="File to write: .npz (fast) or .mtx.",
        ),
        click.option("--seed", type=int, default=1, show_default=True, help="Which random graph."),
    ):
        command = option(command)
    return command


def _make(output: Path, generator: Callable[..., sg.Matrix], **options: Any) -> None:
    start = time.perf_counter()
    with terminal.progress(f"generating {output}"):
        A = generator(**options)
    _write(output, lambda path: sg.write(path, A))
    spent = terminal.duration(time.perf_counter() - start)
    click.echo(f"{output}: {A.nrows:,} vertices, {A.nvals:,} edges, made and written in {spent}")


_edge_factor = click.option(
    "--edge-factor", type=int, default=16, show_default=True, help="Edges per vertex."
)
_symmetric = click.option(
    "--symmetric/--directed", default=True, show_default=True, help="Take each edge both ways."
)


@generate.command()
@click.argument("scale", type=int)
@_edge_factor
@click.option("--a", type=float, default=0.57, show_default=True, help="Share of the upper left.")
@click.option("--b", type=float, default=0.19, show_default=True, help="Share of the upper right.")
@click.option("--c", type=float, default=0.19, show_default=True, help="Share of the lower left.")
@_symmetric
@click.option("--self-loops", is_flag=True, help="Keep edges from a vertex to itself.")
@click.option("--permute/--no-permute", default=True, show_default=True, help="Shuffle the ids.")
@_generate_options
def kronecker(output: Path, **options: Any) -> None:
    """The Graph500's R-MAT graph of 2^SCALE vertices.

    \b
    Example:
      spgraph generate kronecker 18 --edge-factor 16 -o kron.npz
    """
    _make(output, sg.generators.kronecker, **options)


@generate.command()
@click.argument("n", metavar="VERTICES", type=int)
@_edge_factor
@_symmetric
@_generate_options
def uniform(output: Path, **options: Any) -> None:
    """A graph on VERTICES whose edges have ends drawn uniformly.

    \b
    Example:
      spgraph generate uniform 100000 --edge-factor 8 -o uniform.npz
    """
    _make(output, sg.generators.uniform_random, **options)


@generate.command()
@click.argument("rows", type=int)
@click.argument("columns", type=int)
@click.option(
    "--remove", type=float, default=0.0, show_default=True, help="Share of edges to leave out."
)
@_generate_options
def grid(output: Path, **options: Any) -> None:
    """A grid of ROWS x COLUMNS vertices, like a road map when some edges are removed.

    \b
    Example:
      spgraph generate grid 1000 1000 --remove 0.1 -o roads.npz
    """
    _make(output, sg.generators.grid, **options)
