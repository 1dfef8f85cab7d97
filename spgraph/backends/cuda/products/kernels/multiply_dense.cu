// A times a matrix X that has all of its entries, `wide` of them a row. Preamble: types O I A
// (offsets, ids and values of A), U (values of X), R (offsets of the result), S (row ids), the
// semiring; WIDTH (a power of 2), EACH, VECTOR (divides EACH), FLIP, PLACED.
//
// WIDTH neighbouring lanes take one row of A, or a piece of a long one, for WIDTH * EACH
// neighbouring columns: for every entry of A each of them reads VECTOR neighbouring values of X at
// once, 16 bytes where rows of X are aligned. Rows come in bins of about the same length
// (row_bins.py), so that neighbouring lanes have about the same to do. Sums are in the order of the
// row, for any number of columns.
//
// PLACED: the result has a row for each row of A that has entries, from z_indptr[i] on. Else it has
// all rows.

constexpr int PIECE = 1024; // entries

// What one load brings.
struct alignas(VECTOR * sizeof(U)) Values {
    U x[VECTOR];
};

// Where this lane's column n lies, from the lane's first one on.
DEVICE i64 step(int n) { return (i64)(n / VECTOR) * WIDTH * VECTOR + n % VECTOR; }

DEVICE Z product(i64 i, i64 k, i64 j, A value, U y) {
    if constexpr (FLIP)
        return multiply(y, value, j, k, k, i);
    else
        return multiply(value, y, i, k, k, j);
}

// to[c] = the lane's sums for its columns c below `wide`; 16 bytes at once where they fill them.
DEVICE void store_sums(const Z* sum, i64 column, i64 wide, Z* to) {
    constexpr int WORDS = VECTOR * (int)sizeof(Z) / 16;
#pragma unroll
    for (int n = 0; n < EACH; n += VECTOR) {
        const i64 c = column + step(n);
        if (c >= wide) continue;
        if constexpr (VECTOR * sizeof(Z) % 16 == 0) {
#pragma unroll
            for (int w = 0; w < WORDS; w++) {
                Quad quad;
                memcpy(&quad, (const char*)(sum + n) + 16 * w, 16);
                ((Quad*)(to + c))[w] = quad;
            }
        } else {
#pragma unroll
            for (int m = 0; m < VECTOR; m++) to[c + m] = sum[n + m];
        }
    }
}

// The sum over the entries from `start` to `stop` of row i, for this lane's columns; to[c] is for
// column c.
DEVICE void sum_to(const I* indices, const A* a, i64 a_keep, const U* x, i64 x_keep, i64 wide,
                   i64 i, i64 start, i64 stop, i64 column, Z* to) {
    constexpr int BATCH = EACH == 1 ? 8 : 4, LOADS = EACH / VECTOR;
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
        Values y[BATCH][LOADS];
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
            for (int n = 0; n < LOADS; n++) {
                const i64 c = column + step(n * VECTOR);
                const i64 place = k[b] * wide + (c < wide ? c : wide - VECTOR);
                y[b][n] = *(const Values*)(x + (place & x_keep));
            }
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            if (p + b >= stop) break;
#pragma unroll
            for (int n = 0; n < EACH; n++) {
                const Z term =
                    product(i, k[b], column + step(n), value[b], y[b][n / VECTOR].x[n % VECTOR]);
                sum[n] = ADD_KIND == ADD_ANY ? term : add(sum[n], term);
            }
        }
    }
    store_sums(sum, column, wide, to);
}

// Where the result has its row i.
DEVICE i64 row_place(const R* z_indptr, i64 i, i64 wide) {
    if constexpr (PLACED)
        return z_indptr[i];
    else
        return i * wide;
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
           tile * WIDTH * EACH + thread_id() % WIDTH * VECTOR,
           piece ? partial + task * wide : z + row_place(z_indptr, i, wide));
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
    z[row_place(z_indptr, rows[s], wide) + c] = sum;
}

// The value fill[0] in all rows of the result whose row of A has no entry. A warp takes WARP rows.
extern "C" __global__ void __launch_bounds__(256)
    multiply_dense_fill(const O* indptr, i64 nrows, i64 wide, const Z* fill, Z* z) {
    const i64 first = thread_id() / WARP * WARP, i = first + lane_id();
    const Z value = fill[0];
    u32 empty = warp_ballot(i < nrows && indptr[i] == indptr[i + 1]);
    for (; empty; empty &= empty - 1) {
        Z* to = z + (first + __ffs(empty) - 1) * wide;
        for (i64 c = lane_id(); c < wide; c += WARP) to[c] = value;
    }
}
