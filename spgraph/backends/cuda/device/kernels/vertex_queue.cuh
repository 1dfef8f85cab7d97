// Queues of vertices with the running sums of their degrees, filled by all warps: a warp buffers
// the vertices that it finds in shared memory, and a batch of them gets slots and edge offsets from
// one 64-bit atomic add. Functions are called by whole warps; `held` is how many vertices a warp
// buffers. They take as `to` which queue it is, a struct of
//   SHARE              how many vertices of a batch a lane has
//   buffer()           what this warp buffers: a batch and 32 vertices more
//   counter()          queued vertices in the low `s.count_bits` bits, their edges in the others
//   queue(), offset()  the vertices, and how many edges come before those of each
//   rows()             the rows whose degrees count
//   is_heavy(degree)   whether a degree has to be noted, by note_heavy()
//   joins(v)           v is in the queue

#include "block_scan.cuh"

__shared__ u64 queue_base;

// The vertices of this lane, of a batch or less that a warp writes, and their degrees.
template <class To>
struct LaneOfBatch {
    static constexpr int SHARE = To::SHARE, ALL = 32 * SHARE;
    I vertex[SHARE];
    O degree[SHARE], sum;
    int count;
    MEMBER LaneOfBatch(const I* found, int all, const To& to) {
        const int left = all - SHARE * lane_id();
        count = left < 0 ? 0 : left < SHARE ? left : SHARE;
        sum = 0;
        const O* const rows = to.rows();
        bool heavy = false;
#pragma unroll
        for (int k = 0; k < SHARE; k++) vertex[k] = k < count ? found[SHARE * lane_id() + k] : 0;
#pragma unroll
        for (int k = 0; k < SHARE; k++) {
            degree[k] = k < count ? rows[vertex[k] + 1] - rows[vertex[k]] : 0;
            sum += degree[k];
            heavy = heavy || to.is_heavy(degree[k]);
        }
        if (heavy) to.note_heavy();
    }
    MEMBER void write(const To& to, u64 base, u32 slot, O edge) const {
        I* queue = to.queue() + queue_count(base, s.count_bits) + slot;
        O* offset = to.offset() + queue_count(base, s.count_bits) + slot;
        edge += (O)queue_edges(base, s.count_bits);
#pragma unroll
        for (int k = 0; k < SHARE; k++)
            if (k < count) {
                queue[k] = vertex[k];
                offset[k] = edge;
                to.joins(vertex[k]);
                edge += degree[k];
            }
    }
};

// A warp writes a batch to the queue.
template <class To>
CALLED void release(const I* found, const To& to) {
    typedef LaneOfBatch<To> Mine;
    warp_sync();
    const Mine mine(found, Mine::ALL, to);
    const O scanned = warp_scan(mine.sum);
    u64 base = 0;
    if (lane_id() == 31) base = atomicAdd(to.counter(), ((u64)scanned << s.count_bits) + Mine::ALL);
    mine.write(to, shuffle(base, 31), Mine::SHARE * lane_id(), scanned - mine.sum);
    warp_sync();
}

// The whole block writes the vertices that its warps still buffer.
template <class To>
CALLED void release_rest(int held, const To& to) {
    warp_sync();
    const LaneOfBatch<To> mine(to.buffer(), held, to);
    u32 slot, total;
    O edge, edges;
    block_scan(mine.count, mine.sum, slot, edge, total, edges);
    if (threadIdx.x == 0 && total)
        queue_base = atomicAdd(to.counter(), ((u64)edges << s.count_bits) + total);
    __syncthreads();
    mine.write(to, queue_base, slot, edge);
    __syncthreads();
}

// Buffer v in the lanes where it was found; how many the warp holds then.
template <class To>
DEVICE int enqueue(int held, bool found, I v, const To& to) {
    constexpr int ALL = LaneOfBatch<To>::ALL;
    const u32 who = warp_ballot(found);
    I* const place = to.buffer();
    if (found) place[held + __popc(who & lanes_below())] = v;
    held += __popc(who);
    if (held >= ALL) {
        held -= ALL;
        release(place + held, to);
    }
    return held;
}
