"""GraphBLAS operations on the CPU, beside python-graphblas and SciPy, in one process.

usage: python -m benchmarks.cpu.operations [--matrices kron18,uniform20] [--only WORD] [-o FILE]

Each task is one call of each system on its own copy of the same matrices and vectors, made
beforehand. Results are compared with SciPy's or python-graphblas's before anything is timed: a
wrong one is not timed. The systems take turns, round by round, in an order that moves on; a figure
is the median of the rounds. SuiteSparse:GraphBLAS runs with as many threads as spgraph.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

import spgraph as sg
from benchmarks.measuring import arguments, machine, turns
from spgraph import semirings
from spgraph.containers.methods.views import transposed
from spgraph.semirings import binary, indexunary, monoid, unary

MATRICES = {
    # scale or logarithm of the rows, edge factor, as generators.kronecker and uniform_random
    "kron10": (10, 16),  # for trying out
    "uniform10": (10, 16),
    "kron18": (18, 16),
    "uniform20": (20, 16),
}
DENSITIES = (1e-4, 1e-2, 1.0)


class Task(NamedTuple):
    """One operation: a call for each system; each gives what `plain` turns into arrays."""

    name: str
    systems: dict[str, Callable[[], Any]]


def main() -> None:
    """Measure, print the table, write the file."""
    options = _options()
    threads = machine.threads()
    found = machine.facts(options.commit) | {"threads": threads, "unit": "ms", "matrices": {}}
    result = machine.begun(options.output, {"benchmark": "operations_cpu", **found})
    for name in options.matrices.split(","):
        result["matrices"][name] = measure(name, options, threads)
        print(table(name, result["matrices"][name]), flush=True)
        machine.write(options.output, result)
    print(f"written: {options.output.name}")


def _options() -> argparse.Namespace:
    parser = arguments.parser(__doc__, "operations_cpu")
    parser.add_argument("--matrices", default="kron18,uniform20")
    parser.add_argument("--only", default="", help="the tasks whose name holds this")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    for name in options.matrices.split(","):
        if name not in MATRICES:
            parser.error(f"--matrices: expected names among {', '.join(MATRICES)}, got {name!r}")
    return options


def load(name: str, seed: int) -> sg.Matrix:
    """A matrix by name, with float64 values drawn from 1 to 9."""
    scale, edge_factor = MATRICES[name]
    if name.startswith("kron"):
        A = sg.generators.kronecker(scale, edge_factor, seed=seed)
    else:
        A = sg.generators.uniform_random(1 << scale, edge_factor, seed=seed, symmetric=False)
    values = np.random.default_rng(seed).integers(1, 10, A.nvals).astype(np.float64)
    return sg.Matrix._of(A.nrows, A.ncols, A.indptr, A.indices, values)


def measure(name: str, options: argparse.Namespace, threads: int) -> dict[str, Any]:
    """All tasks on one matrix."""
    A, B = load(name, 1), load(name, 2)
    entry: dict[str, Any] = {"rows": A.nrows, "entries": A.nvals, "tasks": {}}
    try:
        import graphblas as gb

        gb.ss.config["nthreads"] = threads
    except ImportError as error:
        gb = None
        entry["missing"] = str(error)
    makers = (products, elementwise, structural, triangles)
    for task in (task for make in makers for task in make(A, B, gb, name)):
        if options.only in task.name:
            found = turns.timed(
                task.systems, lambda _, result: plain(result), differs, options.rounds, 2
            )
            entry["tasks"][task.name] = found | turns.ratio_to_best_peer(found)
    return entry


def products(A: sg.Matrix, B: sg.Matrix, gb: Any, name: str) -> Iterator[Task]:
    """mxv and vxm over three semirings with vectors of three densities."""
    S, G, n = A.to_scipy(), _graphblas_matrix(gb, A), A.nrows
    assert A.T.nvals  # kept before anything is timed, as GraphBLAS may keep its own
    for density in DENSITIES:
        chance = np.random.default_rng(3)
        at = np.sort(chance.choice(n, max(1, int(n * density)), replace=False))
        values = chance.integers(1, 10, at.size).astype(np.float64)
        u = sg.Vector.from_coo(at, values, size=n)
        g = gb and gb.Vector.from_coo(at, values, size=n)
        x = u.to_numpy(fill=0.0)
        for semiring in ("plus_times", "min_plus", "any_pair"):
            own = getattr(semirings, semiring)
            peer = gb and getattr(gb.semiring, semiring)
            row: dict[str, Any] = {"spgraph": lambda u=u, own=own: sg.mxv(A, u, own)}
            column: dict[str, Any] = {"spgraph": lambda u=u, own=own: sg.vxm(u, A, own)}
            if gb:
                row["graphblas"] = lambda g=g, peer=peer: peer(G @ g).new()
                column["graphblas"] = lambda g=g, peer=peer: peer(g @ G).new()
            if semiring == "plus_times" and density == 1.0:
                row["scipy"] = lambda x=x: S @ x
                column["scipy"] = lambda x=x: S.T @ x
            yield Task(f"mxv {semiring} {density:g}", row)
            yield Task(f"vxm {semiring} {density:g}", column)


def elementwise(A: sg.Matrix, B: sg.Matrix, gb: Any, name: str) -> Iterator[Task]:
    """Unions, intersections, apply, select and reductions of matrices."""
    S, R = A.to_scipy(), B.to_scipy()
    G, H = _graphblas_matrix(gb, A), _graphblas_matrix(gb, B)
    yield _task(
        "ewise_add",
        lambda: sg.ewise_add(A, B),
        gb and (lambda: G.ewise_add(H, gb.binary.plus).new()),
        lambda: S + R,
    )
    yield _task(
        "ewise_mult",
        lambda: sg.ewise_mult(A, B),
        gb and (lambda: G.ewise_mult(H, gb.binary.times).new()),
        lambda: S * R,
    )
    yield _task(
        "apply ainv",
        lambda: sg.apply(A, unary.ainv),
        gb and (lambda: G.apply(gb.unary.ainv).new()),
        lambda: -S,
    )
    yield _task(
        "apply times 2",
        lambda: sg.apply(A, binary.times, right=2.0),
        gb and (lambda: G.apply(gb.binary.times, right=2.0).new()),
        lambda: S * 2.0,
    )
    yield _task(
        "select tril",
        lambda: sg.select(A, indexunary.tril, -1),
        gb and (lambda: G.select(gb.select.tril, -1).new()),
        lambda: scipy.sparse.tril(S, -1, format="csr"),
    )
    yield _task(
        "select value",
        lambda: sg.select(A, indexunary.valuegt, 5.0),
        gb and (lambda: G.select(gb.select.valuegt, 5.0).new()),
        None,
    )
    yield _task(
        "reduce",
        lambda: sg.reduce(A),
        gb and (lambda: G.reduce_scalar(gb.monoid.plus).new()),
        lambda: S.sum(),
    )
    yield _task(
        "reduce_rowwise",
        lambda: sg.reduce_rowwise(A),
        gb and (lambda: G.reduce_rowwise(gb.monoid.plus).new()),
        lambda: S.sum(axis=1),
    )
    yield _task(
        "reduce_columnwise max",
        lambda: sg.reduce_columnwise(_fresh(A), monoid.max),
        gb and (lambda: G.reduce_columnwise(gb.monoid.max).new()),
        None,
    )


def structural(A: sg.Matrix, B: sg.Matrix, gb: Any, name: str) -> Iterator[Task]:
    """extract and transpose."""
    S, G = A.to_scipy(), _graphblas_matrix(gb, A)
    chance = np.random.default_rng(5)
    rows, columns = (np.sort(chance.choice(A.nrows, A.nrows // 4, replace=False)) for _ in range(2))
    yield _task(
        "extract rows",
        lambda: sg.extract(A, rows),
        gb and (lambda: G[rows, :].new()),
        lambda: S[rows],
    )
    yield _task(
        "extract rows and columns",
        lambda: sg.extract(A, rows, columns),
        gb and (lambda: G[rows, columns].new()),
        lambda: S[rows][:, columns],
    )
    yield _task(
        "transpose",
        lambda: transposed(A),  # a view and its Matrix, which know each other, would wait for gc
        gb and (lambda: G.T.new()),
        lambda: S.T.tocsr(),
    )


def triangles(A: sg.Matrix, B: sg.Matrix, gb: Any, name: str) -> Iterator[Task]:
    """plus_pair over the lower triangle, under its own mask, in the order of the ids given."""
    if not name.startswith("kron"):
        return
    L = sg.select(A, indexunary.tril, -1).dup(np.int64)
    assert L.T.nvals
    G = _graphblas_matrix(gb, L)
    yield _task(
        "mxm triangles",
        lambda: sg.reduce(sg.mxm(L, L.T, semirings.plus_pair, mask=L.S)),
        gb
        and (
            lambda: gb.semiring.plus_pair(G @ G.T).new(mask=G.S).reduce_scalar(gb.monoid.plus).new()
        ),
        None,
    )


def _task(name: str, own: Callable[[], Any], peer: Any, scipys: Any) -> Task:
    systems = {"spgraph": own, "graphblas": peer or None, "scipy": scipys}
    return Task(name, {system: call for system, call in systems.items() if call})


def _fresh(A: sg.Matrix) -> sg.Matrix:
    """The same arrays without what is kept beside them."""
    return sg.Matrix._of(A.nrows, A.ncols, A.indptr, A.indices, A.values)


def _graphblas_matrix(gb: Any, A: sg.Matrix) -> Any:
    if gb is None:
        return None
    made = gb.Matrix.from_csr(A.indptr, A.indices, A.values, ncols=A.ncols)
    made.wait()
    return made


def plain(result: Any) -> tuple[np.ndarray, ...]:
    """The entries of any system's result."""
    if isinstance(result, sg.Vector | sg.Matrix) or hasattr(result, "to_coo"):
        arrays = tuple(np.asarray(a) for a in result.to_coo())
        if not _in_order(*arrays[:-1]):  # most are, and sorting takes longer than the operations
            order = np.lexsort(arrays[-2::-1])
            arrays = tuple(a[order] for a in arrays)
        return tuple(a.astype(np.float64) for a in arrays)
    if scipy.sparse.issparse(result):
        coo = result.tocsr().tocoo()
        return tuple(np.asarray(a, np.float64) for a in (*coo.coords, coo.data))
    if np.ndim(result) == 0:
        return (np.asarray(float(getattr(result, "value", result))),)
    at = np.flatnonzero(result)
    return at.astype(np.float64), np.asarray(result, np.float64)[at]


def _in_order(major: np.ndarray, minor: np.ndarray | None = None) -> bool:
    """Whether positions ascend: by rows, then by columns."""
    if minor is None:
        return bool((major[1:] > major[:-1]).all())
    below = (major[1:] == major[:-1]) & (minor[1:] > minor[:-1])
    return bool(((major[1:] > major[:-1]) | below).all())


def differs(own: Any, expected: Any) -> str:
    """What is wrong with the arrays of a result."""
    same = len(own) == len(expected) and all(
        x.shape == y.shape and np.allclose(x, y, rtol=1e-10)
        for x, y in zip(own, expected, strict=True)
    )
    return "" if same else "the result differs from spgraph's"


def table(name: str, entry: dict[str, Any]) -> str:
    """One matrix's figures for a person."""
    lines = [f"{name}: {entry['rows']:,} rows, {entry['entries']:,} entries; ms"]
    for task, found in entry["tasks"].items():
        cells = [
            f"{system} {found[system].get('median', found[system].get('error'))}"
            for system in ("spgraph", "graphblas", "scipy")
            if system in found
        ]
        lines.append(f"  {task:28}{'  '.join(cells)}   x {found.get('ratio_to_best_peer', '-')}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
