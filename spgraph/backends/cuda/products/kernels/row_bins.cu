// Bin the rows of a matrix by their number of entries, each bin ascending: two launches, of a block for
// each window of rows. Preamble: types O R (ids of rows); PIECE NARROW SINGLE, as in gather.cuh.

constexpr int WARPS = 32; // of a block
#include "counting_sort.cuh"

// What is counted: split, wide, narrow and single rows, and the pieces of split ones.
constexpr int BINS = 4, PIECES = 4, COUNTS = 5, NOWHERE = 7;

DEVICE int bin_of(i64 length) {
    return length > PIECE    ? 0
           : length > NARROW ? 1
           : length > SINGLE ? 2
           : length > 0      ? 3
                             : NOWHERE;
}
DEVICE u32 pieces_of(i64 length) {
    return length > PIECE ? (u32)((length + PIECE - 1) / PIECE) : 0;
}

// counts[COUNTS * window + ...] += what this block's window has.
extern "C" __global__ void __launch_bounds__(1024)
    row_bins_count(const O* indptr, i64 n, i64 window, u64* counts) {
    const i64 first = blockIdx.x * window, end = first + window < n ? first + window : n;
    u32 found[COUNTS] = {0, 0, 0, 0, 0};
#pragma unroll 1
    for (i64 i = first + threadIdx.x; i < end; i += blockDim.x) {
        const i64 length = (i64)indptr[i + 1] - (i64)indptr[i];
        const int bin = bin_of(length);
#pragma unroll
        for (int k = 0; k < BINS; k++) found[k] += bin == k;
        found[PIECES] += pieces_of(length);
    }
#pragma unroll
    for (int k = 0; k < COUNTS; k++) warp_add(counts + COUNTS * blockIdx.x + k, (u64)found[k]);
}

// Write the rows of this block's window behind those of the windows before, bin by bin, the first row
// of the bins being at 0, wide, narrow and single; their bits in `nonempty`, and the pieces of split
// rows, `pieces` in all. A warp's share of a window is a multiple of 32 rows.
extern "C" __global__ void __launch_bounds__(1024)
    row_bins_place(const O* indptr, i64 n, i64 window, const u64* counts, i64 wide, i64 narrow,
                   i64 single, i64 pieces, R* rows, int* piece_row, i64* piece_first,
                   u32* nonempty) {
    __shared__ u64 before[COUNTS];    // where the window's first goes
    __shared__ u32 at[WARPS][COUNTS]; // what each warp has; then: where its next one goes
    const int warp = warp_id(), lane = lane_id();
    if (threadIdx.x < COUNTS) {
        const int k = threadIdx.x;
        before[k] = k == 1 ? wide : k == 2 ? narrow : k == 3 ? single : 0;
    }
    if (threadIdx.x < WARPS * COUNTS) at[0][threadIdx.x] = 0;
    __syncthreads();
#pragma unroll 1
    for (i64 k = threadIdx.x; k < COUNTS * (i64)blockIdx.x; k += blockDim.x)
        if (counts[k]) atomicAdd(before + k % COUNTS, counts[k]);
    const i64 each = window / WARPS, first = blockIdx.x * window + warp * each;
    const i64 end = first + each < n ? first + each : n;
#pragma unroll 1
    for (i64 i = first + lane; i < end; i += WARP) {
        const i64 length = (i64)indptr[i + 1] - (i64)indptr[i];
        const int bin = bin_of(length);
        if (bin < BINS) atomicAdd(&at[warp][bin], 1u);
        if (bin == 0) atomicAdd(&at[warp][PIECES], pieces_of(length));
    }
    scan_counts(at);
#pragma unroll 1
    for (i64 from = first; from < end; from += WARP) {
        const i64 i = from + lane, length = i < end ? (i64)indptr[i + 1] - (i64)indptr[i] : 0;
        const int bin = bin_of(length);
        const u32 alike = lanes_alike<3>(bin), own = pieces_of(length),
                  word = warp_ballot(length > 0);
        const u32 through = warp_scan(own), all = shuffle(through, WARP - 1);
        if (bin < BINS) {
            const i64 place = before[bin] + at[warp][bin] + __popc(alike & lanes_below());
            rows[place] = (R)i;
            if (own) {
                const i64 piece = before[PIECES] + at[warp][PIECES] + through - own;
                piece_first[place] = piece;
#pragma unroll 1
                for (u32 k = 0; k < own; k++) piece_row[piece + k] = (int)place;
            }
        }
        if (nonempty && lane == 0) nonempty[from / WARP] = word;
        warp_sync(); // all have read their places
        if (bin < BINS && !(alike & lanes_below())) at[warp][bin] += __popc(alike);
        if (lane == 0) at[warp][PIECES] += all;
        warp_sync();
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) piece_first[wide] = pieces;
}
