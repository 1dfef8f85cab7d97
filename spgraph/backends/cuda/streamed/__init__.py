"""The backend of a Matrix in host memory whose vectors are on a GPU: the functions that a backend
has to have, components, and searches in which a first hit decides. Other loops are composed ones.
"""

from spgraph.backends.cuda.entrywise.masked_write import write
from spgraph.backends.cuda.entrywise.vectors import (
    apply,
    ewise,
    extract,
    reduce,
    reduce_segments,
    select,
)
from spgraph.backends.cuda.streamed.operations import (
    apply_matrix,
    contract,
    ewise_matrix,
    extract_matrix,
    kronecker,
    multiply_array,
    multiply_rows,
    pull,
    push,
    select_matrix,
    transpose,
    write_matrix,
)
from spgraph.backends.cuda.streamed.search import search
