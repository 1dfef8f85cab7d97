// The exchange of a search in rounds: a communicator sends the own part of the next frontier to all
// when the kernel has ended. The members are those of search_peers_exchange.cuh, but for what both have
// of ShardExchange.

struct Exchange : ShardExchange {
    DEVICE u64 long_row(Totals*) { return atomicAdd(&s.control->count[WAITING], 1ull); }
    // The compiler sees of it that all lanes have the same: shuffles in a loop that begins there have
    // no second form for lanes that are apart, which is a third of such a kernel. The other forms do
    // all of their work in functions that are not inlined, where it makes no difference.
    DEVICE int warp() { return shuffle(warp_id(), 0); }
    DEVICE i64 base() { return first_word((int)s.me); }
    DEVICE i64 words() { return (own_vertices() + 31) >> 5; }
    DEVICE i64 batch() { return s.batch; }
    DEVICE u32* next(i64 w) { return &s.own[w]; }
    DEVICE u32 published(i64) { return 0; }
    DEVICE void publish(i64 w, u32 bits, u32) { s.own[w] = bits; }
    DEVICE void visit_word(i64 w, u32 bits) { s.visited[base() + w] = bits; }
    DEVICE void visit(i64 v) { atomicOr(&s.visited[base() + (v >> 5)], 1u << (v & 31)); }
};
