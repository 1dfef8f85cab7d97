"""Operators from users: a Python scalar function, or one expression in each language."""

import ast
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..errors import DomainMismatch
from .functions import BOOL, C_TYPES, FLOAT64, INT64, Function, Text, python_cast
from .inference import Types, infer
from .source import SCALAR, read
from .translate import translate

# Numba cannot unload machine code: a process with so many operators is warned of their memory
MANY = 500
_used: set[int] = set()  # hashes of the operators that were resolved for some types


@dataclass(frozen=True)
class Scalar:
    """A user's function: its Python text, its CUDA expression if one was given, and the type of its
    result over all types where somebody knows that better than Numba.
    """

    python: str
    cuda: str | None = None
    result: np.dtype | None = None

    def function(
        self, name: str, owner: str, values: dict[str, np.dtype], parameters: tuple[str, ...]
    ) -> Function:
        """The typed function; Numba infers a result type for the types as stored."""
        _count(self)
        types = tuple(values.values())
        try:
            result = self.result or infer(self.python, types)
        except DomainMismatch as error:
            raise DomainMismatch(f"{owner}: {error}") from None
        casts = ", ".join(python_cast(dtype, name) for name, dtype in values.items())
        python = Text(
            f"{SCALAR}({casts})", before=f'@njit(error_model="numpy")\n{self.python}\n\n\n'
        )
        if self.cuda is None:
            tree = ast.parse(self.python).body[0]
            assert isinstance(tree, ast.FunctionDef)
            for node in ast.walk(tree):
                vars(node).pop("lineno", None)  # lines of this text would mislead
            taken = ", ".join(f"{name}_" for name in values)
            cuda = Text(f"{SCALAR}({taken})", before=translate(tree, types, result, owner))
        else:
            lines = tuple(
                f"const {C_TYPES[dtype.name]} {name} = {name}_;" for name, dtype in values.items()
            )
            cuda = Text(self.cuda, lines)
        return Function(
            name=name,
            parameters=parameters,
            arguments=tuple(values.get(name, INT64) for name in parameters),
            result=result,
            python=python,
            cuda=cuda,
        )


def _count(scalar: Scalar) -> None:
    """Warn once when a process has used MANY different user-defined operators."""
    if len(_used) < MANY:
        _used.add(hash(scalar))
        if len(_used) >= MANY:
            warnings.warn(
                f"this process has used {MANY} different operators made of functions or "
                "expressions; each keeps 0.3 to 3 MB of machine code until the process ends, as "
                "Numba cannot unload any. Pass a number that changes from call to call as an "
                "operand (the scalar of apply or select), not inside of the function",
                RuntimeWarning,
                stacklevel=2,
            )


def from_function(f: Callable[..., object], owner: str, positions: tuple[bool, ...]) -> Scalar:
    """The operator that `f` computes; `positions` tells which of its arguments are rows or columns.

    Errors in `f` are raised here: its source is read, translated, and its types are inferred for
    float64, int64 or bool, whichever Numba accepts first.
    """
    tree = read(f, owner, len(positions))
    scalar = Scalar(ast.unparse(tree))
    types, result = _first_types(scalar, owner, positions)
    translate(tree, types, result, owner)  # from the tree as read: it knows the lines of the file
    return scalar


def from_texts(
    owner: str, python: str, cuda: str, parameters: tuple[str, ...], positions: tuple[bool, ...]
) -> Scalar:
    """The operator that computes one expression in each language, over `parameters`."""
    for language, text in (("python", python), ("cuda", cuda)):
        if not isinstance(text, str) or not text.strip():
            raise DomainMismatch(
                f"{owner}: {language} must be an expression of {', '.join(parameters)}"
            )
    try:
        tree = ast.parse(python.strip(), mode="eval")
    except SyntaxError as error:
        raise DomainMismatch(
            f"{owner}: python={python!r} is not an expression: {error.msg}"
        ) from None
    text = f"def {SCALAR}({', '.join(parameters)}):\n    return {ast.unparse(tree)}"
    scalar = Scalar(text, cuda.strip())
    _first_types(scalar, owner, positions)
    return scalar


def _first_types(scalar: Scalar, owner: str, positions: tuple[bool, ...]) -> tuple[Types, np.dtype]:
    reasons = []
    for dtype in (FLOAT64, INT64, BOOL):
        types = tuple(INT64 if position else dtype for position in positions)
        try:
            return types, infer(scalar.python, types)
        except DomainMismatch as error:
            reasons.append(str(error))
    raise DomainMismatch(f"{owner}: {reasons[0]}")
