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
    const i64 slot = (i64)queue_count(place, s.count_bits);
    O edge = (O)queue_edges(place, s.count_bits);
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

// Nothing is done with a vertex that an edge claims: owners settle what is claimed.
struct Found {
    static constexpr bool WANTED = false;
    MEMBER void add(bool, I) {}
};
DEVICE I load_id(const I* id) { return load_once(id); }

#if VALUES
DEVICE Z* partial() { return s.partial; }
// Terms are products.
struct Row : Products {
    static constexpr bool TELLS = PARENTS; // which never equal nothing()
    Z x = Z();                             // the value of the vertex, and what users call it
    L id = 0;
    MEMBER void load(I u, bool here) {
        if (USES_X) x = here ? load_relaxed(&s.value[u]) : Z();
        if (USES_U) id = here ? own_user_id(u) : 0;
    }
    MEMBER Row of(int lane) const {
        Row row;
        if (USES_X) row.x = shuffle(x, lane);
        if (USES_U) row.id = shuffle(id, lane);
        return row;
    }
    MEMBER Z term(i64 v, i64 edge) const {
        return product_of(x, s.values, edge, id, user_id((I)v));
    }
};
#endif

#include "search_push.cuh"
