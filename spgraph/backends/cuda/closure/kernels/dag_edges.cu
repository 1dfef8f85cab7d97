// The edges of the shortest-path DAG: the pattern of the entries (i, j) with  x[i] * A[i, j] == x[j].
// One pass over the entries sets a bit for each; the others work on bits. Preamble: I O A Z multiply.

constexpr int EACH = 8;     // entries a lane has in flight
constexpr int CHUNK = 1024; // entries whose bits a warp counts at a time: a word for each lane
constexpr int WARPS = 8;

#include "load_balance.cuh"

// Tests entries of the matrix, for load_balance.cuh: its row i is row i of the matrix.
struct EdgeTester {
    const I* indices;
    const A* values;
    i64 every; // all bits set, or none where all entries have the value of the first
    const Z* x;
    const u32* bits; // of x, or null where it is full
    u32* hits;       // of the chunk
    i64 chunk;       // its first entry
    i64 row;
    Z value;
    bool has_row;
    __device__ __forceinline__ bool has(i64 v) const { return !bits || test_bit(bits, v); }
    __device__ __forceinline__ void fetch(i64, bool) {}
    __device__ __forceinline__ O load(i64 i, int, O, bool here) {
        row = i;
        has_row = here && has(i);
        if (has_row) value = x[i];
        return 0;
    }
    template <bool ONE>
    __device__ __forceinline__ void take(const int (&owner)[EACH], const O (&entry)[EACH],
                                         const bool (&open)[EACH]) {
        const Z value_of_one = ONE ? shuffle(value, owner[0]) : value;
        const i64 row_of_one = ONE ? shuffle(row, owner[0]) : row;
        const bool has_of_one = ONE ? shuffle(has_row, owner[0]) : has_row;
        bool wanted[EACH];
        I j[EACH];
        A a[EACH];
        Z there[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const bool from = ONE ? has_of_one : shuffle(has_row, owner[k]);
            wanted[k] = open[k] && from;
            j[k] = wanted[k] ? load_once(indices + entry[k]) : 0;
            a[k] = wanted[k] ? load_once(values + ((i64)entry[k] & every)) : A();
        }
#pragma unroll
        for (int k = 0; k < EACH; k++) there[k] = wanted[k] ? x[j[k]] : Z();
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const i64 i = ONE ? row_of_one : shuffle(row, owner[k]);
            const Z from = ONE ? value_of_one : shuffle(value, owner[k]);
            if (wanted[k] && multiply(from, a[k], (i64)0, i, i, (i64)j[k]) == there[k] &&
                has(j[k])) {
                const int at = (int)((i64)entry[k] - chunk);
                atomicOr(hits + (at >> 5), 1u << (at & 31));
            }
        }
    }
};

// flags: a bit an entry, 32 words a chunk; before: for each word, the bits of its chunk before it;
// counts: the bits of each chunk.
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    dag_edges(i64 n, i64 m, const O* indptr, const I* indices, const A* values, u64 every,
              const Z* x, const u32* bits, u32* flags, u16* before, u32* counts) {
    __shared__ u32 lanes[WARPS][32], hits[WARPS][32];
    const int lane = lane_id(), warp = warp_id();
    const i64 warps = thread_count() >> 5, chunks = (m + CHUNK - 1) / CHUNK;
    const i64 share = (chunks + warps - 1) / warps;
    i64 chunk = (thread_id() >> 5) * share;
    const i64 last = chunk + share < chunks ? chunk + share : chunks;
    if (chunk >= last) return;
    EdgeTester tester = {indices, values, (i64)every, x, bits, hits[warp], 0, 0, Z(), false};
    i64 window = row_at(indptr, n, chunk * CHUNK);
    hits[warp][lane] = 0;
    warp_sync();
    for (; chunk < last; chunk++) {
        const i64 begin = chunk * CHUNK, end = begin + CHUNK < m ? begin + CHUNK : m;
        tester.chunk = begin;
        walk<EACH>(indptr, n, m, window, begin, end, lanes[warp], tester);
        warp_sync();
        const u32 word = hits[warp][lane];
        hits[warp][lane] = 0;
        const u32 through = warp_scan((u32)__popc(word));
        flags[32 * chunk + lane] = word;
        before[32 * chunk + lane] = (u16)(through - __popc(word));
        if (lane == 31) counts[chunk] = through;
        warp_sync();
    }
}

// How many bits are set before entry e; `through` is the running sum of the chunks' counts.
DEVICE i64 rank(i64 e, i64 m, i64 chunks, const u32* flags, const u16* before, const i64* through) {
    if (e == m) return through[chunks - 1];
    const i64 chunk = e / CHUNK, word = e >> 5;
    const u32 below = flags[word] & ((1u << (e & 31)) - 1u);
    return (chunk ? through[chunk - 1] : 0) + before[word] + __popc(below);
}

extern "C" __global__ void __launch_bounds__(256)
    dag_edges_fill(i64 n, i64 m, const O* indptr, const I* indices, const u32* flags,
                   const u16* before, const i64* through, O* new_indptr, I* new_indices) {
    const i64 chunks = (m + CHUNK - 1) / CHUNK;
    for (i64 i = thread_id(); i <= n; i += thread_count())
        new_indptr[i] = (O)rank(indptr[i], m, chunks, flags, before, through);
    for (i64 w = thread_id(); w < 32 * chunks; w += thread_count()) {
        u32 word = flags[w];
        if (!word) continue;
        i64 place = (w >= 32 ? through[w / 32 - 1] : 0) + before[w];
        for (; word; word &= word - 1) new_indices[place++] = indices[32 * w + __ffs(word) - 1];
    }
}
