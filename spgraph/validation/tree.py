"""What is wrong with a tree of a search or of shortest paths, as numbers, shard by shard."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import (
    INT64_MAX,
    Array,
    array_module,
    index_dtype,
    on_device,
    unpack_bits,
)
from spgraph.distributed import DistributedMatrix, DistributedVector, Placement
from spgraph.distributed.exchange.collectives import replicate
from spgraph.operations import select, vxm
from spgraph.semirings import Semiring, min_plus
from spgraph.validation.positions import positions

CHECKS = 5
NONE = -1  # stands for no entry: levels, distances and vertices are not negative


class Fault(NamedTuple):
    """A failed check: the first vertex; another, the parent or the tail of an edge; the value of
    the one and of the other, and what the edge between them makes of the second.
    """

    check: int
    kind: str
    vertex: float
    other: float
    value: float
    at_other: float = 0.0
    sum: float = 0.0


class Tree(NamedTuple):
    """What a shard has to know of a tree: arrays of all vertices, -1 where there is no entry."""

    value: Array  # level or distance
    parent: Array


class Part(NamedTuple):
    """The vertices of a shard: their ids, ascending, their in-edges, and `least`, the least value
    that an in-edge brings, -1 where none does.
    """

    ids: Array
    edges: Matrix  # row v holds the tails of the edges to ids[v]
    least: Array


def faults(
    A: Matrix,
    source: int,
    value: Vector,
    parent: Vector,
    semiring: Semiring,
    max_depth: int | None,
) -> list[Fault]:
    """The first fault of each check, in their order. `value` are levels, where `semiring` is
    min_first, or distances, where it is min_plus; see `validate_bfs`.
    """
    weighted = semiring == min_plus
    leading = value if max_depth is None else select(value, "valuelt", max_depth)
    edges = A if A.symmetric else A.T
    if weighted and value.dtype.kind != "f" and A.dtype.kind != "f":
        leading, A = _summable(leading, A)
    # what is below 0 is no entry in `dense` either; here it would hide what other edges bring
    leading = select(leading, "valuege", 0)
    least = vxm(leading, A, semiring, direction="pull")
    if not isinstance(edges, DistributedMatrix):
        with on_device(A.device) as xp:
            ids = xp.arange(A.nrows, dtype=index_dtype(A.nrows))
            tree = Tree(dense(value), dense(parent))
            found = tree_faults(tree, source, max_depth)
            found += part_faults(tree, Part(ids, edges, dense(least)), source, weighted)
            return _least(found)
    return _of_shards(edges, source, value, parent, least, weighted, max_depth)


def _summable(distance: Vector, A: Matrix) -> tuple[Vector, Matrix]:
    """Distances and weights, both integers, in types whose sums do not overflow: int64, as in sssp,
    or distances of float64.
    """
    distance = distance.dup(np.int64)
    if distance._value_range()[1] + A._value_range()[1] > INT64_MAX:
        return distance.dup(np.float64), A
    return distance, A.astype(np.int64) if A.dtype == np.uint64 else A


def _of_shards(
    edges: DistributedMatrix,
    source: int,
    value: Vector,
    parent: Vector,
    least: Vector,
    weighted: bool,
    max_depth: int | None,
) -> list[Fault]:
    """`faults` of shards; every process finds the same."""
    placement, shards = edges.device, edges.shards
    wholes = (replicate(v) for v in (value, parent) if isinstance(v, DistributedVector))
    levels, parents = wholes
    assert isinstance(least, DistributedVector)

    def own(k: int, shard: Matrix, near: Vector) -> list[Fault]:
        tree = Tree(dense(levels[k]), dense(parents[k]))
        part = Part(placement.shard_ids(k, edges.nrows), shard, dense(near))
        # what the vertices alone tell is the same everywhere
        found = tree_faults(tree, source, max_depth) if placement.local[k] == 0 else []
        return found + part_faults(tree, part, source, weighted)

    every = placement.map(own, shards, least.shards)
    return _first_of_all([fault for found in every for fault in found], placement)


def _least(found: list[Fault]) -> list[Fault]:
    """Of each check the fault of the least vertex."""
    first = {fault.check: fault for fault in sorted(found, key=lambda f: -f.vertex)}
    return [first[check] for check in sorted(first)]


def _first_of_all(found: list[Fault], placement: Placement) -> list[Fault]:
    """Of each check the fault of the least vertex in all processes."""
    between = placement.communicator
    fields = len(Fault._fields) - 2
    first = {fault.check: fault for fault in _least(found)}
    if between.processes == 1:
        return list(first.values())
    vertex = np.array([first[c].vertex if c in first else np.inf for c in range(1, CHECKS + 1)])
    least = between.all_reduce_host(vertex, "min")
    told = np.full((CHECKS, 1 + fields), -np.inf)
    for check, fault in first.items():
        if fault.vertex == least[check - 1]:
            numbers = np.array([KINDS.index(fault.kind), *fault[2:]])
            told[check - 1] = np.where(np.isnan(numbers), NONE, numbers)
    told = between.all_reduce_host(told.ravel(), "max").reshape(told.shape)
    return [
        Fault(check, KINDS[int(row[0])], *map(float, row[1:]))
        for check, row in enumerate(told, 1)
        if np.isfinite(least[check - 1])
    ]


KINDS = ("", "negative", "no parent", "no value", "no vertex", "source", "cycle", "deep")


def dense(v: Vector) -> Array:
    """The values at all positions, -1 where there is no entry or NaN; of signed integers or
    floats.
    """
    v = v.to_bitmap()
    values, xp = v._values, array_module(v._values)
    if values.dtype == np.uint64:  # values beyond int64 are entries, too, though no right ones
        values = xp.minimum(values, np.uint64(INT64_MAX))
    if values.dtype.kind == "f":
        values = xp.where(xp.isnan(values), values.dtype.type(NONE), values)
    elif values.dtype != np.int32:
        values = values.astype(np.int64, copy=False)
    if v._bits is None:
        return values
    return xp.where(unpack_bits(v._bits, v.size), values, values.dtype.type(NONE))


def _first(wrong: Array) -> int:
    """The first position that is true, -1 if none is."""
    return int(wrong.argmax()) if bool(wrong.any()) else -1


# --- what the vertices alone tell -----------------------------------------------------------------


def tree_faults(tree: Tree, source: int, max_depth: int | None) -> list[Fault]:
    """The fault of check 1, and those of check 2 at the source and below the last level."""
    value, parent = tree
    found = []
    fault = _ends(tree, source) or _cycle(tree, source)
    if fault is not None:
        found.append(fault)
    if value[source] != 0:
        has = float(value[source]), float(parent[source])
        found.append(Fault(2, "source", source, has[1], has[0]))
    if max_depth is not None and (v := _first(value > max_depth)) >= 0:
        found.append(Fault(2, "deep", v, float(parent[v]), float(value[v]), sum=float(max_depth)))
    return found


def _ends(tree: Tree, source: int) -> Fault | None:
    """A vertex with a value that is none, with a value or a parent alone, or a parent that is none,
    or a source that is not the root.
    """
    value, parent = tree
    n = value.size
    v = _first((value < 0) & (value != NONE))
    if v >= 0:
        return Fault(1, "negative", v, int(parent[v]), float(value[v]))
    v = _first((value >= 0) != (parent >= 0))
    if v >= 0:
        kind = "no parent" if int(parent[v]) < 0 else "no value"
        return Fault(1, kind, v, int(parent[v]), float(value[v]))
    v = _first((parent >= n) | (parent < NONE))
    if v >= 0:
        return Fault(1, "no vertex", v, int(parent[v]), float(value[v]))
    if int(parent[source]) != source:
        return Fault(1, "source", source, int(parent[source]), float(value[source]))
    return None


def _cycle(tree: Tree, source: int) -> Fault | None:
    """A vertex whose parents do not lead to the source, by pointer doubling: after k rounds each
    vertex knows its 2**k-th ancestor. Where values grow along all edges of the tree, there is none.
    """
    value, parent = tree
    xp = array_module(parent)
    ancestor = xp.where(parent < 0, parent.dtype.type(source), parent)
    above = value[ancestor]
    grows = (parent < 0) | ((above >= 0) & (above < value))
    grows[source] = True
    if bool(grows.all()):
        return None
    for _ in range(parent.size.bit_length()):
        if bool((ancestor == source).all()):
            return None
        ancestor = ancestor[ancestor]
    v = _first(ancestor != source)
    return None if v < 0 else Fault(1, "cycle", v, int(parent[v]), float(value[v]), source)


# --- what the edges of a shard tell ---------------------------------------------------------------


def part_faults(tree: Tree, part: Part, source: int, weighted: bool) -> list[Fault]:
    """The faults of checks 2 to 5 at the vertices of a shard."""
    value, parent = (array[part.ids] for array in tree)
    xp = array_module(value)
    inside = (value >= 0) & (parent >= 0) & (parent < tree.value.size) & (part.ids != source)
    above = xp.where(inside, parent, 0)
    at = positions(part.edges, xp.where(inside, parent, NONE))
    joined = at >= 0
    upper = tree.value[above]
    if weighted:
        weights = part.edges._values
        if not weights.size:  # of a shard without edges, where no vertex is joined
            weights = xp.zeros(1, weights.dtype)
        weight = weights[0] if part.edges.iso else weights[xp.where(joined, at, 0)]
        sum = _sum(upper, weight)
        below = inside & joined & ((upper < 0) | (value != sum))
    else:
        sum = upper + 1
        below = inside & ((upper < 0) | (value != sum))

    def edge(check: int, wrong: Array, of: Callable[[int], tuple[float, float, float]]) -> None:
        k = _first(wrong)
        if k >= 0:
            u, at_u, sum_u = of(k)
            found.append(Fault(check, "", int(part.ids[k]), u, float(value[k]), at_u, sum_u))

    def parent_of(k: int) -> tuple[float, float, float]:
        return int(parent[k]), float(upper[k]), float(sum[k])

    def tail_of(k: int) -> tuple[float, float, float]:
        return _tail(tree, part, k, weighted)

    found: list[Fault] = []
    near = part.least >= 0
    step = 0 if weighted else 1
    edge(2, below, parent_of)
    edge(3, near & (value >= 0) & (value - step > part.least), tail_of)
    edge(4, near & ~(value >= 0), tail_of)
    edge(5, inside & ~joined, parent_of)
    return found


def _sum(upper: Array, weight: Array) -> Array:
    """Distances with weights added in the type of the two; -1 for integers beyond int64."""
    if upper.dtype.kind == "f" or weight.dtype.kind == "f":
        return upper + weight
    sum = upper.astype(np.int64) + weight.astype(np.int64)
    return array_module(upper).where((weight >= 0) & (sum < upper), NONE, sum)


def _tail(tree: Tree, part: Part, k: int, weighted: bool) -> tuple[float, float, float]:
    """(tail, its value, the sum with the weight) of the first in-edge of row k that brings the
    least value.
    """
    A = part.edges
    first, last = int(A._indptr[k]), int(A._indptr[k + 1])
    tails = A._indices[first:last]
    values = tree.value[tails]
    sums = values
    if weighted:
        sums = _sum(values, A._values[0] if A.iso else A._values[first:last])
    xp = array_module(values)
    sums = xp.where((values >= 0) & (sums >= 0), sums.astype(np.float64), np.inf)
    j = int(sums.argmin())
    return int(tails[j]), float(values[j]), float(sums[j])
