"""Parents on the best walks of a closure: the vertices that carry its values."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from spgraph.backends.cuda.closure import closure as of_closure
from spgraph.backends.cuda.closure.dag_edges import EVERY
from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.backends.cuda.structure.index_types import with_index_types
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import Array, array_module, move, words
from spgraph.semirings import TypedSemiring, min_plus, monoid

# where the counts of ties and of other parents are in the control of a closure, as in
# kernels/closure_state.cuh; the most ties that are kept, and the words of one
TIES, MOST_TIES, TIE_WORDS = 24, 1 << 16, 4
# the threads of the kernel that chooses a floor, as in kernels/parents.cu; the pairs that are kept
SAMPLE, MOST = 1024, 1 << 14
# the longest walk to a vertex that has several parents or to the source, and the most vertices that
# have several on one path, before a search over all edges of the shortest-path DAG is faster
LONGEST_WALK, MOST_ROUNDS = 1 << 14, 64
# no walk from the source is known
UNKNOWN = 1 << 60
# a value, and 1, or 0 where there is none, each in an array of one element
Floor: TypeAlias = tuple[Array, Array]


@jit.on_device
def parents(A: Matrix, T: Matrix | None, x: Vector, semiring: TypedSemiring) -> Vector:
    """For every vertex v the least other vertex u with x[u] * A[u, v] == x[v], of the type of
    A.indices and of bitmap storage; no entry where there is none.

    `T` is A's transpose, where it is at hand and products keep the order of their first operands:
    then the values of most entries alone show that they carry nothing (kernels/parents.cu says
    why). Without it, or where the monoid has no order, both ends of every entry are looked at.

    Two fills, two or three launches (one more if T is another matrix than A), one read-back.
    """
    text = parents_preamble(A, semiring, False)
    parent = least_parents(A, T, x.to_bitmap(), semiring, text, jit.NULL)
    return with_entries(parent, text)


@jit.on_device
def closure_path_parents(
    A: Matrix, source: int, delta: float, reach: float | None
) -> tuple[Vector, Vector | None]:
    """(The closure over min_plus from `source`, its `path_parents` or None where too many vertices
    have several), of an A of float32 with column ids of 32 bits.

    One copy and two launches, one read-back; then as for `path_parents`.
    """
    xp, n, ids = array_module(A._indptr), A.nrows, A._indices.dtype
    semiring = distances_and_vertices()
    plan = of_closure.planned(
        *(A, semiring, True, lambda A, *_: closure_parents_preamble(A)),
        lambda text: jit.Program("closure_paths", text, ("closure_paths",)),
    )
    ties = xp.empty(TIE_WORDS * MOST_TIES, np.uint32)
    start = Vector.unit(source, 0, size=n, dtype=np.uint64, device=A.device)
    widths = of_closure.widths_of(delta, reach, A.dtype)
    run = of_closure.launch(A, start, plan, widths, ties)
    distance, parent = xp.empty(n, A.dtype), xp.empty(n, ids)
    parent_bits, others = xp.empty(words(n), np.uint32), xp.empty(1 + 2 * MOST, ids)
    made = distance, parent, run.bits, parent_bits, others
    paths = jit.kernel("closure_paths", "closure_paths", plan.text)
    jit.sweep(paths, n, n, run.x, run.source, ties, run.control, *made)
    result, state = of_closure.settled(run, distance, "min_plus")
    noted, number = np.array(state).view(np.uint32)[TIES : TIES + 2].tolist()
    if noted > MOST_TIES or number > MOST:
        return result, None
    text = parents_preamble(A, min_plus.resolve(A.dtype, A.dtype), True)
    if number:
        chosen = chosen_parents(others, number, parent, source, text)
        if chosen is None:
            return result, None
        put(parent, *chosen, text)
    return result, Vector._of(n, parent, bits=parent_bits, nvals=result.nvals)


@jit.on_device
def closure_counted(
    A: Matrix,
    T: Matrix | None,
    start: Vector,
    semiring: TypedSemiring,
    delta: float | None,
    reach: float | None,
    bits: int,
) -> tuple[Vector, Vector]:
    """(The closure without its low `bits`, which count edges, and for every vertex the least that
    carries its value to it), from a `start` of one entry, 0, over integers that every edge makes
    greater. The source's parent is itself. `T` is as for `parents`.

    One copy, four launches (five if T is another matrix than A), one read-back.
    """
    xp, n = array_module(A._indptr), A.nrows
    text = parents_preamble(A, semiring, False, bits)
    following = jit.Program("parents", text, ("parents_start", "parents_floor", "parents"))
    ordered, preamble_of = delta is not None, of_closure.closure_preamble
    plan = of_closure.planned(A, semiring, ordered, preamble_of, lambda _: following)
    widths = of_closure.widths_of(delta, reach, semiring.dtype)
    run = of_closure.launch(A, start, plan, widths, jit.NULL)
    distance, parent = xp.empty(n, semiring.dtype), xp.empty(n, A._indices.dtype)
    parent_bits = xp.empty(words(n), np.uint32)
    made = run.source, parent, run.x, run.bits, distance, parent_bits
    jit.sweep(jit.kernel("parents", "parents_start", text), n, n, *made)
    _look(A, T, (run.x, run.bits), semiring, text, parent, jit.NULL)
    found = of_closure.settled(run, distance, "min_plus")[0]
    # every vertex that is reached has a parent
    return found, Vector._of(n, parent, bits=parent_bits, nvals=found.nvals)


@functools.cache
def distances_and_vertices() -> TypedSemiring:
    """min_plus of float32 over what kernels/closure_parents.cuh keeps as one value: a distance and
    the vertex that it came from.
    """
    plus = min_plus.resolve("float32", "float32").multiply
    word = np.dtype(np.uint64)
    cuda = replace(
        plus.cuda,
        lines=("const float d = __int_as_float((int)(x_ >> 32)) + y_;",),
        value="(unsigned long long)__float_as_uint(d) << 32 | (unsigned)iy_",
    )
    multiply = replace(plus, arguments=(word, *plus.arguments[1:]), result=word, cuda=cuda)
    return TypedSemiring("min_plus with vertices", multiply, monoid.min.resolve(word))


def closure_parents_preamble(A: Matrix) -> str:
    """The preamble of kernels/closure.cu that finds parents, and of kernels/closure_paths.cu."""
    types = of_closure.types_of(A._indptr, A._indices, A._values)
    semiring, threads = distances_and_vertices(), of_closure.THREADS
    text = of_closure.program(semiring, types, True, threads, parents=True)
    return text + preamble.constants(MOST=MOST, MOST_TIES=MOST_TIES)


@jit.on_device
def path_parents(
    A: Matrix, T: Matrix | None, x: Vector, semiring: TypedSemiring, source: int
) -> Vector | None:
    """The parents of a search from `source` over the shortest-path DAG of x: of the walks that
    bring x[v] to v one of the fewest edges, and there the least vertex; source itself at `source`.
    None where it takes that search to find them.

    `T` is as for `parents`. The parent of a vertex that has one alone is known at once. Of the few
    others the parents that have been found are compared by how many edges lead to them: along sole
    parents to `source`, or to another of these vertices. None where more than MOST are found, as
    where many edges have the same value, or where the paths are long.

    As `parents`, and where some vertex has several three small launches and four read-backs.
    """
    xp, ids = array_module(A._indptr), A._indices.dtype
    text = parents_preamble(A, semiring, True)
    others = xp.zeros(1 + 2 * MOST, ids)  # their number, and pairs
    parent = least_parents(A, T, x.to_bitmap(), semiring, text, others)
    number = int(others[:1].view(np.uint32)[0])
    if number > MOST:
        return None
    chosen = chosen_parents(others, number, parent, source, text)
    if chosen is None:
        return None
    put(parent, *chosen, text)
    return with_entries(parent, text)


def chosen_parents(
    others: Array, number: int, parent: Array, source: int, text: str
) -> tuple[np.ndarray, np.ndarray] | None:
    """(vertices, their parents): of each vertex that has several, `number` of them in `others`, the
    one on a walk of the fewest edges; and the source, which is its own. None where walks are too
    long. `parent` is of no use afterwards, but for other vertices.
    """
    ids, root = parent.dtype, np.array([source], parent.dtype)
    if not number:
        return root, root
    put(parent, root, np.array([-1], ids), text)
    found = _fewest_edges(others, number, parent, source, text)
    if found is None:
        return None
    vertices, chosen = found
    return np.append(vertices, root), np.append(chosen, root)


def put(parent: Array, vertices: np.ndarray, parents_of: np.ndarray, text: str) -> None:
    """Let these vertices, numbers of any type of integers, have these parents."""
    xp, count, ids = array_module(parent), vertices.size, parent.dtype
    given = xp.asarray(vertices, ids), xp.asarray(parents_of, ids), count, parent
    jit.launch(jit.kernel("parents", "parents_put", text), count, *given)


def parents_preamble(A: Matrix, semiring: TypedSemiring, collects: bool, counting: int = 0) -> str:
    """The preamble of kernels/parents.cu; values count edges in so many low bits."""
    kinds = A._indices.dtype, A._indptr.dtype, A.dtype
    return _parents_program(semiring, collects, MOST, counting, *kinds)


@functools.lru_cache(maxsize=1024)
def _parents_program(
    semiring: TypedSemiring, collects: bool, most: int, counting: int, *kinds: np.dtype
) -> str:
    constants = preamble.constants(COLLECTS=collects, MOST=most, COUNTING=counting)
    names = dict(zip("IOA", kinds, strict=True))
    return preamble.semiring(semiring) + preamble.types(**names) + constants


def least_parents(
    A: Matrix,
    T: Matrix | None,
    x: Vector,
    semiring: TypedSemiring,
    text: str,
    others: Array,
    floor: Floor | None = None,
) -> Array:
    """The least parent of each vertex, the greatest number of the type where there is none; of
    those that are not the least, what `others` takes. `floor` is as for `_look`.
    """
    n, xp = A.nrows, array_module(A._indptr)
    parent = xp.empty(n, A._indices.dtype)
    nothing = (jit.NULL,) * 4
    jit.sweep(jit.kernel("parents", "parents_start", text), n, n, jit.NULL, parent, *nothing)
    bits = jit.NULL if x._bits is None else x._bits
    _look(A, T, (x._values, bits), semiring, text, parent, others, floor)
    return parent


def _look(
    A: Matrix,
    T: Matrix | None,
    x: tuple[Array, Array],
    semiring: TypedSemiring,
    text: str,
    parent: Array,
    others: Array,
    floor: Floor | None = None,
) -> None:
    """Look for the least parents for the values and bits `x`; see `least_parents`. `floor` is one
    that is known already, of the rows of all shards, or None.
    """

    def look_along(M: Matrix, bound: Floor, pulls: bool, pushes: bool) -> None:
        every = np.uint64(0 if A.iso else EVERY)
        own = A.nrows, M.nvals, M._indptr, M._indices, M._values
        shared = every, *x, *bound, pulls, pushes, parent, others
        jit.resident(jit.kernel("parents", "parents", text), M.nvals, *own, *shared)

    if T is None or not is_bounded(semiring):
        look_along(A, (jit.NULL, jit.NULL), False, True)
        return
    bound = choose_floor(A, x, semiring, text) if floor is None else floor
    look_along(A, bound, T is A, True)
    if T is not A:
        look_along(with_index_types(T, A), bound, True, False)


def is_bounded(semiring: TypedSemiring) -> bool:
    """Whether values of entries alone may show that they carry nothing, for products that keep the
    order of their first operands: where values have an order, and products depend on no positions.
    """
    has_order = preamble.kind_of(semiring.add) in preamble.ORDER.values()
    return has_order and not semiring.multiply.positional


def choose_floor(A: Matrix, x: tuple[Array, Array], semiring: TypedSemiring, text: str) -> Floor:
    """A value such that few entries of A are in rows of better ones."""
    xp = array_module(A._indptr)
    floor = xp.empty(1, semiring.dtype), xp.empty(1, np.uint32)
    choose = jit.kernel("parents", "parents_floor", text)
    choose((1,), (SAMPLE,), (A.nrows, A.nvals, A._indptr, *x, *floor))
    return floor


def with_entries(parent: Array, text: str) -> Vector:
    """A Vector with an entry for each vertex that has a parent."""
    xp, n = array_module(parent), parent.size
    pack = jit.kernel("parents", "parents_bits", text)
    found, count = xp.empty(words(n), np.uint32), xp.zeros(1, np.uint64)
    jit.resident(pack, n, n, parent, found, count)
    return Vector._of(n, parent, bits=found, nvals=int(count[0]))


def _fewest_edges(
    others: Array, number: int, parent: Array, source: int, text: str
) -> tuple[np.ndarray, np.ndarray] | None:
    """(the vertices that have several parents, the one of each on a walk of the fewest edges from
    `source`); None where walks are too long. `parent` is -1 at `source`, and then at all of these.
    """
    xp = array_module(parent)
    least = xp.empty(number, parent.dtype)
    take, walk = (jit.kernel("parents", f"parents_{name}", text) for name in ("take", "walk"))
    jit.launch(take, number, others, number, parent, least)
    pairs = move(others[1 : 1 + 2 * number], "cpu").reshape(-1, 2)
    first = move(least, "cpu")
    has_least = first != np.iinfo(first.dtype).max
    heads = np.concatenate([pairs[:, 0], pairs[has_least, 0]])
    tails = np.concatenate([pairs[:, 1], first[has_least]])
    heads, tails = heads[heads != source], tails[heads != source]
    end, steps = xp.empty(tails.size, parent.dtype), xp.empty(tails.size, np.int64)
    jit.launch(walk, tails.size, xp.asarray(tails), tails.size, LONGEST_WALK, parent, end, steps)
    ends, steps = move(end, "cpu"), move(steps, "cpu")
    if (steps < 0).any():
        return None
    vertices, at = np.unique(heads, return_inverse=True)
    # where each walk ends: at one of the vertices, or, after the last of them, at the source
    behind = np.where(ends == source, vertices.size, np.searchsorted(vertices, ends))
    hops = np.full(vertices.size + 1, UNKNOWN)
    hops[-1] = 0
    for _ in range(MOST_ROUNDS):  # Bellman-Ford
        through, before = hops[behind] + steps + 1, hops.copy()
        np.minimum.at(hops, at, through)
        if np.array_equal(hops, before):
            break
    else:
        return None
    if hops.max() >= UNKNOWN:
        return None
    chosen = np.full(vertices.size, np.iinfo(parent.dtype).max, parent.dtype)
    on_fewest = through == hops[at]
    np.minimum.at(chosen, at[on_fewest], tails[on_fewest])
    return vertices, chosen
