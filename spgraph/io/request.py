"""What `read` is asked for: its arguments, checked."""

from __future__ import annotations

import os
from typing import NamedTuple, Self

import numpy as np

from spgraph.containers.annotations import DType
from spgraph.containers.storage.numbers import flags, flags_or_none
from spgraph.containers.storage.values import value_dtype
from spgraph.errors import FormatError
from spgraph.io.formats import binsparse_files, edge_list
from spgraph.io.source import COMPRESSIONS, is_unnamed

KNOWN = (".mtx", ".gr", *edge_list.SUFFIXES, ".npz", *binsparse_files.SUFFIXES)


class Request(NamedTuple):
    """The arguments of `read`; the suffixes of the format and of the compression are '' where the
    path has none, which only that of a pipe may lack.
    """

    name: str  # of the file
    suffix: str
    compression: str
    symmetric: bool | None
    base: int | None
    dtype: np.dtype | None
    compact: bool | None
    names: bool

    @classmethod
    def of(
        cls,
        path: str | os.PathLike[str],
        symmetric: bool | None = None,
        base: int | None = None,
        dtype: DType | None = None,
        compact: bool | None = None,
        names: bool = False,
    ) -> Self:
        """The request for the file at `path`, which exists. Raises as `read` does."""
        flags("read", names=names)
        flags_or_none("read", symmetric=symmetric, compact=compact)
        if type(base) not in (int, type(None)) or base not in (None, 0, 1):
            raise ValueError(f"base: expected 0, 1 or None (the format's own), got {base!r}")
        name = os.fsdecode(path)
        suffix, compression = _suffixes_of(name)
        check_base(suffix, base)
        kind = None if dtype is None else value_dtype(dtype)
        return cls(name, suffix, compression, symmetric, base, kind, compact, names)

    def check_direction(self, undirected: bool) -> None:
        """Raise ValueError for symmetric=False with a file that declares an undirected graph."""
        if self.symmetric is not None and not self.symmetric and undirected:
            raise ValueError(
                f"symmetric: expected True or None for {self.name}, which declares an undirected "
                "graph, got False; leave it out"
            )


def _suffixes_of(name: str) -> tuple[str, str]:
    """As `suffixes`, of a file that exists and can be read; ('', '') of a pipe without any."""
    try:
        suffix, compression = suffixes(name, KNOWN)
    except FormatError:
        if is_unnamed(name):
            return "", ""
        existing(name)  # of a name that is misspelt, the suffix is beside the point
        raise
    if compression and suffix in binsparse_files.SUFFIXES:
        raise FormatError(f"{name}: expected {suffix} alone, which is not compressed from outside")
    existing(name)
    return suffix, compression


def suffixes(name: str, known: tuple[str, ...]) -> tuple[str, str]:
    """(suffix of the format, suffix of the compression or ''), in lower case; FormatError for a
    format that is not among the `known`.
    """
    stem, suffix = os.path.splitext(name.lower())
    compression = suffix if suffix in COMPRESSIONS else ""
    if compression:
        suffix = os.path.splitext(stem)[1]
    if suffix not in known:
        remedy = "rename the file or make a link to it"
        if suffix == ".parquet":
            remedy = "from_edges reads tables"
        raise FormatError(
            f"{name}: unknown suffix {suffix!r}; known are {' '.join(known)}, each also followed "
            f"by one of {' '.join(COMPRESSIONS)}; {remedy}"
        )
    return suffix, compression


def existing(name: str) -> str:
    """The name of a file that is there."""
    if not os.path.exists(name):
        raise FileNotFoundError(f"path: there is no file {name}")
    if os.path.isdir(name):
        raise IsADirectoryError(f"path: expected a file, {name} is a folder")
    return name


def check_base(suffix: str, base: int | None) -> None:
    """Raise ValueError for a `base` that the format's standard rules out."""
    if (suffix, base) in ((".mtx", 0), (".npz", 1), *((s, 1) for s in binsparse_files.SUFFIXES)):
        raise ValueError(f"base: {suffix} files never count from {base}; leave it out")
