"""Communicators: one contract, kept by copies and by MPI; and where processes meet.

test_gpu_communicators.py has those of GPUs.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import communicator_cases as cases
import hypothesis
import numpy as np
import pytest
from hypothesis import strategies
from processes import MPIEXEC, environment

import spgraph as sg
from spgraph.distributed.communicators import LocalCommunicator, MpiCommunicator, TcpStore, frames
from spgraph.distributed.communicators.watchdog import in_time
from spgraph.errors import CommunicationError, DomainMismatch

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
    with pytest.raises(ValueError, match="at least 1, got 0"):
        LocalCommunicator(0)
    with pytest.raises(ValueError, match="one a shard, 2, got 1"):
        LocalCommunicator(2, ["cpu"])
    with pytest.raises(ValueError, match="expected 'cpu', 'cuda'"):
        LocalCommunicator(1, ["tpu"])


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


# --- where processes meet -------------------------------------------------------------------------


HANG = 120.0  # seconds: on a machine that others use everything may take long, but not that long


def together(*functions: Callable[[], Any]) -> list[Any]:
    """The results of functions that wait for each other."""
    with ThreadPoolExecutor(len(functions)) as threads:
        return [found.result(HANG) for found in [threads.submit(each) for each in functions]]


def stores(count: int, timeout: float = HANG) -> list[TcpStore]:
    """The stores of `count` processes, all in this one."""
    first = TcpStore("127.0.0.1:0", 0, count, token="word", timeout=timeout)
    others = [
        TcpStore(first.address, rank, count, token="word", timeout=timeout)
        for rank in range(1, count)
    ]
    return [first, *others]


def eventually(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + HANG
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found


def test_what_one_process_stores_all_get() -> None:
    a, b, c = stores(3)
    b.set("key", b"value")
    c.set("empty", b"")
    for store in (a, b, c):
        assert store.get("key") == b"value" and store.get("empty") == b""
        assert store.peek("key") == b"value" and store.peek("empty") == b""
        assert store.peek("nothing") is None
    waiting = together(lambda: c.get("later"), lambda: b.get("later"), lambda: a.set("later", b"x"))
    assert waiting == [b"x", b"x", None]
    long = bytes(range(256)) * 256
    a.set("long", long)
    assert c.get("long") == long
    together(*(lambda store=store: store.barrier("here") for store in (a, b, c)))  # type: ignore
    together(c.close, b.close, a.close)
    assert a.lost is b.lost is c.lost is None
    TcpStore(a.address, 0, 1, token="word").close()  # the port is free again
    sockets = [socket for store in (a, b, c) for socket in store._connections.values()]
    assert len(sockets) == 4
    eventually(lambda: all(socket.fileno() < 0 for socket in sockets))


def test_processes_may_come_before_the_first() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"

    def first() -> TcpStore:
        time.sleep(0.3)
        return TcpStore(address, 0, 2, token="word", timeout=HANG)

    b, a = together(lambda: TcpStore(address, 1, 2, token="word", timeout=HANG), first)
    a.set("key", b"1")
    assert b.get("key") == b"1"
    together(a.close, b.close)


def test_a_wrong_token_is_refused() -> None:
    first = TcpStore("127.0.0.1:0", 0, 3, token="word", timeout=HANG)
    for rank, processes, token in ((1, 3, "another"), (3, 4, "word")):
        with pytest.raises(CommunicationError, match=f"refused process {rank} of"):
            TcpStore(first.address, rank, processes, token=token, timeout=HANG)
    second = TcpStore(first.address, 1, 3, token="word", timeout=HANG)
    with pytest.raises(CommunicationError, match="refused process 1 of 3"):
        TcpStore(first.address, 1, 3, token="word", timeout=HANG)
    assert first.lost is None
    first.timeout = 0.1  # for process 2, which never comes
    together(first.close, second.close)


def test_strangers_do_not_disturb() -> None:
    first = TcpStore("127.0.0.1:0", 0, 2, token="word", timeout=HANG)
    port = int(first.address.rpartition(":")[2])
    strangers = [socket.create_connection(("127.0.0.1", port)) for _ in range(5)]
    strangers[0].sendall(b"GET / HTTP/1.1\r\n\r\n" + bytes(100))
    strangers[1].sendall(os.urandom(32) + b"\0\0\0\1" + b"S\xff\xff\xff\xff")
    strangers[2].close()
    second = TcpStore(first.address, 1, 2, token="word", timeout=HANG)
    second.set("key", b"value")
    assert first.get("key") == b"value" and first.lost is None
    together(first.close, second.close)
    for stranger in strangers:
        stranger.close()


def test_another_number_of_processes_is_refused() -> None:
    first = TcpStore("127.0.0.1:0", 0, 3, token="word", timeout=0.1)
    with pytest.raises(CommunicationError, match="refused process 1 of 2"):
        TcpStore(first.address, 1, 2, token="word", timeout=HANG)
    first.close()


def test_a_stranger_who_answers_is_not_believed() -> None:
    """Something else listens there, which says yes to everybody."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"

        def answer() -> None:
            line, _ = listener.accept()
            line.sendall(bytes(32))
            line.recv(1000)
            with line, contextlib.suppress(OSError):
                line.sendall(bytes(32) + struct.pack("!BI", ord("V"), 0))
                line.recv(1000)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        with pytest.raises(CommunicationError, match="refused process 1 of 2 .*unexpected"):
            TcpStore(address, 1, 2, token="word", timeout=HANG)
        thread.join(HANG)


def test_crowds_of_strangers_end_and_processes_still_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "HANDSHAKE_SECONDS", 0.5)
    first = TcpStore("127.0.0.1:0", 0, 2, token="word", timeout=HANG)
    port = int(first.address.rpartition(":")[2])
    before = threading.active_count()
    crowd = []
    for _ in range(100):
        crowd.append(socket.create_connection(("127.0.0.1", port)))
        time.sleep(0.005)  # who finds the listener's short queue full tries again after a second
    for stranger in crowd[:50]:
        with contextlib.suppress(OSError):
            stranger.sendall(b"x")  # and then nothing, for ever
    assert threading.active_count() - before <= 64
    second = TcpStore(first.address, 1, 2, token="word", timeout=HANG)
    second.set("key", b"value")
    assert first.get("key") == b"value" and first.lost is None
    eventually(lambda: threading.active_count() - before < 10)
    together(first.close, second.close)
    for stranger in crowd:
        stranger.close()


@pytest.mark.parametrize(
    "frame",
    [
        b"?\0\0\0\0",  # a kind that nobody knows
        b"S\xff\xff\xff\xff",  # 4 GB announced
        b"S\0\0\0\1x",  # too short for the length of a key
        b"S\0\0\0\4\0\x09ab",  # a key longer than what came
        b"S\0\0\0\2\0\0",  # no key
    ],
)
@pytest.mark.parametrize("sender", [0, 1])
def test_a_malformed_frame_ends_the_run_and_is_not_believed(frame: bytes, sender: int) -> None:
    """From a process that is known, so that something is wrong with the run."""
    a, b, c = stores(3)
    line = a._connections[1] if sender == 0 else b._connections[0]
    line.sendall(frame)
    for store in (b,) if sender == 0 else (a, b, c):
        assert "connection broke" in eventually(lambda store=store: store.lost)
    together(a.close, b.close, c.close)


def test_all_know_of_a_loss_before_anybody_goes_on() -> None:
    a, b, c = stores(3)
    heard, gate = [], threading.Event()
    c.when_lost(lambda reason: (gate.wait(HANG), heard.append(reason)))
    with pytest.raises(KeyError), b:
        raise KeyError("of its own")
    eventually(lambda: a.lost and c.lost)
    assert (
        not a.all_acknowledged(0.2)
        and not b.all_acknowledged(0.01)
        and not c.all_acknowledged(0.01)
    )
    gate.set()
    for store in (a, b, c):
        assert store.all_acknowledged(HANG)
    assert heard and "of its own" in heard[0]
    together(a.close, c.close)


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    started = time.monotonic()
    with pytest.raises(CommunicationError, match=f"process 1 of 2 could not connect to {address}"):
        TcpStore(address, 1, 2, token="word", timeout=0.5)
    assert time.monotonic() - started < HANG


def test_what_nobody_stores_is_missed_in_time() -> None:
    a, b = stores(2)
    for store in (a, b):
        store.timeout = 0.3
        with pytest.raises(CommunicationError, match="'key'.*another process did not come"):
            store.get("key")
    together(a.close, b.close)


def test_store_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPGRAPH_TOKEN", raising=False)
    with pytest.raises(ValueError, match="SPGRAPH_TOKEN"):
        TcpStore("127.0.0.1:0", 0, 1)
    for address in ("127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000"):
        with pytest.raises(ValueError, match="expected 'host:port'"):
            TcpStore(address, 0, 1, token="word")
    with pytest.raises(ValueError, match="expected 0..1, got 2"):
        TcpStore("127.0.0.1:0", 2, 2, token="word")
    monkeypatch.setenv("SPGRAPH_TOKEN", "word")
    with TcpStore("127.0.0.1:0", 0, 1) as store:
        for key, value, words in (("", b"", "1 to 256"), ("k", bytes(1 << 17), "at most 65536")):
            with pytest.raises(ValueError, match=words):
                store.set(key, value)


def test_a_process_that_dies_is_missed_by_all() -> None:
    first, second = (store := stores_for_three())[:2]
    code = (
        f"from spgraph.distributed.communicators import TcpStore; import os, time\n"
        f"TcpStore({first.address!r}, 2, 3, token='word').set('here', b'')\n"
        "time.sleep(3600)"
    )
    third = subprocess.Popen([sys.executable, "-c", code])
    first.get("here")
    reasons: list[str] = []
    second.when_lost(reasons.append)
    assert first.lost is None
    third.kill()
    started = time.monotonic()
    eventually(lambda: reasons and first.lost)
    assert time.monotonic() - started < HANG
    assert "process 2 of 3 was lost" in reasons[0]
    first.when_lost(reasons.append)
    assert len(reasons) == 2
    with pytest.raises(CommunicationError, match="process 2 of 3 was lost"):
        second.get("never")
    third.wait()
    together(*(each.close for each in store))


def stores_for_three() -> list[TcpStore]:
    first = TcpStore("127.0.0.1:0", 0, 3, token="word", timeout=HANG)
    return [first, TcpStore(first.address, 1, 3, token="word", timeout=HANG)]


def test_a_process_that_fails_says_why() -> None:
    a, b, c = stores(3)
    with pytest.raises(KeyError), b:
        raise KeyError("of its own")
    for store in (a, c):
        assert "process 1: KeyError: 'of its own'" in eventually(lambda store=store: store.lost)
    together(a.close, c.close)


def test_the_first_process_that_fails_says_why_too() -> None:
    a, b = stores(2)
    with pytest.raises(KeyError), a:
        raise KeyError("of its own")
    assert "process 0: KeyError" in eventually(lambda: b.lost)


# --- calls that may hang --------------------------------------------------------------------------


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
