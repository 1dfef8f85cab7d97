"""The methods of containers that lead to operations: indexing, building from lists, sharding.

With arithmetic.py the files of this folder that import upwards, inside functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import numpy as np

from spgraph import late_imports
from spgraph.containers.annotations import (
    BinaryLike,
    Device,
    DType,
    FromCoo,
    Indices,
    Number,
    Position,
    Scalar,
    Several,
    SparseArray,
)
from spgraph.containers.mask import Mask
from spgraph.containers.methods.arithmetic import MatrixArithmetic, VectorArithmetic
from spgraph.containers.methods.keys import from_end, matrix_key, vector_key, written
from spgraph.containers.storage.arrays import Array, is_cuda
from spgraph.containers.storage.numbers import is_integer

if TYPE_CHECKING:
    from spgraph.containers.matrix import Matrix
    from spgraph.containers.vector import Vector
    from spgraph.distributed import Communicator, DistributedMatrix


class VectorSugar(VectorArithmetic):
    """What leads from a Vector to operations."""

    __slots__ = ()

    @classmethod
    def from_coo(
        cls,
        indices: Sequence[int] | Array,
        values: Scalar | Sequence[Scalar] | Array = True,
        *,
        size: int | None = None,
        dtype: DType | None = None,
        dup_op: BinaryLike | None = None,
        device: Device | None = None,
    ) -> Vector:
        """The Vector with values[k] at indices[k]; a scalar `values` stands at all of them.

        `size` defaults to the largest index + 1. Repeated indices are combined with the BinaryOp or
        Monoid `dup_op` (or that of its name), in the order given; without one they raise
        ValueError, and OverflowError where their type does not hold a sum or a product of integers.
        Values become `dtype` if given: ValueError for one that it does not hold. `device` defaults
        to where the arrays are.

        >>> import spgraph as sg
        >>> from spgraph.semirings import binary
        >>> sg.Vector.from_coo([1, 1], [2, 3], size=3, dup_op=binary.plus).to_coo()[1].tolist()
        [5]
        """
        if device is not None and not isinstance(device, str):  # spread over several devices
            return device.from_coo(indices, values, size=size, dtype=dtype, dup_op=dup_op)
        from spgraph.build import build_vector

        return build_vector(indices, values, size=size, dtype=dtype, dup_op=dup_op, device=device)

    @overload
    def __getitem__(self, key: Position) -> Number | None: ...

    @overload
    def __getitem__(self, key: Mask | Indices) -> Vector: ...

    def __getitem__(self: Any, key: Mask | Indices | Position) -> Any:
        """v[3] is the entry (None where there is none), v[[0, 2]] and v[1:3] are Vectors of those
        positions, v[mask] is v under the mask. Of a bool Vector b, v[b] is v[b.V], of v's size; an
        array of bool picks the positions that are true, as NumPy's arrays do.

        >>> import numpy as np, spgraph as sg
        >>> v = sg.Vector([3, 1, 2])
        >>> list(v[v > 1]), list(v[np.array([True, False, True])])
        ([(0, 3), (2, 2)], [(0, 3), (1, 2)])
        """
        from spgraph import operations

        if isinstance(key, Mask):
            return _masked(self, key)
        at: Any = key if is_integer(key) else vector_key(key, self)
        if is_integer(at):
            return _scalar(operations.extract(self, [from_end(at, self.size)]))
        return (_masked if isinstance(at, Mask) else operations.extract)(self, at)

    def __contains__(self, item: object) -> bool:
        raise TypeError(
            "in: expected a list or an array, got a Vector; v[i] is not None says whether there is "
            "an entry at i"
        )

    def __setitem__(
        self: Any, key: Mask | Indices | Position, value: Scalar | Vector | Sequence[Scalar] | Array
    ) -> None:
        """v[3] = x, v[[0, 2]] = w, v[1:3] = x, v[mask] = x, through `assign`; an array or a list
        stands for the Vector of its values.
        """
        from spgraph import operations

        at: Any = key
        if not is_integer(key):
            at = key if isinstance(key, Mask) else vector_key(key, self)
            value = value if is_integer(at) else written(value, self)
        given: dict[str, Any] = {"mask" if isinstance(at, Mask) else "indices": at}
        operations.assign(self, value, **given)  # type: ignore[arg-type]


class MatrixSugar(MatrixArithmetic):
    """What leads from a Matrix to operations."""

    __slots__ = ()

    @overload
    @classmethod
    def from_coo(
        cls,
        rows: Sequence[int] | Array,
        columns: Sequence[int] | Array,
        values: Scalar | Sequence[Scalar] | Array = ...,
        *,
        device: Device | None = ...,
        compact: Literal[False] | None = ...,
        **given: Unpack[FromCoo],
    ) -> Matrix: ...

    @overload
    @classmethod
    def from_coo(
        cls,
        rows: Sequence[int] | Array,
        columns: Sequence[int] | Array,
        values: Scalar | Sequence[Scalar] | Array = ...,
        *,
        device: Device | None = ...,
        compact: Literal[True],
        **given: Unpack[FromCoo],
    ) -> tuple[Matrix, Array]: ...

    @classmethod
    def from_coo(
        cls,
        rows: Sequence[int] | Array,
        columns: Sequence[int] | Array,
        values: Scalar | Sequence[Scalar] | Array = True,
        *,
        nrows: int | None = None,
        ncols: int | None = None,
        dtype: DType | None = None,
        dup_op: BinaryLike | None = None,
        symmetric: bool | None = None,
        device: Device | None = None,
        compact: bool | None = None,
    ) -> Matrix | tuple[Matrix, Array]:
        """The Matrix with values[k] at (`rows`[k], `columns`[k]); a scalar `values` makes an iso
        Matrix.

        `nrows` and `ncols` default to the largest index + 1. Repeated positions are combined with
        the BinaryOp or Monoid `dup_op` (or that of its name), in the order given; without one they
        raise ValueError, except under a scalar, where they change nothing. `symmetric=True` is the
        caller's word that the entries are symmetric: it is not checked, and nothing is mirrored.
        `dtype`, `device` and the OverflowError of sums are as those of `Vector.from_coo`.

        `compact=True` is for ids far apart: the vertices that occur, as a row or a column, are
        numbered 0, 1, ... by ascending id, and (Matrix, ids) is returned, ids[v] being the id of
        vertex v. By default (None) a MemoryError is raised where the row pointers would take over 1
        GiB and over 64 times the bytes of the ids and values; False allocates them.

        >>> import spgraph as sg
        >>> sg.Matrix.from_coo([0, 1], [1, 0], [3, 4]).to_scipy().toarray().tolist()
        [[0, 3], [4, 0]]
        >>> A, ids = sg.Matrix.from_coo([7, 10**12], [10**12, 9], compact=True)
        >>> A.shape, ids.tolist()
        ((3, 3), [7, 9, 1000000000000])
        """
        given: FromCoo = {"nrows": nrows, "ncols": ncols, "dtype": dtype, "dup_op": dup_op}
        given["symmetric"] = symmetric
        if device is not None and not isinstance(device, str):  # spread over several devices
            return device.matrix_from_coo(rows, columns, values, compact=compact, **given)
        from spgraph.build import build_matrix

        return build_matrix(rows, columns, values, device=device, compact=compact, **given)

    def distribute(
        self,
        shards: int,
        *,
        devices: str | Sequence[str] | None = None,
        partition: str | Sequence[int] | Array = "edges",
        communicator: Communicator | None = None,
        exchange: Literal["auto", "nccl", "peer"] = "auto",
    ) -> DistributedMatrix:
        """The same Matrix in `shards` shards of rows (1 to 1,024 a process), which every operation
        and algorithm takes as it takes this one: a DistributedMatrix. Results come in shards, too;
        `.gather()` makes a plain container of one.

        `devices` is "cpu", "cuda" (the GPUs there are, in turn) or a list of names, one for each
        shard; by default shards stay on the CPU or go to as many GPUs as there are. `partition`
        says who owns a row: "edges" (ranges with equal shares of the entries), and for a square
        Matrix "random", "biased" (random, but near the neighbours) or "metis"; or an array with the
        shard of every row. With a `communicator` of several processes
        (`spgraph.distributed.MpiCommunicator`) every process gives the whole Matrix, keeps its own
        shards, and calls the same operations in the same order.

        `exchange` is how GPUs communicate: "nccl", "peer" (they write to each other's memory: those
        of one process, or of several on one host) or "auto": "peer" wherever it can run, and, in
        one process, one of the GPUs alone for loops over graphs like road networks, whose rounds
        cost more than their edges (the logger "spgraph.distributed" says so once a graph). Results
        are the same.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0, 1, 1, 2], [1, 0, 2, 1])
        >>> G = A.distribute(2)
        >>> G.partition.sizes, sg.bfs(G, 0).level.to_numpy().tolist()
        ((1, 2), [0, 1, 2])
        """
        with late_imports.whole():
            from spgraph.distributed import distribute

        return distribute(
            self,  # type: ignore[arg-type]
            shards,
            devices=devices,
            partition=partition,
            communicator=communicator,
            exchange=exchange,
        )

    def prepare(self) -> Matrix:
        """Make now what many dense products over this matrix profit from, keep it, and return self.

        On a GPU a large matrix whose columns differ much in size gets a second form that gathers
        from shared memory (about its entries' bytes again, and the time of a few products);
        elsewhere there is nothing to make. pagerank and its kin do this by themselves.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0], [1])
        >>> A.prepare() is A
        True
        """
        from spgraph.steps import backend

        prepare = getattr(backend(self.device), "prepare", None)  # type: ignore[attr-defined]
        if prepare is not None:
            prepare(self)
        return self  # type: ignore[return-value]

    @overload
    def __getitem__(self, key: tuple[Position, Position]) -> Number | None: ...

    @overload
    def __getitem__(
        self, key: Position | tuple[Position, Several] | tuple[Several, Position]
    ) -> Vector: ...

    @overload
    def __getitem__(
        self, key: Mask | Matrix | SparseArray | Several | tuple[Several, Several]
    ) -> Matrix: ...

    def __getitem__(self: Any, key: Any) -> Any:
        """A[i, j] is the entry (None where there is none), A[i] and A[i, :] row i and A[:, j]
        column j as Vectors, A[rows, columns] the Matrix of all their pairs, A[mask] A under the
        mask. Of a bool Matrix B, A[B] is A[B.V], of A's shape; arrays and Vectors of bool are the
        rows or columns that are true.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_dense([[1, 2], [0, 3]])
        >>> int(A[1, 1]), A[1, 0], A[:, 1].to_numpy().tolist(), A[[1, 0], :1].to_coo()[2].tolist()
        (3, None, [2, 3], [1])
        >>> list(A[A > 1])
        [(0, 1, 2), (1, 1, 3)]
        """
        from spgraph import operations

        key = key if isinstance(key, Mask) else matrix_key(key, self)
        if isinstance(key, Mask):
            return _masked(self, key)
        rows, columns = key
        if is_integer(rows) and is_integer(columns):
            row = operations.extract(self, rows, None)
            return _scalar(operations.extract(row, [from_end(columns, row.size)]))
        return operations.extract(self, rows, columns)

    def __contains__(self, item: object) -> bool:
        raise TypeError(
            "in: expected a list or an array, got a Matrix; A[i, j] is not None says whether "
            "there is an edge from i to j"
        )

    def __setitem__(
        self: Any,
        key: Mask
        | Matrix
        | SparseArray
        | Position
        | Several
        | tuple[Position | Several, Position | Several],
        value: Scalar | Vector | Matrix | SparseArray | np.ndarray,
    ) -> None:
        """A[i, j] = x, A[i] = v, A[:, j] = v, A[rows, columns] = B, A[mask] = x, through
        `assign`; an array or a list of one dimension stands for the Vector of its values.
        """
        from spgraph import operations

        key = key if isinstance(key, Mask) else matrix_key(key, self)
        value = written(value, self)
        if isinstance(key, Mask):
            operations.assign(self, value, mask=key)
        else:
            operations.assign(self, value, *key)


def transposed(A: Matrix) -> Matrix:
    """A new Matrix, the transpose of A."""
    from spgraph.steps import backend

    return backend(A.device).transpose(A)


def _masked(u: Any, mask: Mask) -> Any:
    """The entries of u that the mask allows."""
    from spgraph import operations
    from spgraph.semirings import unary

    return operations.apply(u, unary.identity, mask=mask)


def _scalar(v: Vector) -> Any:
    """The entry of a Vector of one position, None where there is none."""
    values = v.to_coo()[1]
    return (values.get() if is_cuda(values) else values)[0] if values.size else None
