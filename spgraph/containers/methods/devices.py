"""Where the arrays of a container are: moved to another device, or divided among several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from spgraph.containers.annotations import Device
from spgraph.containers.storage.arrays import Array, check_device, move
from spgraph.process import lazy_imports

if TYPE_CHECKING:
    from spgraph.containers.matrix import Matrix
    from spgraph.containers.vector import Vector
    from spgraph.distributed import Communicator, DistributedMatrix


class VectorDevices:
    """How a Vector, whose base this is, is moved."""

    __slots__ = ()

    def to(self: Any, device: Device) -> Vector:
        """The same entries on `device` ('cpu', 'cuda', 'cuda:1'); itself if it is there already.

        A Placement, the `device` of a distributed container, spreads it as that one is.

        >>> import spgraph as sg
        >>> v = sg.Vector.arange(3)
        >>> v.to("cpu") is v
        True
        >>> v.to("cuda").device  # doctest: +SKIP
        'cuda:0'
        """
        if not isinstance(device, str):
            return device.scatter(self)
        device = check_device(device)
        if device == self.device:
            return self
        parts = {
            k: None if a is None else move(a, device)
            for k, a in (("indices", self._indices), ("bits", self._bits))
        }
        from spgraph.containers.vector import Vector

        return Vector._of(self.size, move(self._values, device), nvals=self._nvals, **parts)


class MatrixDevices:
    """How a Matrix, whose base this is, is moved or divided."""

    __slots__ = ()

    def to(self: Any, device: Device, *, storage: str | None = None) -> Matrix:
        """The same matrix on `device` ('cpu', 'cuda', 'cuda:1'); itself if it is there already.

        A Placement, the `device` of a distributed container, spreads it as that one is.
        `storage="host"` is for a matrix larger than the GPU's memory: its entries are copied to
        pinned host memory, and products with vectors and arrays, and the searches, ranks and
        components made of them, stream them to the GPU (`containers.storage.host_matrix.HostMatrix`
        says more). ValueError for another `storage`, or with it for a device that is no GPU.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0], [1])
        >>> A.to("cpu") is A
        True
        >>> A.to("cuda").device  # doctest: +SKIP
        'cuda:0'
        """
        if storage is not None:
            from spgraph.containers.storage.host_matrix import in_host_memory

            return in_host_memory(self, device, storage)
        if not isinstance(device, str):
            return device.scatter(self)
        device = check_device(device)
        if device == self.device:
            return self
        arrays = (move(a, device) for a in (self._indptr, self._indices, self._values))
        from spgraph.containers.matrix import Matrix

        return Matrix._of(self.nrows, self.ncols, *arrays, iso=self.iso, symmetric=self.symmetric)

    def distribute(
        self,
        shards: int,
        *,
        devices: str | Sequence[str] | None = None,
        partition: str | Sequence[int] | Array = "edges",
        communicator: Communicator | None = None,
        exchange: Literal["auto", "nccl", "peer"] = "auto",
    ) -> DistributedMatrix:
        """The same Matrix in `shards` shards of rows (1 to 1,024 a process), which every operation
        and algorithm takes as it takes this one: a DistributedMatrix. Results come in shards, too;
        `.gather()` makes a plain container of one.

        `devices` is "cpu", "cuda" (the GPUs there are, in turn) or a list of names, one for each
        shard; by default shards stay on the CPU or go to as many GPUs as there are. `partition`
        says who owns a row: "edges" (ranges with equal shares of the entries), and for a square
        Matrix "random", "biased" (random, but near the neighbours) or "metis"; or an array with the
        shard of every row. With a `communicator` of several processes
        (`spgraph.distributed.MpiCommunicator`) every process gives the whole Matrix, keeps its own
        shards, and calls the same operations in the same order.

        `exchange` is how GPUs communicate: "nccl", "peer" (they write to each other's memory: those
        of one process, or of several on one host) or "auto": "peer" wherever it can run, and, in
        one process, one of the GPUs alone for loops over graphs like road networks, whose rounds
        cost more than their edges (the logger "spgraph.distributed" says so once a graph). Results
        are the same.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0, 1, 1, 2], [1, 0, 2, 1])
        >>> G = A.distribute(2)
        >>> G.partition.sizes, sg.bfs(G, 0).level.to_numpy().tolist()
        ((1, 2), [0, 1, 2])
        """
        with lazy_imports.whole():
            from spgraph.distributed import distribute

        return distribute(
            self,  # type: ignore[arg-type]
            shards,
            devices=devices,
            partition=partition,
            communicator=communicator,
            exchange=exchange,
        )
