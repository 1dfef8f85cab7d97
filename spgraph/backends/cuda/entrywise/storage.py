"""How the entries of a Vector on a GPU are stored: a bitmap of few becomes a list."""

from __future__ import annotations

import numpy as np

from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.containers import Vector
from spgraph.containers.storage.arrays import Array, array_module, index_dtype, move

PARTS = 1024  # of a bitmap, at most, that are counted apart


def conform(v: Vector) -> Vector:
    """A new result in the storage that its density asks for: one launch and one read back where its
    entries are not counted yet, and one launch more where they are few.
    """
    if v._bits is None:
        return v._conform()
    counts = _counted(v, v._bits)
    return _listed(v, v._bits, counts) if v._asks_for_list() else v._conform()


def to_sparse(v: Vector) -> Vector:
    """As `v.to_sparse()`; of a bitmap in two launches, and a read back where it is not counted."""
    return v.to_sparse() if v._bits is None else _listed(v, v._bits, _counted(v, v._bits))


def _counted(v: Vector, bits: Array) -> Array | None:
    """Count the entries of a bitmap, and give the counts of its parts, unless they are counted."""
    if v._nvals is not None:
        return None
    counts = _counts(bits)
    v._nvals = int(move(counts, "cpu").sum())
    return counts


def _counts(bits: Array) -> Array:
    """How many bits are set in each part of a bitmap."""
    parts = max(1, min(PARTS, -(-bits.size // jit.BLOCK)))
    counts = array_module(bits).empty(parts, np.int64)
    count = jit.kernel(
        "unpack", "unpack_count", unpack_preamble(np.dtype(np.uint8), np.dtype(np.int32))
    )
    jit.launch(count, parts * jit.BLOCK, bits, bits.size, counts)
    return counts


def _listed(v: Vector, bits: Array, counts: Array | None) -> Vector:
    """A bitmap as a list; `counts` are those of its parts."""
    nvals, xp = v.nvals, array_module(v._values)
    ids, z = xp.empty(nvals, index_dtype(v.size)), xp.empty(nvals, v.dtype)
    if nvals:
        counts = _counts(bits) if counts is None else counts
        unpack = jit.kernel("unpack", "unpack", unpack_preamble(v.dtype, ids.dtype))
        jit.launch(unpack, counts.size * jit.BLOCK, bits, bits.size, counts, v._values, ids, z)
    return Vector._of(v.size, z, indices=ids)


def unpack_preamble(values: np.dtype, ids: np.dtype) -> str:
    """The preamble of kernels/unpack.cu."""
    same_bytes = np.dtype(f"uint{8 * values.itemsize}")
    return preamble.types(T=same_bytes, N=ids, O=np.dtype(np.int64))
