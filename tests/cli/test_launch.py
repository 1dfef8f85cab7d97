"""How the processes of one run end together, as threads: MPI and NCCL are stand-ins here."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import communicator_cases as cases
import fake_nccl
import numpy as np
import pytest

from spgraph import cli
from spgraph.cli import launch
from spgraph.distributed import TcpStore
from spgraph.errors import CommunicationError

PROCESSES = 3


@pytest.fixture(autouse=True)
def nccl() -> Iterator[Any]:
    with fake_nccl.fake_gpus() as module:
        yield module


class Farewell:
    """The communicator of MPI for the end: all rows are there once all processes have come."""

    def __init__(self) -> None:
        self.rows: dict[int, np.ndarray] = {}

    def Iallgather(self, own: np.ndarray, every: np.ndarray) -> Any:
        self.rows[launch.rank()] = own

        def test() -> bool:
            if len(self.rows) < PROCESSES:
                return False
            every[:] = [self.rows[rank] for rank in range(PROCESSES)]
            return True

        return SimpleNamespace(Test=test)

    def Abort(self, code: int) -> None:
        raise AssertionError("the others did not come to their end")


def test_an_error_of_one_process_is_told_over_nccl(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = threading.local()
    first = TcpStore("127.0.0.1:0", 0, PROCESSES, token="word", timeout=120)
    farewell = Farewell()

    def over_mpi(_: Any) -> TcpStore:
        rank = here.rank
        return TcpStore(first.address, rank, PROCESSES, token="word") if rank else first

    monkeypatch.setattr(launch, "GRACE", 30.0)  # whoever else uses the machine
    monkeypatch.setattr(launch, "_sizes", lambda: (PROCESSES, here.rank))
    monkeypatch.setattr(launch, "world", lambda: here.world)
    monkeypatch.setattr(TcpStore, "over_mpi", over_mpi)

    def process(rank: int) -> int:
        here.rank = rank
        host = SimpleNamespace(Get_rank=lambda: rank)
        here.world = launch.World(None, host, farewell, [])
        if rank == 1:
            launch.communicator(PROCESSES, None)
            return launch.leave(cli.BAD_INPUT, "of its own", own=True)
        # which it may hear of while its communicator is still being made
        with pytest.raises(CommunicationError, match="process 1 ends with exit code 2"):
            cases.gathers(launch.communicator(PROCESSES, None))
        return launch.leave(cli.LOST_PEER, "of another")

    with ThreadPoolExecutor(PROCESSES) as threads:
        assert list(threads.map(process, range(PROCESSES))) == [cli.BAD_INPUT] * PROCESSES
    assert capsys.readouterr().err == "of its own\n"
