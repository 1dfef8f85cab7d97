"""block_array: a Matrix put together of smaller ones."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from spgraph import checks
from spgraph.containers import Matrix, MatrixLike
from spgraph.containers.storage.arrays import INT64_MAX, array_module, index_dtype, on_device
from spgraph.errors import DimensionMismatch, DomainMismatch
from spgraph.operations.ewise import ewise_add
from spgraph.semirings import binary
from spgraph.steps import backend

# the blocks that are not None, by row and column
Grid = dict[tuple[int, int], Matrix]


def block_array(blocks: Sequence[Sequence[MatrixLike | None]]) -> Matrix:
    """The Matrix put together of `blocks`, a list of rows of blocks, None for one without entries.

    `[[A], [B]]` puts B below A, `[[A, B]]` beside it, and `[[A, None], [None, B]]` makes a block
    diagonal; `[[None, R], [R.T, None]]` is the graph between the rows and the columns of R. Each
    block is a Matrix or what `Matrix` can be made from, all on one device. The values have NumPy's
    type for those of all blocks. The way back are slices: `Z[: A.nrows]`.

    Raises DimensionMismatch unless the blocks of a row of blocks have as many rows each, those of a
    column as many columns each, and every row and column has a block that is not None;
    BackendMismatch for blocks on different devices; DomainMismatch for what is no list of rows.

    >>> import spgraph as sg
    >>> A, B = sg.Matrix([[1, 2]]), sg.Matrix([[3], [4]])
    >>> sg.block_array([[A, None], [None, B]]).toarray().tolist()
    [[1, 2, 0], [0, 0, 3], [0, 0, 4]]
    """
    grid, shape = _grid_of(blocks)
    given: dict[str, Any] = {f"blocks[{r}][{c}]": A for (r, c), A in grid.items()}
    device: Any = checks.same_device("block_array", **given)
    tops = _offsets(grid, shape[0], 0)
    lefts = _offsets(grid, shape[1], 1)
    dtype = np.result_type(*(A.dtype for A in grid.values()))
    if not isinstance(device, str):
        return backend(device).block_array(grid, tops, lefts, dtype)
    with on_device(device):
        return _together(grid, tops, lefts, dtype)


def _grid_of(blocks: Any) -> tuple[Grid, tuple[int, int]]:
    """The blocks by row and column, and how many rows and columns of blocks there are."""
    listed = isinstance(blocks, list | tuple) and all(isinstance(b, list | tuple) for b in blocks)
    if not listed or not blocks or not blocks[0]:
        raise DomainMismatch(
            "block_array: blocks: expected a list of rows, each a list of matrices or None, as in "
            f"[[A], [B]], got {type(blocks).__name__}"
        )
    shape = len(blocks), len(blocks[0])
    grid: Grid = {}
    for r, row in enumerate(blocks):
        if len(row) != shape[1]:
            raise DimensionMismatch(
                f"block_array: blocks[{r}]: expected {shape[1]} blocks, as blocks[0] has, got "
                f"{len(row)}; None stands for one without entries"
            )
        for c, A in enumerate(row):
            if A is not None:
                grid[r, c] = checks.matrix("block_array", A, f"blocks[{r}][{c}]")
    return grid, shape


def _offsets(grid: Grid, count: int, axis: int) -> list[int]:
    """Where each row of blocks begins, or each column for axis 1, and where the last one ends."""
    what = "columns" if axis else "rows"
    sizes: list[int | None] = [None] * count
    for (r, c), A in grid.items():
        at = c if axis else r
        if sizes[at] is None:
            sizes[at] = A.shape[axis]
        elif sizes[at] != A.shape[axis]:
            raise DimensionMismatch(
                f"block_array: blocks[{r}][{c}]: expected {sizes[at]} {what}, as the first block "
                f"of its {what[:-1]} has, got {A.shape[axis]}"
            )
    if None in sizes:
        which = f"row {sizes.index(None)}" if axis == 0 else f"column {sizes.index(None)}"
        raise DimensionMismatch(
            f"block_array: {which} of blocks: expected a block that is not None, which says how "
            f"many {what} there are; Matrix.empty(nrows, ncols, dtype) is one without entries"
        )
    ends = [0]
    for size in sizes:
        ends.append(ends[-1] + int(size or 0))
    if ends[-1] > INT64_MAX:
        raise OverflowError(f"block_array: expected fewer than 2**63 {what}, got {ends[-1]}")
    return ends


def _together(grid: Grid, tops: list[int], lefts: list[int], dtype: np.dtype) -> Matrix:
    """The Matrix of the blocks, on the current device."""
    rows = [
        [_widened(A, lefts[c], lefts[-1], dtype) for (at, c), A in grid.items() if at == r]
        for r in range(len(tops) - 1)
    ]
    # no two of them have an entry at one position
    strips = [functools.reduce(lambda A, B: ewise_add(A, B, binary.any), row) for row in rows]
    if len(strips) == 1:
        return strips[0].dup() if len(rows[0]) == 1 else strips[0]
    nrows, ncols = tops[-1], lefts[-1]
    nvals = sum(A.nvals for A in strips)
    xp, kinds = (
        array_module(strips[0]._indices),
        (index_dtype(nvals), index_dtype(max(nrows, ncols))),
    )
    indptr = xp.zeros(nrows + 1, kinds[0])
    before = 0
    for r, A in enumerate(strips):
        indptr[tops[r] + 1 : tops[r + 1] + 1] = A._indptr[1:] + indptr.dtype.type(before)
        before += A.nvals
    indices = xp.concatenate([A._indices.astype(kinds[1], copy=False) for A in strips])
    held = [A for A in strips if A.nvals] or strips[:1]
    iso = all(A.iso and bool((A._values == held[0]._values).all()) for A in held)
    values = held[0]._values.copy() if iso else _joined(strips)
    return Matrix._of(nrows, ncols, indptr, indices, values, iso=iso)


def _widened(A: Matrix, left: int, ncols: int, dtype: np.dtype) -> Matrix:
    """A Matrix of `ncols` columns with the entries of A from column `left` on."""
    A = A.astype(dtype, copy=False)
    kind = index_dtype(max(A.nrows, ncols))
    indices = A._indices.astype(kind, copy=False)
    indices = indices + kind.type(left) if left else indices
    return Matrix._of(A.nrows, ncols, A._indptr, indices, A._values, iso=A.iso)


def _joined(strips: list[Matrix]) -> Any:
    """The values of all of them, one after another."""
    return array_module(strips[0]._values).concatenate([A._expanded_values() for A in strips])
