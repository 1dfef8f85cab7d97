// t[k] = u[indices[k]] where that holds an entry.
// Preamble: types U, N (ids of u), J (the indices asked for).

// By position of u, a warp a word of the result; what is absent becomes 0.
extern "C" __global__ void __launch_bounds__(256)
    extract(const u32* bits, const U* u, const J* indices, i64 count, u32* z_bits, U* z) {
    for (i64 w = thread_id() >> 5; w < (count + 31) / 32; w += thread_count() >> 5) {
        i64 k = 32 * w + lane_id(), i = k < count ? (i64)indices[k] : 0;
        bool present = k < count && (!bits || test_bit(bits, i));
        u32 found = warp_ballot(present);
        if (k < count) z[k] = present ? u[i] : (U)0;
        if (z_bits && lane_id() == 0) z_bits[w] = found;
    }
}

// A sparse u: at[k] = the entry of u at indices[k], -1 where there is none.
extern "C" __global__ void __launch_bounds__(256)
    extract_sparse(const N* ids, i64 u_count, const J* indices, i64 count, i64* at) {
    for (i64 k = thread_id(); k < count; k += thread_count()) {
        i64 i = indices[k], low = lower_bound(ids, u_count, i);
        at[k] = low < u_count && (i64)ids[low] == i ? low : -1;
    }
}
