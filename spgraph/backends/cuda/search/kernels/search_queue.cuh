// Queues of vertices with their scanned degrees, filled by all warps: a warp holds back what it has
// found in shared memory, and 128 of them get their slots and their edge offsets from one 64-bit
// atomic add.

#include "block_scan.cuh"

// Where found vertices go: the counter that allocates, the arrays, their level.
struct Target {
    u64* packed;
    I* queue;
    O* offset;
    L depth;
};

// The four vertices of this lane out of up to 128 that a warp has staged, and their degrees.
struct Four {
    I vertex[4];
    O degree[4], sum;
    int count;
    __device__ __forceinline__ Four(const I* staged, int all) {
        const int left = all - 4 * lane_id();
        count = left < 0 ? 0 : left < 4 ? left : 4;
        sum = 0;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            vertex[k] = k < count ? staged[4 * lane_id() + k] : 0;
            degree[k] = k < count ? s.indptr[vertex[k] + 1] - s.indptr[vertex[k]] : 0;
            sum += degree[k];
        }
    }
    __device__ __forceinline__ void write(const Target& to, u64 base, u32 slot, O edge) const {
        I* queue = to.queue + queue_count(base, s.count_bits) + slot;
        O* offset = to.offset + queue_count(base, s.count_bits) + slot;
        edge += (O)queue_edges(base, s.count_bits);
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (k < count) {
                queue[k] = vertex[k];
                offset[k] = edge;
                s.level[vertex[k]] = to.depth;
                edge += degree[k];
            }
    }
};

// A warp hands on 128 staged vertices: one atomic gives them their slots and offsets.
CALLED void release(const I* staged, const Target& to) {
    warp_sync();
    const Four four(staged, 128);
    const O scanned = warp_scan(four.sum);
    u64 base = 0;
    if (lane_id() == 31) base = atomicAdd(to.packed, ((u64)scanned << s.count_bits) + 128);
    four.write(to, shuffle(base, 31), 4 * lane_id(), scanned - four.sum);
    warp_sync();
}

// The whole block hands on what its warps have left: one atomic a block. At most 128 a warp.
CALLED void release_rest(const I* staged, int count, const Target& to) {
    warp_sync();
    const Four four(staged, count);
    u32 slot, total;
    O edge, edges;
    block_scan(four.count, four.sum, slot, edge, total, edges);
    if (threadIdx.x == 0 && total)
        block_sum[0] = atomicAdd(to.packed, ((u64)edges << s.count_bits) + total);
    __syncthreads();
    four.write(to, block_sum[0], slot, edge);
    __syncthreads();
}

// What a warp has found and not yet handed on.
struct Stage {
    I* held;
    int count;
    __device__ __forceinline__ Stage() : held(work().push.stage[warp_id()]), count(0) {}
    __device__ __forceinline__ void add(bool found, I v, const Target& to) {
        const u32 who = warp_ballot(found);
        if (found) held[count + __popc(who & lanes_below())] = v;
        count += __popc(who);
        if (count > STAGE - 32) {
            count -= 128;
            release(held + count, to);
        }
    }
    // every thread of the block calls
    __device__ __forceinline__ void finish(const Target& to) {
        if (count > 128) {
            count -= 128;
            release(held + count, to);
        }
        release_rest(held, count, to);
    }
};
