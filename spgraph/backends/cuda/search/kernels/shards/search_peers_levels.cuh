// Levels of peers by all blocks: how a frontier and its values reach the other GPUs.

// What is claimed in the own part, with level and parent, becomes visited and the next frontier.
CALLED void announce() {
    u64 edges = 0;
    u32 vertices = 0, covered = 0;
    for (i64 w = thread_id(); w < s.words; w += thread_count()) {
        const u32 bits = claimed_bits(w);
        Exchange::publish(w, bits, Exchange::published(w));
        if (!bits) continue;
        s.visited[s.base + w] |= bits;
        vertices += __popc(bits);
        covered += __popc(s.nonempty ? bits & s.nonempty[w] : bits);
        for (u32 rest = bits; rest; rest &= rest - 1)
            edges += (u64)degree_of(32 * w + __ffs(rest) - 1);
    }
    reduce_counts(vertices, edges, covered);
}

// The words in which the rows lie that pull_long_rows has looked at, for the peers, after all blocks have met.
CALLED void publish_long_rows(i64 rows) {
    for (i64 r = thread_id(); r < rows; r += thread_count()) {
        const i64 w = s.base + (s.queue[r] >> 5);
        const u32 bits = load_relaxed(&s.next[w]);
#pragma unroll
        for (int q = 0; q < PEERS; q++)
            if (q != s.me) at_peer(q, s.next)[w] = bits;
    }
    if (thread_id() == 0) store_relaxed(&s.control->long_rows, (u64)0);
}

#if USES_X
// The values of the own part of the frontier, for all GPUs: by bit position, since pulls find them so.
CALLED void publish_values() {
    for_each_words(s.words, words_at_a_time(s.words), [&](i64 begin, i64 w, bool mine) {
        for_each_bit(mine ? s.frontier[s.base + w] : 0,
                     [&](const RankedBit& which, int, bool active) {
                         if (!active) return;
                         const i64 v = which.position(begin);
                         const Z x = s.value[v];
#pragma unroll
                         for (int q = 0; q < PEERS; q++)
                             at_peer(q, s.frontier_value)[32 * s.base + v] = x;
                     });
    });
}
#endif
