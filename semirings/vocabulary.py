"""The operators and the functions that a user's function may contain."""

import ast
import builtins
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .functions import C_TYPES

# Functions of floats: in math and np under C's name, in math alone, and in np under another name.
_EXPONENTIAL = ("sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p")
_REAL = (*_EXPONENTIAL, "sin", "cos", "tan", "sinh", "cosh", "tanh", "fabs", "copysign", "hypot")
_MATH_REAL = ("asin", "acos", "atan", "asinh", "acosh", "atanh", "atan2", "erf", "erfc", "lgamma")
_NUMPY_REAL = {
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "arctan2": "atan2",
    "cbrt": "cbrt",
    "fmod": "fmod",
}

# What may be called: how it is translated (expressions.py), and its name in C or among the helpers.
CALLS: dict[str, tuple[str, str]] = {
    "abs": ("absolute", "fabs"),
    "bool": ("cast", ""),
    "int": ("cast", ""),
    "max": ("fold", "greater"),
    "min": ("fold", "lesser"),
    **{f"{module}.{name}": ("real", name) for module in ("math", "np") for name in _REAL},
    **{f"math.{name}": ("real", name) for name in _MATH_REAL},
    **{f"np.{name}": ("real", text) for name, text in _NUMPY_REAL.items()},
    "math.gamma": ("real", "tgamma"),
    **{f"math.{name}": ("whole", name) for name in ("floor", "ceil", "trunc")},
    **{f"np.{name}": ("round", name) for name in ("floor", "ceil", "trunc", "rint")},
    **{
        f"{module}.{name}": ("test", name)
        for module in ("math", "np")
        for name in ("isnan", "isinf", "isfinite")
    },
    "np.absolute": ("absolute", "fabs"),
    "np.sign": ("helper", "sign"),
    "np.minimum": ("helper", "minimum"),
    "np.maximum": ("helper", "maximum"),
    "np.fmin": ("omit", "fmin"),
    "np.fmax": ("omit", "fmax"),
    **{f"np.{'bool_' if name == 'bool' else name}": ("cast", "") for name in C_TYPES},
}


def callee(name: str) -> Any:
    """The Python object behind a name of `CALLS`."""
    module, _, attribute = name.rpartition(".")
    return getattr({"": builtins, "math": math, "np": np}[module], attribute)


# The name that a call of an object is written with; Numba has no float(bool) and no math.fmod.
CALL_NAMES: dict[Any, str] = {callee(name): name for name in CALLS} | {
    float: "np.float64",
    math.fmod: "np.fmod",
}

OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
WORDS: dict[type[ast.AST], str] = {
    ast.ListComp: "a list comprehension",
    ast.SetComp: "a set comprehension",
    ast.DictComp: "a dict comprehension",
    ast.GeneratorExp: "a generator expression",
    ast.List: "a list",
    ast.Tuple: "a tuple",
    ast.Dict: "a dict",
    ast.Set: "a set",
    ast.Subscript: "an index [...]",
    ast.Attribute: "an attribute",
    ast.JoinedStr: "a formatted string",
    ast.Lambda: "a lambda inside the function",
    ast.FunctionDef: "a function inside the function",
    ast.NamedExpr: "the assignment expression :=",
    ast.AnnAssign: "an annotated assignment",
    ast.Expr: "an expression whose value is not used",
    ast.Global: "global",
    ast.Nonlocal: "nonlocal",
    ast.Import: "import",
    ast.ImportFrom: "import",
    ast.Delete: "del",
    ast.MatMult: "the operator @",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Starred: "a starred expression",
}
