"""Functions of words: what words.py makes of a text does what Python does."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from numba.core.compiler_lock import global_compiler_lock

from spgraph.backends.cpu.runtime import words

TEXT = '''
from spgraph.backends.cpu.runtime.instructions import add, exchange, load, replace, store

LIMIT = 7

def helper(x):
    """Counts how often it is called, in a word."""
    add(x, 1)
    return load(x)

def arithmetic(x, y):
    return (min(x, y) + 3 * x - y | 8) << 2

def signs(x, y):
    if not x:
        return -1
    if x < y and not x == 5 or x >= LIMIT:
        return 10 if y != 2 else 20
    return x <= y

def loops(x, y):
    found = 0
    for k in range(x):
        for step in (1, LIMIT):
            found += k * step
    for k in range(x, y):
        found -= k
    while found > 1000:
        found -= LIMIT
        if found < 2000:
            continue
        found -= 100
    while True:
        if found < LIMIT:
            return found
        found -= 1

def constants(x, y):
    """`continue` and `return` in a loop over constants."""
    found = 0
    for k in range(3):
        for step in (1, LIMIT, 2):
            if step == x + k:
                continue
            if step == y:
                return -found
            found += step
        found += 100
    return found

def short(x, y):
    """Whether the second operand is computed only where it decides."""
    both = y > 0 and helper(x) > 100
    one = y > 0 or helper(x) > 0
    return 2 * both + one if y < 9 else helper(x)

def words(x, y):
    """An atomic operation each."""
    store(x, y)
    if not replace(x, y, y + 1):
        return -1
    if replace(x, y, 0):
        return -2
    return 1000 * exchange(x, 5) + load(x)
'''


@pytest.fixture(scope="module")
def functions() -> dict[str, Any]:
    with global_compiler_lock:
        made = words.compiled("tested", TEXT)
        kind = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 3)
        names = ("arithmetic", "signs", "loops", "constants", "short", "words")
        found = {
            name: kind(made.get_pointer_to_function(f"spgraph_tested_{name}")) for name in names
        }
    return found | {"keeps": made}


@pytest.mark.parametrize("name", ["arithmetic", "signs", "loops", "constants"])
def test_functions_do_what_python_does(functions: dict[str, Any], name: str) -> None:
    meant: dict[str, Any] = {}
    exec(TEXT, meant)
    for x in range(-3, 12):
        for y in (-2, 0, 1, 2, 5, 6, 9, 80):
            assert functions[name](x, y) == int(meant[name](x, y)), (x, y)


def test_operands_that_decide_nothing_are_not_computed(functions: dict[str, Any]) -> None:
    word = np.zeros(1, np.int64)
    assert functions["short"](word.ctypes.data, 3) == 1 and word[0] == 1
    assert functions["short"](word.ctypes.data, 0) == 1 and word[0] == 2
    assert functions["short"](word.ctypes.data, 9) == 4 and word[0] == 4


def test_words_at_addresses(functions: dict[str, Any]) -> None:
    word = np.zeros(1, np.int64)
    assert functions["words"](word.ctypes.data, 6) == 7005 and word[0] == 5


@pytest.mark.parametrize(
    "statement", ["x /= 2", "x = y = 1", "x = [1]", "x = 1 < x < 3", "for x in [1]: pass", "del x"]
)
def test_what_a_text_of_words_cannot_have(statement: str) -> None:
    with global_compiler_lock, pytest.raises(SyntaxError, match="a text of words has none of"):
        words.compiled("wrong", f"def f(x):\n    {statement}\n    return x\n")
