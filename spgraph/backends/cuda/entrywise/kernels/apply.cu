// z = f of every entry.
// Preamble: types U Z S N (ids), f(value, i, 0, scalar).

// By position or, with `ids`, entry by entry; what lies under an absent bit becomes 0.
extern "C" __global__ void __launch_bounds__(256)
    apply(const N* ids, const u32* bits, const U* u, S scalar, i64 count, Z* z) {
    for (i64 p = thread_id(); p < count; p += thread_count())
        z[p] = bits && !test_bit(bits, p) ? (Z)0 : f(u[p], ids ? (i64)ids[p] : p, 0, scalar);
}
