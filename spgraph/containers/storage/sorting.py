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


def order_of_words(words: np.ndarray) -> np.ndarray:
    """The positions that sort integers, none below 0 and no two equal, fast where most differ in
    their highest 32 bits, as random words do.
    """
    if words.size < FEW:
        return words.argsort()
    low = max(int(words.max()).bit_length() - 32, 0)
    high: np.ndarray = (words >> low).astype(np.uint32)
    order = order_of(high)
    high = high.take(order)
    same = high[1:] == high[:-1]
    if same.any():
        unsure = np.append(False, same) | np.append(same, False)
        some = order[unsure]
        order[unsure] = some[words[some].argsort()]
    return order
