"""Matrices of one value in shards on GPUs, run by the shim: all shards have that value, or none."""

from __future__ import annotations

import sys
from typing import Any

import cuda_host_shim
import numpy as np
import pytest

import spgraph as sg
from spgraph import steps
from spgraph.semirings import binary, unary

pytestmark = pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")


@pytest.fixture
def shim(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards compute by the CUDA backend, too."""
    plain = steps.backend
    cuda_host_shim.install(monkeypatch)
    for name, module in list(sys.modules.items()):
        if name.startswith("spgraph.distributed") and getattr(module, "backend", None) is plain:
            monkeypatch.setattr(module, "backend", cuda_host_shim.backend)


def same(G: Any, entries: dict[tuple[int, int], float]) -> None:
    """That G, and its transpose, have these entries, and that one value is that of all shards."""
    assert {(i, j): value for i, j, value in G.gather()} == entries
    back = sg.transpose(G).gather()
    assert {(i, j): value for j, i, value in back} == entries
    assert {shard.iso for shard in G.shards} == {G.iso}
    assert not G.iso or len({shard._values.tobytes() for shard in G.shards}) == 1


def test_shards_with_entries_of_one_operand_alone(shim: None) -> None:
    """Those of the first shard come from A, those of the second from B: each kept its own value
    as that of all entries, and gathering took that of the first.
    """
    A = sg.Matrix.from_coo([0, 1], [1, 0], 1, nrows=4, ncols=4).distribute(2)
    B = sg.Matrix.from_coo([2, 3], [0, 1], 2, nrows=4, ncols=4).to(A.device)
    assert A.iso and B.iso
    both = {(0, 1): 1, (1, 0): 1, (2, 0): 2, (3, 1): 2}
    same(sg.ewise_add(A, B, binary.plus), both)
    same(sg.ewise_add(A, A, binary.first), {(0, 1): 1, (1, 0): 1})
    out = B.dup()
    sg.apply(A, unary.identity, out=out, accum=binary.plus)
    same(out, both)
    out = B.dup()
    sg.apply(A, unary.identity, out=out, mask=A.S)
    same(out, both)


@pytest.mark.parametrize("place", ["plain", "shim"])
def test_a_zero_of_the_other_sign_is_another_value(
    place: str, request: pytest.FixtureRequest
) -> None:
    A = sg.Matrix.from_coo([0, 1], [1, 0], 0.0, nrows=2, ncols=2)
    B = sg.Matrix.from_coo([0], [0], -0.0, nrows=2, ncols=2)
    if place == "shim":
        request.getfixturevalue("shim")
    signs = np.signbit(sg.ewise_add(A, B, binary.plus).to_coo()[2])
    assert signs.tolist() == [True, False, False]
    sg.assign(A, -0.0, mask=A.S)
    assert np.signbit(A.to_coo()[2]).all()
