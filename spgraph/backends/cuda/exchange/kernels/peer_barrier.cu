// A barrier between the streams of several processes, a GPU each: what a stream has after it runs
// after all that any of them has before it. Each process launches one warp.
//
// The preamble gives PEERS, and BARRIER, the byte offset of the PeerBarrier behind the Inbox.

#include "peers.cuh"

// memory[q]: where this process has mapped the Inbox of GPU q. What the kernels before have written
// into the memory of GPU q is there for its kernels behind the barrier: the end of a kernel orders
// its writes before the fence of `exchange`, and its word is read with acquire. Once a GPU is lost,
// no barrier waits any more.
extern "C" __global__ void peer_barrier(const u64* memory, int me, u64 limit) {
    if (!memory) return; // a first launch, which loads the kernel
    set_peers(memory, me, reinterpret_cast<PeerBarrier*>(memory[me] + BARRIER), limit);
    if (load_acquire_system(&inbox_of(me)->lost)) return;
    u64 got;
    exchange(0, got);
}
