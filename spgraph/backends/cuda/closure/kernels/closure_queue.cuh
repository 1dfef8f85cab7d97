// The queue that a step of a closure fills, for the functions of vertex_queue.cuh.

#include "vertex_queue.cuh"

constexpr int SHARE = BATCH / 32; // of a batch, for each lane

struct NextQueue {
    static constexpr int SHARE = BATCH / 32;
    DEVICE I* buffer() { return warp_work().found; }
    DEVICE u64* counter() { return s.packed; }
    DEVICE I* queue() { return s.next_queue; }
    DEVICE O* offset() { return s.next_offset; }
    DEVICE const O* rows() { return global(s.rows); }
    DEVICE bool is_heavy(O degree) { return degree > HEAVY; }
    DEVICE void note_heavy() { store_relaxed(s.heavy, 1u); }
    DEVICE void joins(I) {}
};
