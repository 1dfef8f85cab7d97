"""DistributedVector: a Vector whose entries are divided among the shards of a Placement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from spgraph.containers import Matrix, Vector
from spgraph.containers.annotations import Device, DType, Scalar
from spgraph.containers.methods import display
from spgraph.containers.storage.arrays import Array, array_module, index_dtype, on_device
from spgraph.containers.storage.values import check_others
from spgraph.distributed.containers.partition import Partition
from spgraph.distributed.containers.placement import Entry, Placement
from spgraph.distributed.exchange.collectives import replicate
from spgraph.distributed.exchange.coordinates import owned_part
from spgraph.distributed.exchange.notes import facts_of, note
from spgraph.errors import BackendMismatch, DomainMismatch

if TYPE_CHECKING:
    from spgraph.distributed.containers.matrix import DistributedMatrix


class DistributedVector(Vector):
    """A Vector in shards. Shard p is a Vector of the positions that it owns, numbered from 0 in the
    order of their ids.

    Everything that takes a Vector takes it together with other containers of the same Placement. It
    has no arrays on one device: `gather()` makes a plain Vector. What needs all entries (`nvals`,
    `to_numpy`, `isequal`, ...) communicates, so that every process has to call it.

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 1, 1, 2], [1, 0, 2, 1]).distribute(2)
    >>> sg.bfs(A, 0).level.gather().to_numpy().tolist()
    [0, 1, 2]
    """

    __slots__ = ("_in_flight", "_placement", "entry", "made", "shards")

    def __init__(
        self,
        size: int,
        shards: list[Vector],
        placement: Placement,
        *,
        in_flight: bool = False,
    ) -> None:
        """`in_flight`: kernels are still computing the shards. The first access to `shards` waits
        for the numbers of entries, and raises if a kernel has failed.
        """
        self.size, self._placement, self._nvals = size, placement, None
        # after which calls: alike in all processes, and another for most other Vectors
        self.made: tuple[Any, ...] = placement.communicator.calls, placement.communicator.noted
        self.entry: Entry | None = None
        self._in_flight = shards if in_flight else None
        if not in_flight:
            self.shards = shards

    @classmethod
    def single_entry(cls, size: int, entry: Entry, placement: Placement) -> DistributedVector:
        """The Vector with only this entry; its shards are made when they are first needed."""
        v = cls(size, [], placement, in_flight=True)
        v.entry, v._in_flight, v._nvals = entry, None, 1
        v.made = (*v.made, entry.owner, entry.place, entry.dtype.type(entry.value))
        return v

    @classmethod
    def spread(cls, v: Vector, placement: Placement) -> DistributedVector:
        """v, which every process has, divided among the shards."""
        partition = placement.partition(v.size)
        if placement.communicator.processes > 1:
            note(placement, "a Vector to all shards", *facts_of(v))
        with on_device(v.device):
            cut = [owned_part(v, partition, p) for p in placement.local]
        # by this thread, which knows the stream that makes them
        moved = [part.to(device) for part, device in zip(cut, placement.devices, strict=True)]
        return cls(v.size, placement.map(lambda k, part: part._conform(), moved), placement)

    # --- what it is -------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name == "shards":
            entry, shards = self.entry, self._in_flight
            if entry is not None:
                self.shards = self._placement.shards_of_single_entry(self.size, entry)
                self.entry = None  # shards may be written from now on
            elif shards is not None:  # else another thread has just made them
                for shard in shards:
                    _ = shard.nvals
                self.shards = shards
            return self.shards
        if name in ("values", "indices", "bits"):
            raise AttributeError(
                f"a distributed Vector has no {name!r} on one device; .gather() makes a plain one"
            )
        raise AttributeError(f"'DistributedVector' object has no attribute {name!r}")

    @property
    def unchecked(self) -> list[Vector]:
        """The shards without a check whether kernels that compute them have failed: for kernels
        that read them. Their results are valid only if `shards` does not raise afterwards.
        """
        return self._in_flight or self.shards

    @property
    def dtype(self) -> np.dtype:
        entry = self.entry
        return self.unchecked[0].dtype if entry is None else entry.dtype

    @property
    def device(self) -> Placement:
        """The Placement."""
        return self._placement

    @property
    def partition(self) -> Partition:
        """Which shard owns which position."""
        return self._placement.partition(self.size)

    @property
    def nvals(self) -> int:
        if self._nvals is None:
            counts = self._placement.map(lambda k, v: v.nvals, self.shards)
            self._nvals = self._placement.total(counts)
        return cast(int, self._nvals)

    @property
    def storage(self) -> str:
        """'full', 'sparse' or 'bitmap': the storage that a plain Vector of these entries has."""
        if self.nvals == self.size:
            return "full"
        return "sparse" if self.nvals * 32 < self.size else "bitmap"

    @property
    def nbytes(self) -> int:
        """Bytes of the local shards."""
        if (entry := self.entry) is None:
            return sum(shard.nbytes for shard in self.unchecked)
        # its shards are not made here: perhaps only one process asks, and loops look at `entry`
        if entry.owner not in self._placement.local:
            return 0
        ids = index_dtype(self.partition.sizes[entry.owner])
        return entry.dtype.itemsize + ids.itemsize

    # --- the same entries -------------------------------------------------------------------------

    def to_sparse(self) -> DistributedVector:
        return self._with(lambda k, v: _distinct(v, v.to_sparse()))

    def to_bitmap(self) -> DistributedVector:
        return self._with(lambda k, v: _distinct(v, v.to_bitmap()))

    def _conform(self) -> DistributedVector:
        return self._with(lambda k, v: _distinct(v, v._conform()))

    def dup(self, dtype: DType | None = None) -> DistributedVector:
        return self._with(lambda k, v: v.dup(dtype))

    copy = dup

    def _by_shards(
        self, function: Callable[[Vector, Vector], tuple[Vector, Vector]], other: Vector
    ) -> tuple[DistributedVector, DistributedVector]:
        others = cast(DistributedVector, other).shards
        pairs = self._placement.map(lambda k, u, v: function(u, v), self.shards, others)
        first, second = (list(each) for each in zip(*pairs, strict=True))
        size, placement = self.size, self._placement
        return DistributedVector(size, first, placement), DistributedVector(size, second, placement)

    def _with_values(self, function: Callable[..., Array], *others: Vector) -> DistributedVector:
        check_others(self, others)
        note(self._placement, "a function of values", self, function, *others)
        lists = [cast(DistributedVector, other).shards for other in others]
        return self._with(lambda k, v, *more: v._with_values(function, *more), *lists)

    def _total(self, function: Callable[[Array], Array] | None = None) -> np.generic:
        if self.nvals != self.size:
            raise DomainMismatch(
                f"_total: expected a full Vector, got one of {self.size} with {self.nvals} entries"
            )

        def own(k: int, v: Vector) -> Array:
            return array_module(v._values).reshape(v.to_bitmap()._total(function), 1)

        comm = self._placement.communicator
        sums = comm.all_reduce(self._placement.map(own, self.shards), "sum")
        return comm.fetch(sums)[0][0]

    def _value_range(self) -> tuple[float, float]:
        if (entry := self.entry) is not None:
            value = entry.dtype.type(entry.value).item()
            return value, value
        return extent_of_shards(self)

    def gather(self, device: str = "cpu") -> Vector:
        """A plain Vector of all entries on `device`, in every process."""
        whole = replicate(self)[0]
        self._placement.communicator.synchronize()
        made = whole.to(device)
        return made.dup() if made is whole else made

    def to(self, device: Device) -> Vector:
        if device is self._placement:
            return self
        whole = self.gather()
        return whole.to(device)

    def _become(self, other: Vector) -> None:
        assert isinstance(other, DistributedVector)
        self.size, self.shards, self._placement = other.size, other.shards, other.device
        self.entry, self._nvals, self._in_flight = None, other._nvals, None
        self.made = other.made

    def _with(self, function: Callable[..., Vector], *lists: Sequence[Vector]) -> DistributedVector:
        placement = self._placement
        return DistributedVector(self.size, placement.map(function, self.shards, *lists), placement)

    # --- export -----------------------------------------------------------------------------------

    def to_coo(self) -> tuple[Array, Array]:
        return self.gather().to_coo()

    def to_cupy(self, fill: Scalar | None = None) -> Array:
        return self.gather().to_cupy(fill)

    def _dense(self, fill: Scalar | None) -> Array:
        return self.gather()._dense(fill)

    def _matches(self, other: Vector, check_dtype: bool, same: Callable[..., Array]) -> bool:
        return shards_match(self, other, Vector, check_dtype, same)

    # --- copying, pickling and printing -----------------------------------------------------------

    def __deepcopy__(self, memo: dict[int, Any]) -> DistributedVector:
        """`dup`, as copy.copy: a Placement is shared."""
        return self.dup()

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a distributed Vector does not pickle; .gather() makes one that does")

    def _describe(self) -> display.Shown:
        # no communication here: perhaps only one process prints
        facts = [str(self.dtype), str(self.device), f"{display.size_of(self.nbytes)} here"]
        return display.Shown(f"Vector {self.size}", facts)


def shards_match(
    container: DistributedVector | DistributedMatrix,
    other: object,
    kind: type[Vector | Matrix],
    check_dtype: bool,
    same: Callable[..., Array],
) -> bool:
    """As `_matches` of the containers of `kind`: whether all entries do, in all processes."""
    placement, name = container.device, kind.__name__
    if not isinstance(other, kind):
        raise DomainMismatch(f"other: expected a {name}, got {type(other).__name__}")
    if other.device is not placement:
        raise BackendMismatch(
            f"other is on {other.device}, the {name} on {placement}; .gather() makes a plain one"
        )
    if container.shape != other.shape or (check_dtype and container.dtype != other.dtype):
        return False
    note(placement, "a comparison", container, other, same)
    pairs: Any = container.shards, other.shards  # type: ignore[union-attr]
    found = placement.map(lambda k, a, b: kind._matches(a, b, False, same), *pairs)
    return placement.total([not each for each in found]) == 0


def extent_of_shards(container: DistributedVector | DistributedMatrix) -> tuple[float, float]:
    """(least, greatest) value of the entries of all shards; (0, 0) if there is no entry."""
    placement, dtype = container.device, container.dtype
    shards: Sequence[Vector | Matrix] = container.shards
    comm = placement.communicator
    ends = comm.on_each(lambda xp, own: own._value_range() if own.nvals else (), shards)
    found = np.array([end for pair in ends for end in pair], dtype)
    if comm.processes > 1:
        parts = comm.on_each(lambda xp, pair: xp.asarray(pair, dtype), ends)
        found = comm.fetch(comm.all_gather(parts))[0]
    comm.check()
    return (found.min().item(), found.max().item()) if found.size else (0, 0)


def _distinct(v: Vector, converted: Vector) -> Vector:
    """`converted`, or a copy if it is v itself. Conversions return v where nothing has to change,
    which differs from shard to shard; writes to one distributed Vector must not appear in a part
    of the other.
    """
    return converted.dup() if converted is v else converted
