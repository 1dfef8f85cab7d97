"""What the loops of every backend are given, where that is more than a few arguments."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from spgraph.containers import Matrix, Vector
from spgraph.semirings import TypedSemiring

Norm: TypeAlias = Literal[1, 2, "max"] | None
# what kernels call them: as in cpu/power/kernels/power.py and cuda/power/kernels/power_sums.cuh
NORMS: dict[Norm, int] = {None: 0, 1: 1, 2: 2, "max": 3}


class LevelSearch(NamedTuple):
    """What `search` is given beside the graph and where it starts: levels alone, up to `max_depth`,
    unless there is a semiring.
    """

    max_depth: int
    semiring: TypedSemiring | None = None
    first_hit: bool = True  # whether a vertex's first product is its value
    direction: str = "auto"
    trace: bool = False


class PowerIteration(NamedTuple):
    """x <- f(x), repeated: what `power` and `power_shard` are given beside x.

    Each of the one or two `matrices` is pulled by rows: x becomes M (x * scale). Then, with
    `constants` = (factor, keep, teleport, dangling), the iterate is factor times that + keep x +
    (teleport + dangling times the sum of x where the first scale is zero) restart, divided by its
    `norm`. `tol` None runs all of `max_iter`.
    """

    matrices: tuple[Matrix, ...]
    scales: tuple[Vector | None, ...]  # None: 1
    semiring: TypedSemiring
    constants: tuple[float, float, float, float]
    restart: Vector | float
    norm: Norm
    tol: float | None
    max_iter: int
    single: bool  # whether x * scale is gathered in single precision

    @property
    def gathered(self) -> np.dtype:
        """The type of the values that a product gathers."""
        return np.dtype(np.float32 if self.single else np.float64)
