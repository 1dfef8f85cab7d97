// Rows that gather from shared memory: the product of a matrix that tiles.py has cut into tiles.
// Preamble: as gather.cuh, which stands before; u full and nothing masked.
//
// Each of the `blocks` blocks owns `slots` rows a warp, whose sums stay in shared memory. Tile
// after tile, `width` values of u at the columns of largest degree come to shared memory too (they
// were put side by side before: `hubs`), the next ones while the warps work on these; then every
// warp adds its own entries of the tile, which lie in its stream: STEP at a time, LANE neighbours a
// lane, sorted by row. An entry is 4 bytes: the place of its row's sum and that of its column in
// the tile. Columns of small degree are not worth the copies: entries there (`far`) are 8 bytes and
// gather from u itself. No two warps add to one row, so there are no atomics, and the order of
// additions is always the same.

constexpr int WARPS = 32, LANE = 8, STEP = 32 * LANE, FAR_LANE = 2, FAR_STEP = 32 * FAR_LANE;
// an entry is the place of its sum, and 4 times the place of its column
constexpr u32 COLUMN_BITS = 18, COLUMN_MASK = (1u << COLUMN_BITS) - 1;
// there is room for two tiles of small values, or for one of large ones
constexpr int BUFFERS = sizeof(U) > 4 ? 1 : 2;

// 16 bytes that move as one.
struct alignas(16) Quad {
    u32 x[4];
};
template <class T, int COUNT>
struct alignas(sizeof(T) * COUNT < 16 ? sizeof(T) * COUNT : 16) Group {
    T x[COUNT];
};

#ifndef HOST_SHIM
// As load_once.
DEVICE Quad load_quad(const Quad* p) {
    Quad q;
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(q.x[0]), "=r"(q.x[1]), "=r"(q.x[2]), "=r"(q.x[3])
        : "l"(p));
    return q;
}
// Start to copy to shared memory; copies_done waits for what this thread has started.
DEVICE void copy_quad(Quad* to, const Quad* from) {
    asm volatile("{\n"
                 ".reg .u64 wide;\n"
                 ".reg .u32 place;\n"
                 "cvta.to.shared.u64 wide, %0;\n"
                 "cvt.u32.u64 place, wide;\n"
                 "cp.async.cg.shared.global [place], [%1], 16;\n"
                 "}\n" ::"l"(to),
                 "l"(from)
                 : "memory");
}
DEVICE void copies_done() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// An address in shared memory. A pointer would be computed anew wherever it is used, at four
// instructions a time.
typedef u32 Shared;
DEVICE Shared shared_address(const void* p) {
    u32 address;
    asm volatile("{\n"
                 ".reg .u64 wide;\n"
                 "cvta.to.shared.u64 wide, %1;\n"
                 "cvt.u32.u64 %0, wide;\n"
                 "}\n"
                 : "=r"(address)
                 : "l"(p));
    return address;
}
#define SHARED_ACCESS(TYPE, WIDE, WIDTH, FORMAT)                                                   \
    DEVICE WIDE load_shared_bits(Shared p, TYPE) {                                                 \
        WIDE x;                                                                                    \
        asm volatile("ld.shared." WIDTH " %0, [%1];" : FORMAT(x) : "r"(p) : "memory");             \
        return x;                                                                                  \
    }
#define SHARED_STORE(TYPE, WIDE, WIDTH, FORMAT)                                                    \
    DEVICE void store_shared_bits(Shared p, TYPE, WIDE x) {                                        \
        asm volatile("st.shared." WIDTH " [%0], %1;" ::"r"(p), FORMAT(x) : "memory");              \
    }
SHARED_ACCESS(u8, u32, "u8", "=r")
SHARED_ACCESS(u16, u32, "u16", "=r")
SHARED_ACCESS(u32, u32, "u32", "=r")
SHARED_ACCESS(u64, u64, "u64", "=l")
SHARED_STORE(u8, u32, "u8", "r")
SHARED_STORE(u16, u32, "u16", "r")
SHARED_STORE(u32, u32, "u32", "r")
SHARED_STORE(u64, u64, "u64", "l")
#undef SHARED_ACCESS
#undef SHARED_STORE
template <class T>
DEVICE T load_shared(Shared p) {
    return from_bits<T>((Bits<T>)load_shared_bits(p, Bits<T>()));
}
template <class T>
DEVICE void store_shared(Shared p, T value) {
    store_shared_bits(p, Bits<T>(), to_bits(value));
}
#else
DEVICE Quad load_quad(const Quad* p) { return *p; }
DEVICE void copy_quad(Quad* to, const Quad* from) { *to = *from; }
DEVICE void copies_done() {}
typedef u64 Shared;
DEVICE Shared shared_address(const void* p) { return (u64)p; }
template <class T>
DEVICE T load_shared(Shared p) {
    return *(const T*)p;
}
template <class T>
DEVICE void store_shared(Shared p, T value) {
    *(T*)p = value;
}
#endif

// As tiles.py writes it: one 64-bit word each.
struct Tiles {
    i64 blocks, count, width, slots;
    const Quad* entries; // one step more than there are, to be loaded ahead
    const A* values;     // of the entries, in their order
    const u32* ends;     // of each warp's steps in each tile, all of them counted through; 0 before
    const Quad* far;     // place of the sum << 32 | column
    const A* far_values;
    const u32* far_ends; // of each warp's steps; 0 before
    const int* targets;  // of each slot: its row, -1 for none, -2 - p for partial sum p
};

DEVICE void add_at(Shared sums, u32 place, Z value) {
    const Shared p = sums + place * (u32)sizeof(Z);
    store_shared<Z>(p, add(load_shared<Z>(p), value));
}

// Add v[k] to sum row[k] for all K of all lanes, in which each row's are neighbours. Whole warps.
template <int K>
DEVICE void add_runs(const u32 (&row)[K], const Z (&v)[K], Shared sums) {
    const int lane = lane_id();
    Z run = v[0];
#pragma unroll
    for (int k = 1; k < K; k++) {
        const bool same = row[k] == row[k - 1];
        if (!same) add_at(sums, row[k - 1], run); // ends here, and in no other lane
        run = same ? add(run, v[k]) : v[k];
    }
    // what is left of each lane is its last row's: a lane that has no other joins the lane before
    const u32 last = row[K - 1];
    const bool joins = shuffle_up(last, 1) == row[0] && row[0] == last && lane > 0;
    const u32 joining = __ballot_sync(FULL_WARP, joins);
    if (joining) {
        const int first = 31 - __clz(~joining & (FULL_WARP >> (31 - lane)));
#pragma unroll
        for (int distance = 1; distance < 32; distance *= 2) {
            Z below = shuffle_up(run, distance);
            if (lane - distance >= first) run = add(below, run);
        }
    }
    __syncwarp();
    if (!(joining >> 1 >> lane & 1)) add_at(sums, last, run);
    __syncwarp();
}

// The entries of a step, four neighbours of every lane side by side, and then the other four; and
// their values.
struct Chunk {
    Quad entries[LANE / 4];
    Group<A, 4> values[LANE / 4];
};
DEVICE void load_chunk(Chunk& chunk, const Tiles& t, u32 step) {
    const i64 at = (i64)step * (STEP / 4) + lane_id();
#pragma unroll
    for (int j = 0; j < LANE / 4; j++) {
        chunk.entries[j] = load_quad(t.entries + at + 32 * j);
        if (!ISO) chunk.values[j] = ((const Group<A, 4>*)t.values)[at + 32 * j];
    }
}

// The same of the far ones, and the values of u at their columns.
struct FarChunk {
    Quad entries;
    Group<A, FAR_LANE> values;
    U u[FAR_LANE];
};
DEVICE void load_far(FarChunk& chunk, const Tiles& t, u32 step) {
    const i64 at = (i64)step * 32 + lane_id();
    chunk.entries = load_quad(t.far + at);
    if (!ISO) chunk.values = ((const Group<A, FAR_LANE>*)t.far_values)[at];
}
DEVICE void load_u(FarChunk& chunk, const U* u) {
#pragma unroll
    for (int k = 0; k < FAR_LANE; k++) chunk.u[k] = u[chunk.entries.x[2 * k]];
}

DEVICE void copy_tile(Quad* to, const U* from, i64 width) {
    const Quad* source = (const Quad*)from;
    const u32 quads = (u32)(width * sizeof(U) / 16);
    for (u32 k = threadIdx.x; k < quads; k += blockDim.x) copy_quad(to + k, source + k);
}

// done(i, sum) for every row i of the tiles, but sums of pieces of rows go to `partial`. All
// threads of the first t.blocks blocks, of WARPS warps each, call; `pool` is their dynamic shared
// memory.
template <class Done>
DEVICE void sum_tiles(const Tiles t, const U* hubs, const U* u, const A* a, Quad* pool, Z* partial,
                      Done done) {
    const int lane = lane_id(), warp = threadIdx.x >> 5, places = (int)t.slots + 1;
    const Shared sums = shared_address(pool), own = sums + warp * places * (int)sizeof(Z);
    Quad* part = pool + WARPS * places * (int)sizeof(Z) / 16;
    const Shared parts = shared_address(part);
    const int part_quads = (int)(t.width * sizeof(U) / 16), count = (int)t.count;
    for (int s = lane; s < places; s += 32) store_shared<Z>(own + s * (int)sizeof(Z), identity());
    __syncwarp();

    const i64 q = (i64)blockIdx.x * WARPS + warp;
    const u32* ends = t.ends + q * count;
    const A one = ISO ? a[0] : (A)0;
    u32 step = ends[0], end = ends[1];
    Chunk next;
    load_chunk(next, t, step);
    copy_tile(part, hubs, t.width);
    for (int tile = 0; tile < count; tile++) {
        copies_done();
        __syncthreads(); // the tile is there, and all are done with the one before
        const Shared x = parts + (BUFFERS == 2 ? (tile & 1) * part_quads * 16 : 0);
        if (BUFFERS == 2 && tile + 1 < count)
            copy_tile(part + (1 - (tile & 1)) * part_quads, hubs + (tile + 1) * t.width, t.width);
        const u32 next_end = tile + 1 < count ? ends[tile + 2] : 0;
        while (step < end) {
            const Chunk now = next;
            load_chunk(next, t, ++step);
            u32 row[LANE];
            Z v[LANE];
#pragma unroll
            for (int k = 0; k < LANE; k++) {
                const u32 entry = now.entries[k / 4].x[k % 4];
                row[k] = entry >> COLUMN_BITS;
                const U y = load_shared<U>(x + (entry & COLUMN_MASK) / 4 * (u32)sizeof(U));
                v[k] = product(0, 0, ISO ? one : now.values[k / 4].x[k % 4], y);
            }
            add_runs<LANE>(row, v, sums);
        }
        end = next_end;
        if (BUFFERS == 1 && tile + 1 < count) {
            __syncthreads();
            copy_tile(part, hubs + (tile + 1) * t.width, t.width);
        }
    }

    step = t.far_ends[q];
    end = t.far_ends[q + 1];
    FarChunk now, soon, later;
    load_far(now, t, step);
    load_far(soon, t, step + 1);
    if (step < end) load_u(now, u);
    for (; step < end; step++) {
        load_far(later, t, step + 2);
        if (step + 1 < end) load_u(soon, u);
        u32 row[FAR_LANE];
        Z v[FAR_LANE];
#pragma unroll
        for (int k = 0; k < FAR_LANE; k++) {
            row[k] = now.entries.x[2 * k + 1];
            v[k] = product(0, 0, ISO ? one : now.values.x[k], now.u[k]);
        }
        add_runs<FAR_LANE>(row, v, sums);
        now = soon;
        soon = later;
    }

    for (int s = lane; s < places - 1; s += 32) {
        const int target = t.targets[q * t.slots + s];
        const Z sum = load_shared<Z>(own + s * (int)sizeof(Z));
        if (target >= 0)
            done((i64)target, sum);
        else if (target < -1)
            partial[-2 - target] = sum;
    }
    __syncwarp();
}
