// A power iteration as launches of its own: what happens to a vertex between the products, for
// graphs so large that products pay for a launch of theirs (products.py). power.cu says what an
// iteration is. Preamble: U, what the products gather.
//
// Vertex i has scale[i & scale_mask], so that one may stand for all; likewise restart. `totals` are
// the SUMS over all vertices, of the last launch that made parts of them.

#include "power_sums.cuh"

// u = x * scale, for the first iteration or between two hops; and the sum of what is lost, which
// the second asks for with sums = null.
extern "C" __global__ void __launch_bounds__(256)
    power_give(i64 n, const double* x, i64 scale_mask, const double* scale, U* u, double* sums) {
    double mine[SUMS] = {0, 0, 0};
#pragma unroll 1
    for (i64 i = thread_id(); i < n; i += thread_count()) {
        const double by = scale[i & scale_mask], value = x[i];
        if (by == 0) mine[LOST] += value;
        if (u) u[i] = (U)(value * by);
    }
    if (sums) store_sums(mine, NORM_NONE, sums);
}

// The next iterate from y, the last product. Without a norm it is x, and u what it gives; else it
// is z, which waits for its norm.
extern "C" __global__ void __launch_bounds__(256)
    power_step(i64 n, const double* y, double factor, double keep, double jump, double leak,
               i64 restart_mask, const double* restart, i64 scale_mask, const double* scale,
               int norm, const double* totals, double* x, double* z, U* u, double* sums) {
    const double shift = jump + leak * totals[LOST];
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
            if (u) u[i] = (U)(value * by);
        } else {
            mine[SIZE] = join(SIZE, norm, mine[SIZE], size_of(norm, value));
            z[i] = value;
        }
    }
    store_sums(mine, norm, sums);
}

// x = z / norm, and u what it gives.
extern "C" __global__ void __launch_bounds__(256)
    power_divide(i64 n, const double* z, i64 scale_mask, const double* scale, int norm,
                 const double* totals, double* x, U* u, double* sums) {
    const double divisor = norm_of(norm, totals[SIZE]);
    double mine[SUMS] = {0, 0, 0};
#pragma unroll 1
    for (i64 i = thread_id(); i < n; i += thread_count()) {
        const double by = scale[i & scale_mask], value = z[i] / divisor;
        mine[CHANGE] += fabs(value - x[i]);
        if (by == 0) mine[LOST] += value;
        x[i] = value;
        if (u) u[i] = (U)(value * by);
    }
    store_sums(mine, norm, sums);
}

// The sums from the parts of `blocks` blocks: a block, a warp a sum.
extern "C" __global__ void power_total(i64 blocks, const double* sums, int norm, double* totals) {
    const int which = threadIdx.x >> 5;
    if (which >= SUMS) return;
    const double sum = sum_parts(sums, blocks, which, norm);
    if (lane_id() == 0) totals[which] = sum;
}
