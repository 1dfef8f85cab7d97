// Entry by entry of u: the products with row k of the matrix are added to the positions that its
// columns name. Preamble: types O I A U Z N (ids of u), the semiring, ISO, FLIP, MASKED.

// degrees[q] = the entries in the row of entry q of u.
extern "C" __global__ void __launch_bounds__(256)
    push_degrees(const O* indptr, const N* ids, i64 count, i64* degrees) {
    for (i64 q = thread_id(); q < count; q += thread_count()) {
        i64 k = ids[q];
        degrees[q] = (i64)indptr[k + 1] - (i64)indptr[k];
    }
}

constexpr int WARPS = 8; // of a block
#include "block_scan.cuh"

// through[q] = the sum of the degrees up to entry q, by one block: for few entries.
extern "C" __global__ void __launch_bounds__(256)
    push_through(const O* indptr, const N* ids, i64 count, i64* through) {
    constexpr int OWN = 4;
    O before = 0;
    for (i64 base = 0; base < count; base += OWN * blockDim.x) {
        const i64 first = base + OWN * threadIdx.x;
        O degree[OWN], sum = 0, at, all;
        u32 none, no;
#pragma unroll
        for (int j = 0; j < OWN; j++) {
            const i64 k = first + j < count ? (i64)ids[first + j] : 0;
            degree[j] = first + j < count ? indptr[k + 1] - indptr[k] : 0;
            sum += degree[j];
        }
        __syncthreads();
        block_scan(0, sum, none, at, no, all);
        at += before;
#pragma unroll
        for (int j = 0; j < OWN; j++) {
            at += degree[j];
            if (first + j < count) through[first + j] = at;
        }
        before += all;
    }
}

#include "load_balance.cuh"

DEVICE Z product(i64 k, i64 j, U x, A y) {
    if constexpr (FLIP)
        return multiply(y, x, j, k, k, 0);
    else
        return multiply(x, y, 0, k, k, j);
}

// Every warp takes an equal share of the edges, wherever rows begin and end. `through` holds the
// running sum of the degrees; z holds identity() everywhere, z_bits is zero.
extern "C" __global__ void __launch_bounds__(256)
    push(const O* indptr, const I* indices, const A* a, const N* ids, const U* u, i64 count,
         const i64* through, const u32* mask, u32 invert, u32* z_bits, Z* z) {
    constexpr int BATCH = 4;
    const int lane = lane_id();
    const i64 warps = thread_count() >> 5, total = through[count - 1];
    i64 share = share_of(total, warps);
    if (share < 32 * BATCH) share = 32 * BATCH;
    i64 edge = (thread_id() >> 5) * share, last = edge + share < total ? edge + share : total;
    if (edge >= last) return;
    // lanes hold 32 entries of u from `window` on, as the edges before each: `edge` lies in the
    // first or after it
    i64 window = through[0] <= edge ? row_at(through, count, edge) + 1 : 0;
    for (; edge < last; window += 32) {
        i64 q = window + lane;
        i64 before = q == 0 ? 0 : q <= count ? through[q - 1] : total;
        i64 start = q < count ? (i64)indptr[(i64)ids[q]] : 0;
        i64 stop = window + 32 <= count ? through[window + 31] : total;
        if (stop > last) stop = last;
        // relative to `edge`: a share has fewer than 2^31 edges, and what lies beyond it only has
        // to stay beyond
        i64 relative = before - edge;
        int key = relative < 0 ? 0 : relative > 0x7fffffff ? 0x7fffffff : (int)relative;
        i64 shift = start - before;
        for (i64 base = edge; base < stop; base += 32 * BATCH) {
            I j[BATCH];
            i64 entry[BATCH], owner[BATCH];
            bool wanted[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; b++) {
                i64 e = base + 32 * b + lane;
                int own = warp_search(key, (int)(e - edge));
                entry[b] = e + shuffle(shift, own);
                owner[b] = window + own;
                wanted[b] = e < stop;
                j[b] = wanted[b] ? load_once(indices + entry[b]) : (I)0;
            }
            if constexpr (MASKED) {
#pragma unroll
                for (int b = 0; b < BATCH; b++)
                    wanted[b] = wanted[b] && ((mask[(i64)j[b] >> 5] ^ invert) >> (j[b] & 31)) & 1;
            }
            Z value[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; b++)
                if (wanted[b])
                    value[b] = product(ids[owner[b]], j[b], u[owner[b]],
                                       ISO ? a[0] : load_once(a + entry[b]));
#pragma unroll
            for (int b = 0; b < BATCH; b++) {
                if (!wanted[b]) continue;
                if constexpr (ADD_KIND == ADD_ANY) {
                    if (set_bit(z_bits, j[b])) z[j[b]] = value[b];
                } else {
                    combine(z + j[b], value[b]);
                    set_bit(z_bits, j[b]);
                }
            }
        }
        edge = stop;
    }
}
