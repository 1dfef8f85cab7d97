"""Processes for the tests of distributed reading and drawing: threads of one process that meet in
every call, and, run as a program under mpiexec, real ones that watch their memory.
"""

from __future__ import annotations

import resource
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from spgraph import generators
from spgraph.distributed.communicators import Communicator, MpiCommunicator
from spgraph.distributed.containers.partition import Partition
from spgraph.distributed.generate import models
from spgraph.distributed.io import ingest, reading
from spgraph.io.request import Request


class Member(Communicator):
    """One of several processes, in a thread: what ingest asks of a communicator, no more."""

    def __init__(self, rank: int, board: list[Any], barrier: threading.Barrier, each: int) -> None:
        local = range(each * rank, each * (rank + 1))
        super().__init__(each * len(board), local, ["cpu"] * each)
        self.rank, self.processes, self.board, self.barrier = rank, len(board), board, barrier

    def _shown(self, mine: Any) -> list[Any]:
        """What every process put on the board."""
        self.board[self.rank] = mine
        self.barrier.wait(20)
        all_of_them = list(self.board)
        self.barrier.wait(20)
        return all_of_them

    def _rows(self, row: np.ndarray) -> np.ndarray:
        return np.stack(self._shown(row.copy()))

    def _all_gather(self, parts: Any, sizes: Any) -> list[np.ndarray]:
        return [np.concatenate([part for own in self._shown(parts) for part in own])] * len(parts)

    def _all_to_all(self, parts: Any, sizes: Any, wholes: Any) -> None:
        rows = [row for process in self._shown(parts) for row in process]
        for q, whole in zip(self.local, wholes, strict=True):
            np.concatenate([row[q] for row in rows], out=whole)


def together(processes: int, each: int, work: Callable[[Member], Any]) -> list[Any]:
    """What `work` makes in each process of `each` shards; an exception it raised is its result."""
    barrier, board = threading.Barrier(processes), [None] * processes

    def run(rank: int) -> Any:
        try:
            return work(Member(rank, board, barrier, each))
        except Exception as error:
            return error

    with ThreadPoolExecutor(processes) as pool:
        return list(pool.map(run, range(processes)))


def joined(partition: Partition, rows: list[ingest.Rows]) -> tuple[Any, ...]:
    """(indptr, indices, values) of the whole matrix, from all shards, by loops."""
    found: dict[int, tuple[list[Any], list[Any]]] = {}
    for p, (indptr, indices, values) in enumerate(rows):
        assert indptr.dtype == indices.dtype == np.int32 and indptr.size == partition.sizes[p] + 1
        for r, user in enumerate(partition.shard_ids(p, "cpu").tolist()):
            part = slice(indptr[r], indptr[r + 1])
            stored = [] if values is None else values[part].tolist()
            found[user] = indices[part].tolist(), stored
    order = range(partition.size)
    indptr = np.cumsum([0] + [len(found[v][0]) for v in order])
    columns, stored = ([x for v in order for x in found[v][k]] for k in (0, 1))
    return indptr.tolist(), columns, None if rows[0].values is None else stored


def grown() -> int:
    """The most bytes that this process had at once so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(small: str, large: str) -> None:
    """Prints, for drawing and for reading, the process's share and by how much it grew, in bytes,
    since it had done the same with a small graph, which needs as much to work with.
    """
    with MpiCommunicator() as comm:
        models.EDGES = ingest.SORTED = 1 << 16
        reading.STEP = 1 << 18
        works: list[Callable[[bool], Any]] = [
            lambda big: models.generate_shards(generators.kronecker_model(17 if big else 13), comm)[
                1
            ],
            lambda big: reading.read_shards(Request.of(large if big else small), comm).rows,  # type: ignore
        ]
        for work in works:
            work(False)
            before = grown()
            rows = work(True)
            share = sum(array.nbytes for row in rows for array in row if array is not None)
            entries = sum(row.indices.size for row in rows)
            print(f"entries {entries} share {share} grew {grown() - before}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
