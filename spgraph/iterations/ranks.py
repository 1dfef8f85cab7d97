"""What algorithms that rank vertices have in common beside `power`: checks of a graph and of its
weights, degrees as scales, norms, convergence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeVar

import numpy as np

from spgraph import checks
from spgraph.containers import Matrix, MatrixLike, Vector
from spgraph.containers.storage.arrays import as_array
from spgraph.errors import ConvergenceError, DomainMismatch, NegativeWeight
from spgraph.iterations.power_iteration import Power
from spgraph.operations import ewise_add, mxv
from spgraph.semirings import plus_times
from spgraph.steps import backend

Result = TypeVar("Result")
FLOAT64 = np.dtype(np.float64)
# the least number above 0
LEAST = 5e-324
# the least that `checked_graph` allows the greatest weight to be: float64 holds its square and that
# of 1 / SMALL
SMALL = 1e-150
# numbers from here on have an inverse in float64
INVERTIBLE = 6e-309
# the greatest scale for which x * scale keeps its precision in float32
SINGLE_SCALE = 1e30


def checked_graph(name: str, A: MatrixLike, weighted: bool) -> Matrix:
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


def positive(v: Vector) -> Vector:
    """1.0 where a full v >= 0 of float64 is greater than 0, else 0.0."""
    return v._with_values(np.sign)


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


def scaled(v: Vector, norm: Literal[1, 2]) -> Vector:
    """A full v of float64 divided by its norm, 1 or 2; zeros stay zeros. Nothing is read back."""
    own = getattr(backend(v.device), "scaled", None)
    if own is not None:
        return own(v, norm)
    size = v._total(np.abs) if norm == 1 else v._total(np.square)
    size = size if norm == 1 else np.sqrt(size)
    return v._with_values(lambda x: x / (size + (size == 0)))


def full_vector(
    name: str, argument: str, v: Vector | Sequence[float] | np.ndarray, A: Matrix
) -> Vector:
    """`v`, a Vector or a 1-D array with a number for each vertex of A, as a full Vector of float64;
    positions without an entry are 0.
    """
    if isinstance(v, Mapping):
        raise DomainMismatch(
            f"{name}: {argument}: expected a Vector or an array with a number for each vertex, got "
            f"{type(v).__name__}; Vector.from_coo(positions, numbers, size=A.nrows) makes one"
        )
    if not isinstance(v, Vector):
        array = as_array(f"{name}: {argument}", v)
        try:
            v = Vector.from_dense(array)
        except DomainMismatch as error:
            raise DomainMismatch(f"{name}: {argument}: {error}") from None
    if isinstance(v.device, str) and not isinstance(A.device, str):
        v = Vector.from_coo(*v.to_coo(), size=v.size, device=A.device)
    checks.same_size(name, f"{argument}.size", v.size, "A.nrows", A.nrows)
    checks.same_device(name, A=A, **{argument: v})
    return ewise_add(v, Vector.filled(0.0, size=A.nrows, device=A.device))


def converged(
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
