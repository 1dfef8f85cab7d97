"""Random edges against their published definitions and statistics, in Python and in CUDA C++."""

from __future__ import annotations

import ctypes
import itertools
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from spgraph import generators, random_edges

WORD = 2**64


def splitmix64(seed: int, count: int) -> list[int]:
    """The published sequence, step by step."""
    out = []
    for _ in range(count):
        seed = (seed + 0x9E3779B97F4A7C15) % WORD
        z = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) % WORD
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % WORD
        out.append(z ^ (z >> 31))
    return out


def drawn(kind: str, parameters: tuple[int, ...], count: int, seed: int = 1) -> np.ndarray:
    """(rows, columns) of the edges as drawn: no labels, loops kept."""
    keys = np.empty(count, np.int64)
    state = random_edges.state_of(seed, generators.EDGES)
    model = random_edges.GraphModel(kind, parameters, 0, count, state, None, False, True)
    random_edges.generate_edges(keys, model, None)
    return np.array([keys >> 32, keys & 0xFFFFFFFF])


def rmat_parameters(scale: int, a: float, b: float, c: float) -> tuple[int, ...]:
    return (scale, *(int(Fraction(p) * WORD) for p in (a, a + b, a + b + c)))


# --- random numbers -------------------------------------------------------------------------------


def test_numbers_are_splitmix64() -> None:
    known = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert splitmix64(0, 3) == known
    k = np.arange(100, dtype=np.uint64)
    for state in (0, 1, WORD - 1, 0x123456789ABCDEF):
        assert random_edges.numbers(state, k).tolist() == splitmix64(state, 100)
    states = np.array([0, 5, WORD - 1], np.uint64)
    expected = [splitmix64(s, 8)[7] for s in states.tolist()]
    assert random_edges.numbers(states, 7).tolist() == expected
    assert random_edges.mix(int(states[2])) == random_edges.mix(states[2:])[0]


def test_states_differ() -> None:
    states = {random_edges.state_of(s, p) for s in range(100) for p in (1, 2)}
    assert len(states) == 200


def test_edges_against_their_definition() -> None:
    a, b, c = 0.57, 0.19, 0.19
    state = random_edges.state_of(9, generators.EDGES)
    starts = splitmix64(state, 300)
    u, v = drawn("rmat", rmat_parameters(10, a, b, c), 300, seed=9)
    for e in range(300):
        row = column = 0
        for r in splitmix64(starts[e], 10):
            x = Fraction(r, WORD)
            quadrant = sum(x >= t for t in (a, a + b, a + b + c))
            row, column = 2 * row + quadrant // 2, 2 * column + quadrant % 2
        assert (u[e], v[e]) == (row, column)
    for n in (1, 7, 1000, 2**31 - 1):
        u, v = drawn("uniform", (n,), 300, seed=9)
        for e in range(300):
            r, s = splitmix64(starts[e], 2)
            assert (u[e], v[e]) == (r * n // WORD, s * n // WORD)


# --- statistics -----------------------------------------------------------------------------------


def chi_square(found: np.ndarray, expected: np.ndarray) -> float:
    return float(((found - expected) ** 2 / expected).sum())


@pytest.mark.parametrize("probabilities", [(0.57, 0.19, 0.19, 0.05), (0.1, 0.2, 0.3, 0.4)])
@pytest.mark.parametrize("noisy", [False, True])
def test_quadrant_probabilities(probabilities: tuple[float, ...], noisy: bool) -> None:
    """At every level, and for neighbouring levels together; the bounds are beyond 5 sigma."""
    scale, count = 12, 40_000
    a, b, c, _ = p = np.array(probabilities)
    if noisy:  # noise of 0.001: its own effect is below what these tests see
        unit = random_edges.UNIT
        w = [int(x * unit) for x in (a, b, c)]
        u, v = drawn("noisy", (scale, *w, unit - sum(w), 16777), count)
    else:
        u, v = drawn("rmat", rmat_parameters(scale, a, b, c), count)
    levels = [2 * (u >> k & 1) + (v >> k & 1) for k in range(scale)]
    for quadrant in levels:
        assert chi_square(np.bincount(quadrant, minlength=4), count * p) < 35
    for one, other in itertools.pairwise(levels):
        both = np.bincount(4 * one + other, minlength=16)
        assert chi_square(both, count * np.outer(p, p).ravel()) < 60


def test_noise_widens_and_does_not_drift() -> None:
    """With noise the quadrants keep their mean probability and stop being independent."""
    scale, count, unit = 10, 60_000, random_edges.UNIT
    parameters = (scale, unit // 4, unit // 4, unit // 4, unit // 4, round(0.25 * 2**24))
    u, v = drawn("noisy", parameters, count)
    quadrants = np.array([2 * (u >> k & 1) + (v >> k & 1) for k in range(scale)])
    for row in quadrants:
        assert chi_square(np.bincount(row, minlength=4), np.full(4, count / 4)) < 40
    # an edge keeps its perturbed probabilities: the last levels (bits 0 and 1) agree more often
    agree = np.mean(quadrants[0] == quadrants[1])
    assert 0.26 < agree < 0.5
    plain = drawn("rmat", rmat_parameters(scale, 0.25, 0.25, 0.25), count)
    bits = 2 * (plain & 1)[0] + (plain & 1)[1], 2 * (plain >> 1 & 1)[0] + (plain >> 1 & 1)[1]
    assert abs(np.mean(bits[0] == bits[1]) - 0.25) < 0.01


def test_noise_against_its_definition() -> None:
    strength, unit = round(0.05 * 2**24), random_edges.UNIT
    w0 = [int(p * unit) for p in (0.57, 0.19, 0.19)]
    w0.append(unit - sum(w0))
    u, v = drawn("noisy", (9, *w0, strength), 200, seed=4)
    starts = splitmix64(random_edges.state_of(4, generators.EDGES), 200)
    for e in range(200):
        numbers, w, row, column = splitmix64(starts[e], 64 + 9), list(w0), 0, 0
        for k in range(9):
            x = numbers[k] >> 36
            quadrant = sum(x >= sum(w[: i + 1]) for i in range(3))
            row, column = 2 * row + quadrant // 2, 2 * column + quadrant % 2
            for i in range(4):
                t = (numbers[64 + k] >> 16 * i) % 65536 - 32768
                assert abs(t * strength / 2**39) <= 0.05 + 1e-6
                w[i] += (w[i] * ((strength * t) >> 15)) >> 24
            w = [(x << 28) // sum(w) for x in w]
        assert (u[e], v[e]) == (row, column)


def test_uniform_ends() -> None:
    n, count = 50, 50_000
    u, v = drawn("uniform", (n,), count)
    for end in (u, v):
        assert chi_square(np.bincount(end, minlength=n), np.full(n, count / n)) < 110
    cells = np.bincount((u // 10) * 5 + v // 10, minlength=25)
    assert chi_square(cells, np.full(25, count / 25)) < 75


# --- CUDA -----------------------------------------------------------------------------------------

WRAPPERS = """
extern "C" void mix_all(word* x, long count) {
    for (long i = 0; i < count; i++) x[i] = mix(x[i]);
}
extern "C" void rmat(long long* key, long count, word state, int scale, word a, word b, word c) {
    for (long i = 0; i < count; i++) key[i] = rmat_edge(state, i, scale, a, b, c);
}
extern "C" void noisy(long long* key, long count, word state, int scale, long long a, long long b,
                      long long c, long long d, long long strength) {
    for (long i = 0; i < count; i++) key[i] = noisy_edge(state, i, scale, a, b, c, d, strength);
}
extern "C" void uniform(long long* key, long count, word state, word n) {
    for (long i = 0; i < count; i++) key[i] = uniform_edge(state, i, n);
}
"""


@pytest.fixture(scope="module")
def cuda_functions(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The device functions of CUDA_TEXT, compiled for this machine."""
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler: the CUDA text runs on no CPU here")
    folder: Path = tmp_path_factory.mktemp("cuda")
    (folder / "edges.cpp").write_text("#define __device__\n" + random_edges.CUDA_TEXT + WRAPPERS)
    command = [compiler, "-O1", "-shared", "-fPIC", "-Wall", "-Wno-parentheses", "-Werror"]
    subprocess.run([*command, "-o", "edges.so", "edges.cpp"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "edges.so"))


def test_cuda_text_on_the_cpu(cuda_functions: ctypes.CDLL) -> None:
    words = np.random.default_rng(0).integers(0, WORD, 10_000, dtype=np.uint64)
    words[:3] = 0, 1, WORD - 1
    mixed = words.copy()
    cuda_functions.mix_all(mixed.ctypes.data_as(ctypes.c_void_p), ctypes.c_long(mixed.size))
    assert np.array_equal(mixed, random_edges.mix(words))

    unit = random_edges.UNIT
    cases = [
        ("rmat", rmat_parameters(30, 0.57, 0.19, 0.19)),
        ("rmat", (20, WORD - 1, WORD - 1, WORD - 1)),
        ("noisy", (30, unit // 2, unit // 4, unit // 8, unit // 8, 2**22)),
        ("noisy", (25, unit - 3, 1, 1, 1, 838861)),
        ("uniform", (2**31 - 1,)),
        ("uniform", (1000,)),
    ]
    types = {"int32": ctypes.c_int32, "int64": ctypes.c_int64, "uint64": ctypes.c_uint64}
    for kind, parameters in cases:
        keys = np.empty(20_000, np.int64)
        declared = random_edges.CUDA_PARAMETERS[kind]
        state = random_edges.state_of(1, generators.EDGES)
        getattr(cuda_functions, kind)(
            keys.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_long(keys.size),
            ctypes.c_uint64(state),
            *(types[t](p) for (t, _), p in zip(declared, parameters, strict=True)),
        )
        u, v = drawn(kind, parameters, keys.size)
        assert np.array_equal(keys, u << 32 | v), kind


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
def test_cuda_text_compiles_for(architecture: str) -> None:
    """By NVRTC, in a kernel that takes the arguments which CuPy's elementwise kernel declares."""
    pytest.importorskip("cuda.bindings", reason="NVRTC: pip install cuda-bindings")
    from spgraph.backends.cuda.runtime.offline import compile_source

    ctypes_of = {"int32": "int", "int64": "long long", "uint64": "unsigned long long"}
    kernels = []
    for kind, declared in random_edges.CUDA_PARAMETERS.items():
        parameters = ", ".join(f"{ctypes_of[t]} {name}" for t, name in declared)
        arguments = ", ".join(name for _, name in declared)
        kernels.append(
            f'extern "C" __global__ void {kind}(long long* key, word state, {parameters}) {{'
            f" int i = threadIdx.x; key[i] = {kind}_edge(state, i, {arguments}); }}"
        )
    text = random_edges.CUDA_TEXT + "\n".join(kernels)
    assert compile_source(text, architecture, options=())
