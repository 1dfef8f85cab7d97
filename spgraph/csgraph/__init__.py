"""A drop-in replacement for scipy.sparse.csgraph: the same names, arguments, types and errors.

>>> from spgraph import csgraph
>>> csgraph.shortest_path([[0, 1, 5], [0, 0, 2], [0, 0, 0]], indices=0)
array([0., 1., 3.])

Graphs of SciPy and NumPy are processed on the CPU, those of CuPy on their GPU, where the results
stay. A Matrix is taken as `A.tocsr()`, and results are the same: arrays, and sparse arrays of SciPy
or CuPy. Functions that spgraph does not implement are SciPy's own;
`delegated.DELEGATED` lists them. CSR matrices with values of float64, float32, int32 or int64 are
not copied.
"""

from scipy.sparse.csgraph import NegativeCycleError

from spgraph.csgraph.all_pairs import construct_dist_matrix, floyd_warshall
from spgraph.csgraph.components import connected_components
from spgraph.csgraph.conversions import (
    csgraph_from_dense,
    csgraph_from_masked,
    csgraph_masked_from_dense,
    csgraph_to_dense,
    csgraph_to_masked,
)
from spgraph.csgraph.delegated import (
    DELEGATED,
    depth_first_order,
    depth_first_tree,
    maximum_bipartite_matching,
    maximum_flow,
    min_weight_full_bipartite_matching,
    reverse_cuthill_mckee,
    structural_rank,
    yen,
)
from spgraph.csgraph.laplacians import laplacian
from spgraph.csgraph.paths import bellman_ford, dijkstra, johnson, shortest_path
from spgraph.csgraph.spanning_tree import minimum_spanning_tree
from spgraph.csgraph.traversal import breadth_first_order, breadth_first_tree, reconstruct_path

# in SciPy's order
__all__ = [  # noqa: RUF022
    "connected_components",
    "laplacian",
    "shortest_path",
    "floyd_warshall",
    "dijkstra",
    "bellman_ford",
    "johnson",
    "yen",
    "breadth_first_order",
    "depth_first_order",
    "breadth_first_tree",
    "depth_first_tree",
    "minimum_spanning_tree",
    "reverse_cuthill_mckee",
    "maximum_flow",
    "maximum_bipartite_matching",
    "min_weight_full_bipartite_matching",
    "structural_rank",
    "construct_dist_matrix",
    "reconstruct_path",
    "csgraph_masked_from_dense",
    "csgraph_from_dense",
    "csgraph_from_masked",
    "csgraph_to_dense",
    "csgraph_to_masked",
    "NegativeCycleError",
]

assert not DELEGATED.keys() - set(__all__)


def __dir__() -> list[str]:
    return sorted(__all__)
