// The exchange of a search on one GPU, which has the whole graph: there is none. The members are
// those of exchange_peers.cuh.

struct Exchange {
    static constexpr bool DISTRIBUTED = false, COUNTS_OTHERS = TRACE;
    static __device__ __forceinline__ void add(Totals* totals, const u64* sum) {
        if (threadIdx.x == 0 && sum[0])
            atomicAdd(&totals->packed, (sum[1] << s.count_bits) + sum[0]);
        if (TRACE && threadIdx.x == 0) atomicAdd(&totals->probes, sum[2]);
    }
    static __device__ __forceinline__ u64 long_row(Totals* totals) {
        return atomicAdd(&totals->long_rows, 1ull);
    }
    template <class T>
    static __device__ __forceinline__ T bit(T id) {
        return id;
    }
    static __device__ __forceinline__ int warp() { return warp_id(); }
    static __device__ __forceinline__ i64 base() { return 0; }
    static __device__ __forceinline__ i64 words() { return s.words; }
    static __device__ __forceinline__ i64 batch() {
        const i64 warps = (i64)gridDim.x * WARPS, batch = (s.words + warps - 1) / warps;
        return batch < 32 ? batch : 32;
    }
    static __device__ __forceinline__ u32* claims() { return VALUES ? s.next : s.visited; }
    // Word w of it, or an older one. A plain load leaves the compiler free to order it: 14
    // instructions less in a level that pushes.
    static __device__ __forceinline__ u32 claimed(i64 w) {
        return VALUES ? load_lagging(&s.next[w]) : s.visited[w];
    }
    static __device__ __forceinline__ u32* next(i64 w) { return &s.next[w]; }
    static __device__ __forceinline__ u32 published(i64) { return 0; }
    static __device__ __forceinline__ void publish(i64 w, u32 bits, u32) { s.next[w] = bits; }
    static __device__ __forceinline__ void visit_word(i64 w, u32 bits) { s.visited[w] = bits; }
    static __device__ __forceinline__ void visit(i64 v) {
        atomicOr(&s.visited[v >> 5], 1u << (v & 31));
    }
};
