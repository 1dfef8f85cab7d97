"""Random numbers for the vertices: the same on every device."""

from __future__ import annotations

import numpy as np
from fixtures_device import device  # noqa: F401

from spgraph.algorithms.random_words import random_words
from spgraph.containers.arrays import check_device


def test_words_are_distinct_and_look_random(device: str) -> None:
    place = check_device(device)
    drawn = [random_words("", seed, 10_000, place).to_numpy().tolist() for seed in (0, 1)]
    words = np.array(drawn, np.uint64).ravel()
    assert len(set(words.tolist())) == 20_000
    ones = np.unpackbits(words.view(np.uint8)).mean()
    assert abs(ones - 0.5) < 0.005
    assert drawn[0] == random_words("", 0, 10_000, "cpu").to_numpy().tolist()
