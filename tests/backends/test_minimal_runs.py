"""`make test` runs every operation, loop and algorithm on the minimal backend, of which
`fixtures_device` tells: a test that takes the fixture `device` names it, in a case without a mark.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from spgraph import algorithms, iterations, operations

FOLDER = Path(__file__).parents[1]
# what `make test` does not run on the minimal backend
LEFT_OUT = {"full", "long", "fused", "gpu", "mpi"}
MODULES = {"sg", "ops", "operations"}


def marks(node: ast.AST) -> set[str]:
    """The names `x` of all `pytest.mark.x` in it."""
    return {
        one.attr
        for one in ast.walk(node)
        if isinstance(one, ast.Attribute)
        and isinstance(one.value, ast.Attribute)
        and one.value.attr == "mark"
    }


def names(node: ast.AST) -> Iterator[str]:
    """All names, and `x` of `sg.x` or `operations.x`, but those of parameters that are left out."""
    called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    if called == "pytest.param" and marks(node) & LEFT_OUT:
        return
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in MODULES:
        yield node.attr
    for child in ast.iter_child_nodes(node):
        yield from names(child)


def left_out(test: ast.FunctionDef) -> bool:
    """Whether a mark of the whole test leaves it out; those of single parameters do not."""
    return any(
        isinstance(one, ast.Attribute) and marks(one) & LEFT_OUT
        for one in (d.func if isinstance(d, ast.Call) else d for d in test.decorator_list)
    )


def named_in_default_runs(text: str) -> set[str]:
    """What the tests of a file name that run on the minimal backend by default, with the functions
    and constants of the file that they use.
    """
    tree = ast.parse(text)
    used: dict[str, set[str]] = {}
    tests: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            used[node.name] = set(names(node))
            arguments = {argument.arg for argument in node.args.args}
            runs = "device" in arguments and "shared_data" not in arguments
            if node.name.startswith("test_") and runs and not left_out(node):
                tests.add(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            used[node.targets[0].id] = set(names(node.value))
    found: set[str] = set()
    rest = tests
    while rest:
        found |= rest
        rest = set().union(*(used.get(name, set()) for name in rest)) - found
    return found


@pytest.mark.parametrize("part", [algorithms, operations, iterations], ids=lambda m: m.__name__)
def test_everything_runs_on_the_minimal_backend(part: object) -> None:
    functions = {name for name in part.__all__ if name.islower()}
    assert len(functions) > 8
    found: set[str] = set()
    for path in FOLDER.rglob("test_*.py"):
        text = path.read_text("utf-8")
        if "from fixtures_device import" in text and "device" in text:
            found |= named_in_default_runs(text)
    assert not functions - found


def test_what_is_left_out_does_not_count() -> None:
    text = """
CASES = [a, pytest.param(b, marks=pytest.mark.long)]
def helper(): c()
@pytest.mark.parametrize("f", CASES)
def test_x(f, device): helper()
@pytest.mark.long
def test_y(device): d()
def test_z(): e()
"""
    found = named_in_default_runs(text)
    assert {"a", "c"} <= found and not {"b", "d", "e"} & found
