"""Published benchmarks of graph systems, run by their specifications."""

from spgraph.benchmarking.gap import Trials, gap
from spgraph.benchmarking.graph500 import Graph500, graph500

__all__ = ["Graph500", "Trials", "gap", "graph500"]


def __dir__() -> list[str]:
    return sorted(__all__)
