"""Matrices that stay in host memory (`A.to("cuda", storage="host")`) against the time that their
bytes take over the bus.

usage: python -m benchmarks.gpu.host_storage [--graphs rmat_n24_32,kron21] [-o FILE]

For each task: the milliseconds of a call that is waited for, the bytes that it read over the bus,
how long plain copies of as many bytes from pinned memory take, in pieces of the same size, and the
ratio of both times; and the ratio to plain copies of all bytes of the Matrix, the one that counts
where single entries are read in place (components of undirected graphs), each of which brings a
line of 32 bytes. Searches do not count what they read, and have the last ratio alone. PageRank is
timed an iteration, of ten. Every answer is compared with that of the same Matrix in the memory of
the GPU first.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import spgraph as sg
from benchmarks.measuring import arguments, graphs, machine, rows
from spgraph.backends.cuda.streamed.chunks import CHUNK
from spgraph.containers.storage.arrays import import_cupy
from spgraph.containers.storage.host_matrix import HostMatrix

ITERATIONS = 10


def main() -> None:
    """Measure, print the tables, write the file."""
    options = _options()
    found: dict[str, Any] = {
        "benchmark": "host_storage_gpu",
        **machine.facts(options.commit),
        "unit": "ms",
        "graphs": {},
    }
    result = machine.begun(options.output, found)
    for name in options.graphs.split(","):
        result["graphs"][name] = entry = measure(name, options)
        print(table(name, entry), flush=True)
        machine.write(options.output, result)
        import_cupy().get_default_memory_pool().free_all_blocks()


def _options() -> argparse.Namespace:
    parser = arguments.parser(__doc__, "host_storage_gpu", "kron21,rmat_n24_32")
    parser.add_argument("--calls", type=int, default=5)
    return parser.parse_args()


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """All tasks with one graph."""
    G = graphs.load(name, options.data, "cuda")
    S: Any = G.to("cuda", storage="host")
    rate = bus_rate(S)
    entry: dict[str, Any] = {
        "vertices": S.nrows,
        "directed_edges": S.nvals,
        "bytes": S.nbytes,
        "bus_bytes_per_ms": round(rate),
        "tasks": {},
        "faults": [],
    }
    source = int(sg.select(G.row_degrees(), "valuegt", 0).to_coo()[0][0])
    for task, call in tasks(source).items():
        on_host = functools.partial(call, S)
        found, first_ms = rows.first(on_host, "cuda")
        if not same(call(G), found):
            entry["faults"].append(f"{task}: not what the GPU's memory gives")
        del found
        seen = rows.untimed(on_host, first_ms, "cuda")
        before = S.bytes_streamed
        steps = ITERATIONS if task == "pagerank iteration" else 1
        times = [ms / steps for ms in rows.timed(on_host, options.calls, "cuda")]
        nbytes, median = (S.bytes_streamed - before) / options.calls / steps, np.median(times)
        of_all = float(median) / (S.nbytes / rate)
        entry["tasks"][task] = cell = rows.row(times, seen, of_all=of_all)
        if nbytes:
            bus_ms = nbytes / rate
            ratio = float(median) / bus_ms
            cell |= {"bytes": round(nbytes), "bus_ms": bus_ms, "ratio": ratio}
    return entry


def tasks(source: int) -> dict[str, Callable[[sg.Matrix], sg.Vector]]:
    """What is measured, by name."""

    def ones(A: sg.Matrix) -> sg.Vector:
        return sg.Vector.filled(1.0, size=A.ncols, device=A.device)

    def ranks(A: sg.Matrix) -> sg.Vector:
        return sg.pagerank(A, tol=None, max_iter=ITERATIONS)

    return {
        "mxv": lambda A: sg.mxv(A, ones(A)),
        "vxm push": lambda A: sg.vxm(ones(A), A, direction="push"),
        "pagerank iteration": ranks,
        "components": sg.connected_components,
        "bfs": lambda A: sg.bfs(A, source, parents=False).level,
        "bfs push": lambda A: sg.bfs(A, source, parents=False, direction="push").level,
        "bfs with parents": lambda A: sg.bfs(A, source).parent,  # type: ignore[dict-item,return-value]
    }


def same(expected: sg.Vector, found: sg.Vector) -> bool:
    """Equal, or as close as sums in another order, of which one is rounded to single precision."""
    if expected.dtype.kind != "f":
        return expected.isequal(found)
    x, y = (each.to_numpy(fill=0.0) for each in (expected, found))
    return bool(np.abs(x - y).sum() <= 1e-6 * np.abs(x).sum())


def bus_rate(S: HostMatrix) -> float:
    """Bytes a millisecond of plain copies of the columns of S to the device: the best of five."""
    cupy = import_cupy()
    source = S._host._indices
    target, stream = cupy.empty(CHUNK, "u1"), cupy.cuda.Stream(non_blocking=True)

    def copy() -> None:
        for first in range(0, source.nbytes, CHUNK):
            nbytes = min(CHUNK, source.nbytes - first)
            kind = cupy.cuda.runtime.memcpyHostToDevice
            place = source.ctypes.data + first
            cupy.cuda.runtime.memcpyAsync(target.data.ptr, place, nbytes, kind, stream.ptr)

    return source.nbytes / min(rows.timed(copy, 5, "cuda"))


def table(name: str, entry: dict[str, Any]) -> str:
    """The figures of a graph, as lines."""
    rate = entry["bus_bytes_per_ms"] / 1e6
    lines = [f"{name}: {entry['bytes'] / 1e9:.2f} GB, bus {rate:.1f} GB/s {entry['faults']}"]
    for task, cell in entry["tasks"].items():
        lines.append(f"  {task:<20}{cell['median']:9.2f} ms, of all {cell['of_all']:.2f}")
        if "bytes" in cell:
            lines[-1] += f", {cell['bytes'] / 1e9:6.2f} GB, bus {cell['bus_ms']:9.2f} ms"
            lines[-1] += f", {cell['ratio']:.2f}"
    return "\n".join(lines)


if __name__ == "__main__":
    main()
