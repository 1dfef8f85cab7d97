// What every vertex is worth to the shortest paths from a source (Brandes 2001): level by level the
// number of paths that lead to a vertex, then, back again, what it carries of those that lead on.
//
//   paths[v] = the sum of paths[u] over the edges u -> v from the level before
//   share[u] = 1 / paths[u] + sum,  sum = that of share[v] over the edges u -> v to the level behind
//   dependency[u] = paths[u] * sum
//
// An edge that is pulled along costs one look and no test of a level: `paths` and `share` have two
// rows, for even and for odd levels, and hold zero where a vertex has got no value yet. An in-edge
// of level d comes from level d - 1, or from d and behind, which have no value in the row of d - 1
// yet; an out-edge of level d leads to d + 1, or to d and before, where it is the same. What a row
// of `paths` leaves free, at the vertices of the other levels, takes the sums, then dependencies.
// Where the level that lies nearer has far fewer edges than the one that wants to be pulled, they
// are pushed along instead, with a test and an atomic: most edges of most graphs are never looked at.
//
// Here all blocks work on one source, whose levels are known; levels too small for a grid barrier
// are block 0's. In dependencies_source_parallel.cu every block takes sources for itself.
//
// `acyclic`: all edges count, and lead from a level to any one behind; then one row is enough, and
// pushing is not worth its while. EXTENDED: numbers of paths beyond what float64 holds have an
// exponent of their own.
//
// Preamble: types I (ids), O (offsets), L (levels); EXTENDED.

#ifndef SMALL_EDGES
#define SMALL_EDGES 4096 // edges of a level that is block 0's, and its vertices
#endif
#include "dependencies_steps.cuh"
#include "dependencies_order.cuh"

DEVICE bool small(i64 edges, Rung begin, Rung end) {
    return edges <= SMALL_EDGES && end.start - begin.start <= SMALL_EDGES;
}

// Level by level forward, from `depth` on, by one block while levels are small; where it stopped.
CALLED i64 small_forward(Team team, i64 depth, i64 levels, GridBarrier* barrier) {
    Rung a = s.rungs[depth - 1], b = s.rungs[depth], c = s.rungs[depth + 1];
    while (small(edges_forward(a, b, c), b, c)) {
        const Rung next = s.rungs[depth + 2 < levels ? depth + 2 : levels];
        count_paths<false>(team, depth, a, b, c);
        __syncthreads();
        if (threadIdx.x == 0) store_relaxed(&barrier->heartbeat, (u64)depth);
        if (++depth == levels) break;
        a = b;
        b = c;
        c = next;
    }
    return depth;
}

// The same back, from `depth` down to level 1.
CALLED i64 small_back(Team team, i64 depth, GridBarrier* barrier) {
    Rung a = s.rungs[depth], b = s.rungs[depth + 1], c = s.rungs[depth + 2];
    while (small(edges_back(a, b, c), a, b)) {
        const Rung next = s.rungs[depth - 1];
        if (!carry_shares<false>(team, depth, a, b, c)) {
            __syncthreads();
            settle_level(team, depth, a, b);
        }
        __syncthreads();
        if (threadIdx.x == 0) store_relaxed(&barrier->heartbeat, (u64)depth);
        if (--depth == 0) break;
        c = b;
        b = a;
        a = next;
    }
    return depth;
}

extern "C" __global__ void __launch_bounds__(1024, 1)
    dependencies(i64 n, const O* indptr, const I* indices, const O* t_indptr, const I* t_indices,
                 int acyclic, const u32* seen, L* level, I* order, O* offset, O* t_offset,
                 Rung* rungs, u64* count, u64* sums, N* paths, N* share, Control* control,
                 double* score) {
    if (threadIdx.x == 0)
        s = {n,        indptr, indices, t_indptr, t_indices,          level,       order, offset,
             t_offset, rungs,  paths,   share,    &control->overflow, acyclic != 0};
    for (i64 i = thread_id(); i < 2 * n; i += thread_count()) {
        paths[i] = N();
        share[i] = N();
        if (i < n) count[i] = 0;
    }
    if (!grid_barrier(&control->barrier, gridDim.x)) return;
    if (!arrange(seen, count, n, sums, control)) return;

    const Team grid = {(i64)warp_id() * gridDim.x + blockIdx.x, (i64)gridDim.x * warps_of_block()};
    const Team block = {warp_id(), warps_of_block()};
    const i64 levels = load_relaxed(&control->levels);
    for (i64 d = 1; d < levels;) {
        const Rung a = rungs[d - 1], b = rungs[d], c = rungs[d + 1];
        if (small(edges_forward(a, b, c), b, c)) {
            if (blockIdx.x == 0) {
                const i64 to = small_forward(block, d, levels, &control->barrier);
                if (threadIdx.x == 0) control->depth = to;
            }
            if (!grid_barrier(&control->barrier, gridDim.x)) return;
            d = load_relaxed(&control->depth);
            continue;
        }
        count_paths<!EXTENDED>(grid, d, a, b, c);
        if (!grid_barrier(&control->barrier, gridDim.x)) return;
        d++;
    }
    if (levels > 1) { // nothing lies behind the last level
        settle_level(grid, levels - 1, rungs[levels - 1], rungs[levels]);
        if (!grid_barrier(&control->barrier, gridDim.x)) return;
    }
    for (i64 d = levels - 2; d > 0;) {
        const Rung a = rungs[d], b = rungs[d + 1], c = rungs[d + 2];
        if (small(edges_back(a, b, c), a, b)) {
            if (blockIdx.x == 0) {
                const i64 to = small_back(block, d, &control->barrier);
                if (threadIdx.x == 0) control->depth = to;
            }
            if (!grid_barrier(&control->barrier, gridDim.x)) return;
            d = load_relaxed(&control->depth);
            continue;
        }
        if (!carry_shares<!EXTENDED>(grid, d, a, b, c)) {
            if (!grid_barrier(&control->barrier, gridDim.x)) return;
            settle_level(grid, d, a, b);
        }
        if (!grid_barrier(&control->barrier, gridDim.x)) return;
        d--;
    }
    if (load_relaxed(&control->overflow)) return;
    for (i64 v = thread_id(); v < n; v += thread_count())
        if (level[v] > 0) score[v] += dependency(v, level[v]);
}
