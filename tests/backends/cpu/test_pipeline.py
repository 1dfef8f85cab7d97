"""How kernels are compiled: one machine code for a kernel and the functions that it calls."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.errors import TypingError
from numba.core.registry import cpu_target

from spgraph.backends.cpu.runtime import cache, jit

TEXT = """
@njit
def twice(x):
    if x > 100:
        raise OverflowError("more than 100")
    return 2 * x


@inner
def fill(array, value):
    for k in range(array.size):
        array[k] = twice(value)


@kernel
def run(array, value):
    fill(array, value)
"""


def test_functions_that_kernels_call_have_no_machine_code_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cache, "folder", lambda: None)  # compile it, also the second time
    name = "spgraph_kernel_test_pipeline"
    made = jit._make(name, jit._HEADER + TEXT)
    array = np.zeros(3, np.int64)
    made.run(array, 21)
    assert array.tolist() == [42] * 3
    with pytest.raises(OverflowError, match="more than 100"):
        made.run(array, 101)
    codegen = cpu_target.target_context.codegen()
    for function, there in ((made.run, True), (made.fill, False), (made.twice, False)):
        ((compiled,),) = (function.overloads.values(),)
        assert codegen._engine.is_symbol_defined(compiled.fndesc.llvm_func_name) == there


@pytest.mark.parametrize("fails", [False, True])
def test_numba_is_as_it_was_after_compiling(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its context remembers what operators give while a kernel is compiled, and no longer."""
    monkeypatch.setattr(cache, "folder", lambda: None)
    name = f"spgraph_kernel_test_pipeline_{fails}"
    made = jit._make(name, jit._HEADER + TEXT.replace("2 * x", "x[0]" if fails else "2 * x"))
    if fails:
        with pytest.raises(TypingError):
            made.run(np.zeros(3, np.int64), 21)
    else:
        made.run(np.zeros(3, np.int64), 21)
    changed = {"resolve_function_type", "resolve_value_type", "refresh"}
    changed.add("load_additional_registries")
    for context in (cpu_target.typing_context, cpu_target.target_context):
        assert not changed & vars(context).keys()


EQUAL = """
@inner
def plus(x, y):
    return x + y


@kernel
def run(array, numbers):
    array[0] = plus(1, numbers[0])
    array[1] = plus(True, numbers[1])
    array[2] = plus(1.0, numbers[1])
    array[3:] = numbers[0]
"""


def test_numbers_that_are_equal_for_python_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a function gives for types is kept by these types, of which constants are part."""
    monkeypatch.setattr(cache, "folder", lambda: None)
    made = jit._make("spgraph_kernel_test_pipeline_equal", jit._HEADER + EQUAL)
    array = np.zeros(5)
    made.run(array, (7, 0.5))
    assert array.tolist() == [8.0, 1.5, 1.5, 7.0, 7.0]
    given = [str(kind) for (kind, _) in made.plus.overloads]
    assert given == ["Literal[int](1)", "Literal[bool](True)", "float64"]


LOWERED = """
from collections import namedtuple

Pair = namedtuple("Pair", "first second")


@inner
def total(pair, low, high):
    found = 0
    for k in range(low, high):
        if pair.first[k] < 0:
            continue
        if pair.first[k] > 50:
            break
        found += pair.first[k]
        last = k
    return found, last if found else -1


@inner
def fails(array, at):
    if array[at] == 7:
        raise OverflowError("7")
    return array[at]


@kernel
def run(array, table, flags, unsigned, out):
    pair = Pair(array, table)
    out[0], out[1] = total(pair, 0, array.size)
    out[2] = array[-1]
    out[3] = table[-1, 1]
    table[1, -1] = 9
    out[4] = pair.second[1, 2]
    flags[1] = array[0] > 0
    out[5] = flags[0] + 2 * flags[1]
    for k in range(5, 2):
        out[6] += 1
    for k in range(unsigned[0], np.uint64(2)):
        out[7] += np.int64(k)
    for k in range(6, 0, -2):
        out[8] = 10 * out[8] + k
    a, b = 1, 2
    for k in range(3):
        a, b = b, a + b
    out[9] = a
    k = 0
    while True:
        k += 1
        if k == 4:
            break
    out[10] = k
    out[11] = 2 ** (k + 1) + k**2
    out[12] = table.shape[0] * 100 + table.shape[1]
    out[13] = array[array.size - 2 :][1]
    out[14] = fails(array, 1)
    out[15] = min(array[0], 2) * 100 + max(array[0], array[3]) + max(1, 2, 3)
    out[16] = min(math.inf, 0.5 * array[0]) + max(array[0], 0.5)
    out[17] = max(1.0, math.nan) == 1.0 and not min(math.nan, 1.0) == 1.0
"""


@pytest.mark.parametrize("debuginfo", [0, 1])
def test_statements_mean_what_they_mean_in_python(
    debuginfo: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `lowering.py` makes of loops, indices, tuples, calls and variables; NUMBA_DEBUGINFO=1
    keeps them in memory.
    """
    monkeypatch.setattr(cache, "folder", lambda: None)
    monkeypatch.setattr(numba.config, "DEBUGINFO_DEFAULT", debuginfo)
    made = jit._make(f"spgraph_kernel_test_lowering_{debuginfo}", jit._HEADER + LOWERED)
    plain: dict[str, Any] = {"np": np, "math": math, "inner": lambda f: f, "kernel": lambda f: f}
    exec(LOWERED, plain)
    results = []
    for run in (made.run, plain["run"]):
        array, table = np.array([3, 4, -5, 6, 51, 8]), np.arange(6).reshape(2, 3)
        out, flags = np.zeros(18, np.int64), np.zeros(2, np.bool_)
        run(array, table, flags, np.zeros(1, np.uint64), out)
        results.append((out.tolist(), table.tolist(), flags.tolist()))
        array[1] = 7
        with pytest.raises(OverflowError, match="7"):
            run(array, table, flags, np.zeros(1, np.uint64), out)
    assert results[0] == results[1]


DEFINITIONS = """
import sys

import numpy as np
from spgraph.backends.cpu.runtime import cache, jit

cache.folder = lambda: None
TEXT = '''
@inner
def value(x):
    return VALUE


@kernel
def run(array):
    for k in range(array.size):
        array[k] = value(array[k])
'''
array, others = np.array([0.5, 1.0]), "numba.np.arraymath"
for number, (text, more) in enumerate({"math.sqrt(x * x)": False, "np.sinc(x)": True}.items()):
    written = jit._HEADER + TEXT.replace("VALUE", text)
    made = jit._make(f"spgraph_kernel_test_definitions_{number}", written)
    made.run(array)
    assert (others in sys.modules) == more
assert np.array_equal(array, np.sinc([0.5, 1.0]))
"""


def test_kernels_take_in_what_they_need_of_numba() -> None:
    """Few of its definitions; all where a text, such as a user's expression, needs more."""
    subprocess.run([sys.executable, "-c", DEFINITIONS], check=True, timeout=120)
