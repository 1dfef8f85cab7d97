// Cut a matrix into the tiles of tiles.cuh: a warp for each warp that will sum rows, which walks
// that one's rows in order; once to count, once to place. Preamble: types O I A R, ISO.
//
// Row pieces: the longest `split` rows of `order` are dealt as pieces first[s] to first[s + 1], the
// others whole; piece p goes to slot p / warps of warp p % warps, in every other slot the other way
// round, so that all warps get about the same. A piece takes every (first[s + 1] - first[s])th 32
// entries of its row. code[k] is the place of column k: tile << 16 | place in the tile; tile
// `count` is what is far.

constexpr int WARPS = 32, STEP = 256, FAR_STEP = 64, BATCH = 4;
constexpr u32 COLUMN_BITS = 18;

// Where the p-th entry of a tile and warp lies: four neighbours of each of 32 lanes, then its other
// four.
DEVICE i64 place_of(i64 p) { return (p & ~255ll) | (p & 4) << 5 | (p & 248) >> 1 | (p & 3); }

// The lanes among `valid` whose tile is this lane's; `count` is the largest there is.
DEVICE u32 lanes_of(u32 tile, u32 count, u32 valid) {
    for (int bit = 0; count >> bit; bit++) {
        u32 set = __ballot_sync(FULL_WARP, tile >> bit & 1);
        valid &= tile >> bit & 1 ? set : ~set;
    }
    return valid;
}

// counts[q * (count + 1) + tile]: the entries of warp q. What only a fill writes is the rest.
template <bool FILL>
DEVICE void build(const O* indptr, const I* indices, const A* a, const u32* code, const R* order,
                  const i64* first, i64 split, i64 pieces, i64 blocks, i64 slots, i64 count,
                  u32* counts, const u32* ends, const u32* far_ends, u32* entries, A* values,
                  u64* far, A* far_values, int* targets) {
    extern __shared__ u32 cursors[];
    const int lane = lane_id();
    const i64 warps = blocks * WARPS, q = thread_id() >> 5;
    u32* cursor = cursors + (threadIdx.x >> 5) * (count + 1);
    if (q >= warps) return;
    for (i64 b = lane; b <= count; b += 32) cursor[b] = 0;
    __syncwarp();
    const i64 dealt = q % WARPS * blocks + q / WARPS, cut = first[split];
    const u32 base = (u32)(q % WARPS * (slots + 1));
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
        const u32 place = base + (u32)slot;
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
                const u32 valid = __ballot_sync(FULL_WARP, p < stop), tile = at[j] >> 16;
                const u32 same = lanes_of(tile, (u32)count, valid);
                const u32 below = __popc(same & ((1u << lane) - 1));
                if (p < stop) {
                    const u32 before = cursor[tile];
                    if (FILL && tile < count) {
                        const i64 to =
                            (i64)ends[q * count + tile] * STEP + place_of(before + below);
                        entries[to] = place << COLUMN_BITS | (at[j] & 0xffff) << 2;
                        if (!ISO) values[to] = a[p];
                    } else if (FILL) {
                        const i64 to = (i64)far_ends[q] * FAR_STEP + before + below;
                        far[to] = (u64)place << 32 | (u64)column[j];
                        if (!ISO) far_values[to] = a[p];
                    }
                }
                __syncwarp();
                if (p < stop && below == 0) cursor[tile] += __popc(same);
                __syncwarp();
            }
        }
    }
    if (!FILL) {
        for (i64 b = lane; b <= count; b += 32) counts[q * (count + 1) + b] = cursor[b];
        return;
    }
    // what fills the last steps up goes to a place of its own
    const u32 none = base + (u32)slots;
    for (i64 b = 0; b < count; b++) {
        const i64 start = (i64)ends[q * count + b] * STEP,
                  end = (i64)ends[q * count + b + 1] * STEP;
        for (i64 p = cursor[b] + lane; p < end - start; p += 32) {
            entries[start + place_of(p)] = none << COLUMN_BITS;
            if (!ISO) values[start + place_of(p)] = (A)0;
        }
    }
    const i64 end = (i64)far_ends[q + 1] * FAR_STEP;
    for (i64 to = (i64)far_ends[q] * FAR_STEP + cursor[count] + lane; to < end; to += 32) {
        far[to] = (u64)none << 32;
        if (!ISO) far_values[to] = (A)0;
    }
}

extern "C" __global__ void __launch_bounds__(256)
    tiles_count(const O* indptr, const I* indices, const u32* code, const R* order,
                const i64* first, i64 split, i64 pieces, i64 blocks, i64 slots, i64 count,
                u32* counts) {
    build<false>(indptr, indices, nullptr, code, order, first, split, pieces, blocks, slots, count,
                 counts, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
}

extern "C" __global__ void __launch_bounds__(256)
    tiles_fill(const O* indptr, const I* indices, const A* a, const u32* code, const R* order,
               const i64* first, i64 split, i64 pieces, i64 blocks, i64 slots, i64 count,
               const u32* ends, const u32* far_ends, u32* entries, A* values, u64* far,
               A* far_values, int* targets) {
    build<true>(indptr, indices, a, code, order, first, split, pieces, blocks, slots, count,
                nullptr, ends, far_ends, entries, values, far, far_values, targets);
}
