"""Translate Python expressions to CUDA C++, each with the type that Numba infers for it."""

import ast
import operator
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ..errors import DomainMismatch
from .functions import BOOL, FLOAT64, INT64, cuda_cast, cuda_literal
from .helpers import helper_name
from .inference import operation_types, unify
from .source import literal
from .vocabulary import CALLS, OPERATORS, callee

UINT64 = np.dtype("uint64")


class Value(NamedTuple):
    """A C++ expression and its type."""

    text: str
    type: np.dtype


Names = dict[str, Value]  # the C++ variable of each Python variable at some point of the function

_SYMBOLS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_UNARY: dict[type[ast.AST], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
# helpers for integers in place of C functions of floats
_INTEGER = {"fabs": "absolute", "fmin": "lesser", "fmax": "greater"}


def cast(value: Value, dtype: np.dtype) -> str:
    return value.text if value.type == dtype else f"({cuda_cast(dtype, value.text)})"


def truth(value: Value) -> str:
    return value.text if value.type == BOOL else f"({value.text} != 0)"


def _number(value: Any, dtype: np.dtype) -> Value:
    return Value(cuda_literal(dtype.type(value)), dtype)


class Expressions:
    """Translates the expressions of one function, and records the helpers that they call."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.helpers: dict[tuple[str, np.dtype], None] = {}

    def refuse(self, node: ast.AST, what: str, remedy: str) -> NoReturn:
        place = f"line {node.lineno}: " if hasattr(node, "lineno") else ""
        raise DomainMismatch(f"{self.owner}: {place}{what}; {remedy}")

    def expression(self, node: ast.expr, names: Names) -> Value:
        value = literal(node)
        if value is not None:
            dtype = (
                BOOL if isinstance(value, bool) else FLOAT64 if isinstance(value, float) else INT64
            )
            return _number(value, UINT64 if dtype == INT64 and value >= 2**63 else dtype)
        match node:
            case ast.Name(id=name):
                if name not in names:
                    self.refuse(
                        node, f"{name} may be used before it is assigned", "assign it on every path"
                    )
                return names[name]
            case ast.BinOp():
                return self.binary(
                    node, self.expression(node.left, names), self.expression(node.right, names)
                )
            case ast.UnaryOp():
                return self.unary(node, self.expression(node.operand, names))
            case ast.BoolOp():
                return self.logic(node.op, [self.expression(part, names) for part in node.values])
            case ast.Compare():
                operands = [self.expression(part, names) for part in (node.left, *node.comparators)]
                tests = [
                    self.compare(node, test, operands[index], operands[index + 1])
                    for index, test in enumerate(node.ops)
                ]
                return Value(tests[0] if len(tests) == 1 else f"({' && '.join(tests)})", BOOL)
            case ast.IfExp():
                test = truth(self.expression(node.test, names))
                then, other = self.expression(node.body, names), self.expression(node.orelse, names)
                dtype = unify(then.type, other.type)
                return Value(f"({test} ? {cast(then, dtype)} : {cast(other, dtype)})", dtype)
            case ast.Call():
                return self.call(node, [self.expression(argument, names) for argument in node.args])
        self.refuse(
            node,
            f"{ast.unparse(node)!r} has no translation",
            "write it with operators and scalar functions",
        )

    def types(
        self, node: ast.expr, function: Callable[..., object], *values: Value
    ) -> tuple[np.dtype, ...]:
        found = operation_types(function, tuple(value.type for value in values))
        if found is None:
            types = ", ".join(value.type.name for value in values)
            self.refuse(
                node, f"{ast.unparse(node)!r} is not defined for {types}", "cast the operands"
            )
        return found

    def helper(self, helper: str, dtype: np.dtype, *arguments: str) -> Value:
        self.helpers[helper, dtype] = None
        return Value(f"{helper_name(helper, dtype)}({', '.join(arguments)})", dtype)

    def binary(self, node: ast.BinOp, left: Value, right: Value) -> Value:
        *taken, dtype = self.types(node, OPERATORS[type(node.op)], left, right)
        a, b = cast(left, dtype), cast(right, dtype)
        real = dtype.kind == "f"
        match node.op:
            case ast.Pow():
                return self.power(node, a, b, taken[1], dtype)
            case ast.FloorDiv():
                helper = {"f": "real_floor_quotient", "u": "numba_quotient"}
                return self.helper(helper.get(dtype.kind, "numba_floor_quotient"), dtype, a, b)
            case ast.Mod():
                helper = {"f": "real_modulo", "u": "numba_rest"}
                return self.helper(helper.get(dtype.kind, "modulo"), dtype, a, b)
            case ast.Add() | ast.Sub() | ast.Mult() | ast.LShift() if not real:
                # Unsigned, because signed integers must not overflow in C++.
                wide = f"({cuda_cast(UINT64, a)} {_SYMBOLS[type(node.op)]} {cuda_cast(UINT64, b)})"
                return Value(wide if dtype == UINT64 else f"({cuda_cast(dtype, wide)})", dtype)
        text = f"({a} {_SYMBOLS[type(node.op)]} {b})"
        return Value(f"({cuda_cast(dtype, text)})" if dtype == BOOL else text, dtype)

    def power(self, node: ast.BinOp, base: str, by: str, taken: np.dtype, dtype: np.dtype) -> Value:
        if taken.kind == "f":
            return Value(f"pow({base}, {by})", dtype)
        exponent = literal(node.right)
        if type(exponent) is not int or not 0 <= exponent <= 65536:
            # Numba raises for some of these, even where it should not, and a kernel must not raise.
            what = f"{ast.unparse(node)!r} has an integer exponent that is not a small constant"
            self.refuse(node, what, "make it a float: x ** float(y)")
        helper = "numba_power" if dtype.kind == "f" else "numba_integer_power"
        return self.helper(helper, dtype, base, str(exponent))

    def unary(self, node: ast.UnaryOp, operand: Value) -> Value:
        if isinstance(node.op, ast.Not):
            return Value(f"(!{truth(operand)})", BOOL)
        taken, dtype = self.types(node, _UNARY[type(node.op)], operand)
        if operand.type == BOOL and isinstance(node.op, ast.Invert):
            return Value(f"(!{operand.text})", BOOL)
        if operand.type == BOOL:
            operand, taken = Value(cast(operand, dtype), dtype), dtype
        if isinstance(node.op, ast.USub) and dtype.kind != "f":
            # In the operand's own width first: -np.uint8(1) is 255.
            inner = cuda_cast(taken, f"0 - {cuda_cast(UINT64, operand.text)}")
            return Value(f"({cuda_cast(dtype, inner)})", dtype)
        symbol = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}[type(node.op)]
        return Value(f"({cuda_cast(dtype, cuda_cast(taken, symbol + operand.text))})", dtype)

    def logic(self, op: ast.boolop, values: list[Value]) -> Value:
        last = values[-1]
        for value in reversed(values[:-1]):
            dtype = unify(value.type, last.type)
            if dtype == BOOL:
                last = Value(
                    f"({value.text} {'&&' if isinstance(op, ast.And) else '||'} {last.text})", BOOL
                )
                continue
            own, rest = cast(value, dtype), cast(last, dtype)
            first, second = (rest, own) if isinstance(op, ast.And) else (own, rest)
            last = Value(f"({truth(value)} ? {first} : {second})", dtype)
        return last

    def compare(self, node: ast.Compare, test: ast.cmpop, left: Value, right: Value) -> str:
        one, other, _ = self.types(node, OPERATORS[type(test)], left, right)
        return f"({cast(left, one)} {_SYMBOLS[type(test)]} {cast(right, other)})"

    def call(self, node: ast.Call, values: list[Value]) -> Value:
        name = ast.unparse(node.func)
        way, text = CALLS[name]
        if way == "fold":
            total = values[0]
            for value in values[1:]:
                dtype = unify(total.type, value.type)
                total = self.helper(text, dtype, cast(total, dtype), cast(value, dtype))
            return total
        *_, dtype = self.types(node, callee(name), *values)
        arguments = [cast(value, dtype) for value in values]
        given, real = values[0].type.kind, dtype.kind == "f"
        if way == "test":
            return Value(
                f"((bool){text}({cast(values[0], values[0].type if given == 'f' else FLOAT64)}))",
                BOOL,
            )
        if (
            way == "cast"
            or (way in ("whole", "round") and given != "f")
            or (way == "absolute" and given in "bu")
        ):
            return Value(arguments[0], dtype)
        if way == "whole":
            return Value(f"({cuda_cast(dtype, f'{text}({values[0].text})')})", dtype)
        if text == "sign" and dtype.kind == "u":
            return self.helper("lesser", dtype, arguments[0], "1")
        if way == "helper" or (way in ("absolute", "omit") and not real):
            return self.helper(_INTEGER.get(text, text), dtype, *arguments)
        if not real:
            # np.fmod alone; over negative integers Numba's is wrong
            self.refuse(node, f"{ast.unparse(node)!r} is for floats here", "cast the operands")
        return Value(f"{text}({', '.join(arguments)})", dtype)
