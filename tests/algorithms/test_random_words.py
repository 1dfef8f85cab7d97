"""Random numbers for the vertices: the same on every device."""

from __future__ import annotations

import numpy as np
from fixtures_device import device  # noqa: F401

import spgraph as sg
from spgraph.algorithms.random_words import fresh_seed, random_words
from spgraph.containers.storage.arrays import check_device


def test_words_are_distinct_and_look_random(device: str) -> None:
    place = check_device(device)
    drawn = [random_words("", seed, 10_000, place).to_numpy().tolist() for seed in (0, 1)]
    words = np.array(drawn, np.uint64).ravel()
    assert len(set(words.tolist())) == 20_000
    ones = np.unpackbits(words.view(np.uint8)).mean()
    assert abs(ones - 0.5) < 0.005
    assert drawn[0] == random_words("", 0, 10_000, "cpu").to_numpy().tolist()


def test_shards_draw_a_seed_of_their_own(device: str) -> None:
    G = sg.Matrix.empty(100, 100).distribute(2, devices=[device] * 2)
    seeds = {fresh_seed(G.device) for _ in range(8)}
    assert len(seeds) == 8 and all(0 <= seed < 2**63 for seed in seeds)
    first, second = (random_words("", None, 100, G.device) for _ in range(2))
    assert first.device == G.device and not first.isequal(second)
