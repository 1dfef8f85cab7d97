"""What a loop in one launch begins with: its state, all zero, and the entries of a Vector."""

from __future__ import annotations

import numpy as np

from spgraph.backends.cuda.runtime import jit
from spgraph.containers import Vector
from spgraph.containers.storage.arrays import Array, array_module, import_cupy
from spgraph.containers.storage.device_memory import address, sent
from spgraph.containers.storage.one_entry import entry_of


def state_and_start(
    start: Vector, words: int, ids: np.dtype, values: np.dtype | None
) -> tuple[Array, Array | int, Array | int]:
    """(the state, so many 64-bit words, and where the ids and the values of `start`, which is
    sparse, are in these types; `values` None: of no use).

    An entry that the host knows travels behind the zeros: one copy instead of a fill and two.
    """
    entry = entry_of(start)
    if entry is None:
        assert start._indices is not None
        at = start._indices.astype(ids, copy=False)
        held = jit.NULL if values is None else start._values.astype(values, copy=False)
        return array_module(at).zeros(words, np.int64), at, held
    given = np.zeros(words + 2, np.int64)
    given[words] = entry[0][0]  # its first bytes are the id of either type
    if values is not None:
        given[words + 1 :].view(values)[0] = entry[1][0]
    state = sent(given, import_cupy())
    behind = address(state) + 8 * words
    return state, behind, behind + 8
