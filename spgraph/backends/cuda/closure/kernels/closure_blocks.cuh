// What the blocks of a closure over several GPUs share: whose a vertex is, and which vertices of
// others have improved. `s` has, beside what closure_state.cuh names, `looked`, and in `given`
//   changed  others' vertices that improved since they were sent last
//   groups   a bit for each word of `changed` that is not zero

DEVICE bool is_own(I v) { return v >= (I)s.first && v < (I)s.last; }

DEVICE void tell_owner(I v) {
    const i64 w = v >> 5;
    const u32 bit = 1u << (v & 31);
    if (load_lagging(s.given.changed + w) & bit) return;
    if (!atomicOr(s.given.changed + w, bit)) set_bit(s.given.groups, w);
}

DEVICE void tally(u32 edges) {
    edges = warp_sum(edges);
    if (lane_id() == 0 && edges) atomicAdd(&s.looked, (u64)edges);
}
