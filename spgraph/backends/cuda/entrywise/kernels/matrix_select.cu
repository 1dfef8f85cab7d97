// The entries of a matrix for which f is true.
// Preamble: types O I U (offsets, columns, values), Q N (offsets and columns of the result), S,
// f(value, i, j, scalar).

#include "rows.cuh"

// First step: which entries stay. `keep` is -1, or 0 where one value stands for all.
extern "C" __global__ void __launch_bounds__(256)
    matrix_select(const O* indptr, const I* indices, const i64* tiles, const U* u, i64 keep,
                  S scalar, i64 count, u32* bits, i64* before) {
    for (i64 base = (thread_id() >> 5) * STEP; base < count; base += (thread_count() >> 5) * STEP) {
        U x[BATCH];
        I j[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            const i64 e = base + 32 * b + lane_id();
            if (e >= count) continue;
            x[b] = load_once(u + (e & keep));
            j[b] = load_once(indices + e);
        }
        i64 row = tiles[base >> TILE_BITS];
        const i64 last = tiles[(base >> TILE_BITS) + 1];
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            if (base + 32 * b >= count) break;
            const i64 e = base + 32 * b + lane_id();
            bool stays = false;
            if (e < count) {
                row = row_between(indptr, row, last, e);
                stays = f(x[b], row, j[b], scalar);
            }
            put_word(stays, (base >> 5) + b, bits, before);
        }
    }
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
