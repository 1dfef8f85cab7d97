// The entries of a matrix for which f is true.
// Preamble: types O I U (offsets, columns, values), Q N (offsets and columns of the result), S,
// f(value, i, j, scalar).

#include "rows.cuh"

struct Entry {
    U x;
    I j;
};

// First step: which entries stay. `keep` is -1, or 0 where one value stands for all.
extern "C" __global__ void __launch_bounds__(256)
    matrix_select(const O* indptr, const I* indices, const i64* tiles, const U* u, i64 keep,
                  S scalar, i64 count, u32* bits, i64* before) {
    keep_entries(
        indptr, tiles, count, bits, before,
        [=](i64 e) { return Entry{load_once(u + (e & keep)), load_once(indices + e)}; },
        [=](const Entry& entry, i64, i64 row) { return f(entry.x, row, entry.j, scalar); });
}

// Second step: each to its place. No values where one stands for all.
extern "C" __global__ void __launch_bounds__(256)
    compress(const O* indptr, const I* indices, const U* u, i64 nrows, i64 count, const u32* bits,
             const i64* before, Q* z_indptr, N* z_indices, U* z) {
    for (i64 base = (thread_id() >> 5) * STEP; base < count; base += (thread_count() >> 5) * STEP) {
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            const i64 e = base + 32 * b + lane_id();
            if (e >= count || !test_bit(bits, e)) continue;
            const i64 slot = rank_of(bits, before, e);
            z_indices[slot] = (N)load_once(indices + e);
            if (z) z[slot] = load_once(u + e);
        }
    }
    for (i64 i = thread_id(); i <= nrows; i += thread_count())
        z_indptr[i] = (Q)rank_of(bits, before, indptr[i]);
}
