"""GraphBLAS operations on one GPU, beside cuSPARSE through cupyx in the same process.

usage: python -m benchmarks.gpu.operations [--graphs kron21,rmat_n24_32] [-o FILE]

The products are over float32 values in the random order of vertices that the generator gives;
"prepared" is the same call on a Matrix whose `prepare` was called before (its time stands beside).
Triangles are counted by `sg.triangle_count` (relabelled by degree in each call) and by one mxm over
the relabelled triangle. Results are compared with cuSPARSE's, or with each other, before anything
is timed. gpu_clock.py says what device time is; a figure is the median of the calls.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

import spgraph as sg
from benchmarks.measuring import arguments, each_graph, gpu_clock, graphs, rows
from spgraph.containers.storage.arrays import import_cupy
from spgraph.semirings import any_pair, indexunary, min_plus, plus_times, unary

# edges that leave the entries of a vector that is pushed
PUSHED = 100_000_000


def main() -> None:
    """Measure, print the table, write the file."""
    each_graph.write("operations_gpu", _options(), measure, table)


def _options() -> argparse.Namespace:
    parser = arguments.parser(__doc__, "operations_gpu", "kron21,rmat_n24_32")
    parser.add_argument("--calls", type=int, default=15)
    return parser.parse_args()


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """All tasks on one graph."""
    cupy = import_cupy()
    cupy.get_default_memory_pool().free_all_blocks()  # of the graph before
    pattern = graphs.load(name, options.data, "cuda")
    values = cupy.random.RandomState(7).randint(1, 65, pattern.nvals).astype(np.float32)
    A = sg.Matrix._of(pattern.nrows, pattern.ncols, pattern.indptr, pattern.indices, values)
    B = sg.Matrix._of(pattern.nrows, pattern.ncols, pattern.indptr, pattern.indices, values)
    chance = cupy.random.RandomState(3)
    u = sg.Vector._of(A.ncols, chance.random_sample(A.ncols).astype(np.float32))
    entry: dict[str, Any] = {**graphs.describe(name, pattern), "tasks": {}}
    tasks = entry["tasks"]

    def add(task: str, call: Callable[[], Any], **facts: Any) -> None:
        seen = rows.untimed(call, rows.first(call, "cuda")[1], "cuda")
        times = gpu_clock.measure(call, options.calls)
        kinds = {"device": times.device_ms, "wall": times.wall_ms}
        tasks[task] = rows.row_of_kinds(kinds, seen, **facts)

    S = A.to_cupyx()
    entry["faults"] = []
    add("cupyx mxv", lambda: S @ u.values)
    expected = S @ u.values
    add("mxv plus_times", lambda: sg.mxv(A, u))
    prepare = gpu_clock.measure(lambda: _fresh(A).prepare(), 3)
    B.prepare()
    add("mxv plus_times, prepared", lambda: sg.mxv(B, u), prepare_ms=float(min(prepare.wall_ms)))
    iso = pattern.prepare()
    add("mxv plus_second, pattern, prepared", lambda: sg.mxv(iso, u, sg.semirings.plus_second))
    for what, found in (("mxv", sg.mxv(A, u)), ("prepared mxv", sg.mxv(B, u))):
        full = found.to_cupy(fill=0)
        if not bool(cupy.allclose(full, expected, rtol=2e-4)):
            entry["faults"].append(f"{what} differs from cuSPARSE's")
    del expected
    add("mxv any_pair", lambda: sg.mxv(A, u, any_pair))

    degree = cupy.diff(A.indptr)
    chosen = cupy.cumsum(degree[chance.permutation(A.nrows)]).searchsorted(PUSHED)
    ids = cupy.sort(cupy.random.RandomState(3).permutation(A.nrows)[: int(chosen)])
    edges = int(degree[ids].sum())
    frontier = sg.Vector.from_coo(ids, u.values[ids], size=A.nrows).to_sparse()
    for semiring in (min_plus, plus_times):
        task = f"vxm {semiring.name}, pushed"
        add(
            task,
            lambda semiring=semiring: sg.vxm(frontier, A, semiring, direction="push"),
            edges=edges,
        )
        tasks[task]["gedges_per_s"] = round(edges / tasks[task]["device_ms"] / 1e6, 2)

    add("transpose", lambda: _fresh(A).T.indices)
    add("select tril", lambda: sg.select(A, indexunary.tril, -1))
    add("apply ainv", lambda: sg.apply(A, unary.ainv))
    add("ewise_add", lambda: sg.ewise_add(A, A))
    if name == "kron21":
        add("triangle_count", lambda: sg.triangle_count(pattern))
        entry["triangles"] = sg.triangle_count(pattern)
    return entry


def _fresh(A: sg.Matrix) -> sg.Matrix:
    """The same arrays without what is kept beside them."""
    return sg.Matrix._of(A.nrows, A.ncols, A.indptr, A.indices, A.values)


def table(name: str, entry: dict[str, Any]) -> str:
    """One graph's figures for a person."""
    if "missing" in entry:
        return f"{name}: skipped, {entry['missing']}\n"
    lines = [f"{name}: {entry['vertices']:,} vertices, {entry['directed_edges']:,} entries; ms"]
    for task, found in entry["tasks"].items():
        rate = f"  {found['gedges_per_s']} G edges/s" if "gedges_per_s" in found else ""
        lines.append(f"  {task:36}{found['device_ms']:10.4f}{found['wall_ms']:10.4f}{rate}")
    lines += [f"  WRONG: {fault}" for fault in entry["faults"]]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
