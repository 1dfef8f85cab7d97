"""power: dense iterations x <- f(x) along the edges of a graph, until x converges."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from spgraph import checks
from spgraph.backends.loops import PowerIteration
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.numbers import flags, is_integer, is_real
from spgraph.errors import DomainMismatch
from spgraph.operations import apply, ewise_add, ewise_mult, reduce, vxm
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

FLOAT64 = np.dtype(np.float64)


class Hop(NamedTuple):
    """x becomes (x * scale) A; scale is 1 where there is none.

    >>> import spgraph as sg
    >>> from spgraph.iterations import Hop
    >>> A = sg.Matrix.from_coo([0, 1, 1], [1, 0, 2], nrows=3, ncols=3)
    >>> share = sg.Vector.from_coo([0, 1], [1.0, 0.5], size=3)
    >>> Hop(A, share).scale.nvals  # one over the number of out-edges, of vertices that have some
    2
    """

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
    one back, SALSA the same with the degrees as scales.

    >>> import spgraph as sg
    >>> from spgraph.iterations import Hop, Step, power
    >>> A = sg.Matrix.from_coo([0, 1, 1], [1, 0, 2], nrows=3, ncols=3)
    >>> katz = Step((Hop(A),), factor=0.5, teleport=1.0)  # x <- 0.5 x A + 1
    >>> power(sg.Vector.from_dense([1.0, 1.0, 1.0]), katz).value.to_numpy().round(3).tolist()
    [2.0, 2.0, 2.0]
    """

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
    """(value, a function that gives the whole result of `power`). On a GPU the function waits for
    the iteration; before, the host may already launch what is computed from the value. `x` may also
    be the number that all vertices begin with; then the other arguments are not checked.
    """
    semiring = _checked(x, step, norm, tol, max_iter) if isinstance(x, Vector) else _typed(step)
    A, max_iter = step.hops[0].A, min(int(max_iter), 2**63 - 1)  # of int8 products would overflow
    fused = getattr(backend(A.device), "power", None)
    if A.nrows == 0 or max_iter == 0:
        empty = A.nrows == 0
        found = Power(_full(A, x).dup(), 0, 0.0 if empty else math.inf, empty or tol is None)
        return found.value, lambda: found
    if fused is None:
        found = composed(_full(A, x), step, norm=norm, tol=tol, max_iter=max_iter)
        found = found._replace(change=None) if tol is None else found
        return found.value, lambda: found
    constants = float(step.factor), float(step.keep), float(step.teleport), float(step.dangling)
    iteration = PowerIteration(
        matrices=_pulled(step),
        scales=tuple(hop.scale for hop in step.hops),
        semiring=semiring,
        constants=constants,
        restart=step.restart if isinstance(step.restart, Vector) else float(step.restart),
        norm=norm,
        tol=tol,
        max_iter=max_iter,
        single=single,
    )
    value, report = fused(x, iteration)

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
    """`power` made of operations, all in double precision: the reference for tests, and what runs
    where a backend has no fused form.
    """
    _checked(x, step, norm, tol, max_iter)
    semiring = plus_times if step.weighted else plus_first
    # which entries of x no hop carries on, and what each vertex gets back of what they hold
    first = step.hops[0].scale
    is_dangling = _full(x, 0.0) if first is None else apply(first, binary.eq, right=0.0)
    restart = _full(x, step.restart)
    iterations, change = 0, 0.0 if x.size == 0 else math.inf
    while iterations < max_iter:
        y = x
        for hop in step.hops:
            y = vxm(y if hop.scale is None else ewise_mult(y, hop.scale), hop.A, semiring)
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
    check_limits("power", tol, max_iter)
    return _typed(step)


def _typed(step: Step) -> TypedSemiring:
    """The semiring of the hops over a matrix's values and float64."""
    semiring = plus_times if step.weighted else plus_second
    return checks.typed("power", semiring, _values(step), FLOAT64)


def _check_full(name: str, v: Vector) -> None:
    if v.dtype != FLOAT64 or v.nvals != v.size:
        raise DomainMismatch(
            f"power: {name}: expected a full Vector of float64, got one of {v.dtype} with "
            f"{v.nvals} entries of {v.size}"
        )


def _pulled(step: Step) -> tuple[Matrix, ...]:
    """The matrices whose rows are summed, with values of one type where these are looked at."""
    dtype = _values(step)
    return tuple(
        hop.A._T if hop.A.dtype == dtype or not step.weighted else hop.A._T.dup(dtype)
        for hop in step.hops
    )


def _values(step: Step) -> np.dtype:
    """The type of the values of all hops."""
    return np.result_type(*(hop.A.dtype for hop in step.hops))


def check_limits(name: str, tol: float | None, max_iter: int) -> None:
    """ValueError unless `tol` and `max_iter` bound an iteration."""
    if tol is not None and not (is_real(tol) and tol > 0):
        raise ValueError(f"{name}: tol: expected a number > 0 or None, got {tol!r}")
    if not is_integer(max_iter) or max_iter < 0:
        raise ValueError(f"{name}: max_iter: expected an integer >= 0, got {max_iter!r}")
