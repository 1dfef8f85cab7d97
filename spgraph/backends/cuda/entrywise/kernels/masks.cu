// Positions as bits.
// Preamble: types U (values), N (ids), STRUCTURE.

// bits |= the positions of a sparse vector (the true ones without STRUCTURE).
extern "C" __global__ void __launch_bounds__(256)
    mask_sparse(const N* ids, const U* u, i64 count, u32* bits) {
    for (i64 p = thread_id(); p < count; p += thread_count()) {
        i64 i = ids[p];
        if (STRUCTURE || u[p] != (U)0) atomicOr(bits + (i >> 5), 1u << (i & 31));
    }
}

// z_bits = the true positions of a bitmap or full vector, a warp a word.
extern "C" __global__ void __launch_bounds__(256)
    mask_values(const u32* bits, const U* u, i64 size, u32* z_bits) {
    write_bits(size, z_bits, [=](i64 i) { return (!bits || test_bit(bits, i)) && u[i] != (U)0; });
}
