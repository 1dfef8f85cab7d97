"""Graphs read from a file or generated in shards, so that no process holds a whole graph."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from typing import Literal, cast, overload

import numpy as np

from spgraph.containers import Matrix
from spgraph.containers.annotations import DType
from spgraph.containers.storage.arrays import Array, move
from spgraph.containers.storage.numbers import flags_or_none
from spgraph.distributed.communicators import Communicator
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.partition import Partition
from spgraph.distributed.distribute import chosen, distribute, placed
from spgraph.distributed.generate.models import generate_shards
from spgraph.distributed.io.ingest import Rows, together
from spgraph.distributed.io.reading import read_shards
from spgraph.errors import DomainMismatch
from spgraph.io.files import read_named
from spgraph.io.request import Request
from spgraph.io.source import is_unnamed
from spgraph.random_edges import GraphModel


@overload
def read(
    path: str | os.PathLike[str],
    shards: int,
    *,
    symmetric: bool | None = ...,
    base: int | None = ...,
    dtype: DType | None = ...,
    compact: Literal[True],
    devices: str | Sequence[str] | None = ...,
    partition: str | Sequence[int] | Array = ...,
    communicator: Communicator | None = ...,
    exchange: str = ...,
) -> tuple[DistributedMatrix, np.ndarray]: ...


@overload
def read(
    path: str | os.PathLike[str],
    shards: int,
    *,
    symmetric: bool | None = ...,
    base: int | None = ...,
    dtype: DType | None = ...,
    compact: Literal[False] | None = ...,
    devices: str | Sequence[str] | None = ...,
    partition: str | Sequence[int] | Array = ...,
    communicator: Communicator | None = ...,
    exchange: str = ...,
) -> DistributedMatrix: ...


def read(
    path: str | os.PathLike[str],
    shards: int,
    *,
    symmetric: bool | None = None,
    base: int | None = None,
    dtype: DType | None = None,
    compact: bool | None = None,
    devices: str | Sequence[str] | None = None,
    partition: str | Sequence[int] | Array = "edges",
    communicator: Communicator | None = None,
    exchange: str = "auto",
) -> DistributedMatrix | tuple[DistributedMatrix, np.ndarray]:
    r"""As `spgraph.read(path).distribute(shards)`, but each process keeps only its own shards.

    `symmetric`, `base`, `dtype` and `compact` are those of `spgraph.read`: a DistributedMatrix, or
    with `compact=True` (DistributedMatrix, ids), the ids of all vertices, an array, in every
    process. `shards`, `devices`, `partition`, `communicator`, `exchange`: as in
    `Matrix.distribute`; on the CPU unless `devices` or `communicator` says otherwise. Every process
    calls it with the same arguments, and must be able to open the file.

    A text file is read twice, to count and to keep: FormatError if it changes meanwhile. Files that
    are no list of entries (.npz, .h5, dense arrays), pipes, and every file for the partitions
    "biased" and "metis", which need all edges, are read whole by every process before it keeps its
    share. Sums of reals that a file lists at one position may differ from those of `spgraph.read`
    in their last bits: they are added in another order.

    Raises what `spgraph.read` and `Matrix.distribute` raise: in the process where it happens, in
    the others CommunicationError. DimensionMismatch for a text file of a matrix that is not square.

    >>> import pathlib, tempfile
    >>> import spgraph as sg
    >>> from spgraph import distributed
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "path.el"
    >>> _ = path.write_text("0 1\n1 2\n2 3\n")
    >>> G = distributed.read(path, 2, symmetric=True)
    >>> sg.bfs(G, 0).level.to_numpy().tolist()
    [0, 1, 2, 3]
    """
    flags_or_none("read", symmetric=symmetric, compact=compact)
    comm = chosen("read", shards, devices, communicator, exchange)
    given = path, symmetric, base, dtype, compact
    (request,), _ = together(lambda: [Request.of(*given)], comm)
    if not (isinstance(partition, str) and partition in ("biased", "metis")):
        spread = read_shards(request, comm, partition)
        if spread is not None:
            G = matrix_of_rows(
                spread.partition, spread.rows, comm, exchange, spread.symmetric, request.dtype
            )
            return (G, cast(np.ndarray, spread.ids)) if compact else G
    if comm.processes > 1 and is_unnamed(request.name):
        raise ValueError(
            f"path: expected a file that {comm.processes} processes can read, got a pipe or a file "
            f"that only this one has open: {path}"
        )
    ((A, ids, _),), _ = together(lambda: [read_named(request)], comm)
    G = distribute(A, shards, partition=partition, communicator=comm, exchange=exchange)
    return (G, cast(np.ndarray, ids)) if compact else G


def from_model(
    model: GraphModel,
    shards: int,
    *,
    devices: str | Sequence[str] | None = None,
    partition: str | Sequence[int] | Array = "edges",
    communicator: Communicator | None = None,
    exchange: str = "auto",
) -> DistributedMatrix:
    """The graph of `model`, which `spgraph.generators.kronecker_model` makes, in shards: the one
    that `spgraph.generators.kronecker` makes of the same arguments.

    `shards`, `devices`, `partition`, `communicator` and `exchange` are those of
    `Matrix.distribute`; shards are on the CPU unless `devices` or `communicator` says otherwise.
    Every process calls it with the same arguments. ValueError for the partitions "biased" and
    "metis", which would need the whole graph.

    >>> import spgraph as sg
    >>> from spgraph import distributed
    >>> G = distributed.from_model(sg.generators.kronecker_model(8, 4), 3)
    >>> G.gather().isequal(sg.generators.kronecker(8, 4))
    True
    """
    if not isinstance(model, GraphModel):
        raise DomainMismatch(
            f"from_model: model: expected a GraphModel, got {type(model).__name__}; "
            "generators.kronecker_model makes one"
        )
    comm = chosen("from_model", shards, devices, communicator, exchange)
    comm.tag_graph(zlib.crc32(repr(model).encode()))
    vertices, rows = generate_shards(model, comm, partition)
    return matrix_of_rows(vertices, rows, comm, exchange, model.symmetric or None)


def matrix_of_rows(
    vertices: Partition,
    rows: list[Rows],
    comm: Communicator,
    exchange: str,
    symmetric: bool | None,
    dtype: np.dtype | None = None,
) -> DistributedMatrix:
    """The Matrix of these rows of the local shards; `dtype` is the type of the value of a pattern,
    bool by default.
    """

    def shard(k: int, own: Rows) -> Matrix:
        values = np.ones(1, dtype or np.bool_) if own.values is None else own.values
        arrays = (move(array, comm.devices[k]) for array in (own.indptr, own.indices, values))
        return Matrix._of(own.indptr.size - 1, vertices.size, *arrays, iso=own.values is None)

    placement = placed(vertices, comm, exchange)
    made = placement.map(shard, rows)
    return DistributedMatrix(vertices.size, vertices.size, made, placement, symmetric=symmetric)
