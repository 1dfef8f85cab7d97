// z = f of every entry of a matrix.
// Preamble: types O I (offsets, columns), U Z S (values, result, scalar), f(value, i, j, scalar),
// PLACED: whether f looks at i or j.

#include "rows.cuh"

// `keep` is -1, or 0 where one value stands for all entries.
extern "C" __global__ void __launch_bounds__(256)
    matrix_apply(const O* indptr, const I* indices, const i64* tiles, const U* u, i64 keep,
                 S scalar, i64 count, Z* z) {
    for (i64 base = (thread_id() >> 5) * STEP; base < count; base += (thread_count() >> 5) * STEP) {
        U x[BATCH];
        I j[BATCH];
        i64 row = PLACED ? tiles[base >> TILE_BITS] : 0;
        const i64 last = PLACED ? tiles[(base >> TILE_BITS) + 1] : 0;
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            const i64 e = base + 32 * b + lane_id();
            if (e >= count) continue;
            x[b] = load_once(u + (e & keep));
            j[b] = PLACED ? load_once(indices + e) : (I)0;
        }
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            const i64 e = base + 32 * b + lane_id();
            if (e >= count) continue;
            if (PLACED) row = row_between(indptr, row, last, e);
            z[e] = f(x[b], row, j[b], scalar);
        }
    }
}
