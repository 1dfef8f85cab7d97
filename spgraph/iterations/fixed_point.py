"""closure: the least fixed point of  x = start (+) x (+.x) A: Kleene's star."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from spgraph import checks
from spgraph.containers import Matrix, MatrixLike, Vector
from spgraph.containers.annotations import SemiringLike
from spgraph.containers.storage.numbers import is_real
from spgraph.errors import DomainMismatch, NegativeWeight
from spgraph.iterations.closure_buckets import composed_closure
from spgraph.iterations.closure_widths import default_widths
from spgraph.iterations.integer_sums import min_plus_and_one, saturating_plus
from spgraph.iterations.level_search import operands, search, typed_for_rounds
from spgraph.operations import diag, ewise_add, mxm, reduce, select, vxm
from spgraph.semirings import (
    Semiring,
    TypedSemiring,
    any_pair,
    binary,
    indexunary,
    max_min,
    max_times,
    min_first,
    min_max,
    min_plus,
)
from spgraph.semirings import monoid as monoids
from spgraph.steps import backend, check_stored

INT64 = np.dtype(np.int64)
LONGEST = sys.float_info.max


def closure(
    A: MatrixLike, start: Vector, semiring: SemiringLike, *, delta: float | None = None
) -> Vector:
    """The least fixed point of x = start (+) x (+.x) A: the best value that a walk from an entry of
    `start` brings to each vertex.

    A Vector of A.nrows and the semiring's type; vertices that no walk reaches have no entry. A walk
    s, i, j of A brings (start[s] * A[s, i]) * A[i, j], and (+) chooses among walks: min_plus gives
    distances, max_min widths, max_times over [0, 1] reliabilities, min_first the least label,
    lor_land what can be reached.

    `A` is a square Matrix or what `Matrix` can be made from; the monoid of `semiring`, a Semiring
    or its name, has to be idempotent. The value does not depend on the order of the work, which is
    chosen freely: with min and max, best values first, in buckets of width `delta` (None: chosen
    from A's values where the semiring is one of those above, otherwise no order).

    There is a fixed point where following one more edge never improves a walk's value. This is
    tested for min_plus (A >= 0, else NegativeWeight) and for max_times (0 <= A <= 1, start >= 0);
    these two, max_min and min_max refuse NaN. For any other semiring you have to know it:
    ConvergenceError, with the last iterate, if values still improve after A.nrows rounds.
    OverflowError if the integer type does not hold a value of min_plus; sums beyond it that are not
    the best ones do no harm. Raises DimensionMismatch, DomainMismatch and BackendMismatch as
    operations do.

    Source: Meyer, Sanders, "Delta-stepping: a parallelizable shortest path algorithm" (2003);
    Davidson, Baxter, Garland, Owens, "Work-efficient parallel GPU methods for single-source
    shortest paths" (2014).

    >>> import spgraph as sg
    >>> from spgraph.iterations import closure
    >>> from spgraph.semirings import max_min
    >>> A = sg.Matrix.from_coo([0, 0, 1, 2], [1, 2, 3, 3], [5, 2, 4, 9], nrows=5, ncols=5)
    >>> width = closure(A, sg.Vector.from_coo([0], [10], size=5), max_min)
    >>> width.to_numpy(fill=-1).tolist()
    [10, 5, 2, 4, -1]
    """
    A, plan = checked(A, start, semiring, delta)
    if start.nvals == 0:
        return Vector.empty(A.nrows, plan.kind, device=A.device)
    return _fitting(A, start, _solved(A, start, plan), plan)


def _solved(A: Matrix, start: Vector, plan: Plan) -> Vector:
    """The fixed point in the type of the semiring, by the backend's fused form if it has one."""
    fused = getattr(backend(A.device), "closure", None)
    if fused is None:
        return composed_closure(A, start, plan.typed, plan.reach or plan.delta)
    return fused(A, start, plan.typed, plan.delta, plan.reach)


class Counted(NamedTuple):
    """Distances and, in the low `bits`, how many edges the shortest of the best walks have.
    `parent`, where the closure finds it on the way (else None): for each vertex the least one that
    precedes it on one of these, for the start itself.
    """

    value: Vector
    semiring: Semiring
    bits: int
    parent: Vector | None

    @property
    def distance(self) -> Vector:
        """The distances alone."""
        return self.value._with_values(lambda d: d >> self.bits)


def counted(A: MatrixLike, start: Vector, *, delta: float | None = None) -> Counted | None:
    """The closure over min_plus that counts the edges of its walks as it goes, for integers; None
    where distances leave no room for them in 64 bits.

    Its `dag_edges` are those of the best walks of the fewest edges, which never form a cycle: so
    `parents` takes one of them for each vertex, where a closure over min_plus needs a search.
    """
    found = counting(A, start, delta)
    if found is None or start.nvals == 0:
        return None
    A, plan, bits = found
    first = start
    if start._value_range() != (0, 0):
        first = start._with_values(lambda x: x.astype(INT64) << bits)
    fused = getattr(backend(A.device), "closure_parents", None)
    if fused is not None:
        value, parent = fused(A, first, plan.typed, plan.delta)
        return Counted(value, plan.semiring, bits, parent)
    return Counted(_solved(A, first, plan), plan.semiring, bits, None)


def counting(A: MatrixLike, start: Vector, delta: float | None) -> tuple[Matrix, Plan, int] | None:
    """(A, the plan of a closure that counts edges, in how many of the low bits), as `counted`."""
    A, plan = checked(A, start, min_plus, delta)
    bits = 8 * max(2, -(-A.nrows.bit_length() // 8))  # few widths: each is a kernel of its own
    if plan.typed.dtype != INT64 or _longest(A, start._value_range()) >= 1 << (63 - bits):
        return None
    ring = min_plus_and_one(bits)
    typed = typed_for_rounds("closure", ring, INT64, A.dtype, A.index_dtype)
    delta, reach = (
        None if width is None else min(width * 2.0**bits, LONGEST)
        for width in (plan.delta, plan.reach)
    )
    return A, Plan(ring, typed, INT64, delta, reach), bits


def composed(A: MatrixLike, start: Vector, semiring: SemiringLike) -> Vector:
    """`closure` made of operations: the reference for tests."""
    A, plan = checked(A, start, semiring, None)
    return _fitting(A, start, composed_closure(A, start, plan.typed, None), plan)


def dag_edges(A: MatrixLike, x: Vector, semiring: SemiringLike) -> Matrix:
    """The edges of the shortest-path DAG of `x` over `semiring`: the pattern of all entries (i, j)
    of `A` with x[i] * A[i, j] == x[j].

    An iso Matrix of value True. For a closure x from one vertex, over a semiring that makes no
    value better along an edge, they lead from that vertex to all that have an entry; a search
    over them finds, among the best walks, those of the fewest edges. `parents` does without that
    search where every edge makes values worse.

    Raises DimensionMismatch, DomainMismatch and BackendMismatch.

    >>> import spgraph as sg
    >>> from spgraph.iterations import dag_edges
    >>> from spgraph.semirings import min_plus
    >>> A = sg.Matrix.from_coo([0, 0, 1], [1, 2, 2], [1, 5, 2], nrows=3, ncols=3)
    >>> dag_edges(A, sg.Vector.from_dense([0, 1, 3]), min_plus).to_coo()[:2]
    (array([0, 1], dtype=int32), array([1, 2], dtype=int32))
    """
    A, x, typed = _carried("dag_edges", A, x, semiring)
    if x.nvals == 0 or A.nvals == 0:
        return Matrix.empty(A.nrows, A.ncols, bool, device=A.device).pattern()
    found: Matrix = getattr(backend(A.device), "dag_edges", composed_dag_edges)(A, x, typed)
    found._transient = True  # what is made of it is looked at once
    return found


def composed_dag_edges(A: Matrix, x: Vector, typed: TypedSemiring) -> Matrix:
    """`dag_edges` out of operations, with the arguments of a backend's."""
    X, multiply = diag(x), backend(A.device).multiply_rows
    # x[i] * A[i, j], and where that is x[j]
    ring = TypedSemiring("any_multiply", typed.multiply, monoids.any.resolve(typed.dtype))
    carried = multiply(X, A, ring, None)
    equal = mxm(carried, X, Semiring(monoids.any, binary.eq))
    return select(equal, indexunary.valueeq, True).pattern()


def parents(A: MatrixLike, x: Vector, semiring: SemiringLike) -> Vector:
    """For every vertex the least other one that carries the value of x to it: the least u != v with
    x[u] * A[u, v] == x[v].

    A Vector of A.nrows and of the type of A.indices; vertices without such a u, as the sources of a
    closure x, have no entry. They form trees where every edge makes values worse, as for what
    `counted` gives. Where values may stay the same along an edge, as distances do over weights of
    zero and widths over wide edges, parents may form a cycle: there a search over the `dag_edges`
    finds those of the best walks.

    `A`, `x` and `semiring` are as for `dag_edges`. Looks at A's transpose only where it is at hand
    already.

    Raises DimensionMismatch, DomainMismatch and BackendMismatch.

    >>> import spgraph as sg
    >>> from spgraph.iterations import parents
    >>> from spgraph.semirings import min_plus
    >>> A = sg.Matrix.from_coo([0, 0, 1], [1, 2, 2], [1, 5, 2], nrows=3, ncols=3)
    >>> parents(A, sg.Vector.from_dense([0, 1, 3]), min_plus).to_numpy(fill=-1).tolist()
    [-1, 0, 1]
    """
    ring = checks.semiring("parents", semiring)
    A, x, typed = _carried("parents", A, x, ring)
    if x.nvals == 0 or A.nvals == 0:
        return Vector.empty(A.nrows, A.index_dtype, device=A.device)
    fused = getattr(backend(A.device), "parents", composed_parents)
    T = A._T if A.has_transpose and _keeps_order(ring) else None
    return fused(A, T, x, typed)


def composed_parents(A: Matrix, T: Matrix | None, x: Vector, typed: TypedSemiring) -> Vector:
    """`parents` out of operations, with the arguments of a backend's; T is not looked at."""
    edges = select(composed_dag_edges(A, x, typed), indexunary.offdiag)
    ids = Vector.arange(edges.nrows, dtype=A.index_dtype, device=A.device)
    return vxm(ids, edges, min_first)


def _keeps_order(ring: Semiring) -> bool:
    """Whether it is known that x <= y makes x * a <= y * a: here, of what `counted` computes. Plus
    does so too until it overflows, which x of one's own may make it do.
    """
    return ring in map(min_plus_and_one, range(16, 64, 8))


# --- what is asked of the arguments ---------------------------------------------------------------


class Plan(NamedTuple):
    """What a closure comes to for given arguments."""

    semiring: Semiring
    typed: TypedSemiring
    kind: np.dtype  # of the result, which typed.dtype may be wider than
    delta: float | None  # the width of buckets
    reach: float | None = None  # how far beyond a bucket a GPU pushes; None: the width
    saturates: bool = False  # whether the greatest integer stands for what is greater


def checked(
    A: MatrixLike, start: Vector, semiring: SemiringLike, delta: float | None
) -> tuple[Matrix, Plan]:
    A, start = operands("closure", A, "start", start)
    ring = checks.semiring("closure", semiring)
    typed, converts, known = _rules(ring, start.dtype, A.dtype, A.index_dtype)
    kind = typed.dtype
    if converts:
        check_stored("closure", start, kind)
    delta = _width(delta, ring)
    if known is None:
        return A, Plan(ring, typed, kind, delta)
    first = start._value_range()
    _check_values(A, first, known)
    widths = (delta, None) if delta is not None else _default_widths(A, ring, kind)
    plan = Plan(ring, typed, kind, *widths)
    integers = known is min_plus and kind.kind in "iu"
    return A, _widened(A, first, plan) if integers else plan


@functools.lru_cache(maxsize=1024)
def _rules(
    ring: Semiring, start: np.dtype, entries: np.dtype, index: np.dtype
) -> tuple[TypedSemiring, bool, Semiring | None]:
    """(The semiring over values of its own, whether those of the start become ones of that type,
    which it is of those whose operands are tested and ordered). Kept, as `typed_for_rounds` is.
    """
    typed = typed_for_rounds("closure", ring, start, entries, index)
    if not typed.add.idempotent or typed.add.any:
        raise DomainMismatch(
            "closure: semiring: expected a monoid with x + x == x and one result, such as min, max "
            f"or lor, got {ring!r}"
        )
    converts = start != typed.dtype and typed.dtype.kind != "b"  # whose operands are truths
    known = next((each for each in (min_plus, max_min, min_max, max_times) if each == ring), None)
    return typed, converts, known


def _carried(
    name: str, A: MatrixLike, x: Vector, semiring: SemiringLike
) -> tuple[Matrix, Vector, TypedSemiring]:
    """Operands of which x has values of the semiring's own type."""
    A, x = operands(name, A, "x", x)
    typed = typed_for_rounds(name, checks.semiring(name, semiring), x.dtype, A.dtype, A.index_dtype)
    if typed.dtype != x.dtype:
        raise DomainMismatch(
            f"{name}: x: expected values of the semiring's type {typed.dtype}, got {x.dtype}"
        )
    return A, x, typed


def _width(delta: float | None, ring: Semiring) -> float | None:
    """`delta` as a finite float: kernels are compiled for that, whatever number it was."""
    if delta is None:
        return None
    if not is_real(delta) or not 0 < delta < np.inf:
        raise ValueError(f"delta: expected a positive number or None, got {delta!r}")
    if ring.monoid not in (monoids.min, monoids.max):
        raise ValueError(
            f"delta: expected None for {ring!r}, as only min and max order values, got {delta!r}"
        )
    # integers may be too large for a float
    return float(min(delta, LONGEST) if isinstance(delta, int) else delta)


def _default_widths(A: Matrix, ring: Semiring, dtype: np.dtype) -> tuple[float, float | None]:
    """`default_widths`, kept."""
    kept = A._derived.setdefault("closure_widths", {})
    found = kept.get((ring, dtype))
    if found is None:
        found = kept[ring, dtype] = default_widths(A, ring, dtype)
    return found


def _check_values(A: Matrix, first: tuple[float, float], ring: Semiring) -> None:
    """That going on along an edge makes no value better; `first` is the range of start."""
    low, high = A._value_range()
    if low != low:
        raise ValueError(f"A: expected numbers, got {_first(A, lambda a: a != a)}")
    if first[0] != first[0]:
        raise ValueError("start: expected numbers, got NaN")
    if low < 0 and ring is min_plus:
        raise NegativeWeight(
            f"A: expected lengths >= 0, got {_first(A, lambda a: a < 0)}; where no cycle has a "
            "negative length, csgraph.bellman_ford takes A.tocsr(), and closure a semiring of min "
            "and a plus of your own (BinaryOp.define)"
        )
    if ring is max_times:
        if low < 0 or high > 1:
            wrong = _first(A, lambda a: (a < 0) | (a > 1))
            raise ValueError(f"A: expected entries from 0 to 1, got {wrong}; scale them")
        if first[0] < 0:
            raise ValueError(f"start: expected values >= 0, got {first[0]}")


def _first(A: Matrix, wrong: Callable[..., object]) -> str:
    """The first entry whose value is wrong, as text."""
    i, j, value = next(iter(A._where(wrong)))
    return f"A[{i}, {j}] = {value}"


def _longest(A: Matrix, first: tuple[float, float]) -> int:
    """What no sum along a path exceeds, nor that of one edge more: a way back, or a loop."""
    return max(int(first[1]), 0) + A.nrows * int(A._value_range()[1])


@functools.cache
def _greatest(kind: np.dtype) -> int:
    """The greatest integer of a type, which NumPy takes as long for as for a small operation."""
    return int(np.iinfo(kind).max)


def _widened(A: Matrix, first: tuple[float, float], plan: Plan) -> Plan:
    """The plan in a type that holds all sums of integers; or, where none does, with sums that stay
    at the greatest integer, which does not improve anything.
    """
    longest, kind = _longest(A, first), plan.kind
    if longest < _greatest(kind):
        return plan
    wide = kind if kind.itemsize == 8 else INT64
    saturates = longest >= _greatest(wide)
    ring = Semiring(monoids.min, saturating_plus(wide)) if saturates else min_plus
    typed = typed_for_rounds("closure", ring, wide, A.dtype, A.index_dtype)
    return plan._replace(semiring=ring, typed=typed, saturates=saturates)


def _fitting(A: Matrix, start: Vector, x: Vector, plan: Plan) -> Vector:
    """x in the type of the result; OverflowError where that does not hold one of its values."""
    fits = not plan.saturates or _none_beyond(A, start, x)
    if x.dtype != plan.kind:
        fits = fits and x._value_range()[1] <= _greatest(plan.kind)
        x = x.astype(plan.kind) if fits else x
    if not fits:
        raise OverflowError(
            f"closure: A: expected values along the best walks that {plan.kind} holds, got one "
            "beyond; take entries and a start of type float64"
        )
    return x


def _none_beyond(A: Matrix, start: Vector, x: Vector) -> bool:
    """Whether the greatest integer is itself the sum wherever it is a value of x: then edges that
    carry the values of x lead there from lesser ones.
    """
    top = np.iinfo(x.dtype).max
    if reduce(x, monoids.max) < top:
        return True
    exact = ewise_add(
        select(x, indexunary.valuelt, top),
        select(start.astype(x.dtype), indexunary.valueeq, top),
        binary.first,
    )
    # without an overflow: modulo 2**64 no greater sum is the greatest integer
    return search(dag_edges(A, x, min_plus), exact, any_pair).level.nvals == x.nvals
