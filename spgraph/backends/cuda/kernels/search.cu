// The masked level iteration  q<!seen> = q (+.x) A  until q is empty: one cooperative launch for a whole search.
//
// A vertex is settled in one level, by all edges that reach it from the frontier of that level: `seen` is frozen while a
// level runs, and what the level finds is claimed in the bitmap `next`. (Without values there is nothing to combine, and a
// vertex is seen when it is found.) Every level takes one of three forms:
//   push   warps take equal shares of the frontier's edges; found vertices are staged in shared memory, and 128 of them get
//          their queue slots and edge offsets from one 64-bit atomic add, so that the next level's scanned degrees are
//          there when it starts (Merrill, Garland, Grimshaw 2015; Davidson et al. 2014);
//   pull   warps take words of the bitmap, line up the vertices that are still open, and look for the frontier among their
//          in-edges (Beamer, Asanovic, Patterson 2012), stopping where the monoid cannot change any more;
//   small  block 0 alone runs level after level in shared memory while the others wait: a road network has thousands of
//          levels too small for a grid barrier each.
//
// The preamble gives: I (ids), O (offsets), L (levels), A (matrix values), Z (search values); VALUES (0: levels only),
// ISO, FIRST (the first product decides: `any`, or the least id over sorted rows), TRACE; multiply, the monoid of
// common.cuh, PULL_PAYS, and SMALL (capacity of a frontier in shared memory).
//
// A search runs most of its code once or twice, so instructions that miss their cache cost more than those that run: the
// state lies in shared memory, where functions that are not inlined find it, and loops are unrolled only to overlap loads.

constexpr int THREADS = 1024;
constexpr int WARPS = THREADS / 32;
constexpr int STAGE = 256;        // found vertices a warp holds back; it hands on 128 at a time
constexpr int EACH = 4;           // edges a thread has in flight
constexpr int SMALL_EDGES = 8192; // a small level with more edges than this goes to the grid
constexpr int ENTER = SMALL / 2;  // so that a search does not flap between the two
constexpr int ENTER_EDGES = 4096;
constexpr int LIGHT =
    16; // in a small level: edges that four lanes walk; a heavier vertex gets a warp for each PIECE
constexpr int PIECE = 256;
constexpr int PIECES = SMALL + SMALL_EDGES / PIECE;
constexpr int PAIR = 2;        // edges a lane of a small level has in flight
constexpr int PROBES = 32;     // in-edges one lane looks at before its warp takes the row
constexpr int LONG_ROW = 8192; // in-edges one warp looks at before the grid takes the row
constexpr i64 STAY = 65536;    // frontier edges that turning a bitmap back into a queue is worth

enum Direction { AUTO = 0, PUSH = 1, PULL = 2 };

// The first in-edges of a row to look at, -1 behind the last; see heads.cu.
struct __align__(4 * sizeof(I)) Heads {
    I id[4];
};

struct Control { // zero at launch
    u64 packed
        [3]; // by round modulo 3: found vertices in the low bits, their edges in the high bits
    u64 converted; // the same for a frontier turned from bitmap to queue
    GridBarrier barrier;
    u64 long_rows[2]; // by round parity: rows left to the grid
    u64 probes[2];    // by round parity: in-edges looked at (TRACE)
    u64 covered;      // sources that have in-edges
    i64 state
        [5]; // what block 0 hands over after small levels: vertices, edges, depth, open vertices, open edges
    i64 depth, reached;
};

struct Search {
    i64 n, m, words, max_depth;
    const O* indptr; // out-edges
    const I* indices;
    const A* values;
    const O* t_indptr; // in-edges
    const I* t_indices;
    const A* t_values;
    const Heads* heads; // of the rows of in-edges, or null
    const u32*
        nonempty; // vertices with in-edges, the others can only be sources; null where nothing pulls
    L* level;
    Z* value;
    u32* seen;
    u32* frontier;
    u32* next;
    I* queue;
    O* offset;
    I* next_queue;
    O* next_offset;
    Control* control;
    i64* trace; // direction, frontier, edges looked at, ns; one row a level
    u64 since;
    u32 count_bits;
};

struct SmallFrontier {
    I vertex[SMALL];
    O start[SMALL], end[SMALL];
    u32 heavy
        [PIECES]; // pieces of the vertices with more than LIGHT edges: place in the low half, number in the high
};

struct SmallCount {
    u32 vertices, pieces, edges;
};

union Work {
    I stage[WARPS][STAGE];
    u32 hit[WARPS][32];
    SmallFrontier small[2];
};

__shared__ Search s;
__shared__ u64 block_sum[3];
__shared__ SmallCount small_count[3];
__shared__ u32 warp_count[WARPS];
__shared__ O warp_edges[WARPS];
extern __shared__ u64 work_memory[];

#define CALLED static __device__ __noinline__

DEVICE Work& work() { return *reinterpret_cast<Work*>(work_memory); }
DEVICE u32 lanes_below() { return (1u << lane_id()) - 1u; }
DEVICE int warp_id() { return threadIdx.x >> 5; }

// All blocks meet. True when one of them did not come: the caller leaves.
CALLED bool meet() { return !grid_barrier(&s.control->barrier, gridDim.x); }

// Meet, then exchange the roles of the arrays in every block.
template <class T>
DEVICE void swap(T*& x, T*& y) {
    T* z = x;
    x = y;
    y = z;
}
DEVICE void swap_bitmaps() {
    __syncthreads();
    if (threadIdx.x == 0) swap(s.frontier, s.next);
    __syncthreads();
}
DEVICE void swap_queues() {
    __syncthreads();
    if (threadIdx.x == 0) {
        swap(s.queue, s.next_queue);
        swap(s.offset, s.next_offset);
    }
    __syncthreads();
}

DEVICE bool can_be_found(i64 v) { return !s.nonempty || test_bit(s.nonempty, v); }

#include "nth_bit.cuh"

DEVICE Z nothing() {
#if VALUES
    return identity();
#else
    return Z();
#endif
}

DEVICE Z product(const A* values, i64 u, i64 v, i64 edge) {
#if VALUES
    return multiply(load_relaxed(&s.value[u]), values[ISO ? 0 : edge], (i64)0, u, u, v);
#else
    return Z();
#endif
}

// Exclusive scan over the block of (count, degree); gives this thread's place and adds to the totals.
CALLED void block_scan(u32 count, O degree, u32& slot, O& edge, u32& total, O& total_edges) {
    const int warp = warp_id(), lane = lane_id();
    const u32 counts = warp_scan(count);
    const O degrees = warp_scan(degree);
    if (lane == 31) {
        warp_count[warp] = counts;
        warp_edges[warp] = degrees;
    }
    __syncthreads();
    const u32 all_counts = warp_scan(warp_count[lane]);
    const O all_degrees = warp_scan(warp_edges[lane]);
    slot = total + counts - count;
    edge = total_edges + degrees - degree;
    if (warp) {
        slot += shuffle(all_counts, warp - 1);
        edge += shuffle(all_degrees, warp - 1);
    }
    total += shuffle(all_counts, 31);
    total_edges += shuffle(all_degrees, 31);
}

// ---- queues ----------------------------------------------------------------------------------------------------------

// Where found vertices go: the counter that allocates, the arrays, their level.
struct Target {
    u64* packed;
    I* queue;
    O* offset;
    L depth;
};

// The four vertices of this lane out of up to 128 that a warp has staged, and their degrees.
struct Four {
    I vertex[4];
    O degree[4], sum;
    int count;
    __device__ __forceinline__ Four(const I* staged, int all) {
        const int left = all - 4 * lane_id();
        count = left < 0 ? 0 : left < 4 ? left : 4;
        sum = 0;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            vertex[k] = k < count ? staged[4 * lane_id() + k] : 0;
            degree[k] = k < count ? s.indptr[vertex[k] + 1] - s.indptr[vertex[k]] : 0;
            sum += degree[k];
        }
    }
    __device__ __forceinline__ void write(const Target& to, u64 base, u32 slot, O edge) const {
        I* queue = to.queue + queue_count(base, s.count_bits) + slot;
        O* offset = to.offset + queue_count(base, s.count_bits) + slot;
        edge += (O)queue_edges(base, s.count_bits);
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (k < count) {
                queue[k] = vertex[k];
                offset[k] = edge;
                s.level[vertex[k]] = to.depth;
                edge += degree[k];
            }
    }
};

// A warp hands on 128 staged vertices: one atomic gives them their slots and offsets.
CALLED void release(const I* staged, const Target& to) {
    __syncwarp();
    const Four four(staged, 128);
    const O scanned = warp_scan(four.sum);
    u64 base = 0;
    if (lane_id() == 31) base = atomicAdd(to.packed, ((u64)scanned << s.count_bits) + 128);
    four.write(to, shuffle(base, 31), 4 * lane_id(), scanned - four.sum);
    __syncwarp();
}

// The whole block hands on what its warps have left: one atomic a block. At most 128 a warp.
CALLED void release_rest(const I* staged, int count, const Target& to) {
    __syncwarp();
    const Four four(staged, count);
    u32 slot, total = 0;
    O edge, edges = 0;
    block_scan(four.count, four.sum, slot, edge, total, edges);
    if (threadIdx.x == 0 && total)
        block_sum[0] = atomicAdd(to.packed, ((u64)edges << s.count_bits) + total);
    __syncthreads();
    four.write(to, block_sum[0], slot, edge);
    __syncthreads();
}

// What a warp has found and not yet handed on.
struct Stage {
    I* held;
    int count;
    __device__ __forceinline__ Stage() : held(work().stage[warp_id()]), count(0) {}
    __device__ __forceinline__ void add(bool found, I v, const Target& to) {
        const u32 who = __ballot_sync(FULL_WARP, found);
        if (found) held[count + __popc(who & lanes_below())] = v;
        count += __popc(who);
        if (count > STAGE - 32) {
            count -= 128;
            release(held + count, to);
        }
    }
    // every thread of the block calls
    __device__ __forceinline__ void finish(const Target& to) {
        if (count > 128) {
            count -= 128;
            release(held + count, to);
        }
        release_rest(held, count, to);
    }
};

// ---- push ------------------------------------------------------------------------------------------------------------

// The edges from -> v of up to EACH frontier edges of this lane, `open` where there is one: combine, and claim v.
DEVICE void reach(I (&from)[EACH], I (&v)[EACH], O (&where)[EACH], bool (&open)[EACH], Stage& stage,
                  const Target& to) {
    // each kind of access for all before the first is waited for
    u32 word[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) word[k] = s.seen[v[k] >> 5];
#if VALUES
    u32 claimed[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) claimed[k] = load_lagging(&s.next[v[k] >> 5]);
#endif
#pragma unroll
    for (int k = 0; k < EACH; k++) open[k] = open[k] && !((word[k] >> (v[k] & 31)) & 1u);
#if VALUES
    if constexpr (ADD_KIND != ADD_ANY) {
        // a sum that only moves one way needs no atomic where even an old one absorbs the product
        constexpr bool settles =
            ADD_KIND == ADD_MIN || ADD_KIND == ADD_MAX || ADD_KIND == ADD_OR || ADD_KIND == ADD_AND;
        Z old[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++)
            old[k] = settles && open[k] ? load_lagging(&s.value[v[k]]) : nothing();
#pragma unroll
        for (int k = 0; k < EACH; k++)
            if (open[k]) {
                const Z z = product(s.values, from[k], v[k], where[k]);
                if (!settles || add(old[k], z) != old[k]) combine(&s.value[v[k]], z);
            }
    }
    u32* claims = s.next;
#pragma unroll
    for (int k = 0; k < EACH; k++) open[k] = open[k] && !((claimed[k] >> (v[k] & 31)) & 1u);
#else
    u32* claims = s.seen;
#endif
#pragma unroll
    for (int k = 0; k < EACH; k++)
        word[k] = open[k] ? atomicOr(&claims[v[k] >> 5], 1u << (v[k] & 31)) >> (v[k] & 31) : 1u;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const bool found = !(word[k] & 1u);
#if VALUES
        if constexpr (ADD_KIND == ADD_ANY)
            if (found) store_relaxed(&s.value[v[k]], product(s.values, from[k], v[k], where[k]));
#endif
        stage.add(found, v[k], to);
    }
}

CALLED void push_level(i64 nf, i64 mf, L depth, u64* packed) {
    const Target to = {packed, s.next_queue, s.next_offset, depth};
    const int lane = lane_id();
    const i64 warps = (i64)gridDim.x * WARPS, me = (i64)warp_id() * gridDim.x + blockIdx.x;
    i64 share = (mf + warps - 1) / warps;
    share = (share + 31) / 32 * 32;
    const i64 begin = me * share, end = begin + share < mf ? begin + share : mf;
    Stage stage;

    // the last frontier vertex whose edges start at or before `begin`, 32 looks at a time
    i64 low = 0, high = begin < end ? nf : 0;
    while (high - low > 1) {
        const i64 step = (high - low + 31) / 32, i = low + lane * step;
        const int many = __popc(__ballot_sync(FULL_WARP, i < high && (i64)s.offset[i] <= begin));
        low += (many - 1) * step;
        high = low + step < high ? low + step : high;
    }

    i64 edge = begin;
    for (i64 window = low; edge < end; window += 32) {
        const i64 i = window + lane;
        O first = (O)mf, shift = 0;
        I u = 0;
        if (i < nf) {
            first = s.offset[i];
            u = s.queue[i];
            shift = s.indptr[u] - first;
        }
        const i64 next = window + 32 < nf ? (i64)s.offset[window + 32] : mf;
        const i64 stop = next < end ? next : end;
        for (; edge < stop; edge += 32 * EACH) {
            I v[EACH], from[EACH];
            O where[EACH];
            bool open[EACH];
            // a vertex of large degree owns all of these edges: then there is nothing to search
            const int one = warp_search(first, (O)edge);
            const O one_end = one < 31 ? shuffle(first, one + 1) : (O)next;
            const bool all = one_end - (O)edge >= 32 * EACH;
#pragma unroll
            for (int k = 0; k < EACH; k++) {
                const O x = (O)edge + 32 * k + lane;
                const int owner = all ? one : warp_search(first, x);
                where[k] = shuffle(shift, owner) + x;
                from[k] = shuffle(u, owner);
                open[k] = edge + 32 * k + lane < stop;
                v[k] = open[k] ? s.indices[where[k]] : 0;
            }
            reach(from, v, where, open, stage, to);
        }
        edge = stop;
    }
    stage.finish(to);
}

// ---- pull ------------------------------------------------------------------------------------------------------------

// One lane: combine u's product into `sum`; true where nothing further can change it.
DEVICE bool take(i64 u, i64 v, i64 edge, bool& found, Z& sum) {
    found = true;
#if VALUES
    sum = add(sum, product(s.t_values, u, v, edge));
    return FIRST || is_terminal(sum);
#else
    return true;
#endif
}

// One lane looks at up to PROBES in-edges of row v from `e` on.
DEVICE bool scan_start(i64 v, O& e, O end, bool& found, Z& sum, u32& probes) {
    bool stop = false;
    for (int k = 0; k < PROBES && !stop && e < end; k += EACH) {
        I u[EACH];
        bool here[EACH];
#pragma unroll
        for (int j = 0; j < EACH; j++) u[j] = j < end - e ? s.t_indices[e + j] : -1;
#pragma unroll
        for (int j = 0; j < EACH; j++) here[j] = u[j] >= 0 && test_bit(s.frontier, u[j]);
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            if (TRACE) probes += !stop && u[j] >= 0;
            if (!stop && here[j]) stop = take(u[j], v, e + j, found, sum);
        }
        e += EACH < end - e ? EACH : end - e;
    }
    return stop;
}

// A whole warp looks on from edge `e` of row v; true where nothing further can change the sum.
CALLED bool scan_row(i64 v, i64 e, i64 end, bool& found, Z& sum, u32& probes) {
    bool stop = false;
    for (; e < end && !stop; e += 64) {
        i64 u[2];
        bool here[2];
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const i64 x = e + 32 * k + lane_id();
            here[k] = x < end;
            u[k] = here[k] ? (i64)s.t_indices[x] : 0;
        }
#pragma unroll
        for (int k = 0; k < 2; k++) here[k] = here[k] && test_bit(s.frontier, u[k]);
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const i64 x = e + 32 * k + lane_id();
            const u32 who = __ballot_sync(FULL_WARP, here[k]);
            if (TRACE) probes += !stop && x < end;
            if (stop || !who) continue;
            if (FIRST || !VALUES) { // the least of the row: the lowest lane
                if (lane_id() == __ffs(who) - 1) take(u[k], v, x, found, sum);
                stop = true;
            } else {
                stop = __any_sync(FULL_WARP, here[k] && take(u[k], v, x, found, sum));
            }
        }
    }
    return stop;
}

// Adds this thread's counts to `packed` with one atomic a block.
CALLED void publish(u32 count, u64 edges, u32 probes, u64* packed, u64* all_probes) {
    if (threadIdx.x < 3) block_sum[threadIdx.x] = 0;
    __syncthreads();
    count = warp_sum(count);
    edges = warp_sum(edges);
    if (TRACE) probes = warp_sum(probes);
    if (lane_id() == 0 && count) {
        atomicAdd(&block_sum[0], (u64)count);
        atomicAdd(&block_sum[1], edges);
    }
    if (TRACE && lane_id() == 0 && probes) atomicAdd(&block_sum[2], (u64)probes);
    __syncthreads();
    if (threadIdx.x == 0 && block_sum[0])
        atomicAdd(packed, (block_sum[1] << s.count_bits) + block_sum[0]);
    if (TRACE && threadIdx.x == 0) atomicAdd(all_probes, block_sum[2]);
}

CALLED void pull_level(L depth, u64* packed, u64* long_rows, u64* all_probes) {
    const int lane = lane_id();
    // the warps of a block take neighbouring words
    const i64 warps = (i64)gridDim.x * WARPS, me = (i64)blockIdx.x * WARPS + warp_id();
    i64 batch = (s.words + warps - 1) / warps;
    batch = batch < 32 ? batch : 32;
    u64 edges = 0;
    u32 count = 0, probes = 0;
    u32* hit = work().hit[warp_id()];
    for (i64 begin = me * batch; begin < s.words; begin += warps * batch) {
        const i64 w = begin + lane;
        const bool mine = lane < batch && w < s.words;
        const u32 seen = mine ? s.seen[w] : 0;
        const u32 open = mine ? s.nonempty[w] & ~seen : 0;
        const int upto = warp_scan(__popc(open)), total = shuffle(upto, 31);
        hit[lane] = 0;
        __syncwarp();
        for (int base = 0; base < total; base += 32) {
            const int rank = base + lane;
            const bool active = rank < total;
            const int word = warp_search(upto - __popc(open), active ? rank : 0);
            const int before = shuffle(upto - __popc(open), word);
            const int bit = nth_bit(shuffle(open, word), active ? rank - before : 0);
            const I v = (I)(32 * (begin + word) + bit);
            O e = 0, end = 0;
            bool found = false, stop = false;
            Z sum = nothing();
            if (active) {
                e = s.t_indptr[v];
                end = s.t_indptr[v + 1];
            }
            if ((FIRST || !VALUES) && s.heads && active) {
                const Heads heads = s.heads[v];
                bool here[4];
                here[0] = test_bit(s.frontier, heads.id[0]);
#pragma unroll
                for (int k = 1; k < 4; k++)
                    here[k] = !here[0] && heads.id[k] >= 0 && test_bit(s.frontier, heads.id[k]);
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    if (TRACE) probes += !stop && heads.id[k] >= 0;
                    if (!stop && here[k]) stop = take(heads.id[k], v, e + k, found, sum);
                }
                // with values the heads are the row's own first entries; else any four
                if (end - e <= 4)
                    e = end;
                else if (VALUES)
                    e += 4;
            }
            if (!stop) stop = scan_start(v, e, end, found, sum, probes);
            // rows that go on get the warp one after the other, and what it does not finish gets the grid
            for (u32 left = __ballot_sync(FULL_WARP, !stop && e < end); left; left &= left - 1) {
                const int which = __ffs(left) - 1;
                const O from = shuffle(e, which), all = shuffle(end, which);
                const O to = all - from > LONG_ROW ? from + LONG_ROW : all;
                bool row_found = found && lane == which;
                Z row_sum = row_found ? sum : nothing();
                const bool done = scan_row(shuffle(v, which), from, to, row_found, row_sum, probes);
                if (!done && to < all && lane == which) {
                    const u64 k = atomicAdd(long_rows, 1ull);
                    s.next_queue[k] = v; // the queues are free while a level pulls
                    s.next_offset[k] = to;
                }
                const u32 who = __ballot_sync(FULL_WARP, row_found);
                if (!who) continue;
#if VALUES
                row_sum = FIRST ? shuffle(row_sum, __ffs(who) - 1) : warp_combine(row_sum);
#endif
                if (lane == which) {
                    found = true;
                    sum = row_sum;
                }
            }
            if (found) { // of a row left to the grid, what this lane has is what the grid combines the rest into
                atomicOr(&hit[word], 1u << bit);
                s.level[v] = depth;
#if VALUES
                s.value[v] = sum;
#endif
                edges += (u64)(s.indptr[v + 1] - s.indptr[v]);
                count++;
            }
        }
        __syncwarp();
        if (mine) {
            const u32 bits = hit[lane];
            s.next[w] = bits;
            if (bits) s.seen[w] = seen | bits;
        }
        __syncwarp();
    }
    publish(count, edges, probes, packed, all_probes);
}

// The rows that pull_level left to the grid, after all blocks have met.
CALLED void pull_long_rows(i64 rows, L depth, u64* packed, u64* all_probes) {
    const i64 warps = (i64)gridDim.x * WARPS, me = (i64)blockIdx.x * WARPS + warp_id();
    u64 edges = 0;
    u32 count = 0, probes = 0;
    for (i64 r = 0; r < rows; r++) {
        const I v = s.next_queue[r];
        const i64 end = s.t_indptr[v + 1];
        for (i64 e = (i64)s.next_offset[r] + 1024 * me; e < end; e += 1024 * warps) {
            if (!VALUES && (load_relaxed(&s.next[v >> 5]) >> (v & 31)) & 1u) break;
            bool found = false;
            Z sum = nothing();
            scan_row(v, e, e + 1024 < end ? e + 1024 : end, found, sum, probes);
            const bool any = __any_sync(FULL_WARP, found);
            if (found) {
                const bool first = set_bit(s.next, v);
#if VALUES
                if constexpr (ADD_KIND == ADD_ANY) {
                    if (first) store_relaxed(&s.value[v], sum);
                } else {
                    combine(&s.value[v], sum);
                }
#endif
                if (first) {
                    atomicOr(&s.seen[v >> 5], 1u << (v & 31));
                    s.level[v] = depth;
                    edges += (u64)(s.indptr[v + 1] - s.indptr[v]);
                    count++;
                }
            }
            if (any && (FIRST || !VALUES))
                break; // what this warp would see later lies further back in the row
        }
    }
    publish(count, edges, probes, packed, all_probes);
}

// ---- small levels ----------------------------------------------------------------------------------------------------

CALLED void record(i64 depth, i64 direction, i64 frontier, i64 edges) {
    if (!s.trace) return; // a run that only counts the levels
    const u64 now = globaltimer();
    i64* row = s.trace + 4 * depth;
    row[0] = direction;
    row[1] = frontier;
    row[2] = edges;
    row[3] = (i64)(now - s.since);
    s.since = now;
}

// Put the found vertices, with their edges first to last, into a frontier in shared memory; what does not fit goes to the
// queue. A warp calls.
DEVICE void small_add(SmallFrontier& to, SmallCount& count, const bool (&found)[PAIR],
                      const I (&v)[PAIR], const O (&first)[PAIR], const O (&last)[PAIR]) {
    u32 who[PAIR], all = 0, edges = 0;
#pragma unroll
    for (int k = 0; k < PAIR; k++) {
        who[k] = __ballot_sync(FULL_WARP, found[k]);
        all += __popc(who[k]);
        const O degree = last[k] - first[k];
        if (found[k]) edges += degree < SMALL_EDGES ? (u32)degree : SMALL_EDGES + 1u;
    }
    if (!all) return;
    edges = __reduce_add_sync(FULL_WARP, edges);
    u32 slot = 0;
    if (lane_id() == 0) {
        slot = atomicAdd(&count.vertices, all);
        atomicAdd(&count.edges, edges);
    }
    slot = shuffle(slot, 0);
#pragma unroll
    for (int k = 0; k < PAIR; k++) {
        const u32 place = slot + __popc(who[k] & lanes_below());
        slot += __popc(who[k]);
        if (!found[k]) continue;
        if (place < SMALL) {
            to.vertex[place] = v[k];
            to.start[place] = first[k];
            to.end[place] = last[k];
            const O degree = last[k] - first[k];
            if (degree > LIGHT &&
                degree <= SMALL_EDGES) { // with a larger one there is no next small level
                const u32 pieces = ((u32)degree + PIECE - 1) / PIECE;
                const u32 at = atomicAdd(&count.pieces, pieces);
                for (u32 p = 0; p < pieces && at + p < PIECES; p++)
                    to.heavy[at + p] = place | p << 16;
            }
        } else {
            s.queue[place] = v[k];
        }
    }
}

// One level of block 0: four lanes walk the edges of a light vertex, a warp those of a piece of a heavy one. The chain of
// accesses that wait for each other, and the instructions between them, are the time of a level: the id of the neighbour,
// the atomic that claims it, its place in the next frontier.
DEVICE void small_level(const SmallFrontier& from, SmallFrontier& to, const SmallCount& size,
                        SmallCount& count, L depth) {
    constexpr u32 GROUP = 32 / 4 * PAIR; // light vertices of a warp
    const u32 light = (size.vertices + GROUP - 1) / GROUP, tasks = light + size.pieces;
#if VALUES // what the last level claimed is seen from now on
    for (u32 i = threadIdx.x; i < size.vertices; i += THREADS) {
        const I v = from.vertex[i];
        atomicOr(&s.seen[v >> 5], 1u << (v & 31));
        atomicAnd(&s.next[v >> 5], ~(1u << (v & 31)));
    }
    __syncthreads();
    u32* const claims = s.next;
#else
    u32* const claims = s.seen;
#endif
    const I* const indices = s.indices;
    const O* const indptr = s.indptr;
    for (u32 task = warp_id(); task < tasks; task += WARPS) {
        const bool heavy = task >= light;
        const u32 piece = heavy ? from.heavy[task - light] : 0;
        I u[PAIR];
        O e[PAIR], end[PAIR];
#pragma unroll
        for (int k = 0; k < PAIR; k++) {
            const u32 i = heavy ? piece & 0xffff : GROUP * task + 8 * k + lane_id() / 4;
            e[k] = end[k] = 0;
            if (i >= size.vertices) continue;
            u[k] = from.vertex[i];
            const O start = from.start[i], stop = from.end[i];
            if (heavy) {
                const O offset = (O)(piece >> 16) * PIECE;
                e[k] = start + offset + 32 * k + lane_id();
                end[k] = stop - start - offset > PIECE ? start + offset + PIECE : stop;
            } else if (stop - start <= LIGHT) {
                e[k] = start + (lane_id() & 3);
                end[k] = stop;
            }
        }
        const int stride = heavy ? 32 * PAIR : 4;
        while (__any_sync(FULL_WARP, e[0] < end[0] || e[1] < end[1])) {
            I v[PAIR];
            bool found[PAIR];
            u32 word[PAIR];
            O first[PAIR], last[PAIR];
#pragma unroll
            for (int k = 0; k < PAIR; k++) {
                found[k] = e[k] < end[k];
                v[k] = found[k] ? indices[e[k]] : 0;
            }
#if VALUES
#pragma unroll
            for (int k = 0; k < PAIR; k++)
                word[k] = found[k] ? load_relaxed(&s.seen[v[k] >> 5]) : 0;
#pragma unroll
            for (int k = 0; k < PAIR; k++) {
                found[k] = found[k] && !((word[k] >> (v[k] & 31)) & 1u);
                if (ADD_KIND != ADD_ANY && found[k])
                    combine(&s.value[v[k]], product(s.values, u[k], v[k], e[k]));
            }
#endif
            // the row is wanted only of those that are found, but waiting to know costs more than looking
#pragma unroll
            for (int k = 0; k < PAIR; k++) {
                word[k] = found[k] ? atomicOr(&claims[v[k] >> 5], 1u << (v[k] & 31)) : FULL_WARP;
                first[k] = found[k] ? indptr[v[k]] : 0;
                last[k] = found[k] ? indptr[v[k] + 1] : 0;
            }
#pragma unroll
            for (int k = 0; k < PAIR; k++) {
                found[k] = !((word[k] >> (v[k] & 31)) & 1u);
                if (found[k]) {
                    s.level[v[k]] = depth;
#if VALUES
                    if (ADD_KIND == ADD_ANY)
                        store_relaxed(&s.value[v[k]], product(s.values, u[k], v[k], e[k]));
#endif
                }
                e[k] += stride;
            }
            small_add(to, count, found, v, first, last);
        }
    }
}

// Block 0 runs levels until the frontier outgrows it, and leaves the last one in `queue` and `offset`. The first is the queue,
// or the sources if there are any; `open_edges` counts its edges as open still.
CALLED void small_levels(const I* sources, const Z* source_values, i64 nf, i64 depth, i64 left,
                         i64 open_edges) {
    SmallFrontier* frontier = work().small;
    SmallCount* count = small_count;
    if (threadIdx.x < 9) reinterpret_cast<u32*>(count)[threadIdx.x] = 0;
    __syncthreads();
    for (i64 base = 32 * warp_id(); base < nf; base += THREADS) {
        const i64 i = base + lane_id();
        I v[PAIR] = {};
        O first[PAIR] = {}, last[PAIR] = {};
        const bool found[PAIR] = {i < nf};
        if (found[0]) {
            v[0] = sources ? sources[i] : s.queue[i];
            first[0] = s.indptr[v[0]];
            last[0] = s.indptr[v[0] + 1];
            if (sources) {
                atomicOr(&s.seen[v[0] >> 5], 1u << (v[0] & 31));
                s.level[v[0]] = 0;
#if VALUES
                s.value[v[0]] = source_values[i];
#endif
                if (can_be_found(v[0])) atomicAdd(&s.control->covered, 1ull);
            }
        }
        small_add(frontier[0], count[0], found, v, first, last);
    }
    __syncthreads();
    if (sources) left -= (i64)load_relaxed(&s.control->covered);
    int side = 0, turn = 0;
    while (count[turn].vertices && left > 0 && depth < s.max_depth &&
           count[turn].vertices <= SMALL && count[turn].edges <= SMALL_EDGES) {
        const int next = turn == 2 ? 0 : turn + 1, after = next == 2 ? 0 : next + 1;
        small_level(frontier[side], frontier[side ^ 1], count[turn], count[next], (L)(depth + 1));
        if (threadIdx.x < 3) (&count[after].vertices)[threadIdx.x] = 0;
        __syncthreads();
        if (threadIdx.x == 0) {
            if (TRACE) record(depth, PUSH, count[turn].vertices, count[turn].edges);
            store_relaxed(&s.control->barrier.heartbeat, (u64)depth);
        }
        left -= count[next].vertices;
        open_edges -= count[turn].edges; // exact: the level fitted
        depth++;
        side ^= 1;
        turn = next;
    }
    // the queue with its scanned degrees
    const u32 vertices = count[turn].vertices;
    u32 slot, total = 0;
    O place, edges = 0;
    for (u32 base = 0; base < vertices; base += THREADS) {
        const u32 i = base + threadIdx.x;
        const I v = i < vertices ? (i < SMALL ? frontier[side].vertex[i] : s.queue[i]) : 0;
        const O degree = i < vertices ? s.indptr[v + 1] - s.indptr[v] : 0;
        block_scan(i < vertices, degree, slot, place, total, edges);
        if (i < vertices) {
            s.queue[i] = v;
            s.offset[i] = place;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        i64* state = s.control->state;
        state[0] = vertices;
        state[1] = (i64)edges;
        state[2] = depth;
        state[3] = left;
        state[4] = open_edges - (i64)edges;
    }
}

// ---- what happens once -----------------------------------------------------------------------------------------------

// The sources enter the queue as level 0.
CALLED void start(const I* sources, const Z* source_values, i64 number) {
    const Target to = {&s.control->packed[0], s.queue, s.offset, 0};
    Stage stage;
    u32 covered = 0;
    for (i64 base = thread_id() - lane_id(); base < number; base += thread_count()) {
        const i64 i = base + lane_id();
        const bool ok = i < number;
        const I v = ok ? sources[i] : 0;
        if (ok) {
            atomicOr(&s.seen[v >> 5], 1u << (v & 31));
#if VALUES
            s.value[v] = source_values[i];
#endif
            covered += can_be_found(v);
        }
        stage.add(ok, v, to);
    }
    stage.finish(to);
    if (covered) atomicAdd(&s.control->covered, (u64)covered);
}

// The queue becomes seen, and the bitmap `next` what the coming level needs: the frontier to pull from, or all clear.
CALLED void settle(i64 nf, bool pull) {
    for (i64 i = thread_id(); i < nf; i += thread_count()) {
        const I v = s.queue[i];
        const u32 bit = 1u << (v & 31);
        if (VALUES) atomicOr(&s.seen[v >> 5], bit);
        if (pull)
            atomicOr(&s.next[v >> 5], bit);
        else
            s.next[v >> 5] = 0;
    }
}

// The bitmap `frontier` becomes the queue; the other bitmap becomes the empty `next`.
CALLED void convert(L depth) {
    const Target to = {&s.control->converted, s.queue, s.offset, depth};
    Stage stage;
    for (i64 begin = thread_id() - lane_id(); begin < s.words; begin += thread_count()) {
        const i64 w = begin + lane_id();
        u32 bits = 0;
        if (w < s.words) {
            bits = s.frontier[w];
            s.next[w] = 0;
        }
        for (u32 who = __ballot_sync(FULL_WARP, bits); who; who &= who - 1) {
            const int k = __ffs(who) - 1;
            const bool found = (shuffle(bits, k) >> lane_id()) & 1u;
            stage.add(found, (I)(32 * (begin + k) + lane_id()), to);
        }
    }
    stage.finish(to);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    search(i64 n, i64 m, const O* indptr, const I* indices, const A* values, const O* t_indptr,
           const I* t_indices, const A* t_values, const Heads* heads, const u32* nonempty,
           i64 findable, const I* sources, const Z* source_values, i64 number_of_sources, L* level,
           Z* value, u32* seen, u32* bitmaps, I* queues, O* offsets, Control* control,
           u32 count_bits, int direction, i64 max_depth, i64* trace) {
    const i64 words = (n + 31) / 32;
    if (threadIdx.x == 0)
        s = {n,        m,         words,           max_depth, indptr,   indices,    values,
             t_indptr, t_indices, t_values,        heads,     nonempty, level,      value,
             seen,     bitmaps,   bitmaps + words, queues,    offsets,  queues + n, offsets + n,
             control,  trace,     globaltimer(),   count_bits};
    __syncthreads();

    const i64 thread = thread_id(), threads = thread_count();
    for (i64 w = thread; w < words; w += threads) {
        seen[w] = 0;
        bitmaps[w] = 0;
        bitmaps[words + w] = 0;
    }
#if VALUES
    if constexpr (ADD_KIND != ADD_ANY)
        for (i64 v = thread; v < n; v += threads) value[v] = identity();
#endif
    if (meet()) return;

    // a few sources start block 0 alone
    bool small = number_of_sources <= ENTER && direction != PULL;
    i64 depth = 0, round = 0, nf = number_of_sources, mf = 0, left = findable, open_edges = m;
    if (!small) {
        start(sources, source_values, number_of_sources);
        if (meet()) return;
        mf = (i64)queue_edges(load_relaxed(&control->packed[0]), count_bits);
        left -= (i64)load_relaxed(&control->covered);
        open_edges -= mf;
    }
    bool queued = true; // the frontier lies in `queue` (else in the bitmap `frontier`)
    while (small || (nf > 0 && mf > 0 && left > 0 && depth < max_depth)) {
        if (small) {
            if (blockIdx.x == 0)
                small_levels(sources, source_values, nf, depth, left, open_edges + mf);
            sources = nullptr;
            if (meet()) return;
            nf = load_relaxed(&control->state[0]);
            mf = load_relaxed(&control->state[1]);
            depth = load_relaxed(&control->state[2]);
            left = load_relaxed(&control->state[3]);
            open_edges = load_relaxed(&control->state[4]);
            small = false;
            continue;
        }
        small = direction != PULL && nf <= ENTER && mf <= ENTER_EDGES;
        // out-edges of open vertices are their in-edges only in a symmetric graph
        const bool pull =
            direction == PULL ||
            (direction == AUTO && !(queued && small) &&
             PULL_PAYS(mf + (queued ? 0 : STAY), left, (t_indptr == indptr ? open_edges : m), m));
        small = small && !pull;
        if (thread == 0) {
            control->packed[(round + 2) % 3] = 0;
            control->long_rows[(round + 1) & 1] = 0;
            control->probes[(round + 1) & 1] = 0;
        }
        if (queued && (pull || VALUES)) {
            settle(nf, pull);
            if (meet()) return;
            if (pull) swap_bitmaps();
        } else if (!queued && !pull) {
            convert((L)depth);
            if (meet()) return;
            if (thread == 0) control->converted = 0;
        }
        queued = !pull;
        if (small) continue;

        u64* packed = &control->packed[(round + 1) % 3];
        u64* long_rows = &control->long_rows[round & 1];
        u64* probes = &control->probes[round & 1];
        round++;
        if (pull) {
            pull_level((L)(depth + 1), packed, long_rows, probes);
            if (meet()) return;
            const i64 rows = (i64)load_relaxed(long_rows);
            if (rows) {
                pull_long_rows(rows, (L)(depth + 1), packed, probes);
                if (meet()) return;
            }
            swap_bitmaps();
        } else {
            push_level(nf, mf, (L)(depth + 1), packed);
            if (meet()) return;
            swap_queues();
        }
        if (TRACE && thread == 0)
            record(depth, pull ? PULL : PUSH, nf, pull ? (i64)load_relaxed(probes) : mf);
        const u64 found = load_relaxed(packed);
        nf = (i64)queue_count(found, count_bits);
        mf = (i64)queue_edges(found, count_bits);
        left -= nf;
        open_edges -= mf;
        depth++;
    }
    if (VALUES && queued) // the last level's vertices are claimed, but not settled
        for (i64 i = thread; i < nf; i += threads)
            atomicOr(&seen[s.queue[i] >> 5], 1u << (s.queue[i] & 31));
    if (thread == 0) {
        control->depth = depth;
        control->reached =
            number_of_sources + findable - (i64)load_relaxed(&control->covered) - left;
    }
}
