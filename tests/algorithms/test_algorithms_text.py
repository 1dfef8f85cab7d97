"""Algorithms are mathematics: their texts name containers and operations, and no arrays. So the
same text runs on one device and on containers that are spread over several.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import spgraph as sg
from spgraph import algorithms

FOLDER = Path(sg.__file__).parent / "algorithms"
TEXTS = sorted(path for path in FOLDER.glob("*.py") if path.name != "__init__.py")
# the arrays of containers, and what only these lead to
ARRAYS = {"indptr", "indices", "values", "bits", "expanded_values", "row_indices"}
ARRAYS |= {"array_module", "on_device", "device_of", "move", "import_cupy", "cupy", "xp", "to_cupy"}
# NumPy's functions that make arrays: `np.where` and others of arrays that are given are fine
MAKERS = {
    "arange",
    "array",
    "asarray",
    "empty",
    "full",
    "ones",
    "zeros",
    "zeros_like",
    "empty_like",
}
# lists of sources, which a user gives, and their scores
LISTS = {"vertices", "_sources", "closeness_centrality", "multi_source_bfs", "random_words"}

# what is no operation: the entries between vertices of given values, one entry a row, the range of
# a graph's values, which it keeps; and random numbers, which no operator draws
# `_T` is the transpose for those who only read it: a symmetric Matrix itself
PRIVATE = {"_T", "_where", "_from_columns", "_value_range"}
DRAWS = {"random_words.py": {"_with_values"}}


def functions(tree: ast.Module) -> list[ast.FunctionDef]:
    return [node for node in tree.body if isinstance(node, ast.FunctionDef)]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_no_text_names_an_array(path: Path) -> None:
    tree = ast.parse(path.read_text())
    named = {node.attr: node.lineno for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    named |= {node.id: node.lineno for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert not {name: named[name] for name in ARRAYS & named.keys()}
    for function in functions(tree):
        made = {
            node.attr
            for node in ast.walk(function)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "np"
        }
        assert function.name in LISTS or not made & MAKERS, (function.name, made & MAKERS)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_texts_are_made_of_operations(path: Path) -> None:
    named = {n.attr for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Attribute)}
    private = {name for name in named if name.startswith("_")}
    assert private <= PRIVATE | DRAWS.get(path.name, set())


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_texts_are_short(path: Path) -> None:
    for function in functions(ast.parse(path.read_text())):
        assert function.end_lineno is not None
        assert function.end_lineno - function.lineno < 60, function.name


def test_every_algorithm_has_a_text() -> None:
    stems = {path.stem for path in TEXTS}
    calls = {name for name in algorithms.__all__ if name.islower()}
    assert len(calls) > 20 and calls <= stems
