// The queues that a search on one GPU fills, for the functions of vertex_queue.cuh.

#include "vertex_queue.cuh"

struct Queue {
    static constexpr int SHARE = BATCH / 32;
    u64* packed; // allocates
    I* vertices;
    O* offsets;
    L depth; // of the vertices
    DEVICE I* buffer() { return work().push.found[warp_id()]; }
    __device__ __forceinline__ u64* counter() const { return packed; }
    __device__ __forceinline__ I* queue() const { return vertices; }
    __device__ __forceinline__ O* offset() const { return offsets; }
    DEVICE const O* rows() { return s.indptr; }
    DEVICE bool is_heavy(O) { return false; }
    DEVICE void note_heavy() {}
    __device__ __forceinline__ void joins(I v) const { s.level[v] = depth; }
};
