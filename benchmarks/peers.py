"""spgraph beside every other library that is there: the same graphs, sources and conditions.

It runs the benchmarks that know peers one after another, each in a process of its own, and says
first which peers there are. On the CPU: SciPy, NetworKit, igraph, python-graphblas, and GAPBS from
a folder of its builds; on a GPU: cuGraph, from its package or a folder of its unpacked wheels, and
CuPy's cuSPARSE.
"""

from __future__ import annotations

import argparse
import importlib.util
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIBRARIES = {
    "cpu": {"SciPy": "scipy", "NetworKit": "networkit", "igraph": "igraph"}
    | {"python-graphblas": "graphblas"},
    "cuda": {"CuPy": "cupy", "cuGraph": "pylibcugraph"},
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--graphs", help="names, instead of those of each benchmark")
    parser.add_argument("--data", type=pathlib.Path, help="the folder of real graphs")
    parser.add_argument("--gapbs", type=pathlib.Path, metavar="BUILDS", help="on the CPU")
    parser.add_argument("--cugraph", type=pathlib.Path, metavar="BUNDLE", help="on a GPU")
    parser.add_argument("--folder", type=pathlib.Path, help="for the result files")


def run(given: argparse.Namespace) -> int:
    """Run all; 1 where one failed."""
    print("\n".join(found(given)), flush=True)
    failed = []
    for words in commands(given):
        print(f"\n== {words[0]}", flush=True)
        if subprocess.run([sys.executable, "-m", *words], cwd=ROOT).returncode:
            failed.append(words[0])
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


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


def commands(given: argparse.Namespace) -> list[list[str]]:
    """The benchmarks to run, with their arguments."""
    common = ["--graphs", given.graphs] if given.graphs else []
    common += ["--data", str(given.data.resolve())] if given.data else []
    if given.device == "cuda":
        bundle = ["--cugraph", str(given.cugraph.resolve())] if given.cugraph else []
        wanted = [["benchmarks.bfs_gpu", *bundle], ["benchmarks.algorithms_gpu", *bundle]]
        wanted.append(["benchmarks.operations_gpu"])
    else:
        wanted = [["benchmarks.bfs_cpu"], ["benchmarks.algorithms_cpu"]]
        if given.gapbs:
            wanted.append(["benchmarks.gapbs_cpu", str(given.gapbs.resolve())])
    for words in wanted:
        words += common
        if given.folder:
            name = words[0].rpartition(".")[2]
            words += ["-o", str(given.folder.resolve() / f"{name}.json")]
    return wanted
