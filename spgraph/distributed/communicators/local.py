"""LocalCommunicator: all shards are in this process, which copies between their devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spgraph.containers.storage.arrays import Array, device_of, on_device
from spgraph.containers.storage.numbers import is_integer
from spgraph.distributed.communicators.checks import (
    Op,
    Pieces,
    Table,
    check_devices,
    check_most,
)
from spgraph.distributed.communicators.communicator import Communicator, fold, split


class LocalCommunicator(Communicator):
    """A `Communicator` of one process: any number of shards on the CPU or on GPUs, also several on
    one GPU.

    Copies between two GPUs go straight from one to the other where they can reach each other.

    >>> import numpy as np
    >>> from spgraph.distributed import LocalCommunicator
    >>> with LocalCommunicator(2) as communicator:
    ...     communicator.all_gather([np.array([1, 2]), np.array([3])])[1]
    array([1, 2, 3])

    Errors: ValueError for shards that are no integer from 1 to 1,024, for devices that are not one
    a shard, and for a mixture of CPU and GPUs; DomainMismatch for what is no list;
    BackendUnavailable for a device that does not exist.
    """

    name = "local"

    def __init__(self, shards: int, devices: Sequence[str] | None = None) -> None:
        if not is_integer(shards) or shards < 1:
            raise ValueError(f"LocalCommunicator: shards: expected an integer >= 1, got {shards!r}")
        shards = int(shards)
        check_most("LocalCommunicator: shards", shards)
        if devices is None:
            names = ["cpu"] * shards
        else:
            names = check_devices("LocalCommunicator", devices)
        if len(names) != shards:
            raise ValueError(
                f"LocalCommunicator: devices: expected one a shard, {shards}, got {len(names)}"
            )
        if "cpu" in names and len(set(names)) > 1:
            raise ValueError(f"LocalCommunicator: devices: a CPU beside GPUs: {names}")
        super().__init__(shards, range(shards), names)
        self._gpus = [] if "cpu" in names else sorted(set(names))
        self._events: list[Any] = []
        for device in self._gpus:
            with on_device(device) as cupy:
                self._events.append(cupy.cuda.Event(disable_timing=True))

    # --- collectives ------------------------------------------------------------------------------

    # Copies run on the stream of their target. It first waits for those of the sources; after the
    # copies they wait for it, so that no source is overwritten or freed before it is copied.

    def _all_gather(self, parts: Sequence[Array], sizes: Sequence[int]) -> list[Array]:
        self._order_streams()
        joined = {device: _joined(parts, device) for device in set(self.devices)}
        self._order_streams()
        return [joined[device] for device in self.devices]

    def _all_to_all(self, parts: Pieces, sizes: Table, wholes: Sequence[Array]) -> None:
        self._order_streams()
        for pieces, whole, device in zip(
            zip(*parts, strict=True), wholes, self.devices, strict=True
        ):
            _join(pieces, whole, device)
        self._order_streams()

    def _all_reduce(self, parts: Sequence[Array], op: Op) -> list[Array]:
        self._order_streams()
        reduced = {device: _folded(parts, device, op) for device in set(self.devices)}
        self._order_streams()
        return [reduced[device] for device in self.devices]

    def _reduce_scatter(self, parts: Sequence[Array], sizes: Sequence[int], op: Op) -> list[Array]:
        self._order_streams()
        slices = zip(*(split(part, sizes) for part in parts), strict=True)
        reduced = [_folded(*pair, op) for pair in zip(slices, self.devices, strict=True)]
        self._order_streams()
        return reduced

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
    with on_device(device) as xp:
        whole = xp.empty(sum(piece.size for piece in pieces), pieces[0].dtype)
    _join(pieces, whole, device)
    return whole


def _join(pieces: Sequence[Array], whole: Array, device: str) -> None:
    """Copy all `pieces` into `whole`, which is on `device`."""
    if device == "cpu":
        np.concatenate(pieces, out=whole)
        return
    with on_device(device):
        for piece, target in zip(
            pieces, split(whole, [piece.size for piece in pieces]), strict=True
        ):
            target.data.copy_from_device_async(piece.data, piece.nbytes)


def _folded(pieces: Sequence[Array], device: str, op: Op) -> Array:
    """The reduction of `pieces`, wherever they are, in their order; a new array on `device`."""
    with on_device(device):
        return fold(
            [piece if device_of(piece) == device else _joined([piece], device) for piece in pieces],
            op,
        )
