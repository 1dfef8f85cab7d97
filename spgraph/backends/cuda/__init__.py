"""The CUDA backend: kernels in CUDA C++, compiled through CuPy when they are first needed.

The functions here are the backend: spgraph.backends.cpu has the same, with the same signatures.
They take containers that operations have checked, on one device, and operators that are resolved
for their types; they give new containers that share no array with their arguments. Work goes to
CuPy's current stream of the containers' device. Importing this package needs neither CuPy nor a
GPU.
"""

from spgraph.backends.cuda.closure import closure, parents, tight
from spgraph.backends.cuda.contract import contract
from spgraph.backends.cuda.dependencies import dependencies, levels
from spgraph.backends.cuda.layout import extract_matrix, kronecker, transpose
from spgraph.backends.cuda.matrices import (
    apply_matrix,
    ewise_matrix,
    select_matrix,
    write_matrix,
)
from spgraph.backends.cuda.multiply import (
    multiply_dense,
    multiply_dots,
    multiply_flops,
    multiply_rows,
)
from spgraph.backends.cuda.power import power, power_block
from spgraph.backends.cuda.products import pull, push
from spgraph.backends.cuda.search import search
from spgraph.backends.cuda.tiles import prepare
from spgraph.backends.cuda.vectors import (
    apply,
    ewise,
    extract,
    reduce,
    reduce_segments,
    scatter,
    select,
)
from spgraph.backends.cuda.writing import write

__all__ = [
    "apply",
    "apply_matrix",
    "closure",
    "contract",
    "dependencies",
    "ewise",
    "ewise_matrix",
    "extract",
    "extract_matrix",
    "kronecker",
    "levels",
    "multiply_dense",
    "multiply_dots",
    "multiply_flops",
    "multiply_rows",
    "parents",
    "power",
    "power_block",
    "prepare",
    "pull",
    "push",
    "reduce",
    "reduce_segments",
    "scatter",
    "search",
    "select",
    "select_matrix",
    "tight",
    "transpose",
    "write",
    "write_matrix",
]
