"""Typed functions evaluated over the edges of their types, in both languages.

`numba_values` compiles the Python texts; `host_values` compiles the CUDA texts, as C++ with g++, so
that they are tried where there is no GPU.
"""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit

from spgraph.backends.cpu.runtime.pipeline import InnerCompiler, KernelCompiler
from spgraph.errors import DomainMismatch
from spgraph.semirings import TYPES, Function, binary, indexunary, unary
from spgraph.semirings.functions import C_TYPES

BOOL = np.dtype("bool")
SIGNED = [np.dtype(name) for name in ("int8", "int16", "int32", "int64")]
UNSIGNED = [np.dtype(name) for name in ("uint8", "uint16", "uint32", "uint64")]
REAL = [np.dtype(name) for name in ("float32", "float64")]
INTEGERS = [*SIGNED, *UNSIGNED]
MIXED = [
    tuple(np.dtype(name) for name in pair.split())
    for pair in (
        "int8 uint8",
        "int64 uint64",
        "bool int32",
        "float32 int8",
        "int64 float32",
        "uint16 int32",
        "float32 float64",
        "uint64 bool",
        "int16 int64",
        "bool float32",
    )
]
# operators whose edges differ from type to type: tested over more of them
EDGY = "plus minus times div floordiv mod pow min max abs ainv minv signum".split()

HOST_SHIM = """
#include <math.h>
#include <string.h>
#define __device__
#define __forceinline__ inline
template <class To, class From> static To reinterpret(From bits) {
    To value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static inline float __int_as_float(int bits) { return reinterpret<float>(bits); }
static inline double __longlong_as_double(long long bits) { return reinterpret<double>(bits); }
"""


@dataclass(frozen=True, eq=False)
class Case:
    """A function with the arguments to call it on, one array for each."""

    label: str
    function: Function
    samples: tuple[np.ndarray, ...]


def edges(dtype: np.dtype[Any]) -> np.ndarray:
    """The type's limits and the values at which operators change their ways."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind == "f":
        limit = np.finfo(dtype)
        values = [-math.inf, limit.min, -70000.5, -7.0, -2.5, -1.0, -0.5, -limit.tiny, -0.0, 0.0]
        values += [
            limit.smallest_subnormal,
            0.49999997,
            0.5,
            1.0,
            1.5,
            2.0,
            3.0,
            7.25,
            170.0,
            2.0**40,
        ]
        return np.array([*values, limit.max, math.inf, math.nan], dtype)
    info = np.iinfo(dtype)
    values = {
        info.min,
        info.min + 1,
        info.max,
        info.max - 1,
        info.max // 2 + 1,
        0,
        1,
        2,
        3,
        7,
        10,
        63,
        100,
    }
    values |= {-1, -2, -3, -7, -100} if info.min else {200}
    return np.array(sorted(values), dtype)


def grid(*types: np.dtype[Any]) -> tuple[np.ndarray, ...]:
    """Every combination of the types' edges."""
    meshes = np.meshgrid(*(edges(dtype) for dtype in types), indexing="ij")
    return tuple(np.ascontiguousarray(mesh.ravel()) for mesh in meshes)


def positions(count: int, length: int) -> tuple[np.ndarray, ...]:
    """Rows and columns, small and large, that differ from each other."""
    return tuple(
        (np.arange(length, dtype=np.int64) * step + shift) % 50 * scale
        for step, shift, scale in [(7, 0, 1), (3, 1, 1), (11, 2, 2**36), (13, 5, 2**36)][:count]
    )


def binary_case(label: str, function: Function) -> Case:
    values = grid(*function.arguments[:2])
    return Case(label, function, (*values, *positions(len(function.arguments) - 2, len(values[0]))))


def select_case(label: str, function: Function) -> Case:
    x, y = grid(function.arguments[0], function.arguments[3])
    if function.name[:5] != "value":  # a thunk that is a position
        y = (
            np.clip(np.nan_to_num(y.astype(np.float64)), -60, 60).astype(y.dtype)
            if y.dtype != BOOL
            else y
        )
    i, j = positions(2, len(x))
    return Case(label, function, (x, i, j, y))


def type_sample(name: str, turn: int) -> list[np.dtype[Any]]:
    if name in EDGY:
        return [BOOL, SIGNED[turn % 3], SIGNED[3], UNSIGNED[turn % 4], REAL[turn % 2]]
    return [(BOOL, *INTEGERS)[turn % 9], REAL[turn % 2]]


def cases(namespace: str, first: np.dtype[Any] | None = None) -> list[Case]:
    """Every operator of a namespace over a spread of types, or over all with x of type `first`."""
    made: list[Case] = []
    operators = {"unary": unary, "binary": binary, "indexunary": indexunary}[namespace]
    for turn, name in enumerate(operators):
        op = getattr(operators, name)
        for types in _types(namespace, name, turn, first):
            label = f"{op!r}({', '.join(dtype.name for dtype in types)})"
            try:
                function = op.resolve(*types)
            except DomainMismatch:
                continue
            if namespace == "unary":
                made.append(Case(label, function, grid(*types)))
            else:
                made.append(
                    (binary_case if namespace == "binary" else select_case)(label, function)
                )
    return made


def _types(
    namespace: str, name: str, turn: int, first: np.dtype[Any] | None
) -> list[tuple[np.dtype[Any], ...]]:
    if first is not None:
        return [(first,)] if namespace == "unary" else [(first, dtype) for dtype in TYPES]
    if namespace == "unary":
        if unary_is_real(name):
            return [(REAL[turn % 2],), (TYPES[turn % 9],)]
        return [(dtype,) for dtype in type_sample(name, turn)]
    if name == "ldexp":
        return list(
            zip(
                [REAL[0], REAL[1], SIGNED[1], UNSIGNED[3]],
                [SIGNED[0], SIGNED[3], BOOL, UNSIGNED[2]],
                strict=True,
            )
        )
    if namespace == "indexunary" and not name.startswith("value"):
        return [(REAL[1], SIGNED[3]), (BOOL, SIGNED[2])][: 1 + turn % 2]
    sample = [(dtype, dtype) for dtype in type_sample(name, turn)]
    return sample if turn % 2 else [*sample, MIXED[turn // 2 % len(MIXED)]]


def unary_is_real(name: str) -> bool:
    return getattr(unary, name).resolve("int64").result == REAL[1]


# What the Python texts are compiled in: as parts of kernels are, since `entry` alone calls them.
SCOPE: dict[str, Any] = {
    "np": np,
    "math": math,
    "njit": partial(
        njit, no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=InnerCompiler
    ),
    "entry": njit(error_model="numpy", no_cfunc_wrapper=True, pipeline_class=KernelCompiler),
}


def kernel(
    functions: Sequence[Function], call: str, outputs: str
) -> tuple[str, dict[np.dtype[Any], list[int]]]:
    """One loop that writes each function's values to a row of the output of its result type."""
    rows: dict[np.dtype[Any], list[int]] = {}
    for number, function in enumerate(functions):
        rows.setdefault(function.result, []).append(number)
    lines = [
        f"        out_{dtype.name}[{row}, t] = f{number}({call})\n"
        for dtype, numbers in rows.items()
        for row, number in enumerate(numbers)
    ]
    outputs += ", ".join(f"out_{dtype.name}" for dtype in rows)
    head = f"@entry\ndef run({outputs}):\n"
    return head + "    for t in range(a0.size):\n" + "".join(lines), rows


def numba_values(cases: Iterable[Case]) -> dict[str, np.ndarray]:
    """The values of the Python texts, by label; cases with the same arguments share a kernel."""
    groups: dict[Any, list[Case]] = {}
    for case in cases:
        key = (
            case.function.arguments,
            len(case.samples[0]),
            tuple(sample.tobytes() for sample in case.samples),
        )
        groups.setdefault(key, []).append(case)
    found: dict[str, np.ndarray] = {}
    for group in groups.values():
        functions = [case.function for case in group]
        count = len(functions[0].arguments)
        call = ", ".join(f"a{number}[t]" for number in range(count))
        text, rows = kernel(functions, call, "".join(f"a{number}, " for number in range(count)))
        scope = dict(SCOPE)
        exec(
            "".join(f.define_python(f"f{number}") for number, f in enumerate(functions)) + text,
            scope,
        )
        length = len(group[0].samples[0])
        outputs = {
            dtype: np.empty((len(numbers), length), dtype) for dtype, numbers in rows.items()
        }
        scope["run"](*group[0].samples, *outputs.values())
        for dtype, numbers in rows.items():
            for row, number in enumerate(numbers):
                found[group[number].label] = outputs[dtype][row]
    return found


def host_values(cases: Sequence[Case]) -> dict[str, np.ndarray]:
    """The values of the CUDA texts compiled as C++; skips where there is no g++."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("the CUDA texts are evaluated as C++, and there is no g++")
    text = HOST_SHIM
    for number, case in enumerate(cases):
        function = case.function
        text += function.define_cuda(f"f{number}")
        types = [C_TYPES[dtype.name] for dtype in function.arguments]
        taken = ", ".join(f"const {ctype}* a{index}" for index, ctype in enumerate(types))
        call = ", ".join(f"a{index}[t]" for index in range(len(types)))
        taken += f", {C_TYPES[function.result.name]}* out, long n"
        text += f'extern "C" void run{number}({taken}) {{\n'
        text += f"    for (long t = 0; t < n; ++t) out[t] = f{number}({call});\n}}\n"
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "texts.cpp"), Path(folder, "texts.so")
        source.write_text(text)
        flags = ["-std=c++17", "-O1", "-w", "-ffp-contract=off", "-shared", "-fPIC"]
        done = subprocess.run(
            [compiler, *flags, str(source), "-o", str(library)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[:4000]
        loaded = ctypes.CDLL(str(library))
    found = {}
    for number, case in enumerate(cases):
        out = np.empty(len(case.samples[0]), case.function.result)
        arrays = [np.ascontiguousarray(sample) for sample in case.samples]
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*arrays, out)]
        getattr(loaded, f"run{number}")(*pointers, ctypes.c_long(len(out)))
        found[case.label] = out
    return found


def difference(case: Case, got: np.ndarray, expected: np.ndarray, close: float = 0.0) -> str:
    """Where two results differ, in a sentence; empty where they agree (-0.0 is 0.0, nan is nan).

    `close` is a tolerance in units of the type's epsilon, relative to the values but at least 1.
    """
    expected = np.asarray(expected)
    if got.dtype != expected.dtype:
        return f"{case.label}: type {got.dtype}, expected {expected.dtype}"
    same = (got == expected) | ((got != got) & (expected != expected))
    if close and got.dtype.kind == "f":
        with np.errstate(all="ignore"):
            scale = np.maximum(np.abs(expected), 1.0)
            same |= np.abs(got - expected) <= close * np.finfo(got.dtype).eps * scale
    if same.all():
        return ""
    first = int(np.flatnonzero(~same)[0])
    arguments = ", ".join(repr(sample[first]) for sample in case.samples)
    wrong = f"{got[first]!r}, expected {expected[first]!r} ({(~same).sum()} in all)"
    return f"{case.label} at ({arguments}): {wrong}"
