"""Placement: on which devices the shards of distributed containers are, and in which process."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

import numpy as np

from spgraph.backends.shards.buffers import Buffers
from spgraph.containers import Matrix, Vector
from spgraph.containers.annotations import DType, Scalar
from spgraph.containers.methods.construction import check_position
from spgraph.containers.storage.arrays import (
    Array,
    as_array,
    check_extent,
    index_dtype,
    is_array,
    move,
    on_device,
)
from spgraph.containers.storage.casting import held_number
from spgraph.containers.storage.device_memory import synchronize
from spgraph.containers.storage.values import value_dtype
from spgraph.distributed.communicators import Communicator
from spgraph.distributed.containers.partition import Partition
from spgraph.distributed.exchange.notes import note
from spgraph.steps import backend

if TYPE_CHECKING:
    from spgraph.distributed.containers.matrix import DistributedMatrix
    from spgraph.distributed.containers.vector import DistributedVector


R = TypeVar("R")


WORK = threading.local()  # `in_shard` while this thread runs a function for one shard


class Entry(NamedTuple):
    """The only entry of a Vector."""

    owner: int  # the shard
    place: int  # the position in it
    value: Scalar
    dtype: np.dtype


class Placement:
    """The `device` of distributed containers: a partition of the vertices, and a communicator
    between the shards.

    Containers of one Placement may be operands of one operation, because they are divided alike:
    vectors of one size and the rows of matrices of one height by the partition of the graph, if
    that is their size, else into equal ranges. Every process calls the same operations in the same
    order and holds the shards `local`.
    """

    def __init__(
        self,
        partition: Partition,
        communicator: Communicator,
        peers: Buffers | None = None,
        exchange_given: bool = False,
    ) -> None:
        self.graph_partition = partition
        self.communicator = communicator
        # a backend's PeerBuffers or ProcessBuffers, where GPUs reach each other's memory
        self.peers = peers
        # the user named the exchange: then loops never fall back to a single device
        self.exchange_given = exchange_given
        self._shard_ids: dict[int, Array] = {}  # of the graph's size

    @property
    def num_shards(self) -> int:
        """The number of shards in all processes."""
        return self.communicator.num_shards

    @property
    def local(self) -> range:
        """The shards of this process."""
        return self.communicator.local

    @property
    def devices(self) -> tuple[str, ...]:
        """The device of each local shard."""
        return self.communicator.devices

    def __repr__(self) -> str:
        kinds = sorted({device.partition(":")[0] for device in self.devices})
        return f"{self.num_shards} shards on {'+'.join(kinds)}"

    # --- which shard owns what --------------------------------------------------------------------

    def partition(self, size: int) -> Partition:
        """How the positions of a vector of `size` are divided."""
        return (
            self.graph_partition
            if size == self.graph_partition.size
            else Partition.even(size, self.num_shards)
        )

    def shard_ids(self, k: int, size: int) -> Array:
        """The user's ids that local shard k owns, ascending, on its device."""
        if size != self.graph_partition.size:
            return self.partition(size).shard_ids(self.local[k], self.devices[k])
        if k not in self._shard_ids:
            ids = self.graph_partition.shard_ids(self.local[k], self.devices[k])
            synchronize(self.devices[k])
            self._shard_ids[k] = ids
        return self._shard_ids[k]

    # --- work on all local shards -----------------------------------------------------------------

    def map(self, function: Callable[..., R], *lists: Sequence[Any]) -> list[R]:
        """[function(k, a[k], b[k], ...) for each local shard k], each on the device of its shard.

        Several GPUs get a thread each: where a function waits for its device, the others go on. On
        the CPU the shards take turns: each kernel uses all threads already.
        """

        def run(items: Sequence[tuple[Any, ...]]) -> list[R]:
            WORK.in_shard = True
            try:
                with on_device(self.devices[items[0][0]]):
                    return list(itertools.starmap(function, items))
            finally:
                WORK.in_shard = False

        self._check_outside("map")
        items = list(zip(range(len(self.devices)), *lists, strict=True))
        if len(set(self.devices)) == 1:
            return run(items)
        each = ([item] for item in items)
        return [result for (result,) in _threads(len(items)).map(run, each)]

    def backend(self, k: int) -> ModuleType:
        """The backend of local shard k."""
        return backend(self.devices[k])

    @property
    def kernels(self) -> ModuleType:
        """The backend of the shards, for the kernels with which their devices exchange. Which it
        has, `has` says.
        """
        return self.backend(0)

    def has(self, name: str) -> bool:
        """Whether `kernels` has this one of the optional functions and classes of a backend."""
        return hasattr(self.kernels, name)

    def _check_outside(self, call: str) -> None:
        """RuntimeError inside of a function for one shard: the call would wait for other shards
        that wait for it, or one process would make it more often than another.
        """
        if getattr(WORK, "in_shard", False):
            raise RuntimeError(f"{call}: the function for one shard called {call} for all shards")

    def total(self, counts: Sequence[int]) -> int:
        """The sum over all shards of all processes; `counts` are those of the local shards."""
        self._check_outside("total")
        return int(self.communicator.all_reduce_host(np.array([sum(counts)], np.int64), "sum")[0])

    def largest(self, number: int) -> int:
        """The largest `number` (below 2^63) of all processes, each of which gives its own."""
        self._check_outside("largest")
        return int(self.communicator.all_reduce_host(np.array([number], np.int64), "max")[0])

    # --- new containers, as Vector and Matrix make them for a device ------------------------------

    def empty(self, size: int, dtype: DType = np.float64) -> DistributedVector:
        """A Vector without entries."""
        return self._vector(size, lambda k, n: Vector.empty(n, dtype, device=self.devices[k]))

    def filled(self, value: Scalar, *, size: int, dtype: DType | None = None) -> DistributedVector:
        """The full Vector of one value."""
        made = self._vector(
            size, lambda k, n: Vector.filled(value, size=n, dtype=dtype, device=self.devices[k])
        )
        note(self, "Vector.filled", made, made.dtype.type(value))
        return made

    def arange(self, size: int, *, dtype: DType | None = None) -> DistributedVector:
        """The full Vector with value i at position i."""
        kind = index_dtype(size) if dtype is None else value_dtype(dtype)
        held_number("size - 1", max(size - 1, 0), kind)

        def make(k: int, n: int) -> Vector:
            with on_device(self.devices[k]):
                return Vector._of(n, self.shard_ids(k, size).astype(kind, copy=True))

        return self._vector(size, make)

    def unit(self, index: int, value: Scalar, *, size: int, dtype: DType) -> DistributedVector:
        """The Vector with one entry."""
        from spgraph.distributed.containers.vector import DistributedVector

        check_position(index, size)
        partition = self.partition(size)
        inside = int(partition.to_internal(index))
        owner = int(partition.offsets.searchsorted(inside, side="right")) - 1
        kind = value_dtype(dtype)
        held = held_number("value", value, kind)
        entry = Entry(owner, inside - int(partition.offsets[owner]), held, kind)
        return DistributedVector.single_entry(size, entry, self)

    def shards_of_single_entry(self, size: int, entry: Entry) -> list[Vector]:
        """The local shards of the Vector with only this entry."""

        def make(k: int, n: int) -> Vector:
            _, place, value, dtype = entry
            if self.local[k] != entry.owner:
                return Vector.empty(n, dtype, device=self.devices[k])
            return Vector.unit(place, value, size=n, dtype=dtype, device=self.devices[k])

        return self._shards(size, make)

    def from_coo(
        self,
        indices: Sequence[int] | Array,
        values: Scalar | Sequence[Scalar] | Array = True,
        **options: Any,
    ) -> DistributedVector:
        """The Vector of these entries; every process gives all of them. See `Vector.from_coo`."""
        return self.scatter(Vector.from_coo(_host(indices), _host(values), **options))

    def _from_columns(self, columns: DistributedVector, *, ncols: int) -> DistributedMatrix:
        """The iso Matrix with one entry in each row i, in column columns[i]."""
        from spgraph.distributed.containers.matrix import DistributedMatrix

        def own(k: int, shard: Vector) -> Matrix:
            return Matrix._from_columns(shard.to_bitmap(), ncols=ncols)

        return DistributedMatrix(columns.size, ncols, self.map(own, columns.shards), self)

    def empty_matrix(self, nrows: int, ncols: int, dtype: DType = np.float64) -> DistributedMatrix:
        """A Matrix without entries."""
        from spgraph.distributed.containers.matrix import DistributedMatrix

        nrows, ncols = check_extent("nrows", nrows), check_extent("ncols", ncols)
        shards = [
            Matrix.empty(self.partition(nrows).sizes[p], ncols, dtype, device=device)
            for p, device in zip(self.local, self.devices, strict=True)
        ]
        return DistributedMatrix(nrows, ncols, shards, self)

    def matrix_from_coo(
        self,
        rows: Sequence[int] | Array,
        columns: Sequence[int] | Array,
        values: Scalar | Sequence[Scalar] | Array = True,
        **options: Any,
    ) -> DistributedMatrix | tuple[DistributedMatrix, Array]:
        """The Matrix of these entries; every process gives all of them. See `Matrix.from_coo`."""
        made: Any = Matrix.from_coo(_host(rows), _host(columns), _host(values), **options)
        return (self.scatter(made[0]), made[1]) if options.get("compact") else self.scatter(made)

    @overload
    def scatter(self, container: Vector) -> DistributedVector: ...
    @overload
    def scatter(self, container: Matrix) -> DistributedMatrix: ...

    def scatter(self, container: Vector | Matrix) -> DistributedVector | DistributedMatrix:
        """A container of one device, which every process has, divided among the shards."""
        from spgraph.distributed.containers.matrix import DistributedMatrix
        from spgraph.distributed.containers.vector import DistributedVector

        if isinstance(container, Vector):
            return DistributedVector.spread(container, self)
        return DistributedMatrix.spread(container, self)

    def _vector(self, size: int, make: Callable[[int, int], Vector]) -> DistributedVector:
        size = check_extent("size", size)
        from spgraph.distributed.containers.vector import DistributedVector

        return DistributedVector(size, self._shards(size, make), self)

    def _shards(self, size: int, make: Callable[[int, int], Vector]) -> list[Vector]:
        sizes = self.partition(size).sizes
        # nothing here waits for a device
        return [make(k, sizes[p]) for k, p in enumerate(self.local)]


@functools.cache
def _threads(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix="spgraph-shard")


def _host(array: Any) -> Any:
    """An array on a GPU as one of NumPy; anything else as it is."""
    return move(as_array("from_coo", array), "cpu") if is_array(array) else array
