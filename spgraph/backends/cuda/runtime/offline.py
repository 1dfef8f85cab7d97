"""Compile every CUDA source where there is no GPU: through NVRTC alone, for any architecture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from spgraph import semirings
from spgraph.backends.cuda.closure.closure import closure_preamble
from spgraph.backends.cuda.closure.closure import program as closure_program
from spgraph.backends.cuda.closure.dag_edges import dag_edges_preamble
from spgraph.backends.cuda.closure.parents import closure_parents_preamble, parents_preamble
from spgraph.backends.cuda.dependencies.dependencies_shard import program as dependencies_program
from spgraph.backends.cuda.entrywise import masked_write, storage, vectors
from spgraph.backends.cuda.exchange.buffers import INBOX_BYTES
from spgraph.backends.cuda.generate import random_edges
from spgraph.backends.cuda.power.power import program as power_preamble
from spgraph.backends.cuda.products import dense, multiply, operands
from spgraph.backends.cuda.runtime import preamble
from spgraph.backends.cuda.runtime.sources import OPTIONS, source, stems
from spgraph.backends.cuda.search.search import program
from spgraph.backends.cuda.search.search_peers import parents_values
from spgraph.backends.cuda.search.search_peers import program as peers_program
from spgraph.backends.cuda.search.search_rounds import program as rounds_program
from spgraph.backends.cuda.structure import triangles
from spgraph.containers import Matrix
from spgraph.errors import BackendUnavailable

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
# the types of values, and of ids and offsets, in the representative preambles
SINGLE, INDEX = np.dtype(np.float32), np.dtype(np.int32)


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
    return (
        _vector_operations()
        | _matrix_operations()
        | _products()
        | _searches()
        | _closures()
        | _other_iterations()
    )


def _vector_operations() -> dict[str, str]:
    """Of the operations on the entries of vectors."""
    plus = semirings.binary.plus.resolve(SINGLE, SINGLE)
    above = semirings.indexunary.valuegt.resolve(SINGLE, SINGLE)
    return {
        "apply": preamble.types(U=SINGLE, S=SINGLE, Z=SINGLE, N=INDEX)
        + vectors.call(plus, "right", SINGLE),
        "ewise": preamble.types(U=SINGLE, V=SINGLE, N=INDEX)
        + vectors.ewise_preamble(plus, True, True),
        "extract": preamble.types(U=SINGLE, N=INDEX, J=INDEX),
        "masks": preamble.types(U=SINGLE, N=INDEX) + preamble.constants(STRUCTURE=False),
        "reduce": preamble.types(U=SINGLE, Z=SINGLE)
        + preamble.monoid(semirings.monoid.max.resolve(SINGLE)),
        "scatter": vectors.scatter_preamble(
            semirings.monoid.min.resolve(SINGLE), SINGLE, np.dtype(np.int64)
        ),
        "segments": vectors.fold_preamble(plus, SINGLE, INDEX, SINGLE),
        "select": preamble.types(U=SINGLE, S=SINGLE) + vectors.call(above, "index", np.dtype(bool)),
        "unpack": storage.unpack_preamble(SINGLE, INDEX),
        "write": preamble.types(N=INDEX) + masked_write.write_preamble(SINGLE, SINGLE, plus),
    }


def _matrix_operations() -> dict[str, str]:
    """Of the operations on the entries and rows of matrices."""
    plus = semirings.binary.plus.resolve(SINGLE, SINGLE)
    above = semirings.indexunary.valuegt.resolve(SINGLE, SINGLE)
    # of a matrix whose entries are taken one by one: itself and the result, and a second one
    entries = preamble.types(O=INDEX, I=INDEX, U=SINGLE, Q=INDEX, N=INDEX)
    others = preamble.types(P=INDEX, J=INDEX, V=SINGLE)
    return {
        "kronecker": entries + others + preamble.types(Z=SINGLE) + plus.define_cuda("op"),
        "matrix_apply": entries
        + preamble.types(S=SINGLE, Z=SINGLE)
        + preamble.constants(PLACED=True)
        + vectors.call(plus, "right", SINGLE),
        "matrix_ewise": entries
        + others
        + vectors.ewise_preamble(plus, True, True)
        + preamble.constants(FLIP=False),
        "matrix_extract": entries + preamble.types(V=np.dtype("u4"), S=INDEX, K=INDEX, C=INDEX),
        "matrix_select": entries
        + preamble.types(S=SINGLE)
        + vectors.call(above, "index", np.dtype(bool)),
        "matrix_write": masked_write.write_preamble(SINGLE, SINGLE, plus)
        + preamble.types(O=INDEX, I=INDEX, P=INDEX, J=INDEX, X=INDEX, Y=INDEX, M=SINGLE)
        + preamble.types(Q=INDEX, N=INDEX)
        + preamble.constants(MASKED=True, STRUCTURE=False),
        "nonempty": preamble.types(O=INDEX),
        "rows": preamble.types(O=INDEX),
        "triangles": preamble.types(O=INDEX, I=INDEX),
        "triangles_oriented": triangles.program(INDEX, INDEX),
        "transpose": preamble.types(O=INDEX, I=INDEX, N=INDEX, C=INDEX)
        + preamble.types(V=np.dtype("u4"), Q=np.dtype("u4"))
        + preamble.constants(VALUES=True),
    }


def _products() -> dict[str, str]:
    """Of products of a matrix with a vector or a matrix."""
    semiring, matrix = semirings.plus_times.resolve(SINGLE, SINGLE), Matrix.empty(0, 0, SINGLE)
    product = preamble.types(O=INDEX, I=INDEX, A=SINGLE, U=SINGLE)
    return {
        "multiply_dense": dense.dense_preamble(
            *(matrix, SINGLE, semiring, INDEX, INDEX, (16, 4, 4), False)
        )
        + preamble.constants(PLACED=False),
        "multiply_dots": multiply.dots_preamble(matrix, matrix, semiring, matrix.V),
        "multiply_rows": multiply.rows_preamble(
            matrix, matrix, semiring, matrix.V, INDEX, count=False
        ),
        "one_value": operands.value_preamble(matrix, matrix, semiring.multiply),
        "pull": preamble.semiring(semiring, ISO=False, FLIP=False, MASKED=True, FULL=False)
        + product
        + preamble.types(R=INDEX),
        "push": preamble.semiring(semiring, ISO=False, FLIP=True, MASKED=True)
        + product
        + preamble.types(N=INDEX),
        "row_bins": preamble.types(O=INDEX, R=INDEX)
        + preamble.constants(PIECE=1024, NARROW=32, SINGLE=4),
        "row_flops": preamble.types(O=INDEX, I=INDEX, P=INDEX),
        "tiles": preamble.semiring(semiring, ISO=False, FLIP=False, MASKED=False, FULL=True)
        + product
        + preamble.types(R=INDEX),
        "tiles_build": preamble.types(O=INDEX, I=INDEX, A=SINGLE, R=INDEX)
        + preamble.constants(ISO=False),
    }


def _searches() -> dict[str, str]:
    """Of the fused searches, and of the neighbours that they look at first."""
    parents = semirings.min_secondi.resolve(INDEX, np.dtype(bool), index=INDEX)
    searched = (INDEX, INDEX, np.dtype(bool), INDEX)
    return {
        "leading_neighbours": preamble.types(O=INDEX, I=INDEX) + preamble.constants(HUBS=True),
        "search": program(parents, True, True, True, *searched),
        "search_peers": peers_program(
            (4, 1024, 1, 2048, 8192), ("<i4", "<i4", "<i4"), parents_values("<i4")
        ),
        "search_rounds": rounds_program(
            (4, 256, 8192, 1024, 4096), ("<i4",) * 4, parents_values("<i4")
        ),
    }


def _closures() -> dict[str, str]:
    """Of closures, and of the shortest-path DAG and trees that follow from them."""
    distances, matrix = semirings.min_plus.resolve(SINGLE, SINGLE), Matrix.empty(0, 0, SINGLE)
    shards = (distances, (("I", "<i4"), ("O", "<i4"), ("A", "<f4")))
    return {
        "closure": closure_preamble(matrix, distances, True),
        "closure_paths": closure_parents_preamble(matrix),
        "closure_peers": closure_program(*shards, True, 1024, 4),
        "closure_rounds": closure_program(*shards, True, 1024, 4),
        "dag_edges": dag_edges_preamble(matrix, distances),
        "floyd_warshall": preamble.constants(TILE=32),
        "parents": parents_preamble(matrix, distances, True),
        "path_lengths": "",
    }


def _other_iterations() -> dict[str, str]:
    """Of components, dependencies, the power iteration, and random edges."""
    return {
        "components": preamble.types(I=INDEX, O=INDEX, L=INDEX),
        "contract": preamble.types(I=INDEX, O=INDEX, L=INDEX),
        "dependencies": dependencies_program("<i4", "<i4", "<i4", False),
        "dependencies_source_parallel": dependencies_program("<i4", "<i4", "<i4", False),
        "dependencies_order": dependencies_program("<i4", "<i4", "<i4"),
        "dependencies_shard": dependencies_program("<i4", "<i4", "|u1", searched="<i4"),
        "gather_hubs": preamble.types(I=INDEX),
        "power": power_preamble(
            semirings.plus_times.resolve(SINGLE, np.dtype(np.float64)),
            *(False, "<f4", ("<i4", "<i4", "<f4", "<i4")),
        )
        + preamble.constants(HUBS=True),
        "peer_barrier": preamble.constants(PEERS=4, BARRIER=INBOX_BYTES),
        "power_stepwise": preamble.types(U=SINGLE),
        "random_edges": random_edges.preamble("noisy"),
        "scales": "",
        "warp_tasks": preamble.types(O=INDEX, I=INDEX, A=SINGLE) + preamble.constants(ISO=False),
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
