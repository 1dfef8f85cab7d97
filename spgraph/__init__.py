"""spgraph: sparse linear algebra over semirings (GraphBLAS), on CPUs and GPUs, and graph algorithms
made of it.

>>> import spgraph as sg
>>> A = sg.Matrix.from_coo([0, 1, 1, 2], [1, 0, 2, 1])
>>> sg.bfs(A, source=0).level.to_numpy().tolist()
[0, 1, 2]
"""

from typing import Any

from spgraph import errors, generators, semirings
from spgraph.algorithms import BFS, bfs
from spgraph.containers import Mask, Matrix, Vector
from spgraph.io import read, write
from spgraph.operations import (
    apply,
    assign,
    ewise_add,
    ewise_mult,
    extract,
    mxv,
    reduce,
    select,
    transpose,
    vxm,
)

__version__ = "0.1.0"

__all__ = [
    "BFS",
    "Mask",
    "Matrix",
    "Vector",
    "apply",
    "assign",
    "bfs",
    "errors",
    "ewise_add",
    "ewise_mult",
    "extract",
    "generators",
    "mxv",
    "plot",
    "read",
    "reduce",
    "select",
    "semirings",
    "transpose",
    "vxm",
    "write",
]


def __getattr__(name: str) -> Any:
    if name == "plot":  # draws with matplotlib, which most who compute never load
        import importlib

        return importlib.import_module("spgraph.plot")
    raise AttributeError(f"module 'spgraph' has no attribute {name!r}")
