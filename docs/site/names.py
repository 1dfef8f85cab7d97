"""The page of names: which names of SciPy, NetworkX and python-graphblas are names here as well,
and how the others are called. `python docs/site/names.py` writes docs/names.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "names.md"

# theirs -> ours, which is an expression over the names of `spgraph` and of its containers
CSR = {
    "asformat": "A.tocsr",
    "conjugate": "A.conj",
    "count_nonzero": "A.nonzero()[0].size",
    "eliminate_zeros": "A[A.V]",
    "data": "A.values",
    "indices": "A.indices",
    "indptr": "A.indptr",
    "reshape": "A.tocsr().reshape",
    "sum_duplicates": "sg.Matrix.from_coo",
    "todense": "A.toarray",
    "trace": "A.diagonal().sum()",
}
SPARSE = {
    "block_array": "sg.block_array",
    "block_diag": "sg.block_array([[A, None], [None, A]])",
    "diags_array": "sg.diag",
    "eye_array": "sg.diag(sg.Vector.filled(1.0, size=3))",
    "find": "A.to_coo",
    "hstack": "sg.block_array([[A, A]])",
    "kron": "sg.kronecker",
    "load_npz": "sg.read",
    "random_array": "sg.generators.uniform_random",
    "save_npz": "sg.write",
    "tril": "sg.select",
    "triu": "sg.select",
    "vstack": "sg.block_array([[A], [A]])",
}
NETWORKX = {
    "adjacency_matrix": "sg.Matrix.from_networkx",
    "ancestors": "sg.reachable",
    "bellman_ford_predecessor_and_distance": "sg.csgraph.bellman_ford",
    "all_pairs_dijkstra_path_length": "sg.csgraph.dijkstra",
    "all_pairs_shortest_path_length": "sg.multi_source_bfs",
    "average_clustering": "sg.clustering(A).mean()",
    "bfs_layers": "sg.bfs",
    "bfs_predecessors": "sg.bfs",
    "bfs_tree": "sg.csgraph.breadth_first_tree",
    "degree": "A.row_degrees",
    "degree_centrality": "A.row_degrees",
    "descendants": "sg.reachable",
    "dfs_preorder_nodes": "sg.csgraph.depth_first_order",
    "dfs_tree": "sg.csgraph.depth_first_tree",
    "dijkstra_path": "sg.sssp(A, 0).path_to(0)",
    "dijkstra_predecessor_and_distance": "sg.sssp",
    "diameter": "sg.multi_source_bfs(A, range(A.nrows)).max()",
    "eccentricity": "sg.multi_source_bfs(A, range(A.nrows)).max(axis=1)",
    "floyd_warshall_numpy": "sg.csgraph.floyd_warshall",
    "from_pandas_adjacency": "sg.Matrix",
    "from_pandas_edgelist": "sg.from_edges",
    "from_scipy_sparse_array": "sg.Matrix",
    "grid_2d_graph": "sg.generators.grid",
    "jaccard_coefficient": 'sg.mxm(A, A, "plus_pair")',
    "k_core": "A[sg.core_number(A) >= 2, sg.core_number(A) >= 2]",
    "laplacian_matrix": "sg.csgraph.laplacian",
    "maximum_flow": "sg.csgraph.maximum_flow",
    "maximum_flow_value": "sg.csgraph.maximum_flow",
    "maximum_spanning_tree": "-sg.minimum_spanning_tree(-A)",
    "multi_source_dijkstra_path_length": "sg.iterations.closure",
    "neighbors": "A[0].to_coo()[0]",
    "normalized_laplacian_matrix": "sg.csgraph.laplacian",
    "number_connected_components": "sg.connected_components",
    "number_of_edges": "A.nvals",
    "number_of_nodes": "A.nrows",
    "random_geometric_graph": "sg.generators.random_geometric",
    "read_edgelist": "sg.read",
    "reverse": "A.T",
    "shortest_path": "sg.bfs(A, 0).path_to(0)",
    "shortest_path_length": "sg.sssp",
    "shortest_simple_paths": "sg.csgraph.yen",
    "single_source_bellman_ford_path_length": "sg.csgraph.bellman_ford",
    "single_source_dijkstra": "sg.sssp",
    "single_source_dijkstra_path_length": "sg.sssp",
    "single_source_shortest_path_length": "sg.bfs",
    "strongly_connected_components": "sg.connected_components",
    "subgraph": "A[[0], [0]]",
    "to_scipy_sparse_array": "A.to_scipy",
    "to_undirected": 'sg.ewise_add(A, A.T, "max")',
    "triangles": 'sg.reduce_rowwise(sg.mxm(A, A, "plus_pair", mask=A.S)) // 2',
    "weakly_connected_components": "sg.connected_components",
}
# what a user of NetworkX asks for most often and does not find
ABSENT = (
    "adamic_adar_index",
    "astar_path",
    "edge_betweenness_centrality",
    "find_cliques",
    "harmonic_centrality",
    "is_bipartite",
    "is_isomorphic",
    "max_weight_matching",
    "minimum_cut",
    "topological_sort",
    "transitivity",
)
MATRIX = {
    "from_csr": "sg.Matrix.from_scipy",
    "from_edgelist": "sg.Matrix.from_coo",
    "get": "A[0, 0]",
    "power": "sg.mxm",
    "reduce_scalar": "sg.reduce",
    "to_csc": "A.tocsc",
    "to_csr": "A.tocsr",
    "to_edgelist": "A.to_coo",
}
VECTOR = {
    "from_pairs": "sg.Vector.from_coo",
    "from_scalar": "sg.Vector.filled",
    "get": "v[0]",
    "reduce": "sg.reduce",
    "to_dense": "v.to_numpy",
    "to_dict": "dict(v)",
}
CLASSES = {"unary": "UnaryOp", "binary": "BinaryOp", "indexunary": "IndexUnaryOp"}


def public(owner: Any) -> list[str]:
    return sorted(name for name in dir(owner) if name[0] != "_")


def ours() -> dict[str, Any]:
    """What the expressions of this page are made of."""
    import spgraph as sg
    from spgraph import semirings

    A = sg.Matrix.from_coo([0], [0], [1.0])
    return {"sg": sg, "A": A, "v": sg.Vector.from_coo([0], [1.0]), "semirings": semirings}


def listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def rows(theirs: str, names: Iterable[str], here: dict[str, str], same: str) -> Iterator[str]:
    """The table of the names that are called otherwise; before it those that are the same, and
    after it those that have no counterpart.
    """
    import spgraph as sg

    owners = {"A": sg.Matrix, "v": sg.Vector, "sg": sg}
    owner = owners.get(same) or eval(same, {"sg": sg})
    known = set(getattr(owner, "__all__", dir(owner)))
    functions = set(sg.operations.__all__) - known if same in ("A", "v") else set()
    alike = [name for name in names if name in known and name not in here]
    moved = [name for name in names if name in functions and name not in here]
    renamed = {name: here[name] for name in names if name in here}
    others = [name for name in names if name not in {*known, *functions, *here}]
    if alike:
        yield f"The same names: {listed(alike)}.\n"
    if moved:
        yield f"Methods there, functions here, as `sg.apply({same}, ...)`: {listed(moved)}.\n"
    if renamed:
        yield f"| {theirs} | spgraph |\n| --- | --- |"
        yield from (f"| `{name}` | `{call}` |" for name, call in renamed.items())
        yield ""
    if others:
        yield f"Without a counterpart: {listed(others)}.\n"


def lines() -> Iterator[str]:
    import graphblas as gb
    import networkx as nx
    import numpy as np
    import scipy.sparse

    yield """# Their names and ours

Which public names of other libraries are names here too, how the others are called, and which have
no counterpart; written by `docs/site/names.py` from the packages themselves. A is a Matrix, v a
Vector. The same name does not always mean the same call:
[Coming from another library](coming_from.md) has calls side by side, each computed on both sides.
"""
    yield "## scipy.sparse.csr_array\n"
    S = scipy.sparse.csr_array((1, 1))
    functions = [name for name in public(S) if isinstance(getattr(np, name, None), np.ufunc)]
    own = {*CSR, *public(ours()["A"])}
    functions = [name for name in functions if name not in own and getattr(np, name).nin == 1]
    yield from rows("csr_array", [n for n in public(S) if n not in functions], CSR, "A")
    yield "`A.tocsr()` has these.\n"
    yield f"Functions of NumPy, of the entries, as in `np.sqrt(A)`: {listed(functions)}.\n"
    yield "## scipy.sparse\n"
    yield from rows("scipy.sparse", [n for n in public(scipy.sparse) if n in SPARSE], SPARSE, "sg")
    yield "## scipy.sparse.csgraph\n"
    yield from rows("csgraph", scipy.sparse.csgraph.__all__, {}, "sg.csgraph")
    yield "They take SciPy's and CuPy's matrices and arrays, and a Matrix as `A.tocsr()`.\n"
    yield "## NetworkX\n"
    methods = [name for name in public(nx.DiGraph) if name in NETWORKX]
    known = {*NETWORKX, *ABSENT, *ours()["sg"].algorithms.__all__}
    named = sorted({*methods, *(name for name in public(nx) if name in known)})
    yield from rows("NetworkX", named, NETWORKX, "sg")
    yield "Only what is looked for most is listed here; elsewhere in this page every name is.\n"
    yield "Of `nx.community` there is label propagation alone, `sg.label_propagation`.\n"
    for kind, here, same in (("Matrix", MATRIX, "A"), ("Vector", VECTOR, "v")):
        yield f"## graphblas.{kind}\n"
        yield from rows("python-graphblas", public(getattr(gb, kind)), here, same)
    for kind in ("unary", "binary", "indexunary", "select", "monoid"):
        mine = "indexunary" if kind == "select" else kind
        yield f"## graphblas.{kind}: spgraph.semirings.{mine}\n"
        names = public(getattr(gb, kind))
        define = f"semirings.{CLASSES[mine]}.define" if mine in CLASSES else "semirings.Monoid"
        here = dict.fromkeys(("register_anonymous", "register_new"), define)
        if kind == "unary":
            here |= {name: f"semirings.indexunary.{name}" for name in ("positioni", "positionj")}
        yield from rows("python-graphblas", names, here, f"sg.semirings.{mine}")


if __name__ == "__main__":
    PAGE.write_text(re.sub(r"\n{3,}", "\n\n", "\n".join(lines()) + "\n").rstrip() + "\n")
