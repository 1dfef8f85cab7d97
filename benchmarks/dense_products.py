"""A sparse matrix times a dense one: beside SciPy on the CPU, beside cuSPARSE and PyTorch on a GPU.

usage: python -m benchmarks.dense_products [--device cuda] [--graphs kron21,kron20:64] [-o FILE]

A graph may be followed by the numbers of columns: kron18:32:64. "grid2048" is a grid of 2048 x 2048
vertices, which stands for a road network; the other names are those of graphs.py. The values of the
matrix and the array are drawn from 1 to 8, and results are compared before anything is timed. On
the CPU the systems take turns, call by call; on a GPU a figure is the time of the device (see
gpu_clock.py). cupyx is given an array in rows, as spgraph is, and one in columns, which it needs
not convert; PyTorch (`torch.sparse_csr_tensor`), where it is installed, one in rows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import spgraph as sg
from benchmarks.measuring import arguments, gpu_clock, graphs, machine, rows
from spgraph.containers.storage.arrays import array_module, import_cupy

DEFAULT = {
    "cpu": "kron14,kron18:64,grid1024:64",
    "cuda": "kron21,rmat_n24_32:64,grid4096:64",
}
COLUMNS = (32, 64, 128, 256)
Calls = dict[str, Callable[[], Any]]


def main() -> None:
    """Measure, print the tables, write the file."""
    options = _options()
    found: dict[str, Any] = {
        "benchmark": f"dense_products_{'cpu' if options.device == 'cpu' else 'gpu'}",
        **machine.facts(options.commit),
        "unit": "ms",
        "graphs": {},
    }
    result = machine.begun(options.output, found)
    for named in (options.graphs or DEFAULT[options.device]).split(","):
        name, *columns = named.split(":")
        result["graphs"][name] = entry = {}
        measure(entry, name, [int(c) for c in columns] or list(COLUMNS), options)
        print(table(name, entry), flush=True)
        machine.write(options.output, result)
        if options.device != "cpu":
            import_cupy().get_default_memory_pool().free_all_blocks()


def _options() -> argparse.Namespace:
    parser = arguments.parser(__doc__, "dense_products", "")
    parser.set_defaults(output=None)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--types", default="float32,float64")
    parser.add_argument("--calls", type=int, default=5)
    options = parser.parse_args()
    kind = "cpu" if options.device == "cpu" else "gpu"
    benchmark = f"dense_products_{kind}"
    options.output = options.output or arguments.free(arguments.RESULTS, benchmark)
    return options


def load(name: str, options: argparse.Namespace) -> sg.Matrix:
    """The pattern of a graph by name, on the device."""
    if name.startswith("grid"):
        side = int(name[4:])
        return sg.generators.grid(side, side).pattern().to(options.device)
    return graphs.load(name, options.data, options.device)


def measure(
    entry: dict[str, Any],
    name: str,
    columns: list[int],
    options: argparse.Namespace,
) -> None:
    """All products with one graph, into `entry`."""
    pattern = load(name, options)
    xp = array_module(pattern.indices)
    entry |= {"vertices": pattern.nrows, "directed_edges": pattern.nvals, "products": {}}
    entry["faults"] = []
    drawn = xp.random.RandomState(7)
    values = drawn.randint(1, 9, pattern.nvals)
    for dtype in options.types.split(","):
        A = sg.Matrix._of(
            *pattern.shape, pattern.indptr, pattern.indices, values.astype(dtype), iso=False
        )
        for width in columns:
            X = drawn.randint(1, 9, (A.ncols, width)).astype(dtype)
            task = f"{dtype} {width}"
            calls = _systems(A, X, entry)
            expected, firsts = None, {}
            for system, call in calls.items():  # spgraph comes first
                result, firsts[system] = rows.first(call, options.device)
                expected = result if expected is None else expected
                if not bool(xp.allclose(xp.asarray(result), expected, rtol=1e-3)):
                    entry["faults"].append(f"{task}: {system} differs from spgraph")
                del result
            entry["products"][task] = _timed(calls, options, firsts)
            del calls, expected


def _systems(A: sg.Matrix, X: Any, entry: dict[str, Any]) -> Calls:
    """The product by every system there is."""
    calls: Calls = {"spgraph": lambda: A @ X}
    if isinstance(X, np.ndarray):
        S = A.to_scipy()
        return calls | {"scipy": lambda: S @ X}
    S, columns = A.to_cupyx(), import_cupy().asfortranarray(X)
    calls["cupyx, rows"] = lambda: S @ X
    calls["cupyx, columns"] = lambda: S @ columns
    try:
        import torch
    except ImportError as error:
        entry["missing"] = {"torch": str(error)}
        return calls
    parts = (torch.from_dlpack(a) for a in (A.indptr, A.indices, A.values))
    T, x = torch.sparse_csr_tensor(*parts, size=A.shape), torch.from_dlpack(X)
    # the events that time it are on CuPy's stream; ExternalStream(0) would be another stream
    pointer = import_cupy().cuda.get_current_stream().ptr
    stream = torch.cuda.ExternalStream(pointer) if pointer else torch.cuda.default_stream()

    def product() -> Any:
        with torch.cuda.stream(stream):
            return T @ x

    return calls | {"torch": product}


def _timed(calls: Calls, options: argparse.Namespace, firsts: dict[str, float]) -> dict[str, Any]:
    """All times of each system, their median, and that of spgraph beside the fastest other's."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    device = options.device
    seen = {name: rows.untimed(call, firsts[name], device) for name, call in calls.items()}
    if device == "cpu":
        for turn in range(options.calls + 1):
            for name, call in calls.items():
                start = time.perf_counter()
                last = call()
                if turn:  # the first call warms up
                    times[name].append((time.perf_counter() - start) * 1e3)
                del last
    else:
        for name, call in calls.items():
            times[name] = gpu_clock.device_ms(call, options.calls)
    found: dict[str, Any] = {name: rows.row(each, seen[name]) for name, each in times.items()}
    others = [found[name]["median"] for name in calls if name != "spgraph"]
    if others:
        found["speedup"] = round(min(others) / found["spgraph"]["median"], 3)
    return found


def table(name: str, entry: dict[str, Any]) -> str:
    """One graph's figures for a person."""
    lines = [f"{name}: {entry['vertices']:,} vertices, {entry['directed_edges']:,} entries; ms"]
    for task, found in entry["products"].items():
        cells = (f"{each} {found[each]['median']:.3f}" for each in found if each != "speedup")
        lines.append(f"  {task:12}  {'   '.join(cells)}   x {found.get('speedup', '-')}")
    lines += [f"  WRONG: {fault}" for fault in entry["faults"]]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
