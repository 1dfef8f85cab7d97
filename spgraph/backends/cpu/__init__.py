"""The CPU backend: kernels in Numba, run on all cores.

The functions here are the backend: spgraph.backends.cuda has the same, with the same signatures.
They take containers that operations have checked, on one device, and operators that are resolved
for their types; they give new containers that share no array with their arguments."""

from spgraph.backends.cpu.closure.closure import (
    closure,
    closure_parents,
    dag_edges,
    parents,
    path_parents,
    path_tree,
)
from spgraph.backends.cpu.contract.contract import contract
from spgraph.backends.cpu.dependencies.dependencies import dependencies, levels
from spgraph.backends.cpu.entrywise.masked_write import write
from spgraph.backends.cpu.entrywise.matrices import (
    apply_matrix,
    ewise_matrix,
    select_matrix,
    write_matrix,
)
from spgraph.backends.cpu.entrywise.vectors import (
    apply,
    ewise,
    extract,
    reduce,
    reduce_segments,
    scatter,
    select,
)
from spgraph.backends.cpu.power.power import inverse_degrees, power, power_shard
from spgraph.backends.cpu.products.multiply import (
    multiply_array,
    multiply_dense,
    multiply_dots,
    multiply_flops,
    multiply_rows,
    reduce_dots,
)
from spgraph.backends.cpu.products.products import prepare, pull, push
from spgraph.backends.cpu.search.search import search
from spgraph.backends.cpu.structure.dense_entries import dense_entries
from spgraph.backends.cpu.structure.extract import extract_matrix
from spgraph.backends.cpu.structure.kronecker import kronecker
from spgraph.backends.cpu.structure.orient import orient
from spgraph.backends.cpu.structure.parse_lines import parse_lines
from spgraph.backends.cpu.structure.sort_entries import fold_entries, sort_entries
from spgraph.backends.cpu.structure.support import support
from spgraph.backends.cpu.structure.transpose import transpose
from spgraph.backends.cpu.structure.triangles import triangles
from spgraph.backends.cpu.structure.vertex_by_vertex import (
    choose_greedily,
    color_greedily,
    peel,
    sweep_labels,
)
from spgraph.backends.cpu.traversals import traversals
from spgraph.backends.cpu.traversals.spanning_forest import spanning_forest
from spgraph.backends.cpu.traversals.strong_components import strong_components
