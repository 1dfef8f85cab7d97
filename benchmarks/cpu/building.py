"""Building matrices on the CPU: from coordinates, from files, by A @ A.

usage: python -m benchmarks.cpu.building [--entries 10000000] [-o FILE]

Beside SciPy (`tocsr`, which sums what is repeated; `S @ S` and its columns sorted),
python-graphblas and `pandas.read_csv` (default engine, the same types; it makes columns, `sg.read`
a Matrix). Results are compared before they are timed, then the systems take turns, round by round.
"""

from __future__ import annotations

import argparse
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

import spgraph as sg
from benchmarks.measuring import arguments, graphs, machine, rows, turns
from spgraph.semirings import binary, plus_times

Systems = dict[str, Callable[[], Any]]


def main() -> None:
    """Measure, print the table, write the file."""
    options = _options()
    found: dict[str, Any] = {
        "benchmark": "building_cpu",
        **machine.facts(options.commit),
        "threads": machine.threads(),
        "unit": "ms",
        "tasks": {},
    }
    result = machine.begun(options.output, found)
    with tempfile.TemporaryDirectory() as folder:
        for name, systems, same in tasks(options, pathlib.Path(folder)):
            found = turns.timed(
                systems,
                lambda _, made: made,
                lambda other, own, same=same: "" if same(own, other) else "another result",
                options.rounds,
                2,
            )
            found = {"systems": found, **rows.ratios(found)}
            result["tasks"][name] = found
            print(line(name, found), flush=True)
            machine.write(options.output, result)
    print(f"written: {options.output.name}")


def _options() -> argparse.Namespace:
    parser = arguments.parser(__doc__, "building_cpu", "epinions,road_NY")
    parser.add_argument("--entries", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def tasks(options: argparse.Namespace, folder: pathlib.Path) -> Any:
    """(name, systems, whether two results are the same) of each task."""
    random = np.random.default_rng(1)
    for count in (options.entries, 5000):
        n = max(1, count // 10)
        rows, columns, values = *random.integers(0, n, (2, count)), random.random(count)
        for kind in (np.int64, np.int32):
            i, j = rows.astype(kind), columns.astype(kind)
            yield f"from_coo {count:,}, {kind.__name__}, plus", _from_coo(i, j, values, n), _close
        at = random.permutation(np.unique(rows * n + columns))
        i, j = at // n, at % n
        yield f"from_coo {count:,}, no repeats", _from_coo(i, j, values[: at.size], n, None), _close
        if count == options.entries:
            yield from _files(rows[: count // 3], columns[: count // 3], values, folder)
    for name in options.graphs.split(","):
        if graphs.missing(name, options.data) is None:
            yield f"A @ A, {name}", _square(graphs.load(name, options.data, "cpu")), _close
    A = sg.Matrix.from_coo(*random.integers(0, 1000, (2, 5000)), 1.0, nrows=1000, ncols=1000)
    yield "A @ A, 1,000 rows, 5,000 entries", _square(A), _close


def _from_coo(
    i: np.ndarray, j: np.ndarray, x: np.ndarray, n: int, op: Any = binary.plus
) -> Systems:
    return {
        "spgraph": lambda: sg.Matrix.from_coo(i, j, x, nrows=n, ncols=n, dup_op=op),
        "scipy": lambda: scipy.sparse.coo_array((x, (i, j)), shape=(n, n)).tocsr(),
    }


def _square(A: sg.Matrix) -> Systems:
    S = scipy.sparse.csr_array((np.ones(A.nvals), A.indices, A.indptr), shape=A.shape)
    M = sg.Matrix(S)

    def sorted_product() -> Any:
        C = S @ S
        C.sort_indices()
        return C

    systems: Systems = {
        "spgraph": lambda: sg.mxm(M, M, plus_times),
        "scipy, sorted": sorted_product,
    }
    try:
        import graphblas as gb
    except ImportError:
        return systems
    gb.ss.config["nthreads"] = machine.threads()
    G = gb.Matrix.from_csr(S.indptr, S.indices, S.data, ncols=A.ncols)
    return systems | {"graphblas": lambda: gb.semiring.plus_times(G @ G).new()}


def _files(i: np.ndarray, j: np.ndarray, x: np.ndarray, folder: pathlib.Path) -> Any:
    """The edge list of these edges, with weights and without, beside pandas, if it is there."""
    try:
        import pandas
    except ImportError:
        return
    table = pandas.DataFrame({"i": i, "j": j, "x": x[: i.size].round(4)})
    for name, fields in (("plain", ["i", "j"]), ("with weights", ["i", "j", "x"])):
        path = folder / f"{len(fields)}.txt"
        table[fields].to_csv(path, sep=" ", header=False, index=False)
        kinds = {field: table[field].dtype for field in fields}

        def pandas_read(path: Any = path, fields: Any = fields, kinds: Any = kinds) -> Any:
            return pandas.read_csv(path, sep=" ", header=None, names=fields, dtype=kinds)

        systems = {"spgraph": lambda path=path: sg.read(path), "pandas": pandas_read}
        yield f"read {i.size:,} edges, {name}", systems, _same_positions


def _close(one: Any, other: Any) -> bool:
    """Whether two matrices, of whatever libraries, have the same entries."""
    A, B = _scipy(one), _scipy(other)
    return bool(
        np.array_equal(A.indptr, B.indptr)
        and np.array_equal(A.indices, B.indices)
        and np.allclose(A.data, B.data)
    )


def _scipy(found: Any) -> scipy.sparse.csr_array:
    if isinstance(found, sg.Matrix):
        return found.to_scipy()
    if not scipy.sparse.issparse(found):
        indptr, indices, values = found.to_csr()
        return scipy.sparse.csr_array((values, indices, indptr), shape=found.shape)
    return found


def _same_positions(A: sg.Matrix, table: Any) -> bool:
    return A.nvals == len(np.unique(table["i"].to_numpy() * A.nrows + table["j"].to_numpy()))


def line(name: str, found: dict[str, Any]) -> str:
    """A task on one line."""
    cells = [
        f"{system} {values['median']:.3f} (min {values['min']:.3f})"
        if "median" in values
        else f"{system}: {values['error']}"
        for system, values in found["systems"].items()
    ]
    return f"{name:40} {'  '.join(cells)}  x {found.get('ratios', {}).get('spgraph', '-')}"


if __name__ == "__main__":
    main()
