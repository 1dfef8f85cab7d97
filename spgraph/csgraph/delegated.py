"""Functions that spgraph does not implement: calls of SciPy's own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csgraph as scipys

from spgraph.csgraph.kinds import from_matrix, is_gpu
from spgraph.csgraph.traversal import check_start

# name -> SciPy's function
DELEGATED: dict[str, Callable[..., Any]] = {
    # depth-first: inherently sequential
    "depth_first_order": scipys.depth_first_order,
    "depth_first_tree": scipys.depth_first_tree,
    # the k shortest paths without loops
    "yen": scipys.yen,
    # flows and matchings
    "maximum_flow": scipys.maximum_flow,
    "maximum_bipartite_matching": scipys.maximum_bipartite_matching,
    "min_weight_full_bipartite_matching": scipys.min_weight_full_bipartite_matching,
    # orderings and rank
    "reverse_cuthill_mckee": scipys.reverse_cuthill_mckee,
    "structural_rank": scipys.structural_rank,
}
# of those, they answer as if nothing were reached where the start is no vertex
FROM_A_START = (scipys.depth_first_order, scipys.depth_first_tree)


def on_the_cpu(function: Callable[..., Any]) -> Callable[..., Any]:
    """SciPy's function, of Matrices as well, with a clear TypeError for a graph on a GPU."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        args = tuple(map(from_matrix, args))
        kwargs = {name: from_matrix(argument) for name, argument in kwargs.items()}
        for argument in (*args, *kwargs.values()):
            if is_gpu(argument):
                raise TypeError(
                    f"{function.__name__}: expected a graph on the CPU, for the function is "
                    f"SciPy's, got {type(argument).__module__}.{type(argument).__name__}; "
                    "copy it with .get()"
                )
        if function in FROM_A_START:
            _check_start(*args[:2], **kwargs)
        return function(*args, **kwargs)

    return call


def _check_start(csgraph: Any = None, i_start: Any = None, **others: Any) -> None:
    """An error for a start beyond the last vertex, as of `breadth_first_order`: SciPy answers as if
    nothing were reached. What is missing SciPy names.
    """
    if csgraph is not None and i_start is not None:
        shape = csgraph.shape if hasattr(csgraph, "shape") else np.shape(csgraph)
        check_start(i_start, shape[0] if shape else 0)


depth_first_order = on_the_cpu(DELEGATED["depth_first_order"])
depth_first_tree = on_the_cpu(DELEGATED["depth_first_tree"])
yen = on_the_cpu(DELEGATED["yen"])
maximum_flow = on_the_cpu(DELEGATED["maximum_flow"])
maximum_bipartite_matching = on_the_cpu(DELEGATED["maximum_bipartite_matching"])
min_weight_full_bipartite_matching = on_the_cpu(DELEGATED["min_weight_full_bipartite_matching"])
reverse_cuthill_mckee = on_the_cpu(DELEGATED["reverse_cuthill_mckee"])
structural_rank = on_the_cpu(DELEGATED["structural_rank"])
