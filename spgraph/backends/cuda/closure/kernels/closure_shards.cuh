// For a closure over shards: who owns a vertex, and which vertices of other shards have improved.
// `s` has, beside the members that closure_state.cuh lists, `looked`, and in `given`
//   changed  a bit for each vertex of another shard that improved since it was sent last
//   groups   a bit for each word of `changed` that is not zero

DEVICE bool is_own(I v) { return v >= (I)s.first && v < (I)s.last; }

DEVICE void mark_changed(I v) {
    const i64 w = v >> 5;
    const u32 bit = 1u << (v & 31);
    if (load_lagging(s.given.changed + w) & bit) return;
    if (!atomicOr(s.given.changed + w, bit)) set_bit(s.given.groups, w);
}

DEVICE void count_edges(u32 edges) {
    edges = warp_sum(edges);
    if (lane_id() == 0 && edges) atomicAdd(&s.looked, (u64)edges);
}
