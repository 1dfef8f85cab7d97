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
from spgraph.iterations.shortest_path_dag import dag_edges
from spgraph.operations import ewise_add, reduce, select
from spgraph.semirings import (
    Semiring,
    TypedSemiring,
    any_pair,
    binary,
    indexunary,
    max_min,
    max_times,
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
    return least_fixed_point("closure", A, start, semiring, delta)


def least_fixed_point(
    name: str, A: MatrixLike, start: Vector, semiring: SemiringLike, delta: float | None
) -> Vector:
    """`closure`, for the function `name`, which messages begin with."""
    A, plan = checked(name, A, start, semiring, delta)
    if start.nvals == 0:
        return Vector.empty(A.nrows, plan.dtype, device=A.device)
    return _fitting(name, A, start, _solved(A, start, plan), plan)


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

    def into_distance(self) -> Vector:
        """The distances alone; where `parent` is known, in place of `value`, which has no use then:
        new memory would take longer than all else that the host does.
        """
        if self.parent is None:
            return self.value._with_values(lambda d: d >> self.bits)
        self.value._values >>= self.bits
        return self.value


def counted(name: str, A: MatrixLike, start: Vector, delta: float | None) -> Counted | None:
    """The closure over min_plus that counts the edges of its walks as it goes, for integers, for
    the function `name`; None where distances leave no room for them in 64 bits.

    Its `dag_edges` are those of the best walks of the fewest edges, which never form a cycle: so
    `parents` takes one of them for each vertex, where a closure over min_plus needs a search.
    """
    found = counting(name, A, start, delta)
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


def counting(
    name: str, A: MatrixLike, start: Vector, delta: float | None
) -> tuple[Matrix, Plan, int] | None:
    """(A, the plan of a closure that counts edges, in how many of the low bits), as `counted`."""
    A, plan = checked(name, A, start, min_plus, delta)
    bits = 8 * max(2, -(-A.nrows.bit_length() // 8))  # few widths: each is a kernel of its own
    if plan.typed.dtype != INT64 or _longest(A, start._value_range()) >= 1 << (63 - bits):
        return None
    semiring = min_plus_and_one(bits)
    typed = typed_for_rounds("closure", semiring, INT64, A.dtype, A.index_dtype)
    delta, reach = (
        None if width is None else min(width * 2.0**bits, LONGEST)
        for width in (plan.delta, plan.reach)
    )
    return A, Plan(semiring, typed, INT64, delta, reach), bits


def composed(A: MatrixLike, start: Vector, semiring: SemiringLike) -> Vector:
    """`closure` made of operations: the reference for tests."""
    A, plan = checked("closure", A, start, semiring, None)
    return _fitting("closure", A, start, composed_closure(A, start, plan.typed, None), plan)


# --- what is asked of the arguments ---------------------------------------------------------------


class Plan(NamedTuple):
    """What a closure comes to for given arguments."""

    semiring: Semiring
    typed: TypedSemiring
    dtype: np.dtype  # of the result, which typed.dtype may be wider than
    delta: float | None  # the width of buckets
    reach: float | None = None  # how far beyond a bucket a GPU pushes; None: the width
    saturates: bool = False  # whether the greatest integer stands for what is greater


def checked(
    name: str, A: MatrixLike, start: Vector, semiring: SemiringLike, delta: float | None
) -> tuple[Matrix, Plan]:
    """A as a Matrix, and the plan; messages begin with `name`."""
    A, start = operands(name, A, "start", start)
    semiring = checks.semiring(name, semiring)
    typed, converts, known = _rules(semiring, start.dtype, A.dtype, A.index_dtype)
    dtype = typed.dtype
    if converts:
        check_stored(name, start, dtype)
    delta = _width(name, delta, semiring)
    if known is None:
        return A, Plan(semiring, typed, dtype, delta)
    first = start._value_range()
    _check_values(name, A, first, known)
    widths = (delta, None) if delta is not None else _default_widths(A, semiring, dtype)
    plan = Plan(semiring, typed, dtype, *widths)
    integers = known is min_plus and dtype.kind in "iu"
    return A, _widened(A, first, plan) if integers else plan


@functools.lru_cache(maxsize=1024)
def _rules(
    semiring: Semiring, start: np.dtype, entries: np.dtype, index: np.dtype
) -> tuple[TypedSemiring, bool, Semiring | None]:
    """(The semiring over values of its own, whether those of the start become ones of that type,
    which it is of those whose operands are tested and ordered). Kept, as `typed_for_rounds` is.
    """
    typed = typed_for_rounds("closure", semiring, start, entries, index)
    if not typed.add.idempotent or typed.add.any:
        raise DomainMismatch(
            "closure: semiring: expected a monoid with x + x == x and one result, such as min, max "
            f"or lor, got {semiring!r}"
        )
    converts = start != typed.dtype and typed.dtype.kind != "b"  # whose operands are truths
    known = next(
        (each for each in (min_plus, max_min, min_max, max_times) if each == semiring), None
    )
    return typed, converts, known


def _width(name: str, delta: float | None, semiring: Semiring) -> float | None:
    """`delta` as a finite float: kernels are compiled for that, whatever number it was."""
    if delta is None:
        return None
    if not is_real(delta) or not 0 < delta < np.inf:
        raise ValueError(f"{name}: delta: expected a positive number or None, got {delta!r}")
    if semiring.monoid not in (monoids.min, monoids.max):
        raise ValueError(
            f"{name}: delta: expected None for {semiring!r}, as only min and max order values, "
            f"got {delta!r}"
        )
    # integers may be too large for a float
    return float(min(delta, LONGEST) if isinstance(delta, int) else delta)


def _default_widths(A: Matrix, semiring: Semiring, dtype: np.dtype) -> tuple[float, float | None]:
    """`default_widths`, kept."""
    kept = A._derived.setdefault("closure_widths", {})
    found = kept.get((semiring, dtype))
    if found is None:
        found = kept[semiring, dtype] = default_widths(A, semiring, dtype)
    return found


def _check_values(name: str, A: Matrix, first: tuple[float, float], semiring: Semiring) -> None:
    """That going on along an edge makes no value better; `first` is the range of start."""
    low, high = A._value_range()
    if low != low:
        raise ValueError(f"{name}: A: expected numbers, got {_first(A, lambda a: a != a)}")
    if first[0] != first[0]:
        raise ValueError(f"{name}: start: expected numbers, got NaN")
    if low < 0 and semiring is min_plus:
        raise NegativeWeight(
            f"{name}: A: expected lengths >= 0, got {_first(A, lambda a: a < 0)}; where no cycle "
            "has a negative length, csgraph.bellman_ford takes A.tocsr(), and closure a semiring "
            "of min and a plus of your own (BinaryOp.define)"
        )
    if semiring is max_times:
        if low < 0 or high > 1:
            wrong = _first(A, lambda a: (a < 0) | (a > 1))
            raise ValueError(f"{name}: A: expected entries from 0 to 1, got {wrong}; scale them")
        if first[0] < 0:
            raise ValueError(f"{name}: start: expected values >= 0, got {first[0]}")


def _first(A: Matrix, wrong: Callable[..., object]) -> str:
    """The first entry whose value is wrong, as text."""
    i, j, value = next(iter(A._where(wrong)))
    return f"A[{i}, {j}] = {value}"


def _longest(A: Matrix, first: tuple[float, float]) -> int:
    """What no sum along a path exceeds, nor that of one edge more: a way back, or a loop."""
    return max(int(first[1]), 0) + A.nrows * int(A._value_range()[1])


@functools.cache
def _greatest(dtype: np.dtype) -> int:
    """The greatest integer of a type, which NumPy takes as long for as for a small operation."""
    return int(np.iinfo(dtype).max)


def _widened(A: Matrix, first: tuple[float, float], plan: Plan) -> Plan:
    """The plan in a type that holds all sums of integers; or, where none does, with sums that stay
    at the greatest integer, which does not improve anything.
    """
    longest, dtype = _longest(A, first), plan.dtype
    if longest < _greatest(dtype):
        return plan
    wide = dtype if dtype.itemsize == 8 else INT64
    saturates = longest >= _greatest(wide)
    semiring = Semiring(monoids.min, saturating_plus(wide)) if saturates else min_plus
    typed = typed_for_rounds("closure", semiring, wide, A.dtype, A.index_dtype)
    return plan._replace(semiring=semiring, typed=typed, saturates=saturates)


def _fitting(name: str, A: Matrix, start: Vector, x: Vector, plan: Plan) -> Vector:
    """x in the type of the result; OverflowError where that does not hold one of its values."""
    fits = not plan.saturates or _none_beyond(A, start, x)
    if x.dtype != plan.dtype:
        fits = fits and x._value_range()[1] <= _greatest(plan.dtype)
        x = x.astype(plan.dtype) if fits else x
    if not fits:
        raise beyond(name, plan.dtype)
    return x


def beyond(name: str, dtype: np.dtype) -> OverflowError:
    """The error of the function `name` for a distance that the type of integers does not hold."""
    return OverflowError(
        f"{name}: A: expected distances that {dtype} holds, got one beyond; "
        "take values of type float64"
    )


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
