"""The peer form of the loops: GPUs of one process that write into each other's memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from spgraph.backends.cuda.closure.closure_peers import (
    Closed,
    ClosureBlock,
    ClosureGraph,
    closure_peers,
)
from spgraph.backends.cuda.search.search_peers import PeerBlock, PeerGraph, search_peers
from spgraph.containers import Matrix, Vector
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.errors import ConvergenceError
from spgraph.semirings import TypedSemiring


def finds(semiring: TypedSemiring | None) -> bool:
    """Whether the peer form of search is of that semiring: levels alone, or the least parents."""
    if semiring is None:
        return True
    least = semiring.add.any or semiring.add.name == "min"
    return least and semiring.multiply.name in ("secondi", "firstj")


def search(
    A: Any,
    T: Any,
    start: Any,
    semiring: TypedSemiring | None,
    direction: str,
    max_depth: int,
    trace: bool,
) -> tuple[Vector, Vector | None, Any]:
    """As `search` of a backend, in one launch a GPU for all levels. Nothing waits for a device,
    unless `start` has to be made sparse.
    """
    placement = A.device
    parents = semiring is not None
    transposed = A.T if T is None and parents else T
    sources, values = starts(start)
    found, rows = search_peers(
        graph(A, transposed),
        placement.peers,
        sources,
        values if parents else None,
        direction=direction,
        max_depth=max_depth,
        trace=trace,
    )

    def whole(values: Sequence[Any], bits: Sequence[Any]) -> DistributedVector:
        blocks = [
            Vector(own.size, own, bits=seen, nvals=part.reached)
            for part, own, seen in zip(found, values, bits, strict=True)
        ]
        return DistributedVector.in_flight(A.nrows, blocks, placement)

    level = whole([part.level for part in found], [part.seen for part in found])
    if semiring is None:
        return level, None, rows
    values, dtype = [part.parent for part in found], semiring.dtype
    if values[0].dtype != dtype:
        values = placement.map(lambda k, own: own.astype(dtype), values)
    return level, whole(values, [part.seen_too for part in found]), rows


def starts(start: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    """(positions, values) of the entries of each block: arrays; or two numbers in one of them."""
    placement, entry = start.device, start.entry
    if entry is not None:
        one = entry.dtype.type(entry.value)
        pairs = [
            (entry.place, int(one)) if p == entry.owner else (None, None) for p in placement.local
        ]
    else:
        blocks = start.blocks
        if any(block._indices is None for block in blocks):
            blocks = placement.map(lambda k, block: block.to_sparse(), blocks)
        pairs = [(block._indices, block._values) for block in blocks]
    sources, values = zip(*pairs, strict=True)
    return sources, values


def graph(A: Any, T: Any) -> PeerGraph:
    """The blocks of A and of its transpose as the peer form takes them; kept with A."""
    kind = "peers" if T is None else "peers_both"
    if kind not in A._derived:
        placement, symmetric = A.device, bool(A.symmetric)
        partition = placement.partition(A.nrows)

        types = index_types(A, T)

        def inside(k: int, block: Matrix) -> tuple[Any, Any]:
            return _typed(block, partition, types)

        out = placement.map(inside, A.blocks)
        back = out if T is A else [(None, None)] * len(out)
        if T is not None and T is not A:
            back = placement.map(inside, T.blocks)
        ids = [None] * len(out)
        if partition.ids is not None:
            ids = placement.map(lambda k, block: partition.user_ids(block.device), A.blocks)
        parts = zip(out, back, ids, strict=True)
        blocks = [PeerBlock(i, j, ti, tj, every) for (i, j), (ti, tj), every in parts]
        # the columns of a row ascend by the user's ids, whatever they are inside
        offsets = tuple(partition.offsets.tolist())
        A._derived[kind] = PeerGraph(offsets, blocks, ordered=True, symmetric=symmetric)
    return A._derived[kind]


def index_types(A: Any, T: Any) -> tuple[np.dtype, np.dtype]:
    """(of offsets, of ids): a kernel knows one of each for all blocks, and for the transpose."""
    blocks = [*A.blocks, *(() if T is None else T.blocks)]
    offsets = np.result_type(*(block._indptr.dtype for block in blocks))
    return offsets, np.result_type(*(block._indices.dtype for block in blocks))


def _typed(block: Matrix, partition: Any, types: tuple[np.dtype, np.dtype]) -> tuple[Any, Any]:
    """(offsets, internal ids) of a block."""
    ids = partition.to_internal(block._indices).astype(types[1], copy=False)
    return block._indptr.astype(types[0], copy=False), ids


def closure(A: Any, start: Any, semiring: TypedSemiring, delta: Any) -> DistributedVector:
    """As `closure` of a backend, in one launch a GPU for all rounds."""
    try:
        return _home(closed(A, start, semiring, delta), A)
    except ConvergenceError as error:
        error.result = _home(cast(Closed, error.result), A)
        raise


def closed(A: Any, start: Any, semiring: TypedSemiring, delta: Any) -> Closed:
    """The closure's parts, and how many edges were looked at in how many rounds."""
    first = A.device.map(lambda k, block: block.to_sparse(), start.blocks)
    ids, values = [block._indices for block in first], [block._values for block in first]
    return closure_peers(weighted(A), A.device.peers, ids, values, semiring, delta)


def _home(found: Closed, A: Any) -> DistributedVector:
    blocks = [
        Vector(part.values.size, part.values, bits=part.bits, nvals=part.reached)
        for part in found.parts
    ]
    return DistributedVector(A.nrows, blocks, A.device)


def weighted(A: Any) -> ClosureGraph:
    """The blocks as the peer form of closure takes them, with in-edges where they are at hand; kept
    with A.
    """
    T = A.T if A.has_transpose else None
    kind = "closure" if T is None else "closure_both"
    if kind not in A._derived:
        placement = A.device
        partition = placement.partition(A.nrows)

        types = index_types(A, T)

        def inside(k: int, block: Matrix) -> tuple[Any, Any, Any]:
            return *_typed(block, partition, types), block._values

        out = placement.map(inside, A.blocks)
        back: list[Any] = out if T is A else [(None, None, None)] * len(out)
        if T is not None and T is not A:
            back = placement.map(inside, T.blocks)
        blocks = [ClosureBlock(*rows, *columns) for rows, columns in zip(out, back, strict=True)]
        A._derived[kind] = ClosureGraph(tuple(partition.offsets.tolist()), blocks, A.iso)
    return A._derived[kind]
