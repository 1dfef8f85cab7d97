// The exchange of a search on one GPU, which has the whole graph: there is none. What the members are
// for is said in search_peers_exchange.cuh and search_shards.cuh.

struct Exchange {
    static constexpr bool DISTRIBUTED = false, COUNTS_OTHERS = TRACE;
    DEVICE void add(Totals* totals, const u64* sum) {
        if (threadIdx.x == 0 && sum[0])
            atomicAdd(&totals->packed, (sum[1] << s.count_bits) + sum[0]);
        if (TRACE && threadIdx.x == 0) atomicAdd(&totals->probes, sum[2]);
    }
    DEVICE u64 long_row(Totals* totals) { return atomicAdd(&totals->long_rows, 1ull); }
    template <class T>
    DEVICE T bit(T id) {
        return id;
    }
    DEVICE int warp() { return warp_id(); }
    DEVICE i64 base() { return 0; }
    DEVICE i64 words() { return s.words; }
    DEVICE i64 batch() {
        const i64 warps = (i64)gridDim.x * WARPS, batch = (s.words + warps - 1) / warps;
        return batch < 32 ? batch : 32;
    }
    DEVICE u32* claims() { return VALUES ? s.next : s.visited; }
    // Word w of it, or an older one. A plain load leaves the compiler free to order it: 14
    // instructions less in a level that pushes.
    DEVICE u32 claimed(i64 w) { return VALUES ? load_lagging(&s.next[w]) : s.visited[w]; }
    DEVICE u32* next(i64 w) { return &s.next[w]; }
    DEVICE u32 published(i64) { return 0; }
    DEVICE void publish(i64 w, u32 bits, u32) { s.next[w] = bits; }
    DEVICE void visit_word(i64 w, u32 bits) { s.visited[w] = bits; }
    DEVICE void visit(i64 v) { atomicOr(&s.visited[v >> 5], 1u << (v & 31)); }
};
