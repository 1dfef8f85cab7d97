"""HostMatrix: a Matrix of a GPU whose entries stay in pinned host memory."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from spgraph.containers.annotations import Device
from spgraph.containers.matrix import Matrix
from spgraph.containers.memory import require
from spgraph.containers.methods import display
from spgraph.containers.storage.arrays import Array, check_device, import_cupy, move, on_device
from spgraph.containers.vector import Vector
from spgraph.errors import BackendMismatch

# what a HostMatrix has in host memory alone
HOST = ("_indices", "_values", "indices", "values")


class StreamedTo(str):
    """The name of the GPU to which operations stream a HostMatrix. It equals the `device` of the
    vectors there, and `steps.backend` knows by it which functions take the Matrix.
    """

    __slots__ = ()


class HostMatrix(Matrix):
    """A Matrix of a GPU, larger than its memory: `A.to("cuda", storage="host")`.

    Columns and values are in pinned host memory. On the GPU are the row pointers and, while an
    operation runs, two buffers of 64 MB (or of the longest row). Products with vectors (`mxv`,
    `vxm`) and arrays (`A @ X`), and what is made of them alone (`bfs`, `pagerank` and other ranks),
    and `connected_components` copy the entries row by row into one buffer while a kernel works on
    the other; entries of which a kernel needs few it reads in host memory. So does a search that
    may pull, of levels or parents: it keeps four ids a row on the GPU, to look at first. Vectors
    are those of the GPU. Everything else raises BackendMismatch: nothing copies the whole Matrix
    unasked. The transpose is made on the CPU when it is first needed, and kept in pinned memory as
    well.
    """

    __slots__ = ("_device", "_host")
    _arrays = ("_indptr", "_host")

    def __init__(self, host: Matrix, device: str) -> None:
        self.nrows, self.ncols, self.iso = host.nrows, host.ncols, host.iso
        self.symmetric, self._transient = host.symmetric, False
        self._device = StreamedTo(device)
        pinned = (_pinned(array) for array in (host._indices, host._values))
        self._host = Matrix._of(
            host.nrows, host.ncols, host._indptr, *pinned, iso=host.iso, symmetric=host.symmetric
        )
        self._indptr = move(host._indptr, device)
        self._begin()
        # kernels and copies that were launched may still read it; a transpose that turned out equal
        # to its source has it without a HostMatrix made here
        weakref.finalize(self._host, _wait_for, device).atexit = False

    def __getattr__(self, name: str) -> Any:
        if name in HOST:
            raise BackendMismatch(
                f"Matrix.{name.removeprefix('_')}: expected a Matrix in the memory of "
                f"{self._device}, got one in host memory (storage='host'); "
                f".to({str(self._device)!r}) copies it to the GPU, .to('cpu') gives it to the CPU"
            )
        return super().__getattr__(name)  # type: ignore[misc]

    # --- what it is -------------------------------------------------------------------------------

    @property
    def nvals(self) -> int:
        there: Any = self._with_arrays
        return there._host.nvals

    @property
    def dtype(self) -> np.dtype:
        there: Any = self._with_arrays
        return there._host.dtype

    @property
    def index_dtype(self) -> np.dtype:
        there: Any = self._with_arrays
        return there._host.index_dtype

    @property
    def device(self) -> Any:
        """The name of the GPU."""
        return self._device

    @property
    def nbytes(self) -> int:
        """Bytes in host memory."""
        return self._host.nbytes

    @property
    def bytes_streamed(self) -> int:
        """How many bytes operations have read over the bus so far: what was copied, and of what
        kernels have read in place about as many as they asked for. The transpose counts its own; a
        search in one launch does not count.
        """
        return self._derived.get("bytes_streamed", 0)

    def _new_view(self) -> HostMatrix:
        view = super()._new_view()
        view._device = self._device
        return view

    def is_symmetric(self) -> bool:
        if self.symmetric is None:
            T: Any = self.T
            ours, theirs = self._host, T._host  # makes the arrays of T
            pairs = [(ours._indptr, theirs._indptr), (ours._indices, theirs._indices)]
            pairs += [] if self.iso else [(ours._values, theirs._values)]
            self._decide(T, all(bool((x == y).all()) for x, y in pairs))
        return bool(self.symmetric)

    def row_degrees(self) -> Vector:
        _ = self._indptr  # makes the arrays of a view
        return super().row_degrees()

    def _value_range(self) -> tuple[float, float]:
        return self._host._value_range()

    def _sampled_mean(self) -> float:
        return self._host._sampled_mean()

    def _sampled_row_length(self) -> float:
        return self._host._sampled_row_length()

    # --- the way out ------------------------------------------------------------------------------

    def to(self, device: Device, *, storage: str | None = None) -> Matrix:
        if storage == "host" and isinstance(device, str) and check_device(device) == self._device:
            return self
        return self._host.to(device, storage=storage)

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a Matrix in pinned memory does not pickle; .to('cpu') gives one that does")

    def _describe(self) -> display.Shown:
        shown = self._host._describe()
        kinds = shown.facts[:-2]  # the last two are device and size
        place = f"{self._device} from host memory"
        return shown._replace(facts=[*kinds, place, display.size_of(self.nbytes)])


def in_host_memory(A: Matrix, device: Device, storage: str) -> HostMatrix:
    """A for a GPU, with its entries in host memory."""
    if storage != "host":
        raise ValueError(f"to: storage: expected 'host' or None, got {storage!r}")
    if not isinstance(device, str) or not device.startswith("cuda"):
        raise ValueError(
            f"to: storage: 'host' streams a Matrix to a GPU, 'cuda' or 'cuda:N', got device "
            f"{device!r}; leave storage out"
        )
    return HostMatrix(A.to("cpu"), check_device(device))


def transposed_in_host_memory(A: HostMatrix) -> HostMatrix:
    """The transpose of A, by the CPU."""
    host = A._host
    # of a Matrix of its own, which does not keep it: the pinned copy is enough
    arrays = host._indptr, host._indices, host._values
    plain = Matrix._of(host.nrows, host.ncols, *arrays, iso=host.iso, symmetric=host.symmetric)
    return HostMatrix(plain.T, A._device)


def _pinned(array: Array) -> Array:
    """A copy of a NumPy array in pinned host memory, which a GPU reads and copies at the full speed
    of the bus. It is given back when the last array of it goes.
    """
    if array.size == 0:
        return array
    cupy = import_cupy()
    require(array.nbytes, "to: storage='host'")
    memory = cupy.cuda.PinnedMemoryPointer(cupy.cuda.PinnedMemory(array.nbytes), 0)
    pinned = np.frombuffer(memory, array.dtype, array.size)
    np.copyto(pinned, array)
    return pinned


def _wait_for(device: str) -> None:
    """Return when a GPU has done all that it was given."""
    if device != "cpu":
        with on_device(device) as cupy:
            cupy.cuda.Device().synchronize()
