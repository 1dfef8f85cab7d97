// Which rows have an entry: one bit a row, and how many. The preamble gives O (offsets).

extern "C" __global__ void nonempty(i64 n, const O* indptr, u32* bits, u64* count) {
    // a warp makes a word; all its lanes stay to the end
    for (i64 word = thread_id() >> 5; word < (n + 31) / 32; word += thread_count() >> 5) {
        const i64 row = 32 * word + lane_id();
        const u32 found = warp_ballot(row < n && indptr[row + 1] > indptr[row]);
        if (lane_id() == 0) {
            bits[word] = found;
            atomicAdd(count, (u64)__popc(found));
        }
    }
}
