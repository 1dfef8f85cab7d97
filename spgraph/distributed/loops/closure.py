"""Closures over shards: on one GPU, on several, or made of operations; and their parents."""

from __future__ import annotations

from typing import cast

from spgraph.containers import Matrix, Vector
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.distributed.exchange.collectives import (
    materialize,
    reduce_to_owners,
    replicate,
    tag_graph,
)
from spgraph.distributed.exchange.coordinates import lower_matrix
from spgraph.distributed.loops import closure_rounds, peers
from spgraph.distributed.loops.single_device import single_device_of
from spgraph.errors import ConvergenceError
from spgraph.iterations.closure_buckets import composed_closure
from spgraph.iterations.fixed_point import composed_dag_edges, composed_parents
from spgraph.semirings import TypedSemiring, monoid


def closure(
    A: DistributedMatrix,
    start: DistributedVector,
    semiring: TypedSemiring,
    delta: float | int | None,
) -> DistributedVector:
    """As `closure` of a backend: the least fixed point of x = start + x A over the semiring.

    It runs on one GPU alone where that is faster, else on several: in one launch where they write
    into each other's memory, or in rounds with an exchange after each. Where the backend
    has no kernels for that (on CPUs) it is made of operations.
    """
    tag_graph(A)
    if one := single_device_of(A):
        try:
            return one.scatter(
                A.device.backend(0).closure(one.whole, one.gather(start), semiring, delta)
            )
        except ConvergenceError as error:
            error.result = one.scatter(cast(Vector, error.result))
            raise
    rounds = A.device.peers is None
    able = A.device.has("ClosureShard" if rounds else "closure_peers")
    if able and not semiring.multiply.positional:
        return (closure_rounds if rounds else peers).closure(A, start, semiring, delta)
    return cast(DistributedVector, composed_closure(A, start, semiring, delta))


def dag_edges(
    A: DistributedMatrix, x: DistributedVector, semiring: TypedSemiring
) -> DistributedMatrix:
    """As `dag_edges` of a backend: each shard selects from its rows, with the whole of x gathered;
    or the single device does, if the closure ran there.
    """
    if one := single_device_of(A):
        return one.scatter_matrix(A.device.backend(0).dag_edges(one.whole, one.gather(x), semiring))
    placement = A.device
    tag_graph(A)
    materialize(A)

    def own(k: int, whole: Vector) -> Matrix:
        find = getattr(placement.backend(k), "dag_edges", composed_dag_edges)
        return lower_matrix(find(A.lifted(k), whole, semiring), placement, k)

    return DistributedMatrix(A.nrows, A.ncols, placement.map(own, replicate(x)), placement)


def parents(
    A: DistributedMatrix,
    T: DistributedMatrix | None,
    x: DistributedVector,
    semiring: TypedSemiring,
) -> DistributedVector:
    """As `parents` of a backend: each shard finds the least parents among its rows, and the owner
    of a vertex takes the least of all shards; or the single device does, if the closure ran there.
    """
    if one := single_device_of(A):
        whole = one.whole
        transposed = None if T is None else whole.T
        return one.scatter(A.device.backend(0).parents(whole, transposed, one.gather(x), semiring))
    placement = A.device
    tag_graph(A)
    materialize(A)

    def own(k: int, whole: Vector) -> Vector:
        find = getattr(placement.backend(k), "parents", composed_parents)
        return find(A.lifted(k), None, whole, semiring)

    least = monoid.min.resolve(A.index_dtype)
    found = reduce_to_owners(placement.map(own, replicate(x)), least, placement)
    return DistributedVector(A.nrows, found, placement)
