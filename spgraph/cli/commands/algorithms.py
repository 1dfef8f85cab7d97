"""The commands of the algorithms: a line for each, the rest is in the function's signature."""

from __future__ import annotations

import spgraph as sg
from spgraph.cli.algorithm import Algorithm
from spgraph.cli.commands import searches
from spgraph.cli.kinds import edges, groups, levels, members, nearest, number, scores, widest

# the graphs that the examples of the help are about, by the names of their files
EXAMPLES = {
    "kron.npz": "spgraph generate kronecker 18 -o kron.npz",
    "web.npz": "spgraph generate kronecker 18 --directed -o web.npz",
    "grid.npz": "spgraph generate grid 300 300 -o grid.npz",
    "roads.wel": r"printf '0 1 4\n0 2 9\n1 2 3\n2 3 1\n' > roads.wel",
    "network.wel": r"printf '0 1 0.9\n0 2 0.5\n1 2 0.8\n' > network.wel",
}

ALGORITHMS = (
    Algorithm(
        sg.bfs, nearest, "level", "kron.npz --validate --trace --plot levels.png",
        start="source", trace=searches.bfs_levels, warm=searches.one_level,
        measures=searches.traversed, validate=searches.validate,
    ),
    Algorithm(
        sg.multi_source_bfs, levels, "level", "kron.npz --sources 0,5,7 -o levels.mtx.gz",
        start="sources",
    ),
    Algorithm(
        sg.reachable, members, "reached", "web.npz --sources 0,5,7 --trace -o reached.csv",
        start="sources", trace=searches.reachable_levels,
    ),
    Algorithm(
        sg.sssp, nearest, "distance", "roads.wel --source 0 --top 3 --plot distances.png",
        start="source",
    ),
    Algorithm(
        sg.widest_path, widest, "width", "roads.wel --source 0 --top 3 -o widths.npz",
        start="source",
    ),
    Algorithm(
        sg.most_reliable_path, widest, "reliability",
        "network.wel --source 0 --no-parents --top 3", start="source",
    ),
    Algorithm(sg.pagerank, scores, "rank", "web.npz --top 10 --plot ranks.png -o ranks.npz"),
    Algorithm(sg.hits, scores, "hub", "web.npz --max-iter 1000 --top 10 -o hits.csv"),
    Algorithm(sg.salsa, scores, "hub", "web.npz --max-iter 1000 --top 10"),
    Algorithm(sg.katz_centrality, scores, "centrality", "grid.npz --alpha 0.2 --top 10"),
    Algorithm(sg.eigenvector_centrality, scores, "centrality", "kron.npz --top 10"),
    Algorithm(
        sg.betweenness_centrality, scores, "betweenness", "kron.npz --k 8 --seed 1 --top 10"
    ),
    Algorithm(sg.closeness_centrality, scores, "closeness", "kron.npz --sources 0,5,7 --top 3"),
    Algorithm(
        sg.connected_components, groups, "component",
        "web.npz --connection strong --top 5 -o web.csv",
    ),
    Algorithm(sg.triangle_count, number, "triangles", "kron.npz --format json", undirected="edges"),
    Algorithm(
        sg.clustering, scores, "coefficient", "kron.npz --plot clustering.png", undirected="edges"
    ),
    Algorithm(
        sg.core_number, scores, "core", "kron.npz --top 10 --plot cores.png", undirected="edges"
    ),
    Algorithm(
        sg.k_truss, edges, "triangles", "kron.npz 5 --top 3 -o truss.mtx", undirected="edges"
    ),
    Algorithm(
        sg.maximal_independent_set, members, "member", "grid.npz --seed 1 -o set.csv",
        undirected="edges",
    ),
    Algorithm(sg.greedy_color, groups, "color", "grid.npz --seed 1 --top 3", undirected="edges"),
    Algorithm(
        sg.minimum_spanning_tree, edges, "weight", "roads.wel --symmetric --top 3 -o tree.mtx",
        undirected="weights",
    ),
    Algorithm(
        sg.label_propagation, groups, "label", "kron.npz --seed 1 --top 10 -o communities.csv",
        undirected="edges",
    ),
)  # fmt: skip
