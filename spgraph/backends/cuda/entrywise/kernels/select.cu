// The entries of a bitmap or full vector for which f is true.
// Preamble: types U S, f(value, i, 0, scalar).

// By position, a warp a word; what is not kept becomes 0.
extern "C" __global__ void __launch_bounds__(256)
    select(const u32* bits, const U* u, S scalar, i64 size, u32* z_bits, U* z) {
    for (i64 w = thread_id() >> 5; w < (size + 31) / 32; w += thread_count() >> 5) {
        i64 i = 32 * w + lane_id();
        bool keep = i < size && (!bits || test_bit(bits, i)) && f(u[i], i, 0, scalar);
        u32 kept = warp_ballot(keep);
        if (i < size) z[i] = keep ? u[i] : (U)0;
        if (lane_id() == 0) z_bits[w] = kept;
    }
}
