// Row by row: z[i] = the sum over the entries of row i that meet an entry of u, for the rows that
// the mask allows. Preamble: as gather.cuh.

#include "gather.cuh"

DEVICE void store(const Sum& sum, i64 i, u32* z_bits, Z* z) {
    if (!sum.hit) return;
    z[i] = sum.value;
    // where u is full the bits are known beforehand
    if constexpr (!FULL) atomicOr(z_bits + (i >> 5), 1u << (i & 31));
}

// A warp a task of gather.cuh.
extern "C" __global__ void __launch_bounds__(256)
    pull(const O* indptr, const I* indices, const A* a, const u32* u_bits, const U* u,
         const u32* mask, u32 invert, const R* rows, i64 split, i64 pieces, i64 wide, i64 narrow,
         i64 single, const int* piece_row, const i64* piece_first, u32* settled, bool* hits,
         Z* partial, u32* z_bits, Z* z) {
    const RowBins bins = {rows, split, pieces, wide, narrow, single, piece_row, piece_first};
    gather(thread_id() >> 5, bins, indptr, indices, a, u_bits, u, mask, invert, settled, hits,
           partial, [&](const Sum& sum, i64 i) { store(sum, i, z_bits, z); });
}

// The sums of the split rows from those of their pieces, a warp a row.
extern "C" __global__ void __launch_bounds__(256)
    pull_split(const R* rows, i64 split, const i64* piece_first, const bool* hits, const Z* partial,
               u32* z_bits, Z* z) {
    i64 s = thread_id() >> 5;
    if (s >= split) return;
    Sum sum = {identity(), false};
    for (i64 p = piece_first[s] + lane_id(); p < piece_first[s + 1]; p += 32)
        if (hits[p]) take(sum, partial[p]);
    sum = merge(sum, 32);
    if (lane_id() == 0) store(sum, rows[s], z_bits, z);
}
