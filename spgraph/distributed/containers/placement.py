"""Placement: where the shards of distributed containers live, and which are of this process."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from spgraph.backends.cuda.exchange.peers import PeerBuffers
from spgraph.containers import Matrix, Vector
from spgraph.containers.arrays import Array, check_extent, index_dtype, on_device
from spgraph.containers.casting import held_number
from spgraph.containers.construction import check_position
from spgraph.containers.values import value_dtype
from spgraph.distributed.communicators import Communicator
from spgraph.distributed.containers.partition import Partition
from spgraph.steps import backend


class Work(threading.local):
    """Whether this thread is at the work of one shard."""

    in_shard = False


WORK = Work()


class Entry(NamedTuple):
    """The one entry of a Vector: of which shard, where in it."""

    owner: int
    place: int
    value: Any
    dtype: np.dtype


class Placement:
    """The `device` of distributed containers: a partition of the vertices, and a communicator
    between the shards.

    Containers of one Placement fit together: positions of vectors of one size, and rows of matrices
    of one height, are divided alike, by the partition of the graph where the size is the graph's,
    else into equal ranges. Every process goes through the same operations in the same order; what
    it holds are the shards `local`.
    """

    def __init__(
        self,
        partition: Partition,
        communicator: Communicator,
        peers: PeerBuffers | None = None,
        exchange_given: bool = False,
    ) -> None:
        self.graph_partition = partition
        self.communicator = communicator
        self.peers = peers  # memory that GPUs write for each other, where the peer form runs
        self.exchange_given = (
            exchange_given  # the form of the exchange was asked for: loops stay in shards
        )
        self._users: dict[int, Array] = {}

    @property
    def num_shards(self) -> int:
        """How many shards there are, in all processes."""
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

    # --- who holds what ---------------------------------------------------------------------------

    def partition(self, size: int) -> Partition:
        """How the positions of a vector of `size` are divided."""
        return (
            self.graph_partition
            if size == self.graph_partition.size
            else Partition.even(size, self.num_shards)
        )

    def shard_ids(self, k: int, size: int) -> Array:
        """The ids that local shard k holds, ascending, on its device; kept for the graph's size."""
        if size != self.graph_partition.size:
            return self._ids(k, size)
        if k not in self._users:
            self._users[k] = self._ids(k, size)
        return self._users[k]

    def _ids(self, k: int, size: int) -> Array:
        return self.partition(size).shard_ids(self.local[k], self.devices[k])

    # --- work on all local shards -----------------------------------------------------------------

    def map(self, function: Callable[..., Any], *lists: Sequence[Any]) -> list[Any]:
        """[function(k, a[k], b[k], ...) for each local shard k].

        Several GPUs get a thread each: a function that waits for its device would keep the others
        from beginning. On the CPU, kernels have all threads already.
        """

        def run(k: int) -> Any:
            WORK.in_shard = True
            try:
                with on_device(self.devices[k]):
                    return function(k, *(given[k] for given in lists))
            finally:
                WORK.in_shard = False

        if WORK.in_shard:  # the others would wait for it forever
            raise RuntimeError("map: the work of one shard asked for work of all shards")
        ks = range(len(self.local))
        if len(set(self.devices)) == 1:
            return [run(k) for k in ks]
        return list(_threads(len(self.local)).map(run, ks))

    def backend(self, k: int) -> ModuleType:
        """The backend of local shard k."""
        return backend(self.devices[k])

    def total(self, counts: Sequence[int]) -> int:
        """The sum of a number of every shard, from those of the local ones."""
        return int(self.communicator.all_reduce_host(np.array([sum(counts)], np.int64), "sum")[0])

    def largest(self, number: int) -> int:
        """A number below 2^63 that every process has its own of: the largest of them."""
        return int(self.communicator.all_reduce_host(np.array([number], np.int64), "max")[0])

    # --- new containers, as Vector and Matrix make them for a device ------------------------------

    def empty(self, size: int, dtype: Any = np.float64) -> Vector:
        """A Vector without entries."""
        return self._vector(size, lambda k, n: Vector.empty(n, dtype, device=self.devices[k]))

    def filled(self, value: Any, *, size: int, dtype: Any = None) -> Vector:
        """The full Vector of one value."""
        return self._vector(
            size, lambda k, n: Vector.filled(value, size=n, dtype=dtype, device=self.devices[k])
        )

    def arange(self, size: int, *, dtype: Any = None) -> Vector:
        """The full Vector with value i at position i."""
        kind = index_dtype(size) if dtype is None else value_dtype(dtype)
        held_number("size - 1", max(size - 1, 0), kind)

        def make(k: int, n: int) -> Vector:
            with on_device(self.devices[k]):
                return Vector(n, self.shard_ids(k, size).astype(kind, copy=True))

        return self._vector(size, make)

    def unit(self, index: int, value: Any, *, size: int, dtype: Any) -> Vector:
        """The Vector with one entry."""
        from spgraph.distributed.containers.vector import DistributedVector

        check_position(index, size)
        partition = self.partition(size)
        inside = int(partition.to_internal(index))
        owner = int(partition.offsets.searchsorted(inside, side="right")) - 1
        value = held_number("value", value, value_dtype(dtype))
        entry = Entry(owner, inside - int(partition.offsets[owner]), value, value_dtype(dtype))
        return DistributedVector.single_entry(size, entry, self)

    def shards_of_single_entry(self, size: int, entry: Entry) -> list[Vector]:
        """The shards of the Vector with one entry."""

        def make(k: int, n: int) -> Vector:
            _, place, value, dtype = entry
            if self.local[k] != entry.owner:
                return Vector.empty(n, dtype, device=self.devices[k])
            return Vector.unit(place, value, size=n, dtype=dtype, device=self.devices[k])

        return self._shards(size, make)

    def from_coo(self, indices: Any, values: Any = True, **options: Any) -> Vector:
        """The Vector of entries that every process gives, all of them."""
        return self.scatter(Vector.from_coo(_host(indices), _host(values), **options))

    def _from_columns(self, columns: Any, *, ncols: int) -> Matrix:
        """The iso Matrix with one entry a row, in a column that the Vector names."""
        from spgraph.distributed.containers.matrix import DistributedMatrix

        def own(k: int, shard: Vector) -> Matrix:
            return Matrix._from_columns(shard.to_bitmap(), ncols=ncols)

        return DistributedMatrix(columns.size, ncols, self.map(own, columns.shards), self)

    def empty_matrix(self, nrows: int, ncols: int, dtype: Any = np.float64) -> Matrix:
        """A Matrix without entries."""
        from spgraph.distributed.containers.matrix import DistributedMatrix

        nrows, ncols = check_extent("nrows", nrows), check_extent("ncols", ncols)
        shards = [
            Matrix.empty(self.partition(nrows).sizes[p], ncols, dtype, device=device)
            for p, device in zip(self.local, self.devices, strict=True)
        ]
        return DistributedMatrix(nrows, ncols, shards, self)

    def matrix_from_coo(self, rows: Any, columns: Any, values: Any = True, **options: Any) -> Any:
        """The Matrix of entries that every process gives, all of them; see `Matrix.from_coo`."""
        made: Any = Matrix.from_coo(_host(rows), _host(columns), _host(values), **options)
        return (self.scatter(made[0]), made[1]) if options.get("compact") else self.scatter(made)

    def scatter(self, container: Vector | Matrix) -> Any:
        """A container of one device, which every process has, spread over the shards."""
        from spgraph.distributed.containers.matrix import DistributedMatrix
        from spgraph.distributed.containers.vector import DistributedVector

        if isinstance(container, Vector):
            return DistributedVector.spread(container, self)
        return DistributedMatrix.spread(container, self)

    def _vector(self, size: int, make: Callable[[int, int], Vector]) -> Vector:
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
    return array.get() if hasattr(array, "__cuda_array_interface__") else array
