// The queue that a step of a closure fills, and functions that steps share.

#include "vertex_queue.cuh"

constexpr int SHARE = BATCH / 32; // of a batch, for each lane

// The queue that a step fills, for the functions of vertex_queue.cuh.
struct NextQueue {
    static constexpr int SHARE = BATCH / 32;
    DEVICE I* buffer() { return warp_work().found; }
    DEVICE u64* counter() { return s.packed; }
    DEVICE I* queue() { return s.next_queue; }
    DEVICE O* offset() { return s.next_offset; }
    DEVICE const O* rows() { return global(s.rows); }
    DEVICE bool is_heavy(O degree) { return degree > HEAVY; }
    DEVICE void note_heavy() { store_relaxed(s.heavy, 1u); }
    DEVICE void joins(I) {}
};

// Whether a value is in no bucket: the identity, or NaN, which only a source can have.
DEVICE bool is_in_no_bucket(Z value) { return !better(value, identity()); }

// Whether a value, or a product, is better than a limit, or in no bucket: then nothing comes back to
// it later.
DEVICE bool is_followed(Z value, Z limit) {
    return !ORDERED || better(value, limit) || is_in_no_bucket(value);
}

// Whether the product z of a vertex with value x is followed: a vertex that is in no bucket is
// relaxed once, and never behind a threshold.
DEVICE bool is_followed_from(Z x, Z z, Z threshold) {
    return is_followed(z, threshold) || is_in_no_bucket(x);
}

// A product that is the identity improves nothing, but its vertex has an entry: true for the first
// such product.
DEVICE bool reach(I v, Z value) { return same(value, identity()) && set_bit(s.bits, v); }

DEVICE Z product(Z x, const A* values, i64 entry, i64 u, i64 v) {
    return sum_of(multiply(x, load_once(values + (entry & (i64)s.every)), (i64)0, u, u, v));
}

// Whether a new value of v has to be followed now, or sent to its owner: of the own vertices, those
// that are far are found by their values when their bucket comes.
DEVICE bool is_wanted(I v, Z value) { return !Exchange::is_own(v) || is_followed(value, s.limit); }

// `value` joins vertex v, which had `old`, and becomes what is stored; whether v is wanted for that.
DEVICE bool join(I v, Z old, Z& value) {
    if constexpr (PARENTS) return join_from(v, old, value) && is_wanted(v, value);
    return changes(old, value) ? improve(&s.x[v], value, value) && is_wanted(v, value)
                               : reach(v, value);
}

// The same where nothing has looked at what v had.
DEVICE bool join_unseen(I v, Z& value) {
    if constexpr (PARENTS) return join(v, identity(), value);
    return improve(&s.x[v], value, value) ? is_wanted(v, value) : reach(v, value);
}

// Put an own vertex, which has improved and is wanted, into the next queue, unless it is there
// already.
DEVICE int claim_own(int held, bool wanted, I v) {
    return enqueue(held, wanted && set_bit(s.next_claims, v), v, NextQueue());
}

// The same, whoever owns the vertex: its owner will be sent the value.
DEVICE int claim(int held, bool wanted, I v) {
    const bool own = Exchange::is_own(v);
    if (wanted && !own) Exchange::mark_changed(v);
    return claim_own(held, wanted && own, v);
}

// The counters of a step: three sets take turns.
DEVICE void select_step(u32 step) {
    s.step = step;
    s.packed = &s.control->packed[step % 3];
    s.best = &s.control->best[step % 3];
    s.heavy = &s.control->heavy[step % 3];
    if (blockIdx.x == 0) { // those of the next step: nobody reads the old ones, nor writes the new
        store_relaxed(&s.control->packed[(step + 1) % 3], (u64)0);
        store_relaxed(&s.control->best[(step + 1) % 3], identity());
        store_relaxed(&s.control->heavy[(step + 1) % 3], 0u);
    }
}

// Thread 0 sets the shared state, but for the limits, of a GPU that owns the vertices from `first` to
// `last` of n; the queues have swapped `swaps` times.
DEVICE void take_arrays(const Arrays& given, Z* x, i64 first, i64 last, i64 n, Control* control,
                        u32 swaps) {
    static_cast<Arrays&>(s) = given;
    s.first = first;
    s.last = last;
    s.rows = s.indptr -= first;
    if (s.t_indptr) s.t_indptr -= first;
    s.x = x;
    s.control = control;
    const i64 own = last - first, words = (n + 31) / 32, now = swaps & 1, next = now ^ 1;
    s.next_claims = given.claims + now * words;
    s.claimed = given.claims + next * words;
    s.queue = given.queues + now * own;
    s.next_queue = given.queues + next * own;
    s.offset = given.offsets + now * own;
    s.next_offset = given.offsets + next * own;
    select_step(swaps);
}

// Thread 0 of each block changes the shared state, after all have read it and before any reads on.
#define BLOCK_SETS(STATEMENTS)                                                                     \
    {                                                                                              \
        __syncthreads();                                                                           \
        if (threadIdx.x == 0) {                                                                    \
            STATEMENTS                                                                             \
        }                                                                                          \
        __syncthreads();                                                                           \
    }

// After a barrier that ends a step: read its counters, and swap the queues and their claims. Between
// buckets nothing is claimed.
DEVICE void turn() {
    if (threadIdx.x == 0) {
        const u64 packed = load_relaxed(s.packed);
        s.far = load_relaxed(s.best);
        s.heavy_queue = load_relaxed(s.heavy) != 0;
        s.vertices = (i64)queue_count(packed, s.count_bits);
        s.edges = (i64)queue_edges(packed, s.count_bits);
        swap(s.queue, s.next_queue);
        swap(s.offset, s.next_offset);
        swap(s.next_claims, s.claimed);
        select_step(s.step + 1);
    }
    __syncthreads();
}

// A barrier of the blocks of this GPU that ends a step. False where it failed.
CALLED bool meet_blocks() {
    if (!grid_barrier(&s.control->barrier, gridDim.x)) return false;
    turn();
    return true;
}

// Clear the claims of the queue's vertices.
DEVICE void unclaim(i64 vertices) {
    for (i64 i = thread_id(); i < vertices; i += thread_count()) s.claimed[s.queue[i] >> 5] = 0;
}

// Note a vertex that is relaxed while it is better than the floor: the pull is then not bounded by
// it.
DEVICE void note_undercut(Z x) {
    if (ORDERED && s.has_threshold && better(x, s.floor)) store_relaxed(&s.control->undercut, 1u);
}

DEVICE i64 warps_of_grid() { return (i64)gridDim.x * WARPS; }
DEVICE i64 warp_of_grid() { return (i64)warp_id() * gridDim.x + blockIdx.x; }

// How many of so many vertices each warp takes in a local step.
DEVICE i64 local_share(i64 vertices) {
    const i64 share = (vertices + warps_of_grid() - 1) / warps_of_grid();
    return share < LOCAL_SHARE ? LOCAL_SHARE : share;
}

// A worker of walk() takes this warp's share of the edges of the queue's vertices.
template <bool TWICE, class Worker>
DEVICE void walk_queue(i64 vertices, i64 edges, Worker& worker) {
    walk_share<EACH, TWICE>(s.offset, vertices, 0, edges, warp_of_grid(), warps_of_grid(),
                            warp_work().lanes, worker);
}
