"""`block_array` against numpy.block, on devices and in shards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401

import spgraph as sg
from spgraph.errors import BackendMismatch, DimensionMismatch, DomainMismatch

CHANCE = np.random.default_rng(3)
SHAPES = [([2], [3]), ([2, 3], [4]), ([3], [2, 1, 4]), ([0, 3, 2], [2, 0, 3]), ([4, 4], [4, 4])]


def dense_blocks(heights: list[int], widths: list[int]) -> tuple[list[list[Any]], np.ndarray]:
    """Blocks of several types, one of them None, and the array of all of them."""
    kinds = [np.int8, np.float32, np.int64]
    blocks: list[list[Any]] = [
        [
            (CHANCE.integers(-3, 9, (h, w)) * (CHANCE.random((h, w)) < 0.6)).astype(kinds[c % 3])
            for c, w in enumerate(widths)
        ]
        for h in heights
    ]
    whole = np.block(blocks)
    if len(heights) > 1 < len(widths):
        whole[: heights[0], -widths[-1] :] = 0
        blocks[0][-1] = None
    return blocks, whole


@pytest.mark.parametrize(("heights", "widths"), SHAPES)
def test_blocks_stand_where_those_of_arrays_stand(
    heights: list[int], widths: list[int], device: str
) -> None:
    blocks, whole = dense_blocks(heights, widths)
    given = [[None if b is None else sg.Matrix(b).to(device) for b in row] for row in blocks]
    Z = sg.block_array(given)
    assert Z.device == sg.Vector.empty(1, device=device).device  # "cuda" is that of "cuda:0"
    assert Z.dtype == whole.dtype
    assert Z.nvals == np.count_nonzero(whole)
    found = Z.to("cpu")
    np.testing.assert_array_equal(found.toarray(), whole)
    assert found.tocsr().has_canonical_format


@pytest.mark.parametrize(("heights", "widths"), SHAPES)
def test_blocks_in_shards(heights: list[int], widths: list[int]) -> None:
    blocks, whole = dense_blocks(heights, widths)
    first = sg.Matrix(blocks[0][0]).distribute(2)
    given = [
        [None if b is None else sg.Matrix(b).to(first.device) for b in row]  # type: ignore[call-overload]
        for row in blocks
    ]
    Z: Any = sg.block_array(given)
    assert Z.dtype == whole.dtype
    np.testing.assert_array_equal(Z.gather().toarray(), whole)


def test_one_value_is_kept_where_all_blocks_have_it() -> None:
    P = sg.Matrix([[1, 0], [1, 1]]).pattern()
    assert sg.block_array([[P], [P]]).iso
    mixed = sg.block_array([[P], [sg.Matrix([[0, 5]])]])
    assert (mixed.iso, mixed.toarray().tolist()) == (False, [[1, 0], [1, 1], [0, 5]])


def test_the_result_shares_nothing_with_a_block() -> None:
    A = sg.Matrix([[1.0, 2.0], [0.0, 3.0]])
    Z = sg.block_array([[A]])
    Z[0, 0] = 9.0
    assert A[0, 0] == 1.0
    assert not np.shares_memory(Z.indices, A.indices)


def test_a_bipartite_graph_and_the_way_back() -> None:
    R = sg.Matrix([[1, 0, 2], [0, 3, 0]])
    Z = sg.block_array([[None, R], [R.T, None]])
    assert Z.is_symmetric()
    assert Z[:2, 2:].isequal(R)


A = sg.Matrix([[1, 2], [0, 3]])


@pytest.mark.parametrize(
    ("blocks", "error", "message"),
    [
        (A, DomainMismatch, "block_array: blocks: expected a list of rows, .* got Matrix"),
        ([A, A], DomainMismatch, "expected a list of rows, each a list of matrices or None"),
        ([], DomainMismatch, "expected a list of rows"),
        ([[A, A], [A]], DimensionMismatch, r"blocks\[1\]: expected 2 blocks, .* got 1; None"),
        ([[A, A[:1]]], DimensionMismatch, r"blocks\[0\]\[1\]: expected 2 rows, .* got 1"),
        ([[A], [A[:, :1]]], DimensionMismatch, r"blocks\[1\]\[0\]: expected 2 columns, .* got 1"),
        ([[A], [None]], DimensionMismatch, "row 1 of blocks: expected a block that is not None"),
        ([[A, None]], DimensionMismatch, r"column 1 of blocks: .* Matrix.empty\(nrows, ncols"),
        ([[A, "x"]], DomainMismatch, r"block_array: blocks\[0\]\[1\]"),
        ([[A, A.distribute(2)]], BackendMismatch, r"blocks\[0\]\[1\] is on 2 shards"),
    ],
)
def test_blocks_that_do_not_fit(blocks: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        sg.block_array(blocks)
