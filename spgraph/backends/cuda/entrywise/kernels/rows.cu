// The rows of the entries of a matrix.
// Preamble: type O (offsets).

#include "rows.cuh"

// tiles[t] = the row of entry t * 2^TILE_BITS, or of the last entry if there are fewer.
extern "C" __global__ void __launch_bounds__(256)
    rows(const O* indptr, i64 nrows, i64 count, i64* tiles) {
    for (i64 t = thread_id(); t <= (count - 1 >> TILE_BITS) + 1; t += thread_count()) {
        const i64 e = t << TILE_BITS;
        tiles[t] = row_between(indptr, 0, nrows - 1, e < count ? e : count - 1);
    }
}
