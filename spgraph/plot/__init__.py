"""Plots as matplotlib Figures. matplotlib (extra `plot`) is imported by the first call."""

from spgraph.plot.degree_distribution import degree_distribution
from spgraph.plot.distance_histogram import distance_histogram
from spgraph.plot.draw import draw
from spgraph.plot.frontier_profile import frontier_profile
from spgraph.plot.scaling import scaling
from spgraph.plot.spy import spy

__all__ = [
    "degree_distribution",
    "distance_histogram",
    "draw",
    "frontier_profile",
    "scaling",
    "spy",
]


def __dir__() -> list[str]:
    return sorted(__all__)
