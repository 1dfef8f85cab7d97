"""Where the processes of one run meet: a few keys and values over TCP, and a line to each process
whose end tells that the process has ended.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import queue
import secrets
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any, Self

from spgraph.errors import CommunicationError

KEY_BYTES, VALUE_BYTES, KEYS = 256, 1 << 16, 1 << 12  # what one run may store
NONCE_BYTES = 32

# What a frame begins with. SET, GET, BYE and FAIL come from the processes; VALUE, LOST and END are
# the answers of process 0.
SET, GET, BYE, FAIL, VALUE, LOST, END = b"SGBFVLE"


class TcpStore:
    """A rendezvous of `processes` processes at `address`, "host:port": process 0 listens there,
    the others connect. Port 0 takes a free one, which `address` then names.

    All of them give the same `token` (default: the environment variable SPGRAPH_TOKEN); nobody is
    served who does not prove to know it, and it never travels. Each process keeps its connection:
    when one ends without `close`, every other learns it within moments through `lost` and
    `when_lost`. TCP's keepalive finds hosts that vanished, within 20 s.

    Errors: ValueError for a rank, an address or a token that cannot be; CommunicationError when the
    others are not there within `timeout` seconds, or refuse the token.
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
        host, _, port = address.rpartition(":")
        if not port.isdigit() or int(port) > 65535:
            raise ValueError(f"TcpStore: address: expected 'host:port', got {address!r}")
        if not 0 <= rank < processes:
            raise ValueError(f"TcpStore: rank: expected 0..{processes - 1}, got {rank}")
        self._secret = (token or os.environ.get("SPGRAPH_TOKEN") or "").encode()
        if not self._secret:
            raise ValueError(
                "TcpStore: token: expected a secret that all processes share, got none; pass "
                "token=... or set the environment variable SPGRAPH_TOKEN"
            )
        self.rank, self.processes, self.timeout = rank, processes, timeout
        self.lost: str | None = None  # why the run cannot go on
        self._callbacks: list[Callable[[str], Any]] = []
        self._values: dict[bytes, bytes] = {}  # of process 0
        self._lines: dict[int, socket.socket] = {}  # to the others; in these, to process 0
        self._left: set[int] = set()
        self._changed = threading.Condition()
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._closed = False
        if rank == 0:
            self._listener = socket.create_server((host, int(port)), backlog=processes)
            self.address = f"{host}:{self._listener.getsockname()[1]}"
            self._thread(self._accept)
        else:
            self.address = address
            self._lines[0] = self._connect(host, int(port))
            self._thread(self._listen)

    @classmethod
    def over_mpi(cls, comm: Any, *, timeout: float = 20.0) -> TcpStore:
        """A store for the processes of an mpi4py communicator, which tells them where it is."""
        rank, processes = comm.Get_rank(), comm.Get_size()
        host = socket.gethostname()
        one_host = len(set(comm.allgather(host))) == 1
        store, where = None, None
        if rank == 0:
            token = secrets.token_hex(16)
            # "" listens on every interface: which of them the other hosts reach is not known here
            store = cls(
                "127.0.0.1:0" if one_host else ":0", 0, processes, token=token, timeout=timeout
            )
            port = store.address.rpartition(":")[2]
            where = f"{'127.0.0.1' if one_host else host}:{port}", token
        address, token = comm.bcast(where, root=0)
        return store or cls(address, rank, processes, token=token, timeout=timeout)

    def set(self, key: str, value: bytes) -> None:
        """Store `value` under `key`, for all processes."""
        name = self._name(key)
        if len(value) > VALUE_BYTES:
            raise ValueError(f"TcpStore: {key}: {len(value)} bytes, at most {VALUE_BYTES}")
        if self.rank == 0:
            self._put(name, value)
        else:
            self._say(0, SET, struct.pack("!H", len(name)) + name + value)

    def get(self, key: str) -> bytes:
        """The value of `key`, waited for until `timeout`."""
        name = self._name(key)
        if self.rank == 0:
            value = self._await(name)
        else:
            self._say(0, GET, name)
            try:
                value = self._answers.get(timeout=self.timeout + 5)
            except queue.Empty:
                value = None
        if value is None:
            raise CommunicationError(
                self.lost
                or f"TcpStore: process {self.rank} of {self.processes} waited {self.timeout:g} s "
                f"for {key!r} at {self.address}: another process did not come"
            )
        return value

    def barrier(self, name: str) -> None:
        """Wait until every process has come to the barrier of this name, which serves once."""
        self.set(f"{name}/{self.rank}", b"")
        for rank in range(self.processes):
            self.get(f"{name}/{rank}")

    def when_lost(self, callback: Callable[[str], Any]) -> None:
        """Have `callback(reason)` called, from another thread, once a process is lost."""
        with self._changed:
            self._callbacks.append(callback)
            reason = self.lost
        if reason is not None:
            callback(reason)

    def lost_within(self, seconds: float) -> bool:
        """Wait for the news of a loss that may have happened; True if there was one."""
        with self._changed:
            return bool(self._changed.wait_for(lambda: self.lost, seconds))

    def fail(self, reason: str) -> None:
        """Tell all others that this process cannot go on."""
        self._closed = True
        if self.rank == 0:
            self._lose(f"process 0: {reason}")
            self._stop_listening()
        else:
            with contextlib.suppress(CommunicationError):
                self._say(0, FAIL, reason.encode()[:1000])

    def close(self) -> None:
        """Leave in peace. Process 0 stays until the others have left, at most `timeout`."""
        if self._closed:
            return
        self._closed = True
        if self.rank == 0:
            with self._changed:
                self._changed.wait_for(
                    lambda: self.lost or len(self._left) == self.processes - 1, self.timeout
                )
            for rank in list(self._lines):
                with contextlib.suppress(CommunicationError):
                    self._say(rank, END, b"")
            self._stop_listening()
        else:
            with contextlib.suppress(CommunicationError):
                self._say(0, BYE, b"")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is not None:
            self.fail(f"{type(error).__name__}: {error}")
        self.close()

    # --- both ends --------------------------------------------------------------------------------

    def _name(self, key: str) -> bytes:
        name = key.encode()
        if not 0 < len(name) <= KEY_BYTES:
            raise ValueError(f"TcpStore: key: expected 1 to {KEY_BYTES} bytes, got {key!r}")
        return name

    def _thread(self, function: Callable[..., None], *arguments: Any) -> None:
        threading.Thread(target=function, args=arguments, daemon=True, name="TcpStore").start()

    def _say(self, rank: int, kind: int, payload: bytes) -> None:
        try:
            with self._changed:
                _send(self._lines[rank], kind, payload)
        except (OSError, KeyError) as error:
            raise CommunicationError(
                self.lost or f"TcpStore: process {rank} cannot be reached any more ({error})"
            ) from error

    def _lose(self, reason: str) -> None:
        """Remember the first loss and tell everybody; who has closed goes on to tell the others."""
        with self._changed:
            if self.lost is not None:
                return
            self.lost = reason
            callbacks = [] if self._closed else list(self._callbacks)
            self._changed.notify_all()
        if self.rank == 0:
            for rank in list(self._lines):
                with contextlib.suppress(CommunicationError):
                    self._say(rank, LOST, reason.encode()[:1000])
        self._answers.put(None)
        for callback in callbacks:
            callback(reason)

    def _keep_alive(self, line: socket.socket) -> None:
        """Have the kernel look after the other host: one that is silent for 20 s is gone."""
        line.settimeout(None)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
            if hasattr(socket, option):
                line.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)

    # --- process 0 --------------------------------------------------------------------------------

    def _accept(self) -> None:
        while True:
            try:
                line, _ = self._listener.accept()
            except OSError:
                return  # closed
            self._thread(self._serve, line)

    def _serve(self, line: socket.socket) -> None:
        """One process from its greeting to its end. Strangers are shown the door."""
        rank = -1
        try:
            line.settimeout(self.timeout)
            nonce = secrets.token_bytes(NONCE_BYTES)
            line.sendall(nonce)
            proof = _receive(line, NONCE_BYTES + 4)
            rank = struct.unpack("!I", proof[NONCE_BYTES:])[0]
            expected = _proof(self._secret, nonce, rank)
            known = hmac.compare_digest(proof[:NONCE_BYTES], expected)
            if not known or not 0 < rank < self.processes or rank in self._lines:
                rank = -1
                line.close()
                return
            _send(line, VALUE, b"")
            self._keep_alive(line)
            with self._changed:
                self._lines[rank] = line
            self._answer(rank, line)
        except (OSError, ValueError, struct.error):
            if rank in self._lines:
                self._lose(f"process {rank} of {self.processes} was lost: its connection broke")
            line.close()

    def _answer(self, rank: int, line: socket.socket) -> None:
        while True:
            kind, payload = _frame(line)
            if kind == SET:
                size = struct.unpack("!H", payload[:2])[0]
                self._put(payload[2 : 2 + size], payload[2 + size :])
            elif kind == GET:
                value = self._await(payload)
                # an absent value and an empty one must differ
                self._say(rank, VALUE, b"" if value is None else b"+" + value)
            elif kind == FAIL:
                self._lose(f"process {rank}: {payload.decode(errors='replace')}")
            elif kind == BYE:
                with self._changed:
                    self._left.add(rank)
                    self._changed.notify_all()
                return

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

    def _await(self, name: bytes) -> bytes | None:
        with self._changed:
            self._changed.wait_for(lambda: self.lost or name in self._values, self.timeout)
            return self._values.get(name)

    # --- the others -------------------------------------------------------------------------------

    def _connect(self, host: str, port: int) -> socket.socket:
        deadline, wait = time.monotonic() + self.timeout, 0.02
        while True:
            try:
                left = max(0.1, deadline - time.monotonic())
                line = socket.create_connection((host or "127.0.0.1", port), timeout=left)
                break
            except OSError as error:
                if time.monotonic() + wait > deadline:
                    raise CommunicationError(
                        f"TcpStore: process {self.rank} of {self.processes} found nobody at "
                        f"{self.address} within {self.timeout:g} s ({error}); process 0 has to "
                        "listen there"
                    ) from error
                time.sleep(wait)
                wait = min(2 * wait, 0.5)
        try:
            nonce = _receive(line, NONCE_BYTES)
            line.sendall(_proof(self._secret, nonce, self.rank) + struct.pack("!I", self.rank))
            if _frame(line) != (VALUE, b""):
                raise ValueError("an unexpected answer")
        except (OSError, ValueError) as error:
            line.close()
            raise CommunicationError(
                f"TcpStore: {self.address} did not let process {self.rank} of {self.processes} in "
                f"({error}): the token, the rank or the number of processes is not the same there"
            ) from error
        self._keep_alive(line)
        return line

    def _listen(self) -> None:
        """What process 0 says, until it has ended."""
        line = self._lines[0]
        try:
            while True:
                kind, payload = _frame(line)
                if kind == VALUE:
                    self._answers.put(payload[1:] if payload else None)
                elif kind == LOST:
                    self._lose(payload.decode(errors="replace"))
                elif kind == END:
                    break
        except (OSError, ValueError):
            self._lose(f"process 0 of {self.processes} was lost: its connection broke")
        line.close()


def _proof(secret: bytes, nonce: bytes, rank: int) -> bytes:
    return hmac.digest(secret, nonce + struct.pack("!I", rank), "sha256")


def _send(line: socket.socket, kind: int, payload: bytes) -> None:
    line.sendall(struct.pack("!BI", kind, len(payload)) + payload)


def _frame(line: socket.socket) -> tuple[int, bytes]:
    kind, size = struct.unpack("!BI", _receive(line, 5))
    if size > VALUE_BYTES + KEY_BYTES + 2:
        raise ValueError(f"a frame of {size} bytes")
    return kind, _receive(line, size)


def _receive(line: socket.socket, size: int) -> bytes:
    """Exactly `size` bytes; ConnectionError (an OSError) where the line ends before."""
    parts = []
    while size:
        part = line.recv(size)
        if not part:
            raise ConnectionError("the connection was closed")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
