"""What spgraph's algorithms answer to a case of a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from soak.algorithms import Answer, csgraph_answer
from soak.entries import Refusal, read_back
from soak.graphs import GraphCase
from soak.library import REFUSALS

from spgraph.errors import ConvergenceError


def answer(case: GraphCase, device: str = "cpu", shards: int = 0) -> Answer | Refusal:
    """The case's answer as plain arrays, on a device or in shards."""
    A = case.matrix(device, shards)
    try:
        return FOUND[case.what](case, A)
    except (*REFUSALS, ConvergenceError) as error:
        return Refusal(f"{type(error).__name__}: {error}")


def difference(found: Any, expected: Any) -> str | None:
    """Where two answers differ; floats may differ in the sixth digit."""
    if expected is None:
        return None
    if isinstance(found, Refusal) or isinstance(expected, Refusal):
        both = isinstance(found, Refusal) and isinstance(expected, Refusal)
        return None if both else f"refused: {found if isinstance(found, Refusal) else expected}"
    for name, values in expected.items():
        x, y = np.ma.asarray(found[name]), np.ma.asarray(values)
        if x.shape != y.shape:
            return f"{name}: shape {x.shape}, expected {y.shape}"
        if not np.array_equal(np.ma.getmaskarray(x), np.ma.getmaskarray(y)):
            return f"{name}: other positions"
        if name in CLOSE:
            same = np.allclose(x.filled(0), y.filled(0), rtol=1e-5, atol=CLOSE[name])
        else:
            same = bool((x.filled(0) == y.filled(0)).all())
        if not same:
            return f"{name}: {x.tolist()}, expected {y.tolist()}"
    return None


CLOSE = dict.fromkeys(("score", "distances", "closeness", "clustering"), 1e-6)
CLOSE |= dict.fromkeys(("rank", "hub", "authority"), 1e-5)


def _full(v: Any, missing: Any = None) -> np.ndarray:
    """The values of a Vector, masked (or `missing`) where it has no entry."""
    entries = read_back(v)
    made = np.ma.masked_all(entries.shape, entries.dtype)
    made[entries.keys] = entries.values
    return made if missing is None else made.filled(missing)


def _search(case: GraphCase, A: Any) -> Answer:
    import spgraph as sg

    found = sg.bfs(A, case.options["source"], direction=case.options["direction"])
    return {"level": _full(found.level, -1), "parent": _full(found.parent, -1)}


def _paths(case: GraphCase, A: Any) -> Answer:
    import spgraph as sg

    name, value = {"sssp": ("sssp", "distance"), "widest_path": ("widest_path", "width")}[case.what]
    found = getattr(sg.algorithms, name)(A, case.options["source"])
    return {value: _full(found[0]), "parent": _full(found[1], -1)}


def _components(case: GraphCase, A: Any) -> Answer:
    import spgraph as sg

    return {"component": _full(sg.connected_components(A, connection=case.what.split()[1]))}


def _triangles(case: GraphCase, A: Any) -> Answer:
    import spgraph as sg

    return {
        "truss": read_back(sg.k_truss(A, 3)).keys,
        "triangles": np.array([sg.triangle_count(A)]),
        "clustering": _full(sg.clustering(A)),
        "core": _full(sg.algorithms.core_number(A)),
    }


def _betweenness(case: GraphCase, A: Any) -> Answer:
    import spgraph as sg

    weighted = case.what.endswith("weighted")
    return {"score": _full(sg.betweenness_centrality(A, weighted=weighted))}


def _closeness(case: GraphCase, A: Any) -> Answer:
    import spgraph as sg

    return {"closeness": _full(sg.algorithms.closeness_centrality(A))}


def _spanning(case: GraphCase, A: Any) -> Answer:
    import spgraph as sg

    tree = read_back(sg.algorithms.minimum_spanning_tree(A))
    return {"keys": tree.keys, "weights": tree.values}


def _pagerank(case: GraphCase, A: Any) -> Answer:
    import spgraph as sg

    return {"rank": _full(sg.pagerank(A, weighted=case.options["weighted"]))}


def _hits(case: GraphCase, A: Any) -> Answer:
    import spgraph as sg

    hub, authority = sg.hits(A, weighted=case.options["weighted"], max_iter=5000)
    return {"hub": _full(hub), "authority": _full(authority)}


def _katz(case: GraphCase, A: Any) -> Answer:
    import spgraph as sg

    given = {"alpha": case.options["alpha"], "weighted": case.options["weighted"], "tol": 1e-9}
    return {"score": _full(sg.katz_centrality(A, **given))}


def _multi(case: GraphCase, A: Any) -> Answer:
    import spgraph as sg

    found = read_back(sg.algorithms.multi_source_bfs(A, case.options["sources"]))
    level = np.full(found.shape, -1)
    level.ravel()[found.keys] = found.values
    return {"level": level}


def _reachable(case: GraphCase, A: Any) -> Answer:
    import spgraph as sg

    return {"reached": _full(sg.algorithms.reachable(A, case.options["sources"]), False)}


def _csgraph(case: GraphCase, A: Any) -> Answer:
    """SciPy's functions on SciPy's matrices: neither device nor shards."""
    from spgraph import csgraph

    return csgraph_answer(case, csgraph)


def _properties(case: GraphCase, A: Any) -> Answer:
    """Faults of a colouring and of an independent set, whose answers are free."""
    import spgraph as sg

    edges = case.edges(loops=False)
    edges = edges | edges.T
    color = _full(sg.algorithms.greedy_color(A, seed=3), -1)
    chosen = _full(sg.algorithms.maximal_independent_set(A, seed=3), False).astype(bool)
    return {
        "faults": np.array(
            [
                (edges & (color[:, None] == color)).sum(),
                (color < 0).sum(),
                (edges & chosen[:, None] & chosen).sum(),
                (~chosen & ~(edges & chosen).any(1)).sum(),
            ]
        )
    }


FOUND: dict[str, Callable[[GraphCase, Any], Answer]] = {
    "bfs": _search,
    "sssp": _paths,
    "widest_path": _paths,
    "components weak": _components,
    "components strong": _components,
    "triangles": _triangles,
    "betweenness": _betweenness,
    "betweenness weighted": _betweenness,
    "closeness": _closeness,
    "spanning_tree": _spanning,
    "pagerank": _pagerank,
    "hits": _hits,
    "katz": _katz,
    "multi_source_bfs": _multi,
    "reachable": _reachable,
    "properties": _properties,
    "csgraph paths": _csgraph,
    "csgraph laplacian": _csgraph,
    "csgraph components": _csgraph,
}
