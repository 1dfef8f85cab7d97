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

#include "closure_state.cuh"

__shared__ Closure s;

#include "closure_improve.cuh"
#include "closure_queue.cuh"
#include "load_balance.cuh"

DEVICE bool is_own(I) { return true; }
DEVICE void tell_owner(I) {}

#include "closure_steps.cuh"

DEVICE void tally(u32) {}
DEVICE void send_at_once(bool, I, Z) {}
DEVICE int take_in(Ring&, u32&, int held) { return held; }

#include "closure_relax.cuh"

// The end of a step: all blocks meet, and the queues exchange their roles. True when one of the
// blocks did not come: the caller leaves.
CALLED bool meet(bool exchange_claims) {
    if (!grid_barrier(&s.control->barrier, gridDim.x)) return true;
    turn(exchange_claims);
    return false;
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
        s.first = 0;
        s.last = n;
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
