"""TcpStore: a small key-value store over TCP, through which the processes of a run find each other.
Where one of its connections ends, a process has ended.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any, Self

from spgraph.distributed.communicators import frames
from spgraph.distributed.communicators.checks import check_comm, check_meeting
from spgraph.distributed.communicators.messages import complete
from spgraph.errors import CommunicationError

KEYS = 1 << 12  # at most, in one run
UNAUTHENTICATED = 64  # at most so many connections at a time that have not authenticated
NOTICE_SECONDS = 2.0  # seconds in which every process notices that process 0 is gone
PEEK_SECONDS = 3.0  # seconds in which process 0 says what it has
WORDS = 512  # bytes: more than the name of a host, a port and a token take
RETRY_SECONDS = 0.1  # after a connection could not be accepted, as where too many files are open


class TcpStore:
    """A rendezvous of `processes` processes at `address`, "host:port": process 0 listens there,
    the others connect. Port 0 takes a free one, which `address` then names.

    All of them give the same `token` (default: the environment variable SPGRAPH_TOKEN). Both ends
    of a connection prove that they know it; it is never sent. Each process keeps its connection:
    when one ends without `close`, every other process learns it within moments through `lost` and
    `when_lost`. TCP's keepalive finds hosts that no longer answer, within 20 s.

    Errors: ValueError, DomainMismatch for an argument that is not valid; CommunicationError when
    the others are not there within `timeout` seconds, or refuse the token.
    """

    def __init__(
        self,
        address: str,
        rank: int,
        processes: int,
        *,
        token: str | None = None,
        timeout: float = 20.0,
    ) -> None:
        host, port = check_meeting(address, rank, processes, token, timeout)
        self._secret = (token or os.environ.get("SPGRAPH_TOKEN") or "").encode()
        if not self._secret:
            raise ValueError(
                "TcpStore: token: expected a secret that all processes share, got none; pass "
                "token=... or set the environment variable SPGRAPH_TOKEN"
            )
        self.rank, self.processes, self.timeout = int(rank), int(processes), timeout
        self.lost: str | None = None  # why the run cannot go on
        self._callbacks: list[Callable[[str], object]] = []
        self._values: dict[bytes, bytes] = {}  # of process 0
        self._connections: dict[int, socket.socket] = {}  # to the others; in these, to process 0
        # each held while a frame is sent to that process; `_changed` is never held meanwhile
        self._sending = [threading.Lock() for _ in range(processes)]
        self._left: set[int] = set()
        self._wanted: dict[int, tuple[bytes, int]] = {}  # key and number of requests that wait
        # after a loss, at process 0: which processes have acknowledged it, or are gone
        self._acknowledged: set[int] = set()
        self._all_acknowledged = False
        self._server_lost = False  # process 0 is gone
        self._changed = threading.Condition()
        self._unauthenticated = threading.BoundedSemaphore(UNAUTHENTICATED)
        self._asking = threading.Lock()  # held during a request to process 0
        self._asked = 0  # the number of the last request, by which its answer is known
        self._answer: tuple[int, bytes | None] = (0, None)
        self._closed = False
        if rank == 0:
            self._listener = socket.create_server((host, port), backlog=processes)
            self.address = f"{host}:{self._listener.getsockname()[1]}"
            self._thread(self._accept)
        else:
            self.address = address
            self._connections[0] = frames.connect(address, self._secret, rank, processes, timeout)
            self._thread(self._listen)

    @classmethod
    def over_mpi(cls, comm: Any, *, timeout: float = 20.0) -> TcpStore:
        """A store for the processes of an mpi4py communicator, by which they learn the address."""
        check_comm("TcpStore.over_mpi", comm)
        rank, processes = comm.Get_rank(), comm.Get_size()
        host = socket.gethostname()
        hosts = _from_all(comm, host.encode(), timeout)
        one_host = len(set(hosts)) == 1
        store, where = None, b""
        if rank == 0:
            token = secrets.token_hex(16)
            # "" listens on every interface: it is not known which of them other hosts can reach
            store = cls(
                "127.0.0.1:0" if one_host else ":0", 0, processes, token=token, timeout=timeout
            )
            port = store.address.rpartition(":")[2]
            where = f"{'127.0.0.1' if one_host else host}:{port} {token}".encode()
        address, token = _from_all(comm, where, timeout)[0].decode().split(" ")
        return store or cls(address, rank, processes, token=token, timeout=timeout)

    def set(self, key: str, value: bytes) -> None:
        """Store `value` under `key`, for all processes."""
        name = self._name(key)
        if len(value) > frames.VALUE_BYTES:
            raise ValueError(f"TcpStore: {key}: {len(value)} bytes, at most {frames.VALUE_BYTES}")
        if self.rank == 0:
            self._put(name, value)
        else:
            self._send(0, frames.SET, struct.pack("!H", len(name)) + name + value)

    def get(self, key: str) -> bytes:
        """The value of `key`, waited for until `timeout`."""
        name = self._name(key)
        if self.rank == 0:
            self._wait(lambda: name in self._values, self.timeout)
            value = self._values.get(name)
        else:
            value = self._request(frames.GET, name, self.timeout)
        if value is None:
            raise CommunicationError(
                self.lost
                or f"TcpStore: process {self.rank} of {self.processes} waited {self.timeout:g} s "
                f"for {key!r} at {self.address}: another process did not come"
            )
        return value

    def peek(self, key: str) -> bytes | None:
        """The value of `key`, None if there is none by now, or process 0 does not answer."""
        name = self._name(key)
        if self.rank == 0:
            return self._values.get(name)
        return self._request(frames.PEEK, name, PEEK_SECONDS)

    def _request(self, kind: int, name: bytes, seconds: float) -> bytes | None:
        """The answer of process 0; None if it has none in time. Answers to earlier requests, which
        may still come, have other numbers.
        """
        with self._asking:
            self._asked = number = self._asked + 1
            self._send(0, kind, struct.pack("!I", number) + name)
            self._wait(lambda: self._answer[0] == number, seconds)
            answered, value = self._answer
            return value if answered == number else None

    def barrier(self, name: str) -> None:
        """Wait until every process has come to the barrier of this name, which can be used once."""
        self.set(f"{name}/{self.rank}", b"")
        for rank in range(self.processes):
            self.get(f"{name}/{rank}")

    def when_lost(self, callback: Callable[[str], object]) -> None:
        """Have `callback(reason)` called, from another thread, once a process is lost."""
        with self._changed:
            self._callbacks.append(callback)
            reason = self.lost
        if reason is not None:
            callback(reason)

    def lost_within(self, seconds: float) -> bool:
        """Wait until the loss of a process is known, at most `seconds`; whether there was one."""
        self._wait(lambda: False, seconds)
        return self.lost is not None

    def all_acknowledged(self, seconds: float) -> bool:
        """Wait until every remaining process has acknowledged the loss, after its callbacks: True;
        False after `seconds`. If process 0 is lost, which collects acknowledgements, wait as long
        as the others need to notice it by themselves.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._all_acknowledged or self._server_lost, seconds)
        if self._server_lost:
            time.sleep(min(seconds, NOTICE_SECONDS))
        return self._all_acknowledged or self._server_lost

    def fail(self, reason: str) -> None:
        """Tell all others that this process cannot go on."""
        self._closed = True
        if self.rank == 0:
            self._record_loss(f"process 0: {reason}")
            self._stop_listening()
        else:
            self._tell(0, frames.FAIL, reason)

    def close(self) -> None:
        """Leave without an error. Process 0 waits until the others have left, at most `timeout`."""
        if self._closed:
            return
        self._closed = True
        if self.rank == 0:
            self._wait(lambda: len(self._left) == self.processes - 1, self.timeout)
            for rank, connection in list(self._connections.items()):
                self._tell(rank, frames.END)
                if rank in self._left:  # else `_serve` closes it when the process leaves
                    connection.close()
            self._stop_listening()
        else:
            self._tell(0, frames.BYE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self.fail(f"{type(error).__name__}: {error}")
        self.close()

    # --- both ends --------------------------------------------------------------------------------

    def _name(self, key: str) -> bytes:
        name = key.encode()
        if not 0 < len(name) <= frames.KEY_BYTES:
            raise ValueError(f"TcpStore: key: expected 1 to {frames.KEY_BYTES} bytes, got {key!r}")
        return name

    def _thread(self, function: Callable[..., None], *arguments: object) -> None:
        threading.Thread(target=function, args=arguments, daemon=True, name="TcpStore").start()

    def _send(self, rank: int, kind: int, payload: bytes) -> None:
        try:
            with self._sending[rank]:
                frames.send(self._connections[rank], kind, payload)
        except (OSError, KeyError) as error:
            raise CommunicationError(
                self.lost or f"TcpStore: process {rank} cannot be reached any more ({error})"
            ) from error

    def _tell(self, rank: int, kind: int, reason: str = "") -> None:
        """Send a frame, if that process can be reached: else it is known soon that it is lost."""
        with contextlib.suppress(CommunicationError):
            self._send(rank, kind, reason.encode()[:1000])

    def _wait(self, condition: Callable[[], bool], seconds: float) -> None:
        """Wait for the condition, or the loss of a process, at most `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: self.lost is not None or condition(), seconds)

    def _record_loss(self, reason: str) -> None:
        """Record the first loss and notify all processes, also after `close`."""
        with self._changed:
            if self.lost is not None:
                return
            self.lost = reason
            callbacks = [] if self._closed else list(self._callbacks)
            self._changed.notify_all()
        if self.rank == 0:
            for rank in list(self._connections):
                self._tell(rank, frames.LOST, reason)
        for callback in callbacks:
            callback(reason)
        if self.rank == 0:
            self._note_acknowledged(0)
        else:
            self._tell(0, frames.ACKNOWLEDGED)

    def _note_acknowledged(self, rank: int) -> None:
        """Process 0: `rank` has acknowledged the loss, or is gone. After the last, notify all."""
        with self._changed:
            self._acknowledged.add(rank)
            missing = set(range(self.processes)) - self._acknowledged - self._left
            if self.lost is None or missing or self._all_acknowledged:
                return
            self._all_acknowledged = True
            self._changed.notify_all()
        for other in list(self._connections):
            self._tell(other, frames.ALL)

    # --- process 0 --------------------------------------------------------------------------------

    def _accept(self) -> None:
        while self._listener.fileno() >= 0:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # closed, or, for now, there is no space for another file
                time.sleep(RETRY_SECONDS)
                continue
            if self._unauthenticated.acquire(blocking=False):
                self._thread(self._serve, connection)
            else:  # a process of this run will try again
                connection.close()

    def _serve(self, connection: socket.socket) -> None:
        """Serve one process from the handshake to its end; close the connection if that fails."""
        rank: int | None = None
        try:
            try:
                known = frames.authenticated(connection, self._secret, self.processes)
            finally:
                self._unauthenticated.release()
            if known is not None:
                with self._sending[known]:  # nothing is sent before the welcome
                    if self._connections.setdefault(known, connection) is connection:
                        rank = known
                        frames.keep_alive(connection)
                        frames.send(connection, frames.VALUE, b"")
            if rank is None:  # a stranger, or somebody else of a rank that is here
                connection.close()
                return
            if self.lost is not None:  # before this process came
                self._tell(rank, frames.LOST, self.lost)
            self._serve_requests(rank, connection)
        except (OSError, ValueError, struct.error, CommunicationError):
            if rank is not None:
                self._record_loss(
                    f"process {rank} of {self.processes} was lost: its connection broke"
                )
                self._note_acknowledged(rank)
            connection.close()

    def _serve_requests(self, rank: int, connection: socket.socket) -> None:
        """Receive the frames of a process until it leaves. Nothing here waits for another process,
        so that the end of the connection is noticed at once.
        """
        while True:
            kind, payload = frames.receive(connection)
            if kind == frames.SET:
                self._put(*frames.pair(payload))
            elif kind in (frames.GET, frames.PEEK):
                number, name = frames.numbered(payload)
                with self._changed:
                    value = self._values.get(name)
                    waits = value is None and kind == frames.GET
                    if waits:
                        self._wanted[rank] = name, number
                if not waits:
                    self._send(rank, frames.VALUE, frames.answer(number, value))
            elif kind == frames.FAIL:
                self._record_loss(f"process {rank}: {payload.decode(errors='replace')}")
            elif kind == frames.ACKNOWLEDGED and self.lost is not None:
                self._note_acknowledged(rank)
            elif kind == frames.BYE:
                with self._changed:
                    self._left.add(rank)
                    self._changed.notify_all()
                self._note_acknowledged(rank)
                return
            else:
                raise ValueError(f"a frame of the unknown kind {kind}")

    def _stop_listening(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # `accept` does not notice `close`
        self._listener.close()

    def _put(self, name: bytes, value: bytes) -> None:
        with self._changed:
            if len(self._values) >= KEYS and name not in self._values:
                raise ValueError(f"TcpStore: more than {KEYS} keys")
            self._values[name] = value
            self._changed.notify_all()
            ready = {rank: n for rank, (wanted, n) in self._wanted.items() if wanted == name}
            for rank in ready:
                del self._wanted[rank]
        for rank, number in ready.items():
            with contextlib.suppress(CommunicationError):  # its own connection tells of its loss
                self._send(rank, frames.VALUE, frames.answer(number, value))

    # --- the others -------------------------------------------------------------------------------

    def _listen(self) -> None:
        """Receive the frames of process 0 until it ends."""
        connection = self._connections[0]
        try:
            while True:
                kind, payload = frames.receive(connection)
                if kind == frames.VALUE:
                    number, said = frames.numbered(payload)
                    with self._changed:
                        self._answer = number, said[1:] if said else None
                        self._changed.notify_all()
                elif kind == frames.LOST:
                    self._record_loss(payload.decode(errors="replace"))
                elif kind == frames.ALL:
                    with self._changed:
                        self._all_acknowledged = True
                        self._changed.notify_all()
                elif kind == frames.END:
                    break
                else:
                    raise ValueError(f"a frame of the unknown kind {kind}")
        except (OSError, ValueError):
            self._record_loss(f"process 0 of {self.processes} was lost: its connection broke")
            with self._changed:
                self._server_lost = True
                self._changed.notify_all()
        connection.close()


def _from_all(comm: Any, own: bytes, timeout: float) -> list[bytes]:
    """What each process of an mpi4py communicator gives, at most WORDS bytes without a zero."""
    sent, received = own.ljust(WORDS, b"\0"), bytearray(WORDS * comm.Get_size())
    complete(comm, comm.Iallgather(sent, received), received, "TcpStore.over_mpi", timeout)
    return [bytes(received[k : k + WORDS]).rstrip(b"\0") for k in range(0, len(received), WORDS)]
