"""The steps that all operations share: the backend of a device, push or pull, and the last step."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from spgraph import checks
from spgraph import direction as directions
from spgraph.containers import Mask, Matrix, Vector
from spgraph.semirings import Function, TypedSemiring


def is_distributed(container: Vector | Matrix) -> bool:
    """Whether its entries are spread over several blocks, so that it has no arrays to look at."""
    return not isinstance(container.device, str)


def backend(device: Any) -> ModuleType:
    """The module that computes on `device`: a name, or the Placement of distributed containers."""
    if not isinstance(device, str):
        from spgraph import distributed

        return distributed
    if device == "cpu":
        from spgraph.backends import cpu

        return cpu
    from spgraph.backends import cuda

    return cuda


def push_or_pull(
    name: str,
    direction: str,
    A: Matrix,
    u: Vector,
    rows: int,
    typed: TypedSemiring,
    mask: Mask | None,
    over_transpose: str,
) -> str:
    """'push' or 'pull'; `over_transpose` is the one that needs the transpose of A."""
    checks.direction(name, direction)
    if direction != "auto":
        return direction
    if A.transient and not A.has_transpose:
        return "pull" if over_transpose == "push" else "push"
    allowed = rows
    if mask is not None:
        allowed = rows - mask.parent.nvals if mask.complement else mask.parent.nvals
    first_hit = typed.add.any or (typed.add.terminal is not None and typed.dtype == np.bool_)
    return directions.choose(u.nvals, u.size, A.nvals, rows, allowed, first_hit)


def finish(
    t: Any,
    mask: Mask | None,
    accum: Function | None,
    replace: bool,
    out: Any,
    *,
    masked: bool = False,
) -> Any:
    """Accumulate the Vector or Matrix t into `out` and write under the mask.

    `masked` says that t holds nothing outside of the mask already.
    """
    if out is None:
        if mask is None or masked:
            return t
        out, replace = type(t).empty(*t.shape, t.dtype, device=t.device), True
    elif masked and replace and accum is None:
        mask = None
    on = backend(t.device)
    (on.write if isinstance(t, Vector) else on.write_matrix)(out, t, mask, accum, replace)
    return out
