"""Compiled kernels on disk: folders that nobody else can write into, files verified before use.

These files are executed: they are machine code and pickles. So a folder is used only if no other
user can write into it, and a file only if the checksum at its beginning is right.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pathlib
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_MARK = b"spgraph1"  # a file is this mark, the SHA-256 of its name and content, and the content
_START = len(_MARK) + hashlib.sha256().digest_size
# seconds that a process waits for another one that compiles the same kernel, which takes a few
TIMEOUT = 60.0


def user_folder() -> pathlib.Path:
    """Where compiled kernels lie: $SPGRAPH_CACHE_DIR, else `spgraph` in the user's cache folder."""
    asked = os.environ.get("SPGRAPH_CACHE_DIR")
    if asked:
        return pathlib.Path(os.path.expanduser(asked))
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~")
        return pathlib.Path(base, "spgraph", "cache")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser(os.path.join("~", ".cache"))
    return pathlib.Path(base, "spgraph")


def prepare(folder: pathlib.Path) -> tuple[pathlib.Path | None, str]:
    """(`folder` with symbolic links resolved, ""), created with mode 700 if it is missing; or
    (None, the reason not to use it): it cannot be created, or other users could write into it.
    """
    if folder.parts[:1] == ("~",):
        return None, "this user has no home folder"
    try:
        folder = pathlib.Path(os.path.realpath(folder))
        there = next(place for place in (folder, *folder.parents) if place.exists())
        reason = distrust(there, parent=there != folder)
        if not reason:
            missing = [place for place in (folder, *folder.parents) if not place.exists()]
            for place in reversed(missing):
                with contextlib.suppress(FileExistsError):  # another process was faster
                    place.mkdir(mode=0o700)
            if not folder.is_dir():
                return None, f"{folder} is not a folder"
            reason = distrust(folder)
    except OSError as error:
        return None, str(error)
    return (None, reason) if reason else (folder, "")


def distrust(folder: pathlib.Path, *, parent: bool = False) -> str:
    """Why code from `folder` must not be executed; "" if only this user and root can write there.

    The folder and all its parents must belong to this user or to root, and neither group nor others
    may write into them. A parent (and with `parent` the folder itself) may also be writable with
    the sticky bit set, as /tmp, where nobody can rename what belongs to another user. Nothing is
    checked on Windows, which protects the folders of a user's profile by access lists.
    """
    if not hasattr(os, "geteuid"):
        return ""
    for place in (folder, *folder.parents):
        found = place.stat()
        if found.st_uid not in (0, os.geteuid()):
            return f"{place} belongs to user {found.st_uid}"
        kept = found.st_mode & stat.S_ISVTX and (parent or place != folder)
        if found.st_mode & 0o022 and not kept:
            return f"other users may write into {place} (mode {stat.S_IMODE(found.st_mode):o})"
    return ""


def read(path: pathlib.Path) -> bytes | None:
    """The content of a file that `write` wrote; None if there is none.

    A damaged file, or one that another user could have written, is removed with a warning.
    """
    try:
        with open(path, "rb") as file:
            found, data = os.fstat(file.fileno()), file.read()
    except OSError:
        return None
    content = data[_START:]
    if data[:_START] != _MARK + _digest(path, content):
        discard(path, "is damaged")
    elif hasattr(os, "geteuid") and (
        found.st_uid not in (0, os.geteuid()) or found.st_mode & 0o022
    ):
        discard(path, "could have been written by another user")
    else:
        return content
    return None


def discard(path: pathlib.Path, what: str) -> None:
    """Remove a file that cannot be used, with a warning."""
    with contextlib.suppress(OSError):
        path.unlink()
    warnings.warn(
        f"the compiled kernel {path} {what}; it is compiled again", RuntimeWarning, stacklevel=2
    )


def write(path: pathlib.Path, content: bytes) -> None:
    """Write `content` to `path` atomically.

    If that fails (a read-only folder, a full disk), the process warns once.
    """
    temporary = None
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".tmp")
        with open(descriptor, "wb") as file:
            file.write(_MARK + _digest(path, content) + content)
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        if not path.exists():  # Windows refuses to replace a file that another process reads
            warn(
                f"the kernel cache {path.parent} cannot be written ({error.strerror}); kernels "
                "that are missing there are compiled in each process. Set SPGRAPH_CACHE_DIR to a "
                "folder that you can write into"
            )
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _digest(path: pathlib.Path, content: bytes) -> bytes:
    """The checksum of name and content, so that a file under another file's name is detected."""
    checksum = hashlib.sha256(path.name.encode() + b"\0")
    checksum.update(content)
    return checksum.digest()


@functools.cache
def check_cupy() -> None:
    """Have CuPy compile in memory if its cache folder is writable by others or unusable.

    CuPy verifies its files' checksums, but it does not check who can write into the folder, and it
    fails if it cannot create the folder (on import) or write into it.
    """
    if os.environ.get("CUPY_CACHE_IN_MEMORY") == "1":
        return
    given = os.environ.get("CUPY_CACHE_DIR") or os.path.join("~", ".cupy", "kernel_cache")
    asked = pathlib.Path(os.path.expanduser(given))
    folder, reason = prepare(asked)
    if folder is not None:
        try:
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(bytes(1 << 18))  # the size of a large kernel
            return
        except OSError as error:
            reason = f"it cannot be written ({error.strerror})"
    cupy_in_memory(f"CuPy's kernel cache {asked} is not used: {reason}")
    if "cupy" not in sys.modules:  # importing it creates the folder
        os.environ["CUPY_CACHE_DIR"] = tempfile.gettempdir()


def cupy_in_memory(reason: str) -> None:
    """Have CuPy keep compiled kernels in memory, and warn once."""
    os.environ["CUPY_CACHE_IN_MEMORY"] = "1"
    warn(
        f"{reason}; every process compiles its kernels. Set CUPY_CACHE_DIR to a folder that you "
        "alone can write into"
    )


@functools.cache
def warn(text: str) -> None:
    """Warn, once per process for each text."""
    warnings.warn(text, RuntimeWarning, stacklevel=3)


@contextlib.contextmanager
def alone(path: pathlib.Path) -> Iterator[None]:
    """Run the `with` block while no other process runs one for the same `path`.

    It waits at most TIMEOUT seconds for the other; the system releases the lock of a process that
    dies. Without file locks (Windows, some network file systems, a read-only folder) it does not
    wait.
    """
    lock = _lock(path.with_suffix(".lock"))
    try:
        yield
    finally:
        if lock is not None:
            # processes that wait for the lock find the kernel; later ones create a new lock file
            with contextlib.suppress(OSError):
                path.with_suffix(".lock").unlink()
            os.close(lock)


def _lock(path: pathlib.Path) -> int | None:
    if fcntl is None:
        return None
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        return None
    deadline = time.monotonic() + TIMEOUT
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return lock
            except BlockingIOError:
                if time.monotonic() > deadline:
                    break
                time.sleep(0.01)
    except OSError:  # no locks on this file system
        pass
    except BaseException:  # an interrupt
        os.close(lock)
        raise
    os.close(lock)
    return None
