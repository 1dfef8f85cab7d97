// The exchange of a search by GPUs that write into each other's memory while their kernels run
// (peers.cuh). Words and vertices are the own ones, counted from 0, where nothing else is said.

struct Exchange : ShardExchange {
    // The number of a row that is left to the grid; all GPUs see that there is one.
    DEVICE u64 long_row(Totals*) {
        const u64 k = atomicAdd(&s.control->long_rows, 1ull);
        if (k == 0) atomicAdd(&s.barrier->mine[3], 1ull);
        return k;
    }
    DEVICE int warp() { return warp_id(); }
    // The place of the first own word in bitmaps of all vertices; how many words, how many a warp
    // takes at a time, at most 32.
    DEVICE i64 base() { return s.base; }
    DEVICE i64 words() { return s.words; }
    DEVICE i64 batch() { return words_at_a_time(s.words); }
    // Word w of the next frontier. All GPUs have the value that it had two levels ago, `published`:
    // `publish` writes another one to all of them.
    DEVICE u32* next(i64 w) { return &s.next[s.base + w]; }
    DEVICE u32 published(i64 w) { return *next(w); }
    DEVICE void publish(i64 w, u32 bits, u32 before) {
        if (before == bits) return;
#pragma unroll
        for (int q = 0; q < PEERS; q++) at_peer(q, s.next)[s.base + w] = bits;
    }
    // A word of the visited vertices; and a vertex, which other blocks may do at the same time.
    DEVICE void visit_word(i64 w, u32 bits) {
        s.visited[s.base + w] = s.visited_next[s.base + w] = bits;
    }
    DEVICE void visit(i64 v) {
        atomicOr(&s.visited[s.base + (v >> 5)], 1u << (v & 31));
        atomicOr(&s.visited_next[s.base + (v >> 5)], 1u << (v & 31));
    }
};
