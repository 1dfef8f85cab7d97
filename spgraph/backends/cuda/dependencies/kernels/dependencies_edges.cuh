// Sums along the edges of a level, by warps that take equal shares of the edges (load_balance.cuh):
// a pull adds up the rows of the level, a push adds to the vertices that the edges lead to.

// Of walks from vertices that send a value along their edges: lanes have rows u with x[u], zero where
// there are no values.
struct Sender {
    const O *indptr, *offset;
    const I *order, *indices;
    const double* x;
    double mine = 0.0;
    MEMBER void fetch(i64, bool) {}
    MEMBER O load(i64 i, int, O first, bool here) {
        const I u = here ? order[i] : 0;
        mine = here && x ? x[u] : 0.0;
        return here ? indptr[u] - first : 0;
    }
};

// A team's warps take equal shares of the edges of order[first] to order[last - 1], from number
// `begin` to `end` of `offset`.
template <class Worker>
DEVICE void share_edges(Team team, i64 first, i64 last, i64 begin, i64 end, Worker worker) {
    if (first >= last) return;
    worker.offset += first;
    worker.order += first;
    walk_share<EACH>(worker.offset, last - first, begin, end, team.warp, team.warps,
                     row_lanes[warp_id()], worker);
}

#if !EXTENDED

// The values of vertices u; -1 for none. All loads are issued before the first is waited for.
struct AllValues {
    const double* x;
    MEMBER void look(const I (&u)[EACH], double (&v)[EACH]) const {
#pragma unroll
        for (int k = 0; k < EACH; k++) v[k] = u[k] >= 0 ? x[u[k]] : 0.0;
    }
};

// The values of those vertices whose bit is set in `marks`: where values other than zero are few,
// these and the bits stay in the cache.
struct MarkedValues {
    const double* x;
    const u32* marks;
    MEMBER void look(const I (&u)[EACH], double (&v)[EACH]) const {
        bool hit[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) hit[k] = u[k] >= 0 && test_bit(marks, u[k]);
#pragma unroll
        for (int k = 0; k < EACH; k++) v[k] = hit[k] ? x[u[k]] : 0.0;
    }
};

// Pull: sums[v] += the value of u over the edges of row v. PHASED: `offset` counts the edges of one
// of several equal parts of every row, and this is part number `phase`; what rounding up gives a row
// too much is left out.
template <class Values, bool PHASED = false>
struct Puller {
    const O *indptr, *offset;
    const I *order, *indices;
    Values values;
    double* sums;
    int phase;
    I mine;
    O limit;
    MEMBER void fetch(i64, bool) {}
    MEMBER O load(i64 i, int, O first, bool here) {
        mine = here ? order[i] : 0;
        if constexpr (PHASED) {
            limit = here ? indptr[mine + 1] : 0;
            const O width = here ? offset[i + 1] - first : 0;
            return here ? indptr[mine] + phase * width - first : 0;
        }
        return here ? indptr[mine] - first : 0;
    }
    template <bool ONE>
    MEMBER void take(const int (&owner)[EACH], const O (&entry)[EACH], const bool (&open)[EACH]) {
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
        values.look(u, v);
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
            const u32 starts = warp_ballot(lane == 0 || before != owner[k]);
            const int start = 31 - __clz(starts & lanes_through(lane));
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

// Push: sums[v] += x[u] over the edges u -> v of row u that lead to a vertex of level `depth`.
struct Pusher : Sender {
    double* sums;
    const L* level;
    L depth;
    template <bool ONE>
    MEMBER void take(const int (&owner)[EACH], const O (&entry)[EACH], const bool (&open)[EACH]) {
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

CALLED void pull_edges(Team team, bool back, LevelRange from, LevelRange to, const N* x, N* sums) {
    const Puller<AllValues> worker = {back ? s.indptr : s.t_indptr,
                                      back ? s.offset : s.t_offset,
                                      s.order,
                                      back ? s.indices : s.t_indices,
                                      {x},
                                      sums};
    share_edges(team, from.start, to.start, back ? from.out : from.in, back ? to.out : to.in,
                worker);
}

CALLED void push_edges(Team team, bool back, LevelRange from, LevelRange to, L depth, const N* x,
                       N* sums) {
    const Pusher worker = {back ? s.t_indptr : s.indptr,
                           back ? s.t_offset : s.offset,
                           s.order,
                           back ? s.t_indices : s.indices,
                           x,
                           0.0,
                           sums,
                           s.level,
                           depth};
    share_edges(team, from.start, to.start, back ? from.in : from.out, back ? to.in : to.out,
                worker);
}

#endif
