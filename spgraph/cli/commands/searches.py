"""What the commands of breadth-first searches have beside the others: levels, TEPS, validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import spgraph as sg
from spgraph import validation
from spgraph.cli.kinds import Parts, Record
from spgraph.cli.output import Graph
from spgraph.iterations import Level, search
from spgraph.semirings import any_pair


def bfs_levels(A: sg.Matrix, **parameters: Any) -> Sequence[Level]:
    """The levels of `sg.bfs`."""
    return sg.bfs(A, **parameters, trace=True).trace


def reachable_levels(A: sg.Matrix, *, sources: list[int]) -> Sequence[Level]:
    """The levels of `sg.reachable`."""
    ids = np.unique(sources)
    start = sg.Vector.from_coo(ids, np.ones(ids.size, bool), size=A.nrows, device=A.device)
    return search(A, start, any_pair, trace=True).trace or []


def one_level(A: sg.Matrix, **parameters: Any) -> None:
    """Make the kernels of a search ready, so that the time is not the compiler's."""
    sg.bfs(A, **parameters | {"max_depth": 1})


def traversed(graph: Graph, parts: Parts, seconds: float) -> Record:
    """The edges that leave visited vertices, an undirected one in both directions, and how many of
    them a second.
    """
    edges = int(graph.degrees()[parts["level"].to_coo()[0]].sum())
    return {"traversed_edges": edges, "teps": edges / seconds}


def validate(graph: Graph, parts: Parts, parameters: dict[str, Any]) -> list[validation.Failure]:
    """The rules of Graph500 for a tree that this one breaks."""
    return validation.validate_bfs(
        graph.A,
        parameters["source"],
        parts["level"],
        parts["parent"],
        max_depth=parameters["max_depth"],
    )
