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
// Preamble: I O A Z multiply, the monoid, COLLECTS, MOST, COUNTING.

constexpr int EACH = 8; // entries a lane has in flight
constexpr int WARPS = 8;
#ifndef CHUNK_ENTRIES // that a warp takes at a time, at most
#define CHUNK_ENTRIES (1 << 14)
#endif
constexpr int SAMPLE = 1024; // entries whose rows the floor is chosen from
constexpr int EARLY = 16;    // how many of them are better than the floor, at most
// candidates that a warp tests at a time, and keeps at most: a block has up to 38 kB of them
constexpr int BATCH = sizeof(Z) + sizeof(I) + sizeof(O) > 12 ? 64 : 128, SHARE = BATCH / 32;
constexpr int TRIES = BATCH + 128;
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

// No vertex has a parent yet, but for the source, if there is one: itself. Where the values count edges
// in their low bits, COUNTING of them, `distance` gets the rest, and `parent_bits` what `bits` has.
extern "C" __global__ void __launch_bounds__(256)
    parents_start(i64 n, const I* source, I* parent, const Z* x, const u32* bits, Z* distance,
                  u32* parent_bits) {
    const i64 root = source ? *source : -1;
    for (i64 v = thread_id(); v < n; v += thread_count()) {
        parent[v] = v == root ? (I)v : NOTHING;
#if COUNTING
        distance[v] = x[v] >> COUNTING;
        if (v < (n + 31) / 32) parent_bits[v] = bits[v];
#endif
    }
}

// The value of a row of M such that at most EARLY of SAMPLE of its entries lie in rows of better
// ones; `chosen` is 0 if hardly any row of a value has entries. One block.
extern "C" __global__ void __launch_bounds__(SAMPLE)
    parents_floor(i64 n, i64 m, const O* indptr, const Z* x, const u32* bits, Z* floor,
                  u32* chosen) {
    __shared__ Z values[SAMPLE];
    __shared__ u32 there[SAMPLE];
    const int t = threadIdx.x;
    const i64 e = m / SAMPLE * t + m % SAMPLE * t / SAMPLE;
    const i64 row = lower_bound(indptr, n, e + 1) - 1; // the last one that starts by e
    const bool here = !bits || test_bit(bits, row);
    const Z mine = here ? x[row] : Z();
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

// Entries that a warp still has to test.
struct Candidates {
    Z value[TRIES]; // of the row
    I row[TRIES];
    O entry[TRIES];
};

struct State { // of a launch; in shared memory, for functions that are not inlined
    const I* indices;
    const A* values;
    u64 every; // all bits set, or none where all entries have the value of the first
    const Z* x;
    const u32* bits; // of x, or null where it is full
    I* parent;
    Others* others;
    Z floor;
    bool pulls, pushes, bounded;
    Candidates candidates[WARPS];
};

__shared__ State s;

DEVICE bool has(i64 v) { return !s.bits || test_bit(global(s.bits), v); }
DEVICE A value_of(O entry) { return load_once(global(s.values) + ((i64)entry & (i64)s.every)); }

// The tests along the edges of a row of such a value.
DEVICE int looks_from(Z value) {
    const int in = s.pulls && s.bounded ? LOOKS_IN : 0;
    return s.pushes && (!s.bounded || better(value, s.floor)) ? in | LOOKS_OUT : in;
}

// Keep that u is a parent of v, and not the least; where many vertices have several, all fail.
DEVICE void keep_other(Others* others, I v, I u) {
    if (load_relaxed(&others->number) > MOST) return;
    const u32 place = atomicAdd(&others->number, 1u);
    if (place >= MOST) return;
    others->pairs[2 * place] = v;
    others->pairs[2 * place + 1] = u;
}

// u is a parent of v.
DEVICE void take_parent(I v, I u) {
    const I old = atomicMin(global(s.parent) + v, u);
    if constexpr (COLLECTS) // an entry may be tested twice
        if (old != NOTHING && old != u) keep_other(s.others, v, old > u ? old : u);
}

// Test `count` entries that the warp keeps, at most BATCH.
CALLED void test(int from, int count) {
    const Candidates& candidates = s.candidates[warp_id()];
    I i[SHARE], j[SHARE];
    A a[SHARE];
    Z mine[SHARE], there[SHARE];
    warp_sync();
#pragma unroll
    for (int k = 0; k < SHARE; k++) {
        const int at = 32 * k + lane_id();
        const bool open = at < count;
        const O entry = open ? candidates.entry[from + at] : 0;
        i[k] = open ? candidates.row[from + at] : 0;
        mine[k] = open ? candidates.value[from + at] : Z();
        j[k] = open ? load_once(global(s.indices) + entry) : 0; // of a lane without one as its row
        a[k] = open ? value_of(entry) : A();
    }
#pragma unroll
    for (int k = 0; k < SHARE; k++) there[k] = i[k] != j[k] ? global(s.x)[j[k]] : Z();
#pragma unroll
    for (int k = 0; k < SHARE; k++) {
        const i64 v = i[k], u = j[k];
        if (u == v || !has(u)) continue;
        const int looks = looks_from(mine[k]);
        if (looks & LOOKS_IN && multiply(there[k], a[k], (i64)0, u, u, v) == mine[k])
            take_parent(i[k], j[k]);
        if (looks & LOOKS_OUT && multiply(mine[k], a[k], (i64)0, v, v, u) == there[k])
            take_parent(j[k], i[k]);
    }
    warp_sync();
}

// Takes entries of the matrix M, for load_balance.cuh: its row i is row i of M. A warp streams their
// values, and keeps the entries that these do not exclude until a batch is full: so loads of values
// wait for none of the few entries that are tested.
struct Filter {
    Candidates& candidates;
    I row;
    Z value;
    int looks, tries;
    __device__ __forceinline__ void fetch(i64, bool) {}
    __device__ __forceinline__ O load(i64 i, int, O, bool here) {
        row = (I)i;
        looks = 0;
        if (here && has(i)) {
            value = global(s.x)[i];
            looks = looks_from(value);
        }
        return 0;
    }
    template <bool ONE>
    __device__ __forceinline__ void take(const int (&owner)[EACH], const O (&entry)[EACH],
                                         const bool (&open)[EACH]) {
        const Z value_of_one = ONE ? shuffle(value, owner[0]) : value;
        const I row_of_one = ONE ? shuffle(row, owner[0]) : row;
        const int looks_of_one = ONE ? shuffle(looks, owner[0]) : looks;
        int how[EACH];
        A a[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const int wanted = ONE ? looks_of_one : shuffle(looks, owner[k]);
            how[k] = open[k] ? wanted : 0;
            a[k] = how[k] == LOOKS_IN ? value_of(entry[k]) : A();
        }
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const I i = ONE ? row_of_one : shuffle(row, owner[k]);
            const Z mine = ONE ? value_of_one : shuffle(value, owner[k]);
            // a product without an order, NaN, excludes nothing
            const Z bound = multiply(s.floor, a[k], (i64)0, (i64)0, (i64)0, (i64)0);
            const bool excluded = how[k] == LOOKS_IN && better(mine, bound);
            const int place = place_after(how[k] && !excluded, tries);
            if (place >= 0) {
                candidates.value[place] = mine;
                candidates.row[place] = i;
                candidates.entry[place] = entry[k];
            }
            if (k % 4 == 3)
#pragma unroll 1
                while (tries >= BATCH) {
                    tries -= BATCH;
                    test(tries, BATCH);
                }
        }
    }
};

// Rows of M `pulls` (M is T) or `pushes` (M is A), both where A is its own transpose; without a
// floor nothing is pulled, and all rows are pushed. `parent` holds NOTHING before.
extern "C" __global__ void __launch_bounds__(32 * WARPS, 4)
    parents(i64 n, i64 m, const O* indptr, const I* indices, const A* values, u64 every, const Z* x,
            const u32* bits, const Z* floor, const u32* chosen, bool pulls, bool pushes, I* parent,
            Others* others) {
    __shared__ u32 lanes[WARPS][32];
    const int warp = warp_id();
    if (threadIdx.x == 0) {
        s.indices = indices;
        s.values = values;
        s.every = every;
        s.x = x;
        s.bits = bits;
        s.parent = parent;
        s.others = others;
        s.pulls = pulls;
        s.pushes = pushes;
        s.bounded = chosen && *chosen;
        s.floor = s.bounded ? *floor : Z();
    }
    __syncthreads();
    Filter filter = {s.candidates[warp], 0, Z(), 0, 0};
    // short shares, several for each warp: in a row that is better than the floor each entry is tested
    const i64 warps = thread_count() >> 5, equal = share_of(m, warps);
    const i64 share = equal < CHUNK_ENTRIES ? equal : CHUNK_ENTRIES;
    for (i64 begin = (thread_id() >> 5) * share; begin < m; begin += warps * share) {
        i64 window = row_at(indptr, n, begin);
        const i64 end = begin + share < m ? begin + share : m;
        walk<EACH>(indptr, n, m, window, begin, end, lanes[warp], filter);
        warp_sync();
    }
    if (filter.tries) test(0, filter.tries);
}

// A bit for each vertex that has a parent, and how many there are.
extern "C" __global__ void __launch_bounds__(256)
    parents_bits(i64 n, const I* parent, u32* bits, u64* count) {
    const u64 total = write_bits(n, bits, [=](i64 v) { return parent[v] != NOTHING; });
    if (lane_id() == 0 && total) atomicAdd(count, total);
}

// Of shards that have looked along their own edges: keep each parent that this one has found, where
// the least of all shards is another.
extern "C" __global__ void __launch_bounds__(256)
    parents_of_others(i64 n, const I* parent, const I* least, Others* others) {
    for (i64 v = thread_id(); v < n; v += thread_count())
        if (parent[v] != NOTHING && parent[v] != least[v]) keep_other(others, (I)v, parent[v]);
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
