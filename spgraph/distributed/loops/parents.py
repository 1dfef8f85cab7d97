"""What carries the values of a closure over shards: the edges of the shortest-path DAG, and parents
along them.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import on_device
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.distributed.exchange.collectives import reduce_to_owners, replicate, tag_graph
from spgraph.distributed.exchange.coordinates import materialize, on_shards
from spgraph.distributed.loops.single_device import single_device_of
from spgraph.iterations.shortest_path_dag import composed_dag_edges, composed_parents
from spgraph.semirings import TypedSemiring, monoid


def dag_edges(
    A: DistributedMatrix, x: DistributedVector, semiring: TypedSemiring
) -> DistributedMatrix:
    """As `dag_edges` of a backend: each shard selects from its rows, with the whole of x gathered;
    or the single device does, if the closure ran there.
    """
    if one := single_device_of(A):
        return one.run("dag_edges", x, semiring)
    tag_graph(A)

    def own(on: ModuleType, _: None, rows: Matrix, whole: Vector) -> Matrix:
        return getattr(on, "dag_edges", composed_dag_edges)(rows, whole, semiring)

    found = on_shards(True, own, (A,), replicate(x))
    return DistributedMatrix(A.nrows, A.ncols, found, A.device)


def parents(
    A: DistributedMatrix,
    T: DistributedMatrix | None,
    x: DistributedVector,
    semiring: TypedSemiring,
) -> DistributedVector:
    """As `parents` of a backend: each shard finds the least parents along its own edges, and the
    owner of a vertex takes the least of all shards; or the single device does, if the closure ran
    there.
    """
    if one := single_device_of(A):
        return one.run("parents", T, x, semiring)
    placement = A.device
    tag_graph(A)
    materialize(A)
    if placement.has("ParentsShard"):
        shards = along_own_edges(A, T, x, semiring, False)
        found = placement.map(lambda k, shard: shard.result(shard.parent), shards)
    else:

        def own(k: int, whole: Vector) -> Vector:
            find = getattr(placement.backend(k), "parents", composed_parents)
            return find(A.lifted(k), None, whole, semiring)

        found = placement.map(own, replicate(x))
    least = monoid.min.resolve(A.index_dtype)
    return DistributedVector(A.nrows, reduce_to_owners(found, least, placement), placement)


def along_own_edges(
    A: DistributedMatrix,
    T: DistributedMatrix | None,
    x: DistributedVector,
    semiring: TypedSemiring,
    collects: bool,
) -> list[Any]:
    """For each local shard a ParentsShard, which has found the least parents of all vertices along
    the edges that it owns: in the rows of A, and in those of its transpose `T`, if given.
    """
    placement, comm = A.device, A.device.communicator
    materialize(A, T)

    def begin(k: int, whole: Vector) -> Any:
        rows = A.lifted(k)
        back = rows if T is A else None if T is None else T.lifted(k)
        return placement.kernels.ParentsShard(rows, back, whole, semiring, collects)

    shards = placement.map(begin, replicate(x))
    floors: Sequence[Any] = placement.map(lambda k, shard: shard.floor(), shards)
    if floors[0] is not None:
        values, chosen = zip(*floors, strict=True)
        best = comm.all_reduce(values, "min" if semiring.add.name == "min" else "max")
        floors = list(zip(best, comm.all_reduce(chosen, "min"), strict=True))
    placement.map(lambda k, shard, floor: shard.find(floor), shards, floors)
    return shards


def path_parents(
    A: DistributedMatrix,
    T: DistributedMatrix | None,
    x: DistributedVector,
    semiring: TypedSemiring,
    source: int,
) -> DistributedVector | None:
    """As `path_parents` of a backend: each shard looks along its own edges. What is not the least
    parent of all shards goes to all of them, and each process compares the walks alone.
    """
    if one := single_device_of(A):
        return one.run("path_parents", T, x, semiring, source)
    placement, n = A.device, A.nrows
    if not placement.has("ParentsShard"):
        return None
    tag_graph(A)
    shards = along_own_edges(A, T, x, semiring, True)
    # the greatest number of the type, of vertices without a parent, is no less than any
    found = [Vector._of(n, shard.parent) for shard in shards]
    own = reduce_to_owners(found, monoid.min.resolve(A.index_dtype), placement)
    least = [v._values for v in replicate(DistributedVector(n, own, placement))]
    pairs = placement.map(lambda k, shard, every: shard.pairs(every), shards, least)
    pairs = placement.communicator.all_gather(pairs)
    with on_device(placement.devices[0]):
        chosen = shards[0].chosen(pairs[0], least[0], source)
    if chosen is None:
        return None
    vertices, parents_of = chosen
    partition = placement.partition(n)
    inside = partition.to_internal(vertices)
    owner = partition.owner(inside)

    def result(k: int, shard: Any, v: Vector) -> Vector:
        p = placement.local[k]
        first = inside.dtype.type(partition.offsets[p])
        return shard.result(v._values, inside[owner == p] - first, parents_of[owner == p])

    return DistributedVector(n, placement.map(result, shards, own), placement)


def closure_path_parents(
    A: DistributedMatrix, source: int, delta: float, reach: float | None
) -> tuple[DistributedVector, DistributedVector | None] | None:
    """As `closure_path_parents` of a backend, on the single device; None where there is none."""
    return _on_one(A, "closure_path_parents", source, delta, reach)


def closure_counted(
    A: DistributedMatrix,
    T: DistributedMatrix | None,
    start: DistributedVector,
    semiring: TypedSemiring,
    delta: float | None,
    reach: float | None,
    bits: int,
) -> tuple[DistributedVector, DistributedVector] | None:
    """As `closure_counted` of a backend, on the single device; None where there is none."""
    return _on_one(A, "closure_counted", T, start, semiring, delta, reach, bits)


def _on_one(A: DistributedMatrix, loop: str, *arguments: Any) -> Any:
    """What a loop that only some backends have finds on the single device, if there is one."""
    one = single_device_of(A)
    has_loop = one is not None and hasattr(A.device.backend(0), loop)
    return one.run(loop, *arguments) if one is not None and has_loop else None
