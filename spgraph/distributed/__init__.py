"""Containers over several devices and processes: the backend of a Placement.

The functions here are those of spgraph.backends.cpu and cuda, on distributed containers; what needs
no exchange they leave to the backend of every shard.
"""

from spgraph.distributed.communicators import (
    Communicator,
    LocalCommunicator,
    MpiCommunicator,
    NcclCommunicator,
    TcpStore,
)
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.placement import Placement
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.distributed.distribute import distribute
from spgraph.distributed.io.input import from_model, read
from spgraph.distributed.loops.closure import closure
from spgraph.distributed.loops.components import contract
from spgraph.distributed.loops.dependencies import dependencies
from spgraph.distributed.loops.parents import (
    closure_counted,
    closure_path_parents,
    dag_edges,
    parents,
    path_parents,
)
from spgraph.distributed.loops.power import power
from spgraph.distributed.loops.search import search
from spgraph.distributed.operations.elements import (
    apply,
    apply_matrix,
    ewise,
    ewise_matrix,
    reduce,
    select,
    select_matrix,
    write,
    write_matrix,
)
from spgraph.distributed.operations.products import (
    multiply_array,
    multiply_dense,
    multiply_dots,
    multiply_flops,
    multiply_rows,
    prepare,
    pull,
    push,
)
from spgraph.distributed.operations.structure import (
    assign,
    assign_matrix,
    block_array,
    diag,
    extract,
    extract_column,
    extract_matrix,
    extract_row,
    kronecker,
    transpose,
)

# what users import; everything else is looked up by name, as in any backend
__all__ = [
    "Communicator",
    "DistributedMatrix",
    "DistributedVector",
    "LocalCommunicator",
    "MpiCommunicator",
    "NcclCommunicator",
    "Placement",
    "TcpStore",
    "distribute",
    "from_model",
    "read",
]


def __dir__() -> list[str]:
    return sorted(__all__)
