// Rows in hash tables in shared memory: a warp or a block a row.
//
// A table has at least twice as many slots as the row has entries, or, while these are counted, as it
// may have. Columns take slots by compare and swap, products are added by atomics; then the entries
// are moved to the front and sorted by column (Batcher 1968).

constexpr K EMPTY = (K) ~((Bits<K>)1 << (8 * sizeof(K) - 1)); // the largest: no column

template <bool BLOCK>
DEVICE void sync_group() {
    if constexpr (BLOCK)
        __syncthreads();
    else
        warp_sync();
}

// The sum of `value` over the threads before this one; `total` over all of the group.
template <bool BLOCK>
DEVICE u32 scan_group(u32 value, u32& total) {
    u32 through = warp_scan(value);
    total = shuffle(through, 31);
    if constexpr (BLOCK) {
        __shared__ u32 sums[32];
        const u32 warp = warp_id(), warps = blockDim.x >> 5;
        __syncthreads(); // the last scan's sums have been read
        if (lane_id() == 31) sums[warp] = through;
        __syncthreads();
        total = 0;
        u32 before = 0;
        for (u32 w = 0; w < warps; w++) {
            u32 sum = sums[w];
            if (w < warp) before += sum;
            total += sum;
        }
        through += before;
    }
    return through - value;
}

// One group's part of shared memory.
struct Table {
    i64* shift;  // for each thread: a product's number plus this is the number of its entry of B
    K* keys;     // for each slot: a column, or EMPTY
    Z* sums;     // for each slot, with VALUES
    u32* before; // for each thread: the products before those of its entry of A
};
DEVICE u32 table_words(u32 capacity, u32 size) { // of 8 bytes: what multiply.py gives each
    u32 slot = sizeof(K) + (VALUES ? sizeof(Z) : 0);
    return (capacity * slot + size * (sizeof(i64) + sizeof(u32))) / sizeof(i64);
}
DEVICE Table table_at(i64* memory, u32 capacity, u32 size) {
    K* keys = (K*)(memory + size);
    Z* sums = (Z*)(keys + capacity);
    return Table{memory, keys, sums, (u32*)(sums + (VALUES ? capacity : 0))};
}

// The slot of column j among 1 << bits, inserted if it is new, which `fresh` says; ~0 where the mask
// does not allow the column.
DEVICE u32 slot_of(const Masked& g, K* keys, u32 bits, i64 i, K j, bool& fresh) {
    const u32 last = (1u << bits) - 1;
    u32 at = ((u32)j ^ (u32)((u64)j >> 32)) * 2654435769u >> (32 - bits);
    for (bool asked = false;; at = (at + 1) & last) {
        K held = *(volatile K*)(keys + at);
        if (held == EMPTY) {
            if (MASKED && !asked && !allowed(g, i, j)) return ~0u;
            asked = true;
            held = (K)atomicCAS((Bits<K>*)keys + at, (Bits<K>)EMPTY, (Bits<K>)j);
            fresh = held == EMPTY;
            if (fresh) return at;
        }
        if (held == j) return at;
    }
}

// Sort the first n keys, a power of 2, their sums with them.
template <bool BLOCK>
DEVICE void sort_table(const Table& t, u32 n, u32 rank, u32 size) {
    for (u32 run = 2; run <= n; run *= 2)
        for (u32 distance = run / 2; distance; distance /= 2) {
            for (u32 pair = rank; pair < n / 2; pair += size) {
                u32 x = 2 * pair - (pair & (distance - 1)), y = x + distance;
                K low = t.keys[x], high = t.keys[y];
                if ((low > high) == !(x & run)) {
                    t.keys[x] = high;
                    t.keys[y] = low;
                    if constexpr (VALUES) {
                        Z sum = t.sums[x];
                        t.sums[x] = t.sums[y];
                        t.sums[y] = sum;
                    }
                }
            }
            sync_group<BLOCK>();
        }
}

// Row i by one group: counts[i] with COUNT, else its entries. `bound`: not fewer than those.
template <bool BLOCK>
DEVICE void table_row(const Masked& g, const Table& t, i64 i, u32 bound, i64* counts,
                      const R* z_indptr, K* z_indices, Z* z) {
    constexpr int BATCH = BLOCK ? 4 : 2;
    const u32 size = BLOCK ? blockDim.x : 32, rank = BLOCK ? threadIdx.x : lane_id();
    u32 bits = 5;
    while (1u << bits < 2 * bound) bits++;
    for (u32 s = rank; s < 1u << bits; s += size) {
        t.keys[s] = EMPTY;
#if VALUES
        t.sums[s] = nothing();
#endif
    }
    u32 found = 0;
    const i64 stop = g.a_indptr[i + 1];
    for (i64 base = g.a_indptr[i]; base < stop; base += size) {
        i64 from = 0, length = 0;
        if (base + rank < stop) {
            i64 k = g.a_indices[base + rank];
            from = g.b_indptr[k];
            length = (i64)g.b_indptr[k + 1] - from;
        }
        u32 total, first = scan_group<BLOCK>((u32)length, total);
        sync_group<BLOCK>(); // the last entries' products are done
        t.before[rank] = first;
        t.shift[rank] = from - first;
        sync_group<BLOCK>();
        const u32 live = stop - base < size ? (u32)(stop - base) : size;
        const u32 half = live > 1 ? 1u << (31 - __clz(live - 1)) : 0;
        for (u32 e = rank; e < total; e += BATCH * size) {
            u32 owner[BATCH];
            i64 q[BATCH];
            K j[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; b++) {
                u32 own = 0, product = e + b * size;
                if (product >= total) continue;
                for (u32 step = half; step; step /= 2)
                    if (own + step < live && t.before[own + step] <= product) own += step;
                owner[b] = own;
                q[b] = t.shift[own] + product;
                j[b] = (K)g.b_indices[q[b]];
            }
#pragma unroll
            for (int b = 0; b < BATCH; b++) {
                if (e + b * size >= total) continue;
                bool fresh = false;
                u32 at = slot_of(g, t.keys, bits, i, j[b], fresh);
                found += fresh;
#if VALUES
                if (at == ~0u) continue;
                if constexpr (ADD_KIND == ADD_ANY) {
                    if (fresh) t.sums[at] = product(g, i, base + owner[b], q[b], j[b]);
                } else {
                    combine(t.sums + at, product(g, i, base + owner[b], q[b], j[b]));
                }
#endif
            }
        }
    }
    if constexpr (COUNT) {
        u32 total;
        scan_group<BLOCK>(found, total);
        if (rank == 0) counts[i] = total;
        return;
    }
    sync_group<BLOCK>();
    u32 entries = 0;
    for (u32 start = 0; start < 1u << bits; start += size) {
        u32 s = start + rank, taken;
        K key = s < 1u << bits ? t.keys[s] : EMPTY;
        Z sum = (Z)0;
        if (VALUES && key != EMPTY) sum = t.sums[s];
        u32 to = entries + scan_group<BLOCK>(key != EMPTY, taken);
        sync_group<BLOCK>(); // all have read theirs; none goes beyond where it was
        if (key != EMPTY) {
            t.keys[to] = key;
            if constexpr (VALUES) t.sums[to] = sum;
        }
        entries += taken;
    }
    u32 n = 1;
    while (n < entries) n *= 2;
    sync_group<BLOCK>();
    for (u32 s = entries + rank; s < n; s += size) t.keys[s] = EMPTY;
    sync_group<BLOCK>();
    sort_table<BLOCK>(t, n, rank, size);
    const i64 to = z_indptr[i];
    for (u32 s = rank; s < entries; s += size) {
        z_indices[to + s] = t.keys[s];
        if constexpr (VALUES) z[to + s] = t.sums[s];
    }
}

// A block a row.
extern "C" __global__ void __launch_bounds__(512)
    multiply_rows(OPERANDS, bool complement, const i64* rows, i64 count, u32 capacity,
                  const i64* bounds, i64* counts, const R* z_indptr, K* z_indices, Z* z) {
    extern __shared__ i64 memory[];
    const Masked g = {{OPERAND_VALUES}, complement};
    i64 i = rows[blockIdx.x];
    table_row<true>(g, table_at(memory, capacity, blockDim.x), i, (u32)bounds[i], counts, z_indptr,
                    z_indices, z);
}

// A warp a row.
extern "C" __global__ void __launch_bounds__(256)
    multiply_rows_warp(OPERANDS, bool complement, const i64* rows, i64 count, u32 capacity,
                       const i64* bounds, i64* counts, const R* z_indptr, K* z_indices, Z* z) {
    extern __shared__ i64 memory[];
    const Masked g = {{OPERAND_VALUES}, complement};
    if (thread_id() >> 5 >= count) return;
    i64* own = memory + (warp_id()) * table_words(capacity, 32);
    i64 i = rows[thread_id() >> 5];
    table_row<false>(g, table_at(own, capacity, 32), i, (u32)bounds[i], counts, z_indptr, z_indices,
                     z);
}
