"""The orders of integers against NumPy's own sort."""

from __future__ import annotations

import numpy as np
import pytest

from spgraph.containers.storage.sorting import FEW, order_of, order_of_words

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("size", [0, 1, FEW - 1, FEW, 5000])
@pytest.mark.parametrize("bits", [1, 15, 16, 17, 40, 63])
def test_equal_keys_keep_their_order(size: int, bits: int) -> None:
    keys = RANDOM.integers(0, 1 << bits, size)
    assert np.array_equal(order_of(keys), keys.argsort(kind="stable"))


@pytest.mark.parametrize("size", [0, 1, FEW - 1, FEW, 5000])
@pytest.mark.parametrize("bits", [0, 10, 24, 31])
def test_words_that_differ_in_their_lowest_bits_alone(size: int, bits: int) -> None:
    words = RANDOM.permutation(size).astype(np.uint64) << np.uint64(50 - bits)
    assert np.array_equal(order_of_words(words), words.argsort())
    few = words | np.uint64(1 << 63)  # of which the highest bits are equal
    assert np.array_equal(order_of_words(few), few.argsort())


def test_words_of_all_bits() -> None:
    words = np.unique(RANDOM.integers(0, 2**64 - 1, 100_000, np.uint64, endpoint=True))
    words = RANDOM.permutation(np.append(words[::100] ^ np.uint64(1), words))
    words = RANDOM.permutation(np.unique(words))  # pairs that differ in their last bit
    assert np.array_equal(order_of_words(words), words.argsort())
    signed = (words >> np.uint64(1)).astype(np.int64)
    signed = RANDOM.permutation(np.unique(signed))
    assert np.array_equal(order_of_words(signed), signed.argsort())
