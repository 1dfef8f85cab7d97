// Products that gather from shared memory, of a matrix that tiles.py has cut into tiles. Preamble: as
// gather.cuh, which is included before; u is full, and there is no mask.
//
// Each of the `blocks` blocks owns `slots` rows a warp, whose sums stay in shared memory. Tile after
// tile, `width` values of u at the columns of largest degree (`hubs` has them in this order) are copied
// to shared memory, too, the next tile while the warps work on this one. Every warp adds its own entries
// of the tile. Columns of small degree are not worth the copies: after the tiles they follow in `ranges`
// of `span` columns, whose entries gather from u; all warps reach a range at about the same time, and
// find its part of u in the L2. No two warps add to one row, so there are no atomics, and the order of
// additions is always the same.
//
// A lane reads 16 bytes at a time: a group. It is a pack, PACKED entries of one row at most, which name
// their row once; or SINGLES entries of any rows. Of the entries that a row has in a tile most lie in
// packs, 2.3 bytes each, and those that would fill less than FEWEST places of one are single, 4 bytes
// each; in a Kronecker graph that is 2.4 to 2.7 bytes an entry. There are no packs where entries have
// values, nor in ranges. The packs of a warp in a tile are one section of its groups, and its single
// entries the next, each sorted by row. Lanes have equal shares of a section, every lane consecutive
// rows, so that a lane adds a row up in registers, and looks to its neighbours only at the end; groups
// of a step, one of each lane, lie side by side, and the entries of each pack are ordered so that lanes
// load from different banks of shared memory (tiles_spread in tiles_build.cu).

constexpr int WARPS = 32, SINGLES = 4;
// as in tiles_build.cu; a pack of fewer entries than FEWEST would be longer than single ones
constexpr int PACKED = 7, FEWEST = 5;
// a pack is 8 numbers of 16 bits: the place of its row's sum among the warp's below the number of its
// entries, and the places of their columns in the tile
constexpr u32 SLOT_BITS = 10, SLOT_MASK = (1u << SLOT_BITS) - 1;
// a single entry is the place of its row's sum, and, in the low bits, 4 times the place of its column in
// a tile, or the place of its column in a range
constexpr u32 COLUMN_BITS = 22, COLUMN_MASK = (1u << COLUMN_BITS) - 1;
// so many groups behind those that lanes load come to the L2
constexpr u32 AHEAD = 64;

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
DEVICE void prefetch(const void*) {}
DEVICE u32 half_of(u32 word, int k) { return word >> 16 * k & 0xffff; }
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
    const Quad* entries; // with SPARE groups more at the end, since groups are loaded ahead
    const A* values;     // of the entries, in their order
    const u32* ends;     // running sum of the groups of each warp's sections, after a 0
    const int* targets;  // of each slot: its row, -1 for none, -2 - p for partial sum p
};

DEVICE void add_at(Shared sums, u32 place, Z value) {
    const Shared p = sums + place * (u32)sizeof(Z);
    store_shared<Z>(p, add(load_shared<Z>(p), value));
}

// What a lane has added up of the row that it is at.
struct Run {
    u32 row;
    Z sum;

    // Add to a row's sum, the same row's or a later one's.
    __device__ __forceinline__ void add_to(u32 next, Z value, Shared sums) {
        const bool same = next == row;
        if (!same) add_at(sums, row, sum); // the run ends here, and in no other lane
        sum = same ? add(sum, value) : value;
        row = next;
    }
    // The end of a section, in which the rows of this lane began with `first`; if it has `any`. Whole
    // warps call.
    __device__ __forceinline__ void close(u32 first, bool any, Shared sums) {
        // the run may go on in the next lane: a lane with a single row may join the lane before
        const int lane = lane_id();
        const u32 before = shuffle_up(row, 1);
        const bool joins = before == first && first == row && any && lane > 0;
        const u32 joining = warp_ballot(joins);
        if (joining) {
            const int from = 31 - __clz(~joining & lanes_through(lane));
#pragma unroll
            for (int distance = 1; distance < 32; distance *= 2) {
                Z below = shuffle_up(sum, distance);
                if (lane - distance >= from) sum = add(below, sum);
            }
        }
        warp_sync();
        if (any && !(joining >> 1 >> lane & 1)) add_at(sums, row, sum);
        warp_sync();
    }
};

// A group, and the values of its single entries.
struct Chunk {
    Quad entries;
    Group<A, SINGLES> values;

    __device__ __forceinline__ u32 half(int k) const { return half_of(entries.x[k / 2], k % 2); }
    __device__ __forceinline__ u32 first_row(bool pack) const {
        return pack ? entries.x[0] & SLOT_MASK : entries.x[0] >> COLUMN_BITS;
    }
    // fetch(place) is the value of u at the place of a column.
    template <class Fetch>
    __device__ __forceinline__ void add_pack(Run& run, A one, Shared sums, Fetch fetch) const {
        const u32 count = half(0) >> SLOT_BITS;
        U y[PACKED];
#pragma unroll
        for (int k = 0; k < PACKED; k++) y[k] = fetch(half(1 + k));
        Z sum = product(0, 0, one, y[0]);
#pragma unroll
        for (int k = 1; k < PACKED; k++)
            if (k < FEWEST || k < count) sum = add(sum, product(0, 0, one, y[k]));
        run.add_to(first_row(true), sum, sums);
    }
    template <class Fetch>
    __device__ __forceinline__ void add_singles(Run& run, A one, Shared sums, Fetch fetch) const {
        U y[SINGLES];
#pragma unroll
        for (int k = 0; k < SINGLES; k++) y[k] = fetch(entries.x[k] & COLUMN_MASK);
#pragma unroll
        for (int k = 0; k < SINGLES; k++)
            run.add_to(entries.x[k] >> COLUMN_BITS, product(0, 0, ISO ? one : values.x[k], y[k]),
                       sums);
    }
};
// Have the L2 load what the lanes will read AHEAD groups later; `element` is what this lane reads now.
template <class T>
DEVICE void load_ahead(const T* element) {
    constexpr int LINE = 128;
    if (lane_id() % (LINE / (int)sizeof(T)) == 0) prefetch(element + AHEAD);
}
DEVICE void load_chunk(Chunk& chunk, const Tiles& t, u32 group) {
    const Quad* entries = t.entries + group;
    chunk.entries = load_quad(entries);
    load_ahead(entries);
    if (ISO) return;
    const auto* values = (const Group<A, SINGLES>*)t.values + group;
    chunk.values = *values;
    load_ahead(values);
}

// The groups of a warp, section after section; those of the next step are loaded ahead.
struct Stream {
    const Tiles& t;
    u32 at, end; // the next step's first group, and the end of the section
    Chunk next;

    __device__ __forceinline__ Stream(const Tiles& t, const u32* ends)
        : t(t), at(ends[0]), end(ends[1]) {
        load_chunk(next, t, at + lane_id());
    }
    // Add the entries of a section; the one after it ends at `next_end`.
    template <bool PACKS, class Fetch>
    __device__ __forceinline__ void add(u32 next_end, A one, Shared sums, Fetch fetch) {
        if (at < end) {
            const u32 lane = lane_id(), first = next.first_row(PACKS);
            const bool any = at + lane < end;
            Run run = {first, identity()};
            while (at < end) {
                const Chunk now = next;
                const bool mine = at + lane < end;
                at = at + WARP < end ? at + WARP : end;
                load_chunk(next, t, at + lane);
                if (mine && PACKS) now.add_pack(run, one, sums, fetch);
                if (mine && !PACKS) now.add_singles(run, one, sums, fetch);
            }
            run.close(first, any, sums);
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
    const int count = (int)t.count, sections = 2 * count + (int)t.ranges;
    Quad* part = pool + WARPS * places * (int)sizeof(Z) / 16;
    const Shared sums = shared_address(pool) + warp * places * (int)sizeof(Z);
    for (int s = lane; s < places; s += 32) store_shared<Z>(sums + s * (int)sizeof(Z), identity());
    warp_sync();

    const i64 q = (i64)blockIdx.x * WARPS + warp;
    const u32* ends = t.ends + q * sections;
    const auto end_of = [&](int section) { return section < sections ? ends[section + 1] : 0; };
    const A one = ISO ? a[0] : (A)0;
    Stream stream(t, ends);
    const Feed feed = Feed::start(part, hubs, t.width, count);
    for (int tile = 0; tile < count; tile++) {
        const Shared x = feed.wait(tile);
        stream.add<true>(end_of(2 * tile + 1), one, sums,
                         [&](u32 place) { return load_shared<U>(x + place * (u32)sizeof(U)); });
        stream.add<false>(end_of(2 * tile + 2), one, sums, [&](u32 place) {
            return load_shared<U>(x + place / 4 * (u32)sizeof(U));
        });
        feed.done(tile);
    }
    // past the L1: what shared memory leaves of it is too small to find anything again
    for (int r = 0; r < (int)t.ranges; r++) {
        const U* x = u + r * t.span;
        stream.add<false>(end_of(2 * count + r + 1), one, sums,
                          [&](u32 place) { return load_relaxed(x + place); });
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
