"""A Matrix in host memory as kernels see it that read single entries there."""

from __future__ import annotations

import numpy as np

from spgraph.backends.cuda.streamed.chunks import value_of_iso
from spgraph.containers import Matrix
from spgraph.containers.storage.arrays import Array, array_module
from spgraph.containers.storage.host_matrix import HostMatrix


def mapped(A: HostMatrix) -> Matrix:
    """A as a Matrix on the GPU whose columns and values are in host memory; kept, with what is
    derived of it.
    """
    if "mapped" not in A._derived:
        host = A._host
        values = value_of_iso(A) if A.iso else at_its_address(host._values, A._indptr)
        A._derived["mapped"] = Matrix._of(
            *(A.nrows, A.ncols, A._indptr, at_its_address(host._indices, A._indptr), values),
            iso=A.iso,
            symmetric=A.symmetric,
        )
    return A._derived["mapped"]


def at_its_address(array: np.ndarray, beside: Array) -> Array:
    """A pinned array as one of CuPy's on the device of `beside`: its memory has one address for
    both.
    """
    if not array.size:
        return array_module(beside).empty(0, array.dtype)
    import cupy

    where = array.ctypes.data, array.nbytes, array, beside.device.id
    memory = cupy.cuda.UnownedMemory(*where)
    return cupy.ndarray(array.shape, array.dtype, cupy.cuda.MemoryPointer(memory, 0))
