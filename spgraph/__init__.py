"""spgraph: sparse linear algebra over semirings (GraphBLAS), on CPUs and GPUs, and graph algorithms
made of it.

>>> import spgraph as sg
>>> A = sg.Matrix.from_coo([0, 1, 1, 2], [1, 0, 2, 1])
>>> sg.bfs(A, source=0).level.to_numpy().tolist()
[0, 1, 2]
"""

import sys
from typing import TYPE_CHECKING, Any

# Python imports the package before it runs __main__.py
if sys.argv[:1] == ["-m"] and sys.orig_argv[-len(sys.argv)] in ("spgraph", "-mspgraph"):
    from spgraph_command import leave_at_ctrl_c

    leave_at_ctrl_c()

from spgraph import agg, algorithms, errors, generators, iterations, operations, semirings
from spgraph.algorithms import *  # noqa: F403
from spgraph.containers import Mask, Matrix, Vector
from spgraph.io import Edges, Ids, from_edges, load, read, save, write
from spgraph.operations import *  # noqa: F403

if TYPE_CHECKING:
    from spgraph import benchmarking, csgraph, datasets, distributed, plot, validation

__version__ = "0.1.0"

# loaded when they are first asked for: most who compute never do
_LAZY = ("benchmarking", "csgraph", "datasets", "distributed", "plot", "validation")

__all__ = [
    "Edges",
    "Ids",
    "Mask",
    "Matrix",
    "Vector",
    "agg",
    "algorithms",
    "benchmarking",
    "csgraph",
    "datasets",
    "distributed",
    "errors",
    "from_edges",
    "generators",
    "iterations",
    "load",
    "operations",
    "plot",
    "read",
    "save",
    "semirings",
    "validation",
    "write",
]
__all__ += algorithms.__all__
__all__ += operations.__all__


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        from spgraph.process import lazy_imports

        with lazy_imports.whole():
            return importlib.import_module(f"spgraph.{name}")
    raise AttributeError(f"module 'spgraph' has no attribute {name!r}{_elsewhere(name)}")


def _elsewhere(name: str) -> str:
    """Where a name that is not here is to be found; nothing for the names that tools ask for."""
    if name.startswith("_"):
        return ""
    import importlib

    csgraph: Any = importlib.import_module("spgraph.csgraph")
    for module in (semirings, csgraph, generators, iterations):
        if name in module.__all__ or (module is semirings and hasattr(module, name)):
            return f"; it is spgraph.{module.__name__.rpartition('.')[2]}.{name}"
    plain = {public.replace("_", "").lower(): public for public in __all__}
    difflib: Any = importlib.import_module("difflib")
    close = difflib.get_close_matches(name.replace("_", "").lower(), plain, n=3, cutoff=0.8)
    if close:
        return f"; did you mean {' or '.join(plain[match] for match in close)}?"
    return (
        "; docs/names.md has the names of SciPy, NetworkX and python-graphblas, and what they are "
        "called here"
    )


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
