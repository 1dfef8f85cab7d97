// Levels of peers by all blocks that push: along the edges of the own part of the frontier, to the owners
// of what they reach, and what these make of it.

// The own part of the frontier, of `all` vertices in all parts, becomes the queue with its scanned
// degrees. If it is `claimed` it becomes visited, and the peers are not sent it.
CALLED void convert(bool claimed, i64 all) {
    for_each_words(s.words, words_at_a_time(s.words), [&](i64 begin, i64 w, bool mine) {
        const u32 bits = !mine ? 0 : claimed ? claimed_bits(w) : s.frontier[s.base + w];
        if (claimed && bits) s.visited[s.base + w] |= bits;
        enqueue_words(bits, begin, [](I) {});
    });
    // of a large frontier the peers' parts become visited, too: nothing there is to be sent to them
    if (PEERS == 1 || claimed || all < s.word[PEERS]) return;
    for (i64 w = thread_id(); w < s.word[PEERS]; w += thread_count()) {
        const u32 bits = w >= s.base && w < s.base + s.words ? 0 : s.frontier[w];
        if (bits) s.visited_next[w] = s.visited[w] |= bits;
    }
}

// What the edges of the queue reach is claimed, with the sums of this GPU's products.
CALLED void push_level(u64 packed, bool early) {
    Pusher pusher(Found(), early);
    push_edges((i64)queue_count(packed, s.count_bits), 0, (i64)queue_edges(packed, s.count_bits),
               work().lanes[warp_id()], pusher);
}

// What is claimed of the peers' parts goes there, with the sums of its products.
CALLED void send_claims() {
    if (thread_id() == 0) s.control->packed = 0;
    for (int k = 1; k < PEERS; k++) {
        const int q = (int)(s.me + k) % PEERS; // not all to the same one
        const i64 first = s.word[q], words = s.word[q + 1] - first;
        u32* const received = at_peer(q, s.received) + s.me * words;
        Z* const sent = at_peer(q, s.partials) + 32 * s.me * words;
        Z* const partial = s.partial + 32 * first;
        for_each_words(words, words_at_a_time(words), [&](i64 begin, i64 w, bool mine) {
            const u32 visited = mine ? s.visited[first + w] : 0;
            const u32 bits = mine ? load_relaxed(&s.visited_next[first + w]) & ~visited : 0;
            if (bits) {
                s.visited[first + w] = visited | bits;
                received[w] = bits;
            }
            if (!VALUES) return;
            // side by side from the place of the first word's on: over NVLink a store of a few
            // bytes takes as long as one of a whole line
            for_each_bit(bits, [&](const RankedBit& which, int rank, bool active) {
                if (!active) return;
                const i64 at = which.position(begin);
                sent[32 * begin + rank] = load_relaxed(&partial[at]);
                partial[at] = nothing();
            });
        });
    }
}

// What edges of the frontier have reached of the own part, here and at the peers, and is new.
CALLED void settle(L depth) {
    u32* const received = s.received;
    const Z* const partials = s.partials;
    Z* const partial = s.partial + 32 * s.base;
    Degrees edges;
    u32 count = 0;
    for_each_words(s.words, words_at_a_time(s.words), [&](i64 begin, i64 w, bool mine) {
        const u32 visited = mine ? s.visited[s.base + w] : 0,
                  before = mine ? Exchange::published(w) : 0;
        u32 part[PEERS], bits = 0;
#pragma unroll
        for (int q = 0; q < PEERS; q++) {
            const u32* const place =
                q == s.me ? s.visited_next + s.base + w : received + q * s.words + w;
            part[q] = mine ? load_relaxed(place) : 0;
        }
#pragma unroll
        for (int q = 0; q < PEERS; q++) {
            if (q != s.me && part[q]) received[q * s.words + w] = 0;
            bits |= part[q] & ~visited;
        }
        if (mine) {
            Exchange::publish(w, bits, before);
            if (bits) Exchange::visit_word(w, visited | bits);
        }
        if (!warp_any(bits)) return;
#if VALUES
        int sent[PEERS]; // of the words before this one
#pragma unroll
        for (int q = 0; q < PEERS; q++)
            sent[q] = q == s.me ? 0 : warp_scan(__popc(part[q])) - __popc(part[q]);
#endif
        for_each_bit(bits, [&](const RankedBit& which, int, bool active) {
            const I v = (I)which.position(begin);
#if VALUES
            Z part_of[PEERS];
            u32 here = 0; // the shards that have reached v
#pragma unroll
            for (int q = 0; q < PEERS; q++) {
                const u32 word = shuffle(part[q], which.word), bit = 1u << which.bit;
                const i64 rank = shuffle(sent[q], which.word) + __popc(word & (bit - 1));
                const Z* const place =
                    q == s.me ? partial + v : partials + 32 * (q * s.words + begin) + rank;
                if (word & bit) here |= 1u << q;
                part_of[q] = active && (word & bit) ? load_relaxed(place) : nothing();
            }
            Z sum = part_of[0]; // in the order of shards, so that rounding is always the same
#pragma unroll
            for (int q = 1; q < PEERS; q++)
                sum = ADD_KIND != ADD_ANY ? add(sum, part_of[q])
                      : here >> q & 1u    ? part_of[q]
                                          : sum;
#endif
            if (!active) return;
            s.level[v] = depth;
#if VALUES
            s.value[v] = sum;
            partial[v] = nothing();
#endif
            edges.add(v);
            count++;
        });
    });
    reduce_counts(count, edges.total(), 0);
}
