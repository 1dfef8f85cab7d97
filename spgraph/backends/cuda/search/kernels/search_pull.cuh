// Levels of the whole grid that pull: warps take words of the bitmap, line up the vertices that are
// still open, and look for the frontier among their in-edges.

#include "nth_bit.cuh"

constexpr int PROBES = 32;     // in-edges one lane looks at before its warp takes the row
constexpr int LONG_ROW = 8192; // in-edges one warp looks at before the grid takes the row

// One lane: combine u's product into `sum`; true where nothing further can change it.
DEVICE bool take(i64 u, i64 v, i64 edge, bool& found, Z& sum) {
    found = true;
#if VALUES
    sum = add(sum, product(s.t_values, u, v, edge));
    return FIRST || is_terminal(sum);
#else
    return true;
#endif
}

// One lane looks at up to PROBES in-edges of row v from `e` on.
DEVICE bool scan_start(i64 v, O& e, O end, bool& found, Z& sum, u32& probes) {
    bool stop = false;
    for (int k = 0; k < PROBES && !stop && e < end; k += EACH) {
        I u[EACH];
        bool here[EACH];
#pragma unroll
        for (int j = 0; j < EACH; j++) u[j] = j < end - e ? s.t_indices[e + j] : -1;
#pragma unroll
        for (int j = 0; j < EACH; j++) here[j] = u[j] >= 0 && test_bit(s.frontier, u[j]);
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            if (TRACE) probes += !stop && u[j] >= 0;
            if (!stop && here[j]) stop = take(u[j], v, e + j, found, sum);
        }
        e += EACH < end - e ? EACH : end - e;
    }
    return stop;
}

// A whole warp looks on from edge `e` of row v; true where nothing further can change the sum.
CALLED bool scan_row(i64 v, i64 e, i64 end, bool& found, Z& sum, u32& probes) {
    bool stop = false;
    for (; e < end && !stop; e += 64) {
        i64 u[2];
        bool here[2];
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const i64 x = e + 32 * k + lane_id();
            here[k] = x < end;
            u[k] = here[k] ? (i64)s.t_indices[x] : 0;
        }
#pragma unroll
        for (int k = 0; k < 2; k++) here[k] = here[k] && test_bit(s.frontier, u[k]);
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const i64 x = e + 32 * k + lane_id();
            const u32 who = warp_ballot(here[k]);
            if (TRACE) probes += !stop && x < end;
            if (stop || !who) continue;
            if (FIRST || !VALUES) { // the least of the row: the lowest lane
                if (lane_id() == __ffs(who) - 1) take(u[k], v, x, found, sum);
                stop = true;
            } else {
                stop = warp_any(here[k] && take(u[k], v, x, found, sum));
            }
        }
    }
    return stop;
}

// Adds this thread's counts to `packed` with one atomic a block.
CALLED void reduce_counts(u32 count, u64 edges, u32 probes, u64* packed, u64* all_probes) {
    if (threadIdx.x < 3) block_sum[threadIdx.x] = 0;
    __syncthreads();
    count = warp_sum(count);
    edges = warp_sum(edges);
    if (TRACE) probes = warp_sum(probes);
    if (lane_id() == 0 && count) {
        atomicAdd(&block_sum[0], (u64)count);
        atomicAdd(&block_sum[1], edges);
    }
    if (TRACE && lane_id() == 0 && probes) atomicAdd(&block_sum[2], (u64)probes);
    __syncthreads();
    if (threadIdx.x == 0 && block_sum[0])
        atomicAdd(packed, (block_sum[1] << s.count_bits) + block_sum[0]);
    if (TRACE && threadIdx.x == 0) atomicAdd(all_probes, block_sum[2]);
}

CALLED void pull_level(L depth, u64* packed, u64* long_rows, u64* all_probes) {
    const int lane = lane_id();
    // the warps of a block take neighbouring words
    const i64 warps = (i64)gridDim.x * WARPS, me = (i64)blockIdx.x * WARPS + warp_id();
    i64 batch = (s.words + warps - 1) / warps;
    batch = batch < 32 ? batch : 32;
    u64 edges = 0;
    u32 count = 0, probes = 0;
    u32* hit = work().hit[warp_id()];
    for (i64 begin = me * batch; begin < s.words; begin += warps * batch) {
        const i64 w = begin + lane;
        const bool mine = lane < batch && w < s.words;
        const u32 visited = mine ? s.visited[w] : 0;
        const u32 open = mine ? s.nonempty[w] & ~visited : 0;
        const int upto = warp_scan(__popc(open)), total = shuffle(upto, 31);
        hit[lane] = 0;
        warp_sync();
        for (int base = 0; base < total; base += 32) {
            const int rank = base + lane;
            const bool active = rank < total;
            const RankedBit place(open, upto, rank, active);
            const I v = (I)place.position(begin);
            O e = 0, end = 0;
            bool found = false, stop = false;
            Z sum = nothing();
            if (active) {
                e = s.t_indptr[v];
                end = s.t_indptr[v + 1];
            }
            if ((FIRST || !VALUES) && s.leading && active) {
                const Leading leading = s.leading[v];
                bool here[4];
                here[0] = test_bit(s.frontier, leading.id[0]);
#pragma unroll
                for (int k = 1; k < 4; k++)
                    here[k] = !here[0] && leading.id[k] >= 0 && test_bit(s.frontier, leading.id[k]);
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    if (TRACE) probes += !stop && leading.id[k] >= 0;
                    if (!stop && here[k]) stop = take(leading.id[k], v, e + k, found, sum);
                }
                // with values these are the row's own first entries; else any four
                if (end - e <= 4)
                    e = end;
                else if (VALUES)
                    e += 4;
            }
            if (!stop) stop = scan_start(v, e, end, found, sum, probes);
            // rows that go on get the warp one after the other, and what it does not finish gets
            // the grid
            for (u32 left = warp_ballot(!stop && e < end); left; left &= left - 1) {
                const int which = __ffs(left) - 1;
                const O from = shuffle(e, which), all = shuffle(end, which);
                const O to = all - from > LONG_ROW ? from + LONG_ROW : all;
                bool row_found = found && lane == which;
                Z row_sum = row_found ? sum : nothing();
                const bool done = scan_row(shuffle(v, which), from, to, row_found, row_sum, probes);
                if (!done && to < all && lane == which) {
                    const u64 k = atomicAdd(long_rows, 1ull);
                    s.next_queue[k] = v; // the queues are free while a level pulls
                    s.next_offset[k] = to;
                }
                const u32 who = warp_ballot(row_found);
                if (!who) continue;
#if VALUES
                row_sum = FIRST ? shuffle(row_sum, __ffs(who) - 1) : warp_combine(row_sum);
#endif
                if (lane == which) {
                    found = true;
                    sum = row_sum;
                }
            }
            // of a row left to the grid, what this lane has is what the grid combines the rest into
            if (found) {
                atomicOr(&hit[place.word], 1u << place.bit);
                s.level[v] = depth;
#if VALUES
                s.value[v] = sum;
#endif
                edges += (u64)(s.indptr[v + 1] - s.indptr[v]);
                count++;
            }
        }
        warp_sync();
        if (mine) {
            const u32 bits = hit[lane];
            s.next[w] = bits;
            if (bits) s.visited[w] = visited | bits;
        }
        warp_sync();
    }
    reduce_counts(count, edges, probes, packed, all_probes);
}

// The rows that pull_level left to the grid, after all blocks have met.
CALLED void pull_long_rows(i64 rows, L depth, u64* packed, u64* all_probes) {
    const i64 warps = (i64)gridDim.x * WARPS, me = (i64)blockIdx.x * WARPS + warp_id();
    u64 edges = 0;
    u32 count = 0, probes = 0;
    for (i64 r = 0; r < rows; r++) {
        const I v = s.next_queue[r];
        const i64 end = s.t_indptr[v + 1];
        for (i64 e = (i64)s.next_offset[r] + 1024 * me; e < end; e += 1024 * warps) {
            if (!VALUES && (load_relaxed(&s.next[v >> 5]) >> (v & 31)) & 1u) break;
            bool found = false;
            Z sum = nothing();
            scan_row(v, e, e + 1024 < end ? e + 1024 : end, found, sum, probes);
            const bool any = warp_any(found);
            if (found) {
                const bool first = set_bit(s.next, v);
#if VALUES
                if constexpr (ADD_KIND == ADD_ANY) {
                    if (first) store_relaxed(&s.value[v], sum);
                } else {
                    combine(&s.value[v], sum);
                }
#endif
                if (first) {
                    atomicOr(&s.visited[v >> 5], 1u << (v & 31));
                    s.level[v] = depth;
                    edges += (u64)(s.indptr[v + 1] - s.indptr[v]);
                    count++;
                }
            }
            if (any && (FIRST || !VALUES))
                break; // what this warp would see later lies further back in the row
        }
    }
    reduce_counts(count, edges, probes, packed, all_probes);
}
