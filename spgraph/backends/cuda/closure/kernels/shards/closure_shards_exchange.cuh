// What the exchanges of closure_none.cuh have in common on peers and in rounds, behind their state `s`.

struct ShardExchange {
    DEVICE bool is_own(I v) { return v >= (I)s.first && v < (I)s.last; }
    DEVICE void mark_changed(I v) {
        const i64 w = v >> 5;
        const u32 bit = 1u << (v & 31);
        if (load_lagging(s.given.changed + w) & bit) return;
        if (!atomicOr(s.given.changed + w, bit)) set_bit(s.given.groups, w);
    }
    DEVICE void count_edges(u32 edges) { warp_add(&s.looked, edges); }
    DEVICE void count_step(i64 edges) {
        if (thread_id() == 0) atomicAdd(&s.looked, (u64)edges);
    }
};
