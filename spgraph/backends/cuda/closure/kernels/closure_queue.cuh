// Queues of vertices with the running sums of their degrees, filled by all warps: a warp buffers
// the vertices that it finds in shared memory, and BATCH of them get their slots and their edge
// offsets from one 64-bit atomic add. Every function is called by whole warps; `held` is how many
// vertices a warp buffers.

constexpr int SHARE = BATCH / 32; // of a batch, for each lane

#include "block_scan.cuh"

// The vertices of this lane, of up to BATCH that a warp writes, and their degrees.
struct Few {
    I vertex[SHARE];
    O degree[SHARE], sum;
    int count;
    __device__ __forceinline__ Few(const I* found, int all) {
        const int left = all - SHARE * lane_id();
        count = left < 0 ? 0 : left < SHARE ? left : SHARE;
        sum = 0;
        const O* const rows = global(s.rows);
        bool heavy = false;
#pragma unroll
        for (int k = 0; k < SHARE; k++) vertex[k] = k < count ? found[SHARE * lane_id() + k] : 0;
#pragma unroll
        for (int k = 0; k < SHARE; k++) {
            degree[k] = k < count ? rows[vertex[k] + 1] - rows[vertex[k]] : 0;
            sum += degree[k];
            heavy = heavy || degree[k] > HEAVY;
        }
        if (heavy) store_relaxed(s.heavy, 1u);
    }
    __device__ __forceinline__ void write(u64 base, u32 slot, O edge) const {
        I* queue = s.next_queue + queue_count(base, s.count_bits) + slot;
        O* offset = s.next_offset + queue_count(base, s.count_bits) + slot;
        edge += (O)queue_edges(base, s.count_bits);
#pragma unroll
        for (int k = 0; k < SHARE; k++)
            if (k < count) {
                queue[k] = vertex[k];
                offset[k] = edge;
                edge += degree[k];
            }
    }
};

// A warp writes BATCH vertices to the queue.
CALLED void release(const I* found) {
    warp_sync();
    const Few few(found, BATCH);
    const O scanned = warp_scan(few.sum);
    u64 base = 0;
    if (lane_id() == 31) base = atomicAdd(s.packed, ((u64)scanned << s.count_bits) + BATCH);
    few.write(shuffle(base, 31), SHARE * lane_id(), scanned - few.sum);
    warp_sync();
}

// The whole block writes the vertices that its warps still buffer.
CALLED void release_rest(int held) {
    warp_sync();
    const Few few(warp_work().found, held);
    u32 slot, total;
    O edge, edges;
    block_scan(few.count, few.sum, slot, edge, total, edges);
    if (threadIdx.x == 0 && total)
        block_base = atomicAdd(s.packed, ((u64)edges << s.count_bits) + total);
    __syncthreads();
    few.write(block_base, slot, edge);
    __syncthreads();
}

// Buffer v in the lanes where it was found; how many the warp holds then.
DEVICE int enqueue(int held, bool found, I v) {
    const u32 who = warp_ballot(found);
    I* const place = warp_work().found;
    if (found) place[held + __popc(who & lanes_below())] = v;
    held += __popc(who);
    if (held >= BATCH) {
        held -= BATCH;
        release(place + held);
    }
    return held;
}
