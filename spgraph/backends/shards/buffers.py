"""Memory that several GPUs write, as loops over shards use it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import ClassVar, Protocol, Self

import numpy as np

from spgraph.containers.storage.arrays import Array, move
from spgraph.errors import CommunicationError


class Buffers(Protocol):
    """What loops ask of a backend's `PeerBuffers` or `ProcessBuffers`: one allocation on the device
    of each shard, which kernels on all of them write. What is said here of other processes does
    nothing where one process has all shards.

    Only one loop uses any of them at a time: it holds `lock`, and what it launches runs after what
    the loop before has launched.
    """

    lock: ClassVar[threading.RLock]  # of the process
    devices: tuple[int, ...]  # of all shards

    @property
    def local(self) -> range:
        """The shards of this process."""
        return range(len(self.devices))

    def another(self) -> Self:
        """Buffers of their own on the same devices."""

    def reserve(self, layout: object, sizes: Sequence[int]) -> list[int]:
        """The address of at least `sizes[p]` bytes on the device of shard p: the same list until
        memory is allocated anew. They are as the last loop left them if `layout` is its layout, and
        zero otherwise.
        """

    def forget(self, reason: str = "an error") -> None:
        """After a failure: the next loop finds zeros. Other processes get CommunicationError, which
        names the reason.
        """

    def barrier(self) -> None:
        """Order the devices' current streams: what is launched from now on runs after all work that
        any of them has by now, and after the work before the last `hand_over`. Called with `lock`
        held, between writes to other devices and reads there. The host does not wait.
        """

    def hand_over(self) -> None:
        """Let the next holder of `lock` run after all work that the current streams have by now."""

    def gather(self, own: np.ndarray) -> np.ndarray:
        """The 1-D arrays of all processes, joined. Every process calls it."""
        return own

    def fetch(self, arrays: Sequence[Array]) -> list[np.ndarray]:
        """Host copies of small arrays, one of each local shard. CommunicationError where a process
        is lost that the kernels wait for.
        """
        return [move(array, "cpu") for array in arrays]

    def check(self) -> None:
        """After a loop whose devices only met at `barrier`: raise CommunicationError where a
        process did not come, for then its results are void. Waits for the devices.
        """
        return None

    def failure(self, message: str) -> CommunicationError:
        """The error to raise where a device has not come to a barrier; other processes get it."""
        self.forget()
        return CommunicationError(message)


@contextlib.contextmanager
def forgotten_on_failure(buffers: Buffers) -> Iterator[None]:
    """`buffers.forget()` where the part of a loop inside fails: other devices may still write, and
    other processes wait for this one, or would take what it launches next for a part of this loop.
    """
    try:
        yield
    except BaseException as error:
        buffers.forget(type(error).__name__)
        raise
