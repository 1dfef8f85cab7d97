// What peers and rounds share of levels that push.

// work(begin, w, mine) for `batch` words of a bitmap at a time, at most 32: word w of this lane, if
// it is `mine`, of those from word `begin` on. The warps of a block take neighbouring words.
template <class Work>
DEVICE void for_each_words(i64 words, i64 batch, Work work) {
    const int lane = lane_id();
    const i64 warps = (i64)gridDim.x * WARPS, me = (i64)blockIdx.x * WARPS + Exchange::warp();
#pragma unroll 1
    for (i64 begin = me * batch; begin < words; begin += warps * batch)
        work(begin, begin + lane, lane < batch && begin + lane < words);
}

// The own vertices that are bits of 32 words, one a lane, from word `begin` on: they join the queue,
// with one atomic add. each(v) is called for each. All lanes of a warp call.
template <class Each>
DEVICE void enqueue_words(u32 bits, i64 begin, Each each) {
    Degrees degrees;
    const int total = for_each_bit(bits, [&](const RankedBit& which, int, bool active) {
        if (active) degrees.add(which.position(begin));
    });
    if (!total) return;
    const u64 edges = warp_sum(degrees.total());
    u64 place = 0;
    if (lane_id() == 0) place = atomicAdd(&s.control->packed, (edges << s.count_bits) + (u64)total);
    place = shuffle(place, 0);
    const i64 slot = (i64)queue_count(place, (u32)s.count_bits);
    O edge = (O)queue_edges(place, (u32)s.count_bits);
    for_each_bit(bits, [&](const RankedBit& which, int rank, bool active) {
        const I v = (I)which.position(begin);
        const O degree = active ? degree_of(v) : 0, through = warp_scan(degree);
        if (active) {
            s.queue[slot + rank] = v;
            s.offset[slot + rank] = edge + through - degree;
            each(v);
        }
        edge += shuffle(through, 31);
    });
}

#include "load_balance.cuh"

// Of edges of the frontier, to vertices of any shard: in a bitmap those that are not visited, and by
// bit position the best of their parents here.
struct Pusher {
    const Borders borders;
    Key key = 0;      // of this lane's row as a parent
    const bool early; // most edges lead to vertices that are not visited
    __device__ __forceinline__ Pusher(bool early) : early(early) {}
    __device__ __forceinline__ O load(i64 i, bool here) {
        const I u = here ? s.queue[i] : 0;
        if (PARENTS) key = here ? key_of(own_user_id(u)) : 0;
        return here ? s.indptr[u] - s.offset[i] : 0;
    }
    template <bool ONE>
    __device__ __forceinline__ void take(const int (&owner)[EACH], const O (&entry)[EACH],
                                         const bool (&open)[EACH]) {
        Q p[EACH];
        u32 word[EACH];
        bool fresh[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) p[k] = open[k] ? load_once(&s.indices[entry[k]]) : 0;
#if PARENTS
        Key parent[EACH], old[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            p[k] = borders.position((I)p[k]);
            word[k] = s.visited[p[k] >> 5];
            parent[k] = shuffle(key, owner[k]);
            old[k] = early && open[k] ? load_lagging(&s.best[p[k]]) : 0;
        }
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            fresh[k] = open[k] && !((word[k] >> (p[k] & 31)) & 1u);
            if (!early && fresh[k]) old[k] = load_lagging(&s.best[p[k]]);
        }
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            if (!fresh[k] || parent[k] <= old[k]) continue;
            // the results are not used, so that no lane waits for these atomics
            atomicMax(&s.best[p[k]], parent[k]);
            if (!old[k]) atomicOr(&s.visited_next[p[k] >> 5], 1u << (p[k] & 31));
        }
#else
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            p[k] = borders.position((I)p[k]);
            word[k] = load_lagging(&s.visited_next[p[k] >> 5]);
        }
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const u32 bit = 1u << (p[k] & 31);
            if (open[k] && !(word[k] & bit)) atomicOr(&s.visited_next[p[k] >> 5], bit);
        }
#endif
    }
};

// What the edges of the queue reach is marked in s.visited_next, which begins as s.visited, and its
// best parents in s.best, which begins as zeros. Warps take equal shares, with 32 `lanes` of memory.
DEVICE void push_edges(i64 vertices, i64 edges, u32* lanes, bool early) {
    const i64 warps = (i64)gridDim.x * WARPS, me = (i64)Exchange::warp() * gridDim.x + blockIdx.x;
    const i64 share = share_of(edges, warps);
    const i64 begin = me * share, end = begin + share < edges ? begin + share : edges;
    if (begin >= end) return;
    i64 window = row_at(s.offset, vertices, begin);
    Pusher pusher(early);
    walk<EACH>(s.offset, vertices, edges, window, begin, end, lanes, pusher);
}
