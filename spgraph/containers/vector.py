"""Vector: a sparse vector in one of three storages, on one device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from spgraph.containers.annotations import DType
from spgraph.containers.interchange.graphs import VectorGraphs
from spgraph.containers.mask import Mask
from spgraph.containers.methods.arithmetic import VectorArithmetic
from spgraph.containers.methods.comparison import VectorComparison
from spgraph.containers.methods.construction import VectorConstruction
from spgraph.containers.methods.conversions import VectorConversions
from spgraph.containers.methods.devices import VectorDevices
from spgraph.containers.methods.display import VectorDisplay
from spgraph.containers.methods.indexing import VectorIndexing
from spgraph.containers.sparray import VectorSparray
from spgraph.containers.storage.arrays import (
    INT32_MAX,
    Array,
    array_module,
    count_bits,
    device_of,
    index_dtype,
    on_its_device,
    pack_bits,
    read_only,
    unpack_bits,
)
from spgraph.containers.storage.values import VectorValues, converted, each_entry, value_dtype

if TYPE_CHECKING:
    from spgraph.containers.argument import VectorLike


class Vector(
    VectorConstruction,
    VectorValues,
    VectorConversions,
    VectorGraphs,
    VectorComparison,
    VectorDevices,
    VectorArithmetic,
    VectorIndexing,
    VectorSparray,
    VectorDisplay,
):
    """A vector of `size` positions, some of which hold an entry.

    The storage follows the density and decides whether products push or pull:

    * sparse: `indices` (sorted, unique) and `values`, one per entry;
    * bitmap: `values` of length `size`, and `bits`, one bit a position in 32-bit words;
    * full:   `values` of length `size`, every position holds an entry.

    On the CPU the three are read-only views; CuPy has no such flag.

    `Vector(x)` makes a new one from an array of one dimension (of NumPy, CuPy, PyTorch, JAX) or a
    list of numbers, each an entry; from a sparse array or tensor of one dimension (of SciPy,
    PyTorch, JAX); or from a Vector (of python-graphblas, too), which is copied. It raises
    DomainMismatch for anything else. `from_dense` can leave values out; `from_coo`, `empty`,
    `filled` and `arange` make others. The way back without a copy is DLPack:
    `torch.from_dlpack(v)` of a Vector with an entry in each position shares its memory, so that
    writing into the tensor writes into the Vector.

    >>> import spgraph as sg
    >>> sg.Vector([1, 2, 3]).nvals
    3
    >>> v = sg.Vector.from_coo([4, 1], [2.5, 1.0], size=6)
    >>> v.nvals, v.storage, v.to_numpy(fill=0.0).tolist()
    (2, 'bitmap', [0.0, 1.0, 0.0, 0.0, 2.5, 0.0])
    """

    __slots__ = {
        "_bits": "",
        "_indices": "",
        "_nvals": "",
        "_values": "",
        "size": """How many positions.

        >>> import spgraph as sg
        >>> sg.Vector.from_coo([1], [5], size=3).size
        3
        """,
    }

    def __init__(self, x: VectorLike) -> None:
        from spgraph.containers.argument import vector_of

        self._become(vector_of(x))

    @classmethod
    def _of(
        cls,
        size: int,
        values: Array,
        *,
        indices: Array | None = None,
        bits: Array | None = None,
        nvals: int | Callable[[], int] | None = None,
    ) -> Self:
        """The Vector of these arrays, which are trusted: neither checked nor copied."""
        v = object.__new__(cls)
        v.size = size
        v._values = values
        v._indices = indices
        v._bits = bits
        # of a bitmap it may be unknown until somebody asks: counted then, or fetched by the
        # function given
        v._nvals = nvals if bits is not None else values.size
        return v

    # --- what it is -------------------------------------------------------------------------------

    @property
    def values(self) -> Array:
        """The values, one an entry or one a position, as the storage says.

        >>> import spgraph as sg
        >>> sg.Vector.from_coo([1], [5], size=100).values.tolist()
        [5]
        """
        return read_only(self._values)

    @property
    def indices(self) -> Array | None:
        """The positions that hold an entry, ascending; None unless the storage is sparse, where
        `v.to_coo()[0]` has them in any.

        >>> import spgraph as sg
        >>> sg.Vector.from_coo([1], [5], size=100).indices.tolist()
        [1]
        """
        return None if self._indices is None else read_only(self._indices)

    @property
    def bits(self) -> Array | None:
        """One bit a position, set where it holds an entry; None unless the storage is bitmap.

        >>> import spgraph as sg
        >>> sg.Vector.from_coo([1, 3], [5, 0], size=6).bits.tolist()
        [10]
        """
        return None if self._bits is None else read_only(self._bits)

    @property
    def shape(self) -> tuple[int]:
        """(size,).

        >>> import spgraph as sg
        >>> sg.Vector.empty(3).shape
        (3,)
        """
        return (self.size,)

    @property
    def dtype(self) -> np.dtype:
        """The type of the values.

        >>> import spgraph as sg
        >>> sg.Vector.from_dense([1.0, 2.0]).dtype
        dtype('float64')
        """
        return self._values.dtype

    @property
    def device(self) -> Any:
        """'cpu', or 'cuda:0' and so on; of a distributed one its Placement.

        >>> import spgraph as sg
        >>> sg.Vector.empty(3).device
        'cpu'
        """
        return device_of(self._values)

    @property
    def storage(self) -> str:
        """'sparse', 'bitmap' or 'full'.

        >>> import spgraph as sg
        >>> [sg.Vector.from_coo([1], [5], size=size).storage for size in (100, 3)]
        ['sparse', 'bitmap']
        """
        if self._indices is not None:
            return "sparse"
        return "full" if self._bits is None else "bitmap"

    @property
    def nvals(self) -> int:
        """How many positions hold an entry.

        >>> import spgraph as sg
        >>> sg.Vector.from_coo([1, 3], [5, 0], size=6).nvals
        2
        """
        found = self._nvals  # read once: another thread may be fetching it
        if found is None:
            assert self._bits is not None
            self._nvals = found = count_bits(self._bits)
        elif callable(found):
            self._nvals = found = found()
        return found

    def _fetch_nvals(self) -> int | None:
        """The count, fetched if a function was given for it; None where nobody has counted."""
        found = self._nvals
        if callable(found):
            self._nvals = found = found()
        return found

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays.

        >>> import spgraph as sg
        >>> sg.Vector.from_dense([1.0, 2.0]).nbytes
        16
        """
        return sum(a.nbytes for a in (self._values, self._indices, self._bits) if a is not None)

    @property
    def S(self) -> Mask:
        """The mask of the stored entries.

        >>> import spgraph as sg
        >>> v = sg.Vector.from_coo([1, 3], [5, 0], size=4)
        >>> sg.assign(sg.Vector.empty(4, int), 1, mask=~v.S).to_coo()[0].tolist()
        [0, 2]
        """
        return Mask(self, structure=True)

    @property
    def V(self) -> Mask:
        """The mask of the stored entries that are true.

        >>> import spgraph as sg
        >>> v = sg.Vector.from_coo([1, 3], [5, 0], size=4)
        >>> v[v.V].to_coo()[0].tolist()
        [1]
        """
        return Mask(self, structure=False)

    # --- storage ----------------------------------------------------------------------------------

    def to_sparse(self) -> Vector:
        """The same entries as sorted indices and values; itself if it is sparse.

        >>> import spgraph as sg
        >>> sg.Vector.from_dense([3, 4]).to_sparse().storage
        'sparse'
        """
        return self if self._indices is not None else self._unpacked()

    @on_its_device
    def _unpacked(self) -> Vector:
        """`to_sparse` of a bitmap or a full one."""
        self._fetch_nvals()  # the arrays of an operation that may have failed
        xp = array_module(self._values)
        dtype = index_dtype(self.size)
        # a full vector's values are copied: operations write those of `out` in place
        if self._bits is None:
            indices = xp.arange(self.size, dtype=dtype)
            return Vector._of(self.size, self._values.copy(), indices=indices)
        # only the words that hold an entry are unpacked
        nonzero = xp.flatnonzero(self._bits)
        local = xp.flatnonzero(unpack_bits(self._bits[nonzero], 32 * nonzero.size))
        indices = (nonzero[local >> 5] * 32 + (local & 31)).astype(dtype, copy=False)
        return Vector._of(self.size, self._values[indices], indices=indices)

    def to_bitmap(self) -> Vector:
        """The same entries by position: bitmap, or full where every position holds one; itself if
        it is neither sparse.

        >>> import spgraph as sg
        >>> sg.Vector.from_coo([1], [5], size=100).to_bitmap().storage
        'bitmap'
        """
        return self if self._indices is None else self._scattered()

    @on_its_device
    def _scattered(self) -> Vector:
        """`to_bitmap` of a sparse one."""
        assert self._indices is not None
        xp = array_module(self._values)
        if self.nvals == self.size:
            return Vector._of(self.size, self._values.copy())
        # zeros, not empty: what lies under an absent bit must not differ from run to run
        values = xp.zeros(self.size, self.dtype)
        values[self._indices] = self._values
        present = xp.zeros(self.size, bool)
        present[self._indices] = True
        return Vector._of(self.size, values, bits=pack_bits(present), nvals=self.nvals)

    def _conform(self) -> Vector:
        """The same entries in the storage that their density asks for: full when complete, sparse
        below 1 in 32.
        """
        size = self.size
        if self.nvals == size:
            if self._bits is None and self._indices is None:
                return self
            return Vector._of(size, self.to_bitmap()._values)
        return self.to_sparse() if self._asks_for_list() else self.to_bitmap()

    def _asks_for_list(self) -> bool:
        """Whether so few entries are stored as a list, not by position."""
        return self.nvals * 32 < self.size

    # --- copies -----------------------------------------------------------------------------------

    @on_its_device
    def dup(self, dtype: DType | None = None) -> Vector:
        """A copy that shares nothing, with values of type `dtype` (see `astype`) if given.

        >>> import spgraph as sg
        >>> v = sg.Vector.arange(2)
        >>> w = v.dup("float32")
        >>> w[0] = 9
        >>> w.dtype, v.to_numpy().tolist()
        (dtype('float32'), [0, 1])
        """
        parts = {
            k: None if a is None else a.copy()
            for k, a in (("indices", self._indices), ("bits", self._bits))
        }
        values = converted(self._values, self.dtype if dtype is None else value_dtype(dtype))
        return Vector._of(self.size, values, nvals=self._nvals, **parts)

    copy = dup

    def _become(self, other: Vector) -> None:
        """Take over the arrays of `other` (the last step of an operation that writes `out`)."""
        self.size, self._values, self._indices, self._bits = (
            other.size,
            other._values,
            other._indices,
            other._bits,
        )
        self._nvals = other._nvals

    # --- for Python -------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """(index, value) of every entry, by ascending index."""
        return each_entry(self.to_coo())

    def __copy__(self) -> Vector:
        """A copy: with shared arrays, which operations write, neither would know its entries."""
        return self.dup()

    def __getstate__(self) -> dict[str, Any]:
        arrays = {"values": self._values, "indices": self._indices, "bits": self._bits}
        return arrays | {"size": self.size, "nvals": self.nvals}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # operations write into a Vector, and buffers that came beside the pickle may be read-only
        frozen = [
            k for k, a in state.items() if isinstance(a, np.ndarray) and not a.flags.writeable
        ]
        self._become(Vector._of(**state | {name: state[name].copy() for name in frozen}))

    def __len__(self) -> int:
        if self.size > INT32_MAX:  # list(v) reserves as many places; after a TypeError none
            raise TypeError(
                f"len: expected a Vector of less than 2**31 positions, got {self.size}; .size is "
                "how many positions it has, .nvals how many entries"
            )
        return self.size

    def __bool__(self) -> bool:
        raise TypeError("a Vector has no truth value; compare .nvals, or reduce it")
