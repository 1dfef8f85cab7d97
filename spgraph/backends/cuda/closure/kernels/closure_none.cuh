// The exchange of a closure on one GPU: there is none. And what an exchange is.
//
// A program has one of closure_none.cuh, closure_peers_state.cuh and closure_rounds_state.cuh. Each
// defines `s`, the shared state of a block, and `struct Exchange`. Its functions that may be called
// in every step, by whole warps:
//   is_own(v)           whether this GPU owns v: then it may be queued
//   mark_changed(v)     note that v, which another GPU owns, has improved
//   count_edges(edges)  this lane has followed so many edges
//   send_at_once(wanted, v, value)   in a small queue: send the new value of v to its owner
//   receive_local(ring, tail, held)  put received vertices into a warp's ring, beside those of the
//                       queue; how many vertices the warp buffers then

__shared__ Closure s;

struct Exchange {
    DEVICE bool is_own(I) { return true; }
    DEVICE void mark_changed(I) {}
    DEVICE void count_edges(u32) {}
    DEVICE void send_at_once(bool, I, Z) {}
    DEVICE int receive_local(Ring&, u32&, int held) { return held; }
};
