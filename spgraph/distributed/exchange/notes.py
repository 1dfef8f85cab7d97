"""What processes are to have called alike, although nothing was exchanged there: a hash, which
their next messages compare.
"""

from __future__ import annotations

import functools
import zlib
from types import FunctionType
from typing import Any

import numpy as np

from spgraph.containers import Mask, Matrix, Vector
from spgraph.semirings import Function, TypedMonoid, TypedSemiring

# what says all of itself in its text; tuples, for isinstance takes longer with a union
SIMPLE = (bool, int, float, complex, str, type, np.generic, np.dtype, np.ufunc, slice, range)
OPERATORS = (Function, TypedMonoid, TypedSemiring)


def note(device: Any, name: str, *given: object) -> None:
    """Note that every process calls `name`, with what is `given`, on containers of the Placement
    `device`. Where they do not, they get CommunicationError at the next message that they exchange:
    otherwise each would do something else with its shards.
    """
    comm = device.communicator
    if comm.processes > 1:
        comm.noted = zlib.crc32(repr((name, *map(facts, given))).encode(), comm.noted)
        comm.last_noted = name


def facts(given: Any) -> object:
    """What tells an argument from another one, and has the same text in all processes. Of a
    container it is where it was made, not what it holds, of which each process has a part.
    """
    if given is None or isinstance(given, SIMPLE):
        return given
    if isinstance(given, Vector):
        return given.size, given.dtype.str, getattr(given, "made", None)
    if isinstance(given, Matrix):
        return given.shape, given.dtype.str, getattr(given, "fingerprint", None)
    if isinstance(given, Mask):
        return facts(given.parent), given.structure, given.complement
    if isinstance(given, OPERATORS):
        return _text(given)
    if isinstance(given, np.ndarray):
        return given.shape, given.dtype.str, zlib.crc32(np.ascontiguousarray(given).data)
    if isinstance(given, FunctionType):
        cells = [cell.cell_contents for cell in given.__closure__ or ()]
        return given.__qualname__, [facts(each) for each in cells if each is not given]
    if isinstance(given, (tuple, list)):
        return tuple(map(facts, given))
    return getattr(given, "shape", type(given).__name__)


def facts_of(v: Vector) -> tuple[object, ...]:
    """What tells a plain Vector, which every process has, from another one: its entries, where they
    are on the CPU.
    """
    arrays = v._values, v._indices, v._bits
    return v.size, v._nvals, *map(facts, arrays)


@functools.lru_cache(maxsize=1024)
def _text(given: Function | TypedMonoid | TypedSemiring) -> tuple[object, ...]:
    """The name of an operator, and a hash of what it computes."""
    if isinstance(given, Function):
        types = [dtype.str for dtype in (*given.arguments, given.result)]
        return given.name, zlib.crc32(repr((given.python, types)).encode())
    if isinstance(given, TypedMonoid):
        return *_text(given.function), given.identity, given.terminal
    return given.name, given.dtype.str, *_text(given.add), *_text(given.multiply)
