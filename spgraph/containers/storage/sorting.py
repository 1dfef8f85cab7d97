"""Sorting by small keys."""

from __future__ import annotations

import numpy as np

from spgraph.containers.storage.arrays import Array, array_module, is_cuda

FEW = 256  # keys below which NumPy finds their order at once as fast as 16 bits at a time


def order_of(keys: Array) -> Array:
    """The positions that sort integer keys, none below 0, equal ones in the order given: NumPy's
    stable sort of 16 bits is a radix sort, several times as fast as its others.
    """
    if is_cuda(keys) or keys.size < FEW:
        return array_module(keys).argsort(keys, kind="stable")
    order = keys.astype(np.uint16).argsort(kind="stable")
    for low in range(16, int(keys.max()).bit_length(), 16):
        order = order.take((keys >> low).astype(np.uint16).take(order).argsort(kind="stable"))
    return order
