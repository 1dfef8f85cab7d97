// Exclusive scan over a thread block, of WARPS warps.

__shared__ u32 warp_count[WARPS];
__shared__ O warp_edges[WARPS];

// Of (count, degree): this thread's place, `slot` and `edge`, and the sums. All threads of the block
// call; a __syncthreads lies between two calls.
static __device__ __noinline__ void block_scan(u32 count, O degree, u32& slot, O& edge, u32& total,
                                               O& total_edges) {
    const int warp = warp_id(), lane = lane_id();
    const u32 counts = warp_scan(count);
    const O degrees = warp_scan(degree);
    if (lane == WARP - 1) {
        warp_count[warp] = counts;
        warp_edges[warp] = degrees;
    }
    __syncthreads();
    const u32 all_counts = warp_scan(lane < WARPS ? warp_count[lane] : 0u);
    const O all_degrees = warp_scan(lane < WARPS ? warp_edges[lane] : (O)0);
    slot = counts - count;
    edge = degrees - degree;
    const u32 slots_before = shuffle(all_counts, (warp + WARP - 1) & (WARP - 1));
    const O edges_before = shuffle(all_degrees, (warp + WARP - 1) & (WARP - 1));
    if (warp) {
        slot += slots_before;
        edge += edges_before;
    }
    total = shuffle(all_counts, WARP - 1);
    total_edges = shuffle(all_degrees, WARP - 1);
}
