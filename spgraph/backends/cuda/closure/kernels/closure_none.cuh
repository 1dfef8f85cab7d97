// The exchange of a closure on one GPU: there is none. And what an exchange is.
//
// A program has one of closure_none.cuh, closure_peers_state.cuh and closure_rounds_state.cuh. Each
// defines `s`, the shared state of a block, and `struct Exchange`:
//   SHARDS             how many GPUs share the vertices
//   ROUNDS_PER_VERTEX  a bucket that has not settled after so many will not
//   PULLS_TWICE        vertices behind a threshold pull from each other, too
//   WIDENING_EDGES     after the largest bucket, buckets become wider where a round has fewer edges
//                      for each GPU
// in every step, called by whole warps,
//   is_own(v)           whether this GPU owns v: then it may be queued
//   mark_changed(v)     note that v, which another GPU owns, has improved
//   count_edges(edges)  this lane has followed so many edges
//   send_at_once(wanted, v, value)   in a small queue: send the new value of v to its owner
//   receive_local(ring, tail, held)  put received vertices into a warp's ring, beside those of the
//                       queue; how many vertices the warp buffers then
// and, called by all blocks, for the pull behind a threshold and the loop in closure_resident.cuh
// (in rounds the host has the loop, and there is no is_empty, best, settle or gave_up),
//   meet_here()         a barrier of the blocks of this GPU, after which the queues swap. False where
//                       it failed: the kernel must end
//   meet_all(buckets)   likewise of all GPUs, with totals: is_empty() and best() of new buckets
//   is_empty()          whether no GPU has queued a vertex
//   best()              the best far value of all GPUs
//   count_step(edges)   this GPU's queue had so many edges, and all were looked at
//   publish()           a pull reads values from here on that are better than the threshold
//   was_undercut()      whether some vertex became better than the floor since there is a threshold
//   settle()            relax until no GPU has a near vertex, or give up. False as above
//   gave_up()           whether the bucket has not settled

__shared__ Closure s;

struct Exchange {
    static constexpr int SHARDS = 1;
    static constexpr bool PULLS_TWICE = true;
    static constexpr i64 ROUNDS_PER_VERTEX = 1, WIDENING_EDGES = 16384;
    DEVICE bool is_own(I) { return true; }
    DEVICE void mark_changed(I) {}
    DEVICE void count_edges(u32) {}
    DEVICE void send_at_once(bool, I, Z) {}
    DEVICE int receive_local(Ring&, u32&, int held) { return held; }
    DEVICE bool meet_here();
    DEVICE bool meet_all(bool) { return meet_here(); }
    DEVICE bool is_empty() { return s.vertices == 0; }
    DEVICE Z best() { return s.far; }
    DEVICE void count_step(i64) {}
    DEVICE void publish() {}
    DEVICE bool was_undercut() { return load_relaxed(&s.control->undercut); }
    DEVICE bool settle();
    DEVICE bool gave_up() { return s.vertices > 0; }
};
