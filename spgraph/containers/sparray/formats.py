"""Counts, and the same entries as an array or as SciPy's and CuPy's own sparse arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from spgraph.containers.annotations import Dense
from spgraph.containers.interchange.libraries import scipy_sparse
from spgraph.containers.methods.parts import MatrixParts, Parts, VectorParts
from spgraph.containers.sparray.lines import plain
from spgraph.containers.storage.arrays import on_device
from spgraph.containers.storage.numbers import flags
from spgraph.errors import DomainMismatch

if TYPE_CHECKING:
    from spgraph.containers.matrix import Matrix
    from spgraph.containers.vector import Vector


class Formats(Parts):
    """What both have."""

    __slots__ = ()

    @property
    def nnz(self) -> int:
        """How many entries are stored, zeros among them, as `nvals`.

        >>> import spgraph as sg
        >>> sg.Vector.from_coo([1, 3], [5, 0], size=6).nnz
        2
        """
        return self.nvals

    def toarray(self, order: Literal["C", "F"] | None = None, out: Dense | None = None) -> Dense:
        """An array with 0 where there is no entry: of NumPy, for a container on a GPU of CuPy; of a
        distributed one every process gathers all entries.

        `order` is that of its elements, by rows ("C") or by columns ("F"). `out` is an array of
        this shape and type to write it to. ValueError if it has others, or both are given.

        >>> import spgraph as sg
        >>> sg.Matrix.from_coo([0, 1], [1, 0], [3, 4]).toarray().tolist()
        [[0, 3], [4, 0]]
        """
        if out is not None and order is not None:
            raise ValueError("toarray: order: expected none beside out, which has its own")
        if out is not None and (out.shape, out.dtype) != (self.shape, self.dtype):
            raise ValueError(
                f"toarray: out: expected an array of shape {self.shape} and type {self.dtype}, "
                f"got {out.shape} and {out.dtype}"
            )
        u = plain(self)
        with on_device(u.device) as xp:
            made = xp.empty(self.shape, self.dtype, order=order or "C") if out is None else out
            made[...] = 0
            if len(self.shape) == 1:
                u = u.to_sparse()
                made[u._indices] = u._values
            else:
                made[u.row_indices(), u._indices] = u._values
        return made


class VectorFormats(Formats, VectorParts):
    """Of a Vector."""

    __slots__ = ()

    @property
    def ndim(self) -> int:
        """1, the number of dimensions.

        >>> import spgraph as sg
        >>> sg.Vector([1, 2]).ndim
        1
        """
        return 1

    def tocoo(self, copy: bool = True) -> Any:
        """A scipy.sparse.coo_array of one dimension with the same entries, copies unless `copy` is
        False. CuPy has none: DomainMismatch on a GPU.

        >>> import spgraph as sg
        >>> sg.Vector.from_coo([1], [5], size=3).tocoo().toarray().tolist()
        [0, 5, 0]
        """
        flags("tocoo", copy=copy)
        if self.device != "cpu" and isinstance(self.device, str):
            raise DomainMismatch(
                "tocoo: CuPy has no sparse arrays of one dimension; .to('cpu') moves the Vector, "
                ".toarray() makes an array"
            )
        v = plain(self).to_sparse()
        values, indices = (a.copy() if copy else a for a in (v._values, v._indices))
        return scipy_sparse().coo_array((values, (indices,)), shape=self.shape)

    def tocsr(self, copy: bool = True) -> Any:
        """As `tocoo`, with `copy` as there, a scipy.sparse.csr_array of one dimension.

        >>> import spgraph as sg
        >>> sg.Vector.from_coo([1], [5], size=3).tocsr().shape
        (3,)
        """
        flags("tocsr", copy=copy)
        return self.tocoo(copy).tocsr()

    def transpose(self, axes: tuple[int, ...] | None = None, copy: bool = False) -> Vector:
        """The Vector itself; a copy if `copy`. `axes` may be (0,), the only one.

        >>> import spgraph as sg
        >>> sg.Vector([1, 2]).transpose().shape
        (2,)
        """
        flags("transpose", copy=copy)
        if axes not in (None, (0,)):
            raise ValueError(f"transpose: axes: expected None or (0,), got {axes}")
        return self.dup() if copy else self  # type: ignore[return-value]


class MatrixFormats(Formats, MatrixParts):
    """Of a Matrix."""

    __slots__ = ()

    @property
    def ndim(self) -> int:
        """2, the number of dimensions.

        >>> import spgraph as sg
        >>> sg.Matrix.empty(3, 4).ndim
        2
        """
        return 2

    def tocsr(self, copy: bool = True) -> Any:
        """A scipy.sparse.csr_array of the same entries, as `to_scipy`; on a GPU a csr_matrix of
        cupyx.scipy.sparse, as `to_cupyx`. Copies unless `copy` is False.

        >>> import spgraph as sg
        >>> sg.Matrix([[0, 3], [4, 0]]).tocsr().indices.tolist()
        [1, 0]
        """
        flags("tocsr", copy=copy)
        A: Matrix = plain(self)
        return A.to_scipy(copy=copy) if A.device == "cpu" else A.to_cupyx(copy=copy)

    def tocsc(self, copy: bool = True) -> Any:
        """As `tocsr`, with `copy` as there, a csc_array or csc_matrix: compressed columns.

        >>> import spgraph as sg
        >>> sg.Matrix([[0, 3], [4, 0]]).tocsc().indices.tolist()
        [1, 0]
        """
        flags("tocsc", copy=copy)
        A: Any = plain(self)
        # CuPy converts floats alone; SciPy compiles nothing, which making the transpose would
        by_rows = A.has_transpose or A.device != "cpu"
        return A._T.tocsr(copy).T if by_rows else A.tocsr(copy=False).tocsc()

    def tocoo(self, copy: bool = True) -> Any:
        """As `tocsr`, with `copy` as there, a coo_array or coo_matrix: coordinates.

        >>> import spgraph as sg
        >>> sg.Matrix([[0, 3], [4, 0]]).tocoo().row.tolist()
        [0, 1]
        """
        flags("tocoo", copy=copy)
        return self.tocsr(copy).tocoo(copy=False)

    def transpose(self, axes: tuple[int, int] | None = None, copy: bool = False) -> Matrix:
        """The transpose, as the view `T`; a copy if `copy`. `axes` may be (1, 0), which is what it
        means; ValueError for others.

        >>> import spgraph as sg
        >>> sg.Matrix([[0, 3, 5]]).transpose().shape
        (3, 1)
        """
        flags("transpose", copy=copy)
        if axes not in (None, (1, 0)):
            raise ValueError(f"transpose: axes: expected None or (1, 0), got {axes}")
        return self.T.dup() if copy else self.T
