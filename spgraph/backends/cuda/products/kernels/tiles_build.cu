// Build the tiles of tiles.cuh: for each warp that will sum rows, a warp reads these rows in order; once
// to count entries, once to write them. Preamble: types O I A, ISO.
//
// Row pieces: of the rows in `order` the first `split`, the longest, are distributed as pieces first[s]
// to first[s + 1], the others whole. Piece p goes to slot p / warps of warp p % warps, in every other
// slot in reverse order, so that all warps get about the same. A piece has every (first[s + 1] -
// first[s])th group of 32 entries of its row. code[k] is the place of column k: tile << 16 | place in the
// tile; after the tiles follow the `ranges` of far columns, `span` columns each. Where rows and columns have
// new numbers, rank[k], far columns are in their order, from number `before` on.

constexpr int WARPS = 32, BATCH = 4, SLICE = 32;
// as in tiles.cuh
constexpr u32 PACKED = 7, FEWEST = 5, SINGLES = 4, SLOT_BITS = 10, COLUMN_BITS = 22;
constexpr u32 NONE = ~0u;

// Where a warp is in a tile or a range: entries of the piece at hand, in all and those that are placed;
// packs and single entries of the pieces before.
struct alignas(16) Cursor {
    u32 here, placed, packs, singles;
};

// How the matrix is cut: what both kernels take behind it.
struct Cut {
    const u32* code;
    const int* rank; // or null
    i64 before;
    const int* order;
    const i64* first;
    i64 split, pieces, blocks, slots, count, ranges, span;

    __device__ __forceinline__ i64 number(i64 k) const { return rank ? rank[k] : k; }
    // the place of a column in its range
    __device__ __forceinline__ u32 in_range(I column, i64 part) const {
        return (u32)(number(column) - before - (part - count) * span);
    }
    __device__ __forceinline__ i64 warps() const { return blocks * WARPS; }
    __device__ __forceinline__ i64 parts() const { return count + ranges; }
    // the section of a part's single entries; the packs of a tile come before it
    __device__ __forceinline__ i64 singles_of(i64 part) const {
        return part < count ? 2 * part + 1 : part + count;
    }
    __device__ __forceinline__ i64 sections() const { return singles_of(parts()); }
    // How many of a piece's entries in a part lie in packs: values have no place there.
    __device__ __forceinline__ u32 packed(i64 part, u32 entries) const {
        const u32 rest = entries % PACKED;
        return !ISO || part >= count ? 0 : rest < FEWEST ? entries - rest : entries;
    }
};

// Where the p-th of a section's n groups lies: each lane has n / 32 in a row, the first n % 32 lanes one
// more, and a step has one of every lane.
DEVICE u32 place_of(u32 p, u32 n) {
    const u32 each = n / WARP, more = n % WARP, longer = more * (each + 1);
    if (p < longer) return p % (each + 1) * WARP + p / (each + 1);
    return (p - longer) % each * WARP + more + (p - longer) / each;
}

// The lanes among `valid` whose part is this lane's; `last` is the largest there is.
DEVICE u32 lanes_of(u32 part, u32 last, u32 valid) {
    for (int bit = 0; last >> bit; bit++) {
        u32 set = warp_ballot(part >> bit & 1);
        valid &= part >> bit & 1 ? set : ~set;
    }
    return valid;
}

// The entries of a piece: from `begin` on 32, then 32 after `stride`, and so on.
struct Piece {
    i64 row, number, begin, stop, stride; // the number is -1 of a whole row
};
DEVICE Piece piece_of(const Cut& cut, const O* indptr, i64 v) {
    const bool whole = v >= cut.first[cut.split];
    if (whole) {
        const i64 row = cut.order[cut.split + v - cut.first[cut.split]];
        return {row, -1, (i64)indptr[row], (i64)indptr[row + 1], WARP};
    }
    const i64 s = lower_bound(cut.first, cut.split + 1, v + 1) - 1, row = cut.order[s];
    const i64 shares = cut.first[s + 1] - cut.first[s], share = v - cut.first[s];
    return {row, v, (i64)indptr[row] + WARP * share, (i64)indptr[row + 1], WARP * shares};
}

// visit(p, there, column, place) for the entries p of a piece and the codes of their columns. All lanes
// call, and visit together.
template <class Visit>
DEVICE void for_entries(const Piece& piece, const I* indices, const u32* code, Visit visit) {
    for (i64 e = piece.begin + lane_id(); e - lane_id() < piece.stop; e += piece.stride * BATCH) {
        I column[BATCH];
        u32 place[BATCH];
#pragma unroll
        for (int j = 0; j < BATCH; j++) {
            const i64 p = e + piece.stride * j;
            column[j] = p < piece.stop ? indices[p] : (I)0;
        }
#pragma unroll
        for (int j = 0; j < BATCH; j++) place[j] = code[column[j]];
#pragma unroll
        for (int j = 0; j < BATCH; j++) {
            const i64 p = e + piece.stride * j;
            visit(p, p < piece.stop, column[j], place[j]);
        }
    }
}

// What a fill writes, of the warp whose sections begin at ends[0], ends[1], ...
struct Out {
    const u32* ends;
    u32* entries;
    A* values;

    __device__ __forceinline__ u32 groups(i64 section) const {
        return ends[section + 1] - ends[section];
    }
    __device__ __forceinline__ i64 at(i64 section, u32 group) const {
        return (i64)ends[section] + place_of(group, groups(section));
    }
    // Entry k of `all` that one row has in the packs of a section, of which `before` are others'.
    __device__ __forceinline__ void pack(i64 section, u32 before, u32 k, u32 all, u32 slot,
                                         u32 place) const {
        u16* half = (u16*)entries + 8 * at(section, before + k / PACKED);
        half[1 + k % PACKED] = (u16)place;
        if (k % PACKED == 0) {
            const u32 held = all - k < PACKED ? all - k : PACKED;
            half[0] = (u16)(held << SLOT_BITS | slot);
            for (u32 none = held; none < PACKED; none++) half[1 + none] = 0;
        }
    }
    __device__ __forceinline__ void single(i64 section, u32 k, u32 entry, A value) const {
        const i64 to = SINGLES * at(section, k / SINGLES) + k % SINGLES;
        entries[to] = entry;
        if (!ISO) values[to] = value;
    }
};

// Write the entries of a piece, which have been counted.
DEVICE void place_piece(const Cut& cut, const Piece& piece, u32 slot, const I* indices, const A* a,
                        Cursor* cursors, const Out& out) {
    for_entries(piece, indices, cut.code, [&](i64 p, bool there, I column, u32 code) {
        const u32 part = code >> 16, place = code & 0xffff;
        const u32 same = lanes_of(part, (u32)cut.parts() - 1, warp_ballot(there));
        const u32 below = __popc(same & lanes_below());
        if (there) {
            const Cursor cursor = cursors[part];
            const u32 k = cursor.placed + below, packed = cut.packed(part, cursor.here);
            const u32 at = part < cut.count ? place << 2 : cut.in_range(column, part);
            const u32 entry = slot << COLUMN_BITS | at;
            if (k < packed)
                out.pack(2 * part, cursor.packs, k, packed, slot, place);
            else
                out.single(cut.singles_of(part), cursor.singles + k - packed, entry,
                           ISO ? (A)0 : a[p]);
        }
        warp_sync();
        if (there && below == 0) cursors[part].placed += __popc(same);
        warp_sync();
    });
}

// counts[sections * q + ...]: the groups of warp q in each section. What only a fill writes is the rest.
template <bool FILL>
DEVICE void build(const O* indptr, const I* indices, const A* a, const Cut& cut, u32* counts,
                  const u32* ends, u32* entries, A* values, int* targets) {
    extern __shared__ Cursor pool[];
    const int lane = lane_id();
    const i64 warps = cut.warps(), q = thread_id() >> 5, parts = cut.parts(),
              sections = cut.sections();
    Cursor* cursors = pool + warp_id() * parts;
    if (q >= warps) return;
    const Out out = {ends + q * sections, entries, values};
    for (i64 b = lane; b < parts; b += WARP) cursors[b] = {0, 0, 0, 0};
    warp_sync();
    const i64 dealt = q % WARPS * cut.blocks + q / WARPS;
    for (i64 slot = 0; slot < cut.slots; slot++) {
        const i64 v = slot * warps + (slot & 1 ? warps - 1 - dealt : dealt);
        int* target = targets + q * cut.slots + slot;
        if (v >= cut.pieces) {
            if (FILL && lane == 0) *target = -1;
            continue;
        }
        const Piece piece = piece_of(cut, indptr, v);
        if (FILL && lane == 0)
            *target = (int)(piece.number < 0 ? cut.number(piece.row) : -2 - piece.number);
        for_entries(piece, indices, cut.code, [&](i64, bool there, I, u32 code) {
            if (there) atomicAdd(&cursors[code >> 16].here, 1u);
        });
        warp_sync();
        if (FILL) place_piece(cut, piece, (u32)slot, indices, a, cursors, out);
        for (i64 b = lane; b < parts; b += WARP) {
            const Cursor c = cursors[b];
            const u32 packed = cut.packed(b, c.here);
            cursors[b] = {0, 0, c.packs + (packed + PACKED - 1) / PACKED,
                          c.singles + c.here - packed};
        }
        warp_sync();
    }
    for (i64 b = lane; b < parts; b += WARP) {
        const Cursor c = cursors[b];
        const i64 section = cut.singles_of(b);
        const u32 groups = (c.singles + SINGLES - 1) / SINGLES;
        if (!FILL) {
            if (b < cut.count) counts[q * sections + section - 1] = c.packs;
            counts[q * sections + section] = groups;
            continue;
        }
        // what fills the last group up goes to a place of its own
        for (u32 k = c.singles; k < groups * SINGLES; k++)
            out.single(section, k, (u32)cut.slots << COLUMN_BITS, (A)0);
    }
}

extern "C" __global__ void __launch_bounds__(256)
    tiles_count(const O* indptr, const I* indices, const u32* code, const int* rank, i64 before,
                const int* order, const i64* first, i64 split, i64 pieces, i64 blocks, i64 slots,
                i64 count, i64 ranges, i64 span, u32* counts) {
    const Cut cut = {code,   rank,   before, order, first,  split,
                     pieces, blocks, slots,  count, ranges, span};
    build<false>(indptr, indices, nullptr, cut, counts, nullptr, nullptr, nullptr, nullptr);
}

extern "C" __global__ void __launch_bounds__(256)
    tiles_fill(const O* indptr, const I* indices, const A* a, const u32* code, const int* rank,
               i64 before, const int* order, const i64* first, i64 split, i64 pieces, i64 blocks,
               i64 slots, i64 count, i64 ranges, i64 span, const u32* ends, u32* entries, A* values,
               int* targets) {
    const Cut cut = {code,   rank,   before, order, first,  split,
                     pieces, blocks, slots,  count, ranges, span};
    build<true>(indptr, indices, a, cut, nullptr, ends, entries, values, targets);
}

// Threads of a block of tiles_spread, and of a section; banks of shared memory.
constexpr int SPREADERS = 128, TEAM = 8;
constexpr u32 BANKS = 32;

// Order the entries of each pack of a step, so that what the lanes load together lies in different banks
// of shared memory: pack after pack, two entries change places where fewer packs before have others in
// the same banks then. loads[k * BANKS + bank]: how many have their k-th entry in a bank.
DEVICE void spread(Quad* step, u32 packs, u8 (&loads)[PACKED * BANKS][SPREADERS]) {
    const auto load = [&](u32 k, u32 place) -> u8& {
        return loads[k * BANKS + place % BANKS][threadIdx.x];
    };
    for (u32 b = 0; b < PACKED * BANKS; b++) loads[b][threadIdx.x] = 0;
#pragma unroll 1
    for (u32 lane = 0; lane < packs; lane++) {
        Quad pack = step[lane];
        const u32 held = (pack.x[0] & 0xffff) >> SLOT_BITS;
        u32 place[PACKED];
#pragma unroll
        for (int k = 0; k < PACKED; k++)
            place[k] = pack.x[(k + 1) / 2] >> 16 * ((k + 1) % 2) & 0xffff;
#pragma unroll
        for (int i = 1; i < PACKED; i++)
#pragma unroll
            for (int j = 0; j < i; j++) {
                const u32 p = place[i], q = place[j];
                const bool swap = i < held && load(i, q) + load(j, p) < load(i, p) + load(j, q);
                place[i] = swap ? q : p;
                place[j] = swap ? p : q;
            }
#pragma unroll
        for (int k = 0; k < PACKED; k++) load(k, place[k])++;
        pack.x[0] = (pack.x[0] & 0xffff) | place[0] << 16;
#pragma unroll
        for (int w = 1; w < 4; w++) pack.x[w] = place[2 * w - 1] | place[2 * w] << 16;
        step[lane] = pack;
    }
}

// TEAM threads for the packs of each warp in each tile, every one with its own steps.
extern "C" __global__ void __launch_bounds__(SPREADERS)
    tiles_spread(i64 warps, i64 count, i64 sections, const u32* ends, Quad* entries) {
    __shared__ u8 loads[PACKED * BANKS][SPREADERS];
    const i64 team = thread_id() / TEAM;
    if (team >= warps * count) return;
    const u32* section = ends + team / count * sections + 2 * (team % count);
    const u32 packs = section[1] - section[0];
    for (u32 p = threadIdx.x % TEAM * WARP; p < packs; p += TEAM * WARP)
        spread(entries + section[0] + p, packs - p < WARP ? packs - p : WARP, loads);
}

// The entries of the rows that are in no tile: those of SLICE rows side by side, as many steps as
// the longest has, from first[slice] on. place: where a product finds the value of each column; NONE
// fills up.
extern "C" __global__ void __launch_bounds__(256)
    tiles_fill_rest(const O* indptr, const I* indices, const A* a, const u32* place, i64 slices,
                    const u32* first, const int* rows, u32* entries, A* values) {
    const i64 q = thread_id(), slice = q / SLICE;
    if (slice >= slices) return;
    const int row = rows[q];
    i64 e = row < 0 ? 0 : (i64)indptr[row];
    const i64 stop = row < 0 ? 0 : (i64)indptr[row + 1];
    for (i64 step = first[slice]; step < first[slice + 1]; step++, e++) {
        const i64 to = step * SLICE + q % SLICE;
        entries[to] = e < stop ? place[indices[e]] : NONE;
        if (!ISO) values[to] = e < stop ? a[e] : (A)0;
    }
}
