// For every vertex v: the least other vertex u with  x[u] * A[u, v] == x[v].  Every entry is tested once,
// in the row of u in A, or in the row of v in A's transpose T.
//
// The random access costs most: to x[u] from the row of v, to x[v] from that of u. In the row of v many
// entries need none. Let `floor` be a value such that few vertices have a better one. Where products
// keep the order of their first operands, no u without a better value gives more than floor * A[u, v]; so
// where that is worse than x[v], u is no parent of v, and neither its id nor its value is loaded. For the
// few vertices with values better than the floor all entries of their own rows of A are tested.
//
// With COLLECTS, what is not the least is kept: of each test that finds a second parent of a vertex,
// the greater of the two. These pairs and `parent` are all that have been found.
//
// Preamble: I O A Z multiply, the monoid, COLLECTS, MOST.

constexpr int EACH = 8; // entries a lane has in flight
constexpr int WARPS = 8;
constexpr int SAMPLE = 1024; // entries whose rows the floor is chosen from
constexpr int EARLY = 16;    // how many of them are better than the floor, at most
constexpr I NOTHING = (I)((u64)-1 >> (65 - 8 * sizeof(I)));

#include "closure_order.cuh"
#include "load_balance.cuh"

// (v, u): u is a parent of v, and not the least. Beyond MOST they are counted at most, not kept.
struct Others {
    u32 number;
    I pairs[2 * MOST];
};

// The tests along the edges of a row.
enum { LOOKS_IN = 1, LOOKS_OUT = 2 };

// The value of a row of M such that at most EARLY of SAMPLE of its entries lie in rows of better
// ones; `chosen` is 0 if hardly any row of a value has entries. One block.
extern "C" __global__ void __launch_bounds__(SAMPLE)
    parents_floor(i64 n, i64 m, const O* indptr, const Z* x, const u32* bits, Z* floor,
                  u32* chosen) {
    __shared__ Z values[SAMPLE];
    __shared__ u32 there[SAMPLE];
    const int t = threadIdx.x;
    const i64 e = m / SAMPLE * t + m % SAMPLE * t / SAMPLE;
    i64 low = 0, high = n;
    while (high - low > 1) {
        const i64 middle = (low + high) / 2;
        if ((i64)indptr[middle] <= e)
            low = middle;
        else
            high = middle;
    }
    const bool here = !bits || test_bit(bits, low);
    const Z mine = here ? x[low] : Z();
    values[t] = mine;
    there[t] = here;
    if (t == 0) *chosen = 0;
    __syncthreads();
    int before = 0, equal = 0;
    for (int k = 0; k < SAMPLE; k++) {
        before += there[k] && better(values[k], mine);
        equal += there[k] && values[k] == mine;
    }
    if (here && before <= EARLY && before + equal > EARLY) {
        *floor = mine; // equal values alone
        *chosen = 1;
    }
}

// Tests entries of the matrix M, for load_balance.cuh: its row i is row i of M.
struct ParentTester {
    const I* indices;
    const A* values;
    i64 every; // all bits set, or none where all entries have the value of the first
    const Z* x;
    const u32* bits; // of x, or null where it is full
    I* parent;
    Others* others;
    Z floor;
    bool pulls, pushes, bounded;
    i64 row;
    Z value;
    int looks;
    __device__ __forceinline__ bool has(i64 v) const { return !bits || test_bit(bits, v); }
    // u is a parent of v
    __device__ __forceinline__ void take_parent(I v, I u) {
        if constexpr (!COLLECTS) {
            atomicMin(parent + v, u);
        } else {
            const I old = atomicMin(parent + v, u);
            // an entry may be tested twice; where many vertices have several parents, all fail
            if (old == NOTHING || old == u || load_relaxed(&others->number) > MOST) return;
            const u32 place = atomicAdd(&others->number, 1u);
            if (place >= MOST) return;
            others->pairs[2 * place] = v;
            others->pairs[2 * place + 1] = old > u ? old : u;
        }
    }
    __device__ __forceinline__ void fetch(i64, bool) {}
    __device__ __forceinline__ O load(i64 i, int, O, bool here) {
        row = i;
        looks = 0;
        if (here && has(i)) {
            value = x[i];
            if (pulls && bounded) looks |= LOOKS_IN;
            if (pushes && (!bounded || better(value, floor))) looks |= LOOKS_OUT;
        }
        return 0;
    }
    template <bool ONE>
    __device__ __forceinline__ void take(const int (&owner)[EACH], const O (&entry)[EACH],
                                         const bool (&open)[EACH]) {
        const Z value_of_one = ONE ? shuffle(value, owner[0]) : value;
        const i64 row_of_one = ONE ? shuffle(row, owner[0]) : row;
        const int looks_of_one = ONE ? shuffle(looks, owner[0]) : looks;
        int how[EACH];
        I other[EACH];
        A a[EACH];
        Z mine[EACH], there[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const int wanted = ONE ? looks_of_one : shuffle(looks, owner[k]);
            how[k] = open[k] ? wanted : 0;
            a[k] = how[k] ? load_once(values + ((i64)entry[k] & every)) : A();
        }
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            mine[k] = ONE ? value_of_one : shuffle(value, owner[k]);
            // a product without an order, NaN, excludes nothing
            if (how[k] & LOOKS_IN &&
                better(mine[k], multiply(floor, a[k], (i64)0, (i64)0, (i64)0, (i64)0)))
                how[k] &= ~LOOKS_IN;
            other[k] = how[k] ? load_once(indices + entry[k]) : 0;
        }
#pragma unroll
        for (int k = 0; k < EACH; k++) there[k] = how[k] ? x[other[k]] : Z();
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const i64 i = ONE ? row_of_one : shuffle(row, owner[k]), j = other[k];
            if (i == j) how[k] = 0;
            if (how[k] & LOOKS_IN && multiply(there[k], a[k], (i64)0, j, j, i) == mine[k] && has(j))
                take_parent((I)i, (I)j);
            if (how[k] & LOOKS_OUT && multiply(mine[k], a[k], (i64)0, i, i, j) == there[k] &&
                has(j))
                take_parent((I)j, (I)i);
        }
    }
};

// Rows of M `pulls` (M is T) or `pushes` (M is A), both where A is its own transpose; without a
// floor nothing is pulled, and all rows are pushed. `parent` holds NOTHING before.
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    parents(i64 n, i64 m, const O* indptr, const I* indices, const A* values, u64 every, const Z* x,
            const u32* bits, const Z* floor, const u32* chosen, bool pulls, bool pushes, I* parent,
            Others* others) {
    __shared__ u32 lanes[WARPS][32];
    const bool bounded = chosen && *chosen;
    const Z bound = bounded ? *floor : Z();
    ParentTester tester = {indices, values, (i64)every, x,       bits, parent, others,
                           bound,   pulls,  pushes,     bounded, 0,    Z(),    0};
    walk_share<EACH>(indptr, n, 0, m, thread_id() >> 5, thread_count() >> 5, lanes[warp_id()],
                     tester);
}

// A bit for each vertex that has a parent, and how many there are.
extern "C" __global__ void __launch_bounds__(256)
    parents_bits(i64 n, const I* parent, u32* bits, u64* count) {
    const i64 words = (n + 31) / 32;
    u64 total = 0;
    for (i64 w = thread_id() >> 5; w < words; w += thread_count() >> 5) {
        const i64 v = 32 * w + lane_id();
        const u32 found = warp_ballot(v < n && parent[v < n ? v : 0] != NOTHING);
        if (lane_id() == 0) bits[w] = found;
        total += __popc(found);
    }
    if (lane_id() == 0 && total) atomicAdd(count, total);
}

// Take away the least parents of the vertices that have several, which are the first of `number`
// pairs: least[k] is that of pair k, or NOTHING where another pair of the vertex has it. A vertex
// without a parent ends a walk.
extern "C" __global__ void __launch_bounds__(256)
    parents_take(const Others* others, i64 number, I* parent, I* least) {
    for (i64 k = thread_id(); k < number; k += thread_count()) {
        const I old = (I)atomicExch((Bits<I>*)parent + others->pairs[2 * k], (Bits<I>)-1);
        least[k] = old < 0 ? NOTHING : old;
    }
}

// From `count` vertices along the parents: the vertex without one where each walk ends, and its
// steps; -1 where it is longer than `most`, or ends elsewhere.
extern "C" __global__ void __launch_bounds__(256)
    parents_walk(const I* from, i64 count, i64 most, const I* parent, I* end, i64* steps) {
    for (i64 k = thread_id(); k < count; k += thread_count()) {
        I v = from[k], next = parent[v];
        i64 step = 0;
        for (; next >= 0 && next != NOTHING && step < most; step++) next = parent[v = next];
        end[k] = v;
        steps[k] = next < 0 ? step : -1;
    }
}

extern "C" __global__ void __launch_bounds__(256)
    parents_put(const I* vertices, const I* parents_of, i64 count, I* parent) {
    for (i64 k = thread_id(); k < count; k += thread_count()) parent[vertices[k]] = parents_of[k];
}
