"""The exchanges that the loops' CUDA kernels are compiled for, where there is no GPU: one device,
shards that write into each other's memory (*peers*), and rounds that the host drives.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import cuda_host_shim
import numpy as np
import pytest

from spgraph import iterations
from spgraph.backends import cuda
from spgraph.backends.cuda.exchange.buffers import Launching, Plan
from spgraph.backends.cuda.runtime import jit
from spgraph.containers import Matrix
from spgraph.distributed import Placement


class HostBuffers(Launching):
    """Stands for PeerBuffers: plain memory, and a thread for each device."""

    lock = threading.RLock()

    def __init__(self, peers: int) -> None:
        self.devices = tuple(range(peers))
        self.addresses: list[int] = []
        self.memory: list[np.ndarray] = []
        self.layout: object = None
        self.absent: int | None = None

    def reserve(self, layout: object, sizes: Sequence[int]) -> list[int]:
        if layout != self.layout:
            self.memory = [np.zeros(size // 8 + 1, np.int64) for size in sizes]
            self.layout = layout
            self.addresses = [memory.ctypes.data for memory in self.memory]
        return self.addresses

    def forget(self, reason: str = "") -> None:
        self.layout = None

    def launch(self, plan: Plan, arguments: Any, first: int = 0) -> None:
        def one(p: int) -> None:
            grid, block = (plan.grids[p],), (plan.threads,)
            plan.kernels[p](grid, block, arguments[p], shared_mem=plan.shared)

        there = [p for p in range(len(plan.kernels)) if p != self.absent]
        runs = [threading.Thread(target=one, args=(p,)) for p in there]
        for run in runs:
            run.start()
        for run in runs:
            run.join()


class Exchange(NamedTuple):
    """Who computes a loop: one device, or shards that begin at these parts of the vertices."""

    form: str  # "one device", "peers" or "rounds"
    cuts: tuple[float, ...] = ()
    relabelled: bool = False  # vertices of a shard lie anywhere
    at_words: bool = False  # shards begin at words of a bitmap

    def place(self, A: Matrix) -> Any:
        """A with its transpose, where loops by this exchange take it."""
        if self.form == "one device":
            A.T.indptr  # noqa: B018 - made by the CPU's kernels, for others have to be compiled
            return A
        begins = [int(x * A.nrows) & (~31 if self.at_words else ~0) for x in self.cuts]
        owner = np.searchsorted(begins, np.arange(A.nrows), side="right")
        if self.relabelled:
            owner = np.random.default_rng(3).permutation(owner)
        G: Any = A.distribute(len(self.cuts) + 1, partition=owner)
        if self.form == "peers":
            G.device.peers = HostBuffers(len(self.cuts) + 1)
        G.T.shards  # noqa: B018 - as above
        return G


THIRDS = (0.3, 0.71)
EXCHANGES = {
    "one device": Exchange("one device"),
    "1 peer": Exchange("peers"),
    "2 peers at words": Exchange("peers", (0.4,), at_words=True),
    "3 peers": Exchange("peers", THIRDS),
    "3 peers, relabelled": Exchange("peers", (0.3, 0.4), relabelled=True),
    "3 peers, one empty": Exchange("peers", (0.4, 0.4)),
    "8 peers": Exchange("peers", (0.01, 0.2, 0.2, 0.3, 0.5, 0.957, 0.98)),
    "rounds, 1 shard": Exchange("rounds"),
    "rounds, 3 shards": Exchange("rounds", THIRDS),
    "rounds, relabelled": Exchange("rounds", (0.3, 0.4), relabelled=True),
    "rounds, one empty": Exchange("rounds", (0.0, 0.4)),
    "rounds, 8 shards": Exchange("rounds", (0.01, 0.2, 0.2, 0.3, 0.5, 0.957, 0.98)),
}


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let loops run on CUDA's kernels under the shim, shards in plain memory count as GPUs."""
    cuda_host_shim.install(monkeypatch)
    monkeypatch.setattr(jit, "current_device", lambda: 0)
    monkeypatch.setattr(Placement, "kernels", cuda)
    loops = ("fixed_point", "level_search", "path_parents", "shortest_path_dag")
    for loop in (getattr(iterations, name) for name in loops):
        monkeypatch.setattr(loop, "backend", cuda_host_shim.backend)


def launched(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The stems of the programs that run from now on."""
    stems: set[str] = set()
    call = cuda_host_shim.HostKernel.__call__

    def noted(self: Any, *arguments: Any, **more: Any) -> None:
        stems.add(self.stem)
        call(self, *arguments, **more)

    monkeypatch.setattr(cuda_host_shim.HostKernel, "__call__", noted)
    return stems


def form_of(loop: str, stems: set[str]) -> str:
    """Which form of a loop has run, by the programs that it launched; "operations" if none of its
    own.
    """
    programs = {loop: "one device", f"{loop}_peers": "peers", f"{loop}_rounds": "rounds"}
    forms = [form for stem, form in programs.items() if stem in stems]
    assert len(forms) < 2, forms
    return forms[0] if forms else "operations"
