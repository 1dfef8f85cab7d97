// A breadth-first search over a graph in shards, in rounds that the host drives: the kernels do
// what one shard can do alone, and the host lets a communicator exchange their results. It works
// between hosts too, where the peer form (search_peers.cu) cannot.
//
// Bitmaps of all vertices give each shard the same number of words, so that what a shard writes of
// one can be gathered as it is; bit positions and ids differ by the padding. A level is one of:
//   pull  the open vertices of the shard look for the frontier, a bitmap of all vertices, among
//         their in-edges, and the shard's part of the next one goes to all. Where multiply looks at
//         values of the frontier, those of all vertices were gathered before;
//   list  the edges of the shard's frontier become a list of what they reach, with the product,
//         which goes to all, and each takes what is its own: for few edges;
//   bits  they mark what they reach in a bitmap of all vertices; shards take their parts of the
//         union of all. With values, what is marked becomes a list for each shard, its vertices once,
//         with the sums of their products here, and goes to that shard alone.
// The last thread block of a kernel to end writes what was counted to memory of the host.
//
// The preamble is that of search_common.cuh, Q (positions in bitmaps), AHEAD_VERTICES and AHEAD (a
// frontier with no more vertices and edges is pushed at once).

#include "search_common.cuh"
#include "given.cuh"

constexpr bool TRACE = false, PADDED = true;

// the last PEERS are what `compact` has for each shard
enum Count { VERTICES, EDGES, COVERED, WAITING, SENT, COUNTS = SENT + PEERS };

// A vertex that was reached, or -1, and what it gets; the first of a list for all shards has the
// length of the list instead of a vertex.
struct Entry {
    L vertex;
#if VALUES
    Z value;
#endif
};

struct Control {
    u64 packed; // length and edges of the queue that is being filled
    u64 count[COUNTS];
    u32 arrived, unused;
};

// What search_rounds.py writes, in fields of 8 bytes.
struct Given : Rows {
    i64 me, words;        // this shard; words that each shard has in a bitmap of all
    i64 first[PEERS + 1]; // where shards begin
    const L* ids;         // users' ids of all vertices, or null: the same
    // the own part of the frontier is one of two: bits, after a pull (zero at other times), or a
    // queue with its scanned degrees
    u32* own;
    I* queue;
    O* offset;
    Control* control;
    u64* counts;        // of the last kernel that counted
    u64* host_counters; // the same in the host's memory, each above 16 bits of the round
    // results, which `clear` writes here
    L* level;
    Z* value; // of open vertices nothing(), what they get is added to
    u32* visited;
};

struct Search : Given { // and what kernels are given beside
    u32* visited_next;
    Z* partial;
    const Z* frontier_value; // by bit position; null where multiply looks at none
    const u32* frontier;
    i64 batch;
};

__shared__ Search s;
__shared__ Pull pull_shared;
__shared__ u64 block_sum[COVERED + 1], published[COUNTS];
__shared__ bool is_last;

DEVICE i64 own_vertices() { return s.first[s.me + 1] - s.first[s.me]; }
DEVICE u32* own_part(u32* bitmap) { return bitmap + s.me * s.words; }
DEVICE i64 first_word(int q) { return q * s.words; }
DEVICE u64* counts() { return s.control->count; }
#include "search_shards.cuh"

DEVICE Pull& pull_memory() { return pull_shared; }

#include "search_rounds_exchange.cuh"
#include "candidate.cuh"
#include "search_pull.cuh"
#include "search_shards_push.cuh"

// Every kernel begins with `enter`, and one that counts ends with `publish_counts`.
DEVICE void enter(const u64* given) { read_given(static_cast<Given&>(s), given); }

// The sums of all thread blocks and what they put into the queue go to the host. True in the last
// block to come, where they are in `published`.
CALLED bool publish_counts(i64 round) {
    Control* const c = s.control;
    __threadfence();
    __syncthreads();
    // not into is_last at once: the compiler would let all threads read it while thread 0 writes
    const bool last = threadIdx.x == 0 && atomicAdd(&c->arrived, 1u) == gridDim.x - 1;
    if (threadIdx.x == 0) is_last = last;
    if (last) {
        __threadfence();
        const u64 packed = load_relaxed(&c->packed);
#pragma unroll 1
        for (int k = 0; k < COUNTS; k++) {
            u64 value = load_relaxed(&c->count[k]);
            if (k == VERTICES) value += queue_count(packed, s.count_bits);
            if (k == EDGES) value += queue_edges(packed, s.count_bits);
            published[k] = value;
            write_count(s.counts, s.host_counters, k, value, round);
        }
        *c = Control{};
    }
    __syncthreads();
    return is_last;
}

// Own vertices, one a lane that is `active`, into the queue. All lanes of a warp call.
DEVICE void enqueue(bool active, i64 v) {
    const Place place =
        queue_allocate(active, active ? (u64)degree_of(v) : 0, &s.control->packed, s.count_bits);
    if (!active) return;
    s.queue[place.slot] = (I)v;
    s.offset[place.slot] = (O)place.edge;
}

// The same for vertices that are new: visited from now on.
DEVICE void claim(bool active, i64 v) {
    enqueue(active, v);
    if (active) atomicOr(&own_part(s.visited)[v >> 5], 1u << (v & 31));
}

// ---- kernels that begin a search, or change its form -------------------------------------------

// Nothing is visited yet.
extern "C" __global__ void clear(u64* given, L* level, Z* value, u32* visited) {
    enter(given);
    const i64 thread = thread_id(), threads = thread_count();
    for (i64 v = thread; v < own_vertices(); v += threads) {
        level[v] = -1;
        if (VALUES) value[v] = nothing();
    }
    for (i64 w = thread; w < PEERS * s.words; w += threads) visited[w] = 0;
    for (i64 w = thread; w < s.words; w += threads) s.own[w] = 0;
    if (thread == 0) {
        *s.control = Control{};
        Given* const next = reinterpret_cast<Given*>(given);
        next->level = level;
        next->value = value;
        next->visited = visited;
    }
}

// The own part of the frontier from bits to a queue, and back.
extern "C" __global__ void convert(const u64* given, i64 round) {
    enter(given);
    for_each_words(s.words, 32, [&](i64 begin, i64 w, bool mine) {
        const u32 bits = mine ? s.own[w] : 0;
        if (bits) s.own[w] = 0;
        enqueue_words(bits, begin, [](I) {});
    });
    publish_counts(round);
}

extern "C" __global__ void mark(const u64* given) {
    enter(given);
    for (i64 i = thread_id(); i < (i64)s.counts[VERTICES]; i += thread_count())
        atomicOr(&s.own[s.queue[i] >> 5], 1u << (s.queue[i] & 31));
}

#include "search_rounds_push.cuh"

// The own sources, counted from 0, with their values.
extern "C" __global__ void begin(const u64* given, const I* sources, const Z* values, i64 number,
                                 Entry* list, i64 round) {
    enter(given);
    u32 covered = 0;
    for (i64 base = thread_id() - lane_id(); base < number; base += thread_count()) {
        const bool active = base + lane_id() < number;
        const I v = active ? sources[base + lane_id()] : 0;
        if (active) {
            s.level[v] = 0;
            if (VALUES) s.value[v] = values[base + lane_id()];
            covered += can_be_found(v);
        }
        claim(active, v);
    }
    reduce_counts(0, 0, covered);
    if (publish_counts(round)) push_ahead(list);
}

#include "search_rounds_pull.cuh"
