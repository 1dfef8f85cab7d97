"""Memory that several GPUs of one process write, as loops over shards use it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol


class Buffers(Protocol):
    """What loops ask of `PeerBuffers` of a backend: one allocation on each device, which kernels on
    all of them write.

    Only one loop uses any of them at a time: it holds `lock`, and what it launches runs after what
    the loop before has launched.
    """

    devices: tuple[int, ...]

    @property
    def lock(self) -> threading.RLock:
        """The lock of the process."""

    def reserve(self, layout: object, sizes: Sequence[int]) -> list[int]:
        """The address of at least `sizes[p]` bytes on device p. They are as the last loop left them
        if `layout` is its layout, and zero otherwise.
        """

    def forget(self) -> None:
        """After a failure: the next loop finds zeros."""

    def barrier(self) -> None:
        """Order the devices' current streams: what is launched from now on runs after all work that
        any of them has by now. The host does not wait.
        """

    def hand_over(self) -> None:
        """Let the next holder of `lock` run after all work that the current streams have by now."""
