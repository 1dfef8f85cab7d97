// Which rows have an entry: one bit a row, and how many. The preamble gives O (offsets).

extern "C" __global__ void nonempty(i64 n, const O* indptr, u32* bits, u64* count) {
    const u64 total = write_bits(n, bits, [=](i64 row) { return indptr[row + 1] > indptr[row]; });
    if (lane_id() == 0 && total) atomicAdd(count, total);
}
