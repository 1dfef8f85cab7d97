"""The CUDA text of every operator compiles under NVRTC, without a header and without a warning."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import numpy as np
import pytest
import semirings_cases as sc
from semirings_functions import user_cases

from spgraph.errors import DomainMismatch
from spgraph.semirings import (
    TYPES,
    Function,
    binary,
    cuda_literal,
    indexunary,
    monoid,
    python_literal,
    unary,
)

nvrtc = pytest.importorskip(
    "cuda.bindings.nvrtc", reason="NVRTC comes with cuda-bindings, which is not installed"
)


def compile_log(text: str) -> str:
    """What NVRTC says about a program; empty where it has nothing to say."""
    status, program = nvrtc.nvrtcCreateProgram(text.encode(), b"operators.cu", 0, [], [])
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS
    options = [b"--gpu-architecture=compute_90", b"--std=c++17"]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = bytearray(size)  # written in place: never a bytes object
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(program)
    said = log.decode().strip("\0 \n")
    return said if status == nvrtc.nvrtcResult.NVRTC_SUCCESS or said else str(status)


def program(functions: Iterable[Function]) -> str:
    """Every function with a kernel that calls it: without one it is not compiled to the end."""
    text = ""
    for number, function in enumerate(functions):
        types = [sc.C_TYPES[dtype.name] for dtype in function.arguments]
        taken = ", ".join(f"{ctype} a{index}" for index, ctype in enumerate(types))
        call = ", ".join(f"a{index}" for index in range(len(types)))
        text += function.define_cuda(f"f{number}")
        taken += f", {sc.C_TYPES[function.result.name]}* out"
        text += f'extern "C" __global__ void k{number}({taken}) {{\n'
        text += f"    *out = f{number}({call});\n}}\n"
    return text


def functions(namespace: str, full: bool) -> Iterator[Function]:
    operators = {"unary": unary, "binary": binary, "indexunary": indexunary}[namespace]
    pairs: Iterable[tuple[np.dtype, ...]] = itertools.product(TYPES, TYPES)
    if namespace == "unary":
        pairs = [(dtype,) for dtype in TYPES]
    elif not full:
        pairs = [*((dtype, dtype) for dtype in TYPES), *sc.MIXED]
    for name, types in itertools.product(operators, pairs):
        try:
            yield getattr(operators, name).resolve(*types)
        except DomainMismatch:
            continue


@pytest.mark.parametrize("namespace", ["unary", "binary", "indexunary"])
def test_operators_compile(namespace: str) -> None:
    found = list(functions(namespace, full=False))
    assert len(found) > 250
    assert compile_log(program(found)) == ""


@pytest.mark.full
@pytest.mark.parametrize("namespace", ["binary", "indexunary"])
def test_operators_compile_over_all_types(namespace: str) -> None:
    found = list(functions(namespace, full=True))
    assert compile_log(program(found)) == ""


def test_monoids_compile() -> None:
    text, number = "", 0
    for name, dtype in itertools.product(monoid, TYPES):
        try:
            typed = getattr(monoid, name).resolve(dtype)
        except DomainMismatch:
            continue
        ctype = sc.C_TYPES[dtype.name]
        terminal = typed.identity if typed.terminal is None else typed.terminal
        text += typed.define_cuda(f"add{number}")
        text += f'extern "C" __global__ void k{number}({ctype}* z) {{\n'
        constants = f"{cuda_literal(typed.identity)}, {cuda_literal(terminal)}"
        text += f"    *z = add{number}(*z, add{number}({constants}));\n}}\n"
        number += 1
    assert number > 90
    assert compile_log(text) == ""


def test_users_functions_compile() -> None:
    found = [case.function for case in user_cases()]
    assert compile_log(program(found)) == ""


def test_the_compiler_is_asked_in_earnest() -> None:
    assert "error" in compile_log("__device__ int f(int x) { return missing(x); }")


def literals() -> list[np.generic]:
    found: list[np.generic] = []
    for dtype in TYPES:
        found += list(sc.edges(dtype))
    return found


def test_literals_are_exact_in_both_languages() -> None:
    """Each as a function of nothing else: the value comes back bit by bit, nan as some nan."""
    from spgraph.semirings.functions import Text

    cases = []
    for number, value in enumerate(literals()):
        texts = Text(python_literal(value)), Text(cuda_literal(value))
        function = Function(f"literal{number}", ("x",), (value.dtype,), value.dtype, *texts)
        cases.append(sc.Case(str(number), function, (np.array([value]),)))
    assert compile_log(program(case.function for case in cases)) == ""
    on_host = sc.host_values(cases)
    for case in cases:
        value, text = case.samples[0], case.function.python.value
        for got in (
            on_host[case.label],
            np.array([eval(text, {"np": np, "math": __import__("math")})]),
        ):
            assert got.dtype == value.dtype, text
            assert (
                np.isnan(got).all() if np.isnan(value).all() else got.tobytes() == value.tobytes()
            ), text
