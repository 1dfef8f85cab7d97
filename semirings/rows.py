"""A row of the operator tables, and the typed function made from it.

The result type of every operator is the common type of its operands, promoted as NumPy promotes
arrays (int8 with uint8 gives int16, int64 with uint64 gives float64). Exceptions: comparisons and
logic give bool, first and second the type of their operand, functions such as sqrt a floating type
(float32 for 8 and 16 bit integers, float64 for wider ones), positions the index type. Comparisons
of int64 with uint64 are exact.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..errors import DomainMismatch
from .functions import (
    BOOL,
    C_TYPES,
    INT64,
    Function,
    Text,
    cuda_cast,
    names,
    python_cast,
    real_type,
    ring_type,
)
from .helpers import HELPERS, cuda_helper, cuda_text, helper_name, python_helper, python_text

# The type that an operator computes in (all but X and Y), or that its result has (COMMON, REAL,
# TRUTH, X, Y and POSITION).
COMMON = "common"  # the common type of the values
REAL = "real"  # the floating type that corresponds to it
TRUTH = "truth"  # bool
RING = "ring"  # the unsigned integers of its size, where sums and products wrap around
OWN = "own"  # every value in its own type
SCALE = "scale"  # x in a floating type, y as an integer
X, Y = "x", "y"  # the type of x, of y
POSITION = "position"  # the index type; to compute in: the thunk is a position, as int64

_COMPARISONS = {"x == y", "x != y", "x < y", "x <= y", "x > y", "x >= y"}
_KINDS = {"b": "bool", "u": "unsigned integers", "i": "signed integers", "f": "floating types"}


@dataclass(frozen=True)
class Row:
    """One operator over some kinds of types, given by NumPy's letters b, u, i, f.

    `works` is the type that it computes in, `gives` that of the result. In the texts T is the type
    that it computes in, U its unsigned counterpart, LOWEST and HIGHEST are its limits; `cuda` is
    left out if the same text is right in both languages.
    """

    name: str
    kinds: str
    works: str
    gives: str
    python: str
    cuda: str = ""


def row_function(
    owner: str,
    rows: tuple[Row, ...],
    values: Mapping[str, np.dtype],
    parameters: tuple[str, ...],
    index: np.dtype,
) -> Function:
    """The function of the first row whose kinds include the common type of `values`; parameters not
    in `values` are int64.
    """
    scaled = rows[0].works == SCALE
    common = values["x"] if scaled else np.result_type(*values.values())
    row = next((row for row in rows if common.kind in row.kinds), None)
    if row is None:
        takes = " and ".join(_KINDS[kind] for row in rows for kind in row.kinds)
        promoted = "" if set(values.values()) == {common} else f", which promote to {common.name}"
        raise DomainMismatch(f"{owner}: takes {takes}, got {names(values.values())}{promoted}")
    if scaled and not np.can_cast(values["y"], INT64):
        raise DomainMismatch(
            f"{owner}: the exponent y must be an integer that fits int64, got {values['y'].name}"
        )
    compares = row.works == COMMON and row.python in _COMPARISONS
    if compares and common.kind == "f" and all(v.kind in "iu" for v in values.values()):
        row = _exact(row, "x" if values["x"].kind == "i" else "y")
    real = real_type(common)
    working = {
        COMMON: dict.fromkeys(values, common),
        REAL: dict.fromkeys(values, real),
        TRUTH: dict.fromkeys(values, BOOL),
        RING: dict.fromkeys(values, ring_type(common)),
        OWN: dict(values),
        SCALE: {"x": real, "y": INT64},
        POSITION: {"x": common, "y": INT64},
    }[row.works]
    result = {
        COMMON: common,
        REAL: real,
        TRUTH: BOOL,
        X: values["x"],
        Y: values.get("y", common),
        POSITION: index,
    }[row.gives]
    own = common if row.works == RING else working["x"]
    types = {name: working.get(name, INT64) for name in parameters}
    return Function(
        name=row.name,
        parameters=parameters,
        arguments=tuple(values.get(name, INT64) for name in parameters),
        result=result,
        python=_python(row.python, types, own),
        cuda=_cuda(row.cuda or row.python, types, own),
    )


def _exact(row: Row, signed: str) -> Row:
    """The comparison of int64 and uint64, whose common type, float64, rounds both; `signed` is x or
    y, the one that is int64.
    """
    symbol = row.python.split()[1]
    negative = symbol == "!=" or symbol[0] == ("<" if signed == "x" else ">")
    first = f"{signed} < 0 or" if negative else f"{signed} >= 0 and"
    python = f"{first} {row.python.replace(signed, f'np.uint64({signed})')}"
    cuda = python.replace(" or ", " || ").replace(" and ", " && ")
    cuda = cuda.replace("np.uint64", "(unsigned long long)")
    return Row(row.name, row.kinds, OWN, row.gives, python, cuda)


def _python(text: str, types: Mapping[str, np.dtype], own: np.dtype) -> Text:
    used = _words(text)
    lines = tuple(
        f"{name} = {python_cast(dtype, name)}" for name, dtype in types.items() if name in used
    )
    helpers = [word for word in HELPERS if word in used]
    before = "".join(python_helper(helper, own) for helper in helpers)
    return Text(_call(python_text(text, own), helpers, own), lines, before)


def _cuda(text: str, types: Mapping[str, np.dtype], own: np.dtype) -> Text:
    used = _words(text)
    lines = tuple(
        f"const {C_TYPES[dtype.name]} {name} = {cuda_cast(dtype, f'{name}_')};"
        for name, dtype in types.items()
        if name in used
    )
    helpers = [word for word in HELPERS if word in used]
    before = "".join(cuda_helper(helper, own) for helper in helpers)
    return Text(_call(cuda_text(text, own), helpers, own), lines, before)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\b[a-z_]\w*\b", text))


def _call(text: str, helpers: list[str], own: np.dtype) -> str:
    for helper in helpers:
        text = re.sub(rf"\b{helper}\(", f"{helper_name(helper, own)}(", text)
    return text
