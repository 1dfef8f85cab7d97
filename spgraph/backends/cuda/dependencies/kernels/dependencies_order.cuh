// The vertices sorted by level, a counting sort by all blocks, with the running sums of their degrees.
// Part of dependencies.cu and dependencies_order.cu.

constexpr int COUNTED = 2048; // levels that blocks count in shared memory first

struct Control { // zero at launch
    GridBarrier barrier;
    i64 levels;   // how many there are
    i64 depth;    // the level that block 0 stopped at
    u64 overflow; // not zero: the number of paths to some vertex leaves float64
};

__shared__ u32 counted[COUNTED]; // this block's vertices by level; then the place of the next one
__shared__ u64 warp_edges[2][32];

// How many of `count` things a block takes, one after the other: a multiple of 32.
DEVICE i64 block_share(i64 count) { return ((count + gridDim.x - 1) / gridDim.x + 31) / 32 * 32; }

// act(level, the lanes that have it), in all lanes, once for each level among those of a warp's lanes.
template <class Act>
DEVICE void by_level(i64 level, Act act) {
    for (u32 left = warp_ballot(level >= 0); left;) {
        const i64 which = shuffle(level, __ffs(left) - 1);
        const u32 same = warp_ballot(level == which);
        act(which, same);
        left &= ~same;
    }
}

// Count the vertices of each level, up to `most` of them: the block's own in `counted`, all in
// `count`; and find how many levels there are. Vertices without a level get level -1.
CALLED void count_levels(const u32* visited, u64* count, i64 most, Control* control) {
    const i64 share = block_share(s.n), begin = blockIdx.x * share;
    const i64 end = begin + share < s.n ? begin + share : s.n;
    i64 deepest = -1;
    for (int d = threadIdx.x; d < COUNTED; d += blockDim.x) counted[d] = 0;
    __syncthreads();
    for (i64 base = begin + 32 * warp_id(); base < end; base += blockDim.x) {
        const i64 v = base + lane_id();
        i64 level = -1;
        if (v < end) {
            if (!visited || test_bit(visited, v))
                level = s.level[v];
            else
                s.level[v] = -1;
        }
        if (level > deepest) deepest = level;
        by_level(level, [&](i64 d, u32 same) {
            if (lane_id()) return;
            if (d < COUNTED)
                atomicAdd(&counted[d], (u32)__popc(same));
            else if (d < most)
                atomicAdd(&count[d], (u64)__popc(same));
        });
    }
    for (int distance = 16; distance; distance /= 2) {
        const i64 other = shuffle_xor(deepest, distance);
        if (other > deepest) deepest = other;
    }
    if (lane_id() == 0 && deepest >= load_lagging(&control->levels))
        atomicMax((u64*)&control->levels, (u64)(deepest + 1));
    __syncthreads();
    for (int d = threadIdx.x; d < COUNTED && d < most; d += blockDim.x)
        if (counted[d]) counted[d] = (u32)atomicAdd(&count[d], (u64)counted[d]);
}

// Where each of the levels begins; block 0 alone.
CALLED void scan_levels(const u64* count, i64 levels) {
    __shared__ u64 sums[32];
    i64 begin = 0;
    for (i64 base = 0; base <= levels; base += blockDim.x) {
        const i64 d = base + threadIdx.x;
        const u64 here = d < levels ? load_relaxed(&count[d]) : 0;
        const u64 through = warp_scan(here);
        if (lane_id() == 31) sums[warp_id()] = through;
        __syncthreads();
        u64 before = 0, all = 0;
#pragma unroll 1
        for (int w = 0; w < warps_of_block(); w++) {
            if (w < warp_id()) before += sums[w];
            all += sums[w];
        }
        if (d <= levels) s.ranges[d].start = begin + (i64)(before + through - here);
        begin += (i64)all;
        __syncthreads();
    }
}

// Write the vertices in the order of their levels, with their degrees; one path to those of level 0.
CALLED void sort_levels(u64* count) {
    const i64 share = block_share(s.n), begin = blockIdx.x * share;
    const i64 end = begin + share < s.n ? begin + share : s.n;
    for (i64 base = begin + 32 * warp_id(); base < end; base += blockDim.x) {
        const i64 v = base + lane_id();
        const i64 level = v < end ? (i64)s.level[v] : -1;
        i64 place = 0;
        by_level(level, [&](i64 d, u32 same) {
            const u32 number = __popc(same);
            u64 first = 0;
            if (lane_id() == 0) {
                if (d < COUNTED)
                    first = atomicAdd(&counted[d], number);
                else
                    first = atomicAdd(&count[d], 0ull - number) - number;
            }
            first = shuffle(first, 0);
            if (level == d) {
                const u32 below = same & lanes_below();
                place = s.ranges[d].start + (i64)first + __popc(below);
            }
        });
        if (level < 0) continue;
        s.order[place] = (I)v;
        s.offset[place] = s.indptr[v + 1] - s.indptr[v];
        if (s.t_offset != s.offset) s.t_offset[place] = s.t_indptr[v + 1] - s.t_indptr[v];
        if (level == 0) s.row(s.paths, 0)[v] = number(1.0);
    }
}

// The places of `count` in the order that this warp takes.
struct Places {
    i64 begin, end;
    MEMBER Places(i64 count) {
        const i64 share = block_share(count),
                  part = (share / 32 + warps_of_block() - 1) / warps_of_block() * 32;
        const i64 first = blockIdx.x * share, last = first + share < count ? first + share : count;
        begin = first + warp_id() * part;
        end = begin + part < last ? begin + part : last;
    }
};

// The sums of the degrees at each warp's places, and at each block's, in `sums`.
CALLED void sum_degrees(i64 count, u64* sums) {
    const Places mine(count);
    u64 out = 0, in = 0;
#pragma unroll 4
    for (i64 i = mine.begin + lane_id(); i < mine.end; i += 32) {
        out += (u64)s.offset[i];
        in += (u64)s.t_offset[i];
    }
    out = warp_sum(out);
    in = warp_sum(in);
    if (lane_id() == 0) {
        warp_edges[0][warp_id()] = out;
        warp_edges[1][warp_id()] = in;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        out = in = 0;
#pragma unroll 1
        for (int w = 0; w < warps_of_block(); w++) {
            out += warp_edges[0][w];
            in += warp_edges[1][w];
        }
        sums[2 * blockIdx.x] = out;
        sums[2 * blockIdx.x + 1] = in;
    }
}

// Degrees become their running sums, from zero; one more element is the sum of all.
CALLED void add_degrees(i64 count, const u64* sums) {
    const Places mine(count);
    for (int side = 0; side < (s.t_offset == s.offset ? 1 : 2); side++) {
        O* offset = side ? s.t_offset : s.offset;
        u64 before = 0, all = 0;
#pragma unroll 1
        for (u32 b = lane_id(); b < gridDim.x; b += 32) {
            const u64 sum = load_relaxed(&sums[2 * b + side]);
            if (b < blockIdx.x) before += sum;
            all += sum;
        }
        before = warp_sum(before);
        all = warp_sum(all);
#pragma unroll 1
        for (int w = 0; w < warp_id(); w++) before += warp_edges[side][w];
#pragma unroll 2
        for (i64 base = mine.begin; base < mine.end; base += 32) {
            const i64 i = base + lane_id();
            const u64 degree = i < mine.end ? (u64)offset[i] : 0;
            const u64 through = warp_scan(degree);
            if (i < mine.end) offset[i] = (O)(before + through - degree);
            before += shuffle(through, 31);
        }
        if (thread_id() == 0) offset[count] = (O)all;
    }
}

// All of the above, by all blocks; false where a barrier timed out, or where there are more than
// `most` levels.
DEVICE bool order_by_level(const u32* visited, u64* count, i64 most, u64* sums, Control* control) {
    count_levels(visited, count, most, control);
    if (!grid_barrier(&control->barrier, gridDim.x)) return false;
    const i64 levels = load_relaxed(&control->levels);
    if (levels > most) return false;
    if (blockIdx.x == 0) scan_levels(count, levels);
    if (!grid_barrier(&control->barrier, gridDim.x)) return false;
    sort_levels(count);
    if (!grid_barrier(&control->barrier, gridDim.x)) return false;
    const i64 reached = s.ranges[levels].start;
    sum_degrees(reached, sums);
    if (!grid_barrier(&control->barrier, gridDim.x)) return false;
    add_degrees(reached, sums);
    if (!grid_barrier(&control->barrier, gridDim.x)) return false;
    for (i64 d = thread_id(); d <= levels; d += thread_count()) {
        LevelRange& range = s.ranges[d];
        range.out = (i64)s.offset[range.start];
        range.in = (i64)s.t_offset[range.start];
    }
    return grid_barrier(&control->barrier, gridDim.x);
}
