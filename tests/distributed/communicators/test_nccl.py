"""The logic around NCCL, against a stand-in for it: what goes where, and what failures say.

test_gpu_communicators.py asks the same of NCCL itself.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import communicator_cases as cases
import fake_nccl
import numpy as np
import pytest

from spgraph.containers.storage.arrays import move, on_device
from spgraph.distributed.communicators import (
    LocalCommunicator,
    NcclCommunicator,
    TcpStore,
    links,
    timeouts,
    watchdog,
)
from spgraph.distributed.exchange.lockstep import ByCommunicator
from spgraph.errors import CommunicationError


@pytest.fixture(autouse=True)
def nccl() -> Iterator[Any]:
    with fake_nccl.fake_gpus() as module:
        yield module


def devices(count: int) -> list[str]:
    return [f"cuda:{k}" for k in range(count)]


@pytest.mark.parametrize("shards", [1, 2, 4])
def test_one_process(shards: int) -> None:
    # from the other end, so that a shard's number is not its device's
    with NcclCommunicator.for_devices(devices(shards)[::-1]) as comm:
        cases.contract(comm)
    with pytest.raises(CommunicationError, match="it is closed"):
        comm.check()


@pytest.mark.parametrize("names", [["cuda:0", "cuda:1"], ["cuda:1", "cuda:0", "cuda:1"]])
def test_copies_between_gpus(names: list[str]) -> None:
    with LocalCommunicator(len(names), names) as comm:
        cases.contract(comm)
    with pytest.raises(ValueError, match="a CPU beside GPUs"):
        LocalCommunicator(2, ["cpu", "cuda"])


HANG = 120.0  # seconds: on a machine that others use everything may take long, but not that long


def processes(
    count: int, function: Any, timeout: float = HANG, more: dict[str, Any] | None = None
) -> list[Any]:
    """function(communicator) in `count` threads that are processes to each other: what each gives
    or raises.
    """
    first = TcpStore("127.0.0.1:0", 0, count, token="word", timeout=timeout)

    def process(rank: int) -> Any:
        store = first
        if rank:
            store = TcpStore(first.address, rank, count, token="word", timeout=timeout)
        try:
            device = f"cuda:{count - 1 - rank}"
            with NcclCommunicator.for_process(device, store, **more or {}) as comm:
                return function(comm)
        except Exception as error:
            return error

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(process, range(count)))


def test_a_process_each() -> None:
    assert processes(3, cases.contract) == [None] * 3


def test_a_process_that_fails_ends_the_others() -> None:
    def run(comm: NcclCommunicator) -> None:
        cases.gathers(comm)
        if comm.rank == 1:
            raise ZeroDivisionError("of its own")
        cases.gathers(comm)

    errors = processes(3, run)
    assert isinstance(errors[1], ZeroDivisionError)
    for rank in (0, 2):
        assert isinstance(errors[rank], CommunicationError)
        for words in (f"cuda:{2 - rank}, process {rank} of 3", "all_gather", "of its own"):
            assert words in str(errors[rank])


def test_a_launched_process_is_ended_when_another_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []
    monkeypatch.setenv("SPGRAPH_LAUNCHED", "1")
    monkeypatch.setattr(watchdog, "end_process", ended.append)

    def run(comm: NcclCommunicator) -> None:
        if comm.rank == 1:
            raise ZeroDivisionError("of its own")
        cases.agreements(comm)

    processes(2, run)
    deadline = time.monotonic() + HANG
    while not ended and time.monotonic() < deadline:  # it hears of the loss in a thread
        time.sleep(0.01)
    assert len(ended) == 1 and "cuda:1, process 0 of 2" in ended[0] and "of its own" in ended[0]


def test_a_process_that_never_comes() -> None:
    store = TcpStore("127.0.0.1:0", 0, 2, token="word", timeout=0.3)
    with pytest.raises(CommunicationError, match="another process did not come"), store:
        NcclCommunicator.for_process("cuda:0", store)


def test_prepared_gathers_are_one_launch() -> None:
    with NcclCommunicator.for_devices(devices(3)) as comm:
        said = comm._links.links[0].comm.clique.said[0]
        before = len(said)
        cases.prepared(comm)
        assert [len(group) for group in said[before:]] == [3] * 3


@pytest.mark.parametrize("name", ["allGather", "send", "allReduce", "reduce", "broadcast"])
def test_a_call_that_fails_names_device_and_collective(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    comm = NcclCommunicator.for_devices(devices(3))
    parts = cases.sent(comm, [np.ones(4)] * 3)
    calls = {
        "allGather": ("again", comm.gathering("again", (parts, parts))),
        "send": ("all_to_all", lambda: comm.all_to_all([[part] * 3 for part in parts])),
        "allReduce": ("all_reduce", lambda: comm.all_reduce(parts, "sum")),
        "reduce": ("reduce_scatter", lambda: comm.reduce_scatter(parts, [1, 3, 0], "sum")),
        "broadcast": ("broadcast", lambda: comm.broadcast(parts[0], 0)),
    }
    collective, call = calls[name]
    monkeypatch.setattr(fake_nccl.Comm, "fail", name)
    where = f"NCCL: cuda:2, in or after {collective}: .*{name}"
    with pytest.raises(CommunicationError, match=where):
        call()
    monkeypatch.setattr(fake_nccl.Comm, "fail", None)
    # it does not come to life again, and no group was left open
    with pytest.raises(CommunicationError, match=where):
        comm.all_reduce(parts, "sum")
    comm.close()
    cases.agreements(NcclCommunicator.for_devices(devices(2)))


def test_an_error_that_comes_later(monkeypatch: pytest.MonkeyPatch) -> None:
    comm = NcclCommunicator.for_devices(devices(2))
    parts = comm.all_gather(cases.sent(comm, [np.ones(4)] * 2))
    monkeypatch.setattr(fake_nccl.Event, "status", links.NOT_READY)  # for ever
    comm._links.links[1].comm.failed = True
    with pytest.raises(CommunicationError, match=r"NCCL: cuda:1, .*all_gather: .*found later"):
        comm.fetch(parts)


def test_a_device_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    comm = NcclCommunicator.for_devices(devices(2))
    parts = comm.all_gather(cases.sent(comm, [np.ones(4)] * 2))
    monkeypatch.setattr(fake_nccl.Event, "status", 700)
    with pytest.raises(CommunicationError, match="NCCL: cuda:0, .*cudaError 700"):
        comm.fetch(parts)


def test_waiting_ends_when_a_process_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device never finishes, as where a kernel of NCCL waits for one that is gone."""
    waiting = threading.Event()

    def run(comm: NcclCommunicator) -> None:
        parts = comm.all_gather(cases.sent(comm, [np.ones(4)] * 2), sizes=[4, 4])
        if comm.rank == 1:
            waiting.wait(HANG)
            time.sleep(0.2)
            raise ZeroDivisionError("of its own")
        monkeypatch.setattr(fake_nccl.Event, "status", links.NOT_READY)
        waiting.set()
        comm.fetch(parts)

    started = time.monotonic()
    error, _ = processes(2, run)
    assert isinstance(error, CommunicationError) and "of its own" in str(error)
    assert time.monotonic() - started < HANG / 2


def sums(comm: NcclCommunicator) -> None:
    """Sums without end, each of which is right."""
    parts = cases.sent(comm, [np.ones(1000)] * comm.num_shards)
    while True:
        found = comm.fetch(comm.all_reduce(parts, "sum"))[0]
        assert (found == comm.num_shards).all(), f"process {comm.rank} got {found[0]}"


def spoiled(found: Any) -> bool:
    return bool((np.ascontiguousarray(found).view(np.uint8) == fake_nccl.GARBAGE).all())


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("slow", [0, 1, None])
def test_nobody_uses_what_a_kernel_leaves_that_was_broken_off(
    monkeypatch: pytest.MonkeyPatch, count: int, slow: int | None
) -> None:
    """The last process leaves; one of the others hears of it late, when the rest could long have
    broken off their kernels, which end the kernels of all with garbage.
    """
    monkeypatch.setattr(fake_nccl.Comm, "late", True)
    lose = TcpStore._record_loss

    def late(self: TcpStore, reason: str) -> None:
        if self.rank == slow:
            time.sleep(1)
        lose(self, reason)

    monkeypatch.setattr(TcpStore, "_record_loss", late)
    left = threading.Event()

    def run(comm: NcclCommunicator) -> None:
        if comm.rank < count - 1:
            return sums(comm)
        parts = cases.sent(comm, [np.ones(1000)] * comm.num_shards)
        for _ in range(5):
            comm.fetch(comm.all_reduce(parts, "sum"))
        left.set()
        raise ZeroDivisionError("of its own")

    *others, last = processes(count, run)
    assert left.is_set() and isinstance(last, ZeroDivisionError)
    for rank, error in enumerate(others):
        assert isinstance(error, CommunicationError), f"process {rank}: {error!r}"
        assert "all_reduce" in str(error) and "of its own" in str(error)


def test_the_state_is_looked_at_after_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event has come, the array is garbage, and NCCL knows of an error by then."""
    comm = NcclCommunicator.for_devices(devices(2))
    parts = comm.all_reduce(cases.sent(comm, [np.ones(4)] * 2), "sum")
    query = fake_nccl.Event.query

    def broken_off(self: fake_nccl.Event) -> int:
        comm._links.links[1].comm.failed = True
        for part in parts:
            part.view(np.uint8)[...] = fake_nccl.GARBAGE
        return query(self)

    monkeypatch.setattr(fake_nccl.Event, "query", broken_off)
    with pytest.raises(CommunicationError, match=r"NCCL: cuda:1, .*all_reduce: .*found later"):
        comm.fetch(parts)
    assert spoiled(parts[0])
    for question in (comm.check, comm.synchronize, lambda: comm.fetch(parts)):
        with pytest.raises(CommunicationError, match="found later"):
            question()


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("leaves", [False, True])
def test_counts_of_processes_come_with_the_parts(
    monkeypatch: pytest.MonkeyPatch, late: bool, leaves: bool
) -> None:
    """Round after round, in one launch each, until one of the processes leaves."""
    monkeypatch.setattr(fake_nccl.Comm, "late", late)

    def run(comm: NcclCommunicator) -> int:
        with on_device(comm.devices[0]) as cupy:
            counts, part = cupy.empty(4, np.int64), cupy.empty(5, np.int32)
            wholes = [cupy.empty(15, np.int32) for _ in range(2)]
        exchange, groups = ByCommunicator(comm), comm._links.links[0].comm.clique.said[comm.rank]
        for turn in range(20):
            if leaves and comm.rank == 1 and turn == 9:
                raise ZeroDivisionError("of its own")
            counts[...], part[...], whole = (
                10 * turn + comm.rank,
                turn - comm.rank,
                wholes[turn % 2],
            )
            came = whole if turn % 3 else None
            given = counts, turn, None if came is None else (part, came)
            ((rows, sums, got),) = exchange.counts([given])
            assert rows == [[10 * turn + p] * 4 for p in range(3)] and got is came
            assert sums == [30 * turn + 3] * 4 and len(groups[-1]) == 2 - (came is None)
            if came is not None:
                assert (came == np.repeat(turn - np.arange(3), 5)).all()
        return len(groups)

    found = processes(3, run)
    if not leaves:
        assert found == [20] * 3
    for rank in (0, 2) if leaves else ():
        assert isinstance(found[rank], CommunicationError), found[rank]
        assert "of its own" in str(found[rank]) and "counts" in str(found[rank])


@pytest.mark.parametrize("call", ["all_reduce_host", "all_gather", "broadcast"])
def test_numbers_of_the_host_are_checked_too(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """What processes tell each other about sizes decides over memory."""
    calls = {
        "all_reduce_host": lambda comm: comm.all_reduce_host(np.array([1]), "sum"),
        "all_gather": lambda comm: comm.all_gather(cases.sent(comm, [np.ones(4)] * 2)),
        "broadcast": lambda comm: comm.broadcast(
            cases.sent(comm, [np.ones(4)] * 2)[0] if comm.rank == 0 else None, 0
        ),
    }
    monkeypatch.setattr(fake_nccl.Comm, "late", True)

    def run(comm: NcclCommunicator) -> None:
        if comm.rank == 1:
            raise ZeroDivisionError("of its own")
        calls[call](comm)

    error, _ = processes(2, run)
    assert isinstance(error, CommunicationError) and "of its own" in str(error), error


def late_processes(count: int, until: Callable[[], Any], **more: Any) -> list[Any]:
    """The last process comes to the second of two sums once `until()` is true."""

    def run(comm: NcclCommunicator) -> float:
        parts = cases.sent(comm, [np.ones(4)] * comm.num_shards)
        comm.fetch(comm.all_reduce(parts, "sum"))
        deadline = time.monotonic() + HANG
        while comm.rank == count - 1 and not until() and time.monotonic() < deadline:
            time.sleep(0.01)
        return float(comm.fetch(comm.all_reduce(parts, "sum"))[0][0])

    return processes(count, run, more=more)


@pytest.mark.parametrize("count", [2, 4])
def test_who_comes_late_is_named_and_awaited(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, count: int
) -> None:
    monkeypatch.setattr(fake_nccl.Comm, "late", True)
    monkeypatch.setattr(timeouts, "WARN_AFTER", 2)
    monkeypatch.setattr(links, "PUBLISH_AFTER", 0.1)

    def said() -> list[str]:
        return [
            text for text in map(logging.LogRecord.getMessage, caplog.records) if "NCCL" in text
        ]

    assert late_processes(count, lambda: len(said()) == count - 1) == [count] * count
    for rank in range(count - 1):
        who = f"NCCL: process {rank} of {count} has waited"
        line = next(line for line in said() if line.startswith(who))
        assert re.search(f"in all_reduce: .*{count - 1} ha(s|ve) not come", line), line


def test_who_does_not_come_in_time_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_nccl.Comm, "late", True)
    monkeypatch.setattr(links, "PUBLISH_AFTER", 0.1)
    ended = threading.Event()
    monkeypatch.setattr(links.Links, "abandon", noted(links.Links.abandon, ended))
    *others, _ = late_processes(3, ended.is_set, timeout=3)
    words = "all_reduce: .*2 ha(s|ve) not come within timeout=3 s"
    for error in others:
        assert isinstance(error, CommunicationError) and re.search(words, str(error)), error
    store = TcpStore("127.0.0.1:0", 0, 1, token="word")
    with pytest.raises(ValueError, match="timeout: expected seconds > 0, got 0"), store:
        NcclCommunicator.for_process("cuda:0", store, timeout=0)


def noted(function: Any, called: threading.Event) -> Any:
    """The function, and that it was called."""

    def run(*arguments: Any) -> Any:
        called.set()
        return function(*arguments)

    return run


def test_processes_at_different_calls_find_out() -> None:
    def run(comm: NcclCommunicator) -> None:
        comm.all_reduce_host(np.array([1]), "sum")
        if comm.rank == 1:
            comm.tag_graph(17)
        parts = cases.sent(comm, [np.ones(4)] * comm.num_shards)
        comm.all_reduce(parts, "sum")
        comm.all_reduce_host(np.array([1]), "sum")

    for error in processes(3, run):
        assert isinstance(error, CommunicationError)
        words = (
            r"all_reduce_host, call 3: process [01] is at the same call, but has made other ones "
            "before"
        )
        assert re.search(words, str(error)), error


def test_a_call_more_is_found_out() -> None:
    def run(comm: NcclCommunicator) -> None:
        if comm.rank == 1:
            comm.all_gather(
                cases.sent(comm, [np.ones(0)] * comm.num_shards), sizes=[0] * comm.num_shards
            )
        comm.all_reduce_host(np.arange(40), "sum")

    for error in processes(2, run):
        assert isinstance(error, CommunicationError)
        at = r"all_reduce_host, call [12]"
        words = rf"{at}, but process [01] is at {at}: all processes have to"
        assert re.search(words, str(error)), error


def test_refusals(nccl: Any) -> None:
    for names in ([], ["cpu"], ["cuda:0", "cuda"]):
        with pytest.raises(ValueError, match="expected different GPUs"):
            NcclCommunicator.for_devices(names)
    comm = NcclCommunicator.for_devices(devices(2))
    parts = cases.sent(comm, [np.ones(4)] * 2)
    with pytest.raises(ValueError, match="on the shard's device cuda:1, got one on cuda:0"):
        comm.all_gather([parts[0], move(parts[1], "cuda:0")])
    nccl.available = False
    with pytest.raises(Exception, match="finds no NCCL: pip install"):
        NcclCommunicator.for_devices(devices(2))
