"""The protocol of TcpStore: frames of a kind and a payload, and the handshake of a new connection,
in which both sides prove that they know the secret.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import struct
import time

KEY_BYTES, VALUE_BYTES = 256, 1 << 16  # at most, of a key and of a value
NONCE_BYTES, PROOF_BYTES = 32, 32
HANDSHAKE_SECONDS = 5.0  # a connection that has not authenticated by then is closed

# The first byte of a frame: its kind. SET, GET, PEEK, BYE, FAIL and ACKNOWLEDGED come from the
# other processes; VALUE, LOST, ALL and END are the answers of process 0.
SET, GET, PEEK, BYE, FAIL, ACKNOWLEDGED, VALUE, LOST, ALL, END = b"SGPBFHVLAE"


def send(connection: socket.socket, kind: int, payload: bytes) -> None:
    """Send one frame."""
    connection.sendall(struct.pack("!BI", kind, len(payload)) + payload)


def receive(connection: socket.socket) -> tuple[int, bytes]:
    """(kind, payload) of the next frame; ValueError for one that is too long to be valid."""
    kind, size = struct.unpack("!BI", _exactly(connection, 5))
    if size > VALUE_BYTES + KEY_BYTES + 2:
        raise ValueError(f"a frame of {size} bytes")
    return kind, _exactly(connection, size)


def pair(payload: bytes) -> tuple[bytes, bytes]:
    """(key, value) of the payload of a SET frame."""
    size = struct.unpack("!H", payload[:2])[0]
    key, value = payload[2 : 2 + size], payload[2 + size :]
    if not 0 < size == len(key) <= KEY_BYTES or len(value) > VALUE_BYTES:
        raise ValueError(f"a key of {len(key)} bytes with a value of {len(value)}")
    return key, value


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


def authenticate(connection: socket.socket, secret: bytes, rank: int, processes: int) -> None:
    """The other side of `authenticated`. ValueError if the other end does not know the secret,
    OSError if it closes the connection.
    """
    theirs = _exactly(connection, NONCE_BYTES)
    nonce = secrets.token_bytes(NONCE_BYTES)
    proof = _proof(secret, b"member", theirs, rank, processes)
    connection.sendall(proof + nonce + struct.pack("!I", rank))
    expected = _proof(secret, b"first", nonce, rank, processes)
    if not hmac.compare_digest(_exactly(connection, PROOF_BYTES), expected):
        raise ValueError("an unexpected answer")


def keep_alive(connection: socket.socket) -> None:
    """Let TCP's keepalive end the connection if the other host is silent for 20 s."""
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
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
