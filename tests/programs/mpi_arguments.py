"""Calls under mpiexec to which the last process gives something else than the others: each ends
with an error, of calls that exchange nothing with the next one that does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import spgraph as sg
from spgraph.distributed import MpiCommunicator
from spgraph.errors import CommunicationError
from spgraph.semirings import BinaryOp, binary, plus_times

TWICE, THRICE = (
    BinaryOp.from_expressions("more", python=f"x + {k} * y", cuda=f"x + {k} * y") for k in (2, 3)
)

# by name, what process `odd` (1 or 0) calls with Matrices A and B, and Vectors v, full, and w
CALLS: dict[str, Callable[..., Any]] = {
    "operator": lambda odd, A, B, v, w: sg.apply(v, "ainv" if odd else "abs"),
    "operator of a Matrix": lambda odd, A, B, v, w: sg.apply(A, "ainv" if odd else "abs"),
    "operator of one name": lambda odd, A, B, v, w: sg.ewise_add(v, w, TWICE if odd else THRICE),
    "number": lambda odd, A, B, v, w: v + (2 + odd),
    "threshold": lambda odd, A, B, v, w: sg.select(v, "valuegt", 3 + odd),
    "fill": lambda odd, A, B, v, w: sg.ewise_union(v, w, "min", left=odd, right=1),
    "operand": lambda odd, A, B, v, w: sg.ewise_mult(v, w if odd else v),
    "operand of a product": lambda odd, A, B, v, w: sg.mxv(A, v if odd else w, plus_times),
    "mask": lambda odd, A, B, v, w: sg.apply(v, "ainv", mask=v.S if odd else w.S),
    "complement": lambda odd, A, B, v, w: sg.apply(v, "ainv", mask=w.S if odd else ~w.S),
    "truth": lambda odd, A, B, v, w: sg.apply(v, "ainv", mask=w.S if odd else w.V),
    "mask of a product": lambda odd, A, B, v, w: sg.mxm(A, B, plus_times, mask=A.S if odd else B.S),
    "accumulator": lambda odd, A, B, v, w: sg.apply(
        v, "abs", out=w, accum=binary.min if odd else binary.max
    ),
    "replace": lambda odd, A, B, v, w: sg.apply(v, "abs", out=v, mask=w.S, replace=bool(odd)),
    "monoid": lambda odd, A, B, v, w: sg.reduce(v, "max" if odd else "min"),
    "value": lambda odd, A, B, v, w: sg.assign(v, 1 + odd, [3, 5]),
    "positions": lambda odd, A, B, v, w: sg.assign(v, 1, [3, 5 + odd]),
    "positions of a Matrix": lambda odd, A, B, v, w: sg.assign(A, 1, [3, 5 + odd], [1, 2]),
    "fewer positions": lambda odd, A, B, v, w: sg.extract(v, np.arange(10 + odd)),
    "fewer rows": lambda odd, A, B, v, w: sg.extract(A, np.arange(10 + odd), None),
    "row": lambda odd, A, B, v, w: A[3 + odd],
    "diagonal": lambda odd, A, B, v, w: sg.diag(A, odd),
    "array": lambda odd, A, B, v, w: A @ np.where(np.arange(64) == 17, odd, 1.0),
    "array to all": lambda odd, A, B, v, w: v.device.scatter(
        sg.Vector.from_dense(np.arange(64) + odd)
    ),
    "constant": lambda odd, A, B, v, w: sg.Vector.filled(1 + odd, size=64, device=v.device),
    "exponent": lambda odd, A, B, v, w: w.power(2 + odd),
    "function": lambda odd, A, B, v, w: (np.sqrt if odd else np.exp)(v),
    "seed": lambda odd, A, B, v, w: sg.greedy_color(A + A.T, seed=odd),
    "tolerance": lambda odd, A, B, v, w: v.isclose(w, rtol=0.5 * odd),
    "gathered": lambda odd, A, B, v, w: (v if odd else w).gather(),
    "gathered Matrix": lambda odd, A, B, v, w: (A if odd else B).gather(),
}


def containers(comm: MpiCommunicator) -> tuple[sg.Matrix, sg.Matrix, sg.Vector, sg.Vector]:
    A, B = (sg.generators.kronecker(6, 4, seed=seed, symmetric=False) for seed in (1, 2))
    G = A.astype(np.float64).distribute(comm.num_shards, communicator=comm)
    even = np.arange(0, 64, 2)
    v, w = sg.Vector.from_dense(np.arange(64.0)), sg.Vector.from_coo(even, even / 4, size=64)
    return G, B.astype(np.float64).to(G.device), v.to(G.device), w.to(G.device)


def called(call: Callable[..., Any], different: bool) -> str:
    """What comes of one call in this process."""
    comm = MpiCommunicator()
    given = containers(comm)
    try:
        call(int(different and comm.rank == comm.processes - 1), *given)
        comm.all_reduce_host(np.array([1]), "sum")
    except CommunicationError as error:
        return str(error)
    comm.close()
    return "no error"


def main() -> None:
    for name, call in CALLS.items():
        for different in (False, True):
            found = called(call, different)
            sys.stdout.write(f"{name}, {'different' if different else 'alike'}: {found};\n")
            sys.stdout.flush()  # one line in one piece, whoever else writes


if __name__ == "__main__":
    main()
