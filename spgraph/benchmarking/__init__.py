"""Published benchmarks of graph systems, run by their specifications."""

from spgraph.benchmarking.graph500 import Graph500, graph500

__all__ = ["Graph500", "graph500"]
