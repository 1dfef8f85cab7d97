"""DistributedVector: a Vector whose entries are spread over the shards of a Placement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from spgraph.containers import Vector, display
from spgraph.containers.arrays import array_module, on_device
from spgraph.containers.values import check_others
from spgraph.distributed.containers.placement import Entry, Placement
from spgraph.distributed.exchange.collectives import replicate
from spgraph.distributed.exchange.coordinates import owned_part
from spgraph.errors import BackendMismatch, DomainMismatch


class DistributedVector(Vector):
    """A Vector in shards: shard p holds the entries of the positions that it owns, counted from 0
    in the order of their ids.

    Everything that takes a Vector takes it, beside others of the same Placement; it has no arrays
    of its own to look at. `gather()` brings it home. What asks for all entries (`nvals`,
    `to_numpy`, `isequal`, ...) is a question to every process.

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 1, 1, 2], [1, 0, 2, 1]).distribute(2)
    >>> sg.bfs(A, 0).level.gather().to_numpy().tolist()
    [0, 1, 2]
    """

    __slots__ = ("_in_flight", "_placement", "entry", "shards")

    def __init__(self, size: int, shards: list[Vector], placement: Placement) -> None:
        self.size = size
        self.shards = shards
        self.entry: Entry | None = None
        self._in_flight: list[Vector] | None = None
        self._placement = placement
        self._nvals = None

    @classmethod
    def single_entry(cls, size: int, entry: Entry, placement: Placement) -> DistributedVector:
        """The Vector with one entry: it has no shards until somebody looks at them."""
        v = cls.__new__(cls)
        v.size, v.entry, v._placement, v._nvals = size, entry, placement, 1
        v._in_flight = None
        return v

    @classmethod
    def in_flight(cls, size: int, shards: list[Vector], placement: Placement) -> DistributedVector:
        """What kernels are still at work on, which may fail: who looks at the shards waits for the
        number of their entries, which raises then.
        """
        v = cls.__new__(cls)
        v.size, v.entry, v._placement, v._nvals = size, None, placement, None
        v._in_flight = shards
        return v

    @classmethod
    def spread(cls, v: Vector, placement: Placement) -> DistributedVector:
        """The entries of v, which every process has, each in the shard that owns it."""
        partition = placement.partition(v.size)

        with on_device(v.device):
            cut = [owned_part(v, partition, p) for p in placement.local]
        moved = placement.map(lambda k, shard: shard.to(placement.devices[k])._conform(), cut)
        return cls(v.size, moved, placement)

    # --- what it is -------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name == "shards":
            if (entry := self.entry) is not None:
                self.shards = self._placement.shards_of_single_entry(self.size, entry)
                self.entry = None  # who has the shards may write them
            else:
                shards = self._in_flight
                assert shards is not None
                for shard in shards:
                    _ = shard.nvals
                self.shards = shards
            return self.shards
        if name in ("values", "indices", "bits"):
            raise AttributeError(
                f"a distributed Vector has no {name!r} on one device; .gather() brings it home"
            )
        raise AttributeError(f"'DistributedVector' object has no attribute {name!r}")

    @property
    def unchecked(self) -> list[Vector]:
        """The shards as they are, for kernels that go on with what others are still at work on:
        whatever comes of it is void unless `shards` gives them afterwards.
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
    def partition(self) -> Any:
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
        """What `conform` would choose for the whole."""
        if self.nvals == self.size:
            return "full"
        return "sparse" if self.nvals * 32 < self.size else "bitmap"

    @property
    def nbytes(self) -> int:
        """Bytes of the shards of this process."""
        return sum(shard.nbytes for shard in self.unchecked)

    # --- the same entries -------------------------------------------------------------------------

    def to_sparse(self) -> DistributedVector:
        return self._with(lambda k, v: _apart(v, v.to_sparse()))

    def to_bitmap(self) -> DistributedVector:
        return self._with(lambda k, v: _apart(v, v.to_bitmap()))

    def _conform(self) -> DistributedVector:
        return self._with(lambda k, v: _apart(v, v._conform()))

    def dup(self, dtype: Any = None) -> DistributedVector:
        return self._with(lambda k, v: v.dup(dtype))

    copy = dup

    def _with_values(self, function: Callable[..., Any], *others: Any) -> DistributedVector:
        check_others(self, others)
        return self._with(
            lambda k, v, *more: v._with_values(function, *more), *(other.shards for other in others)
        )

    def _total(self, function: Callable[..., Any] | None = None) -> Any:
        if self.storage != "full":
            raise DomainMismatch(f"total: expected a full Vector, got a {self.storage} one")

        def own(k: int, v: Vector) -> Any:
            return array_module(v._values).reshape(v.to_bitmap()._total(function), 1)

        comm = self._placement.communicator
        sums = comm.all_reduce(self._placement.map(own, self.shards), "sum")
        return comm.fetch(sums)[0][0]

    def _value_range(self) -> tuple[Any, Any]:
        if self.entry is not None:
            value = self.entry.dtype.type(self.entry.value).item()
            return value, value
        return extent_of_shards(self)

    def gather(self, device: str = "cpu") -> Vector:
        """A plain Vector of all entries on `device`, in every process."""
        whole = replicate(self)[0]
        self._placement.communicator.synchronize()
        made = whole.to(device)
        return made.dup() if made is whole else made

    def to(self, device: Any) -> Vector:
        if device is self._placement:
            return self
        whole = self.gather()
        return whole.to(device)

    def _become(self, other: Any) -> None:
        self.size, self.shards, self._placement = other.size, other.shards, other.device
        self.entry, self._nvals, self._in_flight = None, other._nvals, None

    def _with(self, function: Callable[..., Vector], *lists: Sequence[Vector]) -> DistributedVector:
        placement = self._placement
        return DistributedVector(self.size, placement.map(function, self.shards, *lists), placement)

    # --- the way out ------------------------------------------------------------------------------

    def to_coo(self) -> tuple[Any, Any]:
        return self.gather().to_coo()

    def to_cupy(self, fill: Any = None) -> Any:
        return self.gather().to_cupy(fill)

    def _dense(self, fill: Any) -> Any:
        return self.gather()._dense(fill)

    def __dlpack_device__(self) -> Any:
        return self.gather().__dlpack_device__()

    def _matches(self, other: Any, check_dtype: bool, same: Any) -> bool:
        if not isinstance(other, Vector):
            raise DomainMismatch(f"other: expected a Vector, got {type(other).__name__}")
        if other.device is not self._placement:
            raise BackendMismatch(
                f"other is on {other.device}, the Vector on {self.device}; .gather() brings it home"
            )
        if self.size != other.size or (check_dtype and self.dtype != other.dtype):
            return False
        equal = self._placement.map(
            lambda k, u, v: Vector._matches(u, v, False, same),
            self.shards,
            cast(Any, other).shards,
        )
        return self._placement.total([not each for each in equal]) == 0

    # --- for Python and people --------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a distributed Vector does not pickle; .gather() makes one that does")

    def _describe(self) -> tuple[str, list[str], list[tuple[Any, ...]], int]:
        # nothing here may ask another process: only one of them may be printing
        facts = [str(self.dtype), str(self.device), f"{display.size_of(self.nbytes)} here"]
        return f"Vector {self.size}", facts, [], 0


def extent_of_shards(container: Any) -> tuple[Any, Any]:
    """(least, greatest) value of the entries of all shards; (0, 0) where there is none."""
    placement, dtype = container.device, container.dtype
    if placement.communicator.processes == 1:
        ends = []
        for device, shard in zip(placement.devices, container.shards, strict=True):
            with on_device(device):
                ends += [shard._value_range()] if shard.nvals else []
        placement.communicator.check()
        return _ends(np.array(ends, dtype))

    def own(k: int, shard: Any) -> Any:
        with on_device(placement.devices[k]) as xp:
            return xp.asarray(shard._value_range() if shard.nvals else (), dtype)

    comm = placement.communicator
    return _ends(comm.fetch(comm.all_gather(placement.map(own, container.shards)))[0])


def _ends(found: np.ndarray) -> tuple[Any, Any]:
    return (found.min().item(), found.max().item()) if found.size else (0, 0)


def _apart(v: Vector, made: Vector) -> Vector:
    """`made`, or a copy where it is v itself: whether a shard already was so differs from shard to
    shard, and what is written to the one Vector must not show in half of the other.
    """
    return made.dup() if made is v else made
