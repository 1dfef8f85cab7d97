"""Compile every CUDA source where there is no GPU: through NVRTC alone, for any architecture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from spgraph import semirings
from spgraph.backends.cuda.closure.closure import closure_preamble, dag_edges_preamble
from spgraph.backends.cuda.closure.closure_peers import program as closure_peers_program
from spgraph.backends.cuda.dependencies.dependencies import program as dependencies_program
from spgraph.backends.cuda.dependencies.dependencies_shard import order_program
from spgraph.backends.cuda.dependencies.dependencies_shard import program as shard_program
from spgraph.backends.cuda.entrywise import masked_write, matrices, vectors
from spgraph.backends.cuda.generate import random_edges
from spgraph.backends.cuda.power.power import program as power_preamble
from spgraph.backends.cuda.products import multiply, operands
from spgraph.backends.cuda.runtime import preamble
from spgraph.backends.cuda.runtime.sources import OPTIONS, source, stems
from spgraph.backends.cuda.search.search import program
from spgraph.backends.cuda.search.search_peers_plan import program as peers_program
from spgraph.backends.cuda.search.search_rounds import program as rounds_program
from spgraph.containers import Matrix, Vector
from spgraph.errors import BackendUnavailable

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")


def compile_all(architectures: Sequence[str] = ARCHITECTURES) -> list[str]:
    """Compile every kernel file of the package under a representative preamble; what was compiled,
    as 'stem architecture'.

    Raises RuntimeError with the compiler's log where a program does not compile, and
    BackendUnavailable without cuda-bindings and NVRTC.

    >>> compile_all(["sm_90"])  # doctest: +SKIP
    ['apply sm_90', 'ewise sm_90', ...]
    """
    texts = preambles()
    missing = set(stems()) - set(texts)
    if missing:
        raise RuntimeError(
            f"no representative preamble for kernels/{', '.join(sorted(missing))}.cu"
        )
    done = []
    for stem in stems():
        for architecture in architectures:
            compile_source(source(stem, texts[stem]), architecture)
            done.append(f"{stem} {architecture}")
    return done


def preambles() -> dict[str, str]:
    """For each kernel file, a preamble that a user's program would have."""
    single, index = np.dtype(np.float32), np.dtype(np.int32)
    ring = semirings.plus_times.resolve(single, single)
    distances = semirings.min_plus.resolve(single, single)
    plus = semirings.binary.plus.resolve(single, single)
    above = semirings.indexunary.valuegt.resolve(single, single)
    parents = semirings.min_secondi.resolve(index, np.dtype(bool), index=index)
    searched = (("I", "i4"), ("O", "i4"), ("A", "?"), ("L", "i4"))
    vector = Vector(0, np.empty(0, single))
    matrix = Matrix.empty(0, 0, single)
    product = preamble.types(O=index, I=index, A=single, U=single)
    # of a matrix whose entries are taken one by one: itself and the result, and a second one
    entries = preamble.types(O=index, I=index, U=single, Q=index, N=index)
    others = preamble.types(P=index, J=index, V=single)
    return {
        "apply": preamble.types(U=single, S=single, Z=single, N=index)
        + vectors.call(plus, "right", single),
        "closure": closure_preamble(matrix, distances, True, True),
        "closure_peers": closure_peers_program(
            *(distances, (("I", "<i4"), ("O", "<i4"), ("A", "<f4")), True, True, 1024, 4)
        ),
        "closure_rounds": closure_peers_program(
            *(distances, (("I", "<i4"), ("O", "<i4"), ("A", "<f4")), True, False, 1024, 4)
        ),
        "components": preamble.types(I=index, O=index, L=index),
        "contract": preamble.types(I=index, O=index, L=index),
        "dependencies": dependencies_program("<i4", "<i4", "<i4", False),
        "dependencies_source_parallel": dependencies_program("<i4", "<i4", "<i4", False),
        "dependencies_order": order_program("<i4", "<i4", "<i4"),
        "dependencies_shard": shard_program("<i4", "<i4", "|u1", "<i4"),
        "random_edges": random_edges.preamble("noisy"),
        "ewise": preamble.types(U=single, V=single, N=index)
        + vectors.ewise_preamble(plus, True, True),
        "floyd_warshall": preamble.constants(TILE=32),
        "leading_neighbours": preamble.types(O=index, I=index) + preamble.constants(HUBS=True),
        "extract": preamble.types(U=single, N=index, J=index),
        "kronecker": entries + others + preamble.types(Z=single) + plus.define_cuda("op"),
        "matrix_apply": entries
        + preamble.types(S=single, Z=single)
        + preamble.constants(PLACED=True)
        + matrices.call(plus, "right", single),
        "matrix_ewise": entries
        + others
        + vectors.ewise_preamble(plus, True, True)
        + preamble.constants(FLIP=False),
        "matrix_extract": entries + preamble.types(V=np.dtype("u4"), S=index, K=index, C=index),
        "matrix_select": entries
        + preamble.types(S=single)
        + matrices.call(above, "index", np.dtype(bool)),
        "matrix_write": matrices.write_preamble(single, single, plus)
        + preamble.types(O=index, I=index, P=index, J=index, X=index, Y=index, M=single)
        + preamble.types(Q=index, N=index)
        + preamble.constants(MASKED=True, STRUCTURE=False),
        "multiply_dense": multiply.dense_preamble(matrix, matrix, ring, index, index, 32, 2),
        "multiply_dots": multiply.dots_preamble(matrix, matrix, ring, matrix.V),
        "multiply_rows": multiply.rows_preamble(matrix, matrix, ring, matrix.V, index, count=False),
        "nonempty": preamble.types(O=index),
        "one_value": operands.value_preamble(matrix, matrix, ring.multiply),
        "masks": preamble.types(U=single, N=index) + preamble.constants(STRUCTURE=False),
        "parents": dag_edges_preamble(matrix, distances),
        "power": power_preamble(
            semirings.plus_times.resolve(single, np.dtype(np.float64)),
            *(False, "<f4", ("<i4", "<i4", "<f4", "<i4")),
        ),
        "power_stepwise": preamble.types(U=single),
        "pull": preamble.semiring(ring, ISO=False, FLIP=False, MASKED=True, FULL=False)
        + product
        + preamble.types(R=index),
        "push": preamble.semiring(ring, ISO=False, FLIP=True, MASKED=True)
        + product
        + preamble.types(N=index),
        "reduce": preamble.types(U=single, Z=single)
        + preamble.monoid(semirings.monoid.max.resolve(single)),
        "row_flops": preamble.types(O=index, I=index, P=index),
        "rows": preamble.types(O=index),
        "scatter": vectors.scatter_preamble(
            semirings.monoid.min.resolve(single), single, np.dtype(np.int64)
        ),
        "search": program(parents, True, True, True, searched),
        "search_peers": peers_program((4, 1024, 1, 1, 1, 2048, 8192), ("<i4", "<i4", "<i4")),
        "search_rounds": rounds_program((4, 256, 1, 8192, 1024, 4096), ("<i4",) * 4),
        "segments": vectors.fold_preamble(plus, single, index, single),
        "select": preamble.types(U=single, S=single, N=index)
        + vectors.call(above, "index", np.dtype(bool)),
        "tiles": preamble.semiring(ring, ISO=False, FLIP=False, MASKED=False, FULL=True)
        + product
        + preamble.types(R=index),
        "path_lengths": "",
        "tiles_build": preamble.types(O=index, I=index, A=single, R=index)
        + preamble.constants(ISO=False),
        "dag_edges": dag_edges_preamble(matrix, distances),
        "transpose": preamble.types(O=index, I=index, N=index, C=index)
        + preamble.types(V=np.dtype("u4"), Q=np.dtype("u4"))
        + preamble.constants(VALUES=True),
        "write": masked_write.write_preamble(vector, vector, plus),
    }


def compile_source(text: str, architecture: str, options: Iterable[str] = OPTIONS) -> bytes:
    """The machine code of a program for an architecture such as 'sm_90'; RuntimeError with the
    compiler's log.
    """
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise BackendUnavailable(
            "compiling without a GPU needs NVRTC: "
            "pip install cuda-bindings 'cuda-toolkit[nvrtc]==13.*'"
        ) from error
    flags = [option.encode() for option in (*options, f"-arch={architecture}")]
    _, program = nvrtc.nvrtcCreateProgram(text.encode(), b"spgraph.cu", 0, [], [])
    try:
        (status,) = nvrtc.nvrtcCompileProgram(program, len(flags), flags)
        if int(status) != 0:
            _, size = nvrtc.nvrtcGetProgramLogSize(program)
            log = bytearray(size)
            nvrtc.nvrtcGetProgramLog(program, log)
            raise RuntimeError(
                f"NVRTC, {architecture}: {status.name}\n{log.rstrip(bytes(1)).decode()}"
            )
        _, size = nvrtc.nvrtcGetCUBINSize(program)
        code = bytearray(size)
        nvrtc.nvrtcGetCUBIN(program, code)
        return bytes(code)
    finally:
        nvrtc.nvrtcDestroyProgram(program)
