// The least fixed point of  x = start (+) x (+.x) A  over the GPUs of one host: shard p,
// vertices and their out-edges, lies on GPU p, and one cooperative kernel on each runs all rounds;
// see peers.cuh, and closure.cu for the steps of one GPU.
//
// Every GPU holds a value for each vertex of the whole graph: the value of its own vertices, and of
// its peers' the best one that it has found or received, so that an edge that improves nothing
// costs no message. It queues and relaxes only its own vertices. A round is
//   relax    the GPU goes on alone until none of its vertices is near; but where its queue is
//            saturated, with many edges, it takes one step only: the others may have nothing to do,
//            and its further steps would be done again when better values arrive;
//   send     the peers' vertices that improved, once each with the last value, to their owners; a
//            step over a small queue sends them as it finds them, which saves a barrier;
//   barrier  all GPUs exchange how much is left, and take the same decisions;
//   receive  received values join the own ones; a vertex that improves and is near joins the queue,
//            or, where these are few, the next local step.
// When no GPU has a near vertex the limit moves on, from the best far value of all.
//
// A push-pull threshold ends as on one GPU, except that all GPUs first write the values that are
// better than it to each other: the vertices behind it pull from these.
//
// The preamble is that of closure.cu, and PEERS. Positions that multiply looks at count the
// vertices of all shards, one shard after the other.

#include "peers.cuh"
#include "closure_state.cuh"
#include "closure_shards_state.cuh"
#include "closure_peers_state.cuh"
#include "closure_improve.cuh"
#include "closure_decisions.cuh"
#include "load_balance.cuh"
#include "nth_bit.cuh"
#include "closure_steps.cuh"
#include "closure_buckets.cuh"
#include "closure_peers_inboxes.cuh"
#include "closure_shards.cuh"
#include "closure_peers_local.cuh"
#include "closure_local.cuh"
#include "closure_pull.cuh"
#include "closure_relax.cuh"
#include "closure_resident.cuh"
#include "closure_peers_exchange.cuh"

// The result of a launch that did not come to its end.
DEVICE void leave(i64* result) {
    if (thread_id() == 0) result[4] = (i64)load_acquire_system(&inbox_of(peers.me)->lost);
}

// result: vertices with an entry, edges looked at, barriers, 1 where it did not settle, 0 or which
// GPU was lost. Sources are counted from the first own vertex.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    closure_peers(const u64* given, Z* values, u32* bits, i64* result, const I* sources,
                  const Z* source_values, i64 number_of_sources, Z width, Z reach, u64 limit) {
    if (!given) return; // a first launch, which loads the kernel
    read_given(s.given, given);
    const Given& g = s.given;
    if (blockIdx.x == 0)
        for (int i = threadIdx.x; i < sizeof(PeerControl) / 8; i += THREADS)
            reinterpret_cast<u64*>(g.control)[i] = 0;
    set_peers(g.memory, g.me, g.barrier, limit);
    if (threadIdx.x == 0) {
        take_given(in_memory_of<Z>(peers.me, g.whole), g.control, 0);
        no_limits(s, width, reach);
        s.progress = Progress{};
        s.undercut = s.marked = false;
        s.all_received = s.exchanges = 0;
        s.side = 0;
        if (blockIdx.x == 0)
            for (int i = 0; i < 5; i++) result[i] = 0;
    }
    __syncthreads();
    clear_shard();
    if (!run(sources, source_values, number_of_sources)) return leave(result);
    const u64 reached = copy_own(s.x, s.bits, s.first, s.last - s.first, values, bits);
    if (lane_id() == 0 && reached) atomicAdd((u64*)&result[0], reached);
    if (thread_id() == 0) {
        result[1] = (i64)load_relaxed(&g.control->looked);
        result[2] = (i64)s.exchanges - 1; // the first one came before the first round
        result[3] = Exchange::gave_up();
    }
}
