"""What a run costs by the model of multi-GPU Gunrock: W edges looked at, H bytes that go from one
device to another, C elements packed before exchanges and read after them, S rounds.

W and S are what a loop reports: of searches and path counts their trace, which on several devices
counts the edges of the frontiers; of PageRank its iterations times all entries; of shortest paths
on several GPUs the edges that were read and the rounds. Of betweenness they follow from the levels:
each edge of a reached vertex counts once in each direction, and so does each level. W of components
follows from the rule of the loop (component_edges.py), S is how often the shards exchange. Where a
loop reports nothing they are None: of shortest paths on one device. H, C and the seconds
are those of one run in rounds, all devices waiting before and after each exchange
(spgraph/benchmarking/exchange.py): GPUs that write into each other's memory do not count what they
write, and exchange while they compute. `levels` are the seconds of exchange and of all else in each
level of a search.

Source: Pan, Wang, Wu, Yang, Owens, "Multi-GPU graph analytics", IPDPS 2017.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import spgraph as sg
from benchmarks.measuring.component_edges import component_edges
from spgraph.benchmarking.exchange import Cost, in_rounds, search_cost
from spgraph.benchmarking.timing import timed
from spgraph.distributed import DistributedMatrix
from spgraph.iterations import search
from spgraph.semirings import plus_first

# the arguments of sg.bfs for the tasks that have a trace
SEARCHES: dict[str, dict[str, Any]] = {
    "bfs": {},
    "bfs levels": {"parents": False},
    "bfs push": {"parents": False, "direction": "push"},
}
COUNTS: dict[str, Any] = {"bfs counts": "auto", "bfs counts push": "push"}  # directions


def cost(
    task: str, A: Any, W: Any, source: int, run: Callable[[Any, Any], Any], iterations: int
) -> dict[str, Any]:
    """The cost of run(A, W), on one device or in shards; of PageRank with so many `iterations`."""
    if task in SEARCHES and isinstance(A, DistributedMatrix):
        return named(search_cost(A, source, **SEARCHES[task]))
    edges, rounds = reported(task, A, source, iterations)
    if not isinstance(A, DistributedMatrix):
        return {"W": edges, "H": 0, "C": 0, "S": rounds}
    graphs = [in_rounds(matrix) for matrix in (A, W) if matrix is not None]
    given = [matrix for matrix, _ in graphs]
    run(given[0], given[-1])  # prepares what is kept with the graph
    for _, watched in graphs:
        watched.forget()
    device = A.device
    _, seconds = timed(device.devices, lambda: run(given[0], given[-1]), device.communicator)
    # a run works on one of the two
    found = max((watched for _, watched in graphs), key=lambda w: w.collectives)
    if task == "components":
        rounds = found.collectives
    return named(found.cost(edges, rounds, seconds))


def reported(task: str, A: Any, source: int, iterations: int) -> tuple[int | None, int | None]:
    """(W, S) where the loop reports them."""
    if iterations:
        return iterations * A.nvals, iterations
    directions = 1
    if task in COUNTS:
        start = sg.Vector.unit(source, 1.0, size=A.nrows, dtype=float, device=A.device)
        trace = search(A, start, plus_first, direction=COUNTS[task], trace=True).trace
    elif task in SEARCHES:
        trace = sg.bfs(A, source, trace=True, **SEARCHES[task]).trace
    elif task == "betweenness":
        trace = sg.bfs(A, source, trace=True, **SEARCHES["bfs push"]).trace
        directions = 2
    elif task == "components":
        return component_edges(A), None
    else:
        return None, None
    return directions * sum(level.edges for level in trace), directions * len(trace)


def named(made: Cost) -> dict[str, Any]:
    """The cost as a result file has it."""
    found = {"W": made.edges, "H": made.bytes_sent, "C": made.elements, "S": made.rounds}
    found |= {
        "collectives": made.collectives,
        "exchange_seconds": made.exchange_seconds,
        "compute_seconds": made.compute_seconds,
    }
    return found | ({"levels": [list(step) for step in made.levels]} if made.levels else {})
