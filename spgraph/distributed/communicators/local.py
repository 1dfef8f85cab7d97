"""LocalCommunicator: all shards are in this process, which copies between their devices."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np

from spgraph.containers.storage.arrays import Array, check_device, device_of, on_device
from spgraph.distributed.communicators.protocol import (
    Op,
    check_matrix,
    check_op,
    check_own_sizes,
    check_parts,
    check_root,
    check_sizes,
    check_slices,
    check_sources,
    check_values,
    flat,
    fold,
    split,
)
from spgraph.distributed.communicators.readback import Readback


class LocalCommunicator:
    """A `Communicator` of one process: any number of shards on the CPU or on GPUs, also several on
    one GPU.

    Copies between two GPUs go straight from one to the other where they can reach each other.

    >>> import numpy as np
    >>> from spgraph.distributed import LocalCommunicator
    >>> with LocalCommunicator(2) as communicator:
    ...     communicator.all_gather([np.array([1, 2]), np.array([3])])[1]
    array([1, 2, 3])

    Errors: ValueError for less than one shard, for devices that are not one a shard, and for a
    mixture of CPU and GPUs; BackendUnavailable for a device that does not exist.
    """

    name = "local"
    processes = 1
    rank = 0
    peak_bytes = 0

    def __init__(self, shards: int, devices: Sequence[str] | None = None) -> None:
        if shards < 1:
            raise ValueError(f"LocalCommunicator: shards: expected at least 1, got {shards}")
        names = ["cpu"] * shards if devices is None else [check_device(name) for name in devices]
        if len(names) != shards:
            raise ValueError(
                f"LocalCommunicator: devices: expected one a shard, {shards}, got {len(names)}"
            )
        if "cpu" in names and len(set(names)) > 1:
            raise ValueError(f"LocalCommunicator: devices: a CPU beside GPUs: {names}")
        self.num_shards = shards
        self.local = range(shards)
        self.devices = tuple(names)
        self.bytes_sent = 0
        self.calls = 0
        self._gpus = [] if "cpu" in names else sorted(set(names))
        self._events = [self._event(device) for device in self._gpus]
        self._readback = Readback(self.devices)

    def all_gather(
        self, parts: Sequence[Array], *, sizes: Sequence[int] | None = None
    ) -> list[Array]:
        """All parts joined; shards on one device get the same array. See `Communicator`."""
        check_parts("all_gather", parts, self.devices)
        if sizes is not None:
            found = check_sizes("all_gather", sizes, self.num_shards)
            check_own_sizes("all_gather", parts, found, self.local)
        self._count((self.num_shards - 1) * sum(part.nbytes for part in parts))
        with self._ordered(parts) as flat:
            joined = {device: _joined(flat, device) for device in set(self.devices)}
        return [joined[device] for device in self.devices]

    def all_to_all(
        self, parts: Sequence[Sequence[Array]], *, sizes: Sequence[Sequence[int]] | None = None
    ) -> list[list[Array]]:
        """result[k][p] is a copy of parts[p][k]. See `Communicator`."""
        check_matrix("all_to_all", parts, self.devices, self.num_shards)
        if sizes is not None:
            check_sources("all_to_all", parts, sizes, self.num_shards, self.local)
        self._count(
            sum(part.nbytes for k, row in enumerate(parts) for q, part in enumerate(row) if q != k)
        )
        columns = [row[k] for k in self.local for row in parts]
        with self._ordered(columns) as flat:
            received = [flat[k * self.num_shards : (k + 1) * self.num_shards] for k in self.local]
            joined = [_joined(*pair) for pair in zip(received, self.devices, strict=True)]
        return [
            split(array, [piece.size for piece in pieces])
            for array, pieces in zip(joined, received, strict=True)
        ]

    def all_reduce(self, parts: Sequence[Array], op: Op) -> list[Array]:
        """The reduction; shards on one device get the same array. See `Communicator`."""
        dtype = check_parts("all_reduce", parts, self.devices, dimensions=None)
        check_op("all_reduce", op, dtype)
        shapes = {part.shape for part in parts}
        if len(shapes) > 1:
            raise ValueError(f"all_reduce: expected parts of one shape, got {sorted(shapes)}")
        self._count((self.num_shards - 1) * sum(part.nbytes for part in parts))
        shape = parts[0].shape
        with self._ordered(parts) as flat:
            reduced = {device: _folded(flat, device, op) for device in set(self.devices)}
        return [reduced[device].reshape(shape) for device in self.devices]

    def reduce_scatter(self, parts: Sequence[Array], sizes: Sequence[int], op: Op) -> list[Array]:
        """Slice q of the reduction for shard q. See `Communicator`."""
        dtype = check_parts("reduce_scatter", parts, self.devices)
        check_op("reduce_scatter", op, dtype)
        found = check_slices("reduce_scatter", parts, sizes, self.num_shards)
        self._count((self.num_shards - 1) * sum(found) * dtype.itemsize)
        with self._ordered(parts) as flat:
            slices = [split(part, found) for part in flat]
            return [
                _folded([row[q] for row in slices], device, op)
                for q, device in enumerate(self.devices)
            ]

    def broadcast(self, array: Array | None, root: int) -> list[Array]:
        """Copies of `array`, one a device. See `Communicator`."""
        check_root("broadcast", array, root, self.num_shards, self.local)
        check_parts("broadcast", [array], self.devices[root : root + 1], dimensions=None)
        assert array is not None
        self._count((self.num_shards - 1) * array.nbytes)
        with self._ordered([array]) as flat:
            copies = {device: _joined(flat, device) for device in set(self.devices)}
        return [copies[device].reshape(array.shape) for device in self.devices]

    def together(self, name: str, sent: int) -> contextlib.AbstractContextManager[Self]:
        """One after the other: copies have no launch to share. See `Communicator`."""
        return contextlib.nullcontext(self)

    def all_reduce_host(self, values: np.ndarray, op: Op) -> np.ndarray:
        """A copy of `values`: there is one process."""
        self._count(0)
        return check_values("all_reduce_host", values, op).copy()

    def fetch(self, arrays: Sequence[Array]) -> list[np.ndarray]:
        """Host copies. See `Communicator`."""
        check_parts("fetch", arrays, self.devices, dimensions=None)
        if not self._gpus:
            return [array.copy() for array in arrays]
        return self._readback.fetch(arrays, lambda event, _: event.synchronize())

    def tag_graph(self, fingerprint: int) -> None:
        """Nothing to compare: there is one process."""

    def synchronize(self) -> None:
        """Nothing to wait for: later work on a device follows the copies in its stream."""

    def check(self) -> None:
        """Nothing to check: a copy that fails raises."""

    def close(self) -> None:
        """Nothing has to be waited for: the copies in flight belong to the streams."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _count(self, sent: int) -> None:
        self.calls += 1
        self.bytes_sent += sent

    @staticmethod
    def _event(device: str) -> Any:
        with on_device(device) as cupy:
            return cupy.cuda.Event(disable_timing=True)

    @contextlib.contextmanager
    def _ordered(self, parts: Sequence[Array]) -> Iterator[list[Array]]:
        """`parts` as 1-D arrays, for copies inside of the context, which run on the stream of their
        target. That stream first waits for those of the sources; after the copies they wait for
        it, so that no source is overwritten or freed before it is copied.
        """
        pieces = [flat(part) for part in parts]
        self._order_streams()
        yield pieces
        self._order_streams()

    def _order_streams(self) -> None:
        """Every GPU's current stream waits for those of the others. The host does not wait."""
        if len(self._events) < 2:
            return
        for device, event in zip(self._gpus, self._events, strict=True):
            with on_device(device) as cupy:
                event.record(cupy.cuda.get_current_stream())
        for device in self._gpus:
            with on_device(device) as cupy:
                stream = cupy.cuda.get_current_stream()
                for other, event in zip(self._gpus, self._events, strict=True):
                    if other != device:
                        stream.wait_event(event)


def _joined(pieces: Sequence[Array], device: str) -> Array:
    """A new array on `device` of all `pieces`, wherever they are: 1-D and contiguous."""
    if device == "cpu":
        return np.concatenate(pieces)
    with on_device(device) as cupy:
        sizes = [piece.size for piece in pieces]
        result = cupy.empty(sum(sizes), pieces[0].dtype)
        for piece, target in zip(pieces, split(result, sizes), strict=True):
            target.data.copy_from_device_async(piece.data, piece.nbytes)
    return result


def _folded(pieces: Sequence[Array], device: str, op: Op) -> Array:
    """The reduction of `pieces`, wherever they are, in their order; a new array on `device`."""
    with on_device(device):
        return fold(
            [piece if device_of(piece) == device else _joined([piece], device) for piece in pieces],
            op,
        )
