// The least fixed point of  x = start (+) x (+.x) A  over the GPUs of one process: block p of the
// vertices and its out-edges lie on GPU p, and one cooperative kernel on each runs all rounds; see
// peers.cuh, and closure.cu for the steps of one GPU.
//
// Every GPU holds a value for each vertex of all: of its own the value, of its peers' the best one
// that it knows, so that an edge which brings nothing new costs no message. It queues and relaxes
// only its own vertices. A round is
//   relax    the GPU goes on by itself until none of its vertices is near; but if the edges in queues
//            are many, it takes one step: the others may have nothing to do, and what it would do on
//            top would be done again when better values come;
//   send     the peers' vertices that improved, once each with the last value, to their owners;
//            a step over a small queue sends them as it finds them, which costs no step more;
//   meet     all hear how much is left, and take the same decisions;
//   receive  what has come joins the values; what improves and is near joins the queue, or, if it
//            is little, what the next step follows.
// When nobody has a near vertex the limit moves on, from the best far value of all.
//
// A cut ends as on one GPU, but that the vertices behind it pull from values that all GPUs write to
// each other first.
//
// The preamble is that of closure.cu, and PEERS. Positions that multiply looks at are those of the
// blocks one after the other.

#include "peers.cuh"
#include "closure_state.cuh"
#include "nth_bit.cuh"

#ifndef ALONE // steps of a GPU between two meetings, at most: the others wait
#define ALONE 128
#endif
#ifndef CROWD // edges in the queues of a GPU, on average, from which on a round is one step
#define CROWD LOCAL_EDGES
#endif

struct PeerControl : Control { // of one GPU; zero at launch
    u64 sent[PEERS];           // vertices, to each peer: more than went if the inbox was full
    u64 near;                  // of these, how many are near there, or did not fit
    u64 relaxations, told;     // edges looked at; of them those that the peers know of
    u64 come[PEERS];           // what all have told, at the last meeting
    u64 kept, left;            // the exchange in which something marked is to go, and that as told
    u64 queued, near_of_all, flags;
    Z best_of_all;
};
static_assert(sizeof(PeerControl) <= 512, "closure_peers.py gives it 512 bytes");

// What closure_peers.py writes, in fields of 8 bytes.
struct Given {
    i64 me;
    i64 border[PEERS + 1];              // where blocks begin
    u64 memory[PEERS];                  // that all peers write to; where in it things lie:
    i64 inbox_ids, inbox_values, whole; // the last: values of all vertices
    i64 capacity;                       // of the inbox for one sender and parity
    i64 m, count_bits;                  // edges of all
    u64 every;
    const O* indptr; // out-edges of the own vertices
    const I* indices;
    const A* values;
    const O* t_indptr; // in-edges, or null
    const I* t_indices;
    const A* t_values;
    u32* bits;    // a bit for each vertex of all
    u32* claims;  // likewise; two of them
    u32* changed; // peers' vertices that improved since they were sent last
    u32* groups;  // a bit for each word of `changed` that is not zero
    I* queues;
    O* offsets;
    Meeting* meeting;
    PeerControl* control;
};

struct PeerClosure : Closure {
    Given given;
    i64 n;
    u64 queued, near; // of all: edges in the queues before the last meeting, messages to heed
    u64 relaxations;  // of all, since the meeting before
    Z best_of_all;    // that stays far
    bool active;      // some queue is not empty
    bool undercut;    // by anyone, ever
    bool unsettled;   // someone gave up
    bool marked;      // of what is marked in `changed`, some has not been sent
    u64 come[PEERS], all_come; // messages for this GPU, and their sum, until they are taken in
    u64 exchanges;             // so many so far
    int side;                  // of the inboxes that are written to
    u64 looked, heeded;        // by this block since it met the others: to be added to Control
};

__shared__ PeerClosure s;

#include "closure_improve.cuh"
#include "closure_queue.cuh"
#include "load_balance.cuh"
#include "closure_blocks.cuh"
#include "closure_steps.cuh"
#include "closure_peers_small.cuh"
#include "closure_relax.cuh"
#include "closure_peers_meet.cuh"

// A queue with a large share of all edges: once it is behind, little is left.
DEVICE bool is_bulk() { return (i64)s.queued >= CUT_EDGES && (i64)s.queued * CUT_SHARE >= s.m; }

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

// result: vertices reached, edges looked at, meetings, 1 if it did not settle, 0 or what was lost,
// rows of the trace. Sources are counted from the first own vertex.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    closure_peers(const u64* given, Z* values, u32* bits, i64* result, const I* sources,
                  const Z* source_values, i64 number_of_sources, Z width, u64 limit, i64* trace,
                  i64 trace_rows) {
    if (!given) return; // a first launch, so that the next one finds everything loaded
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
        peers.meeting = g.meeting;
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
        s.cutting = s.undercut = s.marked = false;
        s.all_come = s.exchanges = s.looked = s.heeded = 0;
        s.side = 0;
        s.limit = s.start = s.cut = s.floor = identity();
        aim(0);
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
    BLOCK_SETS(s.start = s.best_of_all; s.limit = behind(s.start);)
    begin_queue(sources, number_of_sources);
    if (meet_here(true) == LOST) return leave(result);
    RECORD(START, 0, 0)

    i64 steps = 0, rounds = 0, bucket_edges = 0, meetings = 0;
    int cuts = 0;
    bool on = true, crowded = false, bulk = false, unsettled = false;
    for (;;) {
        while (on) {
            const bool large = crowded && is_bulk();
            bulk = bulk || large;
            if (ORDERED && s.t_indptr && !s.cutting && cuts < CUTS && large) {
                BLOCK_SETS(s.cut = behind(s.limit); s.floor = s.start;
                           s.cutting = !same(s.cut, identity());)
                cuts++;
            }
            bool met = false, marked = s.marked, filled = crowded;
            if (crowded) {
                const i64 vertices = s.vertices, edges = s.edges;
                const int kind = vertices ? relax_queue() : LOCAL;
                marked = marked || kind == PUSH;
                if (kind == PUSH && thread_id() == 0) atomicAdd(&s.looked, (u64)edges);
                if (meet_here(false) == LOST) return leave(result);
                RECORD(kind, vertices, edges)
            }
            for (int alone = 1; !crowded && (s.vertices || s.all_come); alone++) {
                const i64 vertices = s.vertices, edges = s.edges;
                const int kind = relax_all();
                marked = marked || kind == PUSH;
                if (thread_id() == 0) {
                    if (kind == PUSH) atomicAdd(&s.looked, (u64)edges);
                    if (++steps > 4 * n) g.control->unsettled = 1;
                }
                // what is sent at once needs no second meeting
                const bool goes_on = alone < ALONE;
                const int outcome =
                    marked ? meet_here(false) : meet_peers(false, goes_on ? s.packed : nullptr);
                if (outcome == LOST) return leave(result);
                met = !marked && outcome == MET;
                RECORD(kind, vertices, edges)
                const u64 packed = load_relaxed(s.packed);
                const bool rests = met ? goes_on : packed == 0;
                if (rests) steps = 0;
                filled = met || rests || !goes_on ||
                         queue_edges(packed, s.count_bits) > (u64)CROWD; // others may be idle
                if (filled) break;
                __syncthreads(); // all have looked at `packed`
                turn(true);
            }
            if (!met) {
                if (marked) send();
                if (meet_peers(false) == LOST) return leave(result);
            }
            RECORD(MEETING, s.near, s.queued)
            meetings++;
            bucket_edges += s.relaxations;
            unsettled = s.unsettled || ++rounds > 2 * n;
            if (unsettled) break;
            on = s.active || s.near;
            crowded = on && s.queued + s.near * (u64)(s.m / n + 1) > (u64)CROWD * PEERS;
            if (crowded || !on) {
                const bool came = s.all_come != 0;
                if (came) receive();
                if (crowded ? meet_peers(false) == LOST : came && meet_here(false) == LOST)
                    return leave(result);
                if (crowded || came) turn(true);
                meetings += crowded;
                if (crowded || came) RECORD(MEETING, 0, s.queued)
            } else if (filled) {
                __syncthreads(); // all have looked at `packed`
                turn(true);
            }
        }
        if (!ORDERED || unsettled) break;
        if (s.cutting && !better(s.limit, s.cut)) {
            BLOCK_SETS(s.rows = s.t_indptr;)
            open_vertices();
            publish();
            if (meet_peers(false) == LOST) return leave(result);
            turn(false);
            meetings++;
            RECORD(MEETING, s.vertices, s.edges)
            if (thread_id() == 0) atomicAdd(&s.looked, (u64)s.edges);
            const i64 vertices = s.vertices, edges = s.edges;
            pull(vertices, edges, !POSITIONAL && !s.undercut);
            if (meet_here(true) == LOST) return leave(result);
            RECORD(PULL, vertices, edges)
            BLOCK_SETS(s.rows = s.indptr; s.cutting = false; s.cut = identity();)
        }
        const bool thin = bulk && rounds > 0 && bucket_edges < THIN * PEERS * rounds;
        BLOCK_SETS(if (thin) s.width = doubled(s.width);)
        steps = rounds = bucket_edges = 0;
        Z next = behind(s.limit);
        if (s.cutting && better(s.cut, next)) next = s.cut;
        next_bucket(next);
        if (meet_peers(true) == LOST) return leave(result);
        turn(false);
        meetings++;
        RECORD(BUCKET, s.vertices, s.edges)
        // nothing within one width: the next limit starts from the best that is left
        on = s.active;
        const bool all_cut = s.cutting && !better(s.best_of_all, s.cut);
        if (!on && same(s.best_of_all, identity()) && !s.cutting) break;
        BLOCK_SETS(s.start = s.limit; s.limit = on ? next : all_cut ? s.cut : s.best_of_all;)
        crowded = s.queued > (u64)CROWD * PEERS;
    }

    u64 reached = 0;
    const i64 own = s.last - s.first;
    for (i64 i = thread_id() - lane_id(); i < own; i += thread_count()) {
        const i64 v = s.first + i + lane_id();
        const Z x = v < s.last ? load_relaxed(&s.x[v]) : identity();
        const u32 here =
            __ballot_sync(FULL_WARP, v < s.last && (!same(x, identity()) || test_bit(s.bits, v)));
        if (v < s.last) values[v - s.first] = x;
        if (lane_id() == 0) bits[i >> 5] = here;
        reached += __popc(here);
    }
    if (lane_id() == 0 && reached) atomicAdd((u64*)&result[0], reached);
    if (thread_id() == 0) {
        result[1] = (i64)load_relaxed(&g.control->relaxations);
        result[2] = meetings;
        result[3] = unsettled;
        result[5] = s.control->steps;
    }
}
