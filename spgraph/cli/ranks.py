"""Ranks and centralities: a score for every vertex."""

from __future__ import annotations

from typing import Any

import click

import spgraph as sg
from spgraph.cli import options
from spgraph.cli.algorithm import algorithm
from spgraph.cli.kinds import scores
from spgraph.cli.placement import vector


@algorithm(scores, "rank")
@click.option(
    "--damping",
    type=float,
    default=0.85,
    show_default=True,
    help="Probability to follow an edge rather than to jump.",
)
@options.iteration(tol=1e-6, max_iter=100)
@click.option(
    "--personalization",
    metavar="FILE.npz",
    help="Where the walker jumps to: a Vector of numbers >= 0 [default: anywhere alike].",
)
@options.weighted
def pagerank(A: sg.Matrix, personalization: str | None, **parameters: Any) -> Any:
    """PageRank: where a random walker spends his time.

    \b
    Example:
      spgraph generate kronecker 18 --directed -o web.npz
      spgraph pagerank web.npz --top 10 --plot ranks.png -o ranks.npz
      spgraph pagerank web.npz --personalization ranks.npz --tol none --max-iter 20
    """
    if personalization is None:
        return sg.pagerank(A, **parameters)
    return sg.pagerank(A, personalization=vector(personalization, A), **parameters)


@algorithm(scores, "hub")
@options.iteration(tol=1e-8, max_iter=100)
@options.weighted
def hits(A: sg.Matrix, **parameters: Any) -> Any:
    """HITS: good hubs and good authorities.

    Good hubs have edges to good authorities, and these have edges from good hubs. --top lists the
    best of both, --plot draws the hubs.

    \b
    Example:
      spgraph generate kronecker 18 --directed -o web.npz
      spgraph hits web.npz --max-iter 1000 --top 10 -o hits.csv
    """
    return sg.hits(A, **parameters)


@algorithm(scores, "hub")
@options.iteration(tol=1e-8, max_iter=100)
@options.weighted
def salsa(A: sg.Matrix, **parameters: Any) -> Any:
    """SALSA: hubs and authorities by a random walk.

    A walker goes to and fro between hubs and authorities; the scores are where he is in the end.
    --top lists the best of both, --plot draws the hubs.

    \b
    Example:
      spgraph generate kronecker 18 --directed -o web.npz
      spgraph salsa web.npz --max-iter 1000 --top 10
    """
    return sg.salsa(A, **parameters)


def _number_or_name(value: str | float) -> float | str:
    if isinstance(value, str) and value.lower().endswith(".npz"):
        return value
    try:
        return float(value)
    except ValueError:
        raise click.BadParameter(
            f"expected a number or the name of a file .npz, got {value!r}"
        ) from None


@algorithm(scores, "centrality")
@click.option(
    "--alpha",
    type=float,
    default=0.1,
    show_default=True,
    help="What an edge more makes of a walk; below 1 / (the largest eigenvalue).",
)
@click.option(
    "--beta",
    type=_number_or_name,
    metavar="NUMBER|FILE.npz",
    default=1.0,
    show_default=True,
    help="What every vertex starts with: a number, or a Vector of them.",
)
@options.iteration(tol=1e-6, max_iter=1000)
@options.weighted
def katz_centrality(A: sg.Matrix, beta: float | str, **parameters: Any) -> Any:
    """Katz centrality: walks that end at a vertex.

    The walks are counted, long ones for less.

    \b
    Example:
      spgraph generate grid 300 300 -o roads.npz
      spgraph katz-centrality roads.npz --alpha 0.2 --top 10
    """
    start = vector(beta, A) if isinstance(beta, str) else beta
    return sg.katz_centrality(A, beta=start, **parameters)


@algorithm(scores, "centrality")
@options.iteration(tol=1e-6, max_iter=100)
@options.weighted
def eigenvector_centrality(A: sg.Matrix, **parameters: Any) -> Any:
    """Eigenvector centrality: that of the in-neighbours.

    It is in proportion to the sum of those of a vertex's in-neighbours.

    \b
    Example:
      spgraph generate kronecker 18 -o kron.npz
      spgraph eigenvector-centrality kron.npz --top 10
    """
    return sg.eigenvector_centrality(A, **parameters)


@algorithm(scores, "betweenness")
@options.sources("all")
@click.option("--k", type=int, help="Draw so many sources.")
@click.option("--seed", type=int, help="Which ones are drawn [default: others every time].")
@click.option("--normalized", is_flag=True, help="Divide by (n - 1) (n - 2).")
@options.weighted
def betweenness_centrality(A: sg.Matrix, **parameters: Any) -> Any:
    """Betweenness: how much lies on shortest paths.

    \b
    Example:
      spgraph generate kronecker 18 -o kron.npz
      spgraph betweenness-centrality kron.npz --k 8 --seed 1 --top 10
    """
    return sg.betweenness_centrality(A, **parameters)


@algorithm(scores, "closeness")
@options.sources("all")
@click.option(
    "--wf-improved/--no-wf-improved",
    default=True,
    show_default=True,
    help="Make less of vertices that few others reach.",
)
def closeness_centrality(A: sg.Matrix, **parameters: Any) -> Any:
    """Closeness: how near a vertex is to all others.

    \b
    Example:
      spgraph generate kronecker 18 -o kron.npz
      spgraph closeness-centrality kron.npz --sources 0,5,7 --top 3
    """
    return sg.closeness_centrality(A, **parameters)
