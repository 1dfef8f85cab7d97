"""spgraph beside every other library that is there: the same graphs, sources and conditions.

It says which peers there are, then runs the benchmarks that know them, as `renew` does. On the CPU:
SciPy, NetworKit, igraph, python-graphblas, and GAPBS from a folder of its builds; on a GPU:
cuGraph, from its package or a folder of its unpacked wheels, and CuPy's cuSPARSE.
"""

from __future__ import annotations

import argparse
import importlib.util
import pathlib

from benchmarks import renew
from benchmarks.measuring import arguments

LIBRARIES = {
    "cpu": {"SciPy": "scipy", "NetworKit": "networkit", "igraph": "igraph"}
    | {"python-graphblas": "graphblas"},
    "cuda": {"CuPy": "cupy", "cuGraph": "pylibcugraph"},
}
BENCHMARKS = {
    "cpu": "bfs_cpu,algorithms_cpu,gapbs_cpu",
    "cuda": "bfs_gpu,algorithms_gpu,operations_gpu",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--folder", type=pathlib.Path, help="for the result files")
    renew.add_peers(parser)


def run(given: argparse.Namespace) -> int:
    """Run all; 1 where one failed."""
    print("\n".join(found(given)), flush=True)
    on = "cpu" if given.device == "cpu" else "gpu"
    whole = argparse.Namespace(only=BENCHMARKS[given.device], on=on, within=None, commit=None)
    vars(whole).update(vars(given), folder=given.folder or arguments.RESULTS, add=False)
    return renew.run(whole)


def found(given: argparse.Namespace) -> list[str]:
    """A line a peer: there, or missing."""
    lines = []
    for name, module in LIBRARIES[given.device].items():
        there = importlib.util.find_spec(module) is not None
        there |= name == "cuGraph" and given.cugraph is not None
        lines.append(f"{name}: {'there' if there else 'missing'}")
    if given.device == "cpu":
        lines.append("GAPBS: " + ("there" if given.gapbs else "missing, give --gapbs BUILDS"))
    return lines
