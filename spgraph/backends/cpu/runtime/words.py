"""Functions of words, of which all values are integers of 64 bits: compiled without Numba, which
takes five times as long. The first call on several threads waits for those of kernels/pool.py.

Their texts are a small part of Python: names, assignments, `if`, `while`, `for` over a range or a
tuple of constants, calls of functions of the same text and of the instructions here. Whatever else
a text has is an error. Truth values are 1 and 0.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import pathlib
import pickle
from collections.abc import Callable
from typing import Any

import llvmlite
from llvmlite import ir
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import cpu_target
from numba.core.serialize import dumps

from spgraph.backends.cpu.device import atomics
from spgraph.backends.cpu.runtime import cache, instructions, jit, libraries, teams
from spgraph.process import cache_folder
from spgraph.process.activity import preparing

WORD = ir.IntType(64)
ZERO, ONE = WORD(0), WORD(1)
Binary = Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value]
OPERATORS: dict[type[ast.operator], Binary] = {
    ast.Add: lambda builder, x, y: builder.add(x, y),
    ast.Sub: lambda builder, x, y: builder.sub(x, y),
    ast.Mult: lambda builder, x, y: builder.mul(x, y),
    ast.BitOr: lambda builder, x, y: builder.or_(x, y),
    ast.LShift: lambda builder, x, y: builder.shl(x, y),
}
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip


def address(stem: str, name: str) -> int:
    """Where a C function of `stem`.py is in memory, for the rest of the process: one that no other
    function of that text calls. The caller holds Numba's lock.
    """
    return int(_library(stem).get_pointer_to_function(_symbol(stem, name)))


def _symbol(stem: str, name: str) -> str:
    """What the linker calls a function of a text."""
    return f"{teams.PREFIX}{stem}_{name}"


@functools.cache
def _library(stem: str) -> JITCodeLibrary:
    """The machine code of a text, from the disk or compiled."""
    text, codegen = jit.text_of(stem), cpu_target.target_context.codegen()
    needed = [__file__, *(part.__file__ for part in (atomics, instructions, libraries, teams))]
    sources = [pathlib.Path(str(file)).read_text("utf-8") for file in needed]
    whole = (text, *sources, llvmlite.__version__, *map(str, codegen.magic_tuple()))
    identity = hashlib.sha256("\0".join(whole).encode()).hexdigest()[:32]
    folder = cache.folder()
    with preparing():
        if folder is None:
            return compiled(stem, text)
        path = folder / f"{stem}-{identity}.kernel"
        content = cache_folder.read(path)
        if content is not None:
            try:
                return JITCodeLibrary._unserialize(codegen, pickle.loads(content))
            except Exception as error:  # written by other versions that claim to be these
                cache_folder.discard(path, f"cannot be loaded ({error!r})")
        made = compiled(stem, text)
        cache_folder.write(path, dumps(made.serialize_using_object_code()))
        return made


def compiled(stem: str, text: str) -> JITCodeLibrary:
    """The machine code of a text's functions."""
    made = _Separate(cpu_target.target_context.codegen(), f"{teams.PREFIX}{stem}")
    made.enable_object_caching()
    module = made.create_ir_module(made.name)
    known: dict[str, Any] = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom):
            source = importlib.import_module(str(node.module))
            known.update((each.name, getattr(source, each.name)) for each in node.names)
        elif isinstance(node, ast.Assign):
            known[ast.unparse(node.targets[0])] = ast.literal_eval(node.value)
        elif isinstance(node, ast.FunctionDef):
            kind = ir.FunctionType(WORD, [WORD] * len(node.args.args))
            known[node.name] = ir.Function(module, kind, _symbol(stem, node.name))
            _Function(known, node)
        else:
            raise _unknown(node)
    made.add_ir_module(module)
    made.finalize()
    return made


def _unknown(node: ast.AST) -> SyntaxError:
    return SyntaxError(f"a text of words has none of: {ast.unparse(node)}")


class _Separate(libraries.Library):
    """Functions of which each is optimised by itself: nothing is gained by one inside another."""

    def _optimize_final_module(self) -> None:
        """Nothing more."""


class _Function:
    """Translates a function whose head is `known` already, with what it may use."""

    def __init__(self, known: dict[str, Any], node: ast.FunctionDef) -> None:
        self.known, head = known, known[node.name]
        self.builder = ir.IRBuilder(head.append_basic_block())
        self.places: dict[str, ir.Value] = {}
        self.again: list[ir.Block] = []  # where `continue` leads in the loops around a statement
        for argument, value in zip(node.args.args, head.args, strict=True):
            self.places[argument.arg] = place = self.builder.alloca(WORD)
            self.builder.store(value, place)
        names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
        for name in {each.id for each in names if isinstance(each.ctx, ast.Store)}:
            self.places.setdefault(name, self.builder.alloca(WORD))
        self.block(node.body)
        if not self.builder.block.is_terminated:
            self.builder.ret(ZERO)

    def _place(self) -> ir.Value:
        with self.builder.goto_entry_block():
            return self.builder.alloca(WORD)

    # --- statements -------------------------------------------------------------------------------

    def block(self, statements: list[ast.stmt]) -> None:
        """Statements; those behind a `return` or `continue` are never reached."""
        for statement in statements:
            if not self.builder.block.is_terminated:
                self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        """A statement."""
        match node:
            case ast.Expr():
                if not isinstance(node.value, ast.Constant):  # a docstring
                    self.value(node.value)
            case ast.Assign(targets=[ast.Name(id=name)]):
                self.builder.store(self.value(node.value), self.places[name])
            case ast.AugAssign(target=ast.Name(id=name)):
                both = ast.BinOp(ast.Name(name), node.op, node.value)
                self.builder.store(self.value(both), self.places[name])
            case ast.If():
                with self.builder.if_else(self.truth(node.test)) as (then, otherwise):
                    with then:
                        self.block(node.body)
                    with otherwise:
                        self.block(node.orelse)
            case ast.While(orelse=[]):
                self.loop(lambda: self.truth(node.test), node.body, [])
            case ast.For(target=ast.Name(id=name), orelse=[]):
                self.counted(name, node)
            case ast.Continue():
                self.builder.branch(self.again[-1])
            case ast.Return(value=ast.expr() as value):
                self.builder.ret(self.value(value))
            case _:
                raise _unknown(node)

    def loop(
        self, test: Callable[[], ir.Value], body: list[ast.stmt], step: list[ast.stmt]
    ) -> None:
        """A loop, with a `step` behind its body, which `continue` does not leave out."""
        head, inside, behind, end = (self.builder.append_basic_block() for _ in range(4))
        self.builder.branch(head)
        self.builder.position_at_end(head)
        self.builder.cbranch(test(), inside, end)
        self.builder.position_at_end(inside)
        self.body(body, behind)
        self.block(step)
        self.builder.branch(head)
        self.builder.position_at_end(end)

    def body(self, statements: list[ast.stmt], behind: ir.Block) -> None:
        """The body of a loop, once, and on to `behind`, where `continue` leads, too."""
        self.again.append(behind)
        self.block(statements)
        self.again.pop()
        if not self.builder.block.is_terminated:
            self.builder.branch(behind)
        self.builder.position_at_end(behind)

    def counted(self, name: str, node: ast.For) -> None:
        """A loop over a range, whose variable its body does not change, or over constants."""
        match node.iter:
            case ast.Tuple(elts=values):
                for value in values:
                    self.builder.store(self.value(value), self.places[name])
                    self.body(node.body, self.builder.append_basic_block())
            case ast.Call(func=ast.Name(id="range"), args=[*first, last], keywords=[]):
                start = self.value(first[0]) if first else ZERO
                end, place = self.value(last), self.places[name]
                self.builder.store(start, place)
                step = ast.parse(f"{name} += 1").body
                less = functools.partial(self.builder.icmp_signed, "<")
                self.loop(lambda: less(self.builder.load(place), end), node.body, step)
            case _:
                raise _unknown(node)

    # --- expressions ------------------------------------------------------------------------------

    def truth(self, node: ast.expr) -> ir.Value:
        """Whether a value is not 0."""
        return self.builder.icmp_signed("!=", self.value(node), ZERO)

    def value(self, node: ast.expr) -> ir.Value:
        """The value of an expression."""
        builder = self.builder
        match node:
            case ast.Constant(value=int(number)):
                return WORD(int(number))
            case ast.Name(id=name) if name in self.places:
                return builder.load(self.places[name])
            case ast.Name(id=name) if isinstance(self.known.get(name), int):
                return WORD(self.known[name])
            case ast.UnaryOp(op=ast.Not()):
                return builder.zext(builder.not_(self.truth(node.operand)), WORD)
            case ast.UnaryOp(op=ast.USub()):
                return builder.neg(self.value(node.operand))
            case ast.BinOp() if type(node.op) in OPERATORS:
                operands = self.value(node.left), self.value(node.right)
                return OPERATORS[type(node.op)](builder, *operands)
            case ast.Compare(ops=[op], comparators=[other]) if type(op) in COMPARISONS:
                both = self.value(node.left), self.value(other)
                return builder.zext(builder.icmp_signed(COMPARISONS[type(op)], *both), WORD)
            case ast.BoolOp(values=[first, *rest]):
                if not rest:
                    return self.value(first)
                others = ast.BoolOp(node.op, rest)
                if isinstance(node.op, ast.And):
                    return self.either(first, others, ast.Constant(0))
                return self.either(first, ast.Constant(1), others)
            case ast.IfExp():
                return self.either(node.test, node.body, node.orelse)
            case ast.Call(func=ast.Name(id=name), keywords=[]):
                return self.call(name, [self.value(each) for each in node.args])
        raise _unknown(node)

    def either(self, test: ast.expr, yes: ast.expr, no: ast.expr) -> ir.Value:
        """The value of one of two expressions; the other is not computed."""
        place = self._place()
        with self.builder.if_else(self.truth(test)) as (then, otherwise):
            with then:
                self.builder.store(self.value(yes), place)
            with otherwise:
                self.builder.store(self.value(no), place)
        return self.builder.load(place)

    def call(self, name: str, given: list[ir.Value]) -> ir.Value:
        """What a function or an instruction returns; 0 if it returns nothing."""
        builder = self.builder
        if name in ("min", "max"):
            sign = "<" if name == "min" else ">"
            return builder.select(builder.icmp_signed(sign, *given), *given)
        called = self.known[name]
        if isinstance(called, ir.Function):
            called.linkage = "internal"
            return builder.call(called, given)
        found = called(builder, *given)
        if found is None:
            return ZERO
        return builder.zext(found, WORD) if found.type.width < 64 else found
