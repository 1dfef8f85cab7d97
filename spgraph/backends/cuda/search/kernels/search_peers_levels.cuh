// Levels of the whole grid: what all share, and those that pull.

// Warps take these many neighbouring words of a part at a time: at most 32, equally often.
DEVICE i64 words_at_a_time(i64 words) {
    const i64 rounds = (words + 32 * s.warps - 1) / (32 * s.warps);
    return rounds ? (words + rounds * s.warps - 1) / (rounds * s.warps) : 1;
}

// Adds this thread's counts to what its GPU adds to the sums of the next barrier_all, with one
// atomic a block.
CALLED void reduce_counts(u64 vertices, u64 edges, u64 others) {
    if (threadIdx.x < WORDS_SENT) block_sum[threadIdx.x] = 0;
    __syncthreads();
    vertices = warp_sum(vertices);
    edges = warp_sum(edges);
    others = warp_sum(others);
    if (lane_id() == 0) {
        if (vertices) atomicAdd(&block_sum[0], vertices);
        if (edges) atomicAdd(&block_sum[1], edges);
        if (others) atomicAdd(&block_sum[2], others);
    }
    __syncthreads();
    if (threadIdx.x < WORDS_SENT && block_sum[threadIdx.x])
        atomicAdd(&s.barrier->mine[threadIdx.x], block_sum[threadIdx.x]);
}

// What is claimed in the own part, with level and parent, becomes visited and the next frontier.
CALLED void announce() {
    u64 vertices = 0, edges = 0, covered = 0;
    for (i64 w = thread_id(); w < s.words; w += thread_count()) {
        const u32 bits = claimed_bits(w);
        publish(w, bits, published(w));
        if (!bits) continue;
        s.visited[s.base + w] |= bits;
        vertices += __popc(bits);
        covered += __popc(s.nonempty ? bits & s.nonempty[w] : bits);
        for (u32 rest = bits; rest; rest &= rest - 1)
            edges += (u64)degree_of(32 * w + __ffs(rest) - 1);
    }
    reduce_counts(vertices, edges, covered);
}

// ---- pull --------------------------------------------------------------------------------------

// One lane: u is a neighbour in the frontier. True where nothing further can be better.
DEVICE bool take(I u, bool& found, L& least) {
    found = true;
#if PARENTS
    const L id = user_id(u);
    least = id < least ? id : least;
#endif
    return FIRST;
}

// Ids that one load brings.
constexpr int WIDE = 16 / sizeof(I);
struct __align__(16) Ids {
    I id[WIDE];
};

// The aligned 16 bytes in which in-edge `e` lies, `before` ids behind their begin. Where they reach
// over an end of the array, which is the caller's, only the ids before `after` are loaded.
DEVICE Ids load_ids(i64 e, int before, int after) {
    const I* const at = s.t_indices + e - before;
    if (e >= before && e - before + WIDE <= s.in_edges) return *reinterpret_cast<const Ids*>(at);
    Ids ids;
#pragma unroll
    for (int j = 0; j < WIDE; j++) ids.id[j] = j >= before && j < after ? at[j] : 0;
    return ids;
}

// One lane looks at up to PROBES in-edges from `e` on. It loads the aligned 16 bytes that they lie
// in, and with them what lies beside the row: 32 lanes in as many rows take a load each as long.
DEVICE bool scan_start(const Borders& borders, O& e, O end, bool& found, L& least, u32& probes) {
    bool stop = false;
    for (int k = 0; k < PROBES && !stop && e < end; k += WIDE) {
        const int before = (int)((u64)(s.t_indices + e) % 16 / sizeof(I));
        const int after = end - e < WIDE - before ? (int)(end - e) + before : WIDE;
        const Ids u = load_ids((i64)e, before, after);
        bool here[WIDE];
#pragma unroll
        for (int j = 0; j < WIDE; j++)
            here[j] = j >= before && j < after && test_bit(s.frontier, borders.position(u.id[j]));
#pragma unroll
        for (int j = 0; j < WIDE; j++) {
            probes += !stop && j >= before && j < after;
            if (!stop && here[j]) stop = take(u.id[j], found, least);
        }
        e += after - before;
    }
    return stop;
}

// A whole warp looks on from edge `e` to `end`; true where nothing further can be better.
CALLED bool scan_row(i64 e, i64 end, bool& found, L& least, u32& probes) {
    const Borders borders;
    bool stop = false;
    for (; e < end && !stop; e += 64) {
        I u[2];
        bool here[2];
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const i64 x = e + 32 * k + lane_id();
            here[k] = x < end;
            u[k] = here[k] ? s.t_indices[x] : 0;
        }
#pragma unroll
        for (int k = 0; k < 2; k++)
            here[k] = here[k] && test_bit(s.frontier, borders.position(u[k]));
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const u32 who = warp_ballot(here[k]);
            probes += !stop && e + 32 * k + lane_id() < end;
            if (stop || !who) continue;
            if (FIRST) { // the least of the row: the lowest lane
                if (lane_id() == __ffs(who) - 1) take(u[k], found, least);
                stop = true;
            } else if (here[k]) {
                take(u[k], found, least);
            }
        }
    }
    return stop;
}

// The least over the lanes.
DEVICE L warp_least(L least) {
#pragma unroll
    for (int distance = 16; distance; distance /= 2) {
        const L other = shuffle_xor(least, distance);
        least = other < least ? other : least;
    }
    return least;
}

// What a warp has found in 32 words of the own part from `begin` on.
struct Finds {
    u32* hit;
    i64 begin = 0;
    L depth;
    u64 edges = 0;
    O first = 0, last = 0; // of the latest row, which is counted when it has come
    u32 count = 0, probes = 0;
    __device__ __forceinline__ Finds(L depth) : hit(work().pull.hit[warp_id()]), depth(depth) {}
    __device__ __forceinline__ void add(I v, L least) {
        atomicOr(&hit[(v >> 5) - begin], 1u << (v & 31));
        s.level[v] = depth;
#if PARENTS
        s.parent[v] = least;
#endif
        edges += (u64)(last - first);
        first = s.indptr[v];
        last = s.indptr[v + 1];
        count++;
    }
    __device__ __forceinline__ void finish() {
        reduce_counts(count, edges + (u64)(last - first), probes);
    }
};

// The leading neighbours of v; true where the rest of it has to be looked at.
DEVICE bool look_at_leading(const Borders& borders, I v, const Leading& leading, Finds& finds) {
    bool here[4], found = false;
    L least = max_label();
#pragma unroll
    for (int k = 0; k < 4; k++)
        here[k] = leading.id[k] >= 0 && !(k && here[0]) && test_bit(s.frontier, leading.id[k]);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        finds.probes += !found && leading.id[k] >= 0;
        if (!found && here[k]) take(borders.vertex(leading.id[k]), found, least);
    }
    if (found) finds.add(v, least);
    return !found && leading.id[3] >= 0;
}

// The rows of up to 32 vertices, one a lane that is `active`, from their entry `skip` on.
DEVICE void look_at_rows(const Borders& borders, bool active, I v, O skip, Finds& finds) {
    bool found = false;
    L least = max_label();
    O e = active ? s.t_indptr[v] + skip : 0, end = active ? s.t_indptr[v + 1] : 0;
    const bool stop = scan_start(borders, e, end, found, least, finds.probes);
    // rows that go on get the warp one after the other; what it does not finish, the grid
    for (u32 rest = warp_ballot(!stop && e < end); rest; rest &= rest - 1) {
        const int from = __ffs(rest) - 1;
        const O row = shuffle(e, from), all = shuffle(end, from);
        const O to = all - row > LONG_ROW ? row + LONG_ROW : all;
        bool row_found = found && lane_id() == from;
        L row_least = row_found ? least : max_label();
        const bool done = scan_row(row, to, row_found, row_least, finds.probes);
        const u32 who = warp_ballot(row_found);
        if (PARENTS && who) row_least = warp_least(row_least);
        if (lane_id() != from) continue;
        found = who != 0;
        least = row_least;
        if (!done && to < all) {
            const u64 k = atomicAdd(&s.control->long_rows, 1ull);
            if (k == 0) atomicAdd(&s.barrier->mine[3], 1ull);
            s.queue[k] = v; // the queue is free while a level pulls
            s.offset[k] = to;
#if PARENTS
            s.parent[v] = least; // what the grid finds is compared with it
#endif
        }
    }
    warp_sync();
    if (found) finds.add(v, least);
}

// Look for the frontier among the in-edges of the open vertices: first at the leading neighbours,
// then, for 32 vertices that wait at a time, at the rows themselves.
CALLED void sweep(L depth) {
    const Borders borders;
    const int lane = lane_id();
    // the warps of a block take neighbouring words
    const i64 warps = (i64)gridDim.x * WARPS, me = (i64)blockIdx.x * WARPS + warp_id();
    const i64 batch = words_at_a_time(s.words);
    const bool leading = FIRST && s.leading;
    // for parents these are a row's own first entries; else any four
    const O skip = leading && PARENTS ? 4 : 0;
    Finds finds(depth);
    I* const waiting = work().pull.waiting[warp_id()];
    for (i64 begin = me * batch; begin < s.words; begin += warps * batch) {
        const i64 w = begin + lane;
        const bool mine = lane < batch && w < s.words;
        const u32 visited = mine ? s.visited[s.base + w] : 0, rows = mine ? s.nonempty[w] : 0;
        const u32 before = mine ? published(w) : 0, open = rows & ~visited;
        if (!warp_any(open)) { // most words of the last levels
            if (mine) publish(w, 0, before);
            continue;
        }
        const int upto = warp_scan(__popc(open)), total = shuffle(upto, 31);
        finds.begin = begin;
        finds.hit[lane] = 0;
        warp_sync();
        int held = 0;
        I coming = (I)RankedBit(open, upto, lane, lane < total).position(begin);
        Leading its = leading && lane < total ? s.leading[coming] : Leading{};
        for (int base = 0; base < total || held; base += 32) {
            if (base < total) {
                bool waits = base + lane < total;
                const I v = coming;
                const Leading row = its;
                const int next = base + 32 + lane; // fetched while this one is looked at
                if (base + 32 < total)
                    coming = (I)RankedBit(open, upto, next, next < total).position(begin);
                if (leading && next < total) its = s.leading[coming];
                if (leading && waits) waits = look_at_leading(borders, v, row, finds);
                const u32 who = warp_ballot(waits);
                if (waits) waiting[held + __popc(who & lanes_below())] = v;
                held += __popc(who);
                warp_sync();
            }
            if (held < 32 && base + 32 < total) continue;
            const int many = held < 32 ? held : 32;
            held -= many;
            const I v = lane < many ? waiting[held + lane] : 0;
            if (many) look_at_rows(borders, lane < many, v, skip, finds);
            warp_sync();
        }
        warp_sync();
        if (mine) {
            const u32 bits = finds.hit[lane];
            publish(w, bits, before);
            if (bits) s.visited[s.base + w] = s.visited_next[s.base + w] = visited | bits;
        }
        warp_sync();
    }
    finds.finish();
}

// The rows that sweep left to the grid, after all blocks have met.
CALLED void pull_long_rows(i64 rows, L depth) {
    const i64 warps = (i64)gridDim.x * WARPS, me = (i64)blockIdx.x * WARPS + warp_id();
    u64 edges = 0;
    u32 count = 0, probes = 0;
    for (i64 r = 0; r < rows; r++) {
        const I v = s.queue[r];
        const i64 end = s.t_indptr[v + 1];
        u32* const word = s.next + s.base + (v >> 5);
        for (i64 e = (i64)s.offset[r] + 1024 * me; e < end; e += 1024 * warps) {
            if (!PARENTS && (load_relaxed(word) >> (v & 31)) & 1u) break;
            bool found = false;
            L least = max_label();
            scan_row(e, e + 1024 < end ? e + 1024 : end, found, least, probes);
            const bool any = warp_any(found);
            if (found) {
#if PARENTS
                atomicMin(&s.parent[v], least);
#endif
                const u32 bit = 1u << (v & 31);
                if (!(atomicOr(word, bit) & bit)) {
                    atomicOr(&s.visited[s.base + (v >> 5)], bit);
                    atomicOr(&s.visited_next[s.base + (v >> 5)], bit);
                    s.level[v] = depth;
                    edges += (u64)degree_of(v);
                    count++;
                }
            }
            if (any && FIRST) break; // what this warp would see later lies further back in the row
        }
    }
    reduce_counts(count, edges, probes);
}

// The words in which those rows lie, for the peers, after all blocks have met.
CALLED void publish_long_rows(i64 rows) {
    for (i64 r = thread_id(); r < rows; r += thread_count()) {
        const i64 w = s.base + (s.queue[r] >> 5);
        const u32 bits = load_relaxed(&s.next[w]);
#pragma unroll
        for (int q = 0; q < PEERS; q++)
            if (q != s.me) in_memory_of<u32>(q, s.frontiers[s.side ^ 1])[w] = bits;
    }
    if (thread_id() == 0) store_relaxed(&s.control->long_rows, (u64)0);
}
