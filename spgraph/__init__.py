"""spgraph: sparse linear algebra over semirings (GraphBLAS), on CPUs and GPUs, and graph algorithms
made of it.

>>> import spgraph as sg
>>> A = sg.Matrix.from_coo([0, 1, 1, 2], [1, 0, 2, 1])
>>> sg.bfs(A, source=0).level.to_numpy().tolist()
[0, 1, 2]
"""

from typing import Any

from spgraph import algorithms, errors, generators, operations, semirings
from spgraph.algorithms import *  # noqa: F403
from spgraph.containers import Mask, Matrix, Vector
from spgraph.io import load, read, save, write
from spgraph.operations import *  # noqa: F403

__version__ = "0.1.0"

__all__ = [
    "Mask",
    "Matrix",
    "Vector",
    "algorithms",
    "csgraph",  # noqa: F405 (see __getattr__)
    "distributed",  # noqa: F405
    "errors",
    "generators",
    "load",
    "operations",
    "plot",  # noqa: F405
    "read",
    "save",
    "semirings",
    "write",
]
__all__ += algorithms.__all__
__all__ += operations.__all__


def __getattr__(name: str) -> Any:
    if name in ("csgraph", "distributed", "plot"):  # which most who compute never load
        import importlib

        return importlib.import_module(f"spgraph.{name}")
    raise AttributeError(f"module 'spgraph' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
