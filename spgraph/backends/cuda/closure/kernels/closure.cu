// The least fixed point of  x = start (+) x (+.x) A, by one cooperative launch.
//
// Any order of relaxations gives the result; this one needs little work and few steps:
//   buckets    where the monoid has an order (min, max), only the vertices nearer than `limit` are
//              relaxed; the others are far. When none is near, `limit` moves on by `width`
//              (near-far, Davidson et al. 2014). There is no list of far vertices: their values say
//              which they are;
//   push       a large frontier: warps take equal shares of its edges;
//   local      a small one: every warp takes some vertices, and then the vertices that these
//              improve, for STEPS hops, before the next barrier; a road network has thousands of
//              hops;
//   threshold  while a bucket with a large share of all edges is near, products that are not better
//              than the push-pull threshold are not pushed: nearly all of them would improve
//              nothing, and each costs a look at its vertex. Then the vertices behind the
//              threshold, most of which have few edges, pull along their in-edges what was not
//              pushed to them (Chakaravarthy et al. 2014); the values of the entries tell which
//              edges cannot matter.
// A vertex enters a queue once, by its bit in `claims`; queues never hold more than n vertices.
//
// The preamble gives: I (ids), O (offsets), A (values of the matrix), Z (values of the vector);
// multiply and the monoid of common.cuh; ORDERED (0: a plain worklist), POSITIONAL (multiply looks
// at positions), THREADS (of a block), BATCH, TRACE.
//
// As in search.cu, loading instructions that miss their cache costs more than running them: so
// functions are not inlined, and find the state in shared memory.

#include "closure_state.cuh"
#include "closure_none.cuh"
#include "closure_improve.cuh"
#include "closure_queue.cuh"
#include "load_balance.cuh"
#include "closure_steps.cuh"
#include "closure_relax.cuh"

// The end of a step: a barrier, then the queues swap. True where the barrier timed out: the caller
// returns.
CALLED bool barrier_failed(bool exchange_claims) {
    if (!grid_barrier(&s.control->barrier, gridDim.x)) return true;
    turn(exchange_claims);
    return false;
}

// Whether the queue has a large share of all edges: after its bucket, little is left.
DEVICE bool is_bulk() { return s.edges >= THRESHOLD_EDGES && s.edges * THRESHOLD_SHARE >= s.m; }

#define MEET(KIND, VERTICES, EDGES, EXCHANGE)                                                      \
    {                                                                                              \
        const i64 vertices_ = VERTICES, edges_ = EDGES;                                            \
        if (barrier_failed(EXCHANGE)) return;                                                      \
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
        s.has_threshold = false;
        s.limit = s.start = s.threshold = s.floor = identity();
        select_step(0);
    }
    __syncthreads();
    for (i64 v = thread_id(); v < n; v += thread_count()) x[v] = identity();
    for (i64 w = thread_id(); w < words; w += thread_count())
        bits[w] = bitmaps[w] = bitmaps[words + w] = 0;
    MEET(START, 0, 0, false)
    begin(sources, source_values, number_of_sources);
    MEET(START, 0, 0, false)
    BLOCK_SETS(s.start = s.far; s.limit = limit_after(s.far);)
    begin_queue(sources, number_of_sources);
    MEET(START, 0, 0, false)

    i64 rounds = 0, bucket_edges = 0;
    int thresholds = 0;
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
            if (ORDERED && t_indptr && !s.has_threshold && thresholds < MAX_THRESHOLDS &&
                is_bulk()) {
                BLOCK_SETS(s.threshold = limit_after(s.limit); s.floor = s.start;
                           s.has_threshold = !same(s.threshold, identity());)
                thresholds++;
            }
            const int kind = relax_queue();
            MEET(kind, s.vertices, s.edges, true)
            continue;
        }
        if (!ORDERED) break;
        if (s.has_threshold && !better(s.limit, s.threshold)) {
            BLOCK_SETS(s.rows = t_indptr;)
            open_vertices();
            MEET(PULL, 0, 0, false)
            pull(s.vertices, s.edges, !POSITIONAL && !load_relaxed(&control->undercut));
            MEET(PULL, s.vertices, s.edges, false)
            BLOCK_SETS(s.rows = indptr; s.has_threshold = false; s.threshold = identity();)
        }
        const bool widens = bulk && rounds > 0 && bucket_edges < WIDENING_EDGES * rounds;
        BLOCK_SETS(if (widens) s.width = doubled(s.width);)
        rounds = bucket_edges = 0;
        Z limit = limit_after(s.limit);
        if (s.has_threshold && better(s.threshold, limit)) limit = s.threshold;
        next_bucket(limit);
        MEET(BUCKET, 0, 0, false)
        // the bucket is empty: the next one begins at the best value that is left
        const bool none = s.vertices == 0,
                   all_beyond = s.has_threshold && !better(s.far, s.threshold);
        if (none && same(s.far, identity()) && !s.has_threshold) break;
        BLOCK_SETS(s.start = s.limit; s.limit = !none ? limit : all_beyond ? s.threshold : s.far;)
    }

    u64 reached = 0;
    for (i64 w = thread_id() >> 5; w < words; w += thread_count() >> 5) {
        const i64 v = 32 * w + lane_id();
        u32 here = warp_ballot(v < n && !same(load_relaxed(&x[v]), identity()));
        here |= load_relaxed(&bits[w]);
        if (lane_id() == 0 && here) bits[w] = here;
        reached += __popc(here);
    }
    if (lane_id() == 0 && reached) atomicAdd((u64*)&control->reached, reached);
}
