"""What kernels share: combining, the grid's barrier, queues, ordered numbers, bits."""

from __future__ import annotations

from typing import Any

import cuda_host_shim as shim
import numpy as np
import pytest

from spgraph.backends.cuda.runtime import preamble
from spgraph.backends.cuda.runtime.sources import whole
from spgraph.errors import DomainMismatch
from spgraph.semirings import BinaryOp, Monoid, binary, monoid

pytestmark = pytest.mark.skipif(shim.COMPILER is None, reason="needs g++")
TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()


def monoids() -> list[tuple[Any, str]]:
    found = []
    for dtype in TYPES:
        for name in monoid:
            try:
                found.append((getattr(monoid, name).resolve(dtype), name))
            except DomainMismatch:
                continue
    return found


COMBINE = """
extern "C" __global__ void combine_all(Z* sums, const Z* terms, int count) {
    for (i64 i = thread_id(); i < count; i += thread_count()) combine(sums + i % 5, terms[i]);
}
"""


def test_combine() -> None:
    """Every monoid and type, by as many threads as there are terms, onto neighbouring addresses."""
    common = whole("common.cuh")
    cases = monoids()
    assert len(cases) > 90
    text = ""
    for k, (add, _) in enumerate(cases):
        monoid_text = preamble.types(Z=add.dtype) + preamble.monoid(add)
        kernel = COMBINE.replace("combine_all", f"combine{k}")
        text += (
            f"namespace case{k} {{\n{monoid_text}{common}{kernel}}}\nusing case{k}::combine{k};\n"
        )
        text += "#undef ADD_KIND\n#undef TERMINAL\n"
    library = shim.compiled("combine", text)
    chance = np.random.default_rng(1)
    for k, (add, name) in enumerate(cases):
        terms = chance.integers(0, 2 if add.dtype.kind == "b" else 100, 1003).astype(add.dtype)
        if add.dtype.kind == "f" and name in ("min", "max"):
            terms[:] = -terms * chance.choice([-1, 1], terms.size)
            terms[::7], terms[::11], terms[3] = np.nan, -0.0, -np.inf
        elif name == "times":
            terms = np.where(chance.random(terms.size) < 0.03, terms % 3 + 1, 1).astype(add.dtype)
        sums = np.full(5, add.identity, add.dtype)
        shim.HostKernel("monoid", getattr(library, f"launch_combine{k}"), True)(
            (2,), (256,), (sums, terms, terms.size)
        )
        for j in range(5):
            given = [x for x in terms[j::5].tolist() if x == x]
            if name == "any":
                assert sums[j] in given
                continue
            with np.errstate(all="ignore"):
                expected = getattr(Reference, name)(np.array(given, add.dtype))
            assert sums[j] == expected, (name, add.dtype, sums[j], expected)


class Reference:
    """The sum of an array over each monoid, by NumPy."""

    plus = staticmethod(lambda x: x.any() if x.dtype == bool else x.sum(dtype=x.dtype))
    times = staticmethod(lambda x: x.all() if x.dtype == bool else x.prod(dtype=x.dtype))
    min = staticmethod(lambda x: x.min())
    max = staticmethod(lambda x: x.max())
    lor = staticmethod(lambda x: x.any())
    land = staticmethod(lambda x: x.all())
    lxor = staticmethod(lambda x: np.logical_xor.reduce(x))
    lxnor = staticmethod(lambda x: not np.logical_xor.reduce(~x))
    eq = lxnor
    bor = staticmethod(lambda x: np.bitwise_or.reduce(x))
    band = staticmethod(lambda x: np.bitwise_and.reduce(x))
    bxor = staticmethod(lambda x: np.bitwise_xor.reduce(x))
    bxnor = staticmethod(lambda x: ~np.bitwise_xor.reduce(~x))


KERNELS = """
extern "C" __global__ void meet(GridBarrier* barrier, int rounds, u32* arrived, u32* wrong) {
    for (int r = 0; r < rounds; r++) {
        atomicAdd(arrived + r, 1u);
        if (!grid_barrier(barrier, gridDim.x)) return;
        if (load_relaxed(arrived + r) != thread_count()) atomicAdd(wrong, 1u);
    }
}
extern "C" __global__ void queue(const bool* wanted, const i64* degree, i64 count, u32 bits,
                                 u64* packed, i64* slot, i64* edge) {
    for (i64 base = thread_id() & ~31ll; base < count; base += thread_count()) {
        i64 i = base + lane_id();
        bool want = i < count && wanted[i];
        Place place = queue_allocate(want, want ? degree[i] : 0, packed, bits);
        if (want) slot[i] = place.slot, edge[i] = place.edge;
    }
}
template <class T, class K> DEVICE void to_key_and_back(const T* x, i64 count, K* key, T* back) {
    for (i64 i = thread_id(); i < count; i += thread_count()) {
        key[i] = ordered(x[i]);
        back[i] = from_ordered(key[i]);
    }
}
extern "C" __global__ void order(const float* x, i64 count, u32* key, float* back) {
    to_key_and_back(x, count, key, back);
}
extern "C" __global__ void order_double(const double* x, i64 count, u64* key, double* back) {
    to_key_and_back(x, count, key, back);
}
extern "C" __global__ void bits(u32* words, i64 count, u32* first, u32* valid) {
    for (i64 i = thread_id(); i < 2 * count; i += thread_count())
        if (set_bit(words, i % count)) atomicAdd(first, 1u);
    if (thread_id() < 4) valid[thread_id()] = valid_bits(thread_id(), count);
}
"""


def common_kernel(name: str, *, cooperative: bool = False) -> shim.HostKernel:
    library = shim.compiled("common", whole("common.cuh") + KERNELS)
    return shim.HostKernel("common", getattr(library, f"launch_{name}"), cooperative)


def test_grid_barrier() -> None:
    state, arrived, wrong = np.zeros(8, np.uint32), np.zeros(9, np.uint32), np.zeros(1, np.uint32)
    for blocks in (1, 3, 5):
        arrived[:] = 0
        common_kernel("meet", cooperative=True)((blocks,), (64,), (state, 9, arrived, wrong))
        assert arrived.tolist() == [64 * blocks] * 9
        assert wrong[0] == 0
        assert state[1] == 0


def test_queue_allocate() -> None:
    chance = np.random.default_rng(2)
    count, bits = 1000, 20
    wanted, degree = chance.random(count) < 0.4, chance.integers(0, 50, count)
    packed, slot, edge = np.zeros(1, np.uint64), np.full(count, -1), np.full(count, -1)
    common_kernel("queue")(
        (3,), (64,), (wanted, degree, count, np.uint32(bits), packed, slot, edge)
    )
    total = int(wanted.sum())
    assert int(packed[0]) == int(degree[wanted].sum()) << bits | total
    assert sorted(slot[wanted].tolist()) == list(range(total))
    queue = np.flatnonzero(wanted)[np.argsort(slot[wanted])]
    assert edge[queue].tolist() == (np.cumsum(degree[queue]) - degree[queue]).tolist()


@pytest.mark.parametrize(("name", "dtype"), [("order", np.float32), ("order_double", np.float64)])
def test_ordered(name: str, dtype: Any) -> None:
    tiny = np.finfo(dtype).smallest_subnormal
    x = np.array([-np.inf, -2.5, -1, -tiny, -0.0, 0.0, tiny, 1, 2.5, np.inf], dtype)
    key, back = np.zeros(x.size, np.uint32 if dtype == np.float32 else np.uint64), np.zeros_like(x)
    common_kernel(name)((1,), (32,), (x, x.size, key, back))
    assert (np.diff(key.astype(object)) > 0).tolist() == (np.diff(x) > 0).tolist()
    assert np.array_equal(back, x)
    assert not np.signbit(back[4])


@pytest.mark.parametrize("count", [1, 31, 32, 33, 100])
def test_bits(count: int) -> None:
    words, first, valid = np.zeros(4, np.uint32), np.zeros(1, np.uint32), np.zeros(4, np.uint32)
    common_kernel("bits")((2,), (64,), (words, count, first, valid))
    assert first[0] == count
    assert sum(int(word) << 32 * w for w, word in enumerate(words)) == 2**count - 1
    assert valid.tolist() == words.tolist()


def test_a_users_monoid_is_not_taken_for_a_built_in_one() -> None:
    fake = Monoid(BinaryOp.from_expressions("plus", python="x + 2 * y", cuda="x + 2 * y"), 0)
    assert preamble.kind_of(fake.resolve("int64")) == "ADD_OTHER"
    assert preamble.kind_of(monoid.plus.resolve("int64")) == "ADD_PLUS"
    assert preamble.kind_of(Monoid(binary.any, 0).resolve("int64")) == "ADD_ANY"
