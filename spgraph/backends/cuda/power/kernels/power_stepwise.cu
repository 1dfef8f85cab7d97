// The power iteration with launches for every step: what is done for every vertex between the
// products, for graphs so large that these pay for launches of their own (products.py). power.cu says
// what an iteration is. Preamble: U, the type of what the products gather.
//
// Vertex i has scale[i & scale_mask], so that one may stand for all; likewise restart. The vertices
// may be those of one of several `shards`. What a shard publishes, values and sums, is written to
// `peers` places at once: to one, on this device, from where others fetch it; or to the memory of
// every GPU of the process. `totals` are the SUMS of each of the shards, in their order, that the last
// launch with sums has published.

#include "power_sums.cuh"
#include "take.cuh"

constexpr int IN_FLIGHT = 4; // vertices whose values a thread loads at a time

// Write the value of vertex i to u[peer][ids[i]], or to u[peer][i] without ids, for all peers; ids have
// 64 bits where `wide`. Without u nothing is gathered, and nothing is written.
DEVICE void publish(double value, i64 i, i64 peers, U* const* u, const void* ids, i64 wide) {
    if (!u) return;
    const i64 at = !ids ? i : wide ? ((const i64*)ids)[i] : ((const int*)ids)[i];
#pragma unroll 1
    for (i64 q = 0; q < peers; q++) u[q][at] = (U)value;
}

// Publish the sums of this shard, from `mine` of all threads of the grid: the last block to arrive adds
// up the `parts` of all blocks. *arrived is zero before and after.
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
    const int which = warp_id();
    if (which < SUMS) {
        const double sum = sum_parts(parts, gridDim.x, which, norm);
#pragma unroll 1
        for (i64 q = lane_id(); q < peers; q += 32) sums[q][which] = sum;
    }
    if (threadIdx.x == 0) *arrived = 0;
}

// Sum number `which` over all shards.
DEVICE double total(i64 shards, const double* totals, int which, int norm) {
    double sum = totals[which];
#pragma unroll 1
    for (i64 b = 1; b < shards; b++) sum = join(which, norm, sum, totals[SUMS * b + which]);
    return sum;
}

// u = x * scale, for the first iteration or between two hops; and, with `parts`, the dangling mass.
extern "C" __global__ void __launch_bounds__(256)
    power_scale(i64 n, const double* x, i64 scale_mask, const double* scale, i64 peers, U* const* u,
                const void* ids, i64 wide, double* parts, u32* arrived, double* const* sums) {
    double mine[SUMS] = {0, 0, 0};
#pragma unroll 1
    for (i64 i = thread_id(); i < n; i += thread_count()) {
        const double by = scale[i & scale_mask], value = x[i];
        if (by == 0) mine[DANGLING] += value;
        publish(value * by, i, peers, u, ids, wide);
    }
    if (parts) share_sums(mine, NORM_NONE, peers, parts, arrived, sums);
}

// The next iterate from y, the last product: x, and u = x * scale, without a norm; otherwise z, which is
// still to be divided by its norm. Unless it is `tracked` nobody asks for the value before, nor, but
// for the `last` one, for x itself. Vertices from `active` on have no product, and nobody gathers their
// values.
extern "C" __global__ void __launch_bounds__(256)
    power_step(i64 n, i64 active, const double* y, double factor, double keep, double teleport,
               double dangling, i64 restart_mask, const double* restart, i64 scale_mask,
               const double* scale, int norm, i64 shards, const double* totals, double* x,
               double* z, int tracked, int last, i64 peers, U* const* u, const void* ids, i64 wide,
               double* parts, u32* arrived, double* const* sums) {
    const double shift = teleport + dangling * total(shards, totals, DANGLING, NORM_NONE);
    double mine[SUMS] = {0, 0, 0};
    const i64 stride = thread_count();
#pragma unroll 1
    for (i64 base = thread_id(); base < n; base += IN_FLIGHT * stride) {
        double before[IN_FLIGHT], product[IN_FLIGHT], by[IN_FLIGHT];
        // all of these are under way before the first is waited for
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; k++) {
            const i64 i = base + k * stride;
            before[k] = tracked && i < n ? x[i] : 0;
            product[k] = i < active ? y[i] : 0;
            by[k] = norm == NORM_NONE && i < n ? scale[i & scale_mask] : 0;
        }
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; k++) {
            const i64 i = base + k * stride;
            if (i >= n) continue;
            const double value =
                factor * product[k] + keep * before[k] + shift * restart[i & restart_mask];
            if (norm == NORM_NONE) {
                mine[CHANGE] += fabs(value - before[k]);
                if (by[k] == 0) mine[DANGLING] += value;
                if (tracked || last) x[i] = value;
                if (i < active) publish(value * by[k], i, peers, u, ids, wide);
            } else {
                mine[SIZE] = join(SIZE, norm, mine[SIZE], size_of(norm, value));
                z[i] = value;
            }
        }
    }
    share_sums(mine, norm, peers, parts, arrived, sums);
}

// x = z / norm, and u = x * scale.
extern "C" __global__ void __launch_bounds__(256)
    power_divide(i64 n, const double* z, i64 scale_mask, const double* scale, int norm, i64 shards,
                 const double* totals, double* x, i64 peers, U* const* u, const void* ids, i64 wide,
                 double* parts, u32* arrived, double* const* sums) {
    const double divisor = norm_of(norm, total(shards, totals, SIZE, norm));
    double mine[SUMS] = {0, 0, 0};
#pragma unroll 1
    for (i64 i = thread_id(); i < n; i += thread_count()) {
        const double by = scale[i & scale_mask], value = z[i] / divisor;
        mine[CHANGE] += fabs(value - x[i]);
        if (by == 0) mine[DANGLING] += value;
        x[i] = value;
        publish(value * by, i, peers, u, ids, wide);
    }
    share_sums(mine, norm, peers, parts, arrived, sums);
}

// y[i] = x[numbers[i]]: vertices with new numbers, or with their own again.
extern "C" __global__ void __launch_bounds__(256)
    power_take(i64 n, const int* numbers, const double* x, double* y) {
    take(n, numbers, x, y);
}
