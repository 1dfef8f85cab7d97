// A times a matrix X that has all of its entries, `wide` of them a row: the result has a row of as
// many for each row of A that has entries. Preamble: types O I A (offsets, ids and values of A), U
// (values of X), R (offsets of the result), S (row ids), the semiring; WIDTH (a power of 2), EACH.
//
// WIDTH neighbouring lanes take one row of A, or a piece of a long one, for WIDTH * EACH
// neighbouring columns: for every entry of A they read as many neighbouring values of X. Rows come
// in bins of about the same length (row_bins.py), so that neighbouring lanes have about the same to
// do. Sums are in the order of the row, for any number of columns.

constexpr int PIECE = 1024; // entries

// The sum over the entries from `start` to `stop` of row i, for this lane's columns; to[c] is for
// column c.
DEVICE void sum_to(const I* indices, const A* a, i64 a_keep, const U* x, i64 x_keep, i64 wide,
                   i64 i, i64 start, i64 stop, i64 column, Z* to) {
    constexpr int BATCH = EACH == 1 ? 8 : 4;
    Z sum[EACH];
    if constexpr (ADD_KIND == ADD_ANY) {
        stop = start + 1;
    } else {
#pragma unroll
        for (int n = 0; n < EACH; n++) sum[n] = identity();
    }
    for (i64 p = start; p < stop; p += BATCH) {
        i64 k[BATCH];
        A value[BATCH];
        U y[BATCH][EACH];
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            // beyond the end: the last entry again, to be left out
            i64 at = p + b < stop ? p + b : stop - 1;
            k[b] = indices[at];
            value[b] = a[at & a_keep];
        }
#pragma unroll
        for (int b = 0; b < BATCH; b++)
#pragma unroll
            for (int n = 0; n < EACH; n++) {
                i64 c = column + n * WIDTH;
                y[b][n] = x[(k[b] * wide + (c < wide ? c : wide - 1)) & x_keep];
            }
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            if (p + b >= stop) break;
#pragma unroll
            for (int n = 0; n < EACH; n++) {
                Z term = multiply(value[b], y[b][n], i, k[b], k[b], column + n * WIDTH);
                sum[n] = ADD_KIND == ADD_ANY ? term : add(sum[n], term);
            }
        }
    }
#pragma unroll
    for (int n = 0; n < EACH; n++)
        if (column + n * WIDTH < wide) to[column + n * WIDTH] = sum[n];
}

// rows: `split` rows of more than PIECE entries, then `others`. Piece p belongs to
// rows[piece_row[p]], whose first piece is piece_first[piece_row[p]]; its sums go to row p of
// `partial`. WIDTH lanes a task: tiles * (pieces + others).
extern "C" __global__ void __launch_bounds__(256)
    multiply_dense(const O* indptr, const I* indices, const A* a, i64 a_keep, const U* x,
                   i64 x_keep, i64 wide, i64 tiles, const S* rows, i64 split, i64 pieces,
                   i64 others, const int* piece_row, const i64* piece_first, const R* z_indptr,
                   Z* partial, Z* z) {
    const i64 task = thread_id() / WIDTH / tiles, tile = thread_id() / WIDTH % tiles;
    if (task >= pieces + others) return;
    const bool piece = task < pieces;
    const int s = piece ? piece_row[task] : 0;
    const i64 i = rows[piece ? s : split + task - pieces];
    i64 start = indptr[i], stop = indptr[i + 1];
    if (piece) {
        start += (task - piece_first[s]) * PIECE;
        if (stop > start + PIECE) stop = start + PIECE;
    }
    sum_to(indices, a, a_keep, x, x_keep, wide, i, start, stop,
           tile * WIDTH * EACH + thread_id() % WIDTH,
           piece ? partial + task * wide : z + (i64)z_indptr[i]);
}

// The sums of the split rows from those of their pieces, a thread an entry.
extern "C" __global__ void __launch_bounds__(256)
    multiply_dense_split(const S* rows, i64 split, i64 wide, const i64* piece_first,
                         const R* z_indptr, const Z* partial, Z* z) {
    const i64 s = thread_id() / wide, c = thread_id() % wide;
    if (s >= split) return;
    Z sum = partial[piece_first[s] * wide + c];
    if constexpr (ADD_KIND != ADD_ANY)
        for (i64 p = piece_first[s] + 1; p < piece_first[s + 1]; p++)
            sum = add(sum, partial[p * wide + c]);
    z[(i64)z_indptr[rows[s]] + c] = sum;
}
