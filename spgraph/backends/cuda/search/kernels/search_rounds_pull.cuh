// Levels that pull: open vertices look for the frontier among their in-edges. Rows ascend by the
// users' ids, so that the first hit decides.

struct Probe {
    const u32* frontier; // of all vertices
    const Borders borders;
    __device__ __forceinline__ Probe(const u32* frontier) : frontier(frontier) {}
    __device__ __forceinline__ bool hits(I u) const {
        return u >= 0 && test_bit(frontier, borders.position(u));
    }
};

// One lane looks at up to PROBES in-edges from `e` on: the first hit, or -1.
DEVICE I scan_start(const Probe& probe, O& e, O end) {
    for (int k = 0; k < PROBES && e < end; k += EACH, e += EACH) {
        I u[EACH];
        bool here[EACH];
#pragma unroll
        for (int j = 0; j < EACH; j++) u[j] = j < end - e ? s.t_indices[e + j] : -1;
#pragma unroll
        for (int j = 0; j < EACH; j++) here[j] = probe.hits(u[j]);
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (here[j]) return u[j];
    }
    return -1;
}

// A whole warp looks on from edge `e` to `end`: the first hit, or -1.
CALLED I scan_row(const u32* frontier, i64 e, i64 end) {
    const Probe probe(frontier);
    for (; e < end; e += 64) {
        I u[2];
        bool here[2];
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const i64 x = e + 32 * k + lane_id();
            u[k] = x < end ? s.t_indices[x] : -1;
        }
#pragma unroll
        for (int k = 0; k < 2; k++) here[k] = probe.hits(u[k]);
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const u32 who = warp_ballot(here[k]);
            if (who) return shuffle(u[k], __ffs(who) - 1);
        }
    }
    return -1;
}

// What a warp has found in 32 words of the own part from `begin` on.
struct Finds {
    L *level, *parent;
    L depth;
    u32* hit;
    i64 begin = 0;
    u64 edges = 0;
    O first = 0, last = 0; // of the latest row, which is counted when it has come
    u32 number = 0;
    __device__ __forceinline__ void add(I v, I from) {
        atomicOr(&hit[(v >> 5) - begin], 1u << (v & 31));
        level[v] = depth;
        if (PARENTS) parent[v] = user_id(from);
        edges += (u64)(last - first);
        first = s.indptr[v];
        last = s.indptr[v + 1];
        number++;
    }
};

// The leading neighbours of v; true where the rest of it has to be looked at.
DEVICE bool look_at_leading(const Probe& probe, I v, const Leading& leading, Finds& finds) {
    bool here[4];
#pragma unroll
    for (int k = 0; k < 4; k++) here[k] = !(k && here[0]) && probe.hits(leading.id[k]);
#pragma unroll
    for (int k = 0; k < 4; k++)
        if (here[k]) {
            finds.add(v, leading.id[k]);
            return false;
        }
    return leading.id[3] >= 0;
}

// The rows of up to 32 vertices, one a lane that is `active`, from their entry `skip` on. Rows that
// go on get the warp one after the other; what it does not finish waits for `pull_rows`.
DEVICE void look_at_rows(const Probe& probe, bool active, I v, O skip, Finds& finds) {
    O e = active ? s.t_indptr[v] + skip : 0, end = active ? s.t_indptr[v + 1] : 0;
    I found = scan_start(probe, e, end);
    for (u32 rest = warp_ballot(found < 0 && e < end); rest; rest &= rest - 1) {
        const int from = __ffs(rest) - 1;
        const i64 row = shuffle(e, from), all = shuffle(end, from);
        const i64 to = all - row > LONG_ROW ? row + LONG_ROW : all;
        const I hit = scan_row(probe.frontier, row, to);
        if (lane_id() != from) continue;
        found = hit;
        if (hit < 0 && to < all) {
            const u64 k = atomicAdd(&s.control->count[WAITING], 1ull);
            s.queue[k] = v; // the queue is free while a level pulls
            s.offset[k] = (O)to;
        }
    }
    warp_sync();
    if (found >= 0) finds.add(v, found);
}

// Open vertices look for the frontier: first at their leading neighbours, then, for 32 that wait at
// a time, at the rows themselves. A warp takes `batch` words of the own part at a time.
extern "C" __global__ void __launch_bounds__(THREADS, 1024 / THREADS)
    pull(const u64* given, L* level, L* parent, u32* visited, const u32* frontier, i64 batch,
         L depth, i64 round) {
    __shared__ u32 hits[WARPS][32];
    __shared__ I waits[WARPS][64];
    enter(given);
    for (i64 w = thread_id(); w < PEERS * s.words; w += thread_count())
        if (frontier[w] && w / s.words != s.me) visited[w] |= frontier[w];
    const int lane = lane_id();
    const O skip = PARENTS ? 4 : 0; // for parents these are the row's first entries
    const Probe probe(frontier);
    Finds finds{level, parent, depth, hits[warp_id()]};
    I* const waiting = waits[warp_id()];
    u32* const mine = own_part(visited);
    for (i64 begin = warp_number() * batch; begin < s.words;
         begin += (i64)gridDim.x * WARPS * batch) {
        const i64 w = begin + lane;
        const bool here = lane < batch && w < s.words;
        const u32 visited_bits = here ? mine[w] : 0;
        const u32 open = here && 32 * w < own_vertices() ? s.nonempty[w] & ~visited_bits : 0;
        const int upto = warp_scan(__popc(open)), total = shuffle(upto, 31);
        finds.begin = begin;
        finds.hit[lane] = 0;
        warp_sync();
        int held = 0;
        for (int base = 0; base < total || held; base += 32) {
            if (base < total) {
                const int rank = base + lane;
                bool active = rank < total;
                const RankedBit place(open, upto, rank, active);
                const I v = (I)place.position(begin);
                if (active) active = look_at_leading(probe, v, s.leading[v], finds);
                const u32 who = warp_ballot(active);
                if (active) waiting[held + __popc(who & lanes_below())] = v;
                held += __popc(who);
                warp_sync();
            }
            if (held < 32 && base + 32 < total) continue;
            const int many = held < 32 ? held : 32;
            held -= many;
            const I v = lane < many ? waiting[held + lane] : 0;
            if (many) look_at_rows(probe, lane < many, v, skip, finds);
            warp_sync();
        }
        warp_sync();
        if (here) {
            const u32 bits = finds.hit[lane];
            s.own[w] = bits;
            if (bits) mine[w] = visited_bits | bits;
        }
        warp_sync();
    }
    count(VERTICES, finds.number);
    count(EDGES, finds.edges + (u64)(finds.last - finds.first));
    publish_counts(round);
}

// The rows that `pull` left: all warps look at the rest of each.
extern "C" __global__ void pull_rows(const u64* given, L* level, L* parent, u32* visited,
                                     const u32* frontier, i64 rows, L depth, i64 round) {
    enter(given);
    const i64 warps = (i64)gridDim.x * WARPS;
    u64 edges = 0, number = 0;
    for (i64 r = 0; r < rows; r++) {
        const I v = s.queue[r];
        const i64 end = s.t_indptr[v + 1];
        u32* const word = &s.own[v >> 5];
        const u32 bit = 1u << (v & 31);
        for (i64 e = (i64)s.offset[r] + 1024 * warp_number(); e < end; e += 1024 * warps) {
            if (!PARENTS && shuffle(load_relaxed(word) & bit, 0)) break;
            const I found = scan_row(frontier, e, e + 1024 < end ? e + 1024 : end);
            if (found < 0) continue;
            if (lane_id() == 0) {
#if PARENTS
                // the first of the row has the least id, whichever warp finds it
                atomicMin((Key*)&parent[v], (Key)user_id(found));
#endif
                if (!(atomicOr(word, bit) & bit)) {
                    atomicOr(&own_part(visited)[v >> 5], bit);
                    level[v] = depth;
                    edges += (u64)degree_of(v);
                    number++;
                }
            }
            break; // what this warp would see later lies further back in the row
        }
    }
    count(VERTICES, number);
    count(EDGES, edges);
    publish_counts(round);
}
