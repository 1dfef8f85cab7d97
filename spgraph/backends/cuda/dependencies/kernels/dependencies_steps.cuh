// One level of Brandes' dependencies: numbers of paths forward, shares backward, as dependencies.cu
// defines them. Part of that file and of the others named dependencies_*.cu.

#include "load_balance.cuh"

constexpr int EACH = 4; // edges that a lane has in flight
constexpr int ROUNDS =
    4; // a group of lanes takes EACH edges a lane so often; the warp what is left
#ifndef PUSH_STEP
#define PUSH_STEP 3 // what an edge costs in a push, in edges of a pull: a test and an atomic more
#endif

#include "dependencies_number.cuh"

// ---- the state, in shared memory ----------------------------------------------------------------

// Where a level begins: its place in `order`, the out-edges and in-edges of the levels before. It ends
// where the next one begins.
struct LevelRange {
    i64 start, out, in;
};

struct Problem {
    i64 n;
    const O* indptr; // out-edges
    const I* indices;
    const O* t_indptr; // in-edges
    const I* t_indices;
    L* level;    // -1 where not reached
    I* order;    // the vertices by level
    O* offset;   // the running sum of their out-degrees
    O* t_offset; // the same of in-degrees; null where nobody has added them up
    LevelRange* ranges;
    N* paths;      // two rows of n, for even and for odd levels
    N* share;      // likewise
    u64* overflow; // becomes 1 where numbers of paths leave float64
    u64* early;    // likewise where that is seen as paths are counted; nothing else writes to it
    bool acyclic;
    // The row of level d, and the other one.
    MEMBER N* row(N* rows, i64 d) const { return rows + (acyclic ? 0 : d & 1) * n; }
    MEMBER N* other_row(N* rows, i64 d) const { return rows + (acyclic ? 1 : 1 - (d & 1)) * n; }
};

__shared__ Problem s;
__shared__ u32 row_lanes[32][32]; // of `walk`

DEVICE int warps_of_block() { return blockDim.x >> 5; }

// Some warps that work together.
struct Team {
    i64 warp, warps;
};

// The share and the dependency of v, of level d, to which `own` paths lead; `sum` is that of the
// shares of the next level along its out-edges.
DEVICE void settle(i64 v, i64 d, N own, N reciprocal, N sum) {
    if (too_many(own)) store_relaxed(s.overflow, (u64)1);
    s.row(s.share, d)[v] = normal(plus(sum, reciprocal));
    plain(s.other_row(s.paths, d)[v]) = product(own, sum);
}

// ---- rows by groups of lanes --------------------------------------------------------------------

// The sum of x at some vertices, -1 for none; all loads are issued before the first is waited for.
DEVICE N sum_at(const N* x, const I (&u)[EACH]) {
    N term[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) term[k] = u[k] >= 0 ? x[u[k]] : N();
#pragma unroll
    for (int k = 1; k < EACH; k++) term[0] = plus(term[0], term[k]);
    return term[0];
}

// finish(i, v, before(v), the sum of sum_of over row v) for the rows v = order[first] to order[last - 1],
// which have `edges` edges. Groups of lanes take rows; the end of a long row is summed by the whole
// warp.
template <class Sum, class Before, class Finish>
DEVICE void gather(Team team, const O* indptr, const I* indices, i64 first, i64 last, i64 edges,
                   Sum sum_of, Before before, Finish finish) {
    const i64 rows = last - first;
    const int shift = edges <= 4 * rows ? 2 : edges <= 8 * rows ? 3 : edges <= 16 * rows ? 4 : 5;
    const int width = 1 << shift, each = 32 >> shift, lane = lane_id(), sub = lane & (width - 1);
    for (i64 base = first + team.warp * each; base < last; base += team.warps * each) {
        const i64 i = base + (lane >> shift);
        const bool here = i < last;
        const I v = here ? s.order[i] : 0;
        O e = here ? indptr[v] : 0;
        const O end = here ? indptr[v + 1] : 0;
        const auto known = before(v); // does not wait for the sum
        N sum = N();
#pragma unroll 1
        for (int round = 0; round < ROUNDS && e < end; round++) {
            I u[EACH];
#pragma unroll
            for (int k = 0; k < EACH; k++) {
                u[k] = -1;
                if (end - e > k * width + sub) u[k] = indices[e + k * width + sub];
            }
            sum = plus(sum, sum_of(u));
            e = end - e > EACH * width ? e + EACH * width : end;
        }
        for (u32 left = warp_ballot(e < end && sub == 0); left; left &= left - 1) {
            const int which = __ffs(left) - 1;
            N more = N();
            const i64 to = shuffle(end, which);
#pragma unroll 1
            for (i64 at = (i64)shuffle(e, which) + lane; at < to; at += 32 * EACH) {
                I u[EACH];
#pragma unroll
                for (int k = 0; k < EACH; k++) u[k] = at + 32 * k < to ? indices[at + 32 * k] : -1;
                more = plus(more, sum_of(u));
            }
            for (int distance = 16; distance; distance /= 2)
                more = plus(more, shuffle_xor_number(more, distance));
            if (lane == which) sum = plus(sum, more);
        }
        for (int distance = width / 2; distance; distance /= 2)
            sum = plus(sum, shuffle_xor_number(sum, distance));
        if (here && sub == 0) finish(i, (i64)v, known, normal(sum));
    }
}

#include "dependencies_edges.cuh"

// ---- one level ----------------------------------------------------------------------------------

// Whether a push along so many edges costs less than a pull along so many.
DEVICE bool pushes(i64 pushed, i64 pulled) {
    return !EXTENDED && !s.acyclic && PUSH_STEP * pushed < pulled;
}

// How many edges between two levels are looked at, forward and backward: the first level begins at
// `a`, the second at `b`, which ends at `c`.
DEVICE i64 edges_forward(LevelRange a, LevelRange b, LevelRange c) {
    const i64 out = b.out - a.out, in = c.in - b.in;
    return pushes(out, in) ? out : in;
}
DEVICE i64 edges_back(LevelRange a, LevelRange b, LevelRange c) {
    const i64 out = b.out - a.out, in = c.in - b.in;
    return s.t_offset && pushes(in, out) ? in : out;
}

// The numbers of paths to level d, which begins at `b` and ends at `c`, from those to the level
// before, which begins at `a`. SHARES: the team's warps take equal shares of edges.
template <bool SHARES>
CALLED void count_paths(Team team, i64 d, LevelRange a, LevelRange b, LevelRange c) {
    const N* x = s.row(s.paths, d - 1);
    N* paths = s.row(s.paths, d);
#if !EXTENDED
    if (pushes(b.out - a.out, c.in - b.in)) {
        push_edges(team, false, a, b, (L)d, x, paths);
        return;
    }
    if constexpr (SHARES) {
        pull_edges(team, false, b, c, x, paths);
        return;
    }
#endif
    gather(
        team, s.t_indptr, s.t_indices, b.start, c.start, c.in - b.in,
        [&](const I(&u)[EACH]) { return sum_at(x, u); }, [](I) { return 0; },
        [&](i64, i64 v, int, N sum) {
            if (too_many(sum)) store_relaxed(s.early, (u64)1);
            paths[v] = sum;
        });
}

struct Own {
    N paths, reciprocal;
};

// The shares of level d, which begins at `a`, from those of the next, from `b` to `c`. False where
// only the sums are there, so that `settle_level` has to follow.
template <bool SHARES>
CALLED bool carry_shares(Team team, i64 d, LevelRange a, LevelRange b, LevelRange c) {
    const N* x = s.row(s.share, d + 1);
#if !EXTENDED
    N* sums = s.other_row(s.paths, d);
    if (s.t_offset && pushes(c.in - b.in, b.out - a.out)) {
        push_edges(team, true, b, c, (L)d, x, sums);
        return false;
    }
    if constexpr (SHARES) {
        pull_edges(team, true, a, b, x, sums);
        return false;
    }
#endif
    const N* paths = s.row(s.paths, d);
    gather(
        team, s.indptr, s.indices, a.start, b.start, b.out - a.out,
        [&](const I(&u)[EACH]) { return sum_at(x, u); },
        [&](I v) { return Own{paths[v], inverse(paths[v])}; },
        [&](i64, i64 v, Own own, N sum) { settle(v, d, own.paths, own.reciprocal, sum); });
    return true;
}

// `settle` for all of level d, from sums that are there (zero where nothing was added).
CALLED void settle_level(Team team, i64 d, LevelRange a, LevelRange b) {
    for (i64 i = a.start + 32 * team.warp + lane_id(); i < b.start; i += 32 * team.warps) {
        const I v = s.order[i];
        const N own = s.row(s.paths, d)[v];
        settle(v, d, own, inverse(own), s.other_row(s.paths, d)[v]);
    }
}

// score += dependency, for all but the source.
DEVICE double dependency(i64 v, L d) { return plain(s.other_row(s.paths, d)[v]); }
