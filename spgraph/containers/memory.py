"""How much memory is left: asked before a small input becomes something large."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from spgraph.containers.methods.display import size_of
from spgraph.containers.storage.arrays import Array

UNKNOWN = 2**63
SMALL = 1 << 24  # bytes that are taken without a question, which costs a tenth of a millisecond
# what the limits of a container are called: (folder, limit, used, files that give way)
_LIMITS = (
    ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    (
        "/sys/fs/cgroup/memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
)


def available() -> int:
    """Bytes of main memory that can be taken without swapping, `UNKNOWN` where the system does not
    tell: what Linux calls available, or what is left of the limit of a container.
    """
    left = 1024 * _line("/proc/meminfo", "MemAvailable:", UNKNOWN // 1024)
    for folder, limit, used, files in _LIMITS:
        most = _number(f"{folder}/{limit}")
        taken = _number(f"{folder}/{used}")
        if most is not None and taken is not None:
            left = min(left, most - taken + _line(f"{folder}/memory.stat", files, 0))
    return max(left, 0)


def require(nbytes: int, what: str) -> None:
    """Raise a MemoryError that begins with `what` unless `nbytes` are available."""
    if nbytes <= SMALL:
        return
    left = available()
    if nbytes > left:
        raise MemoryError(
            f"{what} needs {size_of(nbytes)} of memory, {size_of(left)} are available"
        )


def _number(path: str) -> int | None:
    try:
        text = Path(path).read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None  # "max": there is no limit


def _line(path: str, name: str, otherwise: int) -> int:
    """The number behind `name` in a file of such lines."""
    try:
        text = Path(path).read_text()
    except OSError:
        return otherwise
    found = (line.split() for line in text.splitlines())
    return next((int(words[1]) for words in found if words[:1] == [name]), otherwise)


@contextlib.contextmanager
def copying(name: str, what: str, arrays: Sequence[Array]) -> Iterator[None]:
    """In this block a MemoryError becomes one that names the way without a copy."""
    try:
        yield
    except MemoryError as error:
        size = sum(array.nbytes for array in arrays)
        raise MemoryError(
            f"{name}: no memory for a copy of the {size} bytes of {what}; "
            "copy=False borrows the arrays instead"
        ) from error
