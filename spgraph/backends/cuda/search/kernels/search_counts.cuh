// What a level has found, counted: vertices, their edges, and what an Exchange counts beside.

// Adds this thread's counts to the level's, with one atomic a block for each. All threads of the
// block call, and a barrier of all blocks lies between two calls: the second one clears what
// threads of the first one may still read.
CALLED void reduce_counts(u32 vertices, u64 edges, u32 others, Totals* totals = nullptr) {
    if (threadIdx.x < 3) block_sum[threadIdx.x] = 0;
    __syncthreads();
    vertices = warp_sum(vertices);
    edges = warp_sum(edges);
    if (Exchange::COUNTS_OTHERS) others = warp_sum(others);
    if (lane_id() == 0 && vertices) {
        atomicAdd(&block_sum[0], (u64)vertices);
        atomicAdd(&block_sum[1], edges);
    }
    if (Exchange::COUNTS_OTHERS && lane_id() == 0 && others) atomicAdd(&block_sum[2], (u64)others);
    __syncthreads();
    Exchange::add(totals, block_sum);
}
