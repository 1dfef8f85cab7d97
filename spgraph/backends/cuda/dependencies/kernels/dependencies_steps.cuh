// From level to level: numbers of paths forward, what they carry back. Part of dependencies.cu, which
// says how, and of dependencies_source_parallel.cu.

#include "load_balance.cuh"

constexpr int EACH = 4;   // edges that a lane has in flight
constexpr int ROUNDS = 4; // of so many that a group of lanes takes of a row; then its warp does
#ifndef PUSH_STEP
#define PUSH_STEP 3 // a step of push in steps of pull: it tests a level, and adds to memory
#endif
#ifndef MOST
#define MOST 0x1p1000 // paths
#endif

// ---- numbers ------------------------------------------------------------------------------------

#if EXTENDED
// x * 2**p; a zero has any exponent.
struct alignas(16) N {
    double x;
    i64 p;
};
DEVICE int bounded(i64 p) { return p < -4000 ? -4000 : p > 4000 ? 4000 : (int)p; }
DEVICE N plus(N a, N b) {
    if (b.x == 0.0) return a;
    if (a.x == 0.0) return b;
    if (a.p >= b.p) return N{a.x + ldexp(b.x, bounded(b.p - a.p)), a.p};
    return N{ldexp(a.x, bounded(a.p - b.p)) + b.x, b.p};
}
// The same value with a mantissa below 1.
DEVICE N normal(N a) {
    int exponent;
    const double fraction = frexp(a.x, &exponent);
    return N{fraction, a.p + exponent};
}
DEVICE N number(double x) { return normal(N{x, 0}); }
DEVICE N inverse(N a) { return N{1.0 / a.x, -a.p}; }
DEVICE double product(N a, N b) { return ldexp(a.x * b.x, bounded(a.p + b.p)); }
DEVICE bool too_many(N) { return false; }
DEVICE double& plain(N& a) { return a.x; }
DEVICE N shuffle_xor_number(N a, int distance) {
    return N{shuffle_xor(a.x, distance), shuffle_xor(a.p, distance)};
}
#else
typedef double N;
DEVICE N plus(N a, N b) { return a + b; }
DEVICE N normal(N a) { return a; }
DEVICE N number(double x) { return x; }
DEVICE N inverse(N a) { return 1.0 / a; }
DEVICE double product(N a, N b) { return a * b; }
// Reciprocals of paths and their sums have to have room, too.
DEVICE bool too_many(N a) { return !(a <= MOST); }
DEVICE double& plain(N& a) { return a; }
DEVICE N shuffle_xor_number(N a, int distance) { return shuffle_xor(a, distance); }
#endif

// ---- what all threads of a block know -----------------------------------------------------------

struct Rung { // of a level: where it begins in `order`, the out-edges and in-edges of those before
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
    O* offset;   // of each of them: the out-edges of those before
    O* t_offset; // the same of in-edges; null where nobody has added them up
    Rung* rungs;
    N* paths; // two rows
    N* share;
    u64* overflow;
    bool acyclic;
    // The row of level d, and the other one.
    __device__ __forceinline__ N* row(N* rows, i64 d) const {
        return rows + (acyclic ? 0 : d & 1) * n;
    }
    __device__ __forceinline__ N* other_row(N* rows, i64 d) const {
        return rows + (acyclic ? 1 : 1 - (d & 1)) * n;
    }
};

__shared__ Problem s;
__shared__ u32 row_lanes[32][32]; // of `walk`

DEVICE int warp_id() { return threadIdx.x >> 5; }
DEVICE int warps_of_block() { return blockDim.x >> 5; }

// Some warps that work together.
struct Team {
    i64 warp, warps;
};

#define CALLED static __device__ __noinline__

// What level d knows of v, to which `own` paths lead, when the sum of the shares behind it is there.
DEVICE void settle(i64 v, i64 d, N own, N reciprocal, N sum) {
    if (too_many(own)) store_relaxed(s.overflow, (u64)1);
    s.row(s.share, d)[v] = normal(plus(sum, reciprocal));
    plain(s.other_row(s.paths, d)[v]) = product(own, sum);
}

// ---- rows by groups of lanes --------------------------------------------------------------------

// The sum of x at some vertices, -1 for none; all are looked up before the first is waited for.
DEVICE N sum_at(const N* x, const I (&u)[EACH]) {
    N term[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) term[k] = u[k] >= 0 ? x[u[k]] : N();
#pragma unroll
    for (int k = 1; k < EACH; k++) term[0] = plus(term[0], term[k]);
    return term[0];
}

// finish(i, v, before(v), the sum of sum_of over row v) for the rows v = order[first] to order[last - 1],
// which have `edges` edges. Groups of lanes take rows; what is long for a group is its warp's.
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
        for (u32 left = __ballot_sync(FULL_WARP, e < end && sub == 0); left; left &= left - 1) {
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

// ---- equal shares of edges ----------------------------------------------------------------------

// A team's warps take equal shares of the edges of order[first] to order[last - 1], from number
// `begin` to `end` of `offset`.
template <class Worker>
DEVICE void share_edges(Team team, i64 first, i64 last, i64 begin, i64 end, Worker worker) {
    i64 part = (end - begin + team.warps - 1) / team.warps;
    part = (part + 31) / 32 * 32;
    const i64 from = begin + team.warp * part, to = from + part < end ? from + part : end;
    if (from >= to || first >= last) return;
    const O* offset = worker.offset + first;
    i64 window = row_at(offset, last - first, from);
    worker.offset = offset;
    worker.order += first;
    walk<EACH>(offset, last - first, end, window, from, to, row_lanes[threadIdx.x >> 5], worker);
}

#if !EXTENDED

// What vertices u are worth; -1 for none. All are looked up before the first is waited for.
struct AnyWorth {
    const double* x;
    __device__ __forceinline__ void look(const I (&u)[EACH], double (&v)[EACH]) const {
#pragma unroll
        for (int k = 0; k < EACH; k++) v[k] = u[k] >= 0 ? x[u[k]] : 0.0;
    }
};

// The same of those that `marks` has a bit for: where few are worth anything, what has to be looked up
// of these and the bits stay in the cache.
struct MarkedWorth {
    const double* x;
    const u32* marks;
    __device__ __forceinline__ void look(const I (&u)[EACH], double (&v)[EACH]) const {
        bool hit[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) hit[k] = u[k] >= 0 && test_bit(marks, u[k]);
#pragma unroll
        for (int k = 0; k < EACH; k++) v[k] = hit[k] ? x[u[k]] : 0.0;
    }
};

// sums[v] += what u is worth over the edges of row v. PHASED: `offset` numbers equal parts of rows, of
// which this is number `phase`; what its rounding gives a row too much is left out.
template <class Worth, bool PHASED = false>
struct Puller {
    const O *indptr, *offset;
    const I *order, *indices;
    Worth worth;
    double* sums;
    int phase;
    I mine;
    O limit;
    __device__ __forceinline__ O load(i64 i, bool here) {
        mine = here ? order[i] : 0;
        if constexpr (PHASED) {
            limit = here ? indptr[mine + 1] : 0;
            const O before = here ? offset[i] : 0, width = here ? offset[i + 1] - before : 0;
            return here ? indptr[mine] + phase * width - before : 0;
        }
        return here ? indptr[mine] - offset[i] : 0;
    }
    template <bool ONE>
    __device__ __forceinline__ void take(const int (&owner)[EACH], const O (&entry)[EACH],
                                         const bool (&open)[EACH]) {
        I u[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            bool inside = open[k];
            if constexpr (PHASED) {
                // an entry beyond the last one may not fit its type
                const O end = shuffle(limit, owner[k]);
                inside = inside && (O)((Bits<O>)end - (Bits<O>)entry[k]) > 0;
            }
            u[k] = inside ? indices[entry[k]] : -1;
        }
        double v[EACH];
        worth.look(u, v);
        if (ONE) {
#pragma unroll
            for (int k = 1; k < EACH; k++) v[0] += v[k];
            const double sum = warp_sum(v[0]);
            const I row = shuffle(mine, owner[0]);
            if (lane_id() == 0 && sum != 0.0) atomicAdd(sums + row, sum);
            return;
        }
        const int lane = lane_id();
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            // rows ascend over the lanes: each one's sum comes to its last lane
            const int before = shuffle_up(owner[k], 1);
            const u32 starts = __ballot_sync(FULL_WARP, lane == 0 || before != owner[k]);
            const int start = 31 - __clz(starts & (FULL_WARP >> (31 - lane)));
#pragma unroll
            for (int distance = 1; distance < 32; distance *= 2) {
                const double below = shuffle_up(v[k], distance);
                if (lane - distance >= start) v[k] += below;
            }
            const I row = shuffle(mine, owner[k]);
            const bool last = lane == 31 || (starts >> 1 >> lane & 1);
            if (last && v[k] != 0.0) atomicAdd(sums + row, v[k]);
        }
    }
};

// sums[v] += x[u] over the edges u -> v of row u that lead to a vertex of level `depth`.
struct Pusher {
    const O *indptr, *offset;
    const I *order, *indices;
    const double* x;
    double* sums;
    const L* level;
    L depth;
    double mine;
    __device__ __forceinline__ O load(i64 i, bool here) {
        const I u = here ? order[i] : 0;
        mine = here ? x[u] : 0.0;
        return here ? indptr[u] - offset[i] : 0;
    }
    template <bool ONE>
    __device__ __forceinline__ void take(const int (&owner)[EACH], const O (&entry)[EACH],
                                         const bool (&open)[EACH]) {
        I v[EACH];
        bool hit[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) v[k] = open[k] ? indices[entry[k]] : -1;
#pragma unroll
        for (int k = 0; k < EACH; k++) hit[k] = v[k] >= 0 && level[v[k]] == depth;
        const double one = ONE ? shuffle(mine, owner[0]) : 0.0;
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const double term = ONE ? one : shuffle(mine, owner[k]);
            if (hit[k]) atomicAdd(sums + v[k], term);
        }
    }
};

CALLED void pull_edges(Team team, bool back, Rung from, Rung to, const N* x, N* sums) {
    const Puller<AnyWorth> worker = {back ? s.indptr : s.t_indptr,
                                     back ? s.offset : s.t_offset,
                                     s.order,
                                     back ? s.indices : s.t_indices,
                                     {x},
                                     sums};
    share_edges(team, from.start, to.start, back ? from.out : from.in, back ? to.out : to.in,
                worker);
}

CALLED void push_edges(Team team, bool back, Rung from, Rung to, L depth, const N* x, N* sums) {
    const Pusher worker = {back ? s.t_indptr : s.indptr,
                           back ? s.t_offset : s.offset,
                           s.order,
                           back ? s.t_indices : s.indices,
                           x,
                           sums,
                           s.level,
                           depth,
                           0.0};
    share_edges(team, from.start, to.start, back ? from.in : from.out, back ? to.in : to.out,
                worker);
}

#endif

// ---- one level ----------------------------------------------------------------------------------

// Whether to push along the edges of one level, rather than pull along those of the other.
DEVICE bool pushes(i64 pushed, i64 pulled) {
    return !EXTENDED && !s.acyclic && PUSH_STEP * pushed < pulled;
}

// The edges that lead from the level that begins at `a` to the one that begins at `b` and ends at `c`,
// as many as forward and as many as back have to be looked at.
DEVICE i64 edges_forward(Rung a, Rung b, Rung c) {
    const i64 out = b.out - a.out, in = c.in - b.in;
    return pushes(out, in) ? out : in;
}
DEVICE i64 edges_back(Rung a, Rung b, Rung c) {
    const i64 out = b.out - a.out, in = c.in - b.in;
    return s.t_offset && pushes(in, out) ? in : out;
}

// The paths of level d, from `b` to `c`, from those of the level before, from `a` on. SHARES: the
// team takes equal shares of edges.
template <bool SHARES>
CALLED void count_paths(Team team, i64 d, Rung a, Rung b, Rung c) {
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
        [&](i64, i64 v, int, N sum) { paths[v] = sum; });
}

struct Own {
    N paths, reciprocal;
};

// The shares of level d, from `a` to `b`, from those of the next, from `b` to `c`. False where the
// sums are there, but `settle_level` is to come.
template <bool SHARES>
CALLED bool carry_shares(Team team, i64 d, Rung a, Rung b, Rung c) {
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

// `settle` for level d; before anything was added, sums are zero.
CALLED void settle_level(Team team, i64 d, Rung a, Rung b) {
    for (i64 i = a.start + 32 * team.warp + lane_id(); i < b.start; i += 32 * team.warps) {
        const I v = s.order[i];
        const N own = s.row(s.paths, d)[v];
        settle(v, d, own, inverse(own), s.other_row(s.paths, d)[v]);
    }
}

// score += dependency, for all but the source.
DEVICE double dependency(i64 v, L d) { return plain(s.other_row(s.paths, d)[v]); }
