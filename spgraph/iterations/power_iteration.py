"""power: dense iterations x <- f(x) along the edges of a graph, until x converges."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from spgraph import checks
from spgraph.containers import Matrix, MatrixLike, Vector
from spgraph.containers.storage.numbers import flags, is_integer, is_real
from spgraph.errors import (
    ConvergenceError,
    DomainMismatch,
    NegativeWeight,
)
from spgraph.operations import apply, ewise_add, ewise_mult, mxv, reduce, vxm
from spgraph.semirings import (
    TypedSemiring,
    binary,
    monoid,
    plus_first,
    plus_second,
    plus_times,
    unary,
)
from spgraph.steps import backend

Result = TypeVar("Result")
FLOAT64 = np.dtype(np.float64)
LEAST = 5e-324
# what `graph` allows: the square of it and of 1 / SMALL are numbers of float64
SMALL = 1e-150
# numbers from here on have an inverse in float64
INVERTIBLE = 6e-309
# scales that leave x * scale to single precision, as its inverse does
SINGLE_SCALE = 1e30


class Hop(NamedTuple):
    """x becomes (x * scale) A; scale is 1 where there is none."""

    A: Matrix
    scale: Vector | None = None


@dataclass(frozen=True)
class Step:
    """What one iteration does: with y = x after all `hops` (one or two)::

        x <- factor * y + keep * x + (teleport + dangling * mass) * restart

    where mass is the sum of x over the vertices whose scale in the first hop is zero: what the hops
    do not carry on. `weighted` takes the entries' values, else each entry counts 1.

    PageRank is factor d over one hop of scale 1 / out-degree, with teleport 1 - d and dangling d;
    Katz is factor alpha with teleport beta; the eigenvector's is y + x, HITS a hop along A and
    one back, SALSA the same with the degrees as scales."""

    hops: tuple[Hop, ...]
    factor: float = 1.0
    keep: float = 0.0
    teleport: float = 0.0
    dangling: float = 0.0
    restart: Vector | float = 1.0
    weighted: bool = False


class Power(NamedTuple):
    """The result of `power`. With tol=None nothing waits for it, and `change` is not known."""

    value: Vector
    iterations: int
    change: float | None
    converged: bool


def power(
    x: Vector,
    step: Step,
    *,
    norm: Literal[1, 2, "max"] | None = None,
    tol: float | None = 1e-6,
    max_iter: int = 100,
    single: bool = False,
) -> Power:
    """Repeat `step` from the full float64 Vector x: `Power(value, iterations, change, converged)`.

    After each step the iterate is divided by its `norm`, 1, 2 or "max" (None: as it is; zeros stay
    zeros). The iteration ends when the 1-norm of its change is at most `tol`, or after `max_iter`
    steps, which `tol=None` runs in any case. `single` lets the hops gather x * scale in single
    precision (relative error 6e-8; half of the traffic); sums and iterates stay in double.

    Every hop is pulled over the transpose (a Matrix keeps it; a symmetric one is its own). On the
    CPU, and on a GPU for graphs of few entries, the whole iteration is one launch; on a GPU a step
    over a large graph is a few. Sums are taken in an order that depends on the graph alone on the
    CPU, and on the graph and the kind of device on a GPU.

    Raises DimensionMismatch for sizes that differ, BackendMismatch for containers on different
    devices, ValueError for a tol, max_iter or norm that makes no sense.

    Source: von Mises and Pollaczek-Geiringer, "Praktische Verfahren der Gleichungsaufloesung"
    (1929).

    >>> import spgraph as sg
    >>> from spgraph.iterations import Hop, Step, power
    >>> A = sg.Matrix.from_coo([0, 1, 1, 2], [1, 0, 2, 1])
    >>> x = power(sg.Vector.from_dense([1.0, 1.0, 1.0]), Step((Hop(A),), keep=1.0), norm=1)
    >>> x.value.to_numpy().round(3).tolist(), x.converged
    ([0.293, 0.414, 0.293], True)
    """
    flags("power", single=single)
    return started(x, step, norm=norm, tol=tol, max_iter=max_iter, single=single)[1]()


def started(
    x: Vector | float,
    step: Step,
    *,
    norm: Literal[1, 2, "max"] | None = None,
    tol: float | None = 1e-6,
    max_iter: int = 100,
    single: bool = False,
) -> tuple[Vector, Callable[[], Power]]:
    """(The value of `power`, a function that gives all of it): on a GPU the function may wait for
    the iteration, the host may first say what to do with the value. `x` may be what all vertices
    begin with, where the other arguments are known to be right.
    """
    ring = _checked(x, step, norm, tol, max_iter) if isinstance(x, Vector) else _typed(step)
    A, max_iter = step.hops[0].A, int(max_iter)  # of a small type products would overflow
    fused = getattr(backend(A.device), "power", None)
    if A.nrows == 0 or max_iter == 0:
        empty = A.nrows == 0
        found = Power(_full(A, x).dup(), 0, 0.0 if empty else math.inf, empty or tol is None)
        return found.value, lambda: found
    if fused is None:
        found = composed(_full(A, x), step, norm=norm, tol=tol, max_iter=max_iter)
        found = found._replace(change=None) if tol is None else found
        return found.value, lambda: found
    value, report = fused(
        x,
        _pulled(step),
        tuple(hop.scale for hop in step.hops),
        ring,
        (float(step.factor), float(step.keep), float(step.teleport), float(step.dangling)),
        step.restart if isinstance(step.restart, Vector) else float(step.restart),
        norm,
        tol,
        max_iter,
        single,
    )

    def finished() -> Power:
        if tol is None:
            return Power(value, max_iter, None, True)
        iterations, change = report() if callable(report) else report
        return Power(value, int(iterations), float(change), bool(change <= tol))

    return value, finished


def composed(
    x: Vector,
    step: Step,
    *,
    norm: Literal[1, 2, "max"] | None = None,
    tol: float | None = 1e-6,
    max_iter: int = 100,
) -> Power:
    """`power` out of operations: what it means, what a loop of one's own costs, and what runs where
    a backend has no fused form. All of it is in double precision.
    """
    _checked(x, step, norm, tol, max_iter)
    ring = plus_times if step.weighted else plus_first
    # which entries of x no hop carries on, and what each vertex gets back of what they hold
    first = step.hops[0].scale
    is_dangling = _full(x, 0.0) if first is None else apply(first, binary.eq, right=0.0)
    restart = _full(x, step.restart)
    iterations, change = 0, 0.0 if x.size == 0 else math.inf
    while iterations < max_iter:
        y = x
        for hop in step.hops:
            y = vxm(y if hop.scale is None else ewise_mult(y, hop.scale), hop.A, ring)
        shift = step.teleport + step.dangling * float(reduce(ewise_mult(x, is_dangling)))
        z = ewise_add(_times(y, step.factor), _times(x, step.keep))
        z = ewise_add(z, _times(restart, shift))
        size = _norm(z, norm)
        z = z if size == 0 else apply(z, binary.truediv, right=size)
        change = float(reduce(apply(ewise_add(z, _times(x, -1.0)), unary.abs)))
        x, iterations = z, iterations + 1
        if tol is not None and change <= tol:
            break
    return Power(x, iterations, change, tol is None or change <= tol)


def _times(v: Vector, factor: float) -> Vector:
    return apply(v, binary.times, left=factor)


def _full(x: Vector | Matrix, value: Vector | float) -> Vector:
    """A full Vector of one value, on the device of x and of as many rows; a Vector as it is."""
    if isinstance(value, Vector):
        return value
    return Vector.filled(value, size=x.shape[0], dtype=FLOAT64, device=x.device)


def _norm(z: Vector, norm: Literal[1, 2, "max"] | None) -> float:
    """What z is divided by."""
    if norm is None:
        return 1.0
    if norm == 2:
        return math.sqrt(float(reduce(ewise_mult(z, z))))
    return float(reduce(apply(z, unary.abs), monoid.max if norm == "max" else monoid.plus))


def _checked(
    x: Vector, step: Step, norm: Literal[1, 2, "max"] | None, tol: float | None, max_iter: int
) -> TypedSemiring:
    """`_typed` of a step that fits."""
    checks.vector("power", "x", x)
    _check_full("x", x)
    if not isinstance(step, Step):
        raise DomainMismatch(f"power: step: expected a Step, got {type(step).__name__}")
    flags("power", **{"step.weighted": step.weighted})
    for name in ("factor", "keep", "teleport", "dangling", "restart"):
        number = getattr(step, name)
        real = type(number) is float or isinstance(number, bool) or is_real(number)
        if not real and not (name == "restart" and isinstance(number, Vector)):
            raise DomainMismatch(f"power: step.{name}: expected a number, got {number!r}")
    if len(step.hops) not in (1, 2):
        raise ValueError(f"power: step.hops: expected 1 or 2 of them, got {len(step.hops)}")
    vectors = {"step.restart": step.restart} | {
        f"step.hops[{k}].scale": hop.scale for k, hop in enumerate(step.hops)
    }
    for k, hop in enumerate(step.hops):
        checks.square("power", hop.A)
        checks.same_size("power", f"step.hops[{k}].A.nrows", hop.A.nrows, "x.size", x.size)
        checks.same_device("power", x=x, **{f"step.hops[{k}].A": hop.A})
    for name, v in vectors.items():
        if isinstance(v, Vector):
            _check_full(name, v)
            checks.same_size("power", f"{name}.size", v.size, "x.size", x.size)
            checks.same_device("power", x=x, **{name: v})
    if norm not in (None, 1, 2, "max"):
        raise ValueError(f"power: norm: expected None, 1, 2 or 'max', got {norm!r}")
    limits("power", tol, max_iter)
    return _typed(step)


def _typed(step: Step) -> TypedSemiring:
    """The semiring of the hops over a matrix's values and float64."""
    ring = plus_times if step.weighted else plus_second
    return checks.typed("power", ring, _values(step), FLOAT64)


def _check_full(name: str, v: Vector) -> None:
    if v.dtype != FLOAT64 or v.nvals != v.size:
        raise DomainMismatch(
            f"power: {name}: expected a full Vector of float64, got one of {v.dtype} with "
            f"{v.nvals} entries of {v.size}"
        )


def _pulled(step: Step) -> tuple[Matrix, ...]:
    """The matrices whose rows are summed, with values of one type where these are looked at."""
    kind = _values(step)
    return tuple(
        hop.A._T if hop.A.dtype == kind or not step.weighted else hop.A._T.dup(kind)
        for hop in step.hops
    )


def _values(step: Step) -> np.dtype:
    """The type of the values of all hops."""
    return np.result_type(*(hop.A.dtype for hop in step.hops))


# --- what the algorithms made of it ask of their arguments ----------------------------------------


def limits(name: str, tol: float | None, max_iter: int) -> None:
    """ValueError unless `tol` and `max_iter` bound an iteration."""
    if tol is not None and not (is_real(tol) and tol > 0):
        raise ValueError(f"{name}: tol: expected a number > 0 or None, got {tol!r}")
    if not is_integer(max_iter) or max_iter < 0:
        raise ValueError(f"{name}: max_iter: expected an integer >= 0, got {max_iter!r}")


def graph(name: str, A: MatrixLike, weighted: bool) -> Matrix:
    """A as a square Matrix; with `weighted` its values have to be finite and not negative, and none
    so large, or all so small, that a step overflows or vanishes.
    """
    A = checks.square(name, A)
    if weighted and A.nvals and A.dtype != np.bool_:
        low, high = A._value_range()
        if low < 0:
            raise NegativeWeight(f"{name}: A: expected values >= 0, got {low:g}")
        if not high < math.inf:  # true of NaN, which min and max pass on
            raise ValueError(f"{name}: A: expected finite values, got {high:g} among them")
        if high and not SMALL <= high <= 1 / SMALL / A.nvals:
            raise ValueError(
                f"{name}: A: expected values with sums of squares that float64 holds, the greatest "
                f"from {SMALL:g} to {1 / SMALL:g} / nvals, got {high:g}; multiply all by one factor"
            )
    return A


def out_strength(A: Matrix, weighted: bool) -> Vector:
    """For each vertex the sum of the values of its out-edges, or how many there are: float64."""
    if not weighted:
        return A.row_degrees()._with_values(lambda d: d.astype(FLOAT64))
    ones, zeros = (Vector.filled(x, size=A.nrows, device=A.device) for x in (1.0, 0.0))
    return ewise_add(mxv(A, ones, plus_times), zeros)


def inverse(v: Vector) -> Vector:
    """1 / v[i], and 0 where v[i] is 0, for a full v >= 0."""
    # where x is 0 it is 0 divided by the least number above 0
    return v._with_values(lambda x: np.sign(x) / np.maximum(x, LEAST))


def inverse_out_strength(A: Matrix, weighted: bool) -> Vector:
    """`inverse` of `out_strength`, for which some backends have a function of their own."""
    own = getattr(backend(A.device), "inverse_degrees", None)
    if own is None or weighted or not A._has_arrays:
        return inverse(out_strength(A, weighted))
    return own(A)


def check_inverse(name: str, A: Matrix, scale: Vector, weighted: bool) -> None:
    """ValueError unless float64 holds `scale`, the `inverse_out_strength` of A or of its transpose:
    1 / x is infinite for an x below 5.6e-309, which only a weight below that can lead to.
    """
    if not weighted or A.dtype != FLOAT64 or A._value_range()[0] >= INVERTIBLE:
        return
    if not scale._value_range()[1] < math.inf:
        raise ValueError(
            f"{name}: A: expected the weights of a vertex's edges to be all 0, or of a sum of at "
            f"least {INVERTIBLE:g}, got less; multiply all weights by one factor, or leave out "
            "these edges"
        )


def fits_single(A: Matrix, scale: Vector, weighted: bool) -> bool:
    """Whether x * scale, x from 0 to 1 and `scale` the `inverse_out_strength`, keeps its precision
    in float32: that vanishes below 1e-45, and ends at 3e38.
    """
    if not weighted or A.nvals == 0:
        return True
    low, high = A._value_range()
    if high * A.nvals > SINGLE_SCALE:
        return False
    # most weights say it themselves: what is read of `scale` a GPU has to compute first
    return low * SINGLE_SCALE >= 1 or scale._value_range()[1] <= SINGLE_SCALE


def scaled(v: Vector, norm: int) -> Vector:
    """A full v of float64 divided by its norm, 1 or 2; zeros stay zeros. Nothing is read back."""
    own = getattr(backend(v.device), "scaled", None)
    if own is not None:
        return own(v, norm)
    size = v._total(np.abs) if norm == 1 else v._total(np.square)
    size = size if norm == 1 else np.sqrt(size)
    return v._with_values(lambda x: x / (size + (size == 0)))


def full(name: str, argument: str, v: Vector | Sequence[float] | np.ndarray, A: Matrix) -> Vector:
    """`v`, a Vector or a 1-D array with a number for each vertex of A, as a full Vector of float64;
    positions without an entry are 0.
    """
    if isinstance(v, Mapping):
        raise DomainMismatch(
            f"{name}: {argument}: expected a Vector or an array with a number for each vertex, got "
            f"{type(v).__name__}; Vector.from_coo(positions, numbers, size=A.nrows) makes one"
        )
    if not isinstance(v, Vector):
        v = Vector.from_dense(v)
    if isinstance(v.device, str) and not isinstance(A.device, str):
        v = Vector.from_coo(*v.to_coo(), size=v.size, device=A.device)
    checks.same_size(name, f"{argument}.size", v.size, "A.nrows", A.nrows)
    checks.same_device(name, A=A, **{argument: v})
    return ewise_add(v, Vector.filled(0.0, size=A.nrows, device=A.device))


def settled(
    name: str, found: Power | Callable[[], Power], tol: float | None, result: Result
) -> Result:
    """`result`, or ConvergenceError with it if `found`, or what it gives, has not converged."""
    found = found() if callable(found) else found
    if not found.converged:
        raise ConvergenceError(
            f"{name}: after max_iter={found.iterations} iterations the 1-norm of the change was "
            f"{found.change:g}, expected at most {tol:g}; raise max_iter or tol, "
            "or take the last iterate from the error's .result",
            result,
        )
    return result
