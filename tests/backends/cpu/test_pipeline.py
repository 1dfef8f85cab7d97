"""How kernels are compiled: one machine code for a kernel and the functions that it calls."""

from __future__ import annotations

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
    assert "resolve_function_type" not in vars(cpu_target.typing_context)


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
