"""Software prefetching for CPU kernels.

In a loop over rows in arbitrary order the processor cannot prefetch by itself: where a row ends is
known only when its bounds have been loaded.
"""

from typing import Any

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def prefetch(typing_context, array, index):  # type: ignore[no-untyped-def]
    """Start to fetch the cache line of array[index]; any index is safe, nothing is read."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        ir = cgutils.ir
        view = context.make_array(array)(context, builder, arguments[0])
        element = cgutils.get_item_pointer(
            context, builder, array, view, [arguments[1]], wraparound=False
        )
        pointer = builder.bitcast(element, ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
        # for reading, into all cache levels, data
        builder.call(function, [pointer, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.none(array, index), codegen


# without a cache file: it is compiled as part of kernels
@njit(nogil=True, error_model="numpy", _nrt=False)
def fetch_rows(
    p: int, ids: np.ndarray, indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, keep: int
) -> None:
    """Start to fetch rows that a loop over ids, now at position p, will need soon."""
    last = np.uint64(ids.size - 1)
    prefetch(indptr, np.uint64(ids[min(p + np.uint64(16), last)]))
    start = np.uint64(indptr[np.uint64(ids[min(p + np.uint64(8), last)])])
    prefetch(indices, start)
    prefetch(values, start & keep)
