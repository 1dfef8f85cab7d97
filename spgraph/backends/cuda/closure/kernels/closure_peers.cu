// The least fixed point of  x = start (+) x (+.x) A  over the GPUs of one process: shard p,
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
#include "closure_given.cuh"
#include "closure_peers_state.cuh"
#include "closure_improve.cuh"
#include "closure_queue.cuh"
#include "load_balance.cuh"
#include "nth_bit.cuh"
#include "closure_steps.cuh"
#include "closure_peers_inboxes.cuh"
#include "closure_shards.cuh"
#include "closure_peers_local.cuh"
#include "closure_relax.cuh"
#include "closure_peers_exchange.cuh"

// Whether the queues have a large share of all edges: after their bucket, little is left.
DEVICE bool is_bulk() {
    return (i64)s.queued >= THRESHOLD_EDGES && (i64)s.queued * THRESHOLD_SHARE >= s.m;
}

// The result of a launch that did not come to its end.
DEVICE void leave(i64* result) {
    if (thread_id() == 0) result[4] = (i64)load_acquire_system(&inbox_of(peers.me)->lost);
}

#define RECORD(KIND, VERTICES, EDGES)                                                              \
    {                                                                                              \
        if (TRACE && thread_id() == 0) record(KIND, VERTICES, EDGES);                              \
    }
#define BLOCK_SETS(STATEMENTS)                                                                     \
    __syncthreads();                                                                               \
    if (threadIdx.x == 0) {                                                                        \
        STATEMENTS                                                                                 \
    }                                                                                              \
    __syncthreads();

// result: vertices with an entry, edges looked at, barriers, 1 where it did not settle, 0 or which
// GPU was lost, rows of the trace. Sources are counted from the first own vertex.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    closure_peers(const u64* given, Z* values, u32* bits, i64* result, const I* sources,
                  const Z* source_values, i64 number_of_sources, Z width, u64 limit, i64* trace,
                  i64 trace_rows) {
    if (!given) return; // a first launch, which loads the kernel
    read_given(s.given, given);
    const Given& g = s.given;
    if (threadIdx.x < PEERS) peers.memory[threadIdx.x] = g.memory[threadIdx.x];
    if (blockIdx.x == 0)
        for (int i = threadIdx.x; i < sizeof(PeerControl) / 8; i += THREADS)
            reinterpret_cast<u64*>(g.control)[i] = 0;
    __syncthreads();
    const i64 n = g.border[PEERS];
    if (threadIdx.x == 0) {
        peers.me = (int)g.me;
        peers.barrier = g.barrier;
        peers.limit = limit;
        s.n = n;
        take_given(0);
        s.x = in_memory_of<Z>(peers.me, g.whole);
        s.control = g.control;
        s.trace = trace;
        s.trace_rows = trace_rows;
        s.since = TRACE ? globaltimer() : 0;
        s.width = width;
        s.has_threshold = s.undercut = s.marked = false;
        s.all_received = s.exchanges = 0;
        s.side = 0;
        s.limit = s.start = s.threshold = s.floor = identity();
        select_step(0);
        if (blockIdx.x == 0)
            for (int i = 0; i < 6; i++) result[i] = 0;
    }
    __syncthreads();
    clear_shard();
    if (meet_here(true) == LOST) return leave(result);
    begin(sources, source_values, number_of_sources);
    if (meet_peers(true) == LOST) return leave(result);
    turn(false);
    BLOCK_SETS(s.start = s.best_of_all; s.limit = limit_after(s.start);)
    begin_queue(sources, number_of_sources);
    if (meet_here(true) == LOST) return leave(result);
    RECORD(START, 0, 0)

    i64 steps = 0, rounds = 0, bucket_edges = 0, barriers = 0;
    int thresholds = 0;
    bool on = true, saturated = false, bulk = false, unsettled = false;
    for (;;) {
        while (on) {
            const bool large = saturated && is_bulk();
            bulk = bulk || large;
            if (ORDERED && s.t_indptr && !s.has_threshold && thresholds < MAX_THRESHOLDS && large) {
                BLOCK_SETS(s.threshold = limit_after(s.limit); s.floor = s.start;
                           s.has_threshold = !same(s.threshold, identity());)
                thresholds++;
            }
            bool passed = false, marked = s.marked, filled = saturated;
            if (saturated) {
                const i64 vertices = s.vertices, edges = s.edges;
                const int kind = vertices ? relax_queue() : LOCAL;
                marked = marked || kind == PUSH;
                if (kind == PUSH && thread_id() == 0) atomicAdd(&s.looked, (u64)edges);
                if (meet_here(false) == LOST) return leave(result);
                RECORD(kind, vertices, edges)
            }
            for (int alone = 1; !saturated && (s.vertices || s.all_received); alone++) {
                const i64 vertices = s.vertices, edges = s.edges;
                const int kind = relax_all();
                marked = marked || kind == PUSH;
                if (thread_id() == 0) {
                    if (kind == PUSH) atomicAdd(&s.looked, (u64)edges);
                    if (++steps > 4 * n) g.control->unsettled = 1;
                }
                // values that were sent at once need no second barrier
                const bool goes_on = alone < ALONE;
                const int outcome =
                    marked ? meet_here(false) : meet_peers(false, goes_on ? s.packed : nullptr);
                if (outcome == LOST) return leave(result);
                passed = !marked && outcome == PASSED;
                RECORD(kind, vertices, edges)
                const u64 packed = load_relaxed(s.packed);
                const bool rests = passed ? goes_on : packed == 0;
                if (rests) steps = 0;
                filled =
                    passed || rests || !goes_on ||
                    queue_edges(packed, s.count_bits) > (u64)SATURATED_EDGES; // others may be idle
                if (filled) break;
                __syncthreads(); // all have looked at `packed`
                turn(true);
            }
            if (!passed) {
                if (marked) send_marked();
                if (meet_peers(false) == LOST) return leave(result);
            }
            RECORD(BARRIER, s.near, s.queued)
            barriers++;
            bucket_edges += s.relaxations;
            unsettled = s.unsettled || ++rounds > 2 * n;
            if (unsettled) break;
            on = s.active || s.near;
            saturated = on && s.queued + s.near * (u64)(s.m / n + 1) > (u64)SATURATED_EDGES * PEERS;
            if (saturated || !on) {
                const bool received = s.all_received != 0;
                if (received) receive();
                if (saturated ? meet_peers(false) == LOST : received && meet_here(false) == LOST)
                    return leave(result);
                if (saturated || received) turn(true);
                barriers += saturated;
                if (saturated || received) RECORD(BARRIER, 0, s.queued)
            } else if (filled) {
                __syncthreads(); // all have looked at `packed`
                turn(true);
            }
        }
        if (!ORDERED || unsettled) break;
        if (s.has_threshold && !better(s.limit, s.threshold)) {
            BLOCK_SETS(s.rows = s.t_indptr;)
            open_vertices();
            publish();
            if (meet_peers(false) == LOST) return leave(result);
            turn(false);
            barriers++;
            RECORD(BARRIER, s.vertices, s.edges)
            if (thread_id() == 0) atomicAdd(&s.looked, (u64)s.edges);
            const i64 vertices = s.vertices, edges = s.edges;
            pull(vertices, edges, !POSITIONAL && !s.undercut);
            if (meet_here(true) == LOST) return leave(result);
            RECORD(PULL, vertices, edges)
            BLOCK_SETS(s.rows = s.indptr; s.has_threshold = false; s.threshold = identity();)
        }
        const bool widens = bulk && rounds > 0 && bucket_edges < WIDENING_EDGES * PEERS * rounds;
        BLOCK_SETS(if (widens) s.width = doubled(s.width);)
        steps = rounds = bucket_edges = 0;
        Z next = limit_after(s.limit);
        if (s.has_threshold && better(s.threshold, next)) next = s.threshold;
        next_bucket(next);
        if (meet_peers(true) == LOST) return leave(result);
        turn(false);
        barriers++;
        RECORD(BUCKET, s.vertices, s.edges)
        // the bucket is empty: the next one begins at the best value that is left
        on = s.active;
        const bool all_beyond = s.has_threshold && !better(s.best_of_all, s.threshold);
        if (!on && same(s.best_of_all, identity()) && !s.has_threshold) break;
        BLOCK_SETS(s.start = s.limit; s.limit = on           ? next
                                                : all_beyond ? s.threshold
                                                             : s.best_of_all;)
        saturated = s.queued > (u64)SATURATED_EDGES * PEERS;
    }

    const u64 reached = copy_own(s.x, s.bits, s.first, s.last - s.first, values, bits);
    if (lane_id() == 0 && reached) atomicAdd((u64*)&result[0], reached);
    if (thread_id() == 0) {
        result[1] = (i64)load_relaxed(&g.control->relaxations);
        result[2] = barriers;
        result[3] = unsettled;
        result[5] = s.control->steps;
    }
}
