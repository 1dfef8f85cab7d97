// The sums over all vertices that both forms of the power iteration, power.cu and power_stepwise.cu,
// need. They are added block by block in a fixed order: equal grids give equal sums.

constexpr int NORM_NONE = 0, NORM_TWO = 2, NORM_MAX = 3;
// the change of the iterate, its dangling mass (over vertices whose scale is zero), its norm
constexpr int CHANGE = 0, DANGLING = 1, SIZE = 2, SUMS = 3;

DEVICE double join(int which, int norm, double x, double y) {
    return norm == NORM_MAX && which == SIZE ? (y > x ? y : x) : x + y;
}
DEVICE double join_warp(int which, int norm, double x) {
#pragma unroll 1
    for (int distance = 16; distance; distance /= 2)
        x = join(which, norm, x, shuffle_xor(x, distance));
    return x;
}

// The term of a value in the norm, and the norm from the sum of the terms; 1 for zeros, which so remain
// zeros.
DEVICE double size_of(int norm, double value) {
    return norm == NORM_TWO ? value * value : fabs(value);
}
DEVICE double norm_of(int norm, double size) {
    const double root = norm == NORM_TWO ? sqrt(size) : size;
    return root > 0 ? root : 1;
}

// Write the block's part of the sums to `sums`; a block has a warp for each of them.
DEVICE void store_sums(const double (&mine)[SUMS], int norm, double* sums) {
    __shared__ double warps[SUMS][32];
    const int lane = lane_id(), warp = warp_id();
#pragma unroll
    for (int k = 0; k < SUMS; k++) {
        double sum = join_warp(k, norm, mine[k]);
        if (lane == 0) warps[k][warp] = sum;
    }
    __syncthreads();
    if (warp < SUMS) {
        double sum = join_warp(warp, norm, lane < blockDim.x >> 5 ? warps[warp][lane] : 0.0);
        if (lane == 0) sums[warp * (i64)gridDim.x + blockIdx.x] = sum;
    }
}

// Sum number `which` over the parts of all blocks, in every lane of the calling warp.
DEVICE double sum_parts(const double* sums, i64 blocks, int which, int norm) {
    double sum = 0;
#pragma unroll 4 // all blocks wait for these loads
    for (i64 b = lane_id(); b < blocks; b += 32)
        sum = join(which, norm, sum, sums[which * blocks + b]);
    return join_warp(which, norm, sum);
}
