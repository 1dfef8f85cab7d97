"""cuGraph in a process of its own: started, given its graph, timed.

pylibcugraph is called directly, with RMM's pool, so that cuGraph does not pay for cudaMalloc; the
graph is made beforehand, renumbered as cuGraph recommends. A time is wall time of a call and the
synchronisation after it: cuGraph's loops wait on the host.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import site
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.measuring import gpu_clock, machine
from benchmarks.measuring.arguments import ROOT

POOL = 40 << 30  # bytes at the start; it grows
LIBRARIES = "libcugraph/lib64 libraft/lib64 librmm/lib64 rapids_logger/lib64 libcugraph_cu13.libs"


def run(module: str, file: pathlib.Path, data: pathlib.Path, bundle: pathlib.Path | None) -> None:
    """Let `module` add cuGraph's times to `file`, or write the reason why there are none.

    `bundle` is a folder with pylibcugraph and its libraries, or a .tar archive of one.
    """
    arguments = [str(file.resolve()), "--data", str(data.resolve())]
    with _environment(bundle) as environment:
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
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


def main(measure: Callable[[str, dict[str, Any], argparse.Namespace, Any, Any], Any]) -> None:
    """What such a module does: `measure` adds cuGraph's figures to each graph of the file."""
    parser = argparse.ArgumentParser()
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


def graph_of(
    A: Any, pylibcugraph: Any, handle: Any, *, weights: Any = None, transposed: bool = False
) -> Any:
    """cuGraph's own graph of a symmetric Matrix."""
    return pylibcugraph.SGGraph(
        handle,
        pylibcugraph.GraphProperties(is_symmetric=True, is_multigraph=False),
        A.indptr,
        A.indices,
        weight_array=weights,
        store_transposed=transposed,
        renumber=True,
        do_expensive_check=False,
        input_array_format="CSR",
    )


def wall_ms(call: Callable[[], Any], calls: int, cupy: Any) -> list[float]:
    """Milliseconds of `calls` calls, after one to warm up."""
    call()
    return gpu_clock.wall_ms(call, calls, cupy)
