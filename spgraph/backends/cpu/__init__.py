"""The CPU backend: kernels in Numba, run on all cores.

The functions here are the backend: spgraph.backends.cuda has the same, with the same signatures.
They take containers that operations have checked, on one device, and operators that are resolved
for their types; they give new containers that share no array with their arguments."""

from spgraph.backends.cpu.products import pull, push
from spgraph.backends.cpu.search import search
from spgraph.backends.cpu.vectors import apply, ewise, extract, reduce, reduce_segments, select
from spgraph.backends.cpu.writing import write

__all__ = [
    "apply",
    "ewise",
    "extract",
    "pull",
    "push",
    "reduce",
    "reduce_segments",
    "search",
    "select",
    "write",
]
