// A barrier of all blocks of a cooperative launch.

// All zero before its first use; reusable after, by launches of any size, unless `error` was set.
struct GridBarrier {
    u32 arrived;   // the top bit flips when all have arrived
    u32 error;     // non-zero: some block waited too long; all blocks that wait leave, too
    u64 heartbeat; // a block that works for long while others wait changes it now and then
};

#ifndef BARRIER_LIMIT
#define BARRIER_LIMIT 20000000000ull // nanoseconds
#endif

// Every thread of every one of the `blocks` blocks calls. What was written before is visible after,
// to every block. False when the wait failed, in every thread of the block alike: the kernel must
// then return.
DEVICE bool grid_barrier(GridBarrier* state, u32 blocks) {
    __syncthreads();
    bool failed = false;
    if (threadIdx.x == 0) {
        __threadfence();
        // the last arrival, whichever it is, makes the sum of all shares 0x80000000
        u32 share = blockIdx.x == 0 ? 0x80000000u - (blocks - 1) : 1u;
        u32 before = atomicAdd(&state->arrived, share);
        u64 start = 0, beat = 0;
        for (u32 spins = 1; !((before ^ load_acquire(&state->arrived)) & 0x80000000u); spins++) {
            if (spins & 255) continue;
            __nanosleep(100); // the wait is long: leave the memory to the blocks that work
            u64 now = globaltimer(), alive = load_relaxed(&state->heartbeat);
            if (start == 0 || alive != beat) start = now;
            beat = alive;
            if (now - start > BARRIER_LIMIT) atomicCAS(&state->error, 0u, 1u);
            failed = load_relaxed(&state->error) != 0;
            if (failed) break;
        }
        __threadfence();
    }
    return !__syncthreads_or(failed);
}
