// The least fixed point of  x = start (+) x (+.x) A: one cooperative launch for the whole of it.
//
// Any order of relaxations is right, so the work is ordered to be little and its steps to be few:
//   buckets  of an ordered monoid (min, max) only the vertices nearer than `limit` are relaxed; the
//            others are far. When none is near, `limit` moves on by `width` (Davidson et al. 2014,
//            near-far). Nobody keeps a list of the far ones: they are those whose value says so;
//   push     a large frontier: warps take equal shares of its edges;
//   local    a small one: every warp takes some vertices and follows what they improve by itself,
//            for STEPS hops, before the grid meets again; a road network has thousands of hops;
//   cut      while a bucket with a large share of all edges is near, no product that reaches `cut`
//            is followed: nearly all of them would lose, and the cost of one that loses is that of
//            looking at its vertex. Then the vertices that are left, most of them with few edges,
//            pull along their in-edges what was not pushed to them (Chakaravarthy et al. 2014); the
//            values of the entries tell which of them cannot matter.
// A vertex enters a queue once, by its bit in `claims`; queues never hold more than n.
//
// The preamble gives: I (ids), O (offsets), A (values of the matrix), Z (values of the vector);
// multiply and the monoid of common.cuh; ORDERED (0: a plain worklist), POSITIONAL (multiply looks
// at positions), THREADS (of a block), BATCH, TRACE.
//
// As in search.cu, instructions that miss their cache cost more than those that run: the state lies
// in shared memory, where functions that are not inlined find it.

constexpr int WARPS = THREADS / 32;
constexpr int EACH = 8;            // values a lane of a push has in flight
constexpr int TRIES = BATCH + 128; // products a warp holds back
constexpr int HEAVY = 32;          // a vertex with more edges is no work for four lanes
constexpr int RING = 64;           // vertices that a warp's own queue holds
constexpr int ROW_LANES = 4;       // lanes that walk the edges of one of them
constexpr i64 CUT_SHARE = 20;      // a cut begins at this part of all edges,
constexpr int CUTS = 3;            // this often at most
constexpr i64 THIN = 16384; // after the bulk: edges of a round below which buckets grow wider
#ifndef STEPS
#define STEPS 16
#endif
#ifndef LOCAL_VERTICES // of a frontier that warps follow by themselves
#define LOCAL_VERTICES 32768
#endif
#ifndef LOCAL_EDGES
#define LOCAL_EDGES 131072
#endif
#ifndef LOCAL_SHARE // vertices that a warp starts from at least
#define LOCAL_SHARE 2
#endif
#ifndef CUT_EDGES // a cut pays from so many on
#define CUT_EDGES (1 << 21)
#endif

enum Step { START = 0, PUSH = 1, LOCAL = 2, BUCKET = 3, PULL = 4 }; // in the trace

struct Control { // zero at launch
    GridBarrier barrier;
    i64 unsettled; // it went on for more rounds than there are vertices
    i64 reached;
    i64 steps; // rows of the trace
    u64 packed
        [3];      // by step modulo 3: queued vertices in the low bits, their edges in the high bits
    Z best[3];    // by step modulo 3: the best value that stayed far
    u32 heavy[3]; // by step modulo 3: some queued vertex has more than HEAVY edges
    u32 undercut; // a vertex became better than `floor` while a cut was on
};

struct Closure {
    i64 n, m;
    u64 every; // all bits set, or none where all entries have the value of the first
    const O* indptr;
    const I* indices;
    const A* values;
    const O* t_indptr; // in-edges, or null
    const I* t_indices;
    const A* t_values;
    Z* x;
    u32* bits;    // vertices that have an entry of the value identity, or had one
    u32* claims;  // vertices of the next queue
    u32* claimed; // vertices of the queue
    I* queue;
    O* offset;
    I* next_queue;
    O* next_offset;
    const O* rows; // whose degrees the next queue is about
    u64* packed;
    Z* best;
    u32* heavy;
    Control* control;
    i64* trace; // kind, vertices, edges, ns; a row a step
    i64 trace_rows;
    u64 since;
    u32 count_bits, step;
    i64 vertices, edges; // of the queue
    Z far;               // the best value that the last step saw far
    bool heavy_queue;
    Z limit; // what is better is near
    Z start; // the limit before
    Z width;
    bool cutting;
    Z cut;   // what is not better is not followed; identity() where nothing is cut off
    Z floor; // what is better had been followed to everywhere before the cut
};

// What a warp holds: products to try, or a queue of its own; and vertices to hand on.
struct Products {
    union {
        Z value[TRIES];
        I vertex[TRIES]; // in a pull, where the value is not known yet
    };
    O entry[TRIES];
};
struct Ring {
    Z value[RING];
    O first[RING], last[RING];
    I vertex[RING];
};
// Arrays are multiples of 32 long, so that there are no gaps: closure.py knows the size.
struct WarpWork {
    union {
        Products products;
        Ring ring;
    };
    I found[BATCH + 32];
    u32 lanes[32];
};

__shared__ Closure s;
__shared__ u64 block_base;
__shared__ u32 warp_count[WARPS];
__shared__ O warp_edges[WARPS];
extern __shared__ u64 work_memory[];

#define CALLED static __device__ __noinline__

DEVICE WarpWork& warp_work() { return reinterpret_cast<WarpWork*>(work_memory)[threadIdx.x >> 5]; }

// A pointer out of shared memory is one that the compiler knows nothing about: this tells it which
// memory it leads to, without which an atomic takes a branch for every kind.
template <class T>
DEVICE T* global(T* pointer) {
#ifndef HOST_SHIM
    __builtin_assume(__isGlobal(pointer));
#endif
    return pointer;
}

#include "closure_improve.cuh"
#include "closure_queue.cuh"
#include "edge_shares.cuh"

DEVICE bool is_near(Z value) { return !ORDERED || better(value, s.limit); }
DEVICE bool is_followed(Z value, Z cut) {
    return !ORDERED || better(value, cut) || same(value, identity());
}

// A product that is no better than nothing still reaches its vertex: true for the first such one.
DEVICE bool reach(I v, Z value) { return same(value, identity()) && set_bit(s.bits, v); }

DEVICE Z product(Z x, const A* values, i64 entry, i64 u, i64 v) {
    return multiply(x, load_once(values + (entry & (i64)s.every)), (i64)0, u, u, v);
}

// Vertex v has improved and is near: it joins the next queue, unless it is in it.
DEVICE int claim(int held, bool wanted, I v) {
    return enqueue(held, wanted && set_bit(s.claims, v), v);
}

// ---- steps --------------------------------------------------------------------------------------

template <class T>
DEVICE void swap(T*& x, T*& y) {
    T* z = x;
    x = y;
    y = z;
}

DEVICE void aim(u32 step) {
    s.step = step;
    s.packed = &s.control->packed[step % 3];
    s.best = &s.control->best[step % 3];
    s.heavy = &s.control->heavy[step % 3];
    if (blockIdx.x == 0) { // two steps ahead: no one looks at those any more, no one at them yet
        store_relaxed(&s.control->packed[(step + 1) % 3], (u64)0);
        store_relaxed(&s.control->best[(step + 1) % 3], identity());
        store_relaxed(&s.control->heavy[(step + 1) % 3], 0u);
    }
}

CALLED void record(i64 kind, i64 vertices, i64 edges) {
    const u64 now = globaltimer();
    const i64 at = s.control->steps++;
    if (at < s.trace_rows) {
        i64* row = s.trace + 4 * at;
        row[0] = kind;
        row[1] = vertices;
        row[2] = edges;
        row[3] = (i64)(now - s.since);
    }
    s.since = now;
}

// The end of a step: all blocks meet, and the queues exchange their roles. True when one of the
// blocks did not come: the caller leaves.
CALLED bool meet(bool exchange_claims) {
    if (!grid_barrier(&s.control->barrier, gridDim.x)) return true;
    if (threadIdx.x == 0) {
        const u64 packed = load_relaxed(s.packed);
        s.far = load_relaxed(s.best);
        s.heavy_queue = load_relaxed(s.heavy) != 0;
        s.vertices = (i64)queue_count(packed, s.count_bits);
        s.edges = (i64)queue_edges(packed, s.count_bits);
        swap(s.queue, s.next_queue);
        swap(s.offset, s.next_offset);
        if (exchange_claims) swap(s.claims, s.claimed);
        aim(s.step + 1);
    }
    __syncthreads();
    return false;
}

// ---- what all steps share -----------------------------------------------------------------------

// The queue's vertices are no longer claimed.
DEVICE void unclaim(i64 vertices) {
    for (i64 i = thread_id(); i < vertices; i += thread_count()) s.claimed[s.queue[i] >> 5] = 0;
}

// A value is followed to its neighbours.
DEVICE void watch(Z x) {
    if (ORDERED && s.cutting && better(x, s.floor)) store_relaxed(&s.control->undercut, 1u);
}

// Where a lane puts its product behind the `tries` that the warp holds; -1 if it has none.
DEVICE int line_up(bool wanted, int& tries) {
    const u32 who = __ballot_sync(FULL_WARP, wanted);
    const int place = wanted ? tries + __popc(who & lanes_below()) : -1;
    tries += __popc(who);
    return place;
}

// The edges of the whole grid's warps: [begin, end) is this one's part.
DEVICE void part(i64 edges, i64& begin, i64& end) {
    const i64 warps = (i64)gridDim.x * WARPS, me = (i64)warp_id() * gridDim.x + blockIdx.x;
    const i64 share = ((edges + warps - 1) / warps + 31) / 32 * 32;
    begin = me * share < edges ? me * share : edges;
    end = begin + share < edges ? begin + share : edges;
}

#include "closure_buckets.cuh"
#include "closure_local.cuh"
#include "closure_pull.cuh"
#include "closure_push.cuh"

// ---- the whole ----------------------------------------------------------------------------------

// One step on the queue, which is not empty: relax its vertices.
DEVICE int relax_queue() {
    const i64 warps = (i64)gridDim.x * WARPS;
    const bool local = !s.heavy_queue && s.vertices <= LOCAL_VERTICES && s.edges <= LOCAL_EDGES &&
                       s.vertices <= warps * (RING / 2);
    if (local)
        follow(s.vertices);
    else
        push(s.vertices, s.edges);
    return local ? LOCAL : PUSH;
}

// A queue with a large share of all edges: once it is behind, little is left.
DEVICE bool is_bulk() { return s.edges >= CUT_EDGES && s.edges * CUT_SHARE >= s.m; }

#define MEET(KIND, VERTICES, EDGES, EXCHANGE)                                                      \
    {                                                                                              \
        const i64 vertices_ = VERTICES, edges_ = EDGES;                                            \
        if (meet(EXCHANGE)) return;                                                                \
        if (TRACE && thread_id() == 0) record(KIND, vertices_, edges_);                            \
    }
#define BLOCK_SETS(STATEMENTS)                                                                     \
    __syncthreads();                                                                               \
    if (threadIdx.x == 0) {                                                                        \
        STATEMENTS                                                                                 \
    }                                                                                              \
    __syncthreads();

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    closure(i64 n, i64 m, const O* indptr, const I* indices, const A* values, const O* t_indptr,
            const I* t_indices, const A* t_values, u64 every, const I* sources,
            const Z* source_values, i64 number_of_sources, Z* x, u32* bits, u32* bitmaps, I* queues,
            O* offsets, Control* control, u32 count_bits, Z width, i64* trace, i64 trace_rows) {
    const i64 words = (n + 31) / 32;
    if (threadIdx.x == 0) {
        s.n = n;
        s.m = m;
        s.every = every;
        s.indptr = s.rows = indptr;
        s.indices = indices;
        s.values = values;
        s.t_indptr = t_indptr;
        s.t_indices = t_indices;
        s.t_values = t_values;
        s.x = x;
        s.bits = bits;
        s.claims = bitmaps;
        s.claimed = bitmaps + words;
        s.queue = queues;
        s.next_queue = queues + n;
        s.offset = offsets;
        s.next_offset = offsets + n;
        s.control = control;
        s.trace = trace;
        s.trace_rows = trace_rows;
        s.since = TRACE ? globaltimer() : 0;
        s.count_bits = count_bits;
        s.width = width;
        s.cutting = false;
        s.limit = s.start = s.cut = s.floor = identity();
        aim(0);
    }
    __syncthreads();
    for (i64 v = thread_id(); v < n; v += thread_count()) x[v] = identity();
    for (i64 w = thread_id(); w < words; w += thread_count())
        bits[w] = bitmaps[w] = bitmaps[words + w] = 0;
    MEET(START, 0, 0, false)
    begin(sources, source_values, number_of_sources);
    MEET(START, 0, 0, false)
    BLOCK_SETS(s.start = s.far; s.limit = behind(s.far);)
    begin_queue(sources, number_of_sources);
    MEET(START, 0, 0, false)

    i64 rounds = 0, bucket_edges = 0;
    int cuts = 0;
    bool bulk = false;
    for (;;) {
        if (s.vertices > 0) {
            if (rounds > n) {
                if (thread_id() == 0) control->unsettled = 1;
                break;
            }
            rounds++;
            bucket_edges += s.edges;
            bulk = bulk || is_bulk();
            if (ORDERED && t_indptr && !s.cutting && cuts < CUTS && is_bulk()) {
                BLOCK_SETS(s.cut = behind(s.limit); s.floor = s.start;
                           s.cutting = !same(s.cut, identity());)
                cuts++;
            }
            const int kind = relax_queue();
            MEET(kind, s.vertices, s.edges, true)
            continue;
        }
        if (!ORDERED) break;
        if (s.cutting && !better(s.limit, s.cut)) {
            BLOCK_SETS(s.rows = t_indptr;)
            open_vertices();
            MEET(PULL, 0, 0, false)
            pull(s.vertices, s.edges, !POSITIONAL && !load_relaxed(&control->undercut));
            MEET(PULL, s.vertices, s.edges, false)
            BLOCK_SETS(s.rows = indptr; s.cutting = false; s.cut = identity();)
        }
        const bool thin = bulk && rounds > 0 && bucket_edges < THIN * rounds;
        BLOCK_SETS(if (thin) s.width = doubled(s.width);)
        rounds = bucket_edges = 0;
        Z limit = behind(s.limit);
        if (s.cutting && better(s.cut, limit)) limit = s.cut;
        next_bucket(limit);
        MEET(BUCKET, 0, 0, false)
        // nothing within one width: the next limit starts from the best that is left
        const bool none = s.vertices == 0, all_cut = s.cutting && !better(s.far, s.cut);
        if (none && same(s.far, identity()) && !s.cutting) break;
        BLOCK_SETS(s.start = s.limit; s.limit = !none ? limit : all_cut ? s.cut : s.far;)
    }

    u64 reached = 0;
    for (i64 w = thread_id() >> 5; w < words; w += thread_count() >> 5) {
        const i64 v = 32 * w + lane_id();
        u32 here = __ballot_sync(FULL_WARP, v < n && !same(load_relaxed(&x[v]), identity()));
        here |= load_relaxed(&bits[w]);
        if (lane_id() == 0 && here) bits[w] = here;
        reached += __popc(here);
    }
    if (lane_id() == 0 && reached) atomicAdd((u64*)&control->reached, reached);
}
