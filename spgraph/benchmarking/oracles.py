"""What a graph's right components, dependencies and triangles are, by plain algorithms on arrays,
NumPy's or CuPy's, that share no code with the kernels of the library.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from spgraph.containers import Matrix
from spgraph.containers.storage.arrays import Array, array_module, is_cuda, on_device

STEP, STEP_CUDA = 1 << 20, 1 << 25  # edges, or pairs of them, looked at together
TABLE = 1 << 12  # edges between so many vertices of large degree are looked up in a table
LOW = 0xFFFFFFFF


def components(A: Matrix) -> Array:
    """The least vertex of each vertex's weak component: of two trees that an edge joins the one
    with the larger root is put under the other, until no edge joins two.
    """
    with on_device(A.device) as xp:
        root = xp.arange(A.nrows, dtype=A._indices.dtype)
        for tails, heads in edges(A):
            while True:
                tails, heads = root[tails], root[heads]
                apart = tails != heads
                tails, heads = tails[apart], heads[apart]
                if not tails.size:
                    break
                xp.minimum.at(root, xp.maximum(tails, heads), xp.minimum(tails, heads))
                above = root[root]
                while bool((above != root).any()):
                    root, above = above, above[above]
        return root


def dependencies(A: Matrix, source: int) -> Array:
    """The share of the shortest paths from `source` that go through each vertex, summed over their
    ends; 0 at the source. Of a vertex there are paths * 2**power paths, so that no number of them
    is too large.

    Source: Brandes, "A faster algorithm for betweenness centrality", 2001.
    """
    with on_device(A.device) as xp:
        depth, power = (xp.full(A.nrows, start, xp.int32) for start in (-1, 0))
        paths, delta = xp.zeros(A.nrows), xp.zeros(A.nrows)
        depth[source], paths[source] = 0, 1.0
        frontier = xp.array([source])
        levels: list[list[tuple[Array, Array]]] = []
        while True:
            steps, found = [], []  # the edges to the next level, and its vertices
            for tails, heads in edges(A, frontier):
                new = heads[depth[heads] < 0]
                if new.size:
                    found.append(xp.unique(new))
                    depth[found[-1]] = len(levels) + 1
                down = depth[heads] == len(levels) + 1
                tails, heads = tails[down], heads[down]
                if heads.size:
                    steps.append((tails, heads))
                    xp.maximum.at(power, heads, power[tails])
            if not found:
                break
            for tails, heads in steps:
                share = xp.ldexp(paths[tails], power[tails] - power[heads])
                xp.add.at(paths, heads, share)
            frontier = xp.concatenate(found)
            paths[frontier], more = xp.frexp(paths[frontier])
            power[frontier] += more
            levels.append(steps)
        for steps in reversed(levels):
            for tails, heads in steps:
                share = xp.ldexp(paths[tails] / paths[heads], power[tails] - power[heads])
                xp.add.at(delta, tails, share * (1 + delta[heads]))
        delta[source] = 0
        return delta


def triangles(A: Matrix) -> int:
    """The number of triangles of the edges in either direction: pairs of edges from a vertex to two
    of larger degree, which an edge joins.
    """
    with on_device(A.device) as xp:
        n, keys = A.nrows, _by_degree(A)
        if not keys.size:
            return 0
        tails, heads = keys >> 32, keys & LOW
        first = max(n - TABLE, 0)
        table = xp.zeros((n - first, n - first), bool)
        both = tails >= first
        table[tails[both] - first, heads[both] - first] = True
        after = xp.cumsum(xp.bincount(tails, minlength=n))[tails] - xp.arange(1, keys.size + 1)
        found = 0
        for begin, end in _ranges(after):  # with each of these edges those after it from its tail
            one, other = _pairs(after[begin:end])
            u, v = heads[one + begin], heads[one + other + begin + 1]
            large = u >= first
            found += int(table[u[large] - first, v[large] - first].sum())
            wanted = (u << 32 | v)[~large]
            at = xp.searchsorted(keys, wanted)
            found += int((keys[xp.minimum(at, keys.size - 1)] == wanted).sum())
        return found


def _by_degree(A: Matrix) -> Array:
    """The edges in either direction, each once and without loops, as tail << 32 | head, ascending;
    vertices are numbered by degree, and heads are larger.
    """
    xp = array_module(A._indices)
    parts = []
    for tails, heads in edges(A):
        off = tails < heads if A.symmetric else tails != heads
        tails, heads = tails[off].astype(xp.int64), heads[off].astype(xp.int64)
        parts.append(xp.minimum(tails, heads) << 32 | xp.maximum(tails, heads))
    keys = xp.concatenate(parts)
    if not keys.size:
        return keys
    keys = keys if A.symmetric else xp.unique(keys)
    tails, heads = keys >> 32, keys & LOW
    degree = xp.bincount(tails, minlength=A.nrows) + xp.bincount(heads, minlength=A.nrows)
    number = xp.empty(A.nrows, xp.int64)
    number[xp.argsort(degree)] = xp.arange(A.nrows)
    tails, heads = number[tails], number[heads]
    return xp.sort(xp.minimum(tails, heads) << 32 | xp.maximum(tails, heads))


# --- edges in steps -------------------------------------------------------------------------------


def edges(A: Matrix, rows: Array | None = None) -> Iterator[tuple[Array, Array]]:
    """(tails, heads) of the edges from `rows`, by default from all, in steps."""
    xp = array_module(A._indices)
    if rows is None:
        rows = xp.arange(A.nrows, dtype=A._indices.dtype)
    begins = A._indptr[rows]
    counts = A._indptr[rows + 1] - begins
    for begin, end in _ranges(counts):
        one, other = _pairs(counts[begin:end])
        yield rows[begin:end][one], A._indices[begins[begin:end][one] + other]


def _ranges(counts: Array) -> Iterator[tuple[int, int]]:
    """Ranges of `counts`, each with a sum of about a step, one after another."""
    xp = array_module(counts)
    step, sums = STEP_CUDA if is_cuda(counts) else STEP, xp.cumsum(counts, dtype=xp.int64)
    bounds = xp.arange(step, max(int(sums[-1]), step + 1), step)
    cuts = xp.searchsorted(sums, bounds, side="right").tolist()
    for begin, end in itertools.pairwise([0, *cuts, counts.size]):
        if begin < end:
            yield begin, end


def _pairs(counts: Array) -> tuple[Array, Array]:
    """(k, j) for each j < counts[k] of each k, in order."""
    xp = array_module(counts)
    ends = xp.cumsum(counts, dtype=xp.int64)
    total = int(ends[-1])
    # cupy.repeat takes no array of counts: at each place the number of those that end before it
    k = xp.cumsum(xp.bincount(ends, minlength=total + 1))[:total]
    return k, xp.arange(total) - (ends - counts)[k]
