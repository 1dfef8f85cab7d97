// z[i] = the sum over row i for every row that has entries, u being full: rows in tiles, and the other
// rows. Preamble: as gather.cuh.

#include "gather.cuh"
#include "tiles.cuh"

// Row number i of those that tiles and slices name is row ids[i], or i without ids.
DEVICE i64 row_of(const int* ids, i64 i) { return ids ? ids[i] : i; }

// hubs: the values of u at the first `count` columns, in their order. Tiles are copied whole: the places
// after the last column are zero.
extern "C" __global__ void tiles_hubs(i64 places, i64 count, const int* columns, const U* u,
                                      U* hubs) {
    for (i64 p = thread_id(); p < places; p += thread_count())
        hubs[p] = p < count ? u[columns[p]] : (U)0;
}

extern "C" __global__ void __launch_bounds__(1024)
    tiles(const Tiles* tiles, const U* hubs, const U* u, const A* a, Z* partial, const int* ids,
          Z* z) {
    extern __shared__ Quad pool[];
    sum_tiles(*tiles, hubs, u, a, pool, partial, [&](i64 i, Z sum) { z[row_of(ids, i)] = sum; });
}

// The sums of split rows from those of their pieces, a warp a row.
extern "C" __global__ void tiles_split(i64 split, const int* rows, const i64* first,
                                       const Z* partial, const int* ids, Z* z) {
    const i64 s = thread_id() >> 5;
    if (s >= split) return;
    Z sum = identity();
    for (i64 p = first[s] + lane_id(); p < first[s + 1]; p += 32) sum = add(sum, partial[p]);
    sum = warp_combine(sum);
    if (lane_id() == 0) z[row_of(ids, rows[s])] = sum;
}

// The other rows, the short ones: a warp a slice of 32 rows of about one length, a lane a row. The
// entries of a slice lie step by step from first[slice] on, a lane's next to each other's. Entry k <
// places means hubs[k], a larger one u[k - places].
extern "C" __global__ void __launch_bounds__(256)
    tiles_rest(i64 slices, const u32* first, const int* rows, const u32* entries, const A* values,
               u32 places, const U* hubs, const U* u, const A* a, const int* ids, Z* z) {
    constexpr int BATCH = 4;
    constexpr u32 NONE = ~0u;
    const i64 slice = thread_id() >> 5;
    if (slice >= slices) return;
    const int lane = lane_id(), row = rows[slice * 32 + lane];
    const u32 stop = first[slice + 1];
    const A one = ISO ? a[0] : (A)0;
    Z sum = identity();
    for (u32 step = first[slice]; step < stop; step += BATCH) {
        const i64 at = (i64)step * 32 + lane;
        u32 entry[BATCH];
        A x[BATCH];
        U y[BATCH];
#pragma unroll
        for (int j = 0; j < BATCH; j++)
            entry[j] = step + j < stop ? load_once(entries + at + 32 * j) : NONE;
#pragma unroll
        for (int j = 0; j < BATCH; j++) {
            const bool there = entry[j] != NONE;
            x[j] = ISO || !there ? one : load_once(values + at + 32 * j);
            y[j] = !there ? (U)0 : entry[j] < places ? hubs[entry[j]] : u[entry[j] - places];
        }
#pragma unroll
        for (int j = 0; j < BATCH; j++)
            if (entry[j] != NONE) sum = add(sum, product(0, 0, x[j], y[j]));
    }
    if (row >= 0) z[row_of(ids, row)] = sum;
}
