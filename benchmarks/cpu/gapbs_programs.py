"""GAPBS, the GAP Benchmark Suite (C++ and OpenMP), on the graphs that spgraph is measured on.

Its programs are run from a folder of builds: one folder a build, such as `o3/` and `native/`, each
with `bfs sssp pr pr_spmv cc cc_sv bc tc`. They must take a list of sources from $GAP_SOURCES and
write the last result to the file $GAP_DUMP, both outside of what they time, which the released
GAPBS does not: `../shared/tools/gapbs` beside the checkout has the patch, and builds it. A graph is
handed over as a file in GAPBS's own binary form.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import spgraph as sg

# programs that do the same, of which the faster one counts; with each delta of DELTAS for sssp
VARIANTS = {"pr": ("pr", "pr_spmv"), "cc": ("cc", "cc_sv")}
DELTAS = (1, 4, 16, 64, 256, 1024)
ITERATIONS = 20
RESULT = {"bfs": np.int32, "sssp": np.int32, "pr": np.float32, "cc": np.int32, "bc": np.float32}


class Program(NamedTuple):
    """One way to compute a kernel's result: a build, a program of it and its options."""

    build: str
    name: str
    options: tuple[str, ...]


class Run(NamedTuple):
    """Milliseconds of each call, the result of the last one, and the most memory of the process."""

    times: list[float]
    result: Any
    peak_bytes: int


class Suite:
    """GAPBS on one graph: `A`, and `W` with int32 weights for sssp."""

    def __init__(self, builds: pathlib.Path, folder: pathlib.Path, A: sg.Matrix, W: sg.Matrix):
        self.builds, self.folder = builds, folder
        self.directed = not A.symmetric
        write(folder / "graph.sg", A, self.directed, weighted=False)
        write(folder / "graph.wsg", W, self.directed, weighted=True)

    def programs(self, kernel: str, sources: list[int]) -> list[Program]:
        """All that compute `kernel`: bfs, sssp, pr, cc, bc or tc."""
        options: list[tuple[str, ...]] = [()]
        if kernel == "sssp":
            options = [("-d", str(delta)) for delta in DELTAS]
        elif kernel == "pr":
            options = [("-i", str(ITERATIONS), "-t", "0")]
        elif kernel == "bc":
            options = [("-i", str(len(sources)))]
        builds = sorted(path.name for path in self.builds.iterdir() if path.is_dir())
        names = VARIANTS.get(kernel, (kernel,))
        return [Program(b, name, given) for b in builds for name in names for given in options]

    def fastest(self, kernel: str, sources: list[int], threads: int) -> Program:
        """The program with the shortest of two calls from the first source; of bc and tc of one."""
        first = sources if kernel == "bc" else sources[:1]
        calls = 1 if kernel in ("bc", "tc") else 2
        programs = self.programs(kernel, sources)
        return min(programs, key=lambda one: min(self.run(one, kernel, first, calls, threads)[0]))

    def run(
        self, program: Program, kernel: str, sources: list[int], calls: int, threads: int
    ) -> Run:
        """Call i is from sources[i modulo their number]; of bc each is from all sources. The result
        of tc is the count.
        """
        dump = self.folder / "result"
        graph = self.folder / ("graph.wsg" if kernel == "sssp" else "graph.sg")
        settings = {
            "OMP_NUM_THREADS": str(threads),
            "GAP_SOURCES": ",".join(map(str, sources)),
            "GAP_DUMP": str(dump),
        }
        binary = self.builds / program.build / program.name
        words = [str(binary), "-f", str(graph), "-n", str(calls), *program.options]
        said, peak = finished(words, settings)
        times = [1e3 * float(t) for t in re.findall(r"Trial Time:\s+([\d.]+)", said)]
        if len(times) != calls:
            raise RuntimeError(f"{binary.name}: expected {calls} times, got {len(times)}")
        if kernel == "tc":
            return Run(times, int(re.findall(r"Result: (\d+)", said)[-1]), peak)
        return Run(times, np.fromfile(dump, RESULT[kernel]), peak)


# Runs a program, and writes the most memory that it had. A process of its own: what Linux says of a
# child begins with the memory of the process that started it.
MEASURED = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print("KiB:", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code if code >= 0 else 128 - code)
"""


def finished(words: list[str], settings: dict[str, str] | None = None) -> tuple[str, int]:
    """(what a program prints, the most bytes that it had). RuntimeError where it fails."""
    environment = {**os.environ, **(settings or {})}
    command = [sys.executable, "-S", "-E", "-c", MEASURED, *words]
    child = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    if child.returncode:
        raise RuntimeError(f"{os.path.basename(words[0])}: exit code {child.returncode}")
    said, _, kibibytes = child.stdout.rpartition("KiB:")
    return said, 1024 * int(kibibytes)


def missing(builds: pathlib.Path) -> str | None:
    """Why `builds` is no folder of builds; None if it is one."""
    found = sorted(builds.glob("*/bfs")) if builds.is_dir() else []
    return None if found else f"{builds.name} has no folder with a program `bfs`"


def write(path: pathlib.Path, A: sg.Matrix, directed: bool, *, weighted: bool) -> None:
    """A graph in GAPBS's own form: whether it is directed, entries, vertices, then the row pointers
    and the ids (with `weighted` each beside its weight), those of the transpose too if directed.
    """
    with path.open("wb") as file:
        np.array([directed]).tofile(file)
        np.array([A.nvals, A.nrows], np.int64).tofile(file)
        for side in (A, A.T)[: 1 + directed]:
            side.indptr.astype(np.int64).tofile(file)
            ids = side.indices.astype(np.int32)
            if weighted:
                ids = np.column_stack([ids, np.broadcast_to(side.values, ids.shape)])
            ids.astype(np.int32).tofile(file)


def levels(parents: np.ndarray) -> np.ndarray:
    """How far each vertex is from the root of its tree, -1 without a parent; each parent must be
    one level above, which is checked by comparing this with right levels.
    """
    reached = parents >= 0
    above = np.where(reached, parents, np.arange(parents.size))
    steps = (above != np.arange(parents.size)).astype(np.int64)
    while True:
        more = steps[above]
        if not more.any():
            return np.where(reached, steps, -1)
        steps += more
        above = above[above]


@contextlib.contextmanager
def endless_loops(count: int) -> Iterator[None]:
    """So many processes that never rest, on the processors of this one."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        time.sleep(0.5 if count else 0.0)
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()
