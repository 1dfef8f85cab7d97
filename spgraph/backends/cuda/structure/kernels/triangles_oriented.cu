// The triangles of a symmetric pattern whose rows may be long: every edge is pointed to the end of
// higher degree, and at each edge the third vertices that both its ends lead to are counted. Preamble:
// types O I; SHORT, the longest row that a warp keeps.
//
// Vertices are numbered by descending degree (`rank`). Row r of the oriented graph has the neighbours of
// lesser rank, in no order: at most sqrt(2 m) of m edges (Chiba and Nishizeki 1985), most of them
// of small rank. A row is kept in shared memory, where a column is found in one step, and the rows that
// it leads to are read entry by entry (bitmaps: Bisson and Fatica 2017; hashing: Pandey and others 2021).

#include "rows.cuh"

constexpr int NONE = -1, BITS = 9; // 2^BITS slots for a row that a warp keeps
static_assert(4 * SHORT <= 1 << BITS, "a table is at most a quarter full");

// ---- the oriented graph -------------------------------------------------------------------------

// The entries of A that lead to a vertex of lesser rank: counts[r] += their number in row r or, with
// FILL, their columns from starts[r] + counts[r] on.
template <bool FILL>
DEVICE void orient(const O* indptr, const i64* tiles, const I* indices, i64 nvals, const int* rank,
                   const i64* starts, u32* counts, int* columns) {
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
        }
    }
}
extern "C" __global__ void __launch_bounds__(256)
    orient_sizes(const O* indptr, const i64* tiles, const I* indices, i64 nvals, const int* rank,
                 u32* counts) {
    orient<false>(indptr, tiles, indices, nvals, rank, nullptr, counts, nullptr);
}
extern "C" __global__ void __launch_bounds__(256)
    orient_fill(const O* indptr, const i64* tiles, const I* indices, i64 nvals, const int* rank,
                const i64* starts, u32* counts, int* columns) {
    orient<true>(indptr, tiles, indices, nvals, rank, starts, counts, columns);
}

// ---- which rows, and by whom --------------------------------------------------------------------

// The parts of a long row: one for every `share` entries that it reads.
DEVICE i64 parts_of(i64 work, i64 length, i64 share) {
    const i64 parts = (work + share - 1) / share;
    return parts < length ? parts : length;
}

// Rows for warps go to `few`, parts of others to (task_row, task_part); found[0] and found[1] count them.
// A row of one entry has no triangle. work[r] is the sum of the lengths of the rows that r leads to; a
// warp takes at most `most` of it, or `most_far` beyond the first `window` rows.
extern "C" __global__ void __launch_bounds__(256)
    triangle_tasks(const i64* starts, const i64* work, i64 n, i64 window, i64 most, i64 most_far,
                   i64 share, int* few, int* task_row, int* task_part, u64* found) {
    for (i64 base = thread_id() & ~31ll; base < n; base += thread_count()) {
        const i64 r = base + lane_id();
        const i64 length = r < n ? starts[r + 1] - starts[r] : 0, own = r < n ? work[r] : 0;
        const bool live = length > 1 && own > 0;
        const bool by_warp = live && length <= SHORT && own <= (r > window ? most_far : most);
        const u32 warps = warp_ballot(by_warp);
        u64 at = 0;
        if (lane_id() == 0 && warps) at = atomicAdd(found, (u64)__popc(warps));
        at = shuffle(at, 0);
        if (by_warp) few[at + __popc(warps & lanes_below())] = (int)r;
        if (live && !by_warp) {
            const i64 parts = parts_of(own, length, share);
            const u64 first = atomicAdd(found + 1, (u64)parts);
            for (i64 k = 0; k < parts; k++) {
                task_row[first + k] = (int)r;
                task_part[first + k] = (int)k;
            }
        }
    }
}

// ---- counting -----------------------------------------------------------------------------------

// The lanes for a row that is read: so many that they load one of mean length in one batch.
constexpr int BATCHED = 4;
DEVICE int lanes_for(i64 work, i64 entries) {
    int width = 1;
    while (width < 32 && BATCHED * width * entries < work) width *= 2;
    return width;
}

// How many entries of the rows that entries first, first + stride, ... before `last` lead to are in a
// row, by one warp: it loads 32 of these at a time, and groups of `width` lanes read one row each.
// has(column) says whether it is there; NONE is not.
template <class Has>
DEVICE u32 count_rows(const i64* starts, const int* columns, i64 first, i64 last, int stride,
                      int width, Has has) {
    const int lane = lane_id(), groups = 32 / width, offset = lane & (width - 1);
    u32 found = 0;
    for (; first < last; first += 32 * stride) {
        const i64 e = first + (i64)lane * stride;
        i64 start = 0, stop = 0;
        if (e < last) {
            const int j = columns[e];
            start = starts[j];
            stop = starts[j + 1];
        }
        for (int round = 0; round < width && first + (i64)round * groups * stride < last; round++) {
            const int source = round * groups + lane / width;
            const i64 end = shuffle(stop, source);
            for (i64 q = shuffle(start, source) + offset; q < end; q += BATCHED * width) {
                int k[BATCHED];
#pragma unroll
                for (int n = 0; n < BATCHED; n++)
                    k[n] = q + n * width < end ? columns[q + n * width] : NONE;
#pragma unroll
                for (int n = 0; n < BATCHED; n++) found += has(k[n]);
            }
        }
    }
    return found;
}

DEVICE u32 hash(int k, int bits) { return (u32)k * 2654435769u >> (32 - bits); }

// A warp a row of `few`, which it keeps in a hash table.
extern "C" __global__ void __launch_bounds__(256)
    triangles_few(const i64* starts, const int* columns, const i64* work, const int* few,
                  const u64* found, u64* total) {
    __shared__ int tables[8][1 << BITS];
    int* table = tables[warp_id()];
    const int lane = lane_id();
    const i64 count = (i64)found[0], warps = thread_count() >> 5;
    u64 sum = 0;
    for (i64 t = thread_id() >> 5; t < count; t += warps) {
        const i64 r = few[t], start = starts[r], stop = starts[r + 1];
        int bits = 5;
        while (1 << bits < 4 * (stop - start)) bits++;
        const u32 last = (1u << bits) - 1;
        for (u32 at = lane; at <= last; at += 32) table[at] = NONE;
        warp_sync();
        for (i64 e = start + lane; e < stop; e += 32) {
            const int c = columns[e];
            u32 at = hash(c, bits);
            while (atomicCAS(table + at, NONE, c) != NONE) at = (at + 1) & last;
        }
        warp_sync();
        const int width = lanes_for(work[r], stop - start);
        sum += count_rows(starts, columns, start, stop, 1, width, [&](int k) {
            if (k == NONE) return 0u;
            u32 at = hash(k, bits);
            int slot = table[at];
            while (slot != k && slot != NONE) slot = table[at = (at + 1) & last];
            return (u32)(slot == k);
        });
        warp_sync();
    }
    sum = warp_sum(sum);
    if (lane == 0 && sum) atomicAdd(total, sum);
}

// Blocks take the parts of long rows one after the other. A row is kept as bits, `window` columns, a
// multiple of 32, at a time. *ticket is 0 before.
extern "C" __global__ void __launch_bounds__(1024)
    triangles_many(const i64* starts, const int* columns, const i64* work, const int* task_row,
                   const int* task_part, const u64* found, u32 window, i64 share, u64* ticket,
                   u64* total) {
    extern __shared__ u32 bits[];
    __shared__ i64 next;
    for (u32 w = threadIdx.x; w < window / 32; w += blockDim.x) bits[w] = 0;
    const i64 tasks = (i64)found[1];
    const int warps = blockDim.x >> 5;
    u64 sum = 0;
    for (;;) {
        if (threadIdx.x == 0) next = (i64)atomicAdd(ticket, 1ull);
        __syncthreads();
        const i64 task = next;
        if (task >= tasks) break;
        const int r = task_row[task];
        const i64 start = starts[r], length = starts[r + 1] - start;
        const i64 parts = parts_of(work[r], length, share), part = task_part[task];
        const i64 first = start + length * part / parts, last = start + length * (part + 1) / parts;
        const int width = lanes_for(work[r], length);
        // columns are below r
        for (i64 base = 0; base < r; base += window) {
            const u32 low = (u32)base;
            for (i64 x = threadIdx.x; x < length; x += blockDim.x) {
                const u32 c = (u32)columns[start + x] - low;
                if (c < window) atomicOr(bits + (c >> 5), 1u << (c & 31));
            }
            __syncthreads();
            sum += count_rows(starts, columns, first + warp_id(), last, warps, width, [&](int k) {
                // what is NONE is beyond the window
                const u32 c = (u32)k - low;
                return k != NONE && c < window ? bits[c >> 5] >> (c & 31) & 1 : 0u;
            });
            __syncthreads();
            for (i64 x = threadIdx.x; x < length; x += blockDim.x) {
                const u32 c = (u32)columns[start + x] - low;
                if (c < window) bits[c >> 5] = 0;
            }
            __syncthreads();
        }
    }
    sum = warp_sum(sum);
    if (lane_id() == 0 && sum) atomicAdd(total, sum);
}
