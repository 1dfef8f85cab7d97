// Brandes' dependencies of a source on all vertices (Brandes 2001), one cooperative launch: level by
// level forward the number of shortest paths to every vertex, then level by level backward the
// dependencies.
//
//   paths[v] = the sum of paths[u] over the edges u -> v from the level before
//   sum[u] = the sum of share[v] over the edges u -> v to the next level
//   dependency[u] = paths[u] * sum[u]
//   share[u] = 1 / paths[u] + sum[u], which is (1 + dependency[u]) / paths[u]
//
// An edge of a pull costs one load and no test of a level: `paths` and `share` have two rows, for even
// and for odd levels, and hold zero where a vertex has got no value yet. An in-edge of level d comes
// from level d - 1, or from d or a higher level, which has no value in the row of d - 1 yet; an
// out-edge of level d leads to d + 1, or to d or a lower level, which has none in the row of d + 1. At
// the vertices of the other levels a row of `paths` is free: it holds the sums there, then the
// dependencies. Where the level that values come from has far fewer edges than the level that they go
// to, they are pushed along its edges instead, with a test and an atomic: most edges of most graphs
// are never looked at.
//
// Here all blocks work on one source, whose levels are given; levels too small for a grid barrier are
// done by block 0 alone. One multiprocessor takes 12 ns a vertex, for accesses to lines of their own,
// so that a barrier of 1.2 us pays from some hundred edges on. Rows of levels that are not large are
// still summed by groups of lanes, which looks at less than equal shares of edges do and needs no
// second barrier. In dependencies_source_parallel.cu every block takes sources of its own.
//
// `acyclic`: all edges count, and lead from a level to any higher one; then one row is enough, and
// pushing does not pay. EXTENDED: numbers of paths beyond what float64 holds have an exponent of
// their own.
//
// Preamble: types I (ids), O (offsets), L (levels); EXTENDED.

#ifndef SMALL_EDGES
#define SMALL_EDGES 512 // edges, and vertices, of a level that block 0 does alone
#endif
#ifndef MIDDLE_EDGES
#define MIDDLE_EDGES 4096 // of one whose rows are summed by groups of lanes
#endif
#include "dependencies_steps.cuh"
#include "dependencies_order.cuh"

DEVICE bool fits(i64 most, i64 edges, LevelRange begin, LevelRange end) {
    return edges <= most && end.start - begin.start <= most;
}

// Forward from level `depth` on, by one block, while levels are small; control->depth is where it
// stopped.
CALLED void small_forward(Team team, i64 depth, i64 levels, Control* control) {
    LevelRange a = s.ranges[depth - 1], b = s.ranges[depth], c = s.ranges[depth + 1];
    while (fits(SMALL_EDGES, edges_forward(a, b, c), b, c)) {
        const LevelRange next = s.ranges[depth + 2 < levels ? depth + 2 : levels];
        count_paths<false>(team, depth, a, b, c);
        __syncthreads();
        if (threadIdx.x == 0) store_relaxed(&control->barrier.heartbeat, (u64)depth);
        if (++depth == levels) break;
        a = b;
        b = c;
        c = next;
    }
    if (threadIdx.x == 0) control->depth = depth;
}

// Backward from level `depth` down to level 1, likewise.
CALLED void small_back(Team team, i64 depth, Control* control) {
    LevelRange a = s.ranges[depth], b = s.ranges[depth + 1], c = s.ranges[depth + 2];
    while (fits(SMALL_EDGES, edges_back(a, b, c), a, b)) {
        const LevelRange next = s.ranges[depth - 1];
        if (!carry_shares<false>(team, depth, a, b, c)) {
            __syncthreads();
            settle_level(team, depth, a, b);
        }
        __syncthreads();
        if (threadIdx.x == 0) store_relaxed(&control->barrier.heartbeat, (u64)depth);
        if (--depth == 0) break;
        c = b;
        b = a;
        a = next;
    }
    if (threadIdx.x == 0) control->depth = depth;
}

extern "C" __global__ void __launch_bounds__(1024, 1)
    dependencies(i64 n, const O* indptr, const I* indices, const O* t_indptr, const I* t_indices,
                 int acyclic, const u32* visited, L* level, I* order, O* offset, O* t_offset,
                 LevelRange* ranges, u64* count, u64* sums, N* paths, N* share, Control* control,
                 u64* early, double* score) {
    if (threadIdx.x == 0)
        s = {n,        indptr, indices, t_indptr, t_indices,          level, order,       offset,
             t_offset, ranges, paths,   share,    &control->overflow, early, acyclic != 0};
    for (i64 i = thread_id(); i < 2 * n; i += thread_count()) {
        paths[i] = N();
        share[i] = N();
        if (i < n) count[i] = 0;
    }
    if (!grid_barrier(&control->barrier, gridDim.x)) return;
    if (!order_by_level(visited, count, n, sums, control)) return;

    const Team grid = {(i64)warp_id() * gridDim.x + blockIdx.x, (i64)gridDim.x * warps_of_block()};
    const Team block = {warp_id(), warps_of_block()};
    const i64 levels = load_relaxed(&control->levels);
    for (i64 d = 1; d < levels;) {
        const LevelRange a = ranges[d - 1], b = ranges[d], c = ranges[d + 1];
        const i64 edges = edges_forward(a, b, c);
        if (fits(SMALL_EDGES, edges, b, c)) {
            if (blockIdx.x == 0) small_forward(block, d, levels, control);
            if (!grid_barrier(&control->barrier, gridDim.x)) return;
            d = load_relaxed(&control->depth);
            continue;
        }
        if (fits(MIDDLE_EDGES, edges, b, c))
            count_paths<false>(grid, d, a, b, c);
        else
            count_paths<!EXTENDED>(grid, d, a, b, c);
        if (!grid_barrier(&control->barrier, gridDim.x)) return;
        d++;
    }
    // what follows does not write to it, so that all blocks see the same
    if (!EXTENDED && load_relaxed(early)) {
        if (thread_id() == 0) control->overflow = 1;
        return;
    }
    if (levels > 1) { // the last level has no next one
        settle_level(grid, levels - 1, ranges[levels - 1], ranges[levels]);
        if (!grid_barrier(&control->barrier, gridDim.x)) return;
    }
    for (i64 d = levels - 2; d > 0;) {
        const LevelRange a = ranges[d], b = ranges[d + 1], c = ranges[d + 2];
        const i64 edges = edges_back(a, b, c);
        if (fits(SMALL_EDGES, edges, a, b)) {
            if (blockIdx.x == 0) small_back(block, d, control);
            if (!grid_barrier(&control->barrier, gridDim.x)) return;
            d = load_relaxed(&control->depth);
            continue;
        }
        const bool settled = fits(MIDDLE_EDGES, edges, a, b)
                                 ? carry_shares<false>(grid, d, a, b, c)
                                 : carry_shares<!EXTENDED>(grid, d, a, b, c);
        if (!settled) {
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
