"""Communicators: one contract, kept by copies and by MPI.

test_gpu_communicators.py has those of GPUs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import communicator_cases as cases
import hypothesis
import numpy as np
import pytest
from hypothesis import strategies
from processes import MPIEXEC, environment

import spgraph as sg
from spgraph.distributed.communicators import (
    LocalCommunicator,
    MpiCommunicator,
    NcclCommunicator,
    TcpStore,
)
from spgraph.distributed.communicators.watchdog import in_time
from spgraph.errors import CommunicationError, DomainMismatch

MATRIX: Any = sg.generators.grid(3, 3)
Local: Any = LocalCommunicator  # of arguments that types forbid
Nccl: Any = NcclCommunicator
Store: Any = TcpStore

# --- one process ----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", cases.CASES)
@pytest.mark.parametrize("shards", [1, 2, 3, 7])
def test_local(case: Any, shards: int) -> None:
    with LocalCommunicator(shards) as comm:
        case(comm)


def test_the_whole_contract_on_one_process() -> None:
    with LocalCommunicator(3) as comm:
        cases.contract(comm)


@hypothesis.given(
    strategies.integers(1, 6).flatmap(
        lambda n: strategies.lists(
            strategies.lists(strategies.integers(0, 9), min_size=n, max_size=n),
            min_size=n,
            max_size=n,
        )
    ),
    strategies.sampled_from(cases.TYPES),
)
def test_all_to_all_of_any_sizes(sizes: list[list[int]], dtype: str) -> None:
    cases.check_exchange(LocalCommunicator(len(sizes)), np.array(sizes), dtype, 0)


def test_local_refuses() -> None:
    with pytest.raises(ValueError, match="shards: expected an integer >= 1, got 0"):
        LocalCommunicator(0)
    with pytest.raises(ValueError, match="one a shard, 2, got 1"):
        LocalCommunicator(2, ["cpu"])
    with pytest.raises(ValueError, match="expected 'cpu', 'cuda'"):
        LocalCommunicator(1, ["tpu"])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Local("2"), "LocalCommunicator: shards: expected an integer >= 1"),
        (lambda: Local(2.0), "LocalCommunicator: shards: expected an integer >= 1"),
        (lambda: Local(True), "LocalCommunicator: shards: expected an integer >= 1"),
        (lambda: Local(None), "LocalCommunicator: shards: expected an integer >= 1"),
        (lambda: Local(3, "cpu"), "LocalCommunicator: devices: expected a list of de"),
        (lambda: Local(2, 2), "LocalCommunicator: devices: expected a list of devi"),
        (lambda: Local(1, [None]), "device: expected 'cpu', 'cuda' or 'cuda:N', got N"),
        (lambda: Nccl.for_devices("cuda"), "NcclCommunicator: devices: expected a li"),
        (lambda: Nccl.for_devices(2), "NcclCommunicator: devices: expected a list"),
        (lambda: Nccl.for_process("cpu", 5), "store: expected a TcpStore, got int"),
        (
            lambda: Nccl.for_process("cuda", None, timeout="1"),
            "NcclCommunicator: timeout: expected seconds > 0, got '1'",
        ),
        (lambda: Store(5, 0, 2, token="a"), "address: expected 'host:port', got 5"),
        (lambda: Store("host:²", 0, 2, token="a"), "address: expected 'host:port'"),
        (lambda: Store("h:0", "0", 2, token="a"), "TcpStore: rank: expected an integer, got '0'"),
        (lambda: Store("h:0", 0, 2.0, token="a"), "TcpStore: processes: expected an integer"),
        (lambda: Store("h:0", 2, 2, token="a"), r"TcpStore: rank: expected 0..1, got 2"),
        (lambda: Store("h:0", 0, 2, token=b"a"), "TcpStore: token: expected text, got bytes"),
        (lambda: Store("h:0", 0, 2, token="a", timeout=None), "TcpStore: timeout: expected sec"),
        (lambda: Store.over_mpi(4), "TcpStore.over_mpi: comm: expected an intracommunicator"),
        (lambda: MATRIX.distribute(2, communicator=5), "distribute: communicator: expected a Comm"),
        (lambda: MATRIX.distribute(2, devices=5), "distribute: devices: expected a list of devi"),
        (
            lambda: sg.benchmarking.graph500(4, communicator=MATRIX),
            "graph500: communicator: expected a Communicator, .*, got Matrix",
        ),
    ],
)
def test_what_communicators_are_made_of(make: Callable[[], object], words: str) -> None:
    with pytest.raises((ValueError, DomainMismatch), match=words):
        make()


def test_an_integer_of_any_kind_is_one() -> None:
    with Local(np.array(2)) as comm:
        assert type(comm.num_shards) is int and comm.num_shards == 2
        assert comm.broadcast(np.array([1, 2]), np.array(1))[0].tolist() == [1, 2]


def test_known_sizes_must_be_right() -> None:
    comm = LocalCommunicator(2)
    parts = [[np.zeros(1), np.zeros(2)], [np.zeros(3), np.zeros(4)]]
    assert [[x.size for x in row] for row in comm.all_to_all(parts, sizes=[[1, 3], [2, 4]])] == [
        [1, 3],
        [2, 4],
    ]
    with pytest.raises(ValueError, match=r"sizes\[0\]\[1\] is 2, but the part has 3"):
        comm.all_to_all(parts, sizes=[[1, 2], [2, 4]])
    with pytest.raises(ValueError, match="a row for each local shard"):
        comm.all_to_all(parts, sizes=[[1, 3]])


def test_what_is_no_array_or_number_is_a_type_error() -> None:
    """Instead of an AttributeError from the middle of a call."""
    comm: Any = LocalCommunicator(2)
    part, no = np.array([1, 2]), [1, 2]
    calls: dict[str, list[Callable[[], object]]] = {
        "expected arrays of NumPy or CuPy, got list; numpy.asarray makes one": [
            lambda: comm.all_gather([no, no]),
            lambda: comm.all_gather([part, no]),
            lambda: comm.all_to_all([[no, no], [no, no]]),
            lambda: comm.all_reduce([no, no], "sum"),
            lambda: comm.reduce_scatter([no, no], [1, 1], "sum"),
            lambda: comm.broadcast(no, 0),
            lambda: comm.fetch([no, no]),
            lambda: comm.all_reduce_host(no, "sum"),
        ],
        "expected arrays of NumPy or CuPy, got int;": [
            lambda: comm.all_gather(no),
            lambda: comm.all_reduce_host(5, "sum"),
        ],
        "expected arrays of NumPy or CuPy, got Vector;": [
            lambda: comm.all_gather([sg.Vector.from_dense(part)] * 2),
        ],
        "parts: expected a list of arrays, one for each shard, got int": [
            lambda: comm.all_gather(5),
        ],
        "parts: expected a list of lists of arrays, one for each shard, got int": [
            lambda: comm.all_to_all(5),
            lambda: comm.all_to_all([1, 2]),
        ],
        "sizes: expected a list of integers, one for each shard, got int": [
            lambda: comm.all_gather([part, part], sizes=5),
            lambda: comm.reduce_scatter([part, part], 2, "sum"),
            lambda: comm.all_to_all([[part, part]] * 2, sizes=[2, 2]),
        ],
        "sizes: expected integers, got ": [
            lambda: comm.all_gather([part, part], sizes=[2.5, 2]),
            lambda: comm.reduce_scatter([part, part], ["x", 1], "sum"),
        ],
        "root: expected the number of a shard, got ": [
            lambda: comm.broadcast(part, "0"),
            lambda: comm.broadcast(part, 0.0),
        ],
        "masked": [lambda: comm.all_gather([np.ma.masked_equal(part, 2), part])],
    }
    for words, wrong in calls.items():
        for call in wrong:
            with pytest.raises((TypeError, DomainMismatch), match=words):
                call()
    assert comm.broadcast(part, np.int64(1))[0].tolist() == [1, 2]


# --- MPI ------------------------------------------------------------------------------------------


def mpi_processes(processes: int, what: str, shards: int, seconds: float = 200) -> Any:
    """The finished run of `processes` processes of communicator_cases.py."""
    assert MPIEXEC is not None
    command = [MPIEXEC, "-n", str(processes), sys.executable, cases.__file__, "mpi", what]
    return subprocess.run(
        [*command, str(shards)],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        env=environment(),
    )


@pytest.mark.mpi
@pytest.mark.parametrize(("processes", "shards"), [(4, 4), (2, 4)])
def test_mpi(processes: int, shards: int) -> None:
    run = mpi_processes(processes, "contract", shards)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("is done") == processes


@pytest.mark.mpi
@pytest.mark.parametrize("what", ["rounds", "unequal"])
def test_mpi_a_process_that_ends_takes_the_others_along(what: str) -> None:
    run = mpi_processes(3, what, 3)
    assert run.returncode != 0
    assert "is done" not in run.stdout
    if what == "unequal":
        assert "ValueError: something of this process alone" in run.stderr
        words = "waits for process 2 in vain: process 2 has left after ValueError: something of"
        for rank in (0, 1):
            assert f"MPI: process {rank} of 3: all_reduce" in run.stderr
        assert run.stderr.count(words) == 2


@pytest.mark.mpi
def test_mpi_of_one_process() -> None:
    # in a process of its own: a test process that has begun MPI cannot start mpiexec any more
    run = subprocess.run(
        [sys.executable, cases.__file__, "mpi", "contract", "3"],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("MpiCommunicator(shards=0)", "expected a multiple of the 1 processes, got 0"),
        ("MpiCommunicator(shards=1.0)", "expected a multiple of the 1 processes, got 1.0"),
        ("MpiCommunicator(shards='1')", "expected a multiple of the 1 processes, got '1'"),
        ("MpiCommunicator(timeout='1')", "timeout: expected seconds > 0, got '1'"),
        (
            "MpiCommunicator(4)",
            "comm: expected an intracommunicator of mpi4py, got 4; MpiCommunicator(shards=4) has",
        ),
        ("MpiCommunicator('world')", "comm: expected an intracommunicator of mpi4py, got 'world'"),
        (
            "from mpi4py import MPI; MpiCommunicator(MPI.COMM_NULL)",
            "comm: expected an intracommunicator of mpi4py, got <mpi4py.MPI.Comm object",
        ),
        (
            "say = MpiCommunicator(); say.close(); say.close(); say.broadcast(np.ones(1), 0)",
            "it is closed",
        ),
    ],
)
def test_mpi_refuses(code: str, words: str) -> None:
    text = f"import numpy as np\nfrom {MpiCommunicator.__module__} import *\n{code}"
    run = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=200, check=False
    )
    assert run.returncode == 1 and words in run.stderr


@pytest.mark.mpi
@pytest.mark.full
def test_mpi_messages_beyond_two_to_the_31() -> None:
    run = mpi_processes(2, "large", 2, 200)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.mpi
def test_a_store_over_mpi() -> None:
    run = mpi_processes(3, "store", 3)
    assert run.returncode == 0, run.stdout + run.stderr


# --- calls that may hang --------------------------------------------------------------------------


HANG = 120.0  # seconds: on a machine that others use everything may take long, but not that long


def test_in_time() -> None:
    assert in_time("adding", HANG, lambda: 1 + 1) == 2
    with pytest.raises(ZeroDivisionError):
        in_time("dividing", HANG, lambda: 1 // 0)
    end = threading.Event()
    with pytest.raises(CommunicationError, match="sleeping: not done after 0.1 s"):
        in_time("sleeping", 0.1, end.wait)
    with pytest.raises(CommunicationError, match="sleeping: process 1 left"):
        in_time("sleeping", HANG, end.wait, lambda: "process 1 left")
    end.set()


def test_a_launched_process_is_ended_in_the_middle_of_a_hanging_call() -> None:
    code = (
        "import socket\n"
        "from spgraph.distributed.communicators.watchdog import end_process\n"
        "end_process('NCCL: cuda:1, process 1 of 2: the end', 0.1)\n"
        "pair = socket.socketpair()\n"
        "pair[0].recv(1)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=200, check=False
    )
    assert run.returncode == 70
    assert run.stderr == "spgraph: NCCL: cuda:1, process 1 of 2: the end\n"
