"""DistributedMatrix: a Matrix whose rows are divided among the shards of a Placement."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from spgraph.containers import Matrix, Vector
from spgraph.containers.annotations import Casting, Device, DType, Scalar
from spgraph.containers.methods import display
from spgraph.containers.storage.arrays import Array, array_module, index_dtype, move, on_device
from spgraph.containers.storage.numbers import flags
from spgraph.containers.storage.values import check_casting, check_sides, same_numbers
from spgraph.distributed.containers.partition import Partition
from spgraph.distributed.containers.placement import Placement
from spgraph.distributed.containers.report import Report, border
from spgraph.distributed.containers.vector import DistributedVector, extent_of_shards, shards_match
from spgraph.distributed.exchange.collectives import replicate
from spgraph.distributed.exchange.coordinates import lift
from spgraph.distributed.exchange.notes import note
from spgraph.steps import backend

SAMPLE = 1024  # about so many elements of each array make the fingerprint


class DistributedMatrix(Matrix):
    """A Matrix in shards of rows. Shard p is a Matrix of the rows that it owns, numbered from 0 in
    the order of their ids, and of all columns, by the user's ids.

    Everything that takes a Matrix takes it together with other containers of the same Placement. It
    has no arrays on one device: `gather()` makes a plain Matrix. `partition` says which shard owns
    which row. What needs all entries communicates, so that every process has to call it.
    """

    __slots__ = ("_made", "_nvals", "_placement", "shards")
    _arrays = ("shards",)

    def __init__(
        self,
        nrows: int,
        ncols: int,
        shards: list[Matrix],
        placement: Placement,
        *,
        symmetric: bool | None = None,
    ) -> None:
        self.nrows, self.ncols, self.shards = nrows, ncols, shards
        self.iso = shards[0].iso
        self.symmetric = symmetric if nrows == ncols else False
        self._transient = False
        self._placement = placement
        comm = placement.communicator
        self._made = comm.calls, comm.noted, False  # after which calls, and whether it is a view
        self._nvals: int | None = None
        self._begin()

    @classmethod
    def spread(cls, A: Matrix, placement: Placement) -> DistributedMatrix:
        """A, which every process has, divided among the shards."""
        partition = placement.partition(A.nrows)

        def own(p: int) -> tuple[Array, Array, Array]:
            if partition.ids is not None:
                B = backend(A.device).extract_matrix(A, partition.shard_ids(p, A.device), None)
                # ids of A's own type: results of positions have it on every device
                return B._indptr, B._indices.astype(A.index_dtype, copy=False), B._values
            rows = partition.slice(p)
            offsets = A._indptr[rows.start : rows.stop + 1]
            first, last = int(offsets[0]), int(offsets[-1])
            values = A._values.copy() if A.iso else A._values[first:last].copy()
            return offsets - first, A._indices[first:last].copy(), values

        shards = []
        for p, device in zip(placement.local, placement.devices, strict=True):
            with on_device(A.device):
                arrays = own(p)
            moved = (move(array, device) for array in arrays)
            shards.append(Matrix._of(partition.sizes[p], A.ncols, *moved, iso=A.iso))
        made = cls(A.nrows, A.ncols, shards, placement, symmetric=A.symmetric)
        if placement.communicator.processes > 1:
            made._derived["fingerprint"] = _fingerprint(A, partition)
            placement.communicator.tag_graph(made._derived["fingerprint"])
        return made

    # --- what it is -------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name in ("indptr", "indices", "values"):
            raise AttributeError(
                f"a distributed Matrix has no {name!r} on one device; .gather() makes a plain one"
            )
        return super().__getattr__(name)  # type: ignore[misc]

    @property
    def nvals(self) -> int:
        source = self._source
        if source is not None:
            return source.nvals
        if self._nvals is None:
            self._nvals = self._placement.total([shard.nvals for shard in self.shards])
        return self._nvals

    @property
    def dtype(self) -> np.dtype:
        there: Any = self._with_arrays
        return there.shards[0].dtype

    @property
    def index_dtype(self) -> np.dtype:
        there: Any = self._with_arrays
        return there.shards[0].index_dtype

    @property
    def device(self) -> Placement:
        """The Placement."""
        return self._placement

    @property
    def nbytes(self) -> int:
        """Bytes of the CSR arrays of the local shards."""
        return sum(shard.nbytes for shard in self.shards)

    @property
    def fingerprint(self) -> int:
        """A hash: the same in all processes, and most often another for another graph, or for the
        same one divided in another way.
        """
        if "fingerprint" not in self._derived:
            facts = (self.shape, self._placement.partition(self.nrows).checksum, self._made)
            self._derived["fingerprint"] = zlib.crc32(repr(facts).encode())
        return self._derived["fingerprint"]

    @property
    def partition(self) -> GraphPartition:
        """Which shard owns which row: `.sizes`, `.owner(ids)`; and its costs: `.report()`."""
        return GraphPartition(self)

    def lifted(self, k: int) -> Matrix:
        """Local shard k as a Matrix of the whole shape, whose other rows are empty."""
        return lift(self.shards[k], self._placement, k, self.nrows)

    @property
    def T(self) -> DistributedMatrix:
        """The transpose, as a view; see `Matrix.T`."""
        return cast(DistributedMatrix, super().T)

    @property
    def _T(self) -> DistributedMatrix:
        return cast(DistributedMatrix, super()._T)

    # --- what is derived once and kept ------------------------------------------------------------

    def _new_view(self) -> DistributedMatrix:
        view = super()._new_view()
        view._placement, view._nvals = self._placement, None
        view._made = (*self._made[:2], not self.symmetric)
        return view

    def is_symmetric(self) -> bool:
        if self.symmetric is None:
            T = self.T
            # as in a plain Matrix, NaN differs from itself
            self._decide(T, self._matches(T, False, lambda xp, x, y: same_numbers(x, y)))
        return bool(self.symmetric)

    def row_degrees(self) -> DistributedVector:
        there = self._with_arrays
        if there is not self:  # a view without arrays: its rows are the columns of its source
            return _column_counts(cast(DistributedMatrix, there))
        degrees = self._placement.map(lambda k, shard: shard.row_degrees(), self.shards)
        return DistributedVector(self.nrows, degrees, self._placement)

    def _value_range(self) -> tuple[float, float]:
        if "range" not in self._derived:
            self._derived["range"] = extent_of_shards(self)
        return self._derived["range"]

    def _sampled_mean(self) -> float:
        return self._mean_over_entries("mean", lambda k, shard: shard._sampled_mean())

    def _sampled_row_length(self) -> float:
        return self._mean_over_entries("row length", lambda k, shard: shard._sampled_row_length())

    def _mean_over_entries(self, name: str, of_shard: Callable[[int, Matrix], float]) -> float:
        """The mean of what is known of each shard, weighted by its entries; kept as `name`."""
        if name not in self._derived:
            counts = np.array([shard.nvals for shard in self.shards])
            sums = np.array(self._placement.map(of_shard, self.shards)) * counts
            total = self._placement.communicator.all_reduce_host(sums.sum(keepdims=True), "sum")[0]
            self._derived[name] = float(total / max(self.nvals, 1))
        return self._derived[name]

    def _with_values(self, function: Callable[[Array], Array]) -> DistributedMatrix:
        note(self._placement, "a function of values", self, function)
        return self._with(lambda k, shard: shard._with_values(function), self.symmetric or None)

    def _where(self, function: Callable[..., Array], *vectors: Vector) -> DistributedMatrix:
        check_sides(self, vectors)
        note(self._placement, "a choice of entries", self, function, *vectors)
        sides = cast("tuple[DistributedVector, ...]", vectors)
        whole = [replicate(v) for v in sides]

        def own(k: int, shard: Matrix) -> Matrix:
            rows = shard.row_indices()
            of_rows = (v.shards[k].to_bitmap()._values[rows] for v in sides)
            of_columns = (v[k].to_bitmap()._values[shard._indices] for v in whole)
            kept = function(shard.values, *of_rows, *of_columns)
            return shard._filtered(kept)

        shards = self._placement.map(own, self.shards)
        return DistributedMatrix(self.nrows, self.ncols, shards, self._placement)

    # --- the same entries -------------------------------------------------------------------------

    def pattern(self, dtype: DType = bool) -> DistributedMatrix:
        return self._with(lambda k, shard: shard.pattern(dtype), self.symmetric or None)

    def astype(
        self, dtype: DType, casting: Casting = "unsafe", copy: bool = True
    ) -> DistributedMatrix:
        flags("astype", copy=copy)
        if check_casting(self.dtype, dtype, casting) and not copy:
            return self
        return self._with(lambda k, shard: shard.astype(dtype), self.symmetric or None)

    def dup(self, dtype: DType | None = None) -> DistributedMatrix:
        symmetric = self.symmetric if dtype is None else self.symmetric or None
        return self._with(lambda k, shard: shard.dup(dtype), symmetric)

    copy = dup

    def gather(self, device: str = "cpu") -> Matrix:
        """A plain Matrix of all entries on `device`, in every process."""
        if not self._has_arrays:
            return self.T.gather(device)._written_view()
        whole = self.replicated()[0]
        self._placement.communicator.synchronize()
        return whole.to(device)

    def replicated(self) -> list[Matrix]:
        """The whole Matrix on the device of each local shard: an all-gather. Shards on one device
        share the result.
        """
        placement, n = self._placement, self.nrows
        note(placement, "a gathering of a Matrix", self)
        partition, comm = placement.partition(n), placement.communicator
        lengths = comm.all_gather(placement.map(lambda k, b: np.diff(b._indptr), self.shards))
        indices = comm.all_gather([b._indices for b in self.shards])
        values = [b._values for b in self.shards]
        if not self.iso:
            values = comm.all_gather(values)

        def whole(k: int) -> Matrix:
            xp = array_module(lengths[k])
            indptr = xp.zeros(n + 1, index_dtype(int(indices[k].size)))
            xp.cumsum(lengths[k], out=indptr[1:])
            made = Matrix._of(n, self.ncols, indptr, indices[k], values[k], iso=self.iso)
            if partition.internal_ids is not None:
                ids = partition.in_user_order(xp.arange(n, dtype=index_dtype(n)))
                made = placement.backend(k).extract_matrix(made, ids, None)
            made.symmetric = self.symmetric
            return made

        firsts = [placement.devices.index(device) for device in placement.devices]
        made = placement.map(lambda k: whole(k) if firsts[k] == k else None)
        return [cast(Matrix, made[first]) for first in firsts]

    def to(self, device: Device, *, storage: str | None = None) -> Matrix:
        here = device is self._placement and storage is None
        return self if here else self.gather().to(device, storage=storage)

    def _become(self, other: Matrix) -> None:
        assert isinstance(other, DistributedMatrix)
        self._check_written()
        view = self._living_view()
        if view is not None:  # it stays the transpose of what was here
            view._follow(self._with(lambda k, shard: shard, self.symmetric))
        self.__init__(other.nrows, other.ncols, other.shards, other.device)  # type: ignore[misc]
        self.symmetric = other.symmetric

    def _with(self, function: Callable[..., Matrix], symmetric: bool | None) -> DistributedMatrix:
        shards = self._placement.map(function, self.shards)
        return DistributedMatrix(
            self.nrows, self.ncols, shards, self._placement, symmetric=symmetric
        )

    # --- export -----------------------------------------------------------------------------------

    def to_coo(self) -> tuple[Array, Array, Array]:
        return self.gather().to_coo()

    def to_dense(self, fill: Scalar = 0) -> Array:
        return self.gather().to_dense(fill)

    def to_scipy(self, *, copy: bool = True) -> Any:
        flags("to_scipy", copy=copy)
        return self.gather().to_scipy(copy=copy)

    def to_cupyx(self, *, copy: bool = True) -> Any:
        flags("to_cupyx", copy=copy)
        return self.gather().to_cupyx(copy=copy)

    def _matches(self, other: Matrix, check_dtype: bool, same: Callable[..., Array]) -> bool:
        return shards_match(self, other, Matrix, check_dtype, same)

    # --- copying, pickling and printing -----------------------------------------------------------

    def __copy__(self) -> DistributedMatrix:
        """`dup`, as the copies of copy.copy and copy.deepcopy: a Placement is shared."""
        return self.dup()

    def __deepcopy__(self, memo: dict[int, Any]) -> DistributedMatrix:
        return self.dup()

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a distributed Matrix does not pickle; .gather() makes one that does")

    def _describe(self) -> display.Shown:
        # no communication here: perhaps only one process prints
        facts = [str(self.dtype) + (" iso" if self.iso else ""), str(self.device)]
        facts += ["symmetric"] if self.symmetric else []
        facts += [f"{display.size_of(self.nbytes)} here"]
        return display.Shown(f"Matrix {self.nrows}x{self.ncols}", facts)


class GraphPartition:
    """Which shard owns which row of a distributed Matrix, and a report of the costs."""

    def __init__(self, A: DistributedMatrix) -> None:
        self._matrix = A
        self.vertices: Partition = A.device.partition(A.nrows)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of rows that each shard owns."""
        return self.vertices.sizes

    def owner(self, ids: Sequence[int] | Array) -> Array:
        """The number of the shard that owns each of these rows."""
        return self.vertices.owner(self.vertices.to_internal(ids))

    def report(self) -> Report:
        """Vertices, edges, bytes and borders of every shard. Every process has to call it."""
        A = self._matrix
        placement: Placement = A.device
        columns = placement.partition(A.ncols)

        def row(k: int, shard: Matrix) -> np.ndarray:
            across = border(columns.to_internal(shard._indices), columns, placement.local[k])
            return np.array([shard.nvals, shard.nbytes, *across], np.int64)

        table = np.zeros((placement.num_shards, 2 + placement.num_shards), np.int64)
        table[placement.local.start : placement.local.stop] = placement.map(row, A.shards)
        found = placement.communicator.all_reduce_host(table.ravel(), "sum").reshape(table.shape)
        return Report(np.array(self.sizes, np.int64), found[:, 0], found[:, 1], found[:, 2:])

    def __repr__(self) -> str:
        return f"GraphPartition(sizes={self.sizes})"


def _fingerprint(A: Matrix, partition: Partition) -> int:
    """A hash of A's shape, types and about a thousand elements of each of its arrays, and of who
    owns which row.
    """
    facts = (A.shape, A.nvals, A.dtype, A.iso, partition.checksum)
    found = zlib.crc32(repr(facts).encode())
    for array in (A.indptr, A.indices, A.values):
        with on_device(A.device):
            some = move(array[:: 1 + array.size // SAMPLE], "cpu")
        found = zlib.crc32(some.tobytes(), found)
    return found


def _column_counts(A: DistributedMatrix) -> DistributedVector:
    """The number of entries in each column of A."""
    placement, partition = A.device, A.device.partition(A.ncols)
    kind = index_dtype(A.nrows)

    def own(k: int, shard: Matrix) -> Array:
        xp = array_module(shard._indices)
        counts = xp.bincount(shard._indices, minlength=A.ncols).astype(kind, copy=False)
        if partition.ids is None:
            return counts
        return counts[partition.user_ids(shard.device)]

    counts = placement.map(own, A.shards)
    summed = placement.communicator.reduce_scatter(counts, partition.sizes, "sum")
    return DistributedVector(A.ncols, [Vector._of(x.size, x) for x in summed], placement)
