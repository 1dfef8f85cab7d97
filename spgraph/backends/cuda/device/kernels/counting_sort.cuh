// A step of sorting by keys that are few: what each of WARPS warps of a block has of each key, `at`,
// becomes what the warps before it have; where the keys below BINS begin goes to `begin`, and behind
// these how many there are of the rest. All threads of the block call.
template <int BINS = 0, int KEYS>
DEVICE void scan_counts(u32 (&at)[WARPS][KEYS], u32* begin = nullptr) {
    __syncthreads();
    if (threadIdx.x < KEYS) {
        u32 sum = 0;
#pragma unroll 1
        for (int w = 0; w < WARPS; w++) {
            const u32 own = at[w][threadIdx.x];
            at[w][threadIdx.x] = sum;
            sum += own;
        }
        if (BINS) begin[threadIdx.x] = sum;
    }
    __syncthreads();
    if (!BINS) return;
    if (threadIdx.x == 0) {
        u32 sum = 0;
#pragma unroll 1
        for (int b = 0; b < BINS; b++) {
            const u32 own = begin[b];
            begin[b] = sum;
            sum += own;
        }
    }
    __syncthreads();
}
