"""The CUDA backend: kernels in CUDA C++, compiled through CuPy when they are first needed.

The functions here are the backend: spgraph.backends.cpu has the same, with the same signatures.
They take containers that operations have checked, on one device, and operators that are resolved
for their types; they give new containers that share no array with their arguments. Work goes to
CuPy's current stream of the containers' device. Importing this package needs neither CuPy nor a
GPU.
"""

from spgraph.backends.cuda.closure.closure import closure
from spgraph.backends.cuda.closure.closure_peers import closure_peers
from spgraph.backends.cuda.closure.closure_rounds import Shard as ClosureShard
from spgraph.backends.cuda.closure.dag_edges import dag_edges
from spgraph.backends.cuda.closure.parents import (
    closure_counted,
    closure_path_parents,
    parents,
    path_parents,
)
from spgraph.backends.cuda.closure.parents_shards import ParentsShard
from spgraph.backends.cuda.contract.components import Shard as ComponentsShard
from spgraph.backends.cuda.contract.contract import contract
from spgraph.backends.cuda.dependencies.dependencies import dependencies, levels
from spgraph.backends.cuda.dependencies.dependencies_shard import (
    dependencies_shard,
    workspace_words,
)
from spgraph.backends.cuda.entrywise.masked_write import write
from spgraph.backends.cuda.entrywise.matrices import (
    apply_matrix,
    ewise_matrix,
    select_matrix,
    write_matrix,
)
from spgraph.backends.cuda.entrywise.vectors import (
    apply,
    ewise,
    extract,
    reduce,
    reduce_segments,
    scatter,
    select,
)
from spgraph.backends.cuda.exchange.buffers import MOST_PEERS
from spgraph.backends.cuda.exchange.mapped import map_memory
from spgraph.backends.cuda.exchange.peers import PeerBuffers
from spgraph.backends.cuda.exchange.processes import ProcessBuffers
from spgraph.backends.cuda.generate import random_edges
from spgraph.backends.cuda.power.power import power, power_shard
from spgraph.backends.cuda.power.power_stepwise import peer_places, power_peers
from spgraph.backends.cuda.power.scales import inverse_degrees, scaled
from spgraph.backends.cuda.products.dense import multiply_array, multiply_dense
from spgraph.backends.cuda.products.multiply import multiply_dots, multiply_flops, multiply_rows
from spgraph.backends.cuda.products.products import pull, push
from spgraph.backends.cuda.products.tiles import prepare
from spgraph.backends.cuda.search.search import search
from spgraph.backends.cuda.search.search_peers import search_peers
from spgraph.backends.cuda.search.search_rounds import Shard as SearchShard
from spgraph.backends.cuda.search.search_rows import leading_and_nonempty
from spgraph.backends.cuda.structure.extract import extract_matrix
from spgraph.backends.cuda.structure.kronecker import kronecker
from spgraph.backends.cuda.structure.transpose import transpose
from spgraph.backends.cuda.structure.triangles import triangles
from spgraph.backends.cuda.traversals import traversals
