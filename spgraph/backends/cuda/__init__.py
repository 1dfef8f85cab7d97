"""The CUDA backend: kernels in CUDA C++, compiled through CuPy when they are first needed.

The functions here are the backend: spgraph.backends.cpu has the same, with the same signatures.
They take containers that operations have checked, on one device, and operators that are resolved
for their types; they give new containers that share no array with their arguments. Work goes to
CuPy's current stream of the containers' device. Importing this package needs neither CuPy nor a
GPU.
"""

from spgraph.backends.cuda.products import pull, push
from spgraph.backends.cuda.search import search
from spgraph.backends.cuda.vectors import apply, ewise, extract, reduce, reduce_segments, select
from spgraph.backends.cuda.writing import write

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
