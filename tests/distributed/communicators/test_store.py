"""TcpStore where a process dies, stops to read, says what nobody asked for, or comes late: the
others go on, or end with an error, within a bounded time.
"""

from __future__ import annotations

import contextlib
import errno
import hmac
import socket
import struct
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from spgraph.distributed.communicators import TcpStore, frames, store
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
    monkeypatch.setattr(store, "PEEK_SECONDS", 0.1)
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
