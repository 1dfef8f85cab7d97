"""Where a Python function is defined: its syntax tree as it lies in a file or a notebook's cell."""

import __future__

import ast
import linecache
from collections.abc import Iterator
from types import CodeType, FunctionType

from ..errors import DomainMismatch


def definition(f: FunctionType, owner: str) -> ast.FunctionDef | ast.Lambda:
    """The tree of the text that `f` was compiled from; DomainMismatch where there is none."""
    code = f.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, f.__globals__)
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:
        tree = ast.Module([], [])
    kind = ast.Lambda if f.__name__ == "<lambda>" else ast.FunctionDef
    found = [node for node in ast.walk(tree) if isinstance(node, kind) and _fits(node, code)]
    if len(found) > 1:
        found = [node for node in found if isinstance(node, ast.Lambda) and _holds(node.body, code)]
    if len(found) != 1:
        raise DomainMismatch(
            f"{owner}: the source of {f.__name__} cannot be read"
            f" ({code.co_filename}, line {code.co_firstlineno}); define it in a file or a notebook"
            " cell, or give both texts with from_expressions"
        )
    if not _is_text_of(tree, code):
        raise DomainMismatch(
            f"{owner}: the source of {f.__name__} has changed since it was read"
            f" ({code.co_filename}, line {code.co_firstlineno}); start Python again, or give both"
            " texts with from_expressions"
        )
    return found[0]


def _is_text_of(tree: ast.Module, code: CodeType) -> bool:
    """Whether compiling the file gives the code: it may have been edited since its import."""
    future = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
    # notebooks may await outside of functions, and compile each statement of a cell by itself
    flags = code.co_flags & future | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    first = code.co_firstlineno
    columns = any(column is not None for _, _, column, _ in code.co_positions())
    parts = [node for node in tree.body if _line(node) <= first <= (node.end_lineno or 0)]
    try:
        for each in (tree, *(ast.Module([part], []) for part in parts)):
            made = compile(each, code.co_filename, "exec", flags, dont_inherit=True)
            if any(_steps(inner, columns) == _steps(code, columns) for inner in _codes(made)):
                return True
    except SyntaxError:
        pass
    return False


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of everything that is defined inside of `code`."""
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield part
            yield from _codes(part)


def _steps(code: CodeType, columns: bool) -> tuple[object, ...]:
    """What code does, and where. Constants as text: 0.0 == -0.0 and 1 == True. Without `columns`
    the lines alone: a file may have been compiled with -X no_debug_ranges in another process.
    """
    constants = repr([part for part in code.co_consts if not isinstance(part, CodeType)])
    places = [place if columns else place[:1] for place in code.co_positions()]
    return places, code.co_code, code.co_names, code.co_varnames, constants


def _fits(node: ast.FunctionDef | ast.Lambda, code: CodeType) -> bool:
    arguments = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    return (
        _line(node) == code.co_firstlineno
        and (isinstance(node, ast.Lambda) or node.name == code.co_name)
        and tuple(arguments) == code.co_varnames[: code.co_argcount]
    )


def _line(node: ast.stmt | ast.Lambda) -> int:
    """Where the code of a definition begins: at its decorators."""
    return min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])


def _holds(body: ast.expr, code: CodeType) -> bool:
    """Whether all of the code's instructions are in `body`: tells two lambdas of one line apart."""
    start, end = (body.lineno, body.col_offset), (body.end_lineno or 0, body.end_col_offset or 0)
    spans = [
        (line, column, last, until) for line, last, column, until in code.co_positions() if until
    ]
    return all(
        start <= (line or 0, column or 0) and (last or 0, until or 0) <= end
        for line, column, last, until in spans
    )
