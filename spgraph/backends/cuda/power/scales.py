"""What power iterations begin and end with: out-degrees inverted, a vector divided by its norm. One
program has both, so that a first call does not wait for one of CuPy's for each step.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from spgraph.backends.cuda.power.power_stepwise import BLOCKS
from spgraph.backends.cuda.runtime import jit
from spgraph.backends.loops import NORMS
from spgraph.backends.shards.power import SUMS
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import Array, array_module


def inverse_degrees(A: Matrix) -> Vector:
    """1 / how many entries each row of A has, 0 where it has none: a full Vector of float64, to be
    read only. A has arrays of its own. One launch, the first time: it is kept with A, 8 bytes a
    row.
    """
    scale = A._derived.get("inverse_degrees")
    if scale is None:
        with jit.device(A._indptr):
            scale = _inverse_degrees(A)
            A._keep("inverse_degrees", scale)
    return Vector._of(A.nrows, scale)


def _inverse_degrees(A: Matrix) -> Array:
    scale = array_module(A._indptr).empty(A.nrows)
    wide = np.int32(A._indptr.itemsize > 4)
    jit.sweep(jit.kernel("scales", "scales_degrees", ""), A.nrows, A._indptr, wide, A.nrows, scale)
    return scale


@jit.on_device
def scaled(v: Vector, norm: Literal[1, 2]) -> Vector:
    """A full v of float64 divided by its norm, 1 or 2; zeros stay zeros. Two launches."""
    xp, n = array_module(v._values), v.size
    parts, divide = jit.kernels("scales", "", "scales_parts", "scales_divide")
    most = BLOCKS * jit.multiprocessors(jit.current_device())
    blocks = max(1, min(-(-n // jit.BLOCK), most))
    sums, values = xp.empty(SUMS * blocks), xp.empty(n)
    which = np.int32(NORMS[norm])
    parts((blocks,), (jit.BLOCK,), (v._values, n, which, sums))
    divide((blocks,), (jit.BLOCK,), (v._values, n, which, sums, blocks, values))
    return Vector._of(n, values)
