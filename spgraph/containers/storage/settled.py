"""Arrays on a GPU that are kept for later calls: they are complete when others can find them."""

from __future__ import annotations

from spgraph.containers.annotations import Device
from spgraph.containers.storage.arrays import on_device


def settle(device: Device) -> None:
    """Wait until a GPU (a full name) has done what its current stream was given; no wait for others
    than single devices.

    Whoever makes an array for itself need not wait: what follows on the stream is behind it. But
    what is kept may be found by another thread, whose stream is another one.
    """
    if isinstance(device, str) and device != "cpu":
        with on_device(device) as cupy:
            cupy.cuda.get_current_stream().synchronize()
