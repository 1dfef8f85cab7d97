"""Every CUDA source compiles, without a GPU: for three architectures, and over a pairwise cover of
operators and types.
"""

from __future__ import annotations

import functools
import inspect
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import sanitizers
from pairwise import pairwise

from spgraph.backends import cpu, cuda
from spgraph.backends.cuda.entrywise import masked_write, storage, vectors
from spgraph.backends.cuda.products import dense, multiply, operands
from spgraph.backends.cuda.runtime import offline, preamble
from spgraph.backends.cuda.runtime.sources import SEPARATE, alone, source, stems
from spgraph.containers import Mask, Matrix
from spgraph.errors import DomainMismatch
from spgraph.semirings import Semiring, binary, indexunary, monoid, unary

pytest.importorskip(
    "cuda.bindings", reason="NVRTC: pip install cuda-bindings 'cuda-toolkit[nvrtc]==13.*'"
)

TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()
INT32 = np.dtype(np.int32)


def oldest_first(architectures: tuple[str, ...]) -> list[Any]:
    """The oldest by default: what it has the others have, and one text alone asks which it is. The
    cover below compiles for all of them.
    """
    return [
        pytest.param(one, marks=pytest.mark.full if one != architectures[0] else [])
        for one in architectures
    ]


def test_one_source_asks_for_the_architecture() -> None:
    assert offline.ARCHITECTURES[0] == "sm_80" and list(offline.ARCHITECTURES) == sorted(
        offline.ARCHITECTURES, key=lambda name: int(name[3:])
    )
    # tiles are copied in bulk where a device can; both forms are compiled here
    assert [stem for stem in stems() if "__CUDA_ARCH" in source(stem, "")] == ["tiles"]
    for architecture in ("sm_80", "sm_90"):
        assert offline.compile_source(source("tiles", offline.preambles()["tiles"]), architecture)
    # what racecheck gets
    text = source("tiles", offline.preambles()["tiles"])
    assert sanitizers.BULK_COPIES in text
    assert offline.compile_source(text.replace(sanitizers.BULK_COPIES, "0"), "sm_90")


def test_a_closure_compiles_with_parents() -> None:
    """Its representative preamble is of distances alone."""
    assert offline.compile_source(source("closure", offline.preambles()["closure_paths"]), "sm_90")


def test_built_in_programs_are_written_without_numba() -> None:
    code = (
        "import sys; from spgraph.backends.cuda.runtime import offline; "
        "from spgraph.iterations.integer_sums import plus_and_one, saturating_plus; "
        "plus = plus_and_one(16), saturating_plus(offline.INDEX); "
        "assert all(op.resolve('int64', 'int32').define_cuda('op') for op in plus); "
        "assert offline.preambles(); print('numba' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"  # importing it takes half a second of a first call


@pytest.mark.parametrize("architecture", oldest_first(offline.ARCHITECTURES))
def test_every_source_compiles(architecture: str) -> None:
    assert offline.compile_all([architecture]) == [f"{stem} {architecture}" for stem in stems()]


@pytest.mark.parametrize("stem", sorted(SEPARATE))
def test_a_kernel_alone_is_the_same(stem: str) -> None:
    """The first call of a simple operation compiles the kernel that it takes and no other."""
    read = pytest.importorskip("benchmarks.machine_code").read
    pytest.importorskip("elftools")
    given = offline.preambles()[stem]
    whole = read(offline.compile_source(source(stem, given), "sm_90"))
    assert len(whole) > 1
    for name, kernel in whole.items():
        assert read(offline.compile_source(alone(stem, given, name), "sm_90")) == {name: kernel}


def test_what_does_not_compile_says_why() -> None:
    with pytest.raises(RuntimeError, match=r'(?s)sm_90.*kernels/apply.cu.*"?S"? is undefined'):
        offline.compile_source(source("apply", "typedef int U, Z, N;"), "sm_90")


def test_no_source_includes_anything() -> None:
    texts = [source(stem, "") for stem in stems()]
    assert len(texts) > 8
    assert not any("#include" in text for text in texts)


def test_backends_agree() -> None:
    """In the arguments of what both have; which names each has, the test of the contract says."""
    pairs = {}
    for ours, theirs in ((cpu, cuda), (cpu.traversals, cuda.traversals)):
        both = {name for name in vars(ours) if inspect.isfunction(getattr(theirs, name, None))}
        pairs |= {name: (getattr(ours, name), getattr(theirs, name)) for name in both}
    assert len(pairs) > 20 and {"search", "floyd_warshall", "path_lengths"} <= pairs.keys()
    for name, functions in pairs.items():
        one, other = (inspect.signature(function).parameters.values() for function in functions)
        assert [(p.name, p.kind) for p in one] == [(p.name, p.kind) for p in other], name


# --- operators: all of them over one type are one program -----------------------------------------


def resolved(make: Callable[[], Any]) -> Any:
    """The typed operator, or None where there is none for the types."""
    try:
        return make()
    except DomainMismatch:
        return None


@pytest.mark.parametrize("name", TYPES)
def test_operators(name: str) -> None:
    dtype = np.dtype(name)
    functions = [resolved(functools.partial(getattr(unary, op).resolve, dtype)) for op in unary]
    functions += [
        resolved(functools.partial(getattr(binary, op).resolve, dtype, dtype)) for op in binary
    ]
    functions += [
        resolved(functools.partial(getattr(indexunary, op).resolve, dtype, dtype))
        for op in indexunary
    ]
    functions = [function for function in functions if function is not None]
    assert len(functions) > 30
    text, calls = "", ""
    for k, function in enumerate(functions):
        text += function.define_cuda(f"op{k}")
        arguments = ", ".join(
            f"({preamble.C_TYPES[kind.name]})in[{i}]" for i, kind in enumerate(function.arguments)
        )
        calls += f"    out[{k}] = (double)op{k}({arguments});\n"
    kernel = f'extern "C" __global__ void all(const double* in, double* out) {{\n{calls}}}\n'
    assert offline.compile_source(text + kernel, "sm_90")


# --- kernels: stem x monoid x operator x types x what is specialised ------------------------------

PARAMETERS: dict[str, list[Any]] = {
    "stem": ["apply", "ewise", "pull", "push", "reduce", "segments", "write"],
    "dtype": TYPES,
    "monoid": ["plus", "times", "min", "max", "any", "lor", "bxor"],
    "multiply": ["times", "first", "second", "pair", "secondi", "minus"],
    "index": ["int32", "int64"],
    "offset": ["int32", "int64"],
    "flags": range(4),
    "architecture": ["sm_90", "sm_90", "sm_90", "sm_80", "sm_100"],
}
FEW = {
    "extract": ["bool", "int16"],
    "kronecker": ["bool", "uint64"],
    "masks": ["uint8", "float64"],
    "matrix_apply": ["bool", "int16"],
    "matrix_ewise": ["bool", "int8", "uint64", "float64"],
    "matrix_extract": ["uint8", "uint64"],
    "matrix_select": ["bool", "float64"],
    "matrix_write": ["bool", "int8", "uint64", "float64"],
    "rows": ["int32", "int64"],
    "scatter": ["bool", "int16", "float32", "float64"],
    "select": ["int64", "float32"],
    "transpose": ["uint8", "uint64"],
    "unpack": ["bool", "float64"],
}
# texts for two matrices and a mask
FACTORS = {
    "multiply_dense": ["bool", "int8", "float32", "float64"],
    "multiply_dots": ["bool", "int16", "uint64", "float32"],
    "multiply_rows": ["bool", "int8", "int64", "float64"],
    "one_value": ["bool"],
    "row_flops": ["int32"],
}
CASES = pairwise(PARAMETERS)
CASES += [
    {**CASES[k], "stem": stem, "dtype": dtype}
    for stem, types in (FEW | FACTORS).items()
    for k, dtype in enumerate(types)
]


class Chosen(NamedTuple):
    """Types and operators of a case, others where the operators do not take the case's types."""

    dtype: np.dtype
    other: np.dtype
    index: np.dtype
    offset: np.dtype
    one: bool
    two: bool
    op: Any
    semiring: Any
    total: Any


def chosen_of(case: dict[str, Any]) -> Chosen:
    dtype, index, offset = (np.dtype(case[key]) for key in ("dtype", "index", "offset"))
    other = np.dtype(TYPES[len(case["monoid"] + case["multiply"]) % len(TYPES)])
    multiply = getattr(binary, case["multiply"])
    op = resolved(lambda: multiply.resolve(dtype, other)) or binary.plus.resolve(dtype, other)
    add = getattr(monoid, case["monoid"])
    semiring = resolved(lambda: Semiring(add, multiply).resolve(dtype, dtype, index=index))
    semiring = semiring or Semiring(monoid.min, binary.first).resolve(dtype, dtype)
    total = resolved(lambda: add.resolve(dtype)) or monoid.max.resolve(dtype)
    flags = bool(case["flags"] & 1), bool(case["flags"] & 2)
    return Chosen(dtype, other, index, offset, *flags, op, semiring, total)


def preamble_of(case: dict[str, Any]) -> str:
    """The preamble that the backend would write."""
    stem, chosen = case["stem"], chosen_of(case)
    if stem in FACTORS:
        return product_preamble(stem, chosen)
    return (matrix_preamble if stem in MATRICES else vector_preamble)(stem, chosen)


MATRICES = ("kronecker", "matrix_apply", "matrix_ewise", "matrix_extract", "matrix_select")
MATRICES += ("matrix_write", "transpose")


def matrix_preamble(stem: str, chosen: Chosen) -> str:
    dtype, other, index, offset, one, two, op, *_ = chosen
    types = preamble.types
    first = types(O=offset, I=index, U=dtype, Q=index, N=offset)
    second = types(P=index, J=offset, V=other)
    match stem:
        case "kronecker":
            return first + second + types(Z=op.result) + op.define_cuda("op")
        case "matrix_apply":
            call = vectors.call(op, "right", op.result)
            return first + types(S=other, Z=op.result) + preamble.constants(PLACED=one) + call
        case "matrix_ewise":
            text = vectors.ewise_preamble(op, one, two)
            return first + second + text + preamble.constants(FLIP=not one)
        case "matrix_extract":
            return first + types(V=dtype, S=offset, K=index, C=offset)
        case "matrix_select":
            above = indexunary.valuegt.resolve(dtype, dtype)
            return first + types(S=dtype) + vectors.call(above, "index", np.dtype(bool))
        case "matrix_write":
            text = masked_write.write_preamble(dtype, other, op if one else None)
            text += types(O=offset, I=index, P=index, J=offset, X=index, Y=offset, M=dtype)
            return text + types(Q=offset, N=index) + preamble.constants(MASKED=two, STRUCTURE=one)
        case "transpose":
            text = types(O=offset, I=index, N=offset, V=dtype, C=index, Q=np.dtype("u8"))
            return text + preamble.constants(VALUES=one)
    raise AssertionError(stem)


def vector_preamble(stem: str, chosen: Chosen) -> str:
    """Of the kernels on vectors, and of those of a matrix with a vector."""
    dtype, other, index, offset, one, two, op, semiring, total = chosen
    types = preamble.types
    match stem:
        case "apply":
            call = vectors.call(op, "right", op.result)
            return types(U=dtype, S=other, Z=op.result, N=index) + call
        case "ewise":
            return types(U=dtype, V=other, N=index) + vectors.ewise_preamble(op, one, two)
        case "extract":
            return types(U=dtype, N=index, J=offset)
        case "rows":
            return types(O=dtype)
        case "scatter":
            return vectors.scatter_preamble(total, other, index)
        case "masks":
            return types(U=dtype, N=index) + preamble.constants(STRUCTURE=one)
        case "pull":
            text = preamble.semiring(semiring, ISO=one, FLIP=two, MASKED=one != two, FULL=one)
            return text + types(O=offset, I=index, A=dtype, U=dtype, R=offset)
        case "push":
            text = preamble.semiring(semiring, ISO=one, FLIP=two, MASKED=one != two)
            return text + types(O=offset, I=index, A=dtype, U=dtype, N=index)
        case "reduce":
            return types(U=dtype, Z=dtype) + preamble.monoid(total)
        case "segments":
            return vectors.fold_preamble(op, other, offset, dtype)
        case "select":
            above = indexunary.valuegt.resolve(dtype, dtype)
            return types(U=dtype, S=dtype, N=index) + vectors.call(above, "index", np.dtype(bool))
        case "unpack":
            return storage.unpack_preamble(dtype, index)
        case "write":
            text = masked_write.write_preamble(dtype, other, op if one else None)
            return types(N=index) + text
    raise AssertionError(stem)


def product_preamble(stem: str, chosen: Chosen) -> str:
    """Of products of two matrices, the second of which has the other index types."""
    dtype, _, index, offset, one, two, _, semiring, _ = chosen
    A = Matrix._of(0, 0, np.zeros(1, offset), np.empty(0, index), np.empty(0, dtype))
    B = Matrix._of(0, 0, np.zeros(1, index), np.empty(0, offset), np.empty(0, dtype))
    mask = Mask(B if one else A, structure=two)
    match stem:
        case "multiply_dense":
            shape = dense.dense_shape(64 if one else 33, dtype.itemsize, 0)
            text = dense.dense_preamble(A, dtype, semiring, index, offset, shape, two)
            return text + preamble.constants(PLACED=one)
        case "multiply_dots":
            return multiply.dots_preamble(A, B, semiring, mask)
        case "multiply_rows":
            summed, given = None if one and two else semiring, mask if one else None
            return multiply.rows_preamble(A, B, summed, given, offset, one and two)
        case "one_value":
            return operands.value_preamble(A, B, semiring.multiply)
        case "row_flops":
            return preamble.types(O=offset, I=index, P=index)
    raise AssertionError(stem)


def test_the_cover_is_small() -> None:
    # the loops' own tests compile them for several types
    loops = {"closure", "contract", "dependencies", "power", "search"}
    loops |= {"parents", "dag_edges", "tiles"}
    stages = {"dependencies_source_parallel", "power_stepwise", "leading_neighbours", "nonempty"}
    stages |= {"row_bins", "tiles_build", "warp_tasks", "gather_hubs"}
    stages |= {"search_peers", "closure_peers", "search_rounds", "closure_rounds", "components"}
    stages |= {"dependencies_order", "dependencies_shard", "closure_paths"}
    plain = {"random_edges", "floyd_warshall", "path_lengths", "scales"}  # over fixed types
    plain |= {"triangles", "triangles_oriented", "peer_barrier"}
    assert {case["stem"] for case in CASES} | loops | stages | plain >= set(stems())
    assert len(CASES) + len(TYPES) + len(stems()) <= 200


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case.values())))
def test_cover(case: dict[str, Any]) -> None:
    assert offline.compile_source(source(case["stem"], preamble_of(case)), case["architecture"])
