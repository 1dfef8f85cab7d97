// A power iteration as launches of its own: what happens to a vertex between the products, for
// graphs so large that products pay for a launch of theirs (products.py). power.cu says what an
// iteration is. Preamble: U, what the products gather.
//
// Vertex i has scale[i & scale_mask], so that one may stand for all; likewise restart. The vertices
// may be those of one of several `blocks`. What these tell each other, values and sums, is written
// to `peers` places at once: to one, on this device, from where others fetch it; or to the memory of
// every GPU of the process. `totals` are the SUMS of each of the blocks, in their order, of the last
// launch that made some.

#include "power_sums.cuh"

// Vertex i at u[peer][ids[i]], or [i] without ids; these have 64 bits where `wide`. u = null:
// nobody asks.
DEVICE void give(double value, i64 i, i64 peers, U* const* u, const void* ids, i64 wide) {
    if (!u) return;
    const i64 at = !ids ? i : wide ? ((const i64*)ids)[i] : ((const int*)ids)[i];
#pragma unroll 1
    for (i64 q = 0; q < peers; q++) u[q][at] = (U)value;
}

// The sums of this block of vertices, from `mine` of all threads of the grid: its last block to come
// adds up the `parts` of all. *arrived is zero before and after.
DEVICE void share_sums(const double (&mine)[SUMS], int norm, i64 peers, double* parts, u32* arrived,
                       double* const* sums) {
    __shared__ bool last;
    store_sums(mine, norm, parts);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(arrived, 1u) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    const int which = threadIdx.x >> 5;
    if (which < SUMS) {
        const double sum = sum_parts(parts, gridDim.x, which, norm);
#pragma unroll 1
        for (i64 q = lane_id(); q < peers; q += 32) sums[q][which] = sum;
    }
    if (threadIdx.x == 0) *arrived = 0;
}

// Sum number `which` of all blocks.
DEVICE double total(i64 blocks, const double* totals, int which, int norm) {
    double sum = totals[which];
#pragma unroll 1
    for (i64 b = 1; b < blocks; b++) sum = join(which, norm, sum, totals[SUMS * b + which]);
    return sum;
}

// u = x * scale, for the first iteration or between two hops; and the sum of what is lost, which
// the second asks for with parts = null.
extern "C" __global__ void __launch_bounds__(256)
    power_give(i64 n, const double* x, i64 scale_mask, const double* scale, i64 peers, U* const* u,
               const void* ids, i64 wide, double* parts, u32* arrived, double* const* sums) {
    double mine[SUMS] = {0, 0, 0};
#pragma unroll 1
    for (i64 i = thread_id(); i < n; i += thread_count()) {
        const double by = scale[i & scale_mask], value = x[i];
        if (by == 0) mine[LOST] += value;
        give(value * by, i, peers, u, ids, wide);
    }
    if (parts) share_sums(mine, NORM_NONE, peers, parts, arrived, sums);
}

// The next iterate from y, the last product. Without a norm it is x, and u what it gives; else it
// is z, which waits for its norm.
extern "C" __global__ void __launch_bounds__(256)
    power_step(i64 n, const double* y, double factor, double keep, double jump, double leak,
               i64 restart_mask, const double* restart, i64 scale_mask, const double* scale,
               int norm, i64 blocks, const double* totals, double* x, double* z, i64 peers,
               U* const* u, const void* ids, i64 wide, double* parts, u32* arrived,
               double* const* sums) {
    const double shift = jump + leak * total(blocks, totals, LOST, NORM_NONE);
    double mine[SUMS] = {0, 0, 0};
#pragma unroll 1
    for (i64 i = thread_id(); i < n; i += thread_count()) {
        const double before = x[i];
        const double value = factor * y[i] + keep * before + shift * restart[i & restart_mask];
        if (norm == NORM_NONE) {
            const double by = scale[i & scale_mask];
            mine[CHANGE] += fabs(value - before);
            if (by == 0) mine[LOST] += value;
            x[i] = value;
            give(value * by, i, peers, u, ids, wide);
        } else {
            mine[SIZE] = join(SIZE, norm, mine[SIZE], size_of(norm, value));
            z[i] = value;
        }
    }
    share_sums(mine, norm, peers, parts, arrived, sums);
}

// x = z / norm, and u what it gives.
extern "C" __global__ void __launch_bounds__(256)
    power_divide(i64 n, const double* z, i64 scale_mask, const double* scale, int norm, i64 blocks,
                 const double* totals, double* x, i64 peers, U* const* u, const void* ids, i64 wide,
                 double* parts, u32* arrived, double* const* sums) {
    const double divisor = norm_of(norm, total(blocks, totals, SIZE, norm));
    double mine[SUMS] = {0, 0, 0};
#pragma unroll 1
    for (i64 i = thread_id(); i < n; i += thread_count()) {
        const double by = scale[i & scale_mask], value = z[i] / divisor;
        mine[CHANGE] += fabs(value - x[i]);
        if (by == 0) mine[LOST] += value;
        x[i] = value;
        give(value * by, i, peers, u, ids, wide);
    }
    share_sums(mine, norm, peers, parts, arrived, sums);
}
