// z[i] = the sum over row i, for the rows of a matrix that lie in tiles, u being full. Preamble: as
// gather.cuh.

#include "gather.cuh"
#include "tiles.cuh"

// The values at the columns that are streamed, side by side as tiles are.
extern "C" __global__ void tiles_hubs(i64 count, const R* columns, const U* u, U* hubs) {
    for (i64 p = thread_id(); p < count; p += thread_count()) hubs[p] = u[columns[p]];
}

extern "C" __global__ void __launch_bounds__(1024)
    tiles(const Tiles* tiles, const U* hubs, const U* u, const A* a, Z* partial, Z* z) {
    extern __shared__ Quad pool[];
    sum_tiles(*tiles, hubs, u, a, pool, partial, [&](i64 i, Z sum) { z[i] = sum; });
}

// The sums of split rows from those of their pieces, a warp a row.
extern "C" __global__ void tiles_split(i64 split, const R* rows, const i64* first, const Z* partial,
                                       Z* z) {
    const i64 s = thread_id() >> 5;
    if (s >= split) return;
    Z sum = identity();
    for (i64 p = first[s] + lane_id(); p < first[s + 1]; p += 32) sum = add(sum, partial[p]);
    sum = warp_combine(sum);
    if (lane_id() == 0) z[rows[s]] = sum;
}
