// Rounds that push: what the edges of the own frontier reach, and what arrives of that.

// ---- a list ------------------------------------------------------------------------------------

// Entry 1 + e of the list is what edge e of the own frontier reaches, -1 if that is visited. Rows of
// the queue begin at the edges `offset`. A thread takes every `step`th edge from `begin` on.
DEVICE void write_list(Entry* list, const O* offset, i64 vertices, i64 edges, i64 begin, i64 step) {
    const Borders borders;
    if (begin == 0) list->vertex = (L)edges;
    for (i64 e = begin; e < edges; e += step) {
        const i64 i = lower_bound(offset, vertices, e + 1) - 1; // the last row that starts by e
        const I u = load_relaxed(&s.queue[i]);
        const i64 edge = (i64)s.indptr[u] + (e - offset[i]);
        const I v = s.indices[edge];
        Entry entry;
        entry.vertex = test_bit(s.visited, borders.position(v)) ? -1 : v;
#if VALUES
        entry.value = out_product(u, v, edge);
#endif
        list[1 + e] = entry;
    }
}

extern "C" __global__ void push_list(const u64* given, Entry* list, i64 vertices, i64 edges) {
    enter(given);
    write_list(list, s.offset, vertices, edges, thread_id(), thread_count());
}

// The same by the last thread block of the kernel that has filled the queue, if that is short: a
// small level then costs a launch less. The host uses the list only where the next level is a push.
CALLED void push_ahead(Entry* list) {
    __shared__ O offset[AHEAD_VERTICES];
    const i64 vertices = published[VERTICES], edges = published[EDGES];
    if (vertices > AHEAD_VERTICES || edges > AHEAD) return;
    for (i64 i = threadIdx.x; i < vertices; i += THREADS) offset[i] = load_relaxed(&s.offset[i]);
    __syncthreads();
    write_list(list, offset, vertices, edges, threadIdx.x, THREADS);
}

// The own vertices in `lists` lists of so many entries, or, where `length` is -1, with the length in
// front of each, which lie `stride` entries apart. A vertex is new where its level is, so that it
// gets the sum of all that this level brings to it.
extern "C" __global__ void settle_list(const u64* given, const Entry* came, i64 lists, i64 stride,
                                       i64 length, L depth, Entry* ahead, i64 round) {
    enter(given);
    const Borders borders;
    for (i64 k = 0; k < lists; k++) {
        const Entry* const list = came + k * stride + (length < 0);
        const i64 entries = length < 0 ? (i64)list[-1].vertex : length;
        for (i64 base = thread_id() - lane_id(); base < entries; base += thread_count()) {
            const i64 i = base + lane_id();
            const i64 id = i < entries ? (i64)list[i].vertex : -1, v = id - s.first[s.me];
            bool is_new = false;
            if (id >= 0 && v >= 0 && v < own_vertices()) {
                L found = load_relaxed(&s.level[v]);
                if (found < 0) {
                    found = (L)atomicCAS((Bits<L>*)&s.level[v], (Bits<L>)-1, (Bits<L>)depth);
                    is_new = found < 0;
                }
#if VALUES
                if (is_new || (ADD_KIND != ADD_ANY && found == depth))
                    combine(&s.value[v], list[i].value);
#endif
            } else if (id >= 0) { // another shard's: visited, and not to be sent again
                set_bit(s.visited, borders.position((I)id));
            }
            claim(is_new, v);
        }
    }
    if (publish_counts(round)) push_ahead(ahead);
}

// ---- a bitmap ----------------------------------------------------------------------------------

// What the edges of the frontier reach.
extern "C" __global__ void __launch_bounds__(THREADS, 1024 / THREADS)
    push_bits(const u64* given, u32* visited_next, Z* partial, i64 vertices, i64 edges) {
    __shared__ u32 lanes[WARPS][32];
    if (threadIdx.x == 0) {
        s.visited_next = visited_next;
        s.partial = partial;
    }
    enter(given);
    Pusher pusher(Found(), false);
    push_edges(vertices, 0, edges, lanes[warp_id()], pusher);
}

// The union of `parts` bitmaps that lie `stride` words apart, of which the own words begin at
// `from`: what is new there is settled. Others' vertices that this shard has reached are visited.
extern "C" __global__ void settle_bits(const u64* given, const u32* visited_next, const u32* came,
                                       i64 parts, i64 stride, i64 from, L depth, i64 round) {
    enter(given);
    u32* const visited = s.visited;
    for (i64 w = thread_id(); w < PEERS * s.words; w += thread_count())
        if (w / s.words != s.me) visited[w] = visited_next[w];
    u32* const mine = own_part(visited);
    for_each_words(s.words, 32, [&](i64 begin, i64 w, bool here) {
        u32 bits = 0;
        for (i64 q = 0; here && q < parts; q++) bits |= came[q * stride + from + w];
        if (here) {
            bits &= ~mine[w];
            mine[w] |= bits;
        }
        enqueue_words(bits, begin, [&](I v) { s.level[v] = depth; });
    });
    publish_counts(round);
}

// What push_bits has reached, as a list for each shard of its vertices, each with the sum of its
// products here; they lie `stride` entries apart. `partial` is what it was before, and others'
// vertices are visited.
extern "C" __global__ void compact(const u64* given, const u32* visited_next, Z* partial,
                                   Entry* lists, i64 stride, i64 round) {
    enter(given);
#if VALUES
    for (int q = 0; q < PEERS; q++) {
        const i64 first = q * s.words;
        for_each_words(s.words, 32, [&](i64 begin, i64 w, bool mine) {
            const u32 bits = mine ? visited_next[first + w] & ~s.visited[first + w] : 0;
            if (bits && q != s.me) s.visited[first + w] |= bits;
            const int total = warp_sum(__popc(bits));
            u64 slot = 0;
            if (lane_id() == 0 && total) slot = atomicAdd(&s.control->count[SENT + q], (u64)total);
            slot = shuffle(slot, 0);
            for_each_bit(bits, [&](const RankedBit& which, int rank, bool active) {
                if (!active) return;
                const i64 v = which.position(begin), p = 32 * first + v;
                lists[q * stride + slot + rank] =
                    Entry{(L)(s.first[q] + v), load_relaxed(&partial[p])};
                partial[p] = nothing();
            });
        });
    }
#endif
    publish_counts(round);
}
