"""Vectors of so many positions that nothing of their size fits into memory."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401

import spgraph as sg
from spgraph import Vector

SIZE = 2**60
PLACES = [0, 5, 31, 32, 77, 2**31, 2**40, 2**59 + 1, SIZE - 1]
Entries = dict[int, int]


def drawn(chance: random.Random, device: str) -> tuple[Vector, Entries]:
    places = sorted(chance.sample(PLACES, chance.randint(0, 6)))
    values = [chance.randint(0, 3) for _ in places]
    arrays = np.array(places, np.int64), np.array(values, np.int64)
    return Vector.from_coo(*arrays, size=SIZE).to(device), dict(zip(places, values, strict=True))


def written(
    w: Entries, t: Entries, mask: Entries, structure: bool, complement: bool, how: tuple[bool, bool]
) -> Entries:
    """w<mask> = w + t, or t, by the rule of GraphBLAS, position by position."""
    accumulate, replace = how
    found = {}
    for i in {*w, *t}:
        allowed = (i in mask and (structure or mask[i] != 0)) != complement
        if not allowed:
            value = None if replace else w.get(i)
        elif accumulate and i in w:
            value = w[i] + t.get(i, 0)
        else:
            value = t.get(i)
        if value is not None:
            found[i] = value
    return found


def entries(v: Any) -> Entries:
    return {int(i): int(x) for i, x in v.to("cpu")}


@pytest.mark.parametrize("seed", range(4))
def test_masked_writes(seed: int, device: str) -> None:
    chance = random.Random(seed)
    for _ in range(60):
        (out, w), (u, t), (v, m) = (drawn(chance, device) for _ in range(3))
        structure, complement, accumulate, replace = (chance.random() < 0.5 for _ in range(4))
        if chance.random() < 0.2:  # a mask of what is written into
            v, m = out, dict(w)
        mask = v.S if structure else v.V
        mask = ~mask if complement else mask
        accum = "plus" if accumulate else None
        sg.apply(u, "identity", mask=mask, out=out, accum=accum, replace=replace)
        assert entries(out) == written(w, t, m, structure, complement, (accumulate, replace))


def test_ways_to_write_a_mask(device: str) -> None:
    u = Vector.from_coo([3, 2**59, SIZE - 1], [1, 2, 3], size=SIZE).to(device)
    v = Vector.from_coo([3, 7, SIZE - 1], [5, 6, 0], size=SIZE).to(device)
    assert entries(sg.ewise_add(u, v, "plus", mask=v.V)) == {3: 6, 7: 6}
    assert entries(u[u > 1]) == {2**59: 2, SIZE - 1: 3}
    w = u.dup()
    w[v.S] = 9
    assert entries(w) == {3: 9, 7: 9, 2**59: 2, SIZE - 1: 9}
    small = sg.apply(
        u, "times", right=100, mask=~v.V, out=Vector.empty(SIZE, np.int16, device=device)
    )
    assert small.dtype == np.int16 and entries(small) == {2**59: 200, SIZE - 1: 300}


def test_products_under_a_mask() -> None:
    A = sg.Matrix.from_coo([0, 1, 1], [3, 7, SIZE - 1], [1, 2, 3], nrows=2, ncols=SIZE)
    v = Vector.from_coo([3, 7], [1, 0], size=SIZE)
    u = sg.Vector([1, 2])
    for mask, kept in ((v.S, {3, 7}), (v.V, {3}), (~v.S, {SIZE - 1}), (~v.V, {7, SIZE - 1})):
        whole = {3: 1, 7: 4, SIZE - 1: 6}
        found = sg.vxm(u, A, "plus_times", mask=mask)
        assert entries(found) == {i: whole[i] for i in kept}
