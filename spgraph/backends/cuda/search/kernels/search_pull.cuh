// Levels that pull: warps take words of the own part of the bitmaps, line up the vertices that are
// still open, and look for the frontier among their in-edges.

constexpr int PROBES = 32; // in-edges one lane looks at before its warp takes the row

// ---- what a level has found --------------------------------------------------------------------

// Adds this thread's counts to the level's, with one atomic a block for each; `others` is what an
// Exchange counts beside. All threads of the block call, and a barrier of all blocks lies between two
// calls: the second one clears what threads of the first one may still read.
CALLED void reduce_counts(u32 vertices, u64 edges, u32 others, Totals* totals = nullptr) {
    if (threadIdx.x < 3) block_sum[threadIdx.x] = 0;
    __syncthreads();
    vertices = warp_sum(vertices);
    edges = warp_sum(edges);
    if (Exchange::COUNTS_OTHERS) others = warp_sum(others);
    if (lane_id() == 0 && vertices) {
        atomicAdd(&block_sum[0], (u64)vertices);
        atomicAdd(&block_sum[1], edges);
    }
    if (Exchange::COUNTS_OTHERS && lane_id() == 0 && others) atomicAdd(&block_sum[2], (u64)others);
    __syncthreads();
    Exchange::add(totals, block_sum);
}

// ---- rows --------------------------------------------------------------------------------------

// In-edges that a lane loads together: between shards the aligned 16 bytes that the first lies in,
// and with them what lies beside the row, since 32 lanes in as many rows take a load each as long.
constexpr bool WIDE_LOADS = Exchange::DISTRIBUTED;
constexpr int TOGETHER = WIDE_LOADS ? 16 / sizeof(I) : EACH;
struct __align__(WIDE_LOADS ? 16 : sizeof(I)) Neighbours {
    I id[TOGETHER];
};

// The ids from `before` before in-edge `e` on; of the row are those before `after`. Where 16 bytes
// reach over an end of the array, which is the caller's, only the row's are loaded.
DEVICE Neighbours load_neighbours(i64 e, int before, int after) {
    const I* const at = s.t_indices + e - before;
    if (WIDE_LOADS && e >= before && e - before + TOGETHER <= s.in_edges)
        return *reinterpret_cast<const Neighbours*>(at);
    Neighbours neighbours;
#pragma unroll
    for (int j = 0; j < TOGETHER; j++) neighbours.id[j] = j >= before && j < after ? at[j] : 0;
    return neighbours;
}

// One lane looks at up to PROBES in-edges of row v from `e` on; true where nothing further can
// change the candidate.
DEVICE bool scan_start(const Exchange& exchange, i64 v, O& e, O end, bool& found,
                       Candidate& candidate, u32& probes) {
    bool stop = false;
    for (int k = 0; k < PROBES && !stop && e < end; k += TOGETHER) {
        const int before = WIDE_LOADS ? (int)((u64)(s.t_indices + e) % 16 / sizeof(I)) : 0;
        const int after = end - e < TOGETHER - before ? (int)(end - e) + before : TOGETHER;
        const Neighbours u = load_neighbours((i64)e, before, after);
        bool here[TOGETHER];
#pragma unroll
        for (int j = 0; j < TOGETHER; j++)
            here[j] = j >= before && j < after && test_bit(s.frontier, exchange.bit(u.id[j]));
#pragma unroll
        for (int j = 0; j < TOGETHER; j++) {
            if (TRACE) probes += !stop && j >= before && j < after;
            if (!stop && here[j]) {
                found = true;
                stop = candidate.take(exchange, u.id[j], v, e + (j - before));
            }
        }
        e += after - before;
    }
    return stop;
}

// What a warp's look at part of a row has given: each lane has what it has found itself.
struct Scan {
    Candidate candidate;
    u32 probes;
    bool found, stop; // stop: nothing further can change what the row gives
};

// A whole warp looks on from edge `e` of row v to `end`.
CALLED Scan scan_row(i64 v, i64 e, i64 end) {
    const Exchange exchange;
    Scan scan = {Candidate::none(), 0, false, false};
    for (; e < end && !scan.stop; e += 64) {
        i64 u[2];
        bool here[2];
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const i64 x = e + 32 * k + lane_id();
            here[k] = x < end;
            u[k] = here[k] ? (i64)s.t_indices[x] : 0;
        }
#pragma unroll
        for (int k = 0; k < 2; k++) here[k] = here[k] && test_bit(s.frontier, exchange.bit(u[k]));
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const i64 x = e + 32 * k + lane_id();
            const u32 who = warp_ballot(here[k]);
            if (TRACE) scan.probes += !scan.stop && x < end;
            if (scan.stop || !who) continue;
            if (FIRST_DECIDES) { // the least of the row: the lowest lane
                if (lane_id() == __ffs(who) - 1) {
                    scan.found = true;
                    scan.candidate.take(exchange, u[k], v, x);
                }
                scan.stop = true;
            } else {
                scan.found = scan.found || here[k];
                scan.stop = warp_any(here[k] && scan.candidate.take(exchange, u[k], v, x));
            }
        }
    }
    return scan;
}

// ---- 32 vertices -------------------------------------------------------------------------------

// What a warp has found in 32 words from `begin` on.
struct Finds {
    u32* hit;
    i64 begin = 0;
    L depth;
    Degrees edges;
    u32 count = 0, probes = 0;
    MEMBER Finds(L depth) : hit(pull_memory().hit[Exchange::warp()]), depth(depth) {}
    MEMBER void add(I v, const Candidate& candidate) {
        atomicOr(&hit[(v >> 5) - begin], 1u << (v & 31));
        s.level[v] = depth;
        candidate.store(v);
        if constexpr (Exchange::DISTRIBUTED)
            edges.add(v);
        else
            edges.sum += (u64)degree_of(v);
        count++;
    }
    MEMBER void finish(Totals* totals) { reduce_counts(count, edges.total(), probes, totals); }
};

// One lane looks at the leading neighbours of v, whose row begins at edge `e`; true where one lies
// in the frontier, which decides.
DEVICE bool look_at_leading(const Exchange& exchange, I v, O e, const Leading& leading,
                            Candidate& candidate, u32& probes) {
    bool here[4], found = false;
    here[0] = test_bit(s.frontier, exchange.bit(leading.id[0]));
#pragma unroll
    for (int k = 1; k < 4; k++)
        here[k] =
            !here[0] && leading.id[k] >= 0 && test_bit(s.frontier, exchange.bit(leading.id[k]));
#pragma unroll
    for (int k = 0; k < 4; k++) {
        if (TRACE) probes += !found && leading.id[k] >= 0;
        if (!found && here[k]) found = candidate.take(exchange, leading.id[k], v, e + k);
    }
    return found;
}

// The rows of up to 32 vertices, one a lane, from edge `e` on; a lane without one has no edges.
// Rows that go on get the warp one after the other, and what it does not finish gets the grid.
DEVICE void look_at_rows(const Exchange& exchange, I v, O e, O end, bool& found,
                         Candidate& candidate, Totals* totals, u32& probes) {
    bool stop = FIRST_DECIDES && found;
    if (!stop) stop = scan_start(exchange, v, e, end, found, candidate, probes);
    for (u32 left = warp_ballot(!stop && e < end); left; left &= left - 1) {
        const int which = __ffs(left) - 1;
        const O from = shuffle(e, which), all = shuffle(end, which);
        const O to = all - from > LONG_ROW ? from + LONG_ROW : all;
        Scan scan = scan_row(shuffle(v, which), from, to);
        const u32 who = warp_ballot(scan.found);
        if (who) scan.candidate.merge(who);
        if (TRACE) probes += scan.probes;
        if (lane_id() != which) continue;
        if (who) {
            found = true;
            candidate.combine(scan.candidate);
        }
        if (!scan.stop && to < all) {
            const u64 k = Exchange::long_row(totals);
            s.queue[k] = v; // the queue is free while a level pulls
            s.offset[k] = to;
            candidate.store(v); // the grid combines the rest into it
        }
    }
}

// ---- levels ------------------------------------------------------------------------------------

// The vertices that are bits of `open`, a word a lane from finds.begin on, 32 at a time.
DEVICE void look_at_each(const Exchange& exchange, u32 open, Totals* totals, Finds& finds) {
    const bool leading = FIRST_DECIDES && s.leading;
    const int upto = warp_scan(__popc(open)), total = shuffle(upto, 31);
    for (int base = 0; base < total; base += 32) {
        const int rank = base + lane_id();
        const bool active = rank < total;
        const I v = (I)RankedBit(open, upto, rank, active).position(finds.begin);
        O e = active ? s.t_indptr[v] : 0;
        const O end = active ? s.t_indptr[v + 1] : 0;
        bool found = false;
        Candidate candidate = Candidate::none();
        if (leading && active) {
            found = look_at_leading(exchange, v, e, s.leading[v], candidate, finds.probes);
            // with values these are the row's own first entries; else any four
            if (end - e <= 4)
                e = end;
            else if (VALUES)
                e += 4;
        }
        look_at_rows(exchange, v, e, end, found, candidate, totals, finds.probes);
        if (found) finds.add(v, candidate);
    }
}

// Look for the frontier among the in-edges of the open vertices. The warps of a block take
// neighbouring words.
CALLED void pull_level(L depth, Totals* totals = nullptr) {
    const Exchange exchange;
    const int lane = lane_id();
    const i64 warps = (i64)gridDim.x * WARPS, me = (i64)blockIdx.x * WARPS + Exchange::warp();
    const i64 held = Exchange::words(), batch = Exchange::batch();
    // held in registers where these suffice: up to 5 % of levels and parents on one GPU
    constexpr bool HOLDS = FIRST_DECIDES && !Exchange::DISTRIBUTED;
    const auto words = [held] { return HOLDS ? held : Exchange::words(); };
    Finds finds(depth);
    for (i64 begin = me * batch; begin < words(); begin += warps * batch) {
        const i64 w = begin + lane;
        const bool mine = lane < batch && w < words();
        const u32 visited = mine ? s.visited[Exchange::base() + w] : 0;
        const u32 open = mine ? s.nonempty[w] & ~visited : 0;
        const u32 before = mine ? Exchange::published(w) : 0;
        if (Exchange::DISTRIBUTED && !warp_any(open)) { // most words of the last levels
            if (mine) Exchange::publish(w, 0, before);
            continue;
        }
        finds.begin = begin;
        finds.hit[lane] = 0;
        warp_sync();
        look_at_each(exchange, open, totals, finds);
        warp_sync();
        if (mine) {
            const u32 bits = finds.hit[lane];
            Exchange::publish(w, bits, before);
            if (bits) Exchange::visit_word(w, visited | bits);
        }
        warp_sync();
    }
    finds.finish(totals);
}

// The rows that pull_level has left, after all blocks have met: all warps look at the rest of each.
CALLED void pull_long_rows(i64 rows, L depth, Totals* totals = nullptr) {
    const i64 warps = (i64)gridDim.x * WARPS, me = (i64)blockIdx.x * WARPS + Exchange::warp();
    u64 edges = 0;
    u32 count = 0, probes = 0;
    for (i64 r = 0; r < rows; r++) {
        const I v = s.queue[r];
        const i64 end = s.t_indptr[v + 1];
        u32* const word = Exchange::next(v >> 5);
        const u32 bit = 1u << (v & 31);
        for (i64 e = (i64)s.offset[r] + 1024 * me; e < end; e += 1024 * warps) {
            // one lane's answer for all: they stay together
            if (!VALUES && shuffle(load_relaxed(word) & bit, 0)) break;
            const Scan scan = scan_row(v, e, e + 1024 < end ? e + 1024 : end);
            const bool any = warp_any(scan.found);
            if (TRACE) probes += scan.probes;
            if (scan.found) {
                const bool first = !(atomicOr(word, bit) & bit);
                scan.candidate.combine_into(v, first);
                if (first) {
                    Exchange::visit(v);
                    s.level[v] = depth;
                    edges += (u64)(s.indptr[v + 1] - s.indptr[v]);
                    count++;
                }
            }
            if (any && FIRST_DECIDES) break; // what this warp would see later lies further back
        }
    }
    reduce_counts(count, edges, probes, totals);
}
