"""Programs for processes under mpiexec that map each other's memory and run CUDA's kernels under
the shim: what one process on a CPU finds, memory that is freed, refusals, a process that is late.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import shim_exchanges
from distributed_cases import check_void_components
from mapped_host import HostMemory
from search_cases import check_search

import spgraph as sg
from spgraph import direction as directions
from spgraph.backends.cuda.closure import closure_peers
from spgraph.backends.cuda.exchange.mapped import MappedMemory
from spgraph.backends.cuda.exchange.processes import ProcessBuffers
from spgraph.backends.cuda.power import power_stepwise
from spgraph.backends.cuda.runtime import jit
from spgraph.backends.cuda.search import search_peers
from spgraph.distributed import MpiCommunicator
from spgraph.distributed.loops import components
from spgraph.errors import CommunicationError


class Communicator(MpiCommunicator):
    """With what MappedMemory asks of communicators of GPUs."""

    def when_lost(self, callback: Callable[[], object]) -> None: ...


def graph(seed: int = 3) -> sg.Matrix:
    """A skewed graph of whole weights, both ways."""
    A = sg.generators.kronecker(7, 6, seed=seed, symmetric=True)
    rows, columns, _ = A.to_coo()
    weights = 1 + (rows + columns).astype(np.int64) % 7
    return sg.Matrix.from_coo(rows, columns, weights, nrows=A.nrows, symmetric=True)


def spread(A: sg.Matrix, comm: Communicator, mapped: MappedMemory, **how: Any) -> Any:
    """A in shards whose kernels write into each other's memory."""
    G: Any = A.distribute(comm.num_shards, communicator=comm, **how)
    G.device.peers = ProcessBuffers(mapped)
    return G


def same(shards: Any, plain: Any) -> None:
    assert shards.gather().isequal(plain), (shards.gather(), plain)


def check(A: sg.Matrix, G: Any, source: int) -> None:
    """Search and closure in one launch, and what is made of them."""
    for found, plain in (
        (sg.bfs(G, source), sg.bfs(A, source)),
        (sg.sssp(G, source), sg.sssp(A, source)),
    ):
        for one, shards in zip(plain, found, strict=True):
            same(shards, one)


def check_others(A: sg.Matrix, G: Any) -> None:
    """The loops in which the host launches each step."""
    same(sg.connected_components(G), sg.connected_components(A))
    assert components.plan_of(G).giant is not None
    for find in (sg.pagerank, functools.partial(sg.betweenness_centrality, sources=[5])):
        found, expected = find(G).gather().to_numpy(), find(A).to_numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def view(address: int, size: int, dtype: np.dtype, owner: Any) -> np.ndarray:
    """An array in memory that all processes have mapped."""
    octets = (ctypes.c_char * (size * dtype.itemsize)).from_address(address)
    return np.frombuffer(octets, dtype)


def peer_memory(placement: Any, size: int) -> tuple[list[np.ndarray], list[int]]:
    """As that of components, on the host."""
    buffers = placement.peers.another()
    places = buffers.reserve("components", [8 * size] * placement.num_shards)
    KEPT.append(buffers)
    return [view(places[p], size, np.dtype(np.int64), buffers) for p in placement.local], places


def results(comm: Communicator) -> None:
    stems = shim_exchanges.launched(PATCH)
    mapped = connected(comm)
    A = graph()
    A.T.indptr  # noqa: B018 - made by the CPU's kernels
    G = spread(A, comm, mapped, partition="random")
    for source in (5, 9):  # searches and closures use the same memory in turn
        check(A, G, source)
    check_others(A, G)
    place = functools.partial(spread, comm=comm, mapped=mapped)
    check_void_components(comm.num_shards, place)
    check_search("sparse directed", "paths", place, "auto")  # each process knows its own sources
    assert {"search_peers", "closure_peers", "peer_barrier"} <= stems, stems
    assert {"components", "power_stepwise", "dependencies_shard"} <= stems, stems
    assert not {"search_rounds", "closure_rounds"} & stems, stems


def connected(comm: Communicator, **more: Any) -> MappedMemory:
    mapped: Any = MappedMemory.connect(comm, HostMemory(gpu=comm.rank), **more)
    assert mapped is not None
    return mapped


def freed(comm: Communicator) -> None:
    """Graphs come and go, and garbage is collected at other times in every process."""
    mapped, A = connected(comm), graph()
    held, expected = [], sg.bfs(A, 5).level
    for _ in range(10):
        G = spread(A, comm, mapped)
        same(sg.bfs(G, 5, parents=False).level, expected)
        held.append(G)
        if len(held) > 1 + comm.rank * 3:
            held.clear()
            gc.collect()
    # control, and what the slowest to let go holds; of each as many as there are processes
    assert mapped.memory.live <= 8 * comm.processes, mapped.memory.live
    held.clear()
    del G
    gc.collect()
    mapped.allocate([8] * comm.processes)
    assert mapped.memory.live == 2 * comm.processes, mapped.memory.live
    mapped.unmap()
    comm.all_reduce_host(np.zeros(1), "sum")
    mapped.free()
    assert mapped.memory.live == 0


def refused(comm: Communicator) -> None:
    """All find out that one cannot, and nothing stays allocated."""
    last = comm.rank == comm.processes - 1
    for call in ("reaches", "allocate", "map"):
        memory: Any = HostMemory(gpu=comm.rank, refused=call if last else "")
        assert MappedMemory.connect(comm, memory) is None, call
        assert memory.live == 0, call
    for host, gpu in ((1, 7), (comm.rank + 1, comm.rank), (0, comm.rank)):
        assert MappedMemory.connect(comm, HostMemory(host, gpu)) is None
    mapped = connected(comm)
    if last:
        mapped.memory.refused = "allocate"
    with pytest.raises(CommunicationError, match=f"process {comm.processes - 1} of .* cannot"):
        mapped.allocate([64] * comm.processes)
    mapped.memory.refused = ""
    assert mapped.allocate([64] * comm.processes)[1].sizes == [64] * comm.processes


def ending(comm: Communicator) -> None:
    """The end waits for `stop`, which still writes to memory of others; it writes no more after."""
    mapped: Any = connected(comm)
    begun, marked, mark = threading.Event(), [], mapped.memory.mark

    def slowly(address: int) -> None:
        begun.set()
        time.sleep(0.05)
        mark(address)
        marked.append(len(mapped.memory._open))

    PATCH.setattr(mapped.memory, "mark", slowly)
    stopping = threading.Thread(target=mapped.stop)
    stopping.start()
    begun.wait()
    mapped.unmap()
    assert set(marked) == {comm.processes}, marked
    stopping.join()
    comm.all_reduce_host(np.zeros(1), "sum")
    mapped.free()
    mapped.stop()


def absent(comm: Communicator) -> None:
    """Where one process does not come, the others say so."""
    mapped, A = connected(comm), graph()
    G = spread(A, comm, mapped)
    level = sg.bfs(G, 5, parents=False).level
    same(level, sg.bfs(A, 5).level)
    PATCH.setattr(mapped, "_late", 0.05)
    PATCH.setattr(ProcessBuffers, "deadline", 0.05)
    if comm.rank == 0:
        with pytest.raises(CommunicationError, match=r"device 1 \(shard 1\) did not come"):
            _ = sg.bfs(G, 5, parents=False).level.shards
        with pytest.raises(CommunicationError, match="did not come"):
            sg.bfs(G, 5)
    else:
        while not comm._messages._has_left(0):
            time.sleep(0.01)
        with pytest.raises(CommunicationError):
            same(sg.bfs(G, 5).level, level)


def alone(comm: Communicator) -> None:
    """After a failure in one process between two of its launches nothing it launches is taken for
    what the others wait for.
    """
    mapped, A = connected(comm), graph()
    G = spread(A, comm, mapped)
    same(sg.bfs(G, 5, parents=False).level, sg.bfs(A, 5, parents=False).level)
    # long beside the time in which the other process comes to its next call
    PATCH.setattr(mapped, "_late", 0.1)
    PATCH.setattr(ProcessBuffers, "deadline", 0.1)
    if comm.rank == 0:
        with PATCH.context() as patch:
            patch.setattr(search_peers, "results_of", _raises_memory_error)
            with pytest.raises(MemoryError):
                sg.bfs(G, 5, parents=False)
        with pytest.raises(CommunicationError, match="MemoryError in a loop"):
            sg.bfs(G, 9, parents=False)
    else:
        with pytest.raises(CommunicationError):
            _ = sg.bfs(G, 5, parents=False).level.shards


def _raises_memory_error(*given: Any) -> None:
    raise MemoryError


def main(*runs: str) -> None:
    shim_exchanges.install(PATCH)
    PATCH.setattr(search_peers, "THREADS", 64)
    PATCH.setattr(search_peers, "small_frontier", lambda ids, offsets: 32)
    PATCH.setattr(closure_peers, "THREADS", 64)
    PATCH.setattr(jit, "multiprocessors", lambda device: 1)
    PATCH.setattr(directions, "all_are_near", lambda *counts: True)
    PATCH.setattr(components, "peer_memory", peer_memory)
    PATCH.setattr(power_stepwise, "array_at", view)
    for run in runs:
        with Communicator() as comm:
            globals()[run](comm)
        print(f"process {comm.rank} is done;" if run == runs[-1] else run, flush=True)


PATCH = pytest.MonkeyPatch()
KEPT: list[Any] = []
if __name__ == "__main__":
    main(*sys.argv[1:])
