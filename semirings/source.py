"""A scalar Python function as a self-contained syntax tree.

`read` finds the source of a function or lambda, raises DomainMismatch for anything that cannot be
translated, and returns a tree without references to the function's surroundings: numbers from
outside are replaced by their values, and functions are called as `math.f`, `np.f` or a built-in.
"""

import ast
import builtins
import math
import os
from collections.abc import Callable, Hashable
from types import FunctionType, ModuleType
from typing import Any, NoReturn, TypeVar

import numpy as np

from ..errors import DomainMismatch
from .definition import definition
from .functions import C_TYPES, NAME
from .vocabulary import CALL_NAMES, OPERATORS, WORDS

SCALAR = f"{NAME}_scalar"  # the name of a user's function inside an operator's text

_REMEDY = (
    "allowed are arithmetic, comparisons, and/or/not, conditional expressions, if, while, "
    "for over range, assignments, and calls of min, max, abs, int, float, bool and scalar "
    "functions of math and np; otherwise give both texts with from_expressions"
)
_RETURN = "return a number on every path"


def read(f: Callable[..., object], owner: str, count: int) -> ast.FunctionDef:
    """The syntax tree of `f`, a function of `count` arguments, ready for Numba and for `translate`.

    The function in the tree is called `SCALAR`. Raises DomainMismatch naming the construct and its
    line.
    """
    f = getattr(f, "py_func", f)  # what Numba's decorators wrap
    if not isinstance(f, FunctionType):
        raise DomainMismatch(
            f"{owner}: expected a Python function or lambda, got {f!r}; wrap it in one"
        )
    node = definition(f, owner)
    arguments = node.args
    taken = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    if (
        arguments.vararg
        or arguments.kwarg
        or arguments.kwonlyargs
        or arguments.defaults
        or len(taken) != count
    ):
        raise DomainMismatch(
            f"{owner}: {f.__name__} must take exactly {count} plain arguments without defaults, "
            f"it is defined as ({ast.unparse(arguments)})"
        )
    return _Alone(f, owner).function(node, taken)


class _Alone(ast.NodeTransformer):
    """Makes a function's tree self-contained; refuses every node without a visit method here."""

    def __init__(self, f: FunctionType, owner: str) -> None:
        self.f = f
        self.owner = owner
        self.locals = set(f.__code__.co_varnames) | set(f.__code__.co_cellvars)

    def function(self, node: ast.FunctionDef | ast.Lambda, names: list[str]) -> ast.FunctionDef:
        for name in sorted(self.locals & {"np", "math", "njit", "range"}):
            self.refuse(node, f"a variable called {name}", "give it another name")
        if isinstance(node, ast.Lambda):
            body: list[ast.stmt] = [ast.Return(self.visit(node.body))]
        else:
            body = self.block(node.body)
            if _reaches_end(body):
                self.refuse(body[-1], "a function that can end without a value", _RETURN)
        taken = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
        alone = ast.FunctionDef(name=SCALAR, args=taken, body=body, decorator_list=[])
        return _at(node, alone)

    def refuse(self, node: ast.AST, what: str, remedy: str = _REMEDY) -> NoReturn:
        file = os.path.basename(self.f.__code__.co_filename)
        place = f"line {getattr(node, 'lineno', '?')} of {file}"
        raise DomainMismatch(
            f"{self.owner}: {place}: {what} cannot be translated to CUDA; {remedy}"
        )

    def generic_visit(self, node: ast.AST) -> NoReturn:
        self.refuse(node, WORDS.get(type(node), type(node).__name__.lower()))

    # Statements

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        made = [self.visit(node) for node in statements if not _is_docstring(node)]
        return made or [_at(statements[0], ast.Pass())]

    def visit_Return(self, node: ast.Return) -> ast.AST:
        if node.value is None:
            self.refuse(node, "a return without a value", _RETURN)
        return _at(node, ast.Return(self.visit(node.value)))

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        match node:
            case ast.Assign(targets=[ast.Name() as target], value=value):
                return _at(node, ast.Assign([target], self.visit(value)))
            case ast.Assign(
                targets=[ast.Tuple(elts=elts) as target], value=ast.Tuple(elts=parts)
            ) if len(elts) == len(parts) and all(isinstance(name, ast.Name) for name in elts):
                values = ast.Tuple([self.visit(part) for part in parts], ast.Load())
                return _at(node, ast.Assign([target], values))
        self.refuse(node, f"the assignment {ast.unparse(node)!r}", "assign one value to one name")

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        if not isinstance(node.target, ast.Name):
            self.refuse(node, f"the assignment {ast.unparse(node)!r}", "assign to one name")
        before = ast.Name(node.target.id, ast.Load())
        value = _at(node, ast.BinOp(before, node.op, node.value))
        return _at(node, ast.Assign([node.target], self.visit(value)))

    def visit_If(self, node: ast.If) -> ast.AST:
        rest = self.block(node.orelse) if node.orelse else []
        return _at(node, ast.If(self.visit(node.test), self.block(node.body), rest))

    def visit_While(self, node: ast.While) -> ast.AST:
        if node.orelse:
            self.refuse(node, "the else of a loop")
        return _at(node, ast.While(self.visit(node.test), self.block(node.body), []))

    def visit_For(self, node: ast.For) -> ast.AST:
        what, steps = f"a loop over {ast.unparse(node.iter)}", node.iter
        if node.orelse:
            self.refuse(node, "the else of a loop")
        if (
            not isinstance(steps, ast.Call)
            or not isinstance(steps.func, ast.Name)
            or self.look_up(steps.func) is not range
            or not isinstance(node.target, ast.Name)
            or steps.keywords
            or not 1 <= len(steps.args) <= 3
        ):
            self.refuse(node, what, "loop over range(...) with one name")
        bounds = [self.visit(argument) for argument in steps.args]
        step = literal(bounds[2]) if len(bounds) == 3 else 1
        if type(step) is not int or step == 0:
            self.refuse(node, what, "give range a constant step that is not 0")
        ranged = ast.Call(ast.Name("range", ast.Load()), bounds, [])
        return _at(node, ast.For(node.target, ranged, self.block(node.body), []))

    def visit_Pass(self, node: ast.Pass) -> ast.AST:
        return node

    def visit_Break(self, node: ast.Break) -> ast.AST:
        return node

    def visit_Continue(self, node: ast.Continue) -> ast.AST:
        return node

    # Expressions

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return self.number(node, node.value, f"the constant {node.value!r}")

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self.locals:
            return node
        return self.number(node, self.look_up(node), f"{node.id}, which is not a number,")

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return self.number(node, self.look_up(node), f"{ast.unparse(node)}, which is not a number,")

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        if type(node.op) not in OPERATORS:
            self.refuse(node, WORDS[type(node.op)])
        left, right = self.visit(node.left), self.visit(node.right)
        exponent = literal(right) if isinstance(node.op, ast.Pow) else None
        if type(exponent) is int and exponent < 0 and literal(left) is None:
            # A float, as in Python; Numba would give an integer, and raise at zero.
            power = ast.BinOp(left, node.op, ast.Constant(-exponent))
            return _at(node, ast.BinOp(ast.Constant(1), ast.Div(), power))
        return self.fold(_at(node, ast.BinOp(left, node.op, right)), node.op, left, right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        operand = self.visit(node.operand)
        value = literal(operand) if isinstance(node.op, ast.USub) else None
        if value is not None:
            return self.number(node, -value, f"the constant {ast.unparse(node)}")
        return _at(node, ast.UnaryOp(node.op, operand))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        return _at(node, ast.BoolOp(node.op, [self.visit(value) for value in node.values]))

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        for test in node.ops:
            if type(test) not in OPERATORS:
                self.refuse(node, WORDS[type(test)])
        operands = [self.visit(operand) for operand in (node.left, *node.comparators)]
        made = _at(node, ast.Compare(operands[0], node.ops, operands[1:]))
        return self.fold(made, node.ops[0], *operands) if len(operands) == 2 else made

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        parts = [self.visit(part) for part in (node.test, node.body, node.orelse)]
        return _at(node, ast.IfExp(*parts))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        what, called = f"the call {ast.unparse(node)}", self.look_up(node.func)
        name = CALL_NAMES.get(called) if isinstance(called, Hashable) else None
        if name is None or node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            self.refuse(node, what)
        if name in ("min", "max") and len(node.args) < 2:
            self.refuse(node, what, "min and max take two numbers or more")
        arguments = [self.visit(argument) for argument in node.args]
        return _at(node, ast.Call(_expression(name), arguments, []))

    # Values from outside

    def look_up(self, node: ast.expr) -> Any:
        """The current value of a name from outside the function, or of module.name."""
        if isinstance(node, ast.Attribute):
            owner = self.look_up(node.value)
            if isinstance(owner, ModuleType) and hasattr(owner, node.attr):
                return getattr(owner, node.attr)
            self.refuse(node, f"the attribute {ast.unparse(node)}")
        if not isinstance(node, ast.Name) or node.id in self.locals:
            self.refuse(node, f"the call of {ast.unparse(node)}")
        free = dict(zip(self.f.__code__.co_freevars, self.f.__closure__ or (), strict=True))
        try:
            if node.id in free:
                return free[node.id].cell_contents
            if node.id in self.f.__globals__:
                return self.f.__globals__[node.id]
            return getattr(builtins, node.id)
        except (ValueError, AttributeError):
            what = f"{node.id}, which has no value yet,"
            self.refuse(node, what, "assign it before the operator is defined")

    def number(self, node: ast.expr, value: Any, what: str) -> ast.expr:
        """A number as a tree that `ast.unparse` converts to text without loss."""
        if isinstance(value, np.bool_ | np.float64):
            value = value.item()
        if isinstance(value, np.generic) and value.dtype.name in C_TYPES:
            typed = self.number(node, value.item(), what)  # a NumPy number brings its type along
            return _at(node, ast.Call(_expression(f"np.{value.dtype.name}"), [typed], []))
        if type(value) not in (bool, int, float):
            self.refuse(node, what)
        if type(value) is int and not -(2**63) <= value < 2**64:
            self.refuse(node, f"the integer {value}", "integers are 64 bits wide")
        if type(value) is bool:
            return _at(node, ast.Constant(value))
        if math.isfinite(value):
            made: ast.expr = ast.Constant(abs(value))
        else:
            made = _expression("math.nan" if math.isnan(value) else "math.inf")
        # A constant that is negative would be unparsed without the parentheses that it may need.
        return _at(node, ast.UnaryOp(ast.USub(), made) if math.copysign(1, value) < 0 else made)

    def fold(self, made: ast.expr, op: ast.AST, left: ast.AST, right: ast.AST) -> ast.expr:
        """An operation on two constants, evaluated by Python's rules, not Numba's."""
        what, a, b = f"the constant {ast.unparse(made)}", literal(left), literal(right)
        if a is None or b is None:
            return made
        if isinstance(op, ast.Pow | ast.LShift) and type(a) is type(b) is int and abs(b) > 64:
            self.refuse(made, what, "integers are 64 bits wide")
        try:
            value = OPERATORS[type(op)](a, b)
        except (ArithmeticError, ValueError, TypeError) as error:
            self.refuse(made, f"{what} ({error})", "it has no value in Python")
        return self.number(made, value, what)


def literal(node: ast.AST) -> Any:
    """The value of a tree made by `number`; None for any other tree, or a NumPy number."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = literal(node.operand)
        return None if value is None else -value
    if isinstance(node, ast.Constant):
        return node.value
    return getattr(math, node.attr) if isinstance(node, ast.Attribute) else None


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


Node = TypeVar("Node", bound=ast.AST)


def _at(place: ast.AST, made: Node) -> Node:
    """`made` with the line of `place`, parts without one included."""
    return ast.fix_missing_locations(ast.copy_location(made, place))


def _reaches_end(body: list[ast.stmt]) -> bool:
    """Whether control can come to the end of a block; what follows an end is never reached."""
    for node in body:
        match node:
            case ast.Return() | ast.Break() | ast.Continue():
                return False
            case ast.If() if not _reaches_end(node.body) and node.orelse:
                if not _reaches_end(node.orelse):
                    return False
            case ast.While(test=test) if literal(test) not in (None, 0) and not _breaks(node.body):
                return False
    return True


def _breaks(body: list[ast.stmt]) -> bool:
    """Whether a break of these statements, not of a loop among them, leaves the loop around."""
    return any(
        isinstance(node, ast.Break)
        or (isinstance(node, ast.If) and (_breaks(node.body) or _breaks(node.orelse)))
        for node in body
    )


def _is_docstring(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
    return False
