"""`spgraph warm`: kernels of the CPU, compiled ahead of time."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

import spgraph as sg
from spgraph import terminal
from spgraph.cli import options, output
from spgraph.cli.algorithm import Algorithm
from spgraph.cli.commands.algorithms import ALGORITHMS
from spgraph.errors import ConvergenceError
from spgraph.io.table import LARGE
from spgraph.process import cache_folder
from spgraph.process.processors import usable

BY_NAME = {algorithm.function.__name__.replace("_", "-"): algorithm for algorithm in ALGORITHMS}


def run(names: tuple[str, ...], shared: bool) -> None:
    """Compile the kernels of these algorithms, of all if none is named, into the cache folder."""
    if shared:  # what is missing above it as the umask says, not for this user alone
        cache_folder.user_folder().mkdir(parents=True, exist_ok=True)
    folder, reason = cache_folder.prepare(cache_folder.user_folder() / "cpu")
    if folder is None or not os.access(folder, os.W_OK):
        reason = reason or f"{folder} cannot be written"
        raise click.ClickException(
            f"warm: SPGRAPH_CACHE_DIR: expected a folder for compiled kernels that this user alone "
            f"can write into, {reason}"
        )
    chosen = list(dict.fromkeys(names)) or list(BY_NAME)
    if len(chosen) == 1:
        begin = time.perf_counter()
        compile_kernels(BY_NAME[chosen[0]])
        output.say(f"{chosen[0]}: {terminal.duration(time.perf_counter() - begin)}")
    else:
        side_by_side(chosen)
    kernels = list(folder.glob("*.kernel"))
    if shared:
        for place in (folder.parent, folder, *kernels):
            place.chmod(place.stat().st_mode | (0o055 if place.is_dir() else 0o044))
    if len(chosen) > 1 or shared:
        size = sum(kernel.stat().st_size for kernel in kernels)
        output.say(f"{len(kernels)} kernels, {size / 1e6:.1f} MB, in {folder}")


def side_by_side(names: Sequence[str]) -> None:
    """A process for each name, as many at once as there are processors.

    A kernel that several need is compiled by one of them, for which the others wait.
    """
    root = str(Path(sg.__file__).parents[1])
    paths = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-P", "-m", "spgraph", "warm"]
    waiting, running = list(reversed(names)), dict[str, subprocess.Popen[bytes]]()
    try:
        while waiting or running:
            while waiting and len(running) < usable():
                name = waiting.pop()
                given = {**os.environ, "PYTHONPATH": paths}
                running[name] = subprocess.Popen([*command, name], env=given)
            time.sleep(0.02)
            for name in [name for name, process in running.items() if process.poll() is not None]:
                code = running.pop(name).returncode
                if code:
                    raise click.ClickException(f"warm: {name}: its process ended with {code}")
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def compile_kernels(algorithm: Algorithm) -> None:
    """Read a file, and call the algorithm as most programs do: the calls compile their kernels."""
    # the transpose of many entries, where several threads may run: they have kernels of their own
    sg.generators.kronecker(15, 32, symmetric=False).T.to_coo()
    with tempfile.TemporaryDirectory() as folder:  # most graphs are read from files of text
        path = Path(folder) / "graph.el"
        path.write_bytes(b"0 1\n" * LARGE)
        sg.read(path)
    starts: dict[str | None, dict[str, Any]] = {
        "source": {"source": 0},
        "sources": {"sources": [0, 1]},
    }
    for A in graphs():
        with contextlib.suppress(ConvergenceError):  # its kernels are compiled by then
            algorithm.function(A, **starts.get(algorithm.start, {}))


def graphs() -> Iterator[sg.Matrix]:
    """Small graphs, undirected and directed ones: without weights, with real ones, with integers.
    0 to 1 is a weight for every algorithm. A search of fewer edges would make no transpose.
    """
    chance = np.random.default_rng(0)
    for symmetric in (True, False):
        A = sg.generators.kronecker(9, symmetric=symmetric)
        yield A
        rows, columns, _ = A.to_coo()
        for weights in (True, chance.random(rows.size), chance.integers(0, 2, rows.size)):
            # of which nobody knows whether it is symmetric
            yield sg.Matrix.from_coo(rows, columns, weights, nrows=A.nrows, ncols=A.ncols)


warm = options.Command(
    "warm",
    callback=run,
    params=[
        click.Argument(["names"], nargs=-1, type=click.Choice(list(BY_NAME)), metavar="[NAMES]..."),
        click.Option(
            ["--shared"],
            is_flag=True,
            help="Let all users read the kernels, as in a folder of root's for a class.",
        ),
    ],
    short_help="Compile the kernels of algorithms ahead of time",
    help="""Compile the kernels of algorithms ahead of time, of all if none is named.

    They are those of the CPU, for graphs without weights, with float64 and with int64 ones, and
    numbers of vertices and edges below 2**31, as called without options; and the one that reads
    files of text. The folder is SPGRAPH_CACHE_DIR or the user's cache folder; kernels that are
    there already are not compiled again, and other kernels are compiled by the first call that
    needs them.

    \b
    Example:
      spgraph warm reachable triangle-count
    """,
)
