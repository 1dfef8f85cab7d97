// Products that gather from shared memory, of a matrix that tiles.py has cut into tiles. Preamble: as
// gather.cuh, which is included before; u is full, and there is no mask.
//
// Each of the `blocks` blocks owns `slots` rows a warp, whose sums stay in shared memory. Tile after
// tile, `width` values of u at the columns of largest degree (`hubs` has them in this order) are copied
// to shared memory, too, the next tile while the warps work on this one. Every warp adds its own entries
// of the tile, which lie one after the other: STEP at a time, LANE of them for each lane, sorted by row.
// An entry is 4 bytes: the place of its row's sum, and the place of its column in the tile. Columns of
// small degree are not worth the copies: after the tiles they follow in `ranges` of `span` columns, whose
// entries gather from u; all warps reach a range at about the same time, and find its part of u in the
// L2. No two warps add to one row, so there are no atomics, and the order of additions is always the
// same.

constexpr int WARPS = 32, LANE = 8, STEP = 32 * LANE;
// an entry is the place of its row's sum among the warp's, and, in the low bits, 4 times the place of its
// column in a tile, or the place of its column in a range
constexpr u32 COLUMN_BITS = 22, COLUMN_MASK = (1u << COLUMN_BITS) - 1;

template <class T, int COUNT>
struct alignas(sizeof(T) * COUNT < 16 ? sizeof(T) * COUNT : 16) Group {
    T x[COUNT];
};

#ifndef HOST_SHIM
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

#include "tiles_feed.cuh"

// The parameters that tiles.py writes, in fields of 8 bytes.
struct Tiles {
    i64 blocks, count, width, slots, ranges, span;
    const Quad* entries; // with one step more at the end, since a step is loaded ahead
    const A* values;     // of the entries, in their order
    const u32* ends;     // running sum of each warp's steps in each tile and range, after a 0
    const int* targets;  // of each slot: its row, -1 for none, -2 - p for partial sum p
};

DEVICE void add_at(Shared sums, u32 place, Z value) {
    const Shared p = sums + place * (u32)sizeof(Z);
    store_shared<Z>(p, add(load_shared<Z>(p), value));
}

// Add v[k] to sum row[k] for all K of all lanes, where equal rows are neighbours, from lane to lane,
// too. Whole warps call.
template <int K>
DEVICE void add_runs(const u32 (&row)[K], const Z (&v)[K], Shared sums) {
    const int lane = lane_id();
    Z run = v[0];
#pragma unroll
    for (int k = 1; k < K; k++) {
        const bool same = row[k] == row[k - 1];
        if (!same) add_at(sums, row[k - 1], run); // the run ends here, and in no other lane
        run = same ? add(run, v[k]) : v[k];
    }
    // the last run of a lane may go on in the next: a lane with a single row may join the lane before
    const u32 last = row[K - 1];
    const bool joins = shuffle_up(last, 1) == row[0] && row[0] == last && lane > 0;
    const u32 joining = warp_ballot(joins);
    if (joining) {
        const int first = 31 - __clz(~joining & lanes_through(lane));
#pragma unroll
        for (int distance = 1; distance < 32; distance *= 2) {
            Z below = shuffle_up(run, distance);
            if (lane - distance >= first) run = add(below, run);
        }
    }
    warp_sync();
    if (!(joining >> 1 >> lane & 1)) add_at(sums, last, run);
    warp_sync();
}

// The entries of a step and their values: four consecutive ones for each lane, then four more.
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

// Add a step's entries; fetch(place) is the value of u at the place of a column.
template <class Fetch>
DEVICE void add_chunk(const Chunk& chunk, A one, Shared sums, Fetch fetch) {
    U y[LANE];
    u32 row[LANE];
    Z v[LANE];
#pragma unroll
    for (int k = 0; k < LANE; k++) y[k] = fetch(chunk.entries[k / 4].x[k % 4] & COLUMN_MASK);
#pragma unroll
    for (int k = 0; k < LANE; k++) {
        row[k] = chunk.entries[k / 4].x[k % 4] >> COLUMN_BITS;
        v[k] = product(0, 0, ISO ? one : chunk.values[k / 4].x[k % 4], y[k]);
    }
    add_runs<LANE>(row, v, sums);
}

// The steps of a warp, of which the next one is loaded ahead.
struct Stream {
    const Tiles& t;
    u32 step, end; // the next step, and the end of the part: a tile or a range
    Chunk next;

    __device__ __forceinline__ Stream(const Tiles& t, const u32* ends)
        : t(t), step(ends[0]), end(ends[1]) {
        load_chunk(next, t, step);
    }
    // Add the entries of a part; the one after it ends at `next_end`.
    template <class Fetch>
    __device__ __forceinline__ void add(u32 next_end, A one, Shared sums, Fetch fetch) {
        while (step < end) {
            const Chunk now = next;
            load_chunk(next, t, ++step);
            add_chunk(now, one, sums, fetch);
        }
        end = next_end;
    }
};

// done(i, sum) for every row i in tiles; sums of pieces of rows are written to `partial`. All threads of
// the first t.blocks blocks, of WARPS warps each, call; `pool` is their dynamic shared memory.
template <class Done>
DEVICE void sum_tiles(const Tiles t, const U* hubs, const U* u, const A* a, Quad* pool, Z* partial,
                      Done done) {
    const int lane = lane_id(), warp = warp_id(), places = (int)t.slots + 1;
    const int count = (int)t.count, parts = count + (int)t.ranges;
    Quad* part = pool + WARPS * places * (int)sizeof(Z) / 16;
    const Shared sums = shared_address(pool) + warp * places * (int)sizeof(Z);
    for (int s = lane; s < places; s += 32) store_shared<Z>(sums + s * (int)sizeof(Z), identity());
    warp_sync();

    const i64 q = (i64)blockIdx.x * WARPS + warp;
    const u32* ends = t.ends + q * parts;
    const A one = ISO ? a[0] : (A)0;
    Stream stream(t, ends);
    const Feed feed = Feed::start(part, hubs, t.width, count);
    for (int tile = 0; tile < count; tile++) {
        const Shared x = feed.wait(tile);
        stream.add(tile + 1 < parts ? ends[tile + 2] : 0, one, sums,
                   [&](u32 place) { return load_shared<U>(x + place / 4 * (u32)sizeof(U)); });
        feed.done(tile);
    }
    for (int p = count; p < parts; p++) {
        const U* x = u + (p - count) * t.span;
        stream.add(p + 1 < parts ? ends[p + 2] : 0, one, sums, [&](u32 place) { return x[place]; });
    }

    for (int s = lane; s < places - 1; s += 32) {
        const int target = t.targets[q * t.slots + s];
        const Z sum = load_shared<Z>(sums + s * (int)sizeof(Z));
        if (target >= 0)
            done((i64)target, sum);
        else if (target < -1)
            partial[-2 - target] = sum;
    }
    warp_sync();
}
