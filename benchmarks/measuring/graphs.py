"""The graphs that are measured, by name, and the sources that searches start from."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np

import spgraph as sg
from spgraph.semirings import indexunary

# scale and edge factor; a, b, c = .57, .19, .19 and seed 1, symmetric, ids permuted
KRONECKER = {
    "kron8": (8, 16),  # for trying out
    "kron14": (14, 16),
    "kron18": (18, 16),
    "kron20": (20, 16),
    "kron21": (21, 48),
    "rmat_n20_512": (20, 512),
    "rmat_n24_32": (24, 32),
}
# scale and edge factor of uniform ends; rows of a square grid, a tenth of its edges omitted
UNIFORM = {"uniform8": (8, 16), "uniform18": (18, 16), "uniform20": (20, 16)}
GRIDS = {"grid8": 8, "grid1000": 1000}
# like a web graph: skewed degrees, and neighbours with ids nearby (ids are not permuted); scale and
# edge factor; directed, and under the second name with each edge in both directions
WEB = {"web8": (8, 8), "web18": (18, 8), "web8_symmetric": (8, 8), "web18_symmetric": (18, 8)}
FILES = {
    "road_NY": "usa-road-NY.gr.xz",
    "road_BAY": "usa-road-BAY.mtx.gz",
    "epinions": "soc-Epinions1.txt.gz",
    "epinions_symmetric": "soc-Epinions1.txt.gz",
}
NAMES = (*KRONECKER, *UNIFORM, *GRIDS, *WEB, *FILES)


def missing(name: str, data: pathlib.Path) -> str | None:
    """Why the graph `name` cannot be made; None if it can."""
    if name in FILES and not (data / FILES[name]).is_file():
        return f"{FILES[name]} is not in the folder of --data"
    return None


def load(name: str, data: pathlib.Path, device: str) -> sg.Matrix:
    """The graph `name` as a pattern Matrix on `device`."""
    if name in FILES:
        both = name != "epinions"
        A = sg.select(sg.read(data / FILES[name], symmetric=both).pattern(), indexunary.offdiag)
        A.symmetric = both
        return A.to(device)
    if name in UNIFORM:
        scale, edge_factor = UNIFORM[name]
        return sg.generators.uniform_random(1 << scale, edge_factor, device=device)
    if name in GRIDS:
        return sg.generators.grid(GRIDS[name], GRIDS[name], remove=0.1, device=device)
    if name in WEB:
        scale, edge_factor = WEB[name]
        both = name.endswith("symmetric")
        return sg.generators.kronecker(
            scale, edge_factor, noise=0.1, permute=False, symmetric=both, device=device
        )
    if name not in KRONECKER:
        raise SystemExit(f"--graphs: expected names among {', '.join(NAMES)}, got {name!r}")
    scale, edge_factor = KRONECKER[name]
    return sg.generators.kronecker(scale, edge_factor, device=device)


def weighted(A: sg.Matrix) -> sg.Matrix:
    """A pattern with integer weights from 1 to 64, the same in both directions of an edge, that
    only its two vertices and the seed 7 decide.
    """
    weight = weights(A.row_indices(), A.indices)
    return sg.Matrix._of(A.nrows, A.ncols, A.indptr, A.indices, weight, symmetric=A.symmetric)


def weights(rows: Any, columns: Any) -> Any:
    """Those of the entries at `rows` and `columns`, arrays of NumPy or CuPy."""
    rows, columns = rows.astype(np.uint64), columns.astype(np.uint64)
    low, high = np.minimum(rows, columns), np.maximum(rows, columns)
    # one round of splitmix64 over both ids
    mixed = (low * np.uint64(0x9E3779B97F4A7C15) + high + np.uint64(7)) * np.uint64(
        0xBF58476D1CE4E5B9
    )
    return (mixed >> np.uint64(58)).astype(np.int32) + np.int32(1)


def describe(name: str, A: sg.Matrix) -> dict[str, Any]:
    """What a result file says about a graph; its single searches come beside it.

    `input_edges` are those that Graph500 counts: as drawn, loops and repetitions included.
    """
    drawn = KRONECKER[name][1] << KRONECKER[name][0] if name in KRONECKER else A.nvals // 2
    return {
        "vertices": A.nrows,
        "directed_edges": A.nvals,
        "input_edges": drawn,
        "origin": _origin(name),
    }


def _origin(name: str) -> str:
    if name in FILES:
        return FILES[name]
    kinds = {"kronecker": KRONECKER, "uniform_random": UNIFORM, "grid": GRIDS, "web": WEB}
    kind = next(kind for kind, names in kinds.items() if name in names)
    return f"{kind}{kinds[kind][name]}, seed 1"


def draw_sources(candidates: np.ndarray, count: int) -> list[int]:
    """`count` of the candidates, drawn with the seed 7; all of them if they are fewer."""
    random = np.random.RandomState(7)
    return [int(s) for s in random.choice(candidates, min(count, candidates.size), replace=False)]
