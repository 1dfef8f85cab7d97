// Build the tiles of tiles.cuh: for each warp that will sum rows, a warp reads these rows in order; once
// to count entries, once to write them. Preamble: types O I A R, ISO.
//
// Row pieces: of the rows in `order` the first `split`, the longest, are distributed as pieces first[s]
// to first[s + 1], the others whole. Piece p goes to slot p / warps of warp p % warps, in every other
// slot in reverse order, so that all warps get about the same. A piece has every (first[s + 1] -
// first[s])th group of 32 entries of its row. code[k] is the place of column k: tile << 16 | place in the
// tile; after the tiles follow the `ranges` of far columns, `span` columns each.

constexpr int WARPS = 32, STEP = 256, BATCH = 4, SLICE = 32;
constexpr u32 COLUMN_BITS = 22, NONE = ~0u;

// Where the p-th entry of a tile and warp lies: four neighbours of each of 32 lanes, then its other
// four.
DEVICE i64 place_of(i64 p) { return (p & ~255ll) | (p & 4) << 5 | (p & 248) >> 1 | (p & 3); }

// The lanes among `valid` whose tile is this lane's; `last` is the largest there is.
DEVICE u32 lanes_of(u32 tile, u32 last, u32 valid) {
    for (int bit = 0; last >> bit; bit++) {
        u32 set = warp_ballot(tile >> bit & 1);
        valid &= tile >> bit & 1 ? set : ~set;
    }
    return valid;
}

// counts[q * (count + ranges) + tile]: the entries of warp q. What only a fill writes is the rest.
template <bool FILL>
DEVICE void build(const O* indptr, const I* indices, const A* a, const u32* code, const R* order,
                  const i64* first, i64 split, i64 pieces, i64 blocks, i64 slots, i64 count,
                  i64 ranges, i64 span, u32* counts, const u32* ends, u32* entries, A* values,
                  int* targets) {
    extern __shared__ u32 cursors[];
    const int lane = lane_id();
    const i64 warps = blocks * WARPS, q = thread_id() >> 5, parts = count + ranges;
    u32* cursor = cursors + threadIdx.x / WARP * parts;
    if (q >= warps) return;
    for (i64 b = lane; b < parts; b += 32) cursor[b] = 0;
    warp_sync();
    const i64 dealt = q % WARPS * blocks + q / WARPS, cut = first[split];
    for (i64 slot = 0; slot < slots; slot++) {
        const i64 v = slot * warps + (slot & 1 ? warps - 1 - dealt : dealt);
        if (v >= pieces) {
            if (FILL && lane == 0) targets[q * slots + slot] = -1;
            continue;
        }
        const i64 s = v < cut ? lower_bound(first, split + 1, v + 1) - 1 : split + v - cut;
        const i64 shares = v < cut ? first[s + 1] - first[s] : 1,
                  share = v < cut ? v - first[s] : 0;
        const i64 row = order[s], stop = indptr[row + 1];
        if (FILL && lane == 0) targets[q * slots + slot] = v < cut ? (int)(-2 - v) : (int)row;
        for (i64 e = (i64)indptr[row] + 32 * share; e < stop; e += 32 * shares * BATCH) {
            I column[BATCH];
            u32 at[BATCH];
#pragma unroll
            for (int j = 0; j < BATCH; j++) {
                i64 p = e + 32 * shares * j + lane;
                column[j] = p < stop ? indices[p] : (I)0;
            }
#pragma unroll
            for (int j = 0; j < BATCH; j++) at[j] = code[column[j]];
#pragma unroll
            for (int j = 0; j < BATCH; j++) {
                const i64 p = e + 32 * shares * j + lane;
                const u32 valid = warp_ballot(p < stop), tile = at[j] >> 16;
                const u32 same = lanes_of(tile, (u32)parts - 1, valid);
                const u32 below = __popc(same & lanes_below());
                if (p < stop) {
                    const u32 before = cursor[tile];
                    if (FILL) {
                        const i64 to =
                            (i64)ends[q * parts + tile] * STEP + place_of(before + below);
                        const u32 in_tile = (at[j] & 0xffff) << 2,
                                  in_range = (u32)(column[j] - (tile - count) * span);
                        entries[to] =
                            (u32)slot << COLUMN_BITS | (tile < count ? in_tile : in_range);
                        if (!ISO) values[to] = a[p];
                    }
                }
                warp_sync();
                if (p < stop && below == 0) cursor[tile] += __popc(same);
                warp_sync();
            }
        }
    }
    if (!FILL) {
        for (i64 b = lane; b < parts; b += 32) counts[q * parts + b] = cursor[b];
        return;
    }
    // what fills the last steps up goes to a place of its own
    for (i64 b = 0; b < parts; b++) {
        const i64 start = (i64)ends[q * parts + b] * STEP,
                  end = (i64)ends[q * parts + b + 1] * STEP;
        for (i64 p = cursor[b] + lane; p < end - start; p += 32) {
            entries[start + place_of(p)] = (u32)slots << COLUMN_BITS;
            if (!ISO) values[start + place_of(p)] = (A)0;
        }
    }
}

extern "C" __global__ void __launch_bounds__(256)
    tiles_count(const O* indptr, const I* indices, const u32* code, const R* order,
                const i64* first, i64 split, i64 pieces, i64 blocks, i64 slots, i64 count,
                i64 ranges, i64 span, u32* counts) {
    build<false>(indptr, indices, nullptr, code, order, first, split, pieces, blocks, slots, count,
                 ranges, span, counts, nullptr, nullptr, nullptr, nullptr);
}

extern "C" __global__ void __launch_bounds__(256)
    tiles_fill(const O* indptr, const I* indices, const A* a, const u32* code, const R* order,
               const i64* first, i64 split, i64 pieces, i64 blocks, i64 slots, i64 count,
               i64 ranges, i64 span, const u32* ends, u32* entries, A* values, int* targets) {
    build<true>(indptr, indices, a, code, order, first, split, pieces, blocks, slots, count, ranges,
                span, nullptr, ends, entries, values, targets);
}

// The entries of the rows that are in no tile: those of SLICE rows side by side, as many steps as
// the longest has, from first[slice] on. Place k < hubs is that of a streamed column, hubs
// + k column k; NONE fills up.
extern "C" __global__ void __launch_bounds__(256)
    tiles_fill_rest(const O* indptr, const I* indices, const A* a, const u32* code, i64 count,
                    i64 width, i64 slices, const u32* first, const int* rows, u32* entries,
                    A* values) {
    const i64 q = thread_id(), slice = q / SLICE;
    if (slice >= slices) return;
    const int row = rows[q];
    i64 e = row < 0 ? 0 : (i64)indptr[row];
    const i64 stop = row < 0 ? 0 : (i64)indptr[row + 1];
    for (i64 step = first[slice]; step < first[slice + 1]; step++, e++) {
        const i64 to = step * SLICE + q % SLICE;
        u32 entry = NONE;
        if (e < stop) {
            const u32 column = (u32)indices[e], at = code[column], tile = at >> 16;
            entry =
                tile < count ? tile * (u32)width + (at & 0xffff) : (u32)(count * width) + column;
        }
        entries[to] = entry;
        if (!ISO) values[to] = e < stop ? a[e] : (A)0;
    }
}
