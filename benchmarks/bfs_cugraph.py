"""cuGraph's breadth-first search on the graphs and sources of a file that bfs_gpu.py wrote.

usage: python -m benchmarks.bfs_cugraph FILE.json --data DIR

The times go into FILE. pylibcugraph is called directly, with RMM's pool, so that cuGraph does not
pay for cudaMalloc; the graph is made beforehand, renumbered as cuGraph recommends. Each search is
timed with and without direction switching, and the faster of the two stands for cuGraph. The time
is wall time of a call and the synchronisation after it: cuGraph's loop waits on the host. Its
answers are compared with spgraph's by the number of vertices reached and the sum of their levels.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import pathlib
import site
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import graphs, machine

POOL = 40 << 30  # bytes at the start; it grows
LIBRARIES = "libcugraph/lib64 libraft/lib64 librmm/lib64 rapids_logger/lib64 libcugraph_cu13.libs"


def run(file: pathlib.Path, data: pathlib.Path, bundle: pathlib.Path | None) -> None:
    """Add cuGraph's times to `file` in a process of its own, or the reason why there are none.

    `bundle` is a folder with pylibcugraph and its libraries, or a .tar archive of one.
    """
    arguments = [str(file.resolve()), "--data", str(data.resolve())]
    with _environment(bundle) as environment:
        done = subprocess.run(
            [sys.executable, "-m", __spec__.name, *arguments],
            cwd=pathlib.Path(__file__).parent.parent,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        print("\n".join(lines[-15:]), file=sys.stderr)
        result = json.loads(file.read_text(encoding="utf-8"))
        result.setdefault("cugraph", {})["error"] = lines[-1]
        machine.write(file, result)


@contextlib.contextmanager
def _environment(bundle: pathlib.Path | None) -> Iterator[dict[str, str]]:
    """The variables under which a bundle is found; an archive is unpacked for as long."""
    if bundle is None:
        yield dict(os.environ)
        return
    with tempfile.TemporaryDirectory() as folder:
        if bundle.is_file():
            with tarfile.open(bundle) as archive:
                archive.extractall(folder, filter="data")
        base = pathlib.Path(folder) if bundle.is_file() else bundle.resolve()
        libraries = [str(base / part) for part in LIBRARIES.split()]
        libraries += [f"{packages}/nvidia/cu13/lib" for packages in site.getsitepackages()]
        yield {
            **os.environ,
            "PYTHONPATH": _joined([str(base)], "PYTHONPATH"),
            "LD_LIBRARY_PATH": _joined(libraries, "LD_LIBRARY_PATH"),
        }


def _joined(folders: list[str], variable: str) -> str:
    """The folders, and behind them those that the environment variable holds."""
    return os.pathsep.join([*folders, *filter(None, [os.environ.get(variable)])])


def main() -> None:
    """Add cuGraph's times to the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--calls", type=int, default=3, help="timed calls a source")
    options = parser.parse_args()
    result = json.loads(options.file.read_text(encoding="utf-8"))

    try:
        import pylibcugraph
        import rmm
    except ImportError as error:
        result["cugraph"] = {"missing": str(error)}
        machine.write(options.file, result)
        return
    rmm.reinitialize(pool_allocator=True, initial_pool_size=POOL)
    result["cugraph"] = {"version": pylibcugraph.__version__}
    handle = pylibcugraph.ResourceHandle()
    for name, entry in result["graphs"].items():
        if "missing" in entry:
            continue
        print(f"{name}: cugraph ...", flush=True)
        try:
            entry["cugraph"] = measure(name, entry, options, pylibcugraph, handle)
        except (RuntimeError, MemoryError) as error:
            entry["cugraph"] = {"error": str(error).splitlines()[0]}
        machine.write(options.file, result)


def measure(
    name: str, entry: dict[str, Any], options: argparse.Namespace, pylibcugraph: Any, handle: Any
) -> dict[str, Any]:
    """cuGraph on one graph."""
    import cupy

    A = graphs.load(name, options.data, "cuda")
    graph = pylibcugraph.SGGraph(
        handle,
        pylibcugraph.GraphProperties(is_symmetric=True, is_multigraph=False),
        A.indptr,
        A.indices,
        store_transposed=False,
        renumber=True,
        do_expensive_check=False,
        input_array_format="CSR",
    )
    del A
    cupy.get_default_memory_pool().free_all_blocks()

    def search(source: int, switching: bool, parents: bool) -> Any:
        start = cupy.array([source], np.int32)
        return pylibcugraph.bfs(handle, graph, start, switching, -1, parents, False)

    found: dict[str, Any] = {}
    for source, answer in zip(entry["sources"], entry["answers"], strict=True):
        distances = search(source, False, False)[0]
        reached = distances[distances < np.iinfo(np.int32).max]
        ours = (answer["reached"], answer["sum"])
        if (int(reached.size), int(reached.sum(dtype=np.int64))) != ours:
            return {"error": f"levels from source {source} differ from spgraph's"}
    for what, parents in (("levels", False), ("parents", True)):
        ways = {}
        for way, switching in (("push", False), ("switching", True)):
            times = [
                _wall_ms(functools.partial(search, s, switching, parents), options.calls, cupy)
                for s in entry["sources"]
            ]
            median = round(float(np.median(np.median(times, axis=1))), 5)
            ways[way] = {"wall_ms": median, "wall_times": np.round(times, 5).tolist()}
        best = min(ways, key=lambda way: ways[way]["wall_ms"])
        found[what] = {"wall_ms": ways[best]["wall_ms"], "fastest": best, **ways}
    return found


def _wall_ms(call: Callable[[], Any], calls: int, cupy: Any) -> list[float]:
    call()
    times = []
    for _ in range(calls):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        last = call()
        cupy.cuda.Device().synchronize()
        times.append((time.perf_counter() - start) * 1e3)
        del last
    return times


if __name__ == "__main__":
    main()
