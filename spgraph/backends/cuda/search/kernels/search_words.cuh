// Bitmaps, word by word: how they become queues.

// work(begin, w, mine) for `batch` words of a bitmap at a time, at most 32: word w of this lane, if
// it is `mine`, of those from word `begin` on. The warps of a block take neighbouring words.
template <class Work>
DEVICE void for_each_words(i64 words, i64 batch, Work work) {
    const int lane = lane_id();
    const i64 warps = (i64)gridDim.x * WARPS, me = (i64)blockIdx.x * WARPS + warp_id();
#pragma unroll 1
    for (i64 begin = me * batch; begin < words; begin += warps * batch)
        work(begin, begin + lane, lane < batch && begin + lane < words);
}

// The own vertices that are bits of 32 words, one a lane, from word `begin` on: they join the queue,
// whose length and edges `packed` has, with one atomic add. each(v) is called for each. All lanes of
// a warp call.
template <class Each>
DEVICE void enqueue_words(u32 bits, i64 begin, u64* packed, Each each) {
    u64 edges = 0;
    const int total = for_each_bit(bits, [&](const RankedBit& which, int, bool active) {
        if (active) edges += (u64)degree_of(which.position(begin));
    });
    if (!total) return;
    edges = warp_sum(edges);
    u64 place = 0;
    if (lane_id() == 0) place = atomicAdd(packed, (edges << s.count_bits) + (u64)total);
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
