// The least fixed point of  x = start (+) x (+.x) A  over shards, in rounds that the host drives:
// it works between processes and hosts too, where the peer form (closure_peers.cu) cannot.
//
// As there, a GPU holds a value for each vertex of the whole graph, of the vertices of others the
// best one that it has found or received, and queues and relaxes only its own. A launch is what one
// shard can do alone:
//   receive  received values join the own ones; a vertex that improves and is near joins the queue;
//   bucket   if all shards were done with the last one: the vertices up to the next limit are
//            queued;
//   relax    step after step, until none of its vertices is near or its queue is saturated: further
//            steps would be done again when better values arrive;
//   send     the vertices of others that improved are written for their owners, once each with the
//            last value, in pairs of an id and a value.
// The last block of the launch writes the counts to memory of the host; the host exchanges the
// pairs, and decides about limits and thresholds (see closure.cu) for all shards.
//
// The preamble is that of closure.cu, and PEERS, the number of shards. Positions that multiply
// looks at count the vertices of all shards, one shard after the other.

#include "closure_state.cuh"

#ifndef ALONE // the most steps of a launch
#define ALONE 128
#endif

enum Action { BEGIN = 1, SOURCES = 2, PULLS = 4, BUCKETS = 8, UNDERCUT = 16 };
enum Count { QUEUED, EDGES, NEAR, LOOKED, FOUND, FLAGS, BEST, BEST_HIGH, SENT };
constexpr int COUNTS = SENT + PEERS;
enum Flag { WAS_UNDERCUT = 1, LOST = 2 };

// An id and a value, in words of 32 bits side by side.
constexpr int ID_WORDS = sizeof(I) / 4, VALUE_WORDS = sizeof(Z) < 4 ? 1 : sizeof(Z) / 4;
constexpr int PAIR = ID_WORDS + VALUE_WORDS;

struct RoundControl : Control { // zero before a launch that begins a closure
    u64 sent[PEERS];            // pairs for each shard
    u64 near_sent;              // of these, how many are near there
    u64 looked;                 // edges
    u64 found;                  // vertices of a new bucket
    u32 arrived;
    u32 at; // the step of the launch before
};
static_assert(sizeof(RoundControl) <= 256 + 8 * PEERS, "closure_rounds.py gives it no more");

// The parameters that closure_rounds.py writes, in fields of 8 bytes.
struct Given {
    i64 border[PEERS + 1]; // the first vertex of each shard, and n
    i64 me, m, count_bits; // this shard; the edges of the whole graph
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
    u32* pairs; // those for a shard lie where its vertices would
    RoundControl* control;
    u64* counts;        // of the last launch, on the device;
    u64* host_counters; // on the host, with the round in the low 16 bits
};

struct RoundClosure : Closure {
    Given given;
    u64 looked, near_sent; // of this block
};

__shared__ RoundClosure s;

#include "closure_improve.cuh"
#include "closure_queue.cuh"
#include "load_balance.cuh"
#include "closure_shards.cuh"
#include "closure_steps.cuh"

DEVICE void send_at_once(bool wanted, I v, Z) {
    if (wanted) mark_changed(v);
}
DEVICE int receive_local(Ring&, u32&, int held) { return held; }

#include "closure_relax.cuh"

DEVICE RoundControl* control() { return s.given.control; }

// Write the counts to the device and to the host.
DEVICE void write_counts(const u64* count, i64 round) {
    for (int k = 0; k < COUNTS; k++) {
        s.given.counts[k] = count[k];
        // every word holds the round, so that they need no order among themselves
        *(volatile u64*)&s.given.host_counters[k] = count[k] << 16 | (u64)(round & 0xffff);
    }
}

// The end of a launch: the last block publishes the counts.
CALLED void publish_counts(i64 round) {
    RoundControl* const c = control();
    __syncthreads();
    if (threadIdx.x) return;
    if (s.looked) atomicAdd(&c->looked, s.looked);
    if (s.near_sent) atomicAdd(&c->near_sent, s.near_sent);
    __threadfence();
    if (atomicAdd(&c->arrived, 1u) != gridDim.x - 1) return;
    __threadfence();
    const u64 packed = load_relaxed(s.packed), best = (u64)to_bits(load_relaxed(s.best));
    u64 count[COUNTS];
    count[QUEUED] = queue_count(packed, s.count_bits);
    count[EDGES] = queue_edges(packed, s.count_bits);
    count[NEAR] = load_relaxed(&c->near_sent);
    count[LOOKED] = load_relaxed(&c->looked);
    count[FOUND] = load_relaxed(&c->found);
    count[FLAGS] = load_relaxed(&c->undercut) ? WAS_UNDERCUT : 0;
    count[BEST] = best & 0xffffffffu;
    count[BEST_HIGH] = best >> 32;
    for (int q = 0; q < PEERS; q++) {
        count[SENT + q] = load_relaxed(&c->sent[q]);
        c->sent[q] = 0;
    }
    c->near_sent = c->looked = c->found = 0;
    c->arrived = 0;
    c->at = s.step;
    write_counts(count, round);
}

// The counts of a launch in which a barrier timed out.
DEVICE void leave(i64 round) {
    if (threadIdx.x) return;
    u64 count[COUNTS] = {};
    count[FLAGS] = LOST;
    write_counts(count, round);
}

// Received values join the own ones; vertices that improve and are near join the next queue.
CALLED void receive(const u32* received, i64 number) {
    int held = 0;
    for (i64 base = thread_id() - lane_id(); base < number; base += thread_count()) {
        const i64 i = base + lane_id();
        bool wanted = i < number;
        I v = 0;
        Z z = identity(), old = identity();
        if (wanted) {
            const u32* const pair = received + i * PAIR;
            u64 id = pair[0], bits = pair[ID_WORDS];
            if (ID_WORDS == 2) id |= (u64)pair[1] << 32;
            if (VALUE_WORDS == 2) bits |= (u64)pair[ID_WORDS + 1] << 32;
            v = (I)id;
            z = from_bits<Z>((Bits<Z>)bits);
            old = load_relaxed(&s.x[v]);
            wanted = changes(old, z) ? improve(&s.x[v], z, old) && is_near(old) : reach(v, z);
        }
        held = claim(held, wanted, v);
    }
    release_rest(held);
}

// Write pairs for the vertices that are marked in the 32 words of group g; bits of `filled` say
// which words are not zero. A warp calls.
DEVICE void send_group(i64 g, u32 filled) {
    const Given& given = s.given;
    const int lane = lane_id();
    const i64 w = 32 * g + lane;
    const bool mine = filled >> lane & 1;
    const u32 bits = mine ? load_relaxed(&given.changed[w]) : 0;
    u32 near_sent = 0;
    for (int q = 0; q < PEERS; q++) {
        const i64 begin = given.border[q], end = given.border[q + 1];
        if (q == given.me || begin >= 1024 * (g + 1) || end <= 1024 * g) continue;
        u32 part = bits & valid_bits(w, end);
        if (32 * w < begin) part &= begin - 32 * w < 32 ? ALL_BITS << (begin - 32 * w) : 0;
        const int many = __popc(part), upto = warp_scan(many), all = shuffle(upto, 31);
        if (!all) continue;
        u64 slot = 0;
        if (lane == 0) slot = atomicAdd(&control()->sent[q], (u64)all);
        slot = shuffle(slot, 0) + begin;
        for (u32 rest = warp_ballot(part != 0); rest; rest &= rest - 1) {
            const int from = __ffs(rest) - 1;
            const u32 word = shuffle(part, from);
            const u64 place = slot + shuffle(upto - many, from) + __popc(word & lanes_below());
            if (!(word >> lane & 1)) continue;
            const I v = (I)(1024 * g + 32 * from + lane);
            const Z z = load_relaxed(&s.x[v]);
            u32* const pair = given.pairs + place * PAIR;
            const u64 value = (u64)to_bits(z);
            pair[0] = (u32)v;
            if (ID_WORDS == 2) pair[1] = (u32)((u64)v >> 32);
            pair[ID_WORDS] = (u32)value;
            if (VALUE_WORDS == 2) pair[ID_WORDS + 1] = (u32)(value >> 32);
            near_sent += is_near(z) || same(z, identity());
        }
        warp_sync();
    }
    if (mine) store_relaxed(&given.changed[w], 0u);
    if (lane == 0) store_relaxed(&given.groups[g], 0u);
    near_sent = warp_sum(near_sent);
    if (lane == 0 && near_sent) atomicAdd(&s.near_sent, (u64)near_sent);
}

CALLED void send() {
    if (PEERS == 1) return;
    const i64 groups = (s.given.border[PEERS] + 1023) / 1024;
    const i64 warps = (i64)gridDim.x * WARPS, me = (i64)blockIdx.x * WARPS + warp_id();
    const i64 share = (groups + warps - 1) / warps, batch = share < 32 ? share : 32;
    for (i64 begin = me * batch; begin < groups; begin += warps * batch) {
        const bool mine = lane_id() < batch && begin + lane_id() < groups;
        const u32 filled = mine ? load_relaxed(&s.given.groups[begin + lane_id()]) : 0;
        for (u32 rest = warp_ballot(filled != 0); rest; rest &= rest - 1) {
            const int which = __ffs(rest) - 1;
            send_group(begin + which, shuffle(filled, which));
        }
    }
}

#define MEET()                                                                                     \
    if (!grid_barrier(&s.control->barrier, gridDim.x)) return leave(round);
#define BLOCK_SETS(STATEMENTS)                                                                     \
    __syncthreads();                                                                               \
    if (threadIdx.x == 0) {                                                                        \
        STATEMENTS                                                                                 \
    }                                                                                              \
    __syncthreads();

// x: a value for each vertex of the whole graph. `threshold` is identity() where there is none.
// `received` has `number` pairs; sources, which BEGIN and SOURCES read, are counted from the first
// own vertex.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    closure_rounds(const u64* given, i64 action, Z* x, Z limit, Z next, Z threshold, Z floor,
                   i64 saturated_edges, const u32* received, i64 number, const I* sources,
                   const Z* source_values, i64 number_of_sources, i64 round) {
    for (int i = threadIdx.x; i < sizeof(Given) / 8; i += THREADS)
        reinterpret_cast<u64*>(&s.given)[i] = given[i];
    __syncthreads();
    const Given& g = s.given;
    const i64 n = g.border[PEERS], words = (n + 31) / 32;
    if (threadIdx.x == 0) {
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
        s.x = x;
        s.bits = g.bits;
        s.control = g.control;
        s.count_bits = (u32)g.count_bits;
        s.looked = s.near_sent = 0;
        s.limit = limit;
        s.threshold = threshold;
        s.floor = floor;
        s.has_threshold = !same(threshold, identity());
        // the queues swap in every step
        const u32 at = load_relaxed(&control()->at);
        const i64 own = s.last - s.first;
        s.claims = g.claims + (at & 1 ? words : 0);
        s.claimed = g.claims + (at & 1 ? 0 : words);
        s.queue = g.queues + (at & 1 ? own : 0);
        s.next_queue = g.queues + (at & 1 ? 0 : own);
        s.offset = g.offsets + (at & 1 ? own : 0);
        s.next_offset = g.offsets + (at & 1 ? 0 : own);
        select_step(at);
    }
    __syncthreads();

    if (action & BEGIN) {
        for (i64 v = thread_id(); v < n; v += thread_count()) x[v] = identity();
        for (i64 w = thread_id(); w < words; w += thread_count())
            g.bits[w] = g.claims[w] = g.claims[words + w] = g.changed[w] = 0;
        for (i64 w = thread_id(); w < (words + 31) / 32; w += thread_count()) g.groups[w] = 0;
        if (thread_id() == 0) *s.best = identity();
        MEET()
        begin(sources, source_values, number_of_sources);
        return publish_counts(round);
    }
    if (number) receive(received, number);
    if (action & SOURCES) begin_queue(sources, number_of_sources);
    if (action & PULLS) {
        BLOCK_SETS(s.rows = s.t_indptr;)
        open_vertices();
        MEET()
        turn(true);
        const i64 vertices = s.vertices, edges = s.edges;
        if (thread_id() == 0) s.looked += (u64)edges;
        pull(vertices, edges, !POSITIONAL && !(action & UNDERCUT));
        MEET()
        BLOCK_SETS(s.rows = s.indptr; s.has_threshold = false; s.threshold = identity();)
    }
    if (action & BUCKETS) {
        if (number) MEET()
        next_bucket(next);
        BLOCK_SETS(s.limit = next;)
    }
    MEET()
    u64 packed = load_relaxed(s.packed);
    bool on = packed != 0;
    if (action & BUCKETS) {
        if (thread_id() == 0) control()->found = queue_count(packed, s.count_bits);
        // a saturated queue is relaxed in the next round, when all shards have its counts
        on = on && queue_edges(packed, s.count_bits) <= (u64)saturated_edges;
    }
    for (int steps = 0; on; steps++) {
        __syncthreads(); // all have looked at `packed`
        turn(true);
        const i64 edges = s.edges;
        if (relax_queue() == PUSH && thread_id() == 0) atomicAdd(&s.looked, (u64)edges);
        MEET()
        packed = load_relaxed(s.packed);
        on = packed != 0 && queue_edges(packed, s.count_bits) <= (u64)saturated_edges &&
             steps < ALONE;
    }
    send();
    publish_counts(round);
}

// The values of the own vertices, and a bit for each that has an entry.
extern "C" __global__ void closure_ends(i64 first, i64 own, const Z* x, const u32* bits, Z* values,
                                        u32* found) {
    for (i64 i = thread_id() - lane_id(); i < own; i += thread_count()) {
        const i64 v = first + i + lane_id();
        const bool mine = i + lane_id() < own;
        const Z value = mine ? x[v] : identity();
        const u32 here = warp_ballot(mine && (!same(value, identity()) || test_bit(bits, v)));
        if (mine) values[i + lane_id()] = value;
        if (lane_id() == 0) found[i >> 5] = here;
    }
}
