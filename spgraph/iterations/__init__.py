"""The loops that algorithms are made of. They know semirings, masks and schedules, and no algorithm
by name.

>>> import spgraph as sg
>>> from spgraph.iterations import search
>>> from spgraph.semirings import plus_first
>>> A = sg.Matrix.from_coo([0, 0, 1, 2], [1, 2, 3, 3], nrows=4, ncols=4)
>>> search(A, sg.Vector.from_coo([0], [1], size=4), plus_first).value.to_numpy().tolist()
[1, 1, 1, 2]
"""

from spgraph.iterations.contraction import contract
from spgraph.iterations.fixed_point import closure
from spgraph.iterations.level_search import Level, Search, search
from spgraph.iterations.path_dependencies import (
    dependencies,
    dependencies_along,
    level_sums,
    levels,
)
from spgraph.iterations.power_iteration import Hop, Power, Step, power
from spgraph.iterations.shortest_path_dag import dag_edges, parents

__all__ = [
    "Hop",
    "Level",
    "Power",
    "Search",
    "Step",
    "closure",
    "contract",
    "dag_edges",
    "dependencies",
    "dependencies_along",
    "level_sums",
    "levels",
    "parents",
    "power",
    "search",
]


def __dir__() -> list[str]:
    return sorted(__all__)
