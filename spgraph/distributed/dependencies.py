"""Dependencies of sources on vertices, level by level, out of operations."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from spgraph.containers import Vector
from spgraph.containers.arrays import array_module
from spgraph.distributed.loops import search
from spgraph.operations import assign, ewise_add, ewise_mult, mxv, select, vxm
from spgraph.semirings import (
    BinaryOp,
    Monoid,
    Semiring,
    binary,
    plus_first,
    plus_second,
)
from spgraph.semirings import select as selectors

# numbers of paths up to here and their inverses are exact enough in float64
MOST = 1e290


class Numbers(NamedTuple):
    """How numbers of paths are kept: as they are, or as logarithms, where float64 does not hold
    them.
    """

    forward: Semiring
    backward: Semiring
    zero: float
    one: float
    times: BinaryOp
    over: BinaryOp
    more: Callable[[Any], Any]  # 1 + d, of an array d
    home: Callable[[Any], Any]  # d itself


@functools.cache
def plain_numbers() -> Numbers:
    """Numbers as they are."""
    return Numbers(
        forward=plus_first,
        backward=plus_second,
        zero=0.0,
        one=1.0,
        times=binary.times,
        over=binary.truediv,
        more=lambda d: d + 1.0,
        home=np.positive,  # a copy
    )


@functools.cache
def logarithms() -> Numbers:
    """Logarithms: a sum of numbers is log(exp(x) + exp(y))."""
    add = BinaryOp.from_expressions(
        "log_plus",
        python="x if y == -math.inf else max(x, y) + math.log1p(math.exp(-abs(x - y)))",
        cuda="y == -INFINITY ? x : fmax(x, y) + log1p(exp(-fabs(x - y)))",
    )
    plus = Monoid(add, -np.inf, None)
    return Numbers(
        forward=Semiring(plus, binary.first),
        backward=Semiring(plus, binary.second),
        zero=-np.inf,
        one=0.0,
        times=binary.plus,
        over=binary.minus,
        more=lambda d: np.logaddexp(0.0, d),
        home=np.exp,
    )


def dependencies(A: Any, T: Any, sources: np.ndarray, level: Any) -> Vector:
    """As `dependencies` of a backend: of every one of `sources`, or with a `level`, of its only
    vertex of level 0 along the edges of A.
    """
    placement, n = A.device, A.nrows
    score = placement.filled(0.0, size=n, dtype=np.float64)
    for source in sources.tolist():
        steps = level
        if level is None:
            start = placement.unit(source, True, size=n, dtype=np.bool_)
            steps, _, _ = search(A, T, start, None, True, "auto", n, False)
        found = _of_source(A, steps, level is None, plain_numbers())
        if found is None:
            found = _of_source(A, steps, level is None, logarithms())
        assign(score, found, accum=binary.plus)
    return score


def _of_source(A: Any, level: Any, adjacent: bool, numbers: Numbers) -> Any:
    """The dependency of one source; None if its numbers of paths do not fit `numbers`. `adjacent`:
    of A's edges only those count that lead to the next level, else all of them lead on."""
    n, device = A.nrows, A.device
    deepest = level.extent()[1]
    levels = [select(level, selectors.valueeq, depth) for depth in range(deepest + 1)]
    paths = [_constant(levels[0], numbers.one)]
    total = paths[0]
    for at in levels[1:]:
        # p<level> = p plus.first A
        came = vxm(paths[-1], A, numbers.forward, mask=at.S if adjacent else None)
        if not adjacent:
            total = ewise_add(total, came, numbers.forward.monoid)
            came = ewise_mult(total, at, binary.first)
        paths.append(came)
    if numbers.zero == 0.0 and not max(p.extent()[1] for p in paths) < MOST:
        return None
    score = Vector.empty(n, np.float64, device=device)
    share = Vector.empty(n, np.float64, device=device)
    for p in paths[:0:-1]:
        # d<level> = p * (A plus.second share); share = (1 + d) / p
        carried = ewise_mult(mxv(A, share, numbers.backward, mask=p.S), p, numbers.times)
        d = ewise_add(_constant(p, numbers.zero), carried, binary.second)
        assign(score, d.with_values(numbers.home), mask=d.S)
        near = ewise_mult(d.with_values(numbers.more), p, numbers.over)
        share = near if adjacent else ewise_add(share, near, binary.second)
    return score


def _constant(v: Any, value: float) -> Any:
    return v.with_values(lambda x: array_module(x).full(x.size, value))
