"""Cases of algorithms, and what SciPy, NetworkX and plain loops answer to them."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import numpy as np
from soak.entries import Refusal, draw_form
from soak.graphs import GraphCase, draw_graph
from soak.pools import Pool

Answer = dict[str, np.ndarray]
WEIGHTS = "bool int64 float64 int32 uint8 float32 uint64".split()


def draw(pool: Pool, number: int) -> GraphCase:
    """Case `number` of a pool."""
    rng = np.random.default_rng([2028, pool.number, number])
    names = list(ALGORITHMS)
    what = names[int(rng.integers(len(names)))]
    kind = np.dtype(WEIGHTS[(pool.number + int(rng.integers(2))) % len(WEIGHTS)])
    positive = what in ("betweenness weighted",)
    # SciPy's Bellman-Ford takes the rounding of sums of very unlike weights for a negative cycle
    exact = what in ("pagerank", "hits", "katz", "csgraph paths")
    manner = "positive" if positive else str(rng.choice(["positive", "zeros", "wild"]))
    manner = "zeros" if exact and manner == "wild" else manner
    graph, undirected = draw_graph(rng, kind, manner)
    form = draw_form(rng, graph.shape, pool.index)
    case = GraphCase(what, graph, form, undirected, threads=pool.threads)
    case.options["known"] = bool(rng.random() < 0.5)
    n = graph.shape[0]
    if what in ("bfs", "sssp", "widest_path"):
        case.options["source"] = int(rng.integers(n))
    if what == "bfs":
        case.options["direction"] = str(rng.choice(["auto", "push", "pull"]))
    if what in ("multi_source_bfs", "reachable"):
        case.options["sources"] = rng.permutation(n)[: int(rng.integers(1, n + 1))]
    if what.startswith("csgraph"):
        case.options["directed"] = bool(rng.random() < 0.5)
    if what == "csgraph paths":
        case.options["method"] = str(rng.choice(["auto", "D", "BF", "J", "FW"]))
        case.options["unweighted"] = bool(rng.random() < 0.3)
    if what == "csgraph laplacian":
        case.options["normed"] = bool(rng.random() < 0.5)
        case.options["use_out_degree"] = not case.options.pop("directed")
    if what in ("pagerank", "hits", "katz"):
        case.options["weighted"] = bool(rng.random() < 0.5)
    return case


# --- what has to come out -----------------------------------------------------------------------


def _levels(edges: np.ndarray, sources: Any) -> np.ndarray:
    """The level of every vertex from the nearest of the sources, -1 where there is none."""
    level = np.full(edges.shape[0], -1)
    level[sources] = 0
    front, depth = level == 0, 0
    while front.any():
        depth += 1
        front = edges[front].any(0) & (level < 0)
        level[front] = depth
    return level


def _bfs(case: GraphCase) -> Answer:
    edges, source = case.edges(), case.options["source"]
    level = _levels(edges, [source])
    before = edges & (level[:, None] + 1 == level) & (level[:, None] >= 0)
    parent = np.where(level > 0, before.argmax(0), -1)
    parent[source] = source
    return {"level": level, "parent": parent}


def _relax(case: GraphCase, start: Any, add: Any, better: Any, nothing: Any) -> np.ndarray:
    """The best values of paths from the source, by the definition: until nothing changes."""
    kind = case.graph.dtype
    computed = np.dtype("int64") if add is np.add and kind.kind != "f" else kind
    i, j = case.graph.at()
    weight = case.graph.values.astype(computed)
    value = np.full(case.n, nothing, computed)
    reached = np.zeros(case.n, bool)
    value[case.options["source"]], reached[case.options["source"]] = start, True
    while True:
        on = reached[i]
        with np.errstate(over="ignore"):
            found = add(value[i[on]], weight[on])
        if computed.kind == "i" and add is np.add:  # a sum beyond the type is no path
            fits = found >= 0
            found, to = found[fits], j[on][fits]
            beyond = set(j[on][~fits].tolist())
        else:
            to, beyond = j[on], set()
        new, now = value.copy(), reached.copy()
        better.at(new, to, found)
        now[to] = True
        if np.array_equal(new, value) and np.array_equal(now, reached):
            if any(not reached[v] for v in beyond):
                raise OverflowError
            return np.ma.array(value, mask=~reached)
        value, reached = new, now


def _tree(case: GraphCase, value: Any, add: Any) -> np.ndarray:
    """Parents on best paths of the fewest edges, of the least id."""
    n, source = case.n, case.options["source"]
    i, j = case.graph.at()
    there, best = ~np.ma.getmaskarray(value), value.data
    with np.errstate(over="ignore"):
        through = add(best[i], case.graph.values.astype(best.dtype))
    on_shortest_path = there[i] & (through == best[j])
    edges = np.zeros((n, n), bool)
    edges[i[on_shortest_path], j[on_shortest_path]] = True
    level = _levels(edges, [source])
    before = edges & (level[:, None] + 1 == level) & (level[:, None] >= 0)
    parent = np.where(level > 0, before.argmax(0), -1)
    parent[source] = source
    return parent


def _sssp(case: GraphCase) -> Answer | Refusal:
    computed = case.graph.dtype if case.graph.dtype.kind == "f" else np.dtype("int64")
    top = np.inf if computed.kind == "f" else np.iinfo(computed).max
    try:
        distance = _relax(case, 0, np.add, np.minimum, top)
    except OverflowError:
        return Refusal("a distance beyond int64")
    return {"distance": distance, "parent": _tree(case, distance, np.add)}


def _widest(case: GraphCase) -> Answer:
    kind = case.graph.dtype
    top = np.inf if kind.kind == "f" else True if kind.kind == "b" else np.iinfo(kind).max
    width = _relax(case, top, np.minimum, np.maximum, 0)
    return {"width": width, "parent": _tree(case, width, np.minimum)}


def _components(case: GraphCase) -> Answer:
    from scipy.sparse import csgraph, csr_array

    label = csgraph.connected_components(csr_array(case.edges()), connection=case.what.split()[1])[
        1
    ]
    least = [int(np.flatnonzero(label == k)[0]) for k in range(int(label.max(initial=-1)) + 1)]
    return {"component": np.array(least, np.int64)[label] if least else label}


def _networkx(case: GraphCase, *, directed: bool) -> Any:
    import networkx as nx

    edges = case.edges(loops=directed)
    G = nx.DiGraph() if directed else nx.Graph()
    G.add_nodes_from(range(case.n))
    values = dict(zip(case.graph.keys.tolist(), case.graph.values.tolist(), strict=True))
    for i, j in zip(*(part.tolist() for part in np.nonzero(edges)), strict=True):
        G.add_edge(i, j, weight=values[i * case.n + j])
    return G


def _by_vertex(found: dict[int, Any], n: int) -> np.ndarray:
    return np.array([found[v] for v in range(n)])


def _triangles(case: GraphCase) -> Answer:
    import networkx as nx

    G = _networkx(case, directed=False)
    truss = np.array(nx.k_truss(G, 3).edges, np.int64).reshape(-1, 2)
    return {
        "truss": np.sort((np.vstack([truss, truss[:, ::-1]]) * [case.n, 1]).sum(1)),
        "triangles": np.array([sum(nx.triangles(G).values()) // 3]),
        "clustering": _by_vertex(nx.clustering(G), case.n),
        "core": _by_vertex(nx.core_number(G), case.n),
    }


def _betweenness(case: GraphCase) -> Answer:
    import networkx as nx

    G = _networkx(case, directed=True)
    weight = "weight" if case.what.endswith("weighted") else None
    score = nx.betweenness_centrality(G, normalized=False, weight=weight)
    return {"score": _by_vertex(score, case.n)}


def _closeness(case: GraphCase) -> Answer:
    import networkx as nx

    return {
        "closeness": _by_vertex(nx.closeness_centrality(_networkx(case, directed=True)), case.n)
    }


def _spanning(case: GraphCase) -> Answer:
    """Kruskal: edges by (weight, row, column)."""
    i, j = case.graph.at()
    heap = list(zip(case.graph.values.tolist(), i.tolist(), j.tolist(), strict=True))
    heapq.heapify(heap)
    root, chosen = list(range(case.n)), []
    while heap:
        weight, a, b = heapq.heappop(heap)
        if root[a] != root[b]:
            old = root[b]
            root = [root[a] if r == old else r for r in root]
            chosen.append((a * case.n + b, weight))
    chosen.sort()
    return {
        "keys": np.array([key for key, _ in chosen], np.int64),
        "weights": np.array([weight for _, weight in chosen], case.graph.dtype),
    }


def _weights(case: GraphCase) -> np.ndarray:
    table = case.edges().astype(float)
    return np.where(table > 0, case.dense(), 0.0) if case.options["weighted"] else table


def _pagerank(case: GraphCase) -> Answer:
    """The ranks by solving the linear system."""
    W, n = _weights(case), case.n
    out = W.sum(1)
    P = np.where(out[:, None] > 0, W / np.where(out > 0, out, 1)[:, None], 1 / n)
    rank = np.linalg.solve(np.eye(n) - 0.85 * P.T, np.full(n, 0.15 / n))
    return {"rank": rank / rank.sum()}


def _hits(case: GraphCase) -> Answer | None:
    W = _weights(case)
    hub = np.full(case.n, 1 / case.n)
    for turn in range(4000):
        authority = hub @ W
        new = W @ authority
        if new.sum() == 0:
            return None
        new /= new.sum()
        change, hub = np.abs(new - hub).sum(), new
        if turn == 60 and change > 1e-9:
            return None  # comes to rest too slowly to be compared
        if change < 1e-15:
            break
    return {"hub": hub, "authority": (hub @ W) / (hub @ W).sum()}


def _katz(case: GraphCase) -> Answer:
    W = _weights(case)
    case.options["alpha"] = alpha = 0.4 / max(1.0, np.abs(np.linalg.eigvals(W)).max())
    x = np.linalg.solve(np.eye(case.n) - alpha * W.T, np.ones(case.n))
    return {"score": x / np.linalg.norm(x)}


def scipy_matrix(case: GraphCase) -> Any:
    """The graph for SciPy, with weights of float64."""
    from scipy.sparse import csr_array

    i, j = case.graph.at()
    weights = case.graph.values.astype(np.float64)
    return csr_array((weights, (i, j)), shape=case.graph.shape)


def csgraph_answer(case: GraphCase, module: Any) -> Answer:
    """What SciPy's module, or ours of the same functions, gives."""
    A = scipy_matrix(case)
    given = {k: v for k, v in case.options.items() if k != "known"}
    if case.what == "csgraph paths":
        return {"distances": module.shortest_path(A, **given)}
    if case.what == "csgraph laplacian":
        L = module.laplacian(A, **given)
        return {"score": L.toarray()}
    label = module.connected_components(A, connection="strong", **given)[1]
    return {"together": label[:, None] == label}


def _csgraph(case: GraphCase) -> Answer:
    from scipy.sparse import csgraph

    return csgraph_answer(case, csgraph)


def _multi(case: GraphCase) -> Answer:
    edges, sources = case.edges(), case.options["sources"]
    return {"level": np.stack([_levels(edges, [s]) for s in sources])}


def _reachable(case: GraphCase) -> Answer:
    return {"reached": _levels(case.edges(), case.options["sources"]) >= 0}


def _properties(case: GraphCase) -> Answer:
    """What `found.properties` gives for any right answer."""
    return {"faults": np.zeros(4, np.int64)}


ALGORITHMS: dict[str, Callable[[GraphCase], Answer | Refusal | None]] = {
    "bfs": _bfs,
    "sssp": _sssp,
    "widest_path": _widest,
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


def answer(case: GraphCase) -> Answer | Refusal | None:
    """What the case has to give; None where nothing is known."""
    return ALGORITHMS[case.what](case)
