// The least fixed point of  x = start (+) x (+.x) A  over blocks of vertices, in rounds that the host
// drives: it works between processes and hosts too, where the peer form (closure_peers.cu) cannot.
//
// As there, a GPU holds a value for each vertex of all, the best one that it knows of those of
// others, and queues and relaxes only its own. A launch is what one block can do alone:
//   receive  what others have sent joins the values; what improves and is near joins the queue;
//   bucket   if all were at rest: the vertices up to the next limit are queued;
//   relax    step after step, until none of its vertices is near or its queue is a crowd: what came
//            from others then would be done again;
//   send     others' vertices that improved are laid out for their owners, once each with the last
//            value, in pairs of an id and a value.
// The last block of the launch tells the host what was counted, through memory of the host; the host
// has the pairs carried to their owners, and decides about limits and cuts (see closure.cu) for all.
//
// The preamble is that of closure.cu, and PEERS (blocks). Positions that multiply looks at are those
// of the blocks one after the other.

#include "closure_state.cuh"

#ifndef ALONE // steps of a launch, at most
#define ALONE 128
#endif

enum Action { BEGIN = 1, SOURCES = 2, PULLS = 4, BUCKETS = 8, UNDERCUT = 16 };
enum Count { QUEUED, EDGES, HEEDED, LOOKED, FOUND, FLAGS, BEST, BEST_HIGH, SENT };
constexpr int COUNTS = SENT + PEERS;
enum Flag { WAS_UNDERCUT = 1, LOST = 2 };

// An id and a value, in words of 32 bits side by side.
constexpr int ID_WORDS = sizeof(I) / 4, VALUE_WORDS = sizeof(Z) < 4 ? 1 : sizeof(Z) / 4;
constexpr int PAIR = ID_WORDS + VALUE_WORDS;

struct RoundControl : Control { // zero before a launch that begins
    u64 sent[PEERS];            // pairs, to each block
    u64 heeded;                 // of these, how many are near there
    u64 looked;                 // edges
    u64 found;                  // vertices of a new bucket
    u32 arrived;
    u32 at; // the step of the launch before
};
static_assert(sizeof(RoundControl) <= 256 + 8 * PEERS, "closure_rounds.py gives it no more");

// What closure_rounds.py writes, in fields of 8 bytes.
struct Given {
    i64 border[PEERS + 1]; // where blocks begin
    i64 me, m, count_bits; // this block; edges of all
    u64 every;
    const O* indptr; // out-edges of the own vertices
    const I* indices;
    const A* values;
    const O* t_indptr; // in-edges, or null
    const I* t_indices;
    const A* t_values;
    u32* bits;    // a bit for each vertex of all
    u32* claims;  // likewise; two of them
    u32* changed; // likewise: others' vertices that improved since they were sent last
    u32* groups;  // a bit for each word of `changed` that is not zero
    I* queues;
    O* offsets;
    u32* pairs; // those for a block lie where its vertices would
    RoundControl* control;
    u64 *counts, *mail; // of the last launch; for the host, with its round
};

struct RoundClosure : Closure {
    Given given;
    u64 looked, heeded; // by this block
};

__shared__ RoundClosure s;

#include "closure_improve.cuh"
#include "closure_queue.cuh"
#include "load_balance.cuh"
#include "closure_blocks.cuh"
#include "closure_steps.cuh"

DEVICE void send_at_once(bool wanted, I v, Z) {
    if (wanted) tell_owner(v);
}
DEVICE int take_in(Ring&, u32&, int held) { return held; }

#include "closure_relax.cuh"

DEVICE RoundControl* control() { return s.given.control; }

// What was counted goes to the host.
DEVICE void write_counts(const u64* count, i64 round) {
    for (int k = 0; k < COUNTS; k++) {
        s.given.counts[k] = count[k];
        // every word has the round: they need no order among themselves
        *(volatile u64*)&s.given.mail[k] = count[k] << 16 | (u64)(round & 0xffff);
    }
}

// The end of a launch.
CALLED void tell(i64 round) {
    RoundControl* const c = control();
    __syncthreads();
    if (threadIdx.x) return;
    if (s.looked) atomicAdd(&c->looked, s.looked);
    if (s.heeded) atomicAdd(&c->heeded, s.heeded);
    __threadfence();
    if (atomicAdd(&c->arrived, 1u) != gridDim.x - 1) return;
    __threadfence();
    const u64 packed = load_relaxed(s.packed), best = (u64)to_bits(load_relaxed(s.best));
    u64 count[COUNTS];
    count[QUEUED] = queue_count(packed, s.count_bits);
    count[EDGES] = queue_edges(packed, s.count_bits);
    count[HEEDED] = load_relaxed(&c->heeded);
    count[LOOKED] = load_relaxed(&c->looked);
    count[FOUND] = load_relaxed(&c->found);
    count[FLAGS] = load_relaxed(&c->undercut) ? WAS_UNDERCUT : 0;
    count[BEST] = best & 0xffffffffu;
    count[BEST_HIGH] = best >> 32;
    for (int q = 0; q < PEERS; q++) {
        count[SENT + q] = load_relaxed(&c->sent[q]);
        c->sent[q] = 0;
    }
    c->heeded = c->looked = c->found = 0;
    c->arrived = 0;
    c->at = s.step;
    write_counts(count, round);
}

// The result of a launch whose blocks have lost each other.
DEVICE void leave(i64 round) {
    if (threadIdx.x) return;
    u64 count[COUNTS] = {};
    count[FLAGS] = LOST;
    write_counts(count, round);
}

// What others have sent joins the own values; what improves and is near, the next queue.
CALLED void receive(const u32* came, i64 number) {
    int held = 0;
    for (i64 base = thread_id() - lane_id(); base < number; base += thread_count()) {
        const i64 i = base + lane_id();
        bool wanted = i < number;
        I v = 0;
        Z z = identity(), old = identity();
        if (wanted) {
            const u32* const pair = came + i * PAIR;
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

// Lay out what is marked in the 32 words of group g, of which `filled` names those that are not
// zero. A warp calls.
DEVICE void send_group(i64 g, u32 filled) {
    const Given& given = s.given;
    const int lane = lane_id();
    const i64 w = 32 * g + lane;
    const bool mine = filled >> lane & 1;
    const u32 bits = mine ? load_relaxed(&given.changed[w]) : 0;
    u32 heeded = 0;
    for (int q = 0; q < PEERS; q++) {
        const i64 begin = given.border[q], end = given.border[q + 1];
        if (q == given.me || begin >= 1024 * (g + 1) || end <= 1024 * g) continue;
        u32 part = bits & valid_bits(w, end);
        if (32 * w < begin) part &= begin - 32 * w < 32 ? FULL_WARP << (begin - 32 * w) : 0;
        const int many = __popc(part), upto = warp_scan(many), all = shuffle(upto, 31);
        if (!all) continue;
        u64 slot = 0;
        if (lane == 0) slot = atomicAdd(&control()->sent[q], (u64)all);
        slot = shuffle(slot, 0) + begin;
        for (u32 rest = __ballot_sync(FULL_WARP, part != 0); rest; rest &= rest - 1) {
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
            heeded += is_near(z) || same(z, identity());
        }
        __syncwarp();
    }
    if (mine) store_relaxed(&given.changed[w], 0u);
    if (lane == 0) store_relaxed(&given.groups[g], 0u);
    heeded = warp_sum(heeded);
    if (lane == 0 && heeded) atomicAdd(&s.heeded, (u64)heeded);
}

CALLED void send() {
    if (PEERS == 1) return;
    const i64 groups = (s.given.border[PEERS] + 1023) / 1024;
    const i64 warps = (i64)gridDim.x * WARPS, me = (i64)blockIdx.x * WARPS + warp_id();
    const i64 share = (groups + warps - 1) / warps, batch = share < 32 ? share : 32;
    for (i64 begin = me * batch; begin < groups; begin += warps * batch) {
        const bool mine = lane_id() < batch && begin + lane_id() < groups;
        const u32 filled = mine ? load_relaxed(&s.given.groups[begin + lane_id()]) : 0;
        for (u32 rest = __ballot_sync(FULL_WARP, filled != 0); rest; rest &= rest - 1) {
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

// x: a value for each vertex of all. `cut` is identity() where nothing is cut off. `came` has
// `number` pairs; sources, which two actions look at, are counted from the first own vertex.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    closure_rounds(const u64* given, i64 action, Z* x, Z limit, Z next, Z cut, Z floor, i64 crowd,
                   const u32* came, i64 number, const I* sources, const Z* source_values,
                   i64 number_of_sources, i64 round) {
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
        s.looked = s.heeded = 0;
        s.limit = limit;
        s.cut = cut;
        s.floor = floor;
        s.cutting = !same(cut, identity());
        // every step, the queues exchange their roles
        const u32 at = load_relaxed(&control()->at);
        const i64 own = s.last - s.first;
        s.claims = g.claims + (at & 1 ? words : 0);
        s.claimed = g.claims + (at & 1 ? 0 : words);
        s.queue = g.queues + (at & 1 ? own : 0);
        s.next_queue = g.queues + (at & 1 ? 0 : own);
        s.offset = g.offsets + (at & 1 ? own : 0);
        s.next_offset = g.offsets + (at & 1 ? 0 : own);
        aim(at);
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
        return tell(round);
    }
    if (number) receive(came, number);
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
        BLOCK_SETS(s.rows = s.indptr; s.cutting = false; s.cut = identity();)
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
        // all are to know of a crowd before it is relaxed
        on = on && queue_edges(packed, s.count_bits) <= (u64)crowd;
    }
    for (int steps = 0; on; steps++) {
        __syncthreads(); // all have looked at `packed`
        turn(true);
        const i64 edges = s.edges;
        if (relax_queue() == PUSH && thread_id() == 0) atomicAdd(&s.looked, (u64)edges);
        MEET()
        packed = load_relaxed(s.packed);
        on = packed != 0 && queue_edges(packed, s.count_bits) <= (u64)crowd && steps < ALONE;
    }
    send();
    tell(round);
}

// The own values and a bit for each that there is.
extern "C" __global__ void closure_ends(i64 first, i64 own, const Z* x, const u32* bits, Z* values,
                                        u32* found) {
    for (i64 i = thread_id() - lane_id(); i < own; i += thread_count()) {
        const i64 v = first + i + lane_id();
        const bool mine = i + lane_id() < own;
        const Z value = mine ? x[v] : identity();
        const u32 here =
            __ballot_sync(FULL_WARP, mine && (!same(value, identity()) || test_bit(bits, v)));
        if (mine) values[i + lane_id()] = value;
        if (lane_id() == 0) found[i >> 5] = here;
    }
}
