// The Kronecker product: z[i * rows of B + k, j * columns of B + l] = op(a[i, j], b[k, l]).
// Preamble: types O I U (offsets, columns, values of A), P J V (of B), Q N Z (of the result), op.

#include "rows.cuh"

// A 64-bit division takes several times as long as one of 32 bits.
DEVICE i64 quotient(i64 x, i64 y) {
    return (u64)(x | y) >> 32 ? (i64)((u64)x / (u64)y) : (i64)((u32)x / (u32)y);
}

// Entry by entry of the result: row i of A makes a block of rows in which each entry of A meets
// each of B. `keep` is -1, or 0 where one value stands for all.
extern "C" __global__ void __launch_bounds__(256)
    kronecker(const O* a_indptr, const I* a_indices, const i64* a_tiles, const U* a, i64 a_keep,
              i64 a_count, i64 a_rows, const P* b_indptr, const J* b_indices, const i64* b_tiles,
              const V* b, i64 b_keep, i64 b_count, i64 b_rows, i64 b_cols, Q* z_indptr,
              N* z_indices, Z* z, i64 z_keep) {
    const i64 count = a_count * b_count;
    for (i64 e = thread_id(); e < count; e += thread_count()) {
        const i64 i = row_of(a_indptr, a_tiles, quotient(e, b_count));
        const i64 first = a_indptr[i], length = (i64)a_indptr[i + 1] - first;
        // in the block, row k has length * (entries of row k of B), those of one entry of A together
        const i64 in_block = e - first * b_count;
        const i64 k = row_of(b_indptr, b_tiles, quotient(in_block, length));
        const i64 b_first = b_indptr[k], b_length = (i64)b_indptr[k + 1] - b_first;
        const i64 in_row = in_block - length * b_first, nth = quotient(in_row, b_length);
        const i64 p = first + nth, q = b_first + in_row - nth * b_length;
        const i64 j = a_indices[p], l = b_indices[q];
        z_indices[e] = (N)(j * b_cols + l);
        if (z_keep || e == 0) z[e] = op(a[p & a_keep], b[q & b_keep], i, j, k, l);
    }
    const i64 nrows = a_rows * b_rows;
    for (i64 r = thread_id(); r <= nrows; r += thread_count()) {
        i64 start = count;
        if (r < nrows) {
            const i64 i = quotient(r, b_rows), k = r - i * b_rows;
            const i64 first = a_indptr[i], length = (i64)a_indptr[i + 1] - first;
            start = first * b_count + length * (i64)b_indptr[k];
        }
        z_indptr[r] = (Q)start;
    }
}
