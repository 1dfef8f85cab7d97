"""The search over a Matrix in host memory: one launch, which reads there what it looks at."""

from __future__ import annotations

import numpy as np

from spgraph.backends.cuda.search.search import search as search_on_gpu
from spgraph.backends.cuda.streamed.mapped_matrix import mapped
from spgraph.backends.loops import LevelSearch
from spgraph.containers import Vector
from spgraph.containers.storage.host_matrix import HostMatrix

# bytes that a level may have to read: at 10 GB a second 14 s, and blocks that wait for others take
# 20 s (BARRIER_LIMIT of barrier.cuh) for a failure
MOST = 1 << 37


def search(
    A: HostMatrix, T: HostMatrix | None, start: Vector, asked: LevelSearch
) -> tuple[Vector, Vector | None, np.ndarray | None] | None:
    """`search` of a Matrix on the GPU, where the first product of a vertex decides and a transpose
    is there; else None: then a level may need most entries, and copies are faster.

    A large frontier is pulled from: most vertices find it among their leading neighbours, which are
    on the GPU (16 bytes a vertex, chosen by the first search), the others in the first entries of
    their rows. So little is read, though in lines of 32 bytes; how much is not counted.
    """
    first_hit = asked.first_hit or asked.semiring is None
    if T is None or not first_hit or max(A.nbytes, T.nbytes) > MOST:
        return None
    ours, theirs = mapped(A), mapped(T)
    if (ours._indptr.dtype, ours.index_dtype) != (theirs._indptr.dtype, theirs.index_dtype):
        return None
    return search_on_gpu(ours, theirs, start, asked)
