"""The protocol of TcpStore: frames of a kind and a payload, and the handshake of a new connection,
in which both sides prove that they know the secret.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import socket
import struct
import sys
import time

from spgraph.errors import CommunicationError

KEY_BYTES, VALUE_BYTES = 256, 1 << 16  # at most, of a key and of a value
NONCE_BYTES, PROOF_BYTES = 32, 32
HANDSHAKE_SECONDS = 5.0  # a connection that has not authenticated by then is closed
SEND_SECONDS = 5.0  # a connection whose other end reads nothing for so long is closed
SILENT_SECONDS = 20  # so is one whose other host does not answer, whether data is under way or not

# The first byte of a frame: its kind. SET, GET, PEEK, BYE, FAIL and ACKNOWLEDGED come from the
# other processes; VALUE, LOST, ALL and END are the answers of process 0.
SET, GET, PEEK, BYE, FAIL, ACKNOWLEDGED, VALUE, LOST, ALL, END = b"SGPBFHVLAE"


def send(connection: socket.socket, kind: int, payload: bytes) -> None:
    """Send one frame, in at most twice SEND_SECONDS once `keep_alive` was called. A connection on
    which a part of one was sent is of no more use: whoever receives from it is woken.
    """
    deadline = time.monotonic() + SEND_SECONDS
    left = memoryview(struct.pack("!BI", kind, len(payload)) + payload)
    try:
        while left:
            left = left[connection.send(left) :]
            if left and time.monotonic() > deadline:
                raise TimeoutError("the other end does not read")
    except OSError:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        raise


def receive(connection: socket.socket, deadline: float | None = None) -> tuple[int, bytes]:
    """(kind, payload) of the next frame; ValueError for one that is too long to be valid."""
    kind, size = struct.unpack("!BI", _exactly(connection, 5, deadline))
    if size > VALUE_BYTES + KEY_BYTES + 2:
        raise ValueError(f"a frame of {size} bytes")
    return kind, _exactly(connection, size, deadline)


def pair(payload: bytes) -> tuple[bytes, bytes]:
    """(key, value) of the payload of a SET frame."""
    size = struct.unpack("!H", payload[:2])[0]
    key, value = payload[2 : 2 + size], payload[2 + size :]
    if not 0 < size == len(key) <= KEY_BYTES or len(value) > VALUE_BYTES:
        raise ValueError(f"a key of {len(key)} bytes with a value of {len(value)}")
    return key, value


def numbered(payload: bytes) -> tuple[int, bytes]:
    """(number, rest) of the payload of a GET or PEEK frame, whose rest is a key, or of the VALUE
    frame that answers it.
    """
    if len(payload) < 4:
        raise ValueError(f"a request or an answer of {len(payload)} bytes")
    return int.from_bytes(payload[:4]), payload[4:]


def answer(number: int, value: bytes | None) -> bytes:
    """The payload of a VALUE frame. An absent value and an empty one differ."""
    return struct.pack("!I", number) + (b"" if value is None else b"+" + value)


def connect(
    address: str, secret: bytes, rank: int, processes: int, timeout: float
) -> socket.socket:
    """The connection of process `rank` to process 0, which listens at `address`."""
    who, deadline = f"process {rank} of {processes}", time.monotonic() + timeout
    host, _, port = address.rpartition(":")
    try:
        connection = _reached(host or "127.0.0.1", int(port), deadline)
    except OSError as error:
        raise CommunicationError(
            f"TcpStore: {who} could not connect to {address} within {timeout:g} s ({error}); "
            "process 0 has to listen there"
        ) from error
    try:
        deadline = max(deadline, time.monotonic() + HANDSHAKE_SECONDS)
        authenticate(connection, secret, rank, processes, deadline)
    except (OSError, ValueError) as error:
        connection.close()
        raise CommunicationError(
            f"TcpStore: {address} refused {who} ({error}): the token, the rank or the number of "
            "processes is not the same there"
        ) from error
    keep_alive(connection)
    return connection


def _reached(host: str, port: int, deadline: float) -> socket.socket:
    """A connection whose other end has begun the handshake, tried until the deadline; OSError."""
    wait = 0.02
    while True:
        try:
            left = max(0.1, deadline - time.monotonic())
            connection = socket.create_connection((host, port), timeout=left)
            if connection.recv(1, socket.MSG_PEEK):
                return connection
            connection.close()  # too many connections at a time
            raise ConnectionError("the connection was closed")
        except OSError:
            if time.monotonic() + wait > deadline:
                raise
            time.sleep(wait)
            wait = min(2 * wait, 0.5)


def authenticated(connection: socket.socket, secret: bytes, processes: int) -> int | None:
    """The rank of the process that has connected, which proves that it knows the secret and the
    number of `processes`; None if it does not.
    """
    deadline = time.monotonic() + HANDSHAKE_SECONDS
    nonce = secrets.token_bytes(NONCE_BYTES)
    connection.settimeout(HANDSHAKE_SECONDS)
    connection.sendall(nonce)
    said = _exactly(connection, PROOF_BYTES + NONCE_BYTES + 4, deadline)
    its, rest = said[PROOF_BYTES : PROOF_BYTES + NONCE_BYTES], said[PROOF_BYTES + NONCE_BYTES :]
    rank = int(struct.unpack("!I", rest)[0])
    known = hmac.compare_digest(
        said[:PROOF_BYTES], _proof(secret, b"member", nonce, rank, processes)
    )
    if not known or not 0 < rank < processes:
        return None
    connection.sendall(_proof(secret, b"first", its, rank, processes))
    return rank


def authenticate(
    connection: socket.socket, secret: bytes, rank: int, processes: int, deadline: float
) -> None:
    """The other side of `authenticated`. ValueError if the other end does not know the secret,
    OSError if it closes the connection or is not done at the deadline.
    """
    theirs = _exactly(connection, NONCE_BYTES, deadline)
    nonce = secrets.token_bytes(NONCE_BYTES)
    proof = _proof(secret, b"member", theirs, rank, processes)
    connection.sendall(proof + nonce + struct.pack("!I", rank))
    expected = _proof(secret, b"first", nonce, rank, processes)
    if not hmac.compare_digest(_exactly(connection, PROOF_BYTES, deadline), expected):
        raise ValueError("an unexpected answer")
    if receive(connection, deadline) != (VALUE, b""):
        raise ValueError("an unexpected answer")


def keep_alive(connection: socket.socket) -> None:
    """Let TCP end the connection if the other host is silent for SILENT_SECONDS, and `send` if the
    other end does not read.
    """
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    limit: int | bytes = int(1000 * SEND_SECONDS)  # milliseconds on Windows, a timeval elsewhere
    if sys.platform != "win32":
        limit = struct.pack("ll", int(SEND_SECONDS), int(SEND_SECONDS % 1 * 1e6))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
    options = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
    # while data is under way there are no probes, but retransmissions, for a quarter of an hour
    options["TCP_USER_TIMEOUT"] = 1000 * SILENT_SECONDS
    for option, value in options.items():
        if hasattr(socket, option):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def _proof(secret: bytes, role: bytes, nonce: bytes, rank: int, processes: int) -> bytes:
    return hmac.digest(secret, role + nonce + struct.pack("!II", rank, processes), "sha256")


def _exactly(connection: socket.socket, size: int, deadline: float | None = None) -> bytes:
    """Receive exactly `size` bytes. ConnectionError (an OSError) if the connection ends before,
    TimeoutError (another OSError) after the deadline.
    """
    parts = []
    while size:
        if deadline is not None:
            connection.settimeout(max(0.001, deadline - time.monotonic()))
        part = connection.recv(size)
        if not part:
            raise ConnectionError("the connection was closed")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
