// The sum of all entries.
// Preamble: types U Z, the monoid.

// One partial sum a block; the same number of blocks on every device, so that the order of
// additions is the same too.
extern "C" __global__ void __launch_bounds__(256)
    reduce(const u32* bits, const U* u, i64 size, Z* partial) {
    __shared__ Z sums[8];
    Z sum = identity();
    for (i64 i = thread_id(); i < size; i += thread_count()) {
        if (bits && !test_bit(bits, i)) continue;
        sum = add(sum, (Z)u[i]);
#ifdef TERMINAL
        if (is_terminal(sum)) break;
#endif
    }
    sum = warp_combine(sum);
    if (lane_id() == 0) sums[warp_id()] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = warp_combine(lane_id() < 8 ? sums[lane_id()] : identity());
        if (lane_id() == 0) partial[blockIdx.x] = sum;
    }
}
