"""TcpStore, where processes meet. Where one dies, stops to read, says what nobody asked for, or
comes late, the others go on, or end with an error, within a bounded time.
"""

from __future__ import annotations

import contextlib
import errno
import hmac
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from spgraph.distributed.communicators import TcpStore, frames
from spgraph.distributed.communicators import store as module
from spgraph.errors import CommunicationError

HANG = 120.0  # seconds: on a machine that others use everything may take long, but not that long


def stores(count: int, timeout: float = 3600.0) -> list[TcpStore]:
    """The stores of `count` processes, all in this one; what is awaited in vain takes an hour."""
    first = TcpStore("127.0.0.1:0", 0, count, token="word", timeout=timeout)
    ranks = range(1, count)
    return [
        first,
        *(TcpStore(first.address, r, count, token="word", timeout=timeout) for r in ranks),
    ]


def eventually(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + HANG
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found


def in_thread(function: Callable[[], Any]) -> list[Any]:
    """A list that gets what the function gives or raises, which runs in a thread."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(function())
        except Exception as error:
            found.append(error)

    threading.Thread(target=run, daemon=True).start()
    return found


def ended(found: list[Any]) -> Any:
    return eventually(lambda: found)[0]


# --- where processes meet -------------------------------------------------------------------------


def together(*functions: Callable[[], Any]) -> list[Any]:
    """The results of functions that wait for each other."""
    with ThreadPoolExecutor(len(functions)) as threads:
        return [found.result(HANG) for found in [threads.submit(each) for each in functions]]


def test_what_one_process_stores_all_get() -> None:
    a, b, c = stores(3, HANG)
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
    a, b, c = stores(3, HANG)
    line = a._connections[1] if sender == 0 else b._connections[0]
    line.sendall(frame)
    for store in (b,) if sender == 0 else (a, b, c):
        assert "connection broke" in eventually(lambda store=store: store.lost)
    together(a.close, b.close, c.close)


def test_all_know_of_a_loss_before_anybody_goes_on() -> None:
    a, b, c = stores(3, HANG)
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
    a, b = stores(2, HANG)
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
    a, b, c = stores(3, HANG)
    with pytest.raises(KeyError), b:
        raise KeyError("of its own")
    for store in (a, c):
        assert "process 1: KeyError: 'of its own'" in eventually(lambda store=store: store.lost)
    together(a.close, c.close)


def test_the_first_process_that_fails_says_why_too() -> None:
    a, b = stores(2, HANG)
    with pytest.raises(KeyError), a:
        raise KeyError("of its own")
    assert "process 0: KeyError" in eventually(lambda: b.lost)


# --- processes that die, or say what nobody asked for --------------------------------------------


def test_a_process_that_dies_while_it_waits_is_missed() -> None:
    first, second, third = stores(3)
    waiting = in_thread(lambda: third.get("never"))
    others = [in_thread(partial(of.get, "never")) for of in (first, second)]
    time.sleep(0.2)  # process 0 has got the request
    third._connections[0].shutdown(socket.SHUT_RDWR)
    for found in others:
        assert "process 2 of 3 was lost" in str(ended(found))
    assert isinstance(ended(waiting), CommunicationError)


def member(first: TcpStore, rank: int) -> socket.socket:
    """The connection of a process that knows the secret and does as it likes."""
    line = socket.create_connection(("127.0.0.1", int(first.address.rpartition(":")[2])))
    theirs = line.recv(32, socket.MSG_WAITALL)
    numbers = struct.pack("!II", rank, first.processes)
    proof = hmac.digest(b"word", b"member" + theirs + numbers, "sha256")
    line.sendall(proof + bytes(32) + struct.pack("!I", rank))
    assert len(line.recv(32 + 5, socket.MSG_WAITALL)) == 37
    return line


def test_a_process_that_does_not_read_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "SEND_SECONDS", 1.0)
    first = TcpStore("127.0.0.1:0", 0, 3, token="word", timeout=3600)
    second = TcpStore(first.address, 2, 3, token="word", timeout=3600)
    first.set("long", bytes(1 << 16))
    with member(first, 1) as silent:
        silent.settimeout(0.5)
        request = b"P" + struct.pack("!II", 8, 1) + b"long"
        with contextlib.suppress(OSError):  # until the answers fill all buffers
            for _ in range(1000):
                silent.sendall(request * 100)
        own = in_thread(lambda: first.set("key", b"value"))
        assert ended(own) is None
        assert ended(in_thread(lambda: second.peek("key"))) in (b"value", None)
        eventually(lambda: first.lost and second.lost)
        assert first.lost == second.lost and "process 1 of 3 was lost" in str(first.lost)


def test_answers_that_come_late_belong_to_no_other_request() -> None:
    first, second = stores(2)
    second.timeout = 0.1
    with pytest.raises(CommunicationError, match="waited 0.1 s for 'later'"):
        second.get("later")
    first.set("key", b"value")
    first.set("later", b"late")
    second.timeout = HANG
    for _ in range(3):
        assert second.get("key") == b"value" and second.peek("nothing") is None
        assert second.get("later") == b"late"


def test_threads_get_the_answers_to_their_own_requests() -> None:
    first, second = stores(2)
    for key in range(8):
        first.set(str(key), str(key).encode())

    def ask(key: int) -> bool:
        return all(second.get(str(key)) == str(key).encode() for _ in range(100))

    assert all(ended(found) is True for found in [in_thread(partial(ask, k)) for k in range(8)])


def test_a_process_zero_that_says_nothing_is_not_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PEEK_SECONDS", 0.1)
    monkeypatch.setattr(TcpStore, "_serve_requests", lambda *_: time.sleep(HANG))
    _, second = stores(2)
    assert ended(in_thread(lambda: second.peek("key"))) is None


def test_a_process_that_comes_after_a_loss_hears_of_it() -> None:
    first = TcpStore("127.0.0.1:0", 0, 3, token="word", timeout=3600)
    member(first, 1).close()
    eventually(lambda: first.lost)
    late = TcpStore(first.address, 2, 3, token="word", timeout=3600)
    assert "process 1 of 3 was lost" in str(ended(in_thread(lambda: late.get("never"))))


def test_an_error_in_accepting_is_not_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    accept, failed = socket.socket.accept, threading.Event()

    def full(self: socket.socket) -> Any:
        if not failed.is_set():
            failed.set()
            raise OSError(errno.EMFILE, "Too many open files")
        return accept(self)

    monkeypatch.setattr(socket.socket, "accept", full)
    first, second = stores(2)
    assert failed.is_set()
    second.set("key", b"value")
    assert first.get("key") == b"value"
    waiting = in_thread(first.close)
    second.close()
    assert ended(waiting) is None


def test_a_listener_that_drips_is_not_awaited_byte_by_byte(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(frames, "HANDSHAKE_SECONDS", 0.5)
    dripped = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip() -> None:
            line, _ = listener.accept()
            with line, contextlib.suppress(OSError):
                for _ in range(60):
                    line.sendall(b"\0")
                    dripped.append(1)
                    time.sleep(0.2)

        in_thread(drip)
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(CommunicationError, match="refused process 1 of 2"):
            TcpStore(address, 1, 2, token="word", timeout=0.5)
    assert len(dripped) < 60


@pytest.mark.parametrize("frame", [b"G\0\0\0\3abc", b"P\0\0\0\0", b"H\0\0\0\0"])
def test_requests_without_a_number_and_early_acknowledgements_are_refused(frame: bytes) -> None:
    first = TcpStore("127.0.0.1:0", 0, 2, token="word", timeout=3600)
    with member(first, 1) as line:
        line.sendall(frame)
        assert "process 1 of 2 was lost" in eventually(lambda: first.lost)


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="an option of Linux")
def test_data_that_nobody_acknowledges_ends_a_connection() -> None:
    """Keepalive alone does not: it sends no probe while data is under way."""
    first, second = stores(2)
    for line in (first._connections[1], second._connections[0]):
        assert 0 < line.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) <= 20_000
