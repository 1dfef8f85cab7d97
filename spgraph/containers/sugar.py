"""The methods of containers that lead to operations: operators, indexing, building from lists.

The one file of this folder that imports upwards, inside functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spgraph.containers.arrays import Array, is_cuda
from spgraph.containers.mask import Mask
from spgraph.errors import DomainMismatch

if TYPE_CHECKING:
    from spgraph.containers.matrix import Matrix
    from spgraph.containers.vector import Vector


class Sugar:
    """What Vector and Matrix share.

    `u + v` is a union, with what there is where one has no entry; `u - v` a union with 0; `u * v`,
    `u / v` and all comparisons are intersections, entry by entry as NumPy's are. With a scalar they
    look at stored entries only: `A < 1` has no entry where A has none. `@` is the product over
    plus_times. `==` compares entries, so that containers have no hash; `isequal` gives one bool.
    """

    __slots__ = ()
    __array_ufunc__ = None  # NumPy leaves `array @ v` to us
    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Any) -> Any:
        return _combine("plus", self, other, union=True)

    def __radd__(self, other: Any) -> Any:
        return _combine("plus", self, other, left=True)

    def __sub__(self, other: Any) -> Any:
        return _combine("minus", self, other, union=True)

    def __rsub__(self, other: Any) -> Any:
        return _combine("minus", self, other, left=True)

    def __mul__(self, other: Any) -> Any:
        return _combine("times", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _combine("times", self, other, left=True)

    def __truediv__(self, other: Any) -> Any:
        return _combine("truediv", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _combine("truediv", self, other, left=True)

    def __pow__(self, other: Any) -> Any:
        return _combine("pow", self, other)

    def __and__(self, other: Any) -> Any:
        return _combine("land", self, other)

    def __or__(self, other: Any) -> Any:
        return _combine("lor", self, other, union=True)

    def __lt__(self, other: Any) -> Any:
        return _combine("lt", self, other)

    def __le__(self, other: Any) -> Any:
        return _combine("le", self, other)

    def __gt__(self, other: Any) -> Any:
        return _combine("gt", self, other)

    def __ge__(self, other: Any) -> Any:
        return _combine("ge", self, other)

    def __eq__(self, other: Any) -> Any:
        return _combine("eq", self, other)

    def __ne__(self, other: Any) -> Any:
        return _combine("ne", self, other)

    def __neg__(self) -> Any:
        return _unary("ainv", self)

    def __abs__(self) -> Any:
        return _unary("abs", self)

    def __matmul__(self, other: Any) -> Any:
        return _product(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _product(other, self)


class VectorSugar(Sugar):
    """What leads from a Vector to operations."""

    __slots__ = ()

    @classmethod
    def from_coo(
        cls,
        indices: Array,
        values: Any = True,
        *,
        size: int | None = None,
        dtype: Any = None,
        dup_op: Any = None,
        device: Any = None,
    ) -> Vector:
        """The Vector with values[k] at indices[k]; a scalar `values` stands at all of them.

        `size` defaults to the largest index + 1. Repeated indices are combined with the BinaryOp or
        Monoid `dup_op`, in the order given; without one they raise ValueError. `device` defaults to
        where the arrays are.

        >>> import spgraph as sg
        >>> from spgraph.semirings import binary
        >>> sg.Vector.from_coo([1, 1], [2, 3], size=3, dup_op=binary.plus).to_coo()[1].tolist()
        [5]
        """
        if device is not None and not isinstance(device, str):  # spread over several devices
            return device.from_coo(indices, values, size=size, dtype=dtype, dup_op=dup_op)
        from spgraph.build import build_vector

        return build_vector(indices, values, size=size, dtype=dtype, dup_op=dup_op, device=device)

    def __getitem__(self, key: Any) -> Any:
        """v[3] is the entry (None where there is none), v[[0, 2]] and v[1:3] are Vectors of those
        positions, v[mask] is v under the mask.
        """
        from spgraph import operations

        if isinstance(key, Mask):
            return _masked(self, key)
        if _is_index(key):
            return _scalar(operations.extract(self, [_from_end(key, self.size)]))  # type: ignore[attr-defined]
        return operations.extract(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        """v[3] = x, v[[0, 2]] = w, v[1:3] = x, v[mask] = x, through `assign`."""
        from spgraph import operations

        at = {"mask": key} if isinstance(key, Mask) else {"indices": key}
        operations.assign(self, value, **at)


class MatrixSugar(Sugar):
    """What leads from a Matrix to operations."""

    __slots__ = ()

    @classmethod
    def from_coo(
        cls,
        rows: Array,
        columns: Array,
        values: Any = True,
        *,
        nrows: int | None = None,
        ncols: int | None = None,
        dtype: Any = None,
        dup_op: Any = None,
        symmetric: bool | None = None,
        device: Any = None,
        compact: bool | None = None,
    ) -> Any:
        """The Matrix with values[k] at (rows[k], columns[k]); a scalar `values` makes an iso
        Matrix.

        `nrows` and `ncols` default to the largest index + 1. Repeated positions are combined with
        the BinaryOp or Monoid `dup_op`, in the order given; without one they raise ValueError,
        except under a scalar, where they change nothing. `symmetric=True` is the caller's word that
        the entries are symmetric: it is not checked, and nothing is mirrored.

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
        if device is not None and not isinstance(device, str):  # spread over several devices
            return device.matrix_from_coo(
                rows,
                columns,
                values,
                nrows=nrows,
                ncols=ncols,
                dtype=dtype,
                dup_op=dup_op,
                symmetric=symmetric,
                compact=compact,
            )
        from spgraph.build import build_matrix

        return build_matrix(
            rows,
            columns,
            values,
            nrows=nrows,
            ncols=ncols,
            dtype=dtype,
            dup_op=dup_op,
            symmetric=symmetric,
            device=device,
            compact=compact,
        )

    def distribute(
        self,
        shards: int,
        *,
        devices: Any = None,
        partition: Any = "edges",
        communicator: Any = None,
        exchange: str = "auto",
    ) -> Any:
        """The same Matrix in `shards` shards of rows, which every operation and algorithm takes as
        it takes this one: a DistributedMatrix. Results come in shards, too; `.gather()` brings one
        home.

        `devices` is "cpu", "cuda" (the GPUs there are, in turn) or a list of names, one for each
        shard; by default shards stay on the CPU or go to as many GPUs as there are. `partition`
        says who owns a row: "edges" (ranges with equal shares of the entries), and for a square
        Matrix "random", "biased" (random, but near the neighbours) or "metis"; or an array with the
        shard of every row. With a `communicator` of several processes
        (`spgraph.distributed.MpiCommunicator`) every process gives the whole Matrix, keeps its own
        shards, and calls the same operations in the same order.

        `exchange` is how GPUs of one process tell each other of frontiers: "nccl", "peer" (they
        write to each other's memory) or "auto": "peer" wherever it can run, and one of the GPUs
        alone for loops over graphs like road networks, whose rounds cost more than their edges (the
        logger "spgraph.distributed" says so once a graph). Results are the same.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0, 1, 1, 2], [1, 0, 2, 1])
        >>> G = A.distribute(2)
        >>> G.partition.sizes, sg.bfs(G, 0).level.to_numpy().tolist()
        ((1, 2), [0, 1, 2])
        """
        from spgraph.distributed import distribute

        return distribute(
            self,  # type: ignore[arg-type]
            shards,
            devices=devices,
            partition_by=partition,
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

        backend(self.device).prepare(self)  # type: ignore[attr-defined]
        return self  # type: ignore[return-value]

    def __getitem__(self, key: Any) -> Any:
        """A[i, j] is the entry (None where there is none), A[i] and A[i, :] row i and A[:, j]
        column j as Vectors, A[rows, columns] the Matrix of all their pairs, A[mask] A under the
        mask.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_dense([[1, 2], [0, 3]])
        >>> int(A[1, 1]), A[1, 0], A[:, 1].to_numpy().tolist(), A[[1, 0], :1].to_coo()[2].tolist()
        (3, None, [2, 3], [1])
        """
        from spgraph import operations

        if isinstance(key, Mask):
            return _masked(self, key)
        rows, columns = _pair(key)
        if _is_index(rows) and _is_index(columns):
            row = operations.extract(self, rows, None)
            return _scalar(operations.extract(row, [_from_end(columns, row.size)]))
        return operations.extract(self, rows, columns)

    def __setitem__(self, key: Any, value: Any) -> None:
        """A[i, j] = x, A[i] = v, A[:, j] = v, A[rows, columns] = B, A[mask] = x, through
        `assign`.
        """
        from spgraph import operations

        if isinstance(key, Mask):
            operations.assign(self, value, mask=key)
        else:
            operations.assign(self, value, *_pair(key))


def transposed(A: Matrix) -> Matrix:
    """A new Matrix, the transpose of A."""
    from spgraph.steps import backend

    return backend(A.device).transpose(A)


def _combine(name: str, x: Any, y: Any, *, union: bool = False, left: bool = False) -> Any:
    """The operator `name` between two containers, or a container and a scalar on its `left` or
    right.
    """
    from spgraph import operations
    from spgraph.semirings import binary

    op = getattr(binary, name)
    if isinstance(y, Sugar) or hasattr(y, "tocsr"):
        if name == "minus":
            return operations.ewise_union(x, y, op)
        return (operations.ewise_add if union else operations.ewise_mult)(x, y, op)
    array = isinstance(y, np.ndarray) or is_cuda(y)
    if isinstance(y, bool | int | float | np.generic) or (array and y.ndim == 0):
        return operations.apply(x, op, **{"left" if left else "right": y})
    if array or isinstance(y, list | tuple):  # without an error `v == array` would be False
        raise DomainMismatch(
            f"{name}: expected a Vector, a Matrix or a scalar, got {type(y).__name__}; "
            "Vector.from_dense and Matrix.from_dense take arrays"
        )
    return NotImplemented


def _unary(name: str, x: Any) -> Any:
    from spgraph import operations
    from spgraph.semirings import unary

    return operations.apply(x, getattr(unary, name))


def _product(x: Any, y: Any) -> Any:
    """x @ y over plus_times, by the kinds of both."""
    from spgraph import operations
    from spgraph.containers.vector import Vector
    from spgraph.semirings import plus_times

    for side in (x, y):
        if not isinstance(side, Sugar) and not hasattr(side, "tocsr"):
            raise DomainMismatch(
                f"@: expected a Matrix or a Vector, got {type(side).__name__}; "
                "Vector.from_dense and Matrix.from_dense take arrays"
            )
    if not isinstance(x, Vector):
        return (operations.mxv if isinstance(y, Vector) else operations.mxm)(x, y)
    if not isinstance(y, Vector):
        return operations.vxm(x, y)
    typed = plus_times.resolve(x.dtype, y.dtype)
    return operations.reduce(operations.ewise_mult(x, y), dtype=typed.dtype)


def _masked(u: Any, mask: Mask) -> Any:
    """The entries of u that the mask allows."""
    from spgraph import operations
    from spgraph.semirings import unary

    return operations.apply(u, unary.identity, mask=mask)


def _is_index(key: Any) -> bool:
    return isinstance(key, int | np.integer) and not isinstance(key, bool)


def _from_end(index: Any, size: int) -> int:
    """Python's meaning of a negative index; one below -size stays outside."""
    return int(index) + size if -size <= index < 0 else int(index)


def _pair(key: Any) -> tuple[Any, Any]:
    """Rows and columns of a key of a Matrix."""
    if not isinstance(key, tuple):
        return key, slice(None)
    if len(key) != 2:
        raise DomainMismatch(f"[]: expected rows and columns, got {len(key)} indices")
    return key


def _scalar(v: Vector) -> Any:
    """The entry of a Vector of one position, None where there is none."""
    values = v.to_coo()[1]
    return (values.get() if is_cuda(values) else values)[0] if values.size else None
