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
#include "nth_bit.cuh"

#ifndef ALONE // the most steps of a GPU between two barriers: the others wait
#define ALONE 128
#endif
#ifndef SATURATED_EDGES // a round is one step where the queues have more edges on average
#define SATURATED_EDGES LOCAL_EDGES
#endif

struct PeerControl : Control { // of one GPU; zero at launch
    u64 sent[PEERS];           // values for each peer; more than were written if its inbox was full
    u64 near;                  // of these, how many are near there, or were not written
    u64 relaxations, published;     // edges looked at; the number that the peers have received
    u64 received[PEERS];            // values from each peer, as of the last barrier
    u64 deferred;                   // the exchange in which marked vertices have to be sent,
    u64 deferred_then;              // as of the last barrier
    u64 queued, near_of_all, flags; // sums over all GPUs, as of the last barrier
    Z best_of_all;
};
static_assert(sizeof(PeerControl) <= 512, "closure_peers.py gives it 512 bytes");

// The parameters that closure_peers.py writes, in fields of 8 bytes.
struct Given {
    i64 me;
    i64 border[PEERS + 1];              // the first vertex of each shard, and n
    u64 memory[PEERS];                  // memory that all peers write to; and the offsets in it of
    i64 inbox_ids, inbox_values, whole; // the inboxes and of the values of all vertices
    i64 capacity;                       // of an inbox for one sender and parity
    i64 m, count_bits;                  // edges of the whole graph
    u64 every;
    const O* indptr; // out-edges of the own vertices
    const I* indices;
    const A* values;
    const O* t_indptr; // in-edges, or null
    const I* t_indices;
    const A* t_values;
    u32* bits;    // a bit for each vertex of the whole graph
    u32* claims;  // likewise; two of them
    u32* changed; // as in closure_shards.cuh
    u32* groups;
    I* queues;
    O* offsets;
    PeerBarrier* barrier;
    PeerControl* control;
};

struct PeerClosure : Closure {
    Given given;
    i64 n;
    u64 queued, near; // of all GPUs: edges in the queues before the last barrier, near values sent
    u64 relaxations;  // of all GPUs, since the barrier before
    Z best_of_all;    // the best far value of all GPUs
    bool active;      // some queue is not empty
    bool undercut;    // some GPU has noted that the floor was undercut
    bool unsettled;   // some GPU gave up
    bool marked;      // some vertex that is marked in `changed` has not been sent
    u64 received[PEERS],
        all_received;      // values for this GPU that wait in its inboxes, and their sum
    u64 exchanges;         // the number of barriers with exchange so far
    int side;              // the parity of the inboxes that are written to
    u64 looked, near_sent; // of this block, since they were added to PeerControl
};

__shared__ PeerClosure s;

#include "closure_improve.cuh"
#include "closure_queue.cuh"
#include "load_balance.cuh"
#include "closure_shards.cuh"
#include "closure_steps.cuh"
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
    for (int i = threadIdx.x; i < sizeof(Given) / 8; i += THREADS)
        reinterpret_cast<u64*>(&s.given)[i] = given[i];
    __syncthreads();
    const Given& g = s.given;
    if (threadIdx.x < PEERS) peers.memory[threadIdx.x] = g.memory[threadIdx.x];
    if (blockIdx.x == 0)
        for (int i = threadIdx.x; i < sizeof(PeerControl) / 8; i += THREADS)
            reinterpret_cast<u64*>(g.control)[i] = 0;
    __syncthreads();
    const i64 n = g.border[PEERS], words = (n + 31) / 32;
    if (threadIdx.x == 0) {
        peers.me = (int)g.me;
        peers.barrier = g.barrier;
        peers.limit = limit;
        s.n = n;
        s.first = g.border[g.me];
        s.last = g.border[g.me + 1];
        s.m = g.m;
        s.every = g.every;
        s.indptr = s.rows = g.indptr - s.first;
        s.indices = g.indices;
        s.values = g.values;
        s.t_indptr = g.t_indptr ? g.t_indptr - s.first : g.t_indptr;
        s.t_indices = g.t_indices;
        s.t_values = g.t_values;
        s.x = in_memory_of<Z>(peers.me, g.whole);
        s.bits = g.bits;
        s.claims = g.claims;
        s.claimed = g.claims + words;
        s.queue = g.queues;
        s.next_queue = g.queues + (s.last - s.first);
        s.offset = g.offsets;
        s.next_offset = g.offsets + (s.last - s.first);
        s.control = g.control;
        s.trace = trace;
        s.trace_rows = trace_rows;
        s.since = TRACE ? globaltimer() : 0;
        s.count_bits = (u32)g.count_bits;
        s.width = width;
        s.has_threshold = s.undercut = s.marked = false;
        s.all_received = s.exchanges = s.looked = s.near_sent = 0;
        s.side = 0;
        s.limit = s.start = s.threshold = s.floor = identity();
        select_step(0);
        if (blockIdx.x == 0)
            for (int i = 0; i < 6; i++) result[i] = 0;
    }
    __syncthreads();
    for (i64 v = thread_id(); v < n; v += thread_count()) s.x[v] = identity();
    for (i64 w = thread_id(); w < words; w += thread_count())
        g.bits[w] = g.claims[w] = g.claims[words + w] = g.changed[w] = 0;
    for (i64 w = thread_id(); w < (words + 31) / 32; w += thread_count()) g.groups[w] = 0;
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
                if (marked) send();
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

    u64 reached = 0;
    const i64 own = s.last - s.first;
    for (i64 i = thread_id() - lane_id(); i < own; i += thread_count()) {
        const i64 v = s.first + i + lane_id();
        const Z x = v < s.last ? load_relaxed(&s.x[v]) : identity();
        const u32 here = warp_ballot(v < s.last && (!same(x, identity()) || test_bit(s.bits, v)));
        if (v < s.last) values[v - s.first] = x;
        if (lane_id() == 0) bits[i >> 5] = here;
        reached += __popc(here);
    }
    if (lane_id() == 0 && reached) atomicAdd((u64*)&result[0], reached);
    if (thread_id() == 0) {
        result[1] = (i64)load_relaxed(&g.control->relaxations);
        result[2] = barriers;
        result[3] = unsettled;
        result[5] = s.control->steps;
    }
}
