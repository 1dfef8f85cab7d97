// The power iteration x <- f(A, x) until x changes by at most a tolerance: one cooperative launch for all
// iterations, of one block of 1024 threads a multiprocessor. For graphs whose iterations are short;
// others use power_stepwise.cu.
//
// A hop is a product: y[i] = the sum of A[i, k] * u[k] over row i, u being the values of x times a
// scale. An iteration is one hop or two, then
//     z = factor * y + keep * x + (teleport + dangling * mass) * restart,    x = z / norm(z)
// where mass, the dangling mass, is the sum of the x whose scale is zero. Without a norm all of this is
// computed where a row is summed, so that an iteration has one barrier (1.2 us), and another where
// rows are summed in pieces; u has two buffers for that. With a norm there is one barrier more.
//
// A first call waits for the compiler. So that there is little to compile, one program serves all
// numbers of hops and all norms, there is one place that a row's sum goes to, and loops that take no
// time are not unrolled.
//
// Preamble: as gather.cuh (FULL, not MASKED, Z double, plus).

#include "gather.cuh"
#include "power_sums.cuh"

// As power.py writes it: one 64-bit word each.
struct Hop {
    const O* indptr;
    const I* indices;
    const A* a;
    RowBins bins;
    bool* hits;      // of the pieces of split rows,
    double* partial; // and their sums
    const R* empty;  // rows without entries
    i64 empties;
    i64 scale_mask; // vertex i has scale[i & scale_mask], so that one may stand for all
    const double* scale;
    U* u; // what the hop gathers; two buffers if it is the first
};

struct Constants {
    double factor, keep, teleport, dangling;
};

// A row and its sum.
struct Row {
    i64 i; // -1: none
    double sum;
};

// Task number `task` of a warp, the rows of one task of gather.cuh or 32 rows without entries: a row
// for each lane.
DEVICE Row sum_rows(const Hop& hop, i64 task, i64 gathers, const U* u) {
    Row row = {-1, 0};
    if (task < gathers) {
        gather(task, hop.bins, hop.indptr, hop.indices, hop.a, nullptr, u, nullptr, 0, nullptr,
               hop.hits, hop.partial, [&](const Sum& sum, i64 i) {
                   if (sum.hit) row = {i, sum.value};
               });
    } else {
        const i64 e = (task - gathers) * 32 + lane_id();
        if (e < hop.empties) row.i = hop.empty[e];
    }
    return row;
}

// Split row number s, from the sums of its pieces, in lane 0.
DEVICE Row join_pieces(const Hop& hop, i64 s) {
    const i64* first = hop.bins.piece_first;
    double sum = 0;
#pragma unroll 1
    for (i64 p = first[s] + lane_id(); p < first[s + 1]; p += 32) sum += hop.partial[p];
    sum = warp_sum(sum);
    return {lane_id() == 0 ? (i64)hop.bins.rows[s] : -1, sum};
}

// done(i, sum) for every row i; false if a barrier timed out.
template <class Done>
DEVICE bool for_rows(const Hop& hop, const U* u, GridBarrier* barrier, Done done) {
    const i64 gathers = task_count(hop.bins), split = hop.bins.split;
    for (int pass = 0; pass < (split > 0 ? 2 : 1); pass++) {
        if (pass == 1 && !grid_barrier(barrier, gridDim.x)) return false;
        const i64 tasks = pass == 1 ? split : gathers + (hop.empties + 31) / 32;
        for (i64 task = thread_id() >> 5; task < tasks; task += thread_count() >> 5) {
            const Row row = pass == 1 ? join_pieces(hop, task) : sum_rows(hop, task, gathers, u);
            if (row.i >= 0) done(row.i, row.sum);
            warp_sync();
        }
    }
    return true;
}

// A barrier that adds up the sums of all blocks; false if it timed out.
DEVICE bool sum_over_blocks(const double (&mine)[SUMS], int norm, double* sums,
                            GridBarrier* barrier, double (&all)[SUMS]) {
    __shared__ double totals[SUMS];
    store_sums(mine, norm, sums);
    if (!grid_barrier(barrier, gridDim.x)) return false;
    const int warp = warp_id();
    if (warp < SUMS) {
        const double sum = sum_parts(sums, gridDim.x, warp, norm);
        if (lane_id() == 0) totals[warp] = sum;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < SUMS; k++) all[k] = totals[k];
    return true;
}

// All iterations; false if a barrier timed out.
DEVICE bool iterate(const Hop* hops, int count, int norm, i64 n, double* x, double* z,
                    Constants constants, i64 restart_mask, const double* restart, double tol,
                    i64 max_iter, double* sums, GridBarrier* barrier, double* report) {
    const Hop& first = hops[0];
    const i64 area = (i64)SUMS * gridDim.x;
    double mine[SUMS], all[SUMS], shift = 0, divisor = 1;
    // x[i] becomes `value`, and u[i] what the next iteration gathers
    const auto settle = [&](i64 i, double before, double value, int buffer) {
        const double by = first.scale[i & first.scale_mask];
        mine[CHANGE] += fabs(value - before);
        if (by == 0) mine[DANGLING] += value;
        x[i] = value;
        first.u[buffer * n + i] = (U)(value * by);
    };
    // iteration -1 writes what the first one gathers
    for (i64 iteration = -1; iteration < max_iter; iteration++) {
        const int from = iteration & 1, to = 1 - from;
        mine[CHANGE] = mine[DANGLING] = mine[SIZE] = 0;
        for (int h = 0; h < count && iteration >= 0; h++) {
            const Hop &hop = hops[h], &next = hops[count - 1];
            const bool last = h == count - 1;
            const auto done = [&](i64 i, double y) {
                if (!last) {
                    next.u[i] = (U)(y * next.scale[i & next.scale_mask]);
                    return;
                }
                const double before = x[i], value = constants.factor * y + constants.keep * before +
                                                    shift * restart[i & restart_mask];
                if (norm == NORM_NONE) {
                    settle(i, before, value, to);
                } else {
                    z[i] = value;
                    mine[SIZE] = join(SIZE, norm, mine[SIZE], size_of(norm, value));
                }
            };
            if (!for_rows(hop, hop.u + (h == 0 ? from * n : 0), barrier, done)) return false;
            if (!last && !grid_barrier(barrier, gridDim.x)) return false;
        }
        if (iteration >= 0 && norm != NORM_NONE) {
            if (!sum_over_blocks(mine, norm, sums + 2 * area, barrier, all)) return false;
            divisor = norm_of(norm, all[SIZE]);
        }
        if (iteration < 0 || norm != NORM_NONE) {
            const double* source = iteration < 0 ? x : z;
#pragma unroll 1
            for (i64 i = thread_id(); i < n; i += thread_count())
                settle(i, x[i], source[i] / divisor, to);
        }
        // two areas take turns: some blocks may still read the sums of the last iteration
        if (!sum_over_blocks(mine, norm, sums + from * area, barrier, all)) return false;
        shift = constants.teleport + constants.dangling * all[DANGLING];
        if (iteration < 0) continue;
        if (thread_id() == 0) {
            report[0] = (double)(iteration + 1);
            report[1] = all[CHANGE];
        }
        if (all[CHANGE] <= tol) break;
    }
    return true;
}

extern "C" __global__ void __launch_bounds__(1024)
    power(const Hop* hops, int count, int norm, i64 n, double* x, double* z, double factor,
          double keep, double teleport, double dangling, i64 restart_mask, const double* restart,
          double tol, i64 max_iter, double* sums, GridBarrier* barrier, double* report) {
    // every row reads some of these, and the cache of global memory is empty after a barrier
    __shared__ u64 words[2 * sizeof(Hop) / 8];
#pragma unroll 1
    for (u32 k = threadIdx.x; k < count * sizeof(Hop) / 8; k += blockDim.x)
        words[k] = ((const u64*)hops)[k];
    __syncthreads();
    if (!iterate((const Hop*)words, count, norm, n, x, z, {factor, keep, teleport, dangling},
                 restart_mask, restart, tol, max_iter, sums, barrier, report))
#pragma unroll 1
        for (i64 i = thread_id(); i < n; i += thread_count())
            x[i] = from_bits<double>(0x7ff8ull << 48);
}
