"""Random edges from a counter-based generator: the same on the CPU and on a GPU.

Random number k of a state is a 64-bit hash of both; the state of edge e is random number e of the
state that follows from seed and purpose. Everything is computed in integers, so that the graph does
not depend on chunks, threads or devices. NumPy and CuPy share `mix` and `numbers`; an edge, a loop
over the bits of its ends, is written twice: for NumPy, and as a CUDA device function.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import NamedTuple, TypeVar

import numpy as np

from spgraph.containers.storage.arrays import Array, import_cupy, is_cuda
from spgraph.process.activity import step
from spgraph.process.processors import usable

# splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014
GOLDEN = 0x9E3779B97F4A7C15
MIX1 = 0xBF58476D1CE4E5B9
MIX2 = 0x94D049BB133111EB
WORD = 2**64 - 1

NOISE = 64  # the noise of level k is random number NOISE + k of an edge
UNIT = 1 << 28  # the sum of four perturbed probabilities, as integers

Word = TypeVar("Word", int, np.ndarray)

LOOP = 0x7FFFFFFF7FFFFFFF  # a dropped edge: equal to its transpose, and sorted behind all others
LARGEST = 2**31 - 1  # vertices: row << 32 | column is less than LOOP
CHUNK = 1 << 17  # edges generated at once by a thread: its arrays stay in the core's cache


def mix(x: Word) -> Word:
    """A bijection of 64-bit words, splitmix64's finalizer, of a uint64 array or of an int."""
    if isinstance(x, int):
        x = (x ^ x >> 30) * MIX1 & WORD
        x = (x ^ x >> 27) * MIX2 & WORD
        return x ^ x >> 31
    x = (x ^ (x >> np.uint64(30))) * np.uint64(MIX1)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(MIX2)
    return x ^ (x >> np.uint64(31))


def state_of(seed: int, purpose: int) -> int:
    """The state of the random numbers of one purpose under `seed`."""
    return mix(mix((seed + GOLDEN) & WORD) + purpose * GOLDEN & WORD)


def numbers(state: Array | int, k: Array | int) -> Array:
    """Random number k of `state`, of 64 bits; one of them is a uint64 array, the other an int."""
    if isinstance(k, int):
        words: Array = state + np.uint64((k + 1) * GOLDEN & WORD)
    else:
        words = (k + np.uint64(1)) * np.uint64(GOLDEN) + np.uint64(state)
    return mix(words)


class GraphModel(NamedTuple):
    """A model of random graphs with its parameters and the states that follow from a seed. That
    determines a graph: any part of its edges can be generated anywhere.

    `kind` is 'rmat', 'noisy' or 'uniform', `parameters` are the arguments of its function. `state`
    is that of the edges, `labels` that of the permutation of the vertices, None without one.
    """

    kind: str
    parameters: tuple[int, ...]
    vertices: int
    edges: int  # generated, duplicates and self-loops included
    state: int
    labels: int | None
    symmetric: bool
    self_loops: bool


def vertex_labels(model: GraphModel, xp: ModuleType) -> Array | None:
    """The new id of each vertex, int32; None: vertices keep theirs."""
    if model.labels is None:
        return None
    random = xp.empty(model.vertices, np.uint64)
    step = 1 << 24  # in steps, for small temporary arrays
    for first in range(0, model.vertices, step):
        part = xp.arange(first, min(first + step, model.vertices), dtype=np.uint64)
        random[first : first + step] = numbers(model.labels, part)
    # no two numbers are equal, so that every sort gives the same permutation
    return xp.argsort(random).astype(np.int32)


def generate_edges(keys: Array, model: GraphModel, labels: Array | None, start: int = 0) -> None:
    """Writes edge start + e of `model` as row << 32 | column into keys[e], on the device of `keys`,
    where its `vertex_labels` are, too; self-loops become LOOP where the model has none.
    """
    if is_cuda(keys):
        _generate_cuda(keys, model, labels, start)
        return
    functions: dict[str, Callable[..., Array]] = {
        "rmat": _rmat_edges,
        "noisy": _noisy_edges,
        "uniform": _uniform_edges,
    }
    edges = functions[model.kind]

    def chunk(first: int) -> None:
        last = min(first + CHUNK, keys.size)
        e = np.arange(start + first, start + last, dtype=np.uint64)
        key = edges(model.state, e, *model.parameters)
        u, v = key >> 32, key & 0xFFFFFFFF
        if labels is not None:
            key = labels[u].astype(np.int64, copy=False) << 32 | labels[v]
        if not model.self_loops:
            key[u == v] = LOOP
        keys[first : first + CHUNK] = key

    with ThreadPoolExecutor(usable()) as pool:
        for done, _ in enumerate(pool.map(chunk, range(0, keys.size, CHUNK)), 1):
            step(min(done * CHUNK, keys.size), keys.size)
    step(0, 0)  # what follows has no steps


def _rmat_edges(state: int, e: Array, scale: int, ta: int, tab: int, tabc: int) -> Array:
    """The edges numbered `e`; ta, tab, tabc: a, a + b, a + b + c in units of 2**-64."""
    edge = numbers(state, e)
    u, v = np.zeros(e.size, np.int64), np.zeros(e.size, np.int64)
    for k in range(scale):
        r = numbers(edge, k)
        lower = r >= np.uint64(tab)
        right = (r >= np.uint64(ta)) ^ lower ^ (r >= np.uint64(tabc))
        u = u << 1 | lower
        v = v << 1 | right
    return u << 32 | v


def _noisy_edges(
    state: int, e: Array, scale: int, a: int, b: int, c: int, d: int, strength: int
) -> Array:
    """The edges numbered `e`; a, b, c, d in units of 2**-28, perturbed after each level by up to
    strength / 2**24.
    """
    edge = numbers(state, e)
    u, v = np.zeros(e.size, np.int64), np.zeros(e.size, np.int64)
    w = [np.full(e.size, p, np.int64) for p in (a, b, c, d)]
    for k in range(scale):
        r = (numbers(edge, k) >> np.uint64(36)).astype(np.int64)
        lower = r >= w[0] + w[1]
        right = (r >= w[0]) ^ lower ^ (r >= w[0] + w[1] + w[2])
        u = u << 1 | lower
        v = v << 1 | right
        q = numbers(edge, NOISE + k)
        for i in range(4):
            t = (q >> np.uint64(16 * i) & np.uint64(65535)).astype(np.int64) - 32768
            w[i] += w[i] * (strength * t >> 15) >> 24
        total = w[0] + w[1] + w[2] + w[3]
        w = [(x << 28) // total for x in w]
    return u << 32 | v


def _uniform_edges(state: int, e: Array, n: int) -> Array:
    """The edges numbered `e`, with both ends uniform among n vertices."""
    edge = numbers(state, e)
    return _below(numbers(edge, 0), n) << 32 | _below(numbers(edge, 1), n)


def _below(r: Array, n: int) -> Array:
    """floor(r * n / 2**64) for n < 2**32."""
    high, low, bound = r >> np.uint64(32), r & np.uint64(0xFFFFFFFF), np.uint64(n)
    return (high * bound + (low * bound >> np.uint64(32)) >> np.uint64(32)).astype(np.int64)


# --- the same for CUDA; plain C++ but for the qualifier -------------------------------------------

CUDA_TEXT = r"""
typedef unsigned long long word;

__device__ inline word mix(word x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

__device__ inline word number(word state, word k) {
    return mix(state + (k + 1) * 0x9E3779B97F4A7C15ull);
}

__device__ inline long long rmat_edge(word state, word e, int scale, word ta, word tab, word tabc) {
    word edge = number(state, e), u = 0, v = 0;
    for (int k = 0; k < scale; k++) {
        word r = number(edge, k);
        bool lower = r >= tab;
        bool right = (r >= ta) ^ lower ^ (r >= tabc);
        u = u << 1 | lower;
        v = v << 1 | right;
    }
    return (long long)(u << 32 | v);
}

__device__ inline long long noisy_edge(
    word state, word e, int scale, long long a, long long b, long long c, long long d,
    long long strength) {
    word edge = number(state, e), u = 0, v = 0;
    long long w[4] = {a, b, c, d};
    for (int k = 0; k < scale; k++) {
        long long r = (long long)(number(edge, k) >> 36);
        bool lower = r >= w[0] + w[1];
        bool right = (r >= w[0]) ^ lower ^ (r >= w[0] + w[1] + w[2]);
        u = u << 1 | lower;
        v = v << 1 | right;
        word q = number(edge, 64 + k);
        long long total = 0;
        for (int i = 0; i < 4; i++) {
            long long t = (long long)((q >> (16 * i)) & 65535) - 32768;
            w[i] += (w[i] * ((strength * t) >> 15)) >> 24;
            total += w[i];
        }
        for (int i = 0; i < 4; i++) w[i] = (w[i] << 28) / total;
    }
    return (long long)(u << 32 | v);
}

__device__ inline word below(word r, word n) {
    return ((r >> 32) * n + (((r & 0xffffffffull) * n) >> 32)) >> 32;
}

__device__ inline long long uniform_edge(word state, word e, word n) {
    word edge = number(state, e);
    return (long long)(below(number(edge, 0), n) << 32 | below(number(edge, 1), n));
}
"""

CUDA_PARAMETERS = {
    "rmat": (("int32", "scale"), ("uint64", "ta"), ("uint64", "tab"), ("uint64", "tabc")),
    "noisy": (("int32", "scale"), *(("int64", name) for name in ("a", "b", "c", "d", "strength"))),
    "uniform": (("uint64", "n"),),
}


def _generate_cuda(keys: Array, model: GraphModel, labels: Array | None, start: int) -> None:
    cupy, kind = import_cupy(), model.kind
    arguments = CUDA_PARAMETERS[kind]
    kernel = cupy.ElementwiseKernel(
        "uint64 state, uint64 start, bool relabel, bool self_loops, raw int32 labels, "
        + ", ".join(f"{type} {name}" for type, name in arguments),
        "int64 key",
        f"""
        long long pair = {kind}_edge(state, start + i, {", ".join(name for _, name in arguments)});
        long long u = pair >> 32, v = pair & 0xffffffffll;
        if (relabel) pair = (long long)labels[u] << 32 | labels[v];
        key = u == v && !self_loops ? {LOOP}ll : pair;
        """,
        f"spgraph_{kind}_edges",
        preamble=CUDA_TEXT,
    )
    values = [np.dtype(t).type(p) for (t, _), p in zip(arguments, model.parameters, strict=True)]
    table = cupy.empty(1, np.int32) if labels is None else labels
    flags = labels is not None, model.self_loops
    kernel(np.uint64(model.state), np.uint64(start), *flags, table, *values, keys)
