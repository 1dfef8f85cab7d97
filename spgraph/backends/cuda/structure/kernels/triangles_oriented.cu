// The triangles of a symmetric pattern whose rows may be long: every edge is pointed to the end of
// higher degree, and at each edge the third vertices that both its ends lead to are counted. Preamble:
// types O I; WINDOW, SLOTS, SHORT, PART (below).
//
// Vertices are numbered by descending degree (`rank`). Row r of the oriented graph has the neighbours of
// lesser rank, in no order: at most sqrt(2 m) of m edges (Chiba and Nishizeki 1985), most of them
// of small rank. The first vertices are hubs: what they lead to is kept as bits of global memory, too.
// A row that is long is kept in shared memory, where a column is found in one step, and the rows that it
// leads to are read: of a hub whose bits are fewer words than it has columns, these, 32 columns at
// a time; of others the columns (bitmaps: Bisson and Fatica 2017; hashing: Pandey and others 2021). A
// row that is short is kept in a warp's registers, and at each hub that it leads to the bits of its other
// columns are read.

#include "rows.cuh"

constexpr int NONE = -1;

// The oriented graph. Hub r < hubs, at most WINDOW, a multiple of 32, leads to c where bit c of
// bits[r * (hubs / 32)], ... is set.
struct Oriented {
    const i64* starts;
    const int* columns;
    const u32* bits;
    int hubs;
};
DEVICE const u32* bits_of(const Oriented& g, int hub) { return g.bits + (i64)hub * (g.hubs >> 5); }

// ---- the oriented graph -------------------------------------------------------------------------

// rank[order[k]] = k.
extern "C" __global__ void __launch_bounds__(256) orient_ranks(const i64* order, i64 n, int* rank) {
    for (i64 k = thread_id(); k < n; k += thread_count()) rank[order[k]] = (int)k;
}

// The entries of A that lead to a vertex of lesser rank: counts[r] += their number in row r or, with
// FILL, their columns from starts[r] + counts[r] on, and the bits of hubs.
template <bool FILL>
DEVICE void orient(const O* indptr, const i64* tiles, const I* indices, i64 nvals, const int* rank,
                   const i64* starts, u32* counts, int* columns, u32* bits, int hubs) {
    const int lane = lane_id();
    for (i64 base = thread_id() & ~31ll; base < nvals; base += thread_count()) {
        const i64 e = base + lane;
        const bool there = e < nvals;
        const i64 row = there ? row_of(indptr, tiles, e) : -1;
        const int r = there ? rank[row] : 0, c = there ? rank[indices[e]] : 0;
        const bool kept = c < r;
        const u32 all = warp_ballot(kept);
        // entries of a row are neighbours: its first lane counts for all of its lanes
        const i64 before = shuffle_up(row, 1);
        const u32 begins = warp_ballot(lane == 0 || before != row);
        const u32 through = lanes_through(lane);
        const int first = 31 - __clz(begins & through);
        const u32 later = begins & ~through;
        const u32 upto = later ? (1u << (__ffs(later) - 1)) - 1 : lanes_through(WARP - 1);
        const u32 mine = all & upto & ~((1u << first) - 1);
        u32 at = 0;
        if (lane == first && mine) at = atomicAdd(counts + r, (u32)__popc(mine));
        if constexpr (FILL) {
            at = shuffle(at, first);
            if (kept) columns[starts[r] + at + __popc(mine & lanes_below())] = c;
            if (kept && r < hubs) atomicOr(bits + (i64)r * (hubs >> 5) + (c >> 5), 1u << (c & 31));
        }
    }
}
extern "C" __global__ void __launch_bounds__(256)
    orient_sizes(const O* indptr, const i64* tiles, const I* indices, i64 nvals, const int* rank,
                 u32* counts) {
    orient<false>(indptr, tiles, indices, nvals, rank, nullptr, counts, nullptr, nullptr, 0);
}
extern "C" __global__ void __launch_bounds__(256)
    orient_fill(const O* indptr, const i64* tiles, const I* indices, i64 nvals, const int* rank,
                const i64* starts, u32* counts, int* columns, u32* bits, int hubs) {
    orient<true>(indptr, tiles, indices, nvals, rank, starts, counts, columns, bits, hubs);
}

// ---- which rows, and by whom --------------------------------------------------------------------

// Rows of up to TINY entries are for 8 lanes, up to SHORT for a warp, others for blocks, PART entries for
// each.
constexpr int TINY = 8;
static_assert(SHORT <= WARP, "a lane keeps one entry");

// Rows for warps go to `few`, parts of longer ones to (task_row, task_part); found[0] and found[1] count
// them.
extern "C" __global__ void __launch_bounds__(256)
    triangle_tasks(const i64* starts, i64 n, int* few, int* task_row, int* task_part, u64* found) {
    for (i64 base = thread_id() & ~31ll; base < n; base += thread_count()) {
        const i64 r = base + lane_id();
        const i64 length = r < n ? starts[r + 1] - starts[r] : 0;
        const bool by_warp = length > TINY && length <= SHORT;
        const u32 warps = warp_ballot(by_warp);
        u64 at = 0;
        if (lane_id() == 0 && warps) at = atomicAdd(found, (u64)__popc(warps));
        at = shuffle(at, 0);
        if (by_warp) few[at + __popc(warps & lanes_below())] = (int)r;
        if (length > TINY && !by_warp) {
            const i64 parts = (length + PART - 1) / PART;
            const u64 first = atomicAdd(found + 1, (u64)parts);
            for (i64 k = 0; k < parts; k++) {
                task_row[first + k] = (int)r;
                task_part[first + k] = (int)k;
            }
        }
    }
}

// ---- short rows ---------------------------------------------------------------------------------

// The triangles of a row of up to WIDTH entries from `start` on, by an aligned group of WIDTH lanes, each
// of which keeps one. All 32 lanes call.
template <int WIDTH>
DEVICE u32 count_short(const Oriented& g, i64 start, int length) {
    const int lane = lane_id(), place = lane & (WIDTH - 1), group = lane - place;
    const int own = place < length ? g.columns[start + place] : NONE;
    u32 found = 0;
    // the loads of several hubs overlap
#pragma unroll 4
    for (int t = 0; t < WIDTH; t++) {
        const int c = shuffle(own, group + t);
        if (own != NONE && own < c && c < g.hubs)
            found += bits_of(g, c)[own >> 5] >> (own & 31) & 1;
    }
    const bool far = own >= g.hubs;
    const i64 begin = far ? g.starts[own] : 0, end = far ? g.starts[own + 1] : 0;
    if (!warp_any(far)) return found;
    for (int t = 0; t < WIDTH; t++) {
        i64 q = shuffle(begin, group + t) + place;
        const i64 stop = shuffle(end, group + t);
        for (; warp_any(q < stop); q += WIDTH) {
            const int k = q < stop ? g.columns[q] : NONE;
#pragma unroll
            for (int s = 0; s < WIDTH; s++) {
                const int other = shuffle(own, group + s);
                found += k != NONE && k == other;
            }
        }
    }
    return found;
}

// 8 lanes a row of all rows.
extern "C" __global__ void __launch_bounds__(256)
    triangles_tiny(const i64* starts, const int* columns, i64 n, const u32* bits, int hubs,
                   u64* total) {
    const Oriented g = {starts, columns, bits, hubs};
    u64 sum = 0;
    for (i64 base = thread_id() >> 5 << 2; base < n; base += thread_count() >> 3) {
        const i64 r = base + (lane_id() >> 3), start = r < n ? starts[r] : 0;
        const i64 length = r < n ? starts[r + 1] - start : 0;
        const bool live = length > 1 && length <= TINY;
        if (warp_any(live)) sum += count_short<TINY>(g, start, live ? (int)length : 0);
    }
    warp_add(total, sum);
}

// A warp a row of `few`.
extern "C" __global__ void __launch_bounds__(256)
    triangles_few(const i64* starts, const int* columns, const u32* bits, int hubs, const int* few,
                  const u64* found, u64* total) {
    const Oriented g = {starts, columns, bits, hubs};
    const i64 count = (i64)found[0], warps = thread_count() >> 5;
    u64 sum = 0;
    for (i64 t = thread_id() >> 5; t < count; t += warps) {
        const i64 r = few[t], start = starts[r];
        sum += count_short<WARP>(g, start, (int)(starts[r + 1] - start));
    }
    warp_add(total, sum);
}

// ---- long rows ----------------------------------------------------------------------------------

constexpr int BATCHED = 4; // loads that a lane has in flight

// A row, or a piece of one, in the shared memory of a block: columns below WINDOW as bits, the others
// in a hash table of 1 << hash_bits slots, if there are any.
struct Kept {
    u32* bits;
    int* keys;
    int hash_bits;
};

DEVICE u32 slot_of(const Kept& row, int c) { return (u32)c * 2654435769u >> (32 - row.hash_bits); }
DEVICE u32 slot_after(const Kept& row, u32 slot) {
    return (slot + 1) & ((1u << row.hash_bits) - 1);
}

DEVICE void keep(const Kept& row, int c) {
    if (c < WINDOW) {
        atomicOr(row.bits + (c >> 5), 1u << (c & 31));
        return;
    }
    u32 at = slot_of(row, c);
    while (atomicCAS(row.keys + at, NONE, c) != NONE) at = slot_after(row, at);
}
// Whether column k is kept; NONE is not.
DEVICE bool is_kept(const Kept& row, int k) {
    if ((u32)k < WINDOW) return row.bits[k >> 5] >> (k & 31) & 1;
    if (k == NONE || !row.hash_bits) return false;
    u32 at = slot_of(row, k);
    int found = row.keys[at];
    while (found != k && found != NONE) found = row.keys[at = slot_after(row, at)];
    return found == k;
}

// How many columns that `hub` leads to are kept, by a warp: a word of bits a lane.
DEVICE u32 count_hub(const Oriented& g, const Kept& row, int hub) {
    const u32* bits = bits_of(g, hub);
    const int words = (hub + 31) >> 5; // of the columns below hub
    u32 found = 0;
#pragma unroll 1
    for (int w = lane_id(); w < words; w += BATCHED * WARP) {
        u32 word[BATCHED];
#pragma unroll
        for (int n = 0; n < BATCHED; n++) word[n] = w + n * WARP < words ? bits[w + n * WARP] : 0;
#pragma unroll
        for (int n = 0; n < BATCHED; n++)
            if (w + n * WARP < words) found += __popc(word[n] & row.bits[w + n * WARP]);
    }
    return found;
}

// How many columns are kept of the rows that entries first, first + stride, ... before `last` lead to, by
// a warp: it loads 32 of these entries at a time, and takes those that lead to hubs one by one; of
// others groups of lanes read one row each.
DEVICE u32 count_long(const Oriented& g, const Kept& row, const int* entries, int first, int last,
                      int stride) {
    const int lane = lane_id();
    u32 found = 0;
#pragma unroll 1
    for (; first < last; first += WARP * stride) {
        const int e = first + lane * stride, j = e < last ? entries[e] : NONE;
        const i64 start = j != NONE ? g.starts[j] : 0;
        int length = j != NONE ? (int)(g.starts[j + 1] - start) : 0;
        // reading a word is no dearer than reading a column and looking it up
        const bool hub = j < g.hubs && j >> 5 < length;
#pragma unroll 1
        for (u32 rest = warp_ballot(hub); rest; rest &= rest - 1)
            found += count_hub(g, row, shuffle(j, __ffs(rest) - 1));
        if (hub) length = 0;
        const u32 all = reduce_add((u32)length), rows = (u32)__popc(warp_ballot(length > 0));
        if (!all) continue;
        // so many lanes a row that they load one of mean length in one batch
        int width = 1;
        while (width < WARP && BATCHED * width * rows < all) width *= 2;
        const int groups = WARP / width;
#pragma unroll 1
        for (int round = 0; round < width; round++) {
            const int source = round * groups + lane / width, end = shuffle(length, source);
            const int* list = g.columns + shuffle(start, source);
#pragma unroll 1
            for (int q = lane & (width - 1); q < end; q += BATCHED * width) {
                int k[BATCHED];
#pragma unroll
                for (int n = 0; n < BATCHED; n++)
                    k[n] = q + n * width < end ? list[q + n * width] : NONE;
#pragma unroll
                for (int n = 0; n < BATCHED; n++) found += is_kept(row, k[n]);
            }
        }
    }
    return found;
}

// Blocks take the parts of long rows one after the other. A row is kept as a whole, or, where its columns
// beyond WINDOW might not fit the table, in pieces. *ticket is 0 before.
extern "C" __global__ void __launch_bounds__(256)
    triangles_many(const i64* starts, const int* columns, const u32* hub_bits, int hubs,
                   const int* task_row, const int* task_part, const u64* found, u64* ticket,
                   u64* total) {
    __shared__ u32 bits[WINDOW / 32];
    __shared__ int keys[SLOTS];
    __shared__ i64 next;
    constexpr int MOST = SLOTS / 4 * 3;
    const Oriented g = {starts, columns, hub_bits, hubs};
    for (u32 w = threadIdx.x; w < WINDOW / 32; w += blockDim.x) bits[w] = 0;
    for (u32 s = threadIdx.x; s < SLOTS; s += blockDim.x) keys[s] = NONE;
    const i64 tasks = (i64)found[1];
    const int warps = blockDim.x >> 5;
    u64 sum = 0;
    for (;;) {
        if (threadIdx.x == 0) next = (i64)atomicAdd(ticket, 1ull);
        __syncthreads();
        const i64 task = next;
        if (task >= tasks) break;
        const int r = task_row[task];
        const int* entries = columns + starts[r];
        const int length = (int)(starts[r + 1] - starts[r]), first = task_part[task] * PART;
        const int last = first + PART < length ? first + PART : length;
        // columns are below r
        const int piece = r <= WINDOW || length <= MOST ? length : MOST;
        int hash_bits = 0;
        if (r > WINDOW)
            for (hash_bits = 5; 1 << hash_bits < SLOTS && 1 << hash_bits < 2 * piece;) hash_bits++;
        const Kept row = {bits, keys, hash_bits};
        for (int from = 0; from < length; from += piece) {
            const int to = from + piece < length ? from + piece : length;
            for (int x = from + threadIdx.x; x < to; x += blockDim.x) keep(row, entries[x]);
            __syncthreads();
            sum += count_long(g, row, entries, first + warp_id(), last, warps);
            __syncthreads();
            for (int x = from + threadIdx.x; x < to; x += blockDim.x) {
                const int c = entries[x];
                if (c < WINDOW) bits[c >> 5] = 0;
            }
            if (hash_bits)
                for (u32 at = threadIdx.x; at < 1u << hash_bits; at += blockDim.x) keys[at] = NONE;
            __syncthreads();
        }
    }
    warp_add(total, sum);
}
