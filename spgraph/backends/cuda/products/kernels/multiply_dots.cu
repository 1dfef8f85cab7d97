// Masked dot products: for each entry (i, j) of the mask, row i of A meets row j of the transpose of
// B. Preamble: types O I A (offsets, ids and values of A), P J B (of B's transpose), Q N M (of the
// mask), K (an id of either) and Z; VALUES (else only whether rows have a column in common), PAIR (every
// product is 1), STRUCTURE, WINDOW, SLOTS; with VALUES the semiring.
//
// Row i of A is stored in shared memory, where a column is found in one step, and every entry of the
// rows of B's transpose is looked up there (bitmaps: Bisson and Fatica 2017; hashing: Pandey and others
// 2021). A block keeps columns below WINDOW as bits and the others in a hash table, if they fit; a warp
// keeps short rows in a hash table. Columns that do not fit are found by binary search in the row.

#include "operands.cuh"

#if VALUES
// Counting is enough: a sum of ones.
constexpr bool COUNTS = PAIR && ADD_KIND == ADD_PLUS, STOPS = ENDS;
#else
constexpr bool COUNTS = true, STOPS = true;
#endif
constexpr K EMPTY = (K)-1;
constexpr u32 NOWHERE = ~0u, LAST_WORD = WINDOW / 32; // the word of no column: always zero
constexpr int BATCH = 4;                              // columns that a lane has in flight

// Row i of A as a set of columns, each with its place in the row.
struct Row {
    const u32* bits;  // of the columns below WINDOW; none (warps) if null
    const u32* ranks; // for each word that has bits: the place of the first
    const K* keys;    // of the others: 1 << hash_bits slots
    const u32* places;
    int hash_bits;     // 0: no table
    const I* searched; // where the others are, if they have no table
    i64 low, count;    // places of the others: from low to count
};

DEVICE u32 hash(K k, int bits) {
    return ((u32)k ^ (u32)((u64)k >> 32)) * 2654435769u >> (32 - bits);
}

// Probe the table for column k, from slot `at` on, which holds `found`: k, or EMPTY where it is not in
// the table. `at` becomes its slot, or the first free one.
DEVICE K probe(const Row& row, K k, u32& at, K found) {
    while (found != k && found != EMPTY) {
        at = (at + 1) & ((1u << row.hash_bits) - 1);
        found = row.keys[at];
    }
    return found;
}
// The place of column k in the row; NOWHERE if it is not there.
DEVICE u32 place_of(const Row& row, K k) {
    if (row.bits && k < WINDOW) {
        u32 word = row.bits[k >> 5], bit = 1u << (k & 31);
        return word & bit ? row.ranks[k >> 5] + __popc(word & (bit - 1)) : NOWHERE;
    }
    if (row.hash_bits) {
        u32 at = hash(k, row.hash_bits);
        return probe(row, k, at, row.keys[at]) == k ? row.places[at] : NOWHERE;
    }
    i64 at = row.low + lower_bound(row.searched + row.low, row.count - row.low, k);
    return at < row.count && (K)row.searched[at] == k ? (u32)at : NOWHERE;
}

// Insert column k, which is not in the table yet, with its `place`.
DEVICE void insert(K* keys, u32* places, int bits, K k, u32 place) {
    u32 at = hash(k, bits);
    while ((K)atomicCAS((Bits<K>*)keys + at, (Bits<K>)EMPTY, (Bits<K>)k) != EMPTY)
        at = (at + 1) & ((1u << bits) - 1);
    if constexpr (!PAIR) places[at] = place;
}

struct Sum {
    Z value;
    u32 hits;
};

#if VALUES
DEVICE void take(const Operands& g, Sum& sum, i64 i, i64 j, K k, i64 p, i64 q) {
    if constexpr (STOPS)
        if (sum.hits && is_terminal(sum.value)) return;
    Z value = multiply(g.a[p & g.a_keep], g.b[q & g.b_keep], i, k, k, j);
    sum.value = ADD_KIND == ADD_ANY ? value : add(sum.value, value);
    sum.hits++;
}
#endif

// Look up BATCH entries, from, from + step, ..., of row j of B's transpose, and add the products with
// the entries of row i of A in the same columns. WHOLE: all of them are before `stop`.
template <bool BITMAP, bool WHOLE>
DEVICE void multiply_batch(const Operands& g, const Row& row, Sum& sum, i64 i, i64 j, i64 from,
                           i64 stop, int step) {
    K k[BATCH];
#pragma unroll
    for (int n = 0; n < BATCH; n++) {
        i64 q = from + n * step;
        k[n] = WHOLE || q < stop ? (K)g.b_indices[q] : EMPTY;
    }
    u32 met = 0; // a bit for each of the batch whose column row i has
    if constexpr (BITMAP) {
        u32 word[BATCH];
#pragma unroll
        for (int n = 0; n < BATCH; n++) {
            // EMPTY is beyond the window, too
            Bits<K> at = (Bits<K>)k[n] >> 5;
            word[n] = row.bits[at < LAST_WORD ? (u32)at : LAST_WORD];
        }
#pragma unroll
        for (int n = 0; n < BATCH; n++) {
            u32 hit = word[n] >> (k[n] & 31) & 1;
            if constexpr (COUNTS)
                sum.hits += hit;
            else
                met |= hit << n;
        }
    }
    // the largest column: they ascend, except where EMPTY
    K last = k[BATCH - 1];
#pragma unroll
    for (int n = 0; !WHOLE && n < BATCH - 1; n++) last = k[n] > last ? k[n] : last;
    if (!BITMAP || (row.count > row.low && last >= WINDOW)) {
        if (row.hash_bits) {
            u32 at[BATCH];
            K found[BATCH];
#pragma unroll
            for (int n = 0; n < BATCH; n++) {
                at[n] = hash(k[n], row.hash_bits);
                found[n] = row.keys[at[n]];
            }
#pragma unroll
            for (int n = 0; n < BATCH; n++) {
                if (k[n] < (BITMAP ? WINDOW : 0)) continue;
                if (probe(row, k[n], at[n], found[n]) == k[n]) met |= 1u << n;
            }
        } else {
#pragma unroll 1
            for (int n = 0; n < BATCH; n++) {
                i64 q = from + n * step;
                K column = WHOLE || q < stop ? (K)g.b_indices[q] : EMPTY;
                if (column < (BITMAP ? WINDOW : 0)) continue;
                if (place_of(row, column) != NOWHERE) met |= 1u << n;
            }
        }
    }
    if constexpr (COUNTS) {
        sum.hits += __popc(met);
    } else {
#if VALUES
        for (; met; met &= met - 1) {
            i64 q = from + (__ffs(met) - 1) * step;
            K column = g.b_indices[q];
            u32 place = PAIR ? 0 : place_of(row, column);
            take(g, sum, i, j, column, (i64)g.a_indptr[i] + place, q);
        }
#endif
    }
}

// The sum over each aligned group of `width` lanes, in all of its lanes. All 32 lanes call.
DEVICE Sum merge(Sum sum, int width) {
    u32 group = lane_group(width);
    if constexpr (COUNTS) {
        if (width == 32)
            sum.hits = reduce_add(sum.hits);
        else
            for (int distance = width / 2; distance; distance /= 2)
                sum.hits += shuffle_xor(sum.hits, distance);
    } else {
        u32 hits = warp_ballot(sum.hits != 0) & group;
#if VALUES
        if constexpr (ADD_KIND == ADD_ANY)
            sum.value = shuffle(sum.value, hits ? __ffs(hits) - 1 : 0);
        else
            sum.value = warp_combine(sum.value, width);
#endif
        sum.hits = hits;
    }
    return sum;
}

// Entries first, first + stride, ... before `last` of the mask, all in row i, by one warp: it loads 32
// of them at a time, and groups of `width` lanes compute one each. WIDTH: `width`, where it is a
// constant, else 0.
template <bool BITMAP, int WIDTH>
DEVICE void dots(const Operands& g, const Row& row, i64 i, i64 first, i64 last, int stride,
                 int width, bool* hits, Z* z) {
    if (WIDTH) width = WIDTH;
    const int lane = lane_id(), groups = 32 / width, offset = lane & (width - 1);
    const u32 group = lane_group(width);
    for (; first < last; first += 32 * stride) {
        const i64 e = first + (i64)lane * stride;
        i64 j = 0, start = 0, stop = 0;
        if (e < last && (STRUCTURE || g.m[e & g.m_keep] != (M)0)) {
            j = g.m_indices[e];
            start = g.b_indptr[j];
            stop = g.b_indptr[j + 1];
        }
        Sum own = {(Z)0, 0};
        for (int round = 0; round < width && first + (i64)round * groups * stride < last; round++) {
            const int source = round * groups + lane / width;
            const i64 column = shuffle(j, source), end = shuffle(stop, source);
            i64 base = shuffle(start, source);
            Sum sum = {(Z)0, 0};
#if VALUES
            if (ADD_KIND != ADD_ANY) sum.value = identity();
#endif
            for (; base + BATCH * width <= end; base += BATCH * width) {
                multiply_batch<BITMAP, true>(g, row, sum, i, column, base + offset, end, width);
#if VALUES
                bool done = STOPS && sum.hits && is_terminal(sum.value);
#else
                bool done = sum.hits;
#endif
                if (STOPS && warp_any(done, group)) base = end;
            }
            if (base < end)
                multiply_batch<BITMAP, false>(g, row, sum, i, column, base + offset, end, width);
            sum = merge(sum, width);
            // the sum of a lane's entry is in the group that computed it
            const int from = (lane & (groups - 1)) * width;
            const u32 found = shuffle(sum.hits, from);
            const Z value = COUNTS ? (Z)found : shuffle(sum.value, from);
            if (lane / groups == round) own = Sum{value, found};
        }
        if (e < last) {
            hits[e] = own.hits != 0;
            if constexpr (VALUES) z[e] = own.value;
        }
    }
}

// The lanes for a row of B's transpose: so many that they load a row of mean length in one batch.
DEVICE int lanes_for(i64 work, i64 entries) {
    int width = 1;
    while (width < 32 && BATCH * width * entries < work) width *= 2;
    return width;
}

// Blocks take tasks one after the other: a task is part task - piece_first[s] of the entries of the mask
// in row rows[s], s = piece_row[task]. work[i] is the sum of the lengths of the rows of B's transpose
// that row i of the mask names. *ticket is 0 before.
extern "C" __global__ void __launch_bounds__(256)
    multiply_dots(OPERANDS, const i64* rows, const int* piece_row, const i64* piece_first,
                  i64 tasks, const i64* work, i64* ticket, bool* hits, Z* z) {
    extern __shared__ i64 memory[];
    __shared__ i64 next;
    const Operands g = {OPERAND_VALUES};
    // WINDOW / 32 words and the empty one, rounded up to 8 bytes
    constexpr u32 WORDS = WINDOW / 32 + 2, RANKS = PAIR ? 0 : WORDS, PLACES = PAIR ? 0 : SLOTS;
    u32* bits = (u32*)memory;
    u32* ranks = bits + WORDS;
    u32* places = ranks + RANKS;
    K* keys = (K*)(places + PLACES);
    for (u32 w = threadIdx.x; w < WORDS; w += blockDim.x) bits[w] = 0;
    for (u32 s = threadIdx.x; s < SLOTS; s += blockDim.x) keys[s] = EMPTY;
    for (;;) {
        if (threadIdx.x == 0) next = (i64)atomicAdd((u64*)ticket, 1ull);
        __syncthreads();
        const i64 task = next;
        if (task >= tasks) return;
        const int s = piece_row[task];
        const i64 i = rows[s], start = g.a_indptr[i], count = (i64)g.a_indptr[i + 1] - start;
        const I* columns = g.a_indices + start;
        const i64 low = lower_bound(columns, count, WINDOW), others = count - low;
        int hash_bits = 0;
        if (others && others <= SLOTS / 2)
            for (hash_bits = 5; 1ll << hash_bits < SLOTS && 1ll << hash_bits < 4 * others;)
                hash_bits++;
        for (i64 x = threadIdx.x; x < (hash_bits ? count : low); x += blockDim.x) {
            K k = columns[x];
            if (x >= low) {
                insert(keys, places, hash_bits, k, (u32)x);
                continue;
            }
            atomicOr(bits + (k >> 5), 1u << (k & 31));
            if (!PAIR && (x == 0 || (K)columns[x - 1] >> 5 != k >> 5)) ranks[k >> 5] = (u32)x;
        }
        __syncthreads();
        const Row row = {bits, ranks, keys, places, hash_bits, columns, low, count};
        const i64 parts = piece_first[s + 1] - piece_first[s], part = task - piece_first[s];
        const i64 entry = g.m_indptr[i], entries = (i64)g.m_indptr[i + 1] - entry;
        const i64 first = entry + entries * part / parts,
                  last = entry + entries * (part + 1) / parts;
        const int warps = blockDim.x >> 5, warp = warp_id();
        const int width = lanes_for(work[i], entries);
        if (width == 32)
            dots<true, 32>(g, row, i, first + warp, last, warps, 32, hits, z);
        else
            dots<true, 0>(g, row, i, first + warp, last, warps, width, hits, z);
        __syncthreads();
        for (i64 x = threadIdx.x; x < low; x += blockDim.x) bits[columns[x] >> 5] = 0;
        if (hash_bits)
            for (u32 at = threadIdx.x; at < 1u << hash_bits; at += blockDim.x) keys[at] = EMPTY;
    }
}

// A warp a row, `count` rows: those of little work whose row of A is short, or so long that reading it
// once would cost more than searching it.
extern "C" __global__ void __launch_bounds__(256)
    multiply_dots_warp(OPERANDS, const i64* rows, i64 count, const i64* work, bool* hits, Z* z) {
    constexpr int BITS = 9, LONGEST = 1 << (BITS - 2);
    __shared__ K keys[8][1 << BITS];
    __shared__ u32 places[PAIR ? 1 : 8][PAIR ? 1 : 1 << BITS];
    const Operands g = {OPERAND_VALUES};
    if (thread_id() >> 5 >= count) return;
    const int warp = warp_id();
    u32* own = places[PAIR ? 0 : warp];
    const i64 i = rows[thread_id() >> 5], start = g.a_indptr[i];
    const i64 length = (i64)g.a_indptr[i + 1] - start;
    const I* columns = g.a_indices + start;
    int hash_bits = 0;
    if (length <= LONGEST) {
        for (hash_bits = 5; 1 << hash_bits < 4 * length;) hash_bits++;
        for (int at = lane_id(); at < 1 << hash_bits; at += 32) keys[warp][at] = EMPTY;
        warp_sync();
        for (int x = lane_id(); x < length; x += 32)
            insert(keys[warp], own, hash_bits, (K)columns[x], x);
        warp_sync();
    }
    const Row row = {0, 0, keys[warp], own, hash_bits, columns, 0, length};
    const i64 first = g.m_indptr[i], last = g.m_indptr[i + 1];
    const int width = lanes_for(work[i], last - first);
    dots<false, 0>(g, row, i, first, last, 1, width, hits, z);
}
