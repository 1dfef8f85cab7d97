"""Best paths from one vertex: sssp, widest-path, most-reliable-path."""

from __future__ import annotations

from typing import Any

import spgraph as sg
from spgraph.cli import options
from spgraph.cli.algorithm import algorithm
from spgraph.cli.kinds import nearest, widest


@algorithm(nearest, "distance", start="source")
@options.source
@options.parents
@options.delta
def sssp(A: sg.Matrix, **parameters: Any) -> Any:
    """Shortest paths from one vertex.

    The edges' values are lengths >= 0.

    \b
    Example:
      printf '0 1 4\\n0 2 9\\n1 2 3\\n2 3 1\\n' > roads.wel
      spgraph sssp roads.wel --source 0 --top 3 --plot distances.png -o paths.csv
    """
    return sg.sssp(A, **parameters)


@algorithm(widest, "width", start="source")
@options.source
@options.parents
@options.delta
def widest_path(A: sg.Matrix, **parameters: Any) -> Any:
    """Widest paths from one vertex.

    A path is as wide as the least of its edges' values.

    \b
    Example:
      printf '0 1 7\\n0 2 2.5\\n1 2 5\\n' > pipes.wel
      spgraph widest-path pipes.wel --source 0 --top 3 -o widths.npz
    """
    return sg.widest_path(A, **parameters)


@algorithm(widest, "reliability", start="source")
@options.source
@options.parents
@options.delta
def most_reliable_path(A: sg.Matrix, **parameters: Any) -> Any:
    """Most reliable paths from one vertex.

    The edges' values are probabilities that they work.

    \b
    Example:
      printf '0 1 0.9\\n0 2 0.5\\n1 2 0.8\\n' > network.wel
      spgraph most-reliable-path network.wel --source 0 --no-parents --top 3
    """
    return sg.most_reliable_path(A, **parameters)
