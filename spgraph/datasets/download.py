"""`fetch`: download a published graph once, check it each time, and read it."""

from __future__ import annotations

import gzip
import hashlib
import os
import pathlib
import re
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from spgraph.containers import Matrix
from spgraph.datasets.catalog import CATALOG, Dataset, suitesparse
from spgraph.errors import FormatError
from spgraph.io import read
from spgraph.io.source import replacing
from spgraph.process.cache_folder import user_folder

TIMEOUT = 30.0  # seconds without a byte from the server
INFLATED = 1100  # a .gz file holds up to 1,032 times its own bytes
_COLLECTION = re.compile(r"[\w-]+/[\w+-][\w.+-]*")
_DIGEST = re.compile(r"[0-9a-f]{64}")


def names() -> list[str]:
    """The names that `fetch` takes besides those of the whole SuiteSparse Matrix Collection,
    sorted.

    >>> import spgraph as sg
    >>> [name for name in sg.datasets.names() if name.startswith("Newman/")]
    ['Newman/karate']
    """
    return sorted(dataset.name for dataset in CATALOG)


def folder() -> pathlib.Path:
    """Where downloaded files are kept: $SPGRAPH_DATASETS_DIR, else `datasets` in the folder of the
    caches.
    """
    asked = os.environ.get("SPGRAPH_DATASETS_DIR")
    return pathlib.Path(asked).expanduser() if asked else user_folder() / "datasets"


def fetch(name: str) -> Matrix:
    """The published graph `name` as a Matrix on the CPU, downloaded if it is not there yet.

    `name` is one of `names()`, or its part behind the slash ("web-Google"), or GROUP/NAME of any
    matrix of the SuiteSparse Matrix Collection, which has graphs of SNAP, of WebGraph (its group
    LAW), of the 10th DIMACS Implementation Challenge and of the GAP benchmark; "USA-road-d.NY" and
    so on are the weighted roads of the 9th. Values, direction and type are those of the file.

    A file is kept in `folder()` and not downloaded again. Each time it is read, it is held against
    its checksum, the published one or that of the first download, and the graph against the
    published numbers of vertices and entries. A kept file that has changed is downloaded again.

    Raises ValueError for an unknown name, and for a file with another checksum than expected;
    FormatError for a graph of another size than published or a damaged file; OSError where the
    download fails; ModuleNotFoundError without pooch (pip install 'spgraph[datasets]').
    Read the terms of the publisher, and cite: Davis and Hu, The University of Florida Sparse Matrix
    Collection, ACM TOMS 38 (2011); Leskovec and Krevl, SNAP Datasets (2014); Boldi and Vigna, The
    WebGraph Framework I, WWW (2004); Demetrescu, Goldberg, Johnson, The Shortest Path Problem:
    Ninth DIMACS Implementation Challenge (2009).

    >>> import spgraph as sg
    >>> A = sg.datasets.fetch("karate")  # doctest: +SKIP
    """
    return _read(_dataset(name))


def _read(dataset: Dataset) -> Matrix:
    """The graph, whose file's checksum is kept where it is the first. Raises as `fetch` does."""
    file, kept = _downloaded(dataset)
    first = dataset.sha256 is None and not kept.exists()
    try:
        with _file(dataset, file) as path:
            A = read(path)
    except FormatError:
        if first:  # such as the page of a proxy: the next call downloads again
            file.unlink(missing_ok=True)
        raise
    for what, found, expected in (
        ("vertices", A.nrows, dataset.vertices),
        ("entries", A.nvals, dataset.entries),
    ):
        if expected not in (None, found):
            raise FormatError(
                f"datasets.fetch: expected {expected} {what} in {dataset.name}, as published, got "
                f"{found}; if {dataset.url} has a new version, read it with spgraph.read"
            )
    if first:  # not that of a file that is none of the graph
        with file.open("rb") as stream, replacing(os.fspath(kept)) as target:
            target.write(hashlib.file_digest(stream, "sha256").hexdigest().encode())
    return A


def _dataset(name: str) -> Dataset:
    """What `name` means. Raises as `fetch` does."""
    if not isinstance(name, str):
        raise TypeError(f"datasets.fetch: name: expected a string, got {type(name).__name__}")
    for dataset in CATALOG:
        if name in (dataset.name, dataset.name.partition("/")[2]):
            return dataset
    if _COLLECTION.fullmatch(name) and not name.startswith("DIMACS9/"):
        return suitesparse(name)
    known = names()
    close = get_close_matches(name, [*known, *(full.partition("/")[2] for full in known)])
    meant = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
    raise ValueError(
        f"datasets.fetch: name: expected one of spgraph.datasets.names(), or GROUP/NAME of the "
        f"SuiteSparse Matrix Collection, got {name!r}{meant}"
    )


def _downloaded(dataset: Dataset) -> tuple[pathlib.Path, pathlib.Path]:
    """The file of `dataset` in `folder()`, with the checksum that it should have; and the file of
    that of the first download, which need not be there.
    """
    pooch = _pooch()
    place = folder() / pathlib.PurePosixPath(dataset.name).parent
    file = dataset.url.rpartition("/")[2]
    kept = place / f"{file}.sha256"
    expected = dataset.sha256 or _kept(kept)
    try:
        path = pathlib.Path(
            pooch.retrieve(
                dataset.url,
                known_hash=expected,
                fname=file,
                path=place,
                downloader=_download,
            )
        )
    except OSError as error:
        raise OSError(
            f"datasets.fetch: {dataset.url} could not be downloaded to {place} ({error}); try "
            "again, or download it yourself and use spgraph.read"
        ) from error
    return path, kept


def _download(url: str, target: str, _: object) -> None:
    """Write what is at `url` into the file `target`, as it is; OSError where that fails.

    Servers that call a .gz file a compressed text (`Content-Encoding: gzip`) have it unpacked by
    pooch's own downloader: it is none of the name then, and has another checksum.
    """
    import requests
    from urllib3.exceptions import HTTPError

    plain = {"Accept-Encoding": "identity"}
    try:
        with requests.get(url, stream=True, timeout=TIMEOUT, headers=plain) as answer:
            answer.raise_for_status()
            if answer.status_code != requests.codes.ok:  # such as 304 or 206
                raise OSError(f"the server answers {answer.status_code} {answer.reason}")
            with open(target, "wb") as file:
                for block in answer.raw.stream(1 << 20, decode_content=False):
                    file.write(block)
    except (HTTPError, ValueError) as error:  # a ValueError: a redirection to no address
        raise OSError(f"{type(error).__name__}: {error}") from error


def _kept(path: pathlib.Path) -> str | None:
    """The checksum of the first download, None before it."""
    if not path.exists():
        return None
    text = path.read_text("ascii", "replace").strip()
    if not _DIGEST.fullmatch(text):
        raise FormatError(
            f"{path}: expected 64 hexadecimal digits, got {text[:80]!r}; delete it and the file "
            "beside it"
        )
    return text


def _pooch() -> Any:
    """The library that downloads."""
    try:
        import pooch
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "datasets.fetch: downloads need pooch, which is not installed: "
            "pip install 'spgraph[datasets]'"
        ) from error
    pooch.get_logger().setLevel("WARNING")
    return pooch


@contextmanager
def _file(dataset: Dataset, path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A file that `read` takes: `path`, or for the time of the block NAME/NAME.mtx of an archive.

    No other member is extracted, wherever its name may point.
    """
    if not path.name.endswith(".tar.gz"):
        yield path
        return
    name = dataset.name.partition("/")[2]
    member = f"{name}/{name}.mtx"
    with tempfile.TemporaryDirectory(dir=path.parent) as place:
        target = pathlib.Path(place, f"{name}.mtx")
        limit = INFLATED * path.stat().st_size + (1 << 20)
        try:
            with gzip.open(path) as stream:
                with tarfile.open(fileobj=stream, mode="r|") as archive:
                    _extract(archive, member, target, limit)
                while stream.read(1 << 20):  # up to the checksum at its end
                    pass
        except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise FormatError(
                f"{path}: not a complete archive ({error}); fetch it again"
            ) from error
        except OSError as error:
            words = f"datasets.fetch: {path} cannot be unpacked beside it ({error})"
            raise OSError(words) from error
        if not target.exists():
            raise FormatError(f"{path}: expected a file {member} in it, found none")
        yield target


def _extract(archive: tarfile.TarFile, member: str, target: pathlib.Path, limit: int) -> None:
    """Copy the regular file `member` of the archive to `target`, if it is there.

    TarError where a file would be longer than `limit`: tarfile reads on for what is not there, for
    days, or makes it up.
    """
    for found in archive:
        if max(found.size, archive.offset) > limit:  # of it, and where the next begins
            raise tarfile.ReadError(f"{found.name} of {found.size} bytes is not in it")
        if found.name == member and found.isreg():
            source = archive.extractfile(found)
            assert source is not None
            with source, target.open("wb") as stream:
                shutil.copyfileobj(source, stream, 1 << 20)
            return
