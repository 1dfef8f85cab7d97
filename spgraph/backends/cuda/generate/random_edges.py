"""Random edges of a model, counted and placed row by row (kernels/random_edges.cu)."""

from __future__ import annotations

import numpy as np

from spgraph.backends.cuda.runtime import jit
from spgraph.containers.storage.arrays import Array, array_module
from spgraph.random_edges import CUDA_PARAMETERS, CUDA_TEXT, GraphModel

STEP = 1 << 31  # edges of one launch


@jit.on_device
def count_rows(
    counts: Array, model: GraphModel, first: int, last: int, labels: Array | None
) -> None:
    """Adds to counts[v], int64, the entries of row v that edges first..last - 1 make; repeated ones
    count each.

    `labels`, int32, are the vertices' new names, None where they keep theirs. One launch per 2**31
    edges.
    """
    _walk("count_rows", model, first, last, labels, counts.view(np.uint64))


@jit.on_device
def place_columns(
    columns: Array,
    next: Array,
    model: GraphModel,
    labels: Array | None,
    places: Array | None,
    row: int,
) -> None:
    """Puts the column of each entry of the rows row..row + next.size - 1 into slot next[r] of
    `columns`, int32, and adds 1 to next[r], int64; the order in a row is arbitrary.

    `places`, int32, says which row belongs to a vertex, None where vertices are rows.
    """
    where = jit.NULL if places is None else places
    rows = np.int64(row), np.int64(next.size)
    after = where, *rows, next.view(np.uint64), columns
    _walk("place_columns", model, 0, model.edges, labels, *after)


def _walk(
    name: str, model: GraphModel, first: int, last: int, labels: Array | None, *after: object
) -> None:
    xp = array_module(after[-1])
    kernel = jit.kernel("random_edges", name, preamble(model.kind))
    # the largest are bit patterns of uint64
    parameters = xp.asarray(np.array(model.parameters, np.uint64).view(np.int64))
    table = jit.NULL if labels is None else labels
    for e in range(first, last, STEP):
        edges = min(STEP, last - e)
        flags = bool(model.symmetric), bool(model.self_loops)
        start = np.uint64(model.state), parameters, np.uint64(e), np.int64(edges), table
        jit.sweep(kernel, edges, *start, *flags, *after)


def preamble(kind: str) -> str:
    """The functions that generate edges, and `generate_edge` of that kind."""
    types = {"int32": "int", "int64": "long long", "uint64": "word"}
    values = [f"({types[type]})p[{k}]" for k, (type, _) in enumerate(CUDA_PARAMETERS[kind])]
    return f"""{CUDA_TEXT}
__device__ inline long long generate_edge(word state, word e, const long long* p) {{
    return {kind}_edge(state, e, {", ".join(values)});
}}
"""
