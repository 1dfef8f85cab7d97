"""Translate a scalar Python function to CUDA C++.

Types are inferred by Numba for every operation, so that both languages compute alike (integers
widen to 64 bits, `/` gives a float, `//` and `%` take the divisor's sign). A variable that is
assigned twice becomes two C++ variables, joined where control flow joins (static single
assignment): Numba, too, infers a type for each assignment.
"""

import ast
import re
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .expressions import Expressions, Names, Value, cast, truth
from .functions import C_TYPES, NAME
from .helpers import cuda_helper
from .inference import range_type, unify
from .source import SCALAR, literal, read

# nested lists, so that assignments can still be added at the end of an inner block
Lines: TypeAlias = "list[str | Lines]"


class Edge(NamedTuple):
    """A control-flow edge into a join: the variables on it, and the list that assignments before
    the jump are appended to.
    """

    names: Names
    lines: Lines


def cuda_function(f: Any, name: str, arguments: tuple[np.dtype, ...], result: np.dtype) -> str:
    """The CUDA C++ text of a plain Python function: a device function called `name` over the given
    types.

    The text needs no header. Raises DomainMismatch naming the construct and its line for anything
    that has no translation, for variables that may be unassigned, and for functions that can end
    without a value.

    >>> def clamp(x, low):
    ...     return low if x < low else x
    >>> real = np.dtype("float32")
    >>> print(cuda_function(clamp, "clamp", (real, real), real))
    __device__ __forceinline__ float clamp(float x_0, float low_1) {
        return ((x_0 < low_1) ? low_1 : x_0);
    }
    <BLANKLINE>
    """
    tree = read(f, f"cuda_function({name})", len(arguments))
    return translate(tree, arguments, result, name).replace(SCALAR, name).replace(NAME, name)


def translate(
    tree: ast.FunctionDef, arguments: tuple[np.dtype, ...], result: np.dtype, owner: str
) -> str:
    """The CUDA C++ text of a tree made by `source.read`; the function in it is called `SCALAR`."""
    return _Writer(owner).function(tree, arguments, result)


class _Loop:
    """The edges out of a loop's body, while it is being translated."""

    def __init__(self) -> None:
        self.breaks: list[Edge] = []
        self.continues: list[Edge] = []


class _Writer(Expressions):
    """Translates one function; statements are appended to `lines`."""

    def __init__(self, owner: str) -> None:
        super().__init__(owner)
        self.lines: Lines = []
        self.loops: list[_Loop] = []
        self.taken = 0  # parameters, whose numbers come before the variables'
        self.declared: list[Value] = []
        self.returned: list[tuple[Value, Lines]] = []

    def function(
        self, tree: ast.FunctionDef, arguments: tuple[np.dtype, ...], result: np.dtype
    ) -> str:
        taken = [argument.arg for argument in tree.args.args]
        self.taken = len(taken)
        names = {
            name: Value(self.spelling(name, index), dtype)
            for index, (name, dtype) in enumerate(zip(taken, arguments, strict=True))
        }
        parameters = ", ".join(
            f"{C_TYPES[value.type.name]} {value.text}" for value in names.values()
        )
        self.block(tree.body, names)
        common = self.returned[0][0].type if self.returned else result
        for value, _ in self.returned:
            common = unify(common, value.type)
        for value, place in self.returned:
            place.append(f"return {cast(Value(cast(value, common), common), result)};")
        head = f"__device__ __forceinline__ {C_TYPES[result.name]} {SCALAR}({parameters}) {{"
        lines, used = _without_unused(_flat(self.lines), {value.text for value in self.declared})
        variables = [
            f"{C_TYPES[value.type.name]} {value.text};"
            for value in self.declared
            if value.text in used
        ]
        helpers = "".join(cuda_helper(helper, dtype) for helper, dtype in self.helpers)
        return helpers + _indented([head, *variables, *lines, "}"])

    def spelling(self, name: str, index: int) -> str:
        return f"{name if name.isascii() else 'variable'}_{index}"

    def variable(self, name: str, dtype: np.dtype) -> Value:
        """A new C++ variable for the Python variable `name`."""
        made = Value(self.spelling(name, self.taken + len(self.declared)), dtype)
        self.declared.append(made)
        return made

    def nested(self, body: list[ast.stmt], names: Names) -> Edge | None:
        """Translate a block into a list of its own; returns the edge at its end, None if control
        flow never gets there.
        """
        outer, self.lines = self.lines, []
        after = self.block(body, names)
        inner, self.lines = self.lines, outer
        outer.append(inner)
        return None if after is None else Edge(after, inner)

    def join(self, edges: list[Edge]) -> Names:
        """The variables where edges join; one that differs between them becomes a new one."""
        after = {}
        for name in edges[0].names:
            values = [edge.names[name] for edge in edges if name in edge.names]
            if len(values) < len(edges):
                continue  # unassigned on some way
            if all(value == values[0] for value in values[1:]):
                after[name] = values[0]
                continue
            dtype = values[0].type
            for value in values[1:]:
                dtype = unify(dtype, value.type)
            after[name] = self.variable(name, dtype)
            for edge, value in zip(edges, values, strict=True):
                edge.lines.append(f"{after[name].text} = {cast(value, dtype)};")
        return after

    # Statements: each takes the variables before it and gives those after it, None for an end.

    def block(self, body: list[ast.stmt], names: Names) -> Names | None:
        current: Names | None = names
        for statement in body:
            if current is None:
                break  # never reached
            current = self.statement(statement, current)
        return current

    def statement(self, node: ast.stmt, names: Names) -> Names | None:
        match node:
            case ast.Pass():
                return names
            case ast.Return(value=ast.expr() as value):
                place: Lines = []
                self.returned.append((self.expression(value, names), place))
                self.lines.append(place)
                return None
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                return names | {name: self.assign(name, self.expression(value, names))}
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=parts)):
                values = [self.expression(part, names) for part in parts]
                ids = [target.id for target in targets if isinstance(target, ast.Name)]
                return names | {
                    name: self.assign(name, value) for name, value in zip(ids, values, strict=True)
                }
            case ast.If():
                self.lines.append(f"if ({truth(self.expression(node.test, names))}) {{")
                then = self.nested(node.body, names)
                self.lines.append("} else {")
                other = self.nested(node.orelse, names)
                self.lines.append("}")
                edges = [edge for edge in (then, other) if edge is not None]
                return self.join(edges) if edges else None
            case ast.While() | ast.For():
                return self.loop(node, names)
            case ast.Break() | ast.Continue():
                place = []
                self.lines += [place, "break;" if isinstance(node, ast.Break) else "continue;"]
                loop = self.loops[-1]
                (loop.breaks if isinstance(node, ast.Break) else loop.continues).append(
                    Edge(names, place)
                )
                return None
        self.refuse(
            node,
            f"{ast.unparse(node)!r} has no translation",
            "write it with if, while, for and assignments",
        )

    def assign(self, name: str, value: Value) -> Value:
        made = self.variable(name, value.type)
        self.lines.append(f"{made.text} = {value.text};")
        return made

    def loop(self, node: ast.While | ast.For, names: Names) -> Names | None:
        changed = {
            part.id
            for part in ast.walk(node)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        }
        types = {name: names[name].type for name in names if name in changed}
        while True:
            # The types at the head depend on the body and the other way round: write the loop again
            # until they rest. They only widen, so that takes a few rounds.
            written, declared, returned = len(self.lines), len(self.declared), len(self.returned)
            heads = {name: self.variable(name, dtype) for name, dtype in types.items()}
            self.loops.append(loop := _Loop())
            left = self.loop_text(node, names, heads)
            self.loops.pop()
            wider = dict(types)
            for edge in loop.continues:
                for name in types:
                    wider[name] = unify(wider[name], edge.names[name].type)
            if wider == types:
                break
            types = wider
            del self.lines[written:], self.declared[declared:], self.returned[returned:]
        for edge in loop.continues:
            for name, head in heads.items():
                edge.lines.append(f"{head.text} = {cast(edge.names[name], head.type)};")
        edges = loop.breaks if left is None else [left, *loop.breaks]
        return self.join(edges) if edges else None

    def loop_text(self, node: ast.While | ast.For, before: Names, heads: Names) -> Edge | None:
        """Writes a loop with `heads` as its variables; the edge where its condition ends it."""
        self.lines += [
            f"{head.text} = {cast(before[name], head.type)};" for name, head in heads.items()
        ]
        names = before | heads
        forever = isinstance(node, ast.While) and literal(node.test) not in (None, 0)
        leave = Edge(names, [])
        if isinstance(node, ast.For):
            steps, inside = self.steps(node, before)
            self.lines += [f"{steps[0]} {{", f"if (!({steps[1]})) {{", leave.lines, "break;", "}"]
            assert isinstance(node.target, ast.Name)
            names = names | {node.target.id: self.assign(node.target.id, inside)}
        else:
            self.lines.append("for (;;) {")
            if not forever:
                test = truth(self.expression(node.test, names))
                self.lines += [f"if (!{test}) {{", leave.lines, "break;", "}"]
        end = self.nested(node.body, names)
        if end is not None:
            self.loops[-1].continues.append(end)
        self.lines.append("}")
        return None if forever else leave

    def steps(self, node: ast.For, names: Names) -> tuple[tuple[str, str], Value]:
        """The head of a loop over range, its condition, and the value of its variable."""
        assert isinstance(node.iter, ast.Call)
        values = [self.expression(argument, names) for argument in node.iter.args]
        found = range_type(tuple(value.type for value in values))
        if found is None:
            self.refuse(
                node, f"{ast.unparse(node.iter)} has no integer type", "give range integers"
            )
        start = cast(values[0], found) if len(values) > 1 else "0"
        step = literal(node.iter.args[2]) if len(values) == 3 else 1
        # The body may assign to the loop's variable without disturbing the count.
        count, stop = self.variable("count", found), self.variable("stop", found)
        self.lines.append(f"{stop.text} = {cast(values[min(1, len(values) - 1)], found)};")
        head = f"for ({count.text} = {start};; {count.text} += {step})"
        return (head, f"{count.text} {'<' if step > 0 else '>'} {stop.text}"), count


def _flat(lines: Lines) -> list[str]:
    return [text for line in lines for text in ([line] if isinstance(line, str) else _flat(line))]


def _without_unused(lines: list[str], variables: set[str]) -> tuple[list[str], set[str]]:
    """The lines without assignments to variables that nothing reads, and the variables left."""
    while True:
        parts = [re.fullmatch(r"(\w+) = (.*);", line) for line in lines]
        read = " ".join(part[2] if part else line for part, line in zip(parts, lines, strict=True))
        used = variables & set(re.findall(r"\w+", read))
        if used == variables:
            break
        lines = [
            line
            for part, line in zip(parts, lines, strict=True)
            if part is None or part[1] not in variables - used
        ]
        variables = used
    return "\n".join(lines).replace("} else {\n}", "}").split("\n"), variables


def _indented(lines: list[str]) -> str:
    depth, text = 0, ""
    for line in lines:
        depth -= line.startswith("}")
        text += "    " * depth + line + "\n"
        depth += line.endswith("{")
    return text
