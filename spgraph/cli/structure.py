"""Components, triangles, cores, sets, colours, trees, communities."""

from __future__ import annotations

from typing import Any

import click

import spgraph as sg
from spgraph.cli import options
from spgraph.cli.algorithm import algorithm
from spgraph.cli.kinds import edges, groups, members, number, scores


@algorithm(groups, "component")
@click.option(
    "--connection",
    type=click.Choice(["weak", "strong"]),
    default="weak",
    show_default=True,
    help="weak: whichever way edges point; strong: there and back.",
)
def connected_components(A: sg.Matrix, **parameters: Any) -> Any:
    """Connected components: weak or strong.

    Each is named by its smallest vertex.

    \b
    Example:
      spgraph generate kronecker 18 --directed -o web.npz
      spgraph connected-components web.npz --connection strong --top 5 -o web.csv
    """
    return sg.connected_components(A, **parameters)


@algorithm(number, "triangles", undirected="edges")
def triangle_count(A: sg.Matrix) -> Any:
    """How many triangles there are.

    Edges count whichever way they point.

    \b
    Example:
      spgraph generate kronecker 18 -o kron.npz
      spgraph triangle-count kron.npz --format json
    """
    return sg.triangle_count(A)


@algorithm(scores, "coefficient", undirected="edges")
def clustering(A: sg.Matrix) -> Any:
    """Clustering: which share of neighbours are joined.

    \b
    Example:
      spgraph generate kronecker 18 -o kron.npz
      spgraph clustering kron.npz --plot clustering.png
    """
    return sg.clustering(A)


@algorithm(scores, "core", undirected="edges")
def core_number(A: sg.Matrix) -> Any:
    """Core numbers: in which k-cores a vertex is.

    \b
    Example:
      spgraph generate kronecker 18 -o kron.npz
      spgraph core-number kron.npz --top 10 --plot cores.png
    """
    return sg.core_number(A)


@algorithm(members, "member", undirected="edges")
@options.seed
def maximal_independent_set(A: sg.Matrix, **parameters: Any) -> Any:
    """A maximal set of vertices, no two neighbours.

    \b
    Example:
      spgraph generate grid 300 300 -o roads.npz
      spgraph maximal-independent-set roads.npz --seed 1 -o set.csv
    """
    return sg.maximal_independent_set(A, **parameters)


@algorithm(groups, "color", undirected="edges")
@options.seed
def greedy_color(A: sg.Matrix, **parameters: Any) -> Any:
    """Colours, another one for each neighbour.

    \b
    Example:
      spgraph generate grid 300 300 -o roads.npz
      spgraph greedy-color roads.npz --seed 1 --top 3
    """
    return sg.greedy_color(A, **parameters)


@algorithm(edges, "weight", undirected="weights")
def minimum_spanning_tree(A: sg.Matrix) -> Any:
    """The edges of least weight that connect a graph.

    \b
    Example:
      printf '0 1 4\\n0 2 9\\n1 2 3\\n2 3 1\\n' > roads.wel
      spgraph minimum-spanning-tree roads.wel --symmetric --top 3 -o tree.mtx
    """
    return sg.minimum_spanning_tree(A)


@algorithm(groups, "label", undirected="edges")
@options.rounds(100)
@options.seed
def label_propagation(A: sg.Matrix, **parameters: Any) -> Any:
    """Communities: labels that neighbours share.

    No other label is more frequent among the neighbours of a vertex than its own.

    \b
    Example:
      spgraph generate kronecker 18 -o kron.npz
      spgraph label-propagation kron.npz --seed 1 --top 10 -o communities.csv
    """
    return sg.label_propagation(A, **parameters)
