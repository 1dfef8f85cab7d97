// The exchange of a search in rounds: a communicator sends the own part of the next frontier to all
// when the kernel has ended. The members are those of exchange_peers.cuh.

struct Totals; // none: what counts is what publish_counts takes from s.control

struct Exchange : Borders {
    static constexpr bool DISTRIBUTED = true, COUNTS_OTHERS = true;
    static __device__ __forceinline__ void add(Totals*, const u64* sum) {
        if (threadIdx.x < 3 && sum[threadIdx.x])
            atomicAdd(&s.control->count[threadIdx.x], sum[threadIdx.x]);
    }
    static __device__ __forceinline__ u64 long_row(Totals*) {
        return atomicAdd(&s.control->count[WAITING], 1ull);
    }
    __device__ __forceinline__ Q bit(I id) const { return position(id); }
    // The compiler sees of it that all lanes have the same: shuffles in a loop that begins there have
    // no second form for lanes that are apart, which is a third of such a kernel. The other forms do
    // all of their work in functions that are not inlined, where it makes no difference.
    static __device__ __forceinline__ int warp() { return shuffle(warp_id(), 0); }
    static __device__ __forceinline__ i64 base() { return first_word((int)s.me); }
    static __device__ __forceinline__ i64 words() { return (own_vertices() + 31) >> 5; }
    static __device__ __forceinline__ i64 batch() { return s.batch; }
    static __device__ __forceinline__ u32* claims() { return s.visited_next; }
    static __device__ __forceinline__ u32 claimed(i64 w) { return load_lagging(&claims()[w]); }
    static __device__ __forceinline__ u32* next(i64 w) { return &s.own[w]; }
    static __device__ __forceinline__ u32 published(i64) { return 0; }
    static __device__ __forceinline__ void publish(i64 w, u32 bits, u32) { s.own[w] = bits; }
    static __device__ __forceinline__ void visit_word(i64 w, u32 bits) {
        s.visited[base() + w] = bits;
    }
    static __device__ __forceinline__ void visit(i64 v) {
        atomicOr(&s.visited[base() + (v >> 5)], 1u << (v & 31));
    }
};
