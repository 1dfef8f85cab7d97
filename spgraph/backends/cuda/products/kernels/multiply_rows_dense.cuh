// Rows in dense accumulators in global memory: for every column a bit and, with VALUES, a sum. A chunk
// of rows is worked on at a time; slot s has the accumulator of row rows[s], whose columns begin at
// s * stride of `bits` and `sums`. Bits are zero and sums nothing() before and after.

constexpr int GROUP = 1024; // columns that a warp reads together; a slot has whole groups

// The entries of A in the rows of a chunk, as one list: how many products each has, and the slot that
// they go to. firsts[s] = the entries of the slots before s.
extern "C" __global__ void __launch_bounds__(256)
    multiply_list(const O* a_indptr, const I* a_indices, const P* b_indptr, const i64* rows,
                  const i64* firsts, i64 slots, i64 entries, int* slot_of, i64* products) {
    for (i64 q = thread_id(); q < entries; q += thread_count()) {
        i64 s = lower_bound(firsts, slots, q + 1) - 1;
        i64 k = a_indices[(i64)a_indptr[rows[s]] + q - firsts[s]];
        slot_of[q] = (int)s;
        products[q] = (i64)b_indptr[k + 1] - (i64)b_indptr[k];
    }
}

// Every warp takes an equal share of the products, wherever rows begin and end. `through` holds the
// running sum of those that each entry of the list stands for.
extern "C" __global__ void __launch_bounds__(256)
    multiply_scatter(OPERANDS, bool complement, const i64* rows, const i64* firsts, i64 entries,
                     const int* slot_of, const i64* through, i64 stride, u32* bits, Z* sums) {
    constexpr int BATCH = 4;
    const Masked g = {{OPERAND_VALUES}, complement};
    const int lane = lane_id();
    const i64 warps = thread_count() >> 5, total = through[entries - 1];
    i64 share = ((total + warps - 1) / warps + 31) & ~31ll;
    if (share < 32 * BATCH) share = 32 * BATCH;
    i64 e = (thread_id() >> 5) * share, last = e + share < total ? e + share : total;
    if (e >= last) return;
    // lanes hold 32 entries of the list from `window` on: e lies in the first or after it
    for (i64 window = lower_bound(through, entries, e + 1); e < last; window += 32) {
        const i64 own = window + lane;
        i64 before = own == 0 ? 0 : own <= entries ? through[own - 1] : total;
        i64 from = 0;
        if (own < entries) {
            int s = slot_of[own];
            from = g.b_indptr[g.a_indices[(i64)g.a_indptr[rows[s]] + own - firsts[s]]];
        }
        i64 stop = window + 32 <= entries ? through[window + 31] : total;
        if (stop > last) stop = last;
        // relative to e: a share has fewer than 2^31 products, and what lies beyond it only has to
        // stay beyond
        i64 relative = before - e;
        int key = relative < 0 ? 0 : relative > 0x7fffffff ? 0x7fffffff : (int)relative;
        i64 shift = from - before;
        for (i64 base = e; base < stop; base += 32 * BATCH) {
            K j[BATCH];
            i64 q[BATCH], at[BATCH];
            int owner[BATCH], slot[BATCH];
            u32 word[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; b++) {
                i64 product = base + 32 * b + lane;
                owner[b] = warp_search(key, (int)(product - e));
                q[b] = product + shuffle(shift, owner[b]);
                slot[b] = product < stop ? slot_of[window + owner[b]] : -1;
                j[b] = product < stop ? (K)g.b_indices[q[b]] : (K)0;
            }
#pragma unroll
            for (int b = 0; b < BATCH; b++) {
                at[b] = slot[b] * stride + j[b];
                word[b] = slot[b] < 0 ? 0 : load_lagging(bits + (at[b] >> 5));
            }
#pragma unroll
            for (int b = 0; b < BATCH; b++) {
                if (slot[b] < 0) continue;
                // a column that has its bit is allowed
                bool fresh = !(word[b] >> (at[b] & 31) & 1);
                if (fresh && !allowed(g, rows[slot[b]], j[b])) continue;
                if (fresh) fresh = set_bit(bits, at[b]);
#if VALUES
                if (ADD_KIND == ADD_ANY && !fresh) continue;
                i64 i = rows[slot[b]], p = g.a_indptr[i] + window + owner[b] - firsts[slot[b]];
                Z value = product(g, i, p, q[b], j[b]);
                if constexpr (ADD_KIND == ADD_ANY)
                    sums[at[b]] = value;
                else
                    combine(sums + at[b], value);
#endif
            }
        }
        e = stop;
    }
}

// found[g] = the bits in group g of the chunk; with COUNT, counts[i] grows by them and they become
// zero.
extern "C" __global__ void __launch_bounds__(256)
    multiply_tally(const i64* rows, i64 groups, i64 stride, u32* bits, i64* found, i64* counts) {
    for (i64 group = thread_id() >> 5; group < groups; group += thread_count() >> 5) {
        u32 word = bits[32 * group + lane_id()];
        u32 sum = warp_sum((u32)__popc(word));
        if constexpr (COUNT) {
            if (word) bits[32 * group + lane_id()] = 0;
            if (lane_id() == 0 && sum)
                atomicAdd((u64*)counts + rows[group * GROUP / stride], (u64)sum);
        } else if (lane_id() == 0) {
            found[group] = sum;
        }
    }
}

// The entries of the chunk's rows to their places; `through` is the running sum of what
// multiply_tally found.
extern "C" __global__ void __launch_bounds__(256)
    multiply_gather(const i64* rows, i64 groups, i64 stride, const i64* through, u32* bits, Z* sums,
                    const R* z_indptr, K* z_indices, Z* z) {
    for (i64 group = thread_id() >> 5; group < groups; group += thread_count() >> 5) {
        u32 word = bits[32 * group + lane_id()];
        if (!warp_any(word != 0)) continue;
        if (word) bits[32 * group + lane_id()] = 0;
        i64 s = group * GROUP / stride, first = s * (stride / GROUP);
        i64 to = (i64)z_indptr[rows[s]] + (group ? through[group - 1] : 0) -
                 (first ? through[first - 1] : 0);
        // column by column over the lanes, so that reads and writes are of neighbours
        for (int w = 0; w < 32; w++) {
            u32 set = shuffle(word, w);
            if (set >> lane_id() & 1) {
                i64 at = group * GROUP + 32 * w + lane_id();
                i64 place = to + __popc(set & lanes_below());
                z_indices[place] = (K)(at - s * stride);
#if VALUES
                z[place] = sums[at];
                sums[at] = nothing();
#endif
            }
            to += __popc(set);
        }
    }
}
